//! Maps with many locks: dashmap for parts of the map, scc's `HashMap` for buckets.

use dashmap::DashMap;
use flowtable::DefaultHashBuilder;

use super::Key;
use super::contestant::{Shared, View};
use super::indexed;

type Dash = DashMap<Key, u64, DefaultHashBuilder>;
type Scc = scc::HashMap<Key, u64, DefaultHashBuilder>;

impl Shared for Dash {
    type View<'a> = &'a Self;

    fn view(&self) -> &Self {
        self
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
}

impl Shared for Scc {
    type View<'a> = &'a Self;

    fn view(&self) -> &Self {
        self
    }

    fn settle() {
        indexed::settle();
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
}
