//! Flows that are expected by others.

use flowtable::flow_cache::{Handle, Source};
use flowtable::key::flow::FlowName;

use super::flows::Nanos;

/// A flow that is expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedFlow<K> {
    pub parent: Handle,
    pub key: K,
    pub source: Source,
    pub deadline: Nanos,
    pub ends_with_parent: bool,
}

impl<K: FlowName> ExpectedFlow<K> {
    /// Whether a packet with this key may be the first one.
    pub fn is_begun_by(&self, key: &K) -> bool {
        match self.source {
            Source::Exact => self.key == *key,
            Source::AnyPort => self.key.with_any_port() == key.with_any_port(),
            Source::Any => self.key.with_any_source() == key.with_any_source(),
        }
    }
}

/// The index of the expected flow that a packet with this key begins now.
pub(super) fn find<K: FlowName>(
    expected: &[ExpectedFlow<K>],
    key: &K,
    now: Nanos,
) -> Option<usize> {
    let of = |source| {
        let begins = |it: &ExpectedFlow<K>| it.source == source && it.is_begun_by(key);
        expected.iter().position(|it| begins(it) && now < it.deadline)
    };
    [Source::Exact, Source::AnyPort, Source::Any].into_iter().find_map(of)
}
