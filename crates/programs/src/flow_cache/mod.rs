//! A flow meter on a [`FlowCache`]: both directions of a conversation in one entry.
//!
//! ```text
//!     Frame ─► Packet ─► observe ─► FlowCache ──────────► Record ─► rows of CSV, lines of JSON,
//!       │                              │  evicted, idle,    ▲        messages of IPFIX, largest
//!       └─ its time ─► advance ────────┘  over, reported,   │
//!                                         left at the end  ─┘
//! ```
//!
//! Time is that of the packets. Flows that are due expire before the packet is counted, so that no
//! record spans a silence that is longer than the timeout by more than a tick, 10 ms. The records
//! of a flow add up to it.

mod biflow;
mod collector;
mod ending;
mod export;
mod files;
mod ipfix;
mod lines;
mod live;
mod options;
mod record;
mod report;
mod rows;
mod screen;

use capture::{Frame, Ports, Reject};
use flowtable::flow_cache::{Config, Metrics, Protocol};
use flowtable::{FlowCache, FlowKey, TcpFlags, Timestamp};

use biflow::Biflow;
pub use export::Export;
pub use files::open_sinks;
pub use options::Options;
use record::Record;
pub use report::{Reading, Report};
pub use screen::Live;

/// A flow cache and its totals.
pub struct Meter {
    cache: FlowCache<FlowKey, Biflow>,
    /// Whether the cache sees the flags that close a connection.
    detect_close: bool,
    totals: Totals,
    /// Records that were created and not fetched.
    made: Vec<Record>,
}

/// Counts of packets.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    pub packets: u64,
    pub wire_bytes: u64,
    pub ip_packets: u64,
    pub ip_bytes: u64,
    pub later_fragments: u64,
    pub cut_ports: u64,
    /// By [`Reject`].
    pub rejects: [u64; Reject::ALL.len()],
    /// IP packets that the cache refused.
    pub refused: u64,
}

impl Meter {
    /// Flows that one expiry step examines. It bounds the number of unfetched records.
    const STEP: usize = 256;

    pub fn new(config: Config, detect_close: bool) -> Self {
        let cache = FlowCache::new(config);
        Self { cache, detect_close, totals: Totals::default(), made: Vec::new() }
    }

    /// Creates records of flows that expire before this frame. Returns false if one step did not
    /// complete the expiry.
    pub fn advance(&mut self, frame: &Frame<'_>) -> bool {
        // Clocks of captures run backwards now and then.
        let now = Timestamp::from_nanos(frame.time_ns).max(self.cache.now());
        let made = &mut self.made;
        let progress =
            self.cache.advance(now, Self::STEP, |event| made.push(Record::of_event(event, now)));
        progress.is_done
    }

    /// Counts a frame.
    pub fn observe(&mut self, frame: &Frame<'_>) {
        self.totals.packets += 1;
        self.totals.wire_bytes += u64::from(frame.wire_len);
        match capture::Packet::of(frame) {
            Ok(packet) => self.meter(&packet),
            Err(reject) => self.totals.rejects[reject as usize] += 1,
        }
    }

    fn meter(&mut self, packet: &capture::Packet) {
        self.totals.ip_packets += 1;
        self.totals.ip_bytes += packet.bytes;
        match packet.ports {
            Ports::Read | Ports::None => {}
            Ports::LaterFragment => self.totals.later_fragments += 1,
            Ports::Cut => self.totals.cut_ports += 1,
        }
        let now = Timestamp::from_nanos(packet.time_ns).max(self.cache.now());
        let Ok(seen) = self.cache.observe(&packet.key, self.shown(packet), now) else {
            self.totals.refused += 1;
            return;
        };
        seen.flow.add(seen.direction, packet);
        self.made.extend(seen.removed.map(|flow| Record::of_removed(flow, now)));
    }

    /// Returns the packet as the cache sees it.
    fn shown(&self, packet: &capture::Packet) -> flowtable::flow_cache::Packet {
        let closing = TcpFlags::FIN | TcpFlags::RST;
        let hidden = if self.detect_close { TcpFlags::default() } else { closing };
        let flags = packet.flags.unwrap_or_default();
        let protocol = Protocol::from(packet.key.protocol());
        flowtable::flow_cache::Packet::new(protocol, TcpFlags(flags.0 & !hidden.0))
    }

    /// Drains the records created since the last call.
    pub fn take_records(&mut self) -> impl Iterator<Item = Record> + '_ {
        self.made.drain(..)
    }

    pub const fn totals(&self) -> &Totals {
        &self.totals
    }

    pub fn metrics(&self) -> Metrics {
        self.cache.metrics()
    }

    pub const fn cache(&self) -> &FlowCache<FlowKey, Biflow> {
        &self.cache
    }

    /// Returns records of the flows left in the cache, in the order of their first packets.
    pub fn drain(&mut self) -> Vec<Record> {
        let now = self.cache.now();
        let flows = self.cache.drain();
        let mut records: Vec<_> = flows.map(|flow| Record::of_removed(flow, now)).collect();
        records.sort_unstable_by_key(|record| (record.counted.first_ns(), record.key));
        records
    }
}
