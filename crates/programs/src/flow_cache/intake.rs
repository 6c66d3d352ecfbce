//! From frames to the packets of a meter: parsing, and the clock of the packets.

use std::hash::{DefaultHasher, Hash, Hasher};

use capture::clock::{ClockRule, Dated, PacketClock, Step as ClockStep};
use capture::{Frame, Macs, Packet, Packets, Ports, Tunnels, packets};
use flowtable::{FlowKey, Timestamp};

use super::engine::Engine;
use super::options::Options;
use crate::packet_counts::PacketCounts;

/// A packet, or none that has a flow.
type Parsed = Option<Detailed>;

/// A packet with a flow, and what an option takes from its frame.
#[derive(Clone, Copy)]
struct Detailed {
    packet: Packet,
    /// The key of the packet that it quotes, if errors are joined.
    quoted: Option<FlowKey>,
    /// If records have MAC addresses.
    macs: Option<Macs>,
}

/// The options that take more from a frame than its packets.
#[derive(Clone, Copy)]
struct Details {
    /// Whether errors of ICMP count in the flows that they quote.
    joins_errors: bool,
    has_macs: bool,
}

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
    /// Packets with and without a flow.
    pub(crate) parsed: PacketCounts,
    pub(crate) times: Times,
}

impl Totals {
    /// Counts a packet with a flow.
    #[inline]
    fn count(&mut self, packet: &Packet) {
        self.ip_packets += 1;
        self.ip_bytes += packet.bytes;
        self.overlong += u64::from(packet.is_overlong);
        match packet.ports {
            Ports::Read | Ports::None => {}
            Ports::LaterFragment => self.later_fragments += 1,
            Ports::Cut => self.cut_ports += 1,
        }
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
    details: Details,
    totals: Totals,
    /// The time of the last packet.
    now: Timestamp,
    /// The beginning of the tick of the last [time](Engine::time) that was passed on.
    tick_ns: Option<u64>,
}

impl Intake {
    /// The period of [times](Engine::time) while there are packets: a tick of the cache. All meters
    /// of a run have these in common, so that a flow is reported at the same times by any of them.
    const TICK_NS: u64 = 10_000_000;

    /// A silence after which meters that had no packet before it are told its beginning.
    const LONG_NS: u64 = 3600 * 1_000_000_000;

    pub(crate) fn new(options: &Options) -> Self {
        let details = Details { joins_errors: options.joins_errors, has_macs: options.columns.mac };
        Self {
            clock: PacketClock::new(ClockRule::DEFAULT),
            tunnels: options.tunnels,
            details,
            totals: Totals::default(),
            now: Timestamp::ZERO,
            tick_ns: None,
        }
    }

    /// Processes a frame: passes the packets that can be dated to the engine.
    #[inline]
    pub(crate) fn observe(&mut self, frame: &Frame<'_>, engine: &mut Engine) {
        self.totals.packets += 1;
        self.totals.wire_bytes += u64::from(frame.wire_len);
        let packets = packets(frame, self.tunnels);
        if !self.pass_plain(packets.plain_v4(), frame, engine) {
            self.other(packets, frame, engine);
        }
    }

    /// Processes the packets of a frame that has no plain packet of IPv4.
    #[inline(never)]
    fn other(&mut self, packets: Packets<'_>, frame: &Frame<'_>, engine: &mut Engine) {
        if !self.pass_plain(packets.plain_v6(), frame, engine) {
            self.all(packets, frame, engine);
        }
    }

    /// Passes the packet of a plain frame to the engine, unless its time is doubtful or an option
    /// takes more from the frame. Returns whether that is done.
    #[inline(always)]
    fn pass_plain(
        &mut self,
        packet: Option<Packet>,
        frame: &Frame<'_>,
        engine: &mut Engine,
    ) -> bool {
        let Some(packet) = packet.filter(|_| !self.details.has_macs) else { return false };
        let Some(now) = self.clock.accept(self.time(frame)) else { return false };
        self.totals.parsed.count_usable();
        self.totals.count(&packet);
        self.advance(now, engine);
        engine.packet(&packet, now);
        true
    }

    /// Processes the packets of a frame of any kind.
    fn all(&mut self, packets: Packets<'_>, frame: &Frame<'_>, engine: &mut Engine) {
        for packet in packets {
            if let Some(packet) = self.totals.parsed.count(&packet, frame.link) {
                self.packet(packet, frame, engine);
                continue;
            }
            let time = self.time(frame);
            match self.clock.accept(time) {
                Some(now) => self.advance(now, engine),
                None => self.wait(time, None, engine),
            }
        }
    }

    fn packet(&mut self, packet: &Packet, frame: &Frame<'_>, engine: &mut Engine) {
        self.totals.count(packet);
        let time = self.time(frame);
        let Some(now) = self.clock.accept(time) else {
            let detailed = self.details.of(packet, frame);
            return self.wait(time, Some(detailed), engine);
        };
        self.advance(now, engine);
        match self.details.has_macs || self.details.joins_errors && packet.icmp.is_some() {
            true => self.details.of(packet, frame).pass(now, engine),
            false => engine.packet(packet, now),
        }
    }

    /// Returns the time of a frame. Some blocks of pcapng have none.
    #[inline]
    fn time(&self, frame: &Frame<'_>) -> Timestamp {
        match frame.time_ns {
            0 => self.clock.now(),
            time_ns => Timestamp::from_nanos(time_ns),
        }
    }

    /// Adds a packet whose time is doubtful, and processes those that can be dated now.
    #[cold]
    fn wait(&mut self, time: Timestamp, parsed: Parsed, engine: &mut Engine) {
        self.clock.push(
            time,
            flow_number(parsed.as_ref().map(|detailed| &detailed.packet)),
            parsed,
        );
        while let Some(dated) = self.clock.pop() {
            self.advance_dated(&dated, engine);
        }
    }

    /// Continues after a silence: time passes until `now`.
    pub(crate) fn pass_time(&mut self, now: Timestamp, engine: &mut Engine) {
        self.clock.pass(now);
        self.now = self.clock.now();
        engine.time(self.now);
    }

    /// Processes packets whose times are doubtful, without waiting for others. Times after `latest`
    /// do not count.
    pub(crate) fn settle(&mut self, latest: Timestamp, engine: &mut Engine) {
        while let Some(dated) = self.clock.flush(latest) {
            self.advance_dated(&dated, engine);
        }
    }

    /// Processes what is left at the end.
    pub(crate) fn finish(&mut self, latest: Timestamp, engine: &mut Engine) {
        self.settle(latest, engine);
        engine.time(self.now);
    }

    fn advance_dated(&mut self, dated: &Dated<Parsed>, engine: &mut Engine) {
        let times = &mut self.totals.times;
        match dated.step {
            ClockStep::Forward => {}
            ClockStep::Late => times.late += 1,
            ClockStep::Outlier => times.outliers += 1,
            ClockStep::Reset { elapsed } => {
                times.resets += 1;
                // Ages are those at the last time before it.
                engine.time(self.now + elapsed);
                engine.reset(dated.now);
                (self.now, self.tick_ns) = (dated.now, None);
            }
        }
        self.advance(dated.now, engine);
        if let Some(detailed) = &dated.packet {
            detailed.pass(dated.now, engine);
        }
    }

    /// Passes time until `now`.
    #[inline]
    fn advance(&mut self, now: Timestamp, engine: &mut Engine) {
        let now_ns = now.as_nanos();
        let is_within = |tick_ns| now_ns.wrapping_sub(tick_ns) < Self::TICK_NS;
        if !self.tick_ns.is_some_and(is_within) {
            self.begin_tick(now, engine);
        }
        self.now = now;
    }

    fn begin_tick(&mut self, now: Timestamp, engine: &mut Engine) {
        let now_ns = now.as_nanos();
        if now_ns.saturating_sub(self.now.as_nanos()) >= Self::LONG_NS {
            engine.time(self.now);
        }
        self.tick_ns = Some(now_ns - now_ns % Self::TICK_NS);
        engine.time(now);
        engine.tick(now);
    }

    pub(crate) const fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Returns the present time.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

impl Details {
    #[cold]
    fn of(self, packet: &Packet, frame: &Frame<'_>) -> Detailed {
        let quoted = if self.joins_errors { packet.quoted(frame) } else { None };
        let macs = if self.has_macs { packet.macs(frame) } else { None };
        Detailed { packet: *packet, quoted, macs }
    }
}

impl Detailed {
    /// Passes the packet to the engine.
    #[cold]
    fn pass(&self, now: Timestamp, engine: &mut Engine) {
        match self.quoted {
            Some(quoted) => engine.error(&self.packet, quoted, self.macs, now),
            None => engine.packet_with(&self.packet, self.macs, now),
        }
    }
}

/// Returns a number that is equal for the packets of a flow.
fn flow_number(parsed: Option<&Packet>) -> u64 {
    let mut hasher = DefaultHasher::new();
    let key = parsed.map(|packet| packet.key);
    key.map(|key| key.min(key.reversed())).hash(&mut hasher);
    hasher.finish()
}
