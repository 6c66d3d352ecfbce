//! Iteration over a `BoundedCache`, by recency, too, removal of the entries that a predicate picks,
//! and implementations of the traits of `core`.

use core::fmt;
use core::hash::{BuildHasher, Hash};

use super::bounded::BoundedCache;
use super::entries::{Entries, LastUse};
use crate::eviction::{Eviction, Lru};
use crate::memory::Allocator;
use crate::table::records::{Occupied, OccupiedMut, Record};

/// An iterator over the entries of a [`BoundedCache`], in no particular order.
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

/// An iterator over the entries of a [`BoundedCache`] with mutable references to their values, in
/// no particular order.
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

impl<K: fmt::Debug, V: fmt::Debug, P, S, A: Allocator + Clone> fmt::Debug
    for BoundedCache<K, V, P, S, A>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Equal keys with equal values: neither uses nor counters count.
impl<K, V, P, S, A> PartialEq for BoundedCache<K, V, P, S, A>
where
    K: Eq + Hash,
    V: PartialEq,
    P: Eviction,
    S: BuildHasher,
    A: Allocator + Clone,
{
    fn eq(&self, other: &Self) -> bool {
        let same = |(key, value): (&K, &V)| other.peek(key).is_some_and(|other| value == other);
        self.len() == other.len() && self.iter().all(same)
    }
}

impl<K, V, P, S, A> Extend<(K, V)> for BoundedCache<K, V, P, S, A>
where
    K: Eq + Hash,
    P: Eviction,
    S: BuildHasher,
    A: Allocator + Clone,
{
    /// Inserts all entries, and drops those that they evict.
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        entries.into_iter().for_each(|(key, value)| drop(self.insert(key, value)));
    }
}

impl<'a, K, V, P, S, A: Allocator + Clone> IntoIterator for &'a BoundedCache<K, V, P, S, A> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Iter<'a, K, V> {
        self.iter()
    }
}

impl<K, V, P, S, A: Allocator + Clone> BoundedCache<K, V, P, S, A> {
    /// Iterates over the entries in no particular order: see
    /// [`iter_by_recency`](Self::iter_by_recency). No use is recorded. O(capacity).
    #[must_use]
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter::new(&self.entries)
    }

    /// Iterates over the entries in no particular order, with mutable references to their values.
    /// No use is recorded. O(capacity).
    ///
    /// # Example
    ///
    /// ```
    /// let mut ages: flowtable::BoundedCache<&str, u32> = flowtable::BoundedCache::new(100)?;
    /// ages.extend([("a", 1), ("b", 2)]);
    /// ages.iter_mut().for_each(|(_, age)| *age += 1);
    /// assert_eq!((ages.peek("a"), ages.peek("b")), (Some(&2), Some(&3)));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    pub fn iter_mut(&mut self) -> IterMut<'_, K, V> {
        IterMut::new(&mut self.entries)
    }
}

impl<'a, K, V, P, S, A: Allocator + Clone> IntoIterator for &'a mut BoundedCache<K, V, P, S, A> {
    type Item = (&'a K, &'a mut V);
    type IntoIter = IterMut<'a, K, V>;

    fn into_iter(self) -> IterMut<'a, K, V> {
        self.iter_mut()
    }
}

impl<K, V, P: Eviction, S, A: Allocator + Clone> BoundedCache<K, V, P, S, A> {
    /// Retains the entries for which `keep` returns true.
    ///
    /// # Example
    ///
    /// ```
    /// let mut routes: flowtable::BoundedCache<u32, u16> = flowtable::BoundedCache::new(100)?;
    /// for host in 0..10 {
    ///     _ = routes.insert(host, 1);
    /// }
    /// *routes.get_mut(&4).unwrap() = 2;
    /// // The router at port 1 has failed.
    /// routes.retain(|_, port| *port != 1);
    /// assert!(routes.iter().eq([(&4, &2)]));
    /// assert_eq!((routes.remove(&4), routes.is_empty()), (Some(2), true));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        self.extract_if(|key, value| !keep(key, value)).for_each(drop);
    }

    /// Removes the entries for which `is_removed` returns true, and returns them. Those after the
    /// last one that the iterator has returned stay.
    ///
    /// # Example
    ///
    /// ```
    /// let mut ages: flowtable::BoundedCache<u32, u16> = flowtable::BoundedCache::new(100)?;
    /// ages.extend((0..10).map(|host| (host, host as u16)));
    /// assert_eq!(ages.extract_if(|_, age| *age > 6).map(|(host, _)| host).sum::<u32>(), 24);
    /// assert_eq!((ages.len(), (&ages).into_iter().len()), (7, 7));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    pub fn extract_if(
        &mut self,
        mut is_removed: impl FnMut(&K, &mut V) -> bool,
    ) -> impl Iterator<Item = (K, V)> {
        let mut slots = 0..self.entries.records().slot_count();
        core::iter::from_fn(move || {
            let slot = slots.find(|slot| {
                let entry = self.entries.records_mut().get_mut(*slot);
                entry.is_some_and(|entry| is_removed(&entry.key, &mut entry.value))
            })?;
            Some(self.remove_at(slot))
        })
    }

    /// Removes all entries. If the drop of one panics, those in later slots stay.
    pub fn clear(&mut self) {
        self.retain(|_, _| false);
        self.entries.records_mut().reset_lines();
    }
}

impl<K, V, B: Allocator + Clone, S, A: Allocator + Clone> BoundedCache<K, V, Lru<B>, S, A> {
    /// Returns the least recently used entry, which is evicted next. No use is recorded.
    #[must_use]
    pub fn peek_lru(&self) -> Option<(&K, &V)> {
        self.policy.oldest().map(|slot| self.entry_at(slot))
    }

    /// Removes the least recently used entry, and returns it.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::eviction::Lru;
    /// use flowtable::{BoundedCache, DefaultHashBuilder};
    ///
    /// let mut pages = BoundedCache::with_parts(100, Lru::new(), DefaultHashBuilder::new())?;
    /// pages.extend([('a', 1), ('b', 2), ('c', 3)]);
    /// assert!(pages.promote(&'a'));
    /// assert!(pages.iter_by_recency().eq([(&'a', &1), (&'c', &3), (&'b', &2)]));
    /// assert_eq!(pages.peek_lru(), Some((&'b', &2)));
    /// assert_eq!([(); 2].map(|()| pages.pop_lru()), [Some(('b', 2)), Some(('c', 3))]);
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    pub fn pop_lru(&mut self) -> Option<(K, V)> {
        self.policy.oldest().map(|slot| self.remove_at(slot))
    }

    /// Iterates over the entries, the most recently used one first. No use is recorded. O(1) for
    /// each.
    pub fn iter_by_recency(&self) -> impl Iterator<Item = (&K, &V)> {
        self.policy.by_recency().map(|slot| self.entry_at(slot))
    }

    fn entry_at(&self, slot: u32) -> (&K, &V) {
        let Record { key, value, .. } = self.entries.records().record(slot);
        (key, value)
    }
}
