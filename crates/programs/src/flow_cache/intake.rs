//! From frames to the steps of a meter: parsing, and the clock of the packets.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use capture::clock::{ClockRule, Dated, PacketClock, Step as ClockStep};
use capture::{Frame, NotIp, Packet, Ports, Reject, Tunnels, packets};
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
    /// IP packets whose headers claim more than their frames can hold.
    pub(crate) overlong: u64,
    /// Packets without a flow, by reason.
    pub(crate) rejects: BTreeMap<Reject, u64>,
    pub(crate) times: Times,
}

impl Totals {
    /// Maximum number of reasons that are counted apart: a crafted capture has many protocols.
    const MAX_REASONS: usize = 1000;

    /// Packets that cannot be metered and are tolerated in a capture of many.
    const FEW: u64 = 10;

    fn reject(&mut self, reason: Reject) {
        let is_new = !self.rejects.contains_key(&reason);
        let reason = match is_new && self.rejects.len() >= Self::MAX_REASONS {
            true => Reject::NotIp(NotIp::Other),
            false => reason,
        };
        *self.rejects.entry(reason).or_default() += 1;
    }

    /// Returns the number of packets with such a reason.
    pub(crate) fn rejected(&self, is_such: impl Fn(Reject) -> bool) -> u64 {
        let such = self.rejects.iter().filter(|(reason, _)| is_such(**reason));
        such.map(|(_, count)| count).sum()
    }

    /// Returns why a part of the packets that matters could not be metered; `None` if there is no
    /// such part. Protocols that never carry IP are none.
    pub(crate) fn unsupported(&self) -> Option<String> {
        let links = self.rejects.keys().filter_map(|reason| match reason {
            Reject::UnknownLink(link) => Some(link.to_string()),
            _ => None,
        });
        let links: Vec<String> = links.collect();
        if !links.is_empty() {
            return Some(format!("link types that are not supported: {}", links.join(", ")));
        }
        let unknown = self.rejected(Reject::is_unknown);
        // A few are tolerated, unless there is little else.
        let tolerated = (self.packets / 2).min(Self::FEW.max(self.packets / 100));
        if unknown > tolerated {
            let kinds = self.rejects.keys().filter(|reason| reason.is_unknown());
            let kinds: Vec<String> = kinds.take(3).map(Reject::to_string).collect();
            let kinds = kinds.join(", ");
            return Some(format!("{unknown} packets of protocols that are not supported: {kinds}"));
        }
        let malformed = self.rejected(Reject::is_malformed);
        let is_most = malformed > Self::FEW && malformed > self.packets / 2;
        is_most.then(|| format!("{malformed} packets are malformed, or of another link type"))
    }
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
    tunnels: Tunnels,
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

    pub(crate) fn new(tunnels: Tunnels) -> Self {
        let clock = PacketClock::new(ClockRule::DEFAULT);
        Self { clock, tunnels, totals: Totals::default(), now: Timestamp::ZERO, tick: None }
    }

    /// Processes a frame: passes the steps of the packets that can be dated to `each`.
    pub(crate) fn observe(&mut self, frame: &Frame<'_>, each: &mut impl FnMut(Step)) {
        self.totals.packets += 1;
        self.totals.wire_bytes += u64::from(frame.wire_len);
        for packet in packets(frame, self.tunnels) {
            let parsed = self.count(packet);
            self.date(frame.time_ns, parsed, each);
        }
    }

    /// Passes the steps of a packet to `each`, or of those before it that can be dated now.
    fn date(&mut self, time_ns: u64, parsed: Parsed, each: &mut impl FnMut(Step)) {
        // Some blocks of pcapng have no time.
        let time = match time_ns {
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

    /// Counts a packet of a frame.
    fn count(&mut self, packet: Result<Packet, Reject>) -> Parsed {
        let totals = &mut self.totals;
        let packet = packet.map_err(|reason| totals.reject(reason)).ok()?;
        totals.ip_packets += 1;
        totals.ip_bytes += packet.bytes;
        totals.overlong += u64::from(packet.is_overlong);
        match packet.ports {
            Ports::Read | Ports::None => {}
            Ports::LaterFragment => totals.later_fragments += 1,
            Ports::Cut => totals.cut_ports += 1,
        }
        Some(packet)
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
