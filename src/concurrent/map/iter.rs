//! Traversals, concurrent with writers: the entries of one segment at a time.

use core::borrow::Borrow;
use core::iter::FusedIterator;

use super::ConcurrentMap;
use super::pinned::{Entry, Pinned};
use super::storage::{Ids, hash_of};
use crate::concurrent::engine::{Slot, Walk};
use crate::concurrent::guard::Guard;

impl<K, V, S, G: Borrow<Guard>> Pinned<'_, K, V, S, G> {
    /// Iterates over all entries, in no order. An entry that is inserted or removed meanwhile is
    /// visited at most once, one that stays exactly once. Waits for writers: the ids of one segment
    /// at a time are copied under the lock of its shard.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([("a", 1), ("b", 2)]);
    /// let pin = map.pin();
    /// assert_eq!(pin.iter().map(|(_, value)| value).sum::<i32>(), 3);
    /// ```
    #[must_use]
    pub fn iter(&self) -> Iter<'_, K, V, S> {
        let (map, epoch) = (self.map, self.epoch());
        Iter { map, epoch, walk: Walk::new(&map.engine, epoch) }
    }

    /// Iterates over all keys: see [`iter`](Self::iter).
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([("a", 1)]);
    /// assert!(map.pin().keys().eq(&["a"]));
    /// ```
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// Iterates over all values: see [`iter`](Self::iter).
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([("a", 1)]);
    /// assert!(map.pin().values().eq(&[1]));
    /// ```
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }
}

/// An iterator over all entries of a map: see [`Pinned::iter`].
pub struct Iter<'p, K, V, S> {
    map: &'p ConcurrentMap<K, V, S>,
    epoch: &'p crossbeam_epoch::Guard,
    walk: Walk<'p, Ids, u32>,
}

impl<'p, K, V, S> Iter<'p, K, V, S> {
    pub(super) fn entry(&mut self) -> Option<Entry<'p, (K, V)>> {
        let id = self.walk.next(Slot::value, hash_of);
        Some(self.map.entry(id?, self.epoch))
    }
}

impl<'p, K, V, S> Iterator for Iter<'p, K, V, S> {
    type Item = (&'p K, &'p V);

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.entry()?.get();
        Some((&entry.0, &entry.1))
    }
}

impl<K, V, S> FusedIterator for Iter<'_, K, V, S> {}

impl<'p, K, V, S, G: Borrow<Guard>> IntoIterator for &'p Pinned<'_, K, V, S, G> {
    type Item = (&'p K, &'p V);
    type IntoIter = Iter<'p, K, V, S>;

    fn into_iter(self) -> Iter<'p, K, V, S> {
        self.iter()
    }
}
