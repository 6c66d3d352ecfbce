//! Iteration over a `BoundedCache`.

use core::fmt;

use super::entries::{Entries, LastUse};
use crate::memory::Allocator;
use crate::table::records::{Occupied, OccupiedMut};

/// An iterator over the entries of a [`BoundedCache`](super::BoundedCache), in no particular order.
pub struct Iter<'a, K, V> {
    entries: Occupied<'a, LastUse, K, V>,
    /// The entries that remain.
    len: usize,
}

impl<'a, K, V> Iter<'a, K, V> {
    pub(super) fn new<A: Allocator + Clone>(entries: &'a Entries<K, V, A>) -> Self {
        let records = entries.records();
        Self { entries: records.iter(), len: records.len() }
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

/// An iterator over the entries of a [`BoundedCache`](super::BoundedCache) with mutable references
/// to their values, in no particular order.
pub struct IterMut<'a, K, V> {
    entries: OccupiedMut<'a, LastUse, K, V>,
    /// The entries that remain.
    len: usize,
}

impl<'a, K, V> IterMut<'a, K, V> {
    pub(super) fn new<A: Allocator + Clone>(entries: &'a mut Entries<K, V, A>) -> Self {
        let records = entries.records_mut();
        let len = records.len();
        Self { entries: records.iter_mut(), len }
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
