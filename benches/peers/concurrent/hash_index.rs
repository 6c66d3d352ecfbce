//! scc's `HashIndex`: locks on buckets for writers, a guard for readers.

use flowtable::DefaultHashBuilder;
use scc::Guard;
use scc::hash_index::Entry;

use super::Key;
use super::shared_map::{SharedMap, View};

type Index = scc::HashIndex<Key, u64, DefaultHashBuilder>;

pub(crate) struct Guarded<'a> {
    map: &'a Index,
    /// `None` only while it is renewed.
    guard: Option<Guard>,
}

impl SharedMap for Index {
    type View<'a> = Guarded<'a>;

    fn view(&self) -> Guarded<'_> {
        Guarded { map: self, guard: Some(Guard::new()) }
    }

    #[inline]
    fn count(&self) -> Option<usize> {
        Some(self.len())
    }

    fn reclaim() {
        reclaim();
    }
}

impl View for Guarded<'_> {
    /// Drops the old guard first: a nested guard would have its epoch.
    #[inline]
    fn repin(&mut self) {
        self.guard = None;
        self.guard = Some(Guard::new());
    }

    #[inline]
    fn get(&self, key: &Key) -> Option<u64> {
        self.map.peek(key, self.guard.as_ref()?).copied()
    }

    #[inline]
    fn insert(&mut self, key: Key, value: u64) {
        match self.map.entry_sync(key) {
            Entry::Occupied(mut entry) => entry.update(value),
            Entry::Vacant(entry) => drop(entry.insert_entry(value)),
        }
    }

    #[inline]
    fn retain_if(&self, mut keep: impl FnMut(u64) -> bool) -> bool {
        self.map.retain_sync(|_, value| keep(*value));
        true
    }
}

/// Frees the retired memory of all maps of scc, which is in one global collector.
pub(crate) fn reclaim() {
    for _ in 0..64 {
        Guard::new().accelerate();
    }
}
