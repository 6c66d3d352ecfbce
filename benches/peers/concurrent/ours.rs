//! Ours.

use flowtable::DefaultHashBuilder;
use flowtable::concurrent::{ConcurrentMap, Pinned};

use super::Key;
use super::contestant::{Shared, View, seen};
use crate::contestant::BURST;

type Ours = ConcurrentMap<Key, u64, DefaultHashBuilder>;

impl Shared for Ours {
    type View<'a> = Pinned<'a, Key, u64, DefaultHashBuilder>;

    fn view(&self) -> Self::View<'_> {
        self.pin()
    }

    /// All maps have their garbage in one place, where it waits for pins that end.
    fn settle() {
        let map = Self::default();
        for _ in 0..64 {
            map.pin().flush();
        }
    }
}

impl View for Pinned<'_, Key, u64, DefaultHashBuilder> {
    #[inline]
    fn repin(&mut self) {
        Pinned::repin(self);
    }

    #[inline]
    fn get(&self, key: &Key) -> Option<u64> {
        Pinned::get(self, key).copied()
    }

    /// Who is refused, as a reader does not run and so keeps the garbage, tries again: the time of that
    /// is part of the insertion's.
    #[inline]
    fn insert(&mut self, key: Key, value: u64) {
        while Pinned::insert(self, key, value).is_err() {
            Pinned::repin(self);
        }
    }

    #[inline]
    fn burst(&self, keys: &[Key; BURST]) -> u64 {
        let mut found = [None; BURST];
        self.get_batch(keys, &mut found);
        found.into_iter().flatten().copied().map(seen).sum()
    }
}
