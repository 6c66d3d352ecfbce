//! The expected state of the flow cache.

use std::collections::BTreeSet;

use flowtable::eviction::Eviction;
use flowtable::flow_cache::{Cursor, Handle, Observed, RemovedFlow, Resident};
use flowtable::{FlowCache, Timestamp};

use crate::flow_cache::script::Key;

/// The expected state of a flow.
#[derive(Clone)]
pub(crate) struct Expected<K> {
    pub(crate) handle: Handle,
    /// The normalised key.
    pub(crate) name: K,
    pub(crate) value: u64,
    pub(crate) pinned: bool,
}

/// A traversal of the cache that continues between steps.
#[derive(Default)]
pub(crate) struct Traversal {
    pub(crate) cursor: Cursor,
    /// The ids at its beginning, and those shown.
    pub(crate) first: Vec<u64>,
    pub(crate) shown: BTreeSet<u64>,
}

/// The result of a packet.
pub(crate) struct Seen<K> {
    pub(crate) handle: Handle,
    pub(crate) fresh: bool,
    pub(crate) value: u64,
    pub(crate) removed: Option<RemovedFlow<K, u64>>,
}

/// The result of a packet, which is counted in the value of its flow.
pub(crate) fn seen<K>(mut observed: Observed<'_, K, u64>) -> Seen<K> {
    *observed.flow += 1;
    let (value, removed) = (*observed.flow, observed.take_removed());
    Seen { handle: observed.handle(), fresh: observed.fresh, value, removed }
}

/// Checks that a flow is found if and only if its idle timeout has not passed.
pub(crate) fn assert_exact<K: Key, P: Eviction>(
    cache: &FlowCache<K, u64, P>,
    flow: &Resident<'_, K, u64>,
    is_found: bool,
) {
    let (now, idle_since) = (cache.now(), flow.last_seen());
    // Times before the caller's origin are unknown.
    if idle_since > Timestamp::ZERO {
        let idle = cache.config().timeouts().idle(flow.protocol(), flow.class());
        let is_live = idle.is_none_or(|idle| now.since(idle_since) < idle);
        assert_eq!(is_found, is_live, "{flow:?} at {now:?}");
    }
}

/// The numbers of flows of each tenant.
pub(crate) fn flows_by_tenant<K: Key, P: Eviction>(cache: &FlowCache<K, u64, P>) -> [usize; 4] {
    let mut flows = [0; 4];
    for flow in cache.page(&mut Cursor::new(), usize::MAX) {
        flows[flow.tenant().0 as usize] += 1;
    }
    flows
}
