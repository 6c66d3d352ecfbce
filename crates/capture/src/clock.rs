//! A clock that runs by the timestamps of packets, and survives wrong ones.
//!
//! ```text
//!             behind      ahead
//!          ◂─────────▸│◂─────────▸
//!     ────────────────┼────────────────────▸  time
//!      late │  near   now   near │ suspect
//!           │                    │
//!           │                    └ waits for the packets after it: they confirm or refute it
//!           └ processed at `now`; the clock is set back if further packets agree
//! ```
//!
//! Timestamps of captures jump: by damaged records, by clocks that are set, by packets of several
//! interfaces, and by silence. A table whose time is the latest timestamp would stand still for 80
//! years after one packet of the year 2106, and for an hour after its clock was set back by one.
//!
//! - A packet **near** the present time moves the clock forward, or not at all.
//! - A packet far **ahead** is a suspect: it waits. It is an outlier if a near packet follows. Its
//!   time counts if packets of several flows follow whose times are not before it (or many packets
//!   of one flow): then time has passed, in silence.
//! - A **late** packet is processed at the present time. If late packets of several flows follow
//!   each other, without a near one between them, the clock was set back: the time is *reset* to
//!   theirs, and the time from the second one on has passed. Ages must be kept:
//!   [`FlowCache::set_clock`](flowtable::FlowCache::set_clock) does that.
//! - The clock that a reset has left is remembered, relative to the new one: all clocks run at one
//!   rate. A jump or late packets that meet a clock of these are a reset to it: the clock was
//!   corrected, or packets of several clocks are mixed in bursts. The elapsed time is
//!   the difference between that clock and its expected time.
//!
//! Guarantees, for packets whose times are right but for jumps of the clock and outliers:
//!
//! 1. Packets leave in the order in which they arrived, and none waits for more than
//!    [`packets`](ClockRule::with_witnesses) others.
//! 2. The time does not decrease, except by a reset.
//! 3. Outliers of fewer flows and packets in a row than the rule requires do not move the clock by
//!    more than the bounds of the rule.
//! 4. After a jump of the clock, the time is that of the packets again after as many packets as the
//!    rule requires.
//!
//! The cost is a comparison for a near packet. A suspect is examined once for each packet that
//! arrives while it waits.

use core::ops::RangeInclusive;
use core::time::Duration;
use std::collections::VecDeque;

use flowtable::Timestamp;

/// The bounds of a [`PacketClock`], and the packets that it requires for a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockRule {
    ahead: Duration,
    behind: Duration,
    flows: usize,
    packets: usize,
}

impl ClockRule {
    /// Bounds of 10 seconds each; packets of 3 flows, or 16 packets.
    pub const DEFAULT: Self = Self {
        ahead: Duration::from_secs(10),
        behind: Duration::from_secs(10),
        flows: 3,
        packets: 16,
    };

    /// Sets the bounds: packets within them are near the present time.
    #[must_use]
    pub const fn with_bounds(self, ahead: Duration, behind: Duration) -> Self {
        Self { ahead, behind, ..self }
    }

    /// Sets the witnesses of a jump: packets of `flows` flows in a row, or `packets` packets of
    /// any. Numbers below 1 count as 1.
    #[must_use]
    pub const fn with_witnesses(self, flows: usize, packets: usize) -> Self {
        let flows = if flows == 0 { 1 } else { flows };
        let packets = if packets == 0 { 1 } else { packets };
        Self { flows, packets, ..self }
    }

    /// Returns the differences in nanoseconds that are near.
    fn bounds_ns(&self) -> RangeInclusive<i128> {
        -i128::from(nanos(self.behind))..=i128::from(nanos(self.ahead))
    }
}

/// Returns the nanoseconds of a period, at most what 64 bits hold.
const fn nanos(period: Duration) -> u64 {
    let nanos = period.as_nanos();
    if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 }
}

impl Default for ClockRule {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A packet with the time at which it is to be processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dated<T> {
    /// The packet.
    pub packet: T,
    /// The time of the clock.
    pub now: Timestamp,
    /// How the time of the clock relates to the timestamp of the packet.
    pub step: Step,
}

/// The step of a clock at a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Time has passed since the last packet, or stands still.
    Forward,
    /// The packet is late: its timestamp does not count.
    Late,
    /// The packet is far ahead, and was not confirmed: its timestamp does not count.
    Outlier,
    /// The clock of the packets was set, or the packets of another clock follow: the time is
    /// reset, and only this much has passed.
    Reset { elapsed: Duration },
}

/// A packet that waits.
#[derive(Clone, Debug)]
struct Held<T> {
    time: Timestamp,
    flow: u64,
    packet: T,
}

/// Late packets in a row.
#[derive(Clone, Debug, Default)]
struct LateRun {
    /// The time of the second one, and the latest of their times.
    second: Timestamp,
    time: Timestamp,
    witnesses: Witnesses,
}

/// Packets that agree about a jump.
#[derive(Clone, Debug, Default)]
struct Witnesses {
    /// Different flows, at most as many as are required.
    flows: Vec<u64>,
    packets: usize,
}

impl Witnesses {
    fn add(&mut self, flow: u64, rule: &ClockRule) {
        self.packets += 1;
        if self.flows.len() < rule.flows && !self.flows.contains(&flow) {
            self.flows.push(flow);
        }
    }

    fn suffice(&self, rule: &ClockRule) -> bool {
        self.flows.len() >= rule.flows || self.packets >= rule.packets
    }
}

/// A clock that runs by the timestamps of packets, and is not moved by wrong ones.
///
/// Packets are [pushed](Self::push) in the order in which they arrive, and [popped](Self::pop) in
/// the same order with the time at which they are to be processed. The [module](self) has the
/// guarantees.
///
/// | method | cost |
/// |---|---|
/// | `accept`, `now`, `is_empty`, `pass` | O(1) |
/// | `push` | O(1), and an allocation if packets wait |
/// | `pop`, `flush` | O(1) if the oldest packet is near; else O(flows × packets) of the [rule](ClockRule::with_witnesses) |
#[derive(Clone, Debug)]
pub struct PacketClock<T> {
    rule: ClockRule,
    /// The bounds of the rule in nanoseconds.
    ahead_ns: u64,
    behind_ns: u64,
    /// `None` before the first packet.
    now: Option<Timestamp>,
    held: VecDeque<Held<T>>,
    late: LateRun,
    /// Clocks that packets had before a reset, the last one at the end: nanoseconds by which they
    /// are ahead of the present one.
    others: Vec<i128>,
}

/// The place of a timestamp relative to the present time.
enum Place {
    Near,
    Late,
    Ahead,
}

/// The verdict on a suspect.
enum Verdict {
    Confirmed,
    Refuted,
    Undecided,
}

impl<T> PacketClock<T> {
    /// Number of clocks that are remembered: as many as a capture of several interfaces has.
    const OTHERS: usize = 8;

    /// Creates a clock, which the first packet sets.
    #[must_use]
    pub const fn new(rule: ClockRule) -> Self {
        let late = LateRun {
            second: Timestamp::ZERO,
            time: Timestamp::ZERO,
            witnesses: Witnesses { flows: Vec::new(), packets: 0 },
        };
        Self {
            rule,
            ahead_ns: nanos(rule.ahead),
            behind_ns: nanos(rule.behind),
            now: None,
            held: VecDeque::new(),
            late,
            others: Vec::new(),
        }
    }

    /// Returns the present time; the origin before the first packet.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.now.unwrap_or_default()
    }

    /// Returns whether no packet waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Returns the time for a packet that need not wait, as nearly all do: it is near, and no other
    /// packet waits. Otherwise the packet has to be [pushed](Self::push). O(1).
    #[inline]
    pub fn accept(&mut self, time: Timestamp) -> Option<Timestamp> {
        let Some(before) = self.now else { return self.accept_other(time) };
        let ahead_ns = time.as_nanos().wrapping_sub(before.as_nanos());
        let is_calm = self.held.is_empty() && self.late.witnesses.packets == 0;
        if !is_calm || time < before || ahead_ns > self.ahead_ns {
            return self.accept_other(time);
        }
        self.now = Some(time);
        self.now
    }

    /// Returns the time for a packet that need not wait, of any kind.
    fn accept_other(&mut self, time: Timestamp) -> Option<Timestamp> {
        let now = self.now.unwrap_or(time);
        let (now_ns, time_ns) = (now.as_nanos(), time.as_nanos());
        let is_near = time_ns <= now_ns.saturating_add(self.ahead_ns)
            && now_ns <= time_ns.saturating_add(self.behind_ns);
        if !is_near || !self.held.is_empty() {
            return None;
        }
        if self.late.witnesses.packets > 0 {
            self.late.witnesses = Witnesses::default();
        }
        self.now = Some(now.max(time));
        self.now
    }

    /// Adds a packet, with a number that is equal for all packets of its flow.
    pub fn push(&mut self, time: Timestamp, flow: u64, packet: T) {
        self.held.push_back(Held { time, flow, packet });
    }

    /// Removes the next packet, unless it has to wait for others.
    pub fn pop(&mut self) -> Option<Dated<T>> {
        self.next(None)
    }

    /// Removes the next packet without waiting for others: its time is accepted if it is not after
    /// `latest`, such as the caller's own clock. For the end of the packets, and for silence.
    pub fn flush(&mut self, latest: Timestamp) -> Option<Dated<T>> {
        self.next(Some(latest))
    }

    /// Advances the time without packets.
    pub fn pass(&mut self, now: Timestamp) {
        self.now = Some(self.now().max(now));
    }

    fn next(&mut self, latest: Option<Timestamp>) -> Option<Dated<T>> {
        let &Held { time, flow, .. } = self.held.front()?;
        let step = match self.place(time) {
            Place::Near => {
                self.late.witnesses = Witnesses::default();
                self.pass(time);
                Step::Forward
            }
            Place::Late => self.on_late(time, flow),
            Place::Ahead => match (self.verdict(), latest) {
                (Verdict::Undecided, None) => return None,
                (Verdict::Refuted, _) => Step::Outlier,
                (Verdict::Undecided, Some(latest)) if time > latest => Step::Outlier,
                _ => self.jump(time),
            },
        };
        let packet = self.held.pop_front()?.packet;
        Some(Dated { packet, now: self.now(), step })
    }

    fn place(&self, time: Timestamp) -> Place {
        let now = self.now.unwrap_or(time);
        if time > now + self.rule.ahead {
            Place::Ahead
        } else if time + self.rule.behind < now {
            Place::Late
        } else {
            Place::Near
        }
    }

    /// Processes a late packet. It agrees with those before it if it is not earlier, however much
    /// time has passed between them.
    fn on_late(&mut self, time: Timestamp, flow: u64) -> Step {
        let run = &mut self.late;
        let agrees = run.time <= time + self.rule.behind;
        if run.witnesses.packets == 0 || !agrees {
            *run = LateRun { second: time, time, witnesses: Witnesses::default() };
        }
        run.time = run.time.max(time);
        run.witnesses.add(flow, &self.rule);
        if run.witnesses.packets == 2 {
            // The first one may be an outlier, before which no time has passed.
            run.second = time;
        }
        if !run.witnesses.suffice(&self.rule) {
            return Step::Late;
        }
        let run = core::mem::take(run);
        let elapsed = self.take_other(run.time).unwrap_or(run.time.since(run.second));
        self.reset(run.time, elapsed)
    }

    /// Examines the first packet, which is far ahead, by those after it.
    fn verdict(&self) -> Verdict {
        let mut witnesses = Witnesses::default();
        let first = self.held.front().map_or(Timestamp::ZERO, |held| held.time);
        for held in &self.held {
            match self.place(held.time) {
                Place::Near => return Verdict::Refuted,
                Place::Ahead if held.time + self.rule.behind >= first => {
                    witnesses.add(held.flow, &self.rule);
                }
                // It agrees neither with the suspect nor with the present time.
                Place::Ahead | Place::Late => {}
            }
            if witnesses.suffice(&self.rule) {
                return Verdict::Confirmed;
            }
        }
        match self.held.len() > self.rule.packets {
            true => Verdict::Refuted,
            false => Verdict::Undecided,
        }
    }

    /// Moves the clock ahead.
    fn jump(&mut self, time: Timestamp) -> Step {
        if let Some(elapsed) = self.take_other(time) {
            return self.reset(time, elapsed);
        }
        self.now = Some(time);
        Step::Forward
    }

    /// Forgets the clock that shows about this time, if there is one. Returns how far it is
    /// ahead of its expected time.
    fn take_other(&mut self, time: Timestamp) -> Option<Duration> {
        let now = i128::from(self.now().as_nanos());
        let ahead = |other: i128| i128::from(time.as_nanos()) - (now + other);
        let bounds = self.rule.bounds_ns();
        let at = self.others.iter().rposition(|other| bounds.contains(&ahead(*other)))?;
        let ahead = ahead(self.others.remove(at));
        Some(Duration::from_nanos(u64::try_from(ahead).unwrap_or(0)))
    }

    /// Resets the time, and remembers the clock that was the present one.
    fn reset(&mut self, time: Timestamp, elapsed: Duration) -> Step {
        let left = i128::from((self.now() + elapsed).as_nanos()) - i128::from(time.as_nanos());
        for other in &mut self.others {
            *other += left;
        }
        if self.others.len() == Self::OTHERS {
            self.others.remove(0);
        }
        self.others.push(left);
        self.now = Some(time);
        Step::Reset { elapsed }
    }
}
