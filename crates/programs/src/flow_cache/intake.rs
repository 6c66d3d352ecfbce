//! From frames to the steps of a meter: parsing, and the clock of the packets.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use capture::clock::{ClockRule, Dated, PacketClock, Step as ClockStep};
use capture::{Frame, Packet, Ports, Reject};
use flowtable::Timestamp;

/// The next step of a [`Meter`](super::Meter).
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Time has passed: flows that are due end.
    Time(Timestamp),
    /// The clock of the packets was set to this time, and no time has passed since the last step.
    Reset(Timestamp),
    /// A packet is counted at this time.
    Packet(Packet, Timestamp),
}

/// A packet, or none that has a flow.
type Parsed = Option<Packet>;

/// Counts of packets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) packets: u64,
    pub(crate) wire_bytes: u64,
    pub(crate) ip_packets: u64,
    pub(crate) ip_bytes: u64,
    pub(crate) later_fragments: u64,
    pub(crate) cut_ports: u64,
    /// By [`Reject`].
    pub(crate) rejects: [u64; Reject::ALL.len()],
    pub(crate) times: Times,
    /// Packets of unknown link types, by type.
    pub(crate) unknown_links: BTreeMap<u16, u64>,
}

/// Counts of packets whose times differ from that of the clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    /// Packets more than ten seconds late.
    pub(crate) late: u64,
    /// Packets far ahead that no other packet confirmed.
    pub(crate) outliers: u64,
    /// Resets of the clock.
    pub(crate) resets: u64,
}

/// Parses frames, counts them, and dates them.
pub(crate) struct Intake {
    /// Packets whose times are doubtful wait here for those after them.
    clock: PacketClock<Parsed>,
    totals: Totals,
    /// The time of the last step.
    now: Timestamp,
    /// The tick of the last [`Step::Time`].
    tick: Option<u64>,
}

impl Intake {
    /// The period of [`Step::Time`] while there are packets: a tick of the cache. All meters of a
    /// run have these steps in common, so that a flow is reported at the same times by any of them.
    const TICK_NS: u64 = 10_000_000;

    /// A silence after which meters that had no packet before it are told its beginning.
    const LONG_NS: u64 = 3600 * 1_000_000_000;

    pub(crate) fn new() -> Self {
        let clock = PacketClock::new(ClockRule::DEFAULT);
        Self { clock, totals: Totals::default(), now: Timestamp::ZERO, tick: None }
    }

    /// Processes a frame: passes the steps of the packets that can be dated to `each`.
    pub(crate) fn observe(&mut self, frame: &Frame<'_>, each: &mut impl FnMut(Step)) {
        let parsed = self.parse(frame);
        // Some blocks of pcapng have no time.
        let time = match frame.time_ns {
            0 => self.clock.now(),
            time_ns => Timestamp::from_nanos(time_ns),
        };
        if let Some(now) = self.clock.accept(time) {
            return self.advance(parsed, now, each);
        }
        self.clock.push(time, flow_number(&parsed), parsed);
        while let Some(dated) = self.clock.pop() {
            self.advance_dated(&dated, each);
        }
    }

    /// Continues after a silence: time passes until `now`.
    pub(crate) fn pass_time(&mut self, now: Timestamp, each: &mut impl FnMut(Step)) {
        self.clock.pass(now);
        self.now = self.clock.now();
        each(Step::Time(self.now));
    }

    /// Processes packets whose times are doubtful, without waiting for others. Times after `latest`
    /// do not count.
    pub(crate) fn settle(&mut self, latest: Timestamp, each: &mut impl FnMut(Step)) {
        while let Some(dated) = self.clock.flush(latest) {
            self.advance_dated(&dated, each);
        }
    }

    /// Processes what is left at the end.
    pub(crate) fn finish(&mut self, latest: Timestamp, each: &mut impl FnMut(Step)) {
        self.settle(latest, each);
        each(Step::Time(self.now));
    }

    fn advance_dated(&mut self, dated: &Dated<Parsed>, each: &mut impl FnMut(Step)) {
        let times = &mut self.totals.times;
        match dated.step {
            ClockStep::Forward => {}
            ClockStep::Late => times.late += 1,
            ClockStep::Outlier => times.outliers += 1,
            ClockStep::Reset { elapsed } => {
                times.resets += 1;
                // Ages are those at the last time before it.
                each(Step::Time(self.now + elapsed));
                each(Step::Reset(dated.now));
                (self.now, self.tick) = (dated.now, None);
            }
        }
        self.advance(dated.packet, dated.now, each);
    }

    fn advance(&mut self, parsed: Parsed, now: Timestamp, each: &mut impl FnMut(Step)) {
        let tick = now.as_nanos() / Self::TICK_NS;
        if self.tick != Some(tick) {
            if now.as_nanos().saturating_sub(self.now.as_nanos()) >= Self::LONG_NS {
                each(Step::Time(self.now));
            }
            self.tick = Some(tick);
            each(Step::Time(now));
        }
        self.now = now;
        if let Some(packet) = parsed {
            each(Step::Packet(packet, now));
        }
    }

    /// Counts a frame, and parses its packet.
    fn parse(&mut self, frame: &Frame<'_>) -> Parsed {
        let totals = &mut self.totals;
        totals.packets += 1;
        totals.wire_bytes += u64::from(frame.wire_len);
        match Packet::of(frame) {
            Ok(packet) => {
                totals.ip_packets += 1;
                totals.ip_bytes += packet.bytes;
                match packet.ports {
                    Ports::Read | Ports::None => {}
                    Ports::LaterFragment => totals.later_fragments += 1,
                    Ports::Cut => totals.cut_ports += 1,
                }
                Some(packet)
            }
            Err(reject) => {
                totals.rejects[reject as usize] += 1;
                if reject == Reject::UnknownLink {
                    *totals.unknown_links.entry(frame.link).or_default() += 1;
                }
                None
            }
        }
    }

    pub(crate) const fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Returns the present time.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

/// Returns a number that is equal for the packets of a flow.
fn flow_number(parsed: &Parsed) -> u64 {
    let mut hasher = DefaultHasher::new();
    let key = parsed.as_ref().map(|packet| packet.key);
    key.map(|key| key.min(key.reversed())).hash(&mut hasher);
    hasher.finish()
}
