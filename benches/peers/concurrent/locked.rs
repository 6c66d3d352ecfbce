//! A map of one thread behind a lock for all of it.

use std::sync::{PoisonError, RwLock};

use super::Key;
use super::contestant::{Shared, View, seen};
use crate::contestant::{BURST, Map};

impl<M: Map<Key> + Send + Sync + 'static> Shared for RwLock<M> {
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
        map.burst(keys, &mut found);
        found.into_iter().flatten().copied().map(seen).sum()
    }
}
