//! `ConcurrentMap`.

use flowtable::DefaultHashBuilder;
use flowtable::concurrent::{ConcurrentMap, Pinned};

use super::Key;
use super::shared_map::{SharedMap, View, low_half};
use crate::subject::BURST;

type Ours = ConcurrentMap<Key, u64, DefaultHashBuilder>;

impl SharedMap for Ours {
    type View<'a> = Pinned<'a, Ours>;

    fn view(&self) -> Self::View<'_> {
        self.pin()
    }

    #[inline]
    fn count(&self) -> Option<usize> {
        Some(self.len())
    }

    /// Frees the retired memory of all maps, which is in one global collector.
    fn reclaim() {
        let map = Self::default();
        for _ in 0..64 {
            map.pin().flush();
        }
    }
}

impl View for Pinned<'_, Ours> {
    #[inline]
    fn repin(&mut self) {
        Pinned::<Ours>::repin(self);
    }

    #[inline]
    fn get(&self, key: &Key) -> Option<u64> {
        Pinned::<Ours>::get(self, key).copied()
    }

    /// Retries an insertion that is refused because a pinned reader keeps retired memory; this time
    /// is part of the insertion's.
    #[inline]
    fn insert(&mut self, key: Key, value: u64) {
        while Pinned::<Ours>::insert(self, key, value).is_err() {
            Pinned::<Ours>::repin(self);
        }
    }

    #[inline]
    fn retain_if(&self, mut keep: impl FnMut(u64) -> bool) -> bool {
        self.retain(|_, value| keep(*value));
        true
    }

    #[inline]
    fn burst(&self, keys: &[Key; BURST]) -> u64 {
        let mut found = [None; BURST];
        self.get_batch(keys, flowtable::write_to(&mut found));
        found.into_iter().flatten().copied().map(low_half).sum()
    }
}
