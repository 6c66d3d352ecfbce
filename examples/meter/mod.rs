//! Meters flows with a [`Unicache`].
//!
//! ```text
//!     Frame ─► Packet ─► cache ──────────────────► rows of CSV, largest flows
//!                          │  evicted, ended, or    ▲
//!                          └─ there at the end ─────┘
//! ```
//!
//! A flow that leaves the cache and comes back has two records; together they are exact.

mod export;
mod options;
mod progress;
mod record;
mod report;

use flowtable::{DefaultHashBuilder, FlowKey, Headed, PassiveGc, Shape, Unicache};

use crate::capture::{Frame, Packet, Ports, Reject};

pub(crate) use export::Export;
pub(crate) use options::{Destination, Input, Options, USAGE};
pub(crate) use progress::Progress;
pub(crate) use record::Record;
pub(crate) use report::Report;

/// A flow cache and what it has seen.
pub(crate) struct Meter {
    cache: Unicache<Headed<FlowKey>, Record>,
    hasher: DefaultHashBuilder,
    /// Whether the end of a TCP connection ends its records.
    watch_fins: bool,
    totals: Totals,
    /// Records that left the cache and were not fetched.
    left: Vec<(FlowKey, Record)>,
}

/// Counts of packets and of records.
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
    /// IP packets whose record was in the cache.
    pub(crate) hits: u64,
    /// Records that the garbage collection removed.
    pub(crate) evicted: u64,
    /// Records that ended with their connection.
    pub(crate) ended: u64,
}

impl Meter {
    pub(crate) fn new(gc: PassiveGc, watch_fins: bool) -> Self {
        Self {
            cache: Unicache::new(gc),
            hasher: DefaultHashBuilder::new(),
            watch_fins,
            totals: Totals::default(),
            left: Vec::new(),
        }
    }

    /// Counts a frame.
    pub(crate) fn observe(&mut self, frame: &Frame<'_>) {
        self.totals.packets += 1;
        self.totals.wire_bytes += u64::from(frame.wire_len);
        match Packet::of(frame) {
            Ok(packet) => self.meter(&packet),
            Err(reject) => self.totals.rejects[reject as usize] += 1,
        }
    }

    fn meter(&mut self, packet: &Packet) {
        self.totals.ip_packets += 1;
        self.totals.ip_bytes += packet.bytes;
        match packet.ports {
            Ports::Read | Ports::None => {}
            Ports::LaterFragment => self.totals.later_fragments += 1,
            Ports::Cut => self.totals.cut_ports += 1,
        }
        let key = Headed::new(packet.key, &self.hasher);
        let is_over = match self.cache.get_mut(&key) {
            Some(record) => {
                self.totals.hits += 1;
                record.add(packet)
            }
            None => self.open(key, packet),
        };
        if is_over && self.watch_fins {
            self.close(&key);
            self.close(&Headed::new(packet.key.reversed(), &self.hasher));
        }
    }

    /// Gives the packet's flow a record; whether its connection is over at once.
    fn open(&mut self, key: Headed<FlowKey>, packet: &Packet) -> bool {
        let mut record = Record::new(packet.time_ns);
        let is_over = record.add(packet);
        let (totals, left) = (&mut self.totals, &mut self.left);
        self.cache.insert(key, record, Record::score, |key, record| {
            totals.evicted += 1;
            left.push((key.into_key(), record));
        });
        is_over
    }

    fn close(&mut self, key: &Headed<FlowKey>) {
        if let Some(record) = self.cache.remove(key) {
            self.totals.ended += 1;
            self.left.push((*key.key(), record));
        }
    }

    /// Records that left the cache since the last call.
    pub(crate) fn take_left(&mut self) -> impl Iterator<Item = (FlowKey, Record)> + '_ {
        self.left.drain(..)
    }

    pub(crate) const fn totals(&self) -> &Totals {
        &self.totals
    }

    pub(crate) fn shape(&self) -> Shape {
        self.cache.trie().shape()
    }

    /// The records still in the cache, in the order of their first packets.
    pub(crate) fn into_records(self) -> Vec<(FlowKey, Record)> {
        let entries = self.cache.into_iter();
        let mut records: Vec<_> = entries.map(|(key, record)| (key.into_key(), record)).collect();
        records.sort_unstable_by_key(|(key, record)| (record.first_ns, *key));
        records
    }
}
