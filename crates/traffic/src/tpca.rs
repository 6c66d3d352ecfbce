//! TPC/A traffic of McKenney and Dove, as a server sees it, generated from a seed.
//!
//! Each user enters a transaction, receives the answer, acknowledges it, thinks, and repeats:
//!
//! ```text
//!     entry                       answer          ack                       entry
//!     ──▼───────────────────────────▲──────────────▼──────── think ───────────▼──
//!       ├──── R - round trip ───────┤─ round trip ─┤
//!       ├────────────── R, the response time ──────┤
//! ```
//!
//! The acknowledgement arrives R after the entry. The answer was sent a round trip earlier, or
//! immediately if R is shorter. Only [`SendReceive`](flowtable::demux::SendReceive) uses that time.
//!
//! ```text
//! for event in Traffic::closed(2000, 0.2, 1).take_while(|event| event.time < 300.0) {
//!     let key = name(event.user);
//!     match event.kind {
//!         EventKind::Arrives(arrival) => examined += demux.lookup(&key, arrival).examined,
//!         EventKind::Sends => demux.sent(&key),
//!     }
//! }
//! ```
//!
//! All users start in the thinking phase: discard the first minute or two.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::net::Ipv4Addr;

use flowtable::FourTuple;
use flowtable::demux::Arrival;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Mean think time in seconds.
const THINK: f64 = 10.0;
/// Upper bound of the think time in seconds.
const LONGEST_THINK: f64 = 100.0;
/// Default time between an answer and its acknowledgement, in seconds.
const ROUND_TRIP: f64 = 0.010;

/// The four-tuple of a user's inbound segments: one server, and a host per user.
pub fn name(user: u32) -> FourTuple<Ipv4Addr> {
    FourTuple {
        src: Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 0).to_bits() + user),
        dst: Ipv4Addr::new(192, 0, 2, 1),
        sport: 1024,
        dport: 23,
    }
}

/// A segment that the server receives or sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// Seconds since the start.
    pub time: f64,
    /// Index of the user, below the number of users.
    pub user: u32,
    pub kind: EventKind,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A segment arrives: an entry carries data, an acknowledgement none.
    Arrives(Arrival),
    /// The server sends its answer.
    Sends,
}

/// The distribution of the time between entries of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThinkTime {
    /// Exponential, counted from the acknowledgement.
    Exponential,
    /// Constant, counted from the acknowledgement: a point of sale that is polled.
    Constant,
    /// Exponential, counted from the previous entry: does not depend on answers.
    Poisson,
}

/// An infinite stream of events, ordered by time.
pub struct Traffic {
    think_time: ThinkTime,
    response: f64,
    round_trip: f64,
    /// Events to come.
    pending: BinaryHeap<Reverse<Event>>,
    rng: StdRng,
}

impl Traffic {
    /// TPC/A: think times are exponential with a mean of ten seconds and a maximum of a hundred,
    /// counted from the acknowledgement. `response` is in seconds.
    pub fn closed(users: u32, response: f64, seed: u64) -> Self {
        Self::new(ThinkTime::Exponential, users, response, seed)
    }

    /// Constant think time of ten seconds, counted from the acknowledgement: polling of points of
    /// sale.
    pub fn polling(users: u32, response: f64, seed: u64) -> Self {
        Self::new(ThinkTime::Constant, users, response, seed)
    }

    /// Each user enters 0.1 transactions per second on average, answered or not: a Poisson process.
    pub fn open(users: u32, response: f64, seed: u64) -> Self {
        Self::new(ThinkTime::Poisson, users, response, seed)
    }

    /// Replaces the time between an answer and its acknowledgement, in seconds.
    pub fn with_round_trip(self, round_trip: f64) -> Self {
        Self { round_trip: round_trip.min(self.response), ..self }
    }

    fn new(think_time: ThinkTime, users: u32, response: f64, seed: u64) -> Self {
        let round_trip = ROUND_TRIP.min(response);
        let (pending, rng) = (BinaryHeap::new(), StdRng::seed_from_u64(seed));
        let mut traffic = Self { think_time, response, round_trip, pending, rng };
        for user in 0..users {
            let first = match think_time {
                // A random position in the cycle.
                ThinkTime::Constant => traffic.rng.random_range(0.0..THINK + response),
                // The exponential distribution is memoryless.
                ThinkTime::Exponential | ThinkTime::Poisson => traffic.pause(),
            };
            traffic.schedule(first, user, EventKind::Arrives(Arrival::Data));
        }
        traffic
    }

    /// Draws the seconds until the next entry of a user.
    fn pause(&mut self) -> f64 {
        loop {
            let exponential = -THINK * (1.0 - self.rng.random::<f64>()).ln();
            match self.think_time {
                ThinkTime::Constant => return THINK,
                ThinkTime::Exponential if exponential > LONGEST_THINK => {}
                ThinkTime::Exponential | ThinkTime::Poisson => return exponential,
            }
        }
    }

    fn schedule(&mut self, time: f64, user: u32, kind: EventKind) {
        self.pending.push(Reverse(Event { time, user, kind }));
    }
}

impl Iterator for Traffic {
    type Item = Event;

    /// Returns the next event and schedules its successor. There is none without users.
    fn next(&mut self) -> Option<Event> {
        let Reverse(event) = self.pending.pop()?;
        let Event { time, user, kind } = event;
        let entry = EventKind::Arrives(Arrival::Data);
        match kind {
            EventKind::Arrives(Arrival::Data) => {
                if self.think_time == ThinkTime::Poisson {
                    let next = time + self.pause();
                    self.schedule(next, user, entry);
                }
                self.schedule(time + self.response - self.round_trip, user, EventKind::Sends);
            }
            EventKind::Sends => {
                self.schedule(time + self.round_trip, user, EventKind::Arrives(Arrival::Ack));
            }
            EventKind::Arrives(Arrival::Ack) => {
                if self.think_time != ThinkTime::Poisson {
                    let next = time + self.pause();
                    self.schedule(next, user, entry);
                }
            }
        }
        Some(event)
    }
}

/// The order of the heap: by time, then by user, then by stage of the transaction.
impl Ord for Event {
    fn cmp(&self, other: &Self) -> Ordering {
        let stage = |kind| match kind {
            EventKind::Arrives(Arrival::Data) => 0,
            EventKind::Sends => 1,
            EventKind::Arrives(Arrival::Ack) => 2,
        };
        self.time
            .total_cmp(&other.time)
            .then(self.user.cmp(&other.user))
            .then_with(|| stage(self.kind).cmp(&stage(other.kind)))
    }
}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Eq for Event {}

/// Bulk transfers: trains of data segments, each of a random user, one segment per millisecond. The
/// server acknowledges every second segment.
pub struct Trains {
    users: u32,
    /// Segments per train.
    segments: u32,
    /// The user of the current train, and its segments that have arrived.
    train: (u32, u32),
    /// Whether an acknowledgement is due.
    ack_due: bool,
    milliseconds: u64,
    rng: StdRng,
}

impl Trains {
    pub fn new(users: u32, segments: u32, seed: u64) -> Self {
        let rng = StdRng::seed_from_u64(seed);
        Self { users, segments, train: (0, segments), ack_due: false, milliseconds: 0, rng }
    }
}

impl Iterator for Trains {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        let kind = if std::mem::take(&mut self.ack_due) {
            EventKind::Sends
        } else {
            if self.train.1 >= self.segments {
                self.train = (self.rng.random_range(0..self.users), 0);
            }
            self.train.1 += 1;
            self.milliseconds += 1;
            self.ack_due = self.train.1 % 2 == 0;
            EventKind::Arrives(Arrival::Data)
        };
        Some(Event { time: self.milliseconds as f64 / 1000.0, user: self.train.0, kind })
    }
}
