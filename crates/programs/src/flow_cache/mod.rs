//! A flow meter on a [`FlowCache`]: both directions of a conversation in one entry.
//!
//! ```text
//!     Frame ─► Packet ─► observe ─► FlowCache ──────────► Record ─► rows of CSV, lines of JSON,
//!       │                              │  evicted, idle,    ▲        messages of IPFIX, largest
//!       └─ its time ─► advance ────────┘  over, reported,   │
//!                                         left at the end  ─┘
//! ```
//!
//! Time is that of the packets, by a [`PacketClock`]: wrong timestamps do not count. Flows that are
//! due expire before the packet is counted, so that no record spans a silence that is longer than
//! the timeout by more than a tick, 10 ms. The records of a flow add up to it.

mod biflow;
mod collector;
mod ending;
mod export;
mod files;
mod inputs;
mod interface;
mod ipfix;
mod key;
mod lines;
mod live;
mod memory;
mod options;
mod record;
mod report;
mod rows;
mod screen;
mod session;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use capture::{Frame, Packet, Ports, Reject};
use flowtable::flow_cache::{Config, Cursor, Metrics, Protocol};
use flowtable::packet_clock::{ClockRule, Dated, PacketClock, Step};
use flowtable::{FlowCache, FlowKey, TcpFlags, Timestamp};

use biflow::Biflow;
pub use options::Options;
use record::Record;
pub use session::run;

/// A flow cache and its totals.
pub(crate) struct Meter {
    cache: FlowCache<FlowKey, Biflow>,
    /// Packets whose times are doubtful wait here for those after them.
    clock: PacketClock<Parsed>,
    /// Whether FIN and RST close connections.
    detects_close: bool,
    totals: Totals,
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
    /// Packets of unknown link types, by type.
    pub(crate) unknown_links: BTreeMap<u16, u64>,
    /// IP packets that the cache refused.
    pub(crate) refused: u64,
}

impl Meter {
    pub(crate) fn new(config: Config, detects_close: bool) -> Self {
        let (cache, clock) = (FlowCache::new(config), PacketClock::new(ClockRule::DEFAULT));
        Self { cache, clock, detects_close, totals: Totals::default() }
    }

    /// Processes a frame. Passes records of flows that end before it, or are evicted for it, to
    /// `take`.
    pub(crate) fn observe(&mut self, frame: &Frame<'_>, take: &mut impl FnMut(Record)) {
        let parsed = self.parse(frame);
        // Some blocks of pcapng have no time.
        let time = match frame.time_ns {
            0 => self.clock.now(),
            time_ns => Timestamp::from_nanos(time_ns),
        };
        if let Some(now) = self.clock.accept(time) {
            return self.process(&parsed, now, take);
        }
        self.clock.push(time, flow_number(&parsed), parsed);
        while let Some(dated) = self.clock.pop() {
            self.process_dated(&dated, take);
        }
    }

    /// Continues after a silence: time passes until `now`.
    pub(crate) fn pass_time(&mut self, now: Timestamp, take: &mut impl FnMut(Record)) {
        self.clock.pass(now);
        self.expire(self.clock.now(), take);
    }

    /// Processes packets whose times are doubtful, without waiting for others. Times after `latest`
    /// do not count.
    pub(crate) fn settle(&mut self, latest: Timestamp, take: &mut impl FnMut(Record)) {
        while let Some(dated) = self.clock.flush(latest) {
            self.process_dated(&dated, take);
        }
    }

    fn process_dated(&mut self, dated: &Dated<Parsed>, take: &mut impl FnMut(Record)) {
        if dated.step == Step::Reset {
            self.cache.set_clock(dated.now);
        }
        self.process(&dated.packet, dated.now, take);
    }

    fn process(&mut self, parsed: &Parsed, now: Timestamp, take: &mut impl FnMut(Record)) {
        self.expire(now, take);
        if let Some(packet) = parsed {
            self.meter(packet, now, take);
        }
    }

    /// Ends and reports the flows that are due.
    fn expire(&mut self, now: Timestamp, take: &mut impl FnMut(Record)) {
        self.cache.advance(now, usize::MAX, |event| take(Record::of_event(event, now)));
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

    fn meter(&mut self, packet: &Packet, now: Timestamp, take: &mut impl FnMut(Record)) {
        let shown = self.shown(packet);
        let Ok(mut seen) = self.cache.observe(&packet.key, shown, now) else {
            self.totals.refused += 1;
            return;
        };
        seen.flow.add(seen.direction, packet);
        let removed = seen.take_removed();
        if let Some(removed) = removed {
            take(Record::of_removed(removed, now));
        }
    }

    /// Returns the packet as the cache sees it.
    fn shown(&self, packet: &Packet) -> flowtable::flow_cache::Packet {
        let flags = match packet.flags.unwrap_or_default() {
            flags if self.detects_close => flags,
            // It acknowledges nothing.
            flags if flags.contains(TcpFlags::RST) => TcpFlags::default(),
            flags => TcpFlags(flags.0 & !TcpFlags::FIN.0),
        };
        let protocol = Protocol::from(packet.key.protocol());
        flowtable::flow_cache::Packet::new(protocol, flags)
    }

    pub(crate) const fn totals(&self) -> &Totals {
        &self.totals
    }

    pub(crate) fn metrics(&self) -> Metrics {
        self.cache.metrics()
    }

    pub(crate) const fn cache(&self) -> &FlowCache<FlowKey, Biflow> {
        &self.cache
    }

    /// Returns the present time.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Passes records of the flows in the cache to `take`, in the order of their first packets; in
    /// that of their slots if there is no memory to sort them.
    pub(crate) fn remaining(&self, mut take: impl FnMut(Record)) {
        let now = self.now();
        let mut handles = Vec::new();
        let mut cursor = Cursor::new();
        let flows = self.cache.page(&mut cursor, usize::MAX);
        if handles.try_reserve_exact(self.cache.len()).is_err() {
            return flows.for_each(|flow| take(Record::of_resident(&flow, now)));
        }
        handles.extend(flows.map(|flow| (flow.value().first_ns(), flow.handle())));
        let key = |handle| self.cache.resident(handle).map(|flow| flow.key());
        handles.sort_unstable_by(|(one_ns, one), (other_ns, other)| {
            one_ns.cmp(other_ns).then_with(|| key(*one).cmp(&key(*other)))
        });
        let sorted = handles.iter().filter_map(|(_, handle)| self.cache.resident(*handle));
        sorted.for_each(|flow| take(Record::of_resident(&flow, now)));
    }
}

/// Returns a number that is equal for the packets of a flow.
fn flow_number(parsed: &Parsed) -> u64 {
    let mut hasher = DefaultHasher::new();
    let key = parsed.as_ref().map(|packet| packet.key);
    key.map(|key| key.min(key.reversed())).hash(&mut hasher);
    hasher.finish()
}
