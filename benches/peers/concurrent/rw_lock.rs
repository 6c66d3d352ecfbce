//! A single-threaded map behind one lock.

use std::sync::{PoisonError, RwLock};

use super::Key;
use super::shared_map::{SharedMap, View, low_half};
use crate::maps::subject::Map;
use crate::subject::BURST;

impl<M: Map<Key> + Send + Sync + 'static> SharedMap for RwLock<M> {
    type View<'a> = &'a Self;

    fn view(&self) -> &Self {
        self
    }
}

impl<M: Map<Key>> View for &RwLock<M> {
    #[inline]
    fn get(&self, key: &Key) -> Option<u64> {
        self.read().unwrap_or_else(PoisonError::into_inner).get(key).copied()
    }

    #[inline]
    fn insert(&mut self, key: Key, value: u64) {
        self.write().unwrap_or_else(PoisonError::into_inner).insert(key, value);
    }

    #[inline]
    fn burst(&self, keys: &[Key; BURST]) -> u64 {
        let map = self.read().unwrap_or_else(PoisonError::into_inner);
        let mut found = [None; BURST];
        map.get_batch(keys, &mut found);
        found.into_iter().flatten().copied().map(low_half).sum()
    }
}
