//! Iteration over a `ChainedCache`.

use core::fmt;

use super::chained::ChainedCache;
use super::entries::{Entries, Occupied, OccupiedMut};
use crate::memory::Allocator;

/// An iterator over the entries of a [`ChainedCache`], in no particular order.
pub struct Iter<'a, K, V> {
    entries: Occupied<'a, K, V>,
    /// The entries that remain.
    len: usize,
}

impl<'a, K, V> Iter<'a, K, V> {
    pub(super) fn new<A: Allocator + Clone>(entries: &'a Entries<K, V, A>) -> Self {
        Self { entries: entries.iter(), len: entries.len() }
    }
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<(&'a K, &'a V)> {
        let entry = self.entries.next()?;
        self.len -= 1;
        Some((&entry.key, &entry.value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl<K, V> ExactSizeIterator for Iter<'_, K, V> {}

impl<K, V> Clone for Iter<'_, K, V> {
    fn clone(&self) -> Self {
        Self { entries: self.entries.clone(), len: self.len }
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Iter<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.clone()).finish()
    }
}

/// An iterator over the entries of a [`ChainedCache`] with mutable references to their values, in
/// no particular order.
pub struct IterMut<'a, K, V> {
    entries: OccupiedMut<'a, K, V>,
    /// The entries that remain.
    len: usize,
}

impl<K, V, P, S, A: Allocator + Clone> ChainedCache<K, V, P, S, A> {
    /// Iterates over the entries in no particular order, with mutable references to their values.
    /// No use is recorded. O(capacity).
    ///
    /// # Example
    ///
    /// ```
    /// let mut ages: flowtable::ChainedCache<&str, u32> = flowtable::ChainedCache::new(100)?;
    /// ages.extend([("a", 1), ("b", 2)]);
    /// ages.iter_mut().for_each(|(_, age)| *age += 1);
    /// assert_eq!((ages.peek("a"), ages.peek("b")), (Some(&2), Some(&3)));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    pub fn iter_mut(&mut self) -> IterMut<'_, K, V> {
        let entries = self.entries_mut();
        let len = entries.len();
        IterMut { entries: entries.iter_mut(), len }
    }
}

impl<'a, K, V> Iterator for IterMut<'a, K, V> {
    type Item = (&'a K, &'a mut V);

    fn next(&mut self) -> Option<(&'a K, &'a mut V)> {
        let entry = self.entries.next()?;
        self.len -= 1;
        Some((&entry.key, &mut entry.value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl<K, V> ExactSizeIterator for IterMut<'_, K, V> {}

impl<K, V> fmt::Debug for IterMut<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IterMut").field("len", &self.len).finish_non_exhaustive()
    }
}
