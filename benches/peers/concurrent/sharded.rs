//! Maps with several locks: dashmap per shard, scc's `HashMap` per bucket.

use dashmap::DashMap;
use flowtable::DefaultHashBuilder;

use super::Key;
use super::hash_index;
use super::shared_map::{SharedMap, View};

type Dash = DashMap<Key, u64, DefaultHashBuilder>;
type Scc = scc::HashMap<Key, u64, DefaultHashBuilder>;

impl SharedMap for Dash {
    type View<'a> = &'a Self;

    fn view(&self) -> &Self {
        self
    }

    #[inline]
    fn count(&self) -> Option<usize> {
        Some(DashMap::len(self))
    }
}

impl View for &Dash {
    #[inline]
    fn get(&self, key: &Key) -> Option<u64> {
        DashMap::get(self, key).map(|value| *value)
    }

    #[inline]
    fn insert(&mut self, key: Key, value: u64) {
        DashMap::insert(self, key, value);
    }

    #[inline]
    fn retain_if(&self, mut keep: impl FnMut(u64) -> bool) -> bool {
        self.retain(|_, value| keep(*value));
        true
    }
}

impl SharedMap for Scc {
    type View<'a> = &'a Self;

    fn view(&self) -> &Self {
        self
    }

    #[inline]
    fn count(&self) -> Option<usize> {
        Some(scc::HashMap::len(self))
    }

    fn reclaim() {
        hash_index::reclaim();
    }
}

impl View for &Scc {
    #[inline]
    fn get(&self, key: &Key) -> Option<u64> {
        self.read_sync(key, |_, value| *value)
    }

    #[inline]
    fn insert(&mut self, key: Key, value: u64) {
        self.upsert_sync(key, value);
    }

    #[inline]
    fn retain_if(&self, mut keep: impl FnMut(u64) -> bool) -> bool {
        self.retain_sync(|_, value| keep(*value));
        true
    }
}
