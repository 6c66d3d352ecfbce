//! What a server of TPC/A hears and says: the traffic of McKenney and Dove, made from a seed.
//!
//! Each user enters a transaction, gets the answer, acknowledges it, thinks, and enters the next
//! one:
//!
//! ```text
//!     entry                       answer          ack                       entry
//!     ──▼───────────────────────────▲──────────────▼──────── think ───────────▼──
//!       ├──── R - round trip ───────┤─ round trip ─┤
//!       ├────────────── R, the response time ──────┤
//! ```
//!
//! So the acknowledgement arrives R after the entry, and the answer was sent a round trip before
//! it, or at once if R is shorter. Only [`SendReceive`](flowtable::demux::SendReceive) wants to
//! know when that was.
//!
//! ```text
//! for event in Traffic::closed(2000, 0.2, 1).take_while(|event| event.time < 300.0) {
//!     match event.what {
//!         Happening::Arrives(arrival) => {
//!             examined += demux.lookup(&name(event.user), arrival).examined;
//!         }
//!         Happening::Sends => demux.sent(&name(event.user)),
//!     }
//! }
//! ```
//!
//! All of them think when it begins; let a minute or two go by before you count.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::net::Ipv4Addr;

use flowtable::FourTuple;
use flowtable::demux::Arrival;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Mean think time in seconds.
const THINK: f64 = 10.0;
/// No user thinks longer.
const LONGEST_THINK: f64 = 100.0;
/// From the answer to its acknowledgement, in seconds, unless somebody says otherwise.
const ROUND_TRIP: f64 = 0.010;

/// What a user's segments are named by as they arrive: all talk to one server, each from a host of
/// their own.
pub fn name(user: u32) -> FourTuple<Ipv4Addr> {
    FourTuple {
        src: Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 0).to_bits() + user),
        dst: Ipv4Addr::new(192, 0, 2, 1),
        sport: 1024,
        dport: 23,
    }
}

/// Something that the server hears or says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// Seconds since the beginning.
    pub time: f64,
    /// Whose connection it is: a number below that of the users.
    pub user: u32,
    pub what: Happening,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A segment arrives: an entry has data, what acknowledges the answer has none.
    Arrives(Arrival),
    /// The server sends its answer.
    Sends,
}

/// When a user enters something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Habit {
    /// After a random time from the acknowledgement on.
    Thinks,
    /// After the same time always: a till that is polled.
    Polled,
    /// At random times, whether there is an answer or not.
    Rushes,
}

/// An endless stream of events in the order of their times.
pub struct Traffic {
    habit: Habit,
    response: f64,
    round_trip: f64,
    /// What is to come. Each user has an event here.
    ahead: BinaryHeap<Reverse<Event>>,
    rng: StdRng,
}

impl Traffic {
    /// TPC/A: think times are exponential with a mean of ten seconds, and of a hundred at most,
    /// from the acknowledgement on. `response` is in seconds.
    pub fn closed(users: u32, response: f64, seed: u64) -> Self {
        Self::new(Habit::Thinks, users, response, seed)
    }

    /// Every user thinks for ten seconds exactly, from the acknowledgement on: polling of points of
    /// sale.
    pub fn polling(users: u32, response: f64, seed: u64) -> Self {
        Self::new(Habit::Polled, users, response, seed)
    }

    /// Every user enters something 0.1 times a second on average, answered or not: a Poisson
    /// process.
    pub fn open(users: u32, response: f64, seed: u64) -> Self {
        Self::new(Habit::Rushes, users, response, seed)
    }

    /// The same with so many seconds from an answer to its acknowledgement, instead of 0.01.
    pub fn with_round_trip(self, round_trip: f64) -> Self {
        Self { round_trip: round_trip.min(self.response), ..self }
    }

    fn new(habit: Habit, users: u32, response: f64, seed: u64) -> Self {
        let round_trip = ROUND_TRIP.min(response);
        let (ahead, rng) = (BinaryHeap::new(), StdRng::seed_from_u64(seed));
        let mut traffic = Self { habit, response, round_trip, ahead, rng };
        for user in 0..users {
            let first = match habit {
                // Somewhere in their cycle.
                Habit::Polled => traffic.rng.random_range(0.0..THINK + response),
                // To have thought for a while already makes no difference.
                Habit::Thinks | Habit::Rushes => traffic.pause(),
            };
            traffic.expect(first, user, Happening::Arrives(Arrival::Data));
        }
        traffic
    }

    /// Seconds until a user enters something, from the moment on that the habit says.
    fn pause(&mut self) -> f64 {
        loop {
            let exponential = -THINK * (1.0 - self.rng.random::<f64>()).ln();
            match self.habit {
                Habit::Polled => return THINK,
                Habit::Thinks if exponential > LONGEST_THINK => {}
                Habit::Thinks | Habit::Rushes => return exponential,
            }
        }
    }

    fn expect(&mut self, time: f64, user: u32, what: Happening) {
        self.ahead.push(Reverse(Event { time, user, what }));
    }
}

impl Iterator for Traffic {
    type Item = Event;

    /// The next event, which brings another one about. There is none without users.
    fn next(&mut self) -> Option<Event> {
        let Reverse(event) = self.ahead.pop()?;
        let Event { time, user, what } = event;
        let entry = Happening::Arrives(Arrival::Data);
        match what {
            Happening::Arrives(Arrival::Data) => {
                if self.habit == Habit::Rushes {
                    let next = time + self.pause();
                    self.expect(next, user, entry);
                }
                self.expect(time + self.response - self.round_trip, user, Happening::Sends);
            }
            Happening::Sends => {
                self.expect(time + self.round_trip, user, Happening::Arrives(Arrival::Ack));
            }
            Happening::Arrives(Arrival::Ack) => {
                if self.habit != Habit::Rushes {
                    let next = time + self.pause();
                    self.expect(next, user, entry);
                }
            }
        }
        Some(event)
    }
}

/// The order of a heap: by time, then by user. What one user does at one time comes in its natural
/// order.
impl Ord for Event {
    fn cmp(&self, other: &Self) -> Ordering {
        let stage = |what| match what {
            Happening::Arrives(Arrival::Data) => 0,
            Happening::Sends => 1,
            Happening::Arrives(Arrival::Ack) => 2,
        };
        self.time
            .total_cmp(&other.time)
            .then(self.user.cmp(&other.user))
            .then_with(|| stage(self.what).cmp(&stage(other.what)))
    }
}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Eq for Event {}

/// Bulk transfers: trains of segments with data, a random user's each, a segment every millisecond.
/// The server acknowledges every second segment.
pub struct Trains {
    users: u32,
    /// Segments of a train.
    segments: u32,
    /// Whose train it is, and the segments of it that have arrived.
    train: (u32, u32),
    /// An acknowledgement is to be sent.
    owes: bool,
    milliseconds: u64,
    rng: StdRng,
}

impl Trains {
    pub fn new(users: u32, segments: u32, seed: u64) -> Self {
        let rng = StdRng::seed_from_u64(seed);
        Self { users, segments, train: (0, segments), owes: false, milliseconds: 0, rng }
    }
}

impl Iterator for Trains {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        let what = if std::mem::take(&mut self.owes) {
            Happening::Sends
        } else {
            if self.train.1 >= self.segments {
                self.train = (self.rng.random_range(0..self.users), 0);
            }
            self.train.1 += 1;
            self.milliseconds += 1;
            self.owes = self.train.1 % 2 == 0;
            Happening::Arrives(Arrival::Data)
        };
        Some(Event { time: self.milliseconds as f64 / 1000.0, user: self.train.0, what })
    }
}
