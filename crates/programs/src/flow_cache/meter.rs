//! A flow cache whose flows become records.
//!
//! ```text
//!     packets ─► burst ─► FlowCache::observe_batch        when the burst is full, before time may
//!                                                         end flows, and before a silence
//! ```
//!
//! Cache misses of the packets of a burst overlap. Packets that are counted one by one have the
//! same records: a flow ends between two packets only when its timeout has passed, so time
//! divides bursts if there are timeouts.

use core::mem;
use core::time::Duration;

use flowtable::flow_cache::{Config, Cursor, Metrics, RemovedFlow, Resident, Timeouts};
use flowtable::{FlowCache, Timestamp};

use super::arrival::{Arrival, Key};
use super::biflow::Biflow;
use super::mac_table::MacTable;
use super::record::Record;

/// A flow cache.
pub(crate) struct Meter {
    cache: FlowCache<Key, Biflow>,
    /// Packets that are not counted yet.
    burst: Vec<Arrival>,
    /// If records have MAC addresses.
    macs: Option<MacTable>,
    /// Whether flows end or are reported after some time.
    is_timed: bool,
}

impl Meter {
    /// Packets of a burst: what the cache takes through its stages together.
    const BURST: usize = 32;

    /// A step of time that ends a burst even if no flow is due then: the cache limits its steps.
    const LONG: Duration = Duration::from_secs(3600);

    pub(crate) fn new(config: Config, has_macs: bool) -> Self {
        let is_limited = config.max_bytes() < usize::MAX;
        let is_timed = *config.timeouts() != Timeouts::OFF || is_limited;
        let macs = has_macs.then(MacTable::default);
        let burst = Vec::with_capacity(Self::BURST);
        Self { cache: FlowCache::new(config), burst, macs, is_timed }
    }

    /// Keeps a packet for a burst. Returns whether the burst is full, and must be
    /// [counted](Self::settle).
    #[inline]
    pub(crate) fn push(&mut self, arrival: Arrival) -> bool {
        self.burst.push(arrival);
        self.burst.len() == Self::BURST
    }

    /// Returns whether the cache needs this time, since flows may be due.
    pub(crate) fn needs(&self, now: Timestamp) -> bool {
        self.is_timed || now >= self.cache.now() + Self::LONG
    }

    /// Ends and reports the flows that are due at `now`.
    pub(crate) fn time(&mut self, now: Timestamp, take: &mut impl FnMut(Record)) {
        if self.needs(now) {
            self.settle(take);
            let Self { cache, macs, .. } = self;
            cache.advance(now, usize::MAX, |event| {
                take(with_macs(Record::of_event(event, now), macs));
            });
        }
    }

    /// Sets the clock of the packets: no time has passed.
    pub(crate) fn reset(&mut self, now: Timestamp, take: &mut impl FnMut(Record)) {
        self.settle(take);
        self.cache.set_clock(now);
    }

    /// Counts the packets that were kept. Passes records of flows that end for packets to `take`.
    pub(crate) fn settle(&mut self, take: &mut impl FnMut(Record)) {
        let mut burst = mem::take(&mut self.burst);
        self.count(&burst, take);
        burst.clear();
        self.burst = burst;
    }

    /// Counts packets, and none that are kept. Passes records of flows that end for packets to
    /// `take`.
    pub(crate) fn count(&mut self, burst: &[Arrival], take: &mut impl FnMut(Record)) {
        let Self { cache, macs, .. } = self;
        let packets = burst.iter().map(|arrival| (&arrival.key, arrival.shown, arrival.now));
        cache.observe_batch(packets, |index, seen| {
            // A packet that is refused is counted by the cache.
            let Ok(mut seen) = seen else { return };
            let arrival = &burst[index];
            if seen.flow.is_new(seen.direction) {
                seen.flow.begin(seen.direction, arrival);
                if let Some(table) = macs {
                    table.set(seen.handle().id(), seen.direction, arrival.macs);
                }
            }
            seen.flow.add(seen.direction, arrival);
            if let Some(removed) = seen.take_removed() {
                end(removed, arrival.now, macs, take);
            }
        });
    }

    /// Counts an error of ICMP in the flow of the packet that it quotes, after all packets before
    /// it. Returns whether the cache has this flow.
    pub(crate) fn join(
        &mut self,
        quoted: &Key,
        error: &Arrival,
        take: &mut impl FnMut(Record),
    ) -> bool {
        self.settle(take);
        let Some(found) = self.cache.find_quoted(quoted) else { return false };
        let Some(flow) = self.cache.get_mut(found.handle) else { return false };
        if flow.is_new(found.direction) {
            flow.begin(found.direction, error);
            if let Some(table) = &mut self.macs {
                table.set(found.handle.id(), found.direction, error.macs);
            }
        }
        flow.add_error(found.direction, error);
        true
    }

    pub(crate) fn metrics(&self) -> Metrics {
        self.cache.metrics()
    }

    pub(crate) const fn cache(&self) -> &FlowCache<Key, Biflow> {
        &self.cache
    }

    /// Passes records of the flows in the cache to `take`, in the [order](Record::order) of their
    /// first packets; in that of their slots if there is no memory to sort them.
    pub(crate) fn remaining(&self, mut take: impl FnMut(Record)) {
        let now = self.cache.now();
        let mut handles = Vec::new();
        let mut cursor = Cursor::new();
        let flows = self.cache.page(&mut cursor, usize::MAX);
        if handles.try_reserve_exact(self.cache.len()).is_err() {
            return flows.for_each(|flow| take(self.of_resident(&flow, now)));
        }
        handles.extend(flows.map(|flow| (flow.value().first_ns(), flow.handle())));
        let key = |handle| self.cache.resident(handle).map(|flow| flow.key());
        handles.sort_unstable_by(|(one_ns, one), (other_ns, other)| {
            one_ns.cmp(other_ns).then_with(|| key(*one).cmp(&key(*other)))
        });
        let sorted = handles.iter().filter_map(|(_, handle)| self.cache.resident(*handle));
        sorted.for_each(|flow| take(self.of_resident(&flow, now)));
    }

    /// Creates the record of a flow that is in the cache at the end.
    fn of_resident(&self, flow: &Resident<'_, Key, Biflow>, now: Timestamp) -> Record {
        let macs = self.macs.as_ref().map(|table| table.get(flow.handle().id()));
        Record { macs: macs.unwrap_or_default(), ..Record::of_resident(flow, now) }
    }
}

/// Exports the record of a flow that has ended for a packet.
#[cold]
fn end(
    flow: RemovedFlow<Key, Biflow>,
    now: Timestamp,
    table: &mut Option<MacTable>,
    take: &mut impl FnMut(Record),
) {
    take(with_macs(Record::of_removed(flow, now), table));
}

/// Returns the record with the MAC addresses of its flow, which leave the table, if there is one.
fn with_macs(record: Record, table: &mut Option<MacTable>) -> Record {
    match table {
        Some(table) => Record { macs: table.take(record.id), ..record },
        None => record,
    }
}
