//! A flow cache whose flows become records.

use capture::Vlans;
use flowtable::flow_cache::{Config, Cursor, Metrics, Protocol};
use flowtable::{FlowCache, FlowKey, TcpFlags, Timestamp};

use super::biflow::Biflow;
use super::intake::Step;
use super::record::Record;

/// The key of a flow: its VLANs, if these matter, and its five-tuple.
pub(crate) type Key = (Vlans, FlowKey);

/// A flow cache.
pub(crate) struct Meter {
    cache: FlowCache<Key, Biflow>,
    /// Whether FIN and RST close connections.
    detects_close: bool,
    /// Whether equal five-tuples of different VLANs are different flows.
    by_vlan: bool,
}

impl Meter {
    pub(crate) fn new(config: Config, detects_close: bool, by_vlan: bool) -> Self {
        Self { cache: FlowCache::new(config), detects_close, by_vlan }
    }

    /// Applies a step. Passes records of flows that end before it, or are evicted for it, to
    /// `take`.
    pub(crate) fn apply(&mut self, step: &Step, take: &mut impl FnMut(Record)) {
        match step {
            Step::Time(now) => self.expire(*now, take),
            Step::Reset(now) => self.cache.set_clock(*now),
            Step::Packet(packet, now) => self.count(packet, *now, take),
        }
    }

    /// Ends and reports the flows that are due.
    fn expire(&mut self, now: Timestamp, take: &mut impl FnMut(Record)) {
        self.cache.advance(now, usize::MAX, |event| take(Record::of_event(event, now)));
    }

    fn count(&mut self, packet: &capture::Packet, now: Timestamp, take: &mut impl FnMut(Record)) {
        let shown = self.shown(packet);
        // A packet that is refused is counted by the cache.
        let vlans = if self.by_vlan { packet.vlans } else { Vlans::default() };
        let key = (vlans, packet.key);
        let Ok(mut seen) = self.cache.observe(&key, shown, now) else { return };
        seen.flow.add(seen.direction, packet);
        let removed = seen.take_removed();
        if let Some(removed) = removed {
            take(Record::of_removed(removed, now));
        }
    }

    /// Returns the packet as the cache sees it.
    fn shown(&self, packet: &capture::Packet) -> flowtable::flow_cache::Packet {
        let flags = match packet.flags.unwrap_or_default() {
            flags if self.detects_close => flags,
            // It acknowledges nothing.
            flags if flags.contains(TcpFlags::RST) => TcpFlags::default(),
            flags => TcpFlags(flags.0 & !TcpFlags::FIN.0),
        };
        let protocol = Protocol::from(packet.key.protocol());
        flowtable::flow_cache::Packet::new(protocol, flags)
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
