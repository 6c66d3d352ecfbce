//! The expected state of the flow cache.

use std::collections::BTreeSet;

use flowtable::flow_cache::{Cursor, Handle, Observed, RemovedFlow};

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
