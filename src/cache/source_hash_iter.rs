//! Iteration over a `SourceHashCache`, removal of the entries that a predicate picks, and equality.

use core::fmt;
use core::iter::{self, FusedIterator};
use core::ops::Range;

use super::set::{EntriesMut, Set};
use super::source_hash::SourceHashCache;
use super::tag::Generation;
use crate::memory::{Allocator, ArrayIterMut, Global};

/// An iterator over the entries of a [`SourceHashCache`], in no particular order.
pub struct SourceHashIter<'a, K, V, const WAYS: usize = 1, A: Allocator + Clone = Global> {
    cache: &'a SourceHashCache<K, V, WAYS, A>,
    /// The ways that remain, set after set.
    ways: Range<usize>,
    /// The entries that remain.
    len: usize,
}

/// An iterator over the entries of a [`SourceHashCache`] with mutable references to their values,
/// in no particular order.
pub struct SourceHashIterMut<'a, K, V, const WAYS: usize = 1, A: Allocator + Clone = Global> {
    /// The sets that follow.
    sets: ArrayIterMut<'a, Set<K, V, WAYS>, A, true>,
    /// The entries of the set before them that remain.
    entries: Option<EntriesMut<'a, K, V>>,
    generation: Generation,
    /// The entries that remain in all.
    len: usize,
}

impl<K, V, const WAYS: usize, A: Allocator + Clone> SourceHashCache<K, V, WAYS, A> {
    /// Iterates over the entries in no particular order. O(sets).
    #[must_use]
    pub fn iter(&self) -> SourceHashIter<'_, K, V, WAYS, A> {
        SourceHashIter { cache: self, ways: 0..self.capacity(), len: self.len() }
    }

    /// Iterates over the entries in no particular order, with mutable references to their values.
    /// No use is recorded. O(sets).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::SourceHashCache;
    /// use flowtable::hash::source_index::SourceIndex;
    ///
    /// let mut ages: SourceHashCache<&str, u32> = SourceHashCache::new(100)?;
    /// let [here, there] = [1, 2].map(SourceIndex::new);
    /// _ = ages.insert(here, "a", 1);
    /// _ = ages.insert(there, "b", 2);
    /// ages.iter_mut().for_each(|(_, age)| *age += 1);
    /// assert_eq!((ages.peek(here, "a"), ages.peek(there, "b")), (Some(&2), Some(&3)));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    pub fn iter_mut(&mut self) -> SourceHashIterMut<'_, K, V, WAYS, A> {
        let Self { generation, len, .. } = *self;
        SourceHashIterMut { sets: self.sets.iter_mut(), entries: None, generation, len }
    }

    /// Returns the entry of a way, counted set after set, if the way is occupied.
    fn entry_at(&self, way: usize) -> Option<(&K, &V)> {
        self.sets.get(way / WAYS).entry(way % WAYS, self.generation)
    }

    /// Retains the entries for which `keep` returns true. O(sets).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::SourceHashCache;
    /// use flowtable::hash::source_index::SourceIndex;
    ///
    /// let mut cache: SourceHashCache<u16, char> = SourceHashCache::new(4)?;
    /// for (port, action) in [(1, 'a'), (2, 'b'), (3, 'a')] {
    ///     _ = cache.insert(SourceIndex::new(port.into()), port, action);
    /// }
    /// cache.retain(|_, action| *action == 'a');
    /// assert_eq!(cache.iter().map(|(port, _)| port).sum::<u16>(), 1 + 3);
    /// assert_eq!(cache.remove(SourceIndex::new(3), &3), Some('a'));
    /// assert!(!cache.contains_key(SourceIndex::new(3), &3));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        self.extract_if(|key, value| !keep(key, value)).for_each(drop);
    }

    /// Returns an iterator that removes the entries for which `is_removed` returns true. Entries
    /// that it has not visited when it is dropped stay. O(sets) if it is run to its end.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::SourceHashCache;
    /// use flowtable::hash::source_index::SourceIndex;
    ///
    /// let mut cache: SourceHashCache<u16, u32> = SourceHashCache::new(16)?;
    /// for port in 0..10 {
    ///     _ = cache.insert(SourceIndex::new(port.into()), port, 1 << port);
    /// }
    /// let large = cache.extract_if(|_, bytes| *bytes > 100).map(|(port, _)| port);
    /// assert_eq!(large.sum::<u16>(), 7 + 8 + 9);
    /// assert_eq!((cache.len(), (&cache).into_iter().len()), (7, 7));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    pub fn extract_if(
        &mut self,
        mut is_removed: impl FnMut(&K, &mut V) -> bool,
    ) -> impl Iterator<Item = (K, V)> {
        let mut ways = 0..self.capacity();
        iter::from_fn(move || {
            ways.find_map(|way| {
                let (set, way) = (self.sets.get_mut(way / WAYS), way % WAYS);
                let (key, value) = set.entry_mut(way, self.generation)?;
                if !is_removed(key, value) {
                    return None;
                }
                self.len -= 1;
                set.remove(way)
            })
        })
    }
}

impl<'a, K, V, const WAYS: usize, A: Allocator + Clone> Iterator
    for SourceHashIter<'a, K, V, WAYS, A>
{
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<(&'a K, &'a V)> {
        let entry = self.ways.find_map(|way| self.cache.entry_at(way))?;
        self.len -= 1;
        Some(entry)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl<K, V, const WAYS: usize, A: Allocator + Clone> ExactSizeIterator
    for SourceHashIter<'_, K, V, WAYS, A>
{
}

impl<K, V, const WAYS: usize, A: Allocator + Clone> FusedIterator
    for SourceHashIter<'_, K, V, WAYS, A>
{
}

impl<K, V, const WAYS: usize, A: Allocator + Clone> Clone for SourceHashIter<'_, K, V, WAYS, A> {
    fn clone(&self) -> Self {
        Self { cache: self.cache, ways: self.ways.clone(), len: self.len }
    }
}

impl<K: fmt::Debug, V: fmt::Debug, const WAYS: usize, A: Allocator + Clone> fmt::Debug
    for SourceHashIter<'_, K, V, WAYS, A>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.clone()).finish()
    }
}

impl<'a, K, V, const WAYS: usize, A: Allocator + Clone> Iterator
    for SourceHashIterMut<'a, K, V, WAYS, A>
{
    type Item = (&'a K, &'a mut V);

    fn next(&mut self) -> Option<(&'a K, &'a mut V)> {
        loop {
            if let Some(entry) = self.entries.as_mut().and_then(Iterator::next) {
                self.len -= 1;
                return Some(entry);
            }
            self.entries = Some(self.sets.next()?.entries_mut(self.generation));
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl<K, V, const WAYS: usize, A: Allocator + Clone> ExactSizeIterator
    for SourceHashIterMut<'_, K, V, WAYS, A>
{
}

impl<K, V, const WAYS: usize, A: Allocator + Clone> FusedIterator
    for SourceHashIterMut<'_, K, V, WAYS, A>
{
}

impl<K, V, const WAYS: usize, A: Allocator + Clone> fmt::Debug
    for SourceHashIterMut<'_, K, V, WAYS, A>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceHashIterMut").field("len", &self.len).finish_non_exhaustive()
    }
}

impl<'a, K, V, const WAYS: usize, A: Allocator + Clone> IntoIterator
    for &'a SourceHashCache<K, V, WAYS, A>
{
    type Item = (&'a K, &'a V);
    type IntoIter = SourceHashIter<'a, K, V, WAYS, A>;

    fn into_iter(self) -> SourceHashIter<'a, K, V, WAYS, A> {
        self.iter()
    }
}

impl<'a, K, V, const WAYS: usize, A: Allocator + Clone> IntoIterator
    for &'a mut SourceHashCache<K, V, WAYS, A>
{
    type Item = (&'a K, &'a mut V);
    type IntoIter = SourceHashIterMut<'a, K, V, WAYS, A>;

    fn into_iter(self) -> SourceHashIterMut<'a, K, V, WAYS, A> {
        self.iter_mut()
    }
}

/// Equal keys with equal values under equal indices: neither uses, counters nor capacities count.
impl<K: Eq, V: PartialEq, const WAYS: usize, A: Allocator + Clone> PartialEq
    for SourceHashCache<K, V, WAYS, A>
{
    fn eq(&self, other: &Self) -> bool {
        let is_in_other = |way: usize| {
            let Some((key, value)) = self.entry_at(way) else { return true };
            let set = way / WAYS;
            let index = self.generation.index(self.sets.get(set).tag(way % WAYS), set);
            other.peek(index, key).is_some_and(|other| value == other)
        };
        self.len() == other.len() && (0..self.capacity()).all(is_in_other)
    }
}
