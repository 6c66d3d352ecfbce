//! Batches of lookups in a `SourceHashCache`.

use equivalent::Equivalent;

use super::SMALL;
use super::replacement::Replacement;
use super::source_hash::{Sets, SourceHashCache};
use super::tag::Generation;
use crate::hash::source_index::SourceIndex;
use crate::memory::Allocator;
use crate::raw::results::results_for;

/// The distance in keys between the prefetch of a set and its lookup: enough to hide the latency of
/// memory, and few enough that sets are not evicted from L1 before their lookup.
const PREFETCH_DISTANCE: usize = 32;

impl<K: Eq, V, const WAYS: usize, A: Allocator + Clone> SourceHashCache<K, V, WAYS, A> {
    /// Looks up a batch of keys, and writes their values to `found` in order. Cache misses overlap.
    ///
    /// Under [`Replacement::LeastRecentlyUsed`] it reads the sets twice: first to update their
    /// order, then for the values.
    ///
    /// # Panics
    ///
    /// If `indices` and `keys` differ in length, or `found` is shorter. Elements of `found` beyond
    /// the keys are set to `None`.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::SourceHashCache;
    /// use flowtable::hash::source_index::SourceIndex;
    ///
    /// let mut cache: SourceHashCache<char, u32> = SourceHashCache::new(100)?;
    /// _ = cache.insert(SourceIndex::new(1), 'a', 10);
    /// let mut found = [None; 2];
    /// cache.get_batch(&[1, 2].map(SourceIndex::new), &['a', 'b'], &mut found);
    /// assert_eq!(found, [Some(&10), None]);
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    pub fn get_batch<'a, Q>(
        &'a mut self,
        indices: &[SourceIndex],
        keys: &[Q],
        found: &mut [Option<&'a V>],
    ) where
        Q: Equivalent<K>,
    {
        if WAYS > 1 && self.replacement == Replacement::LeastRecentlyUsed {
            // The order must be written before values are borrowed from the sets.
            self.get_batch_mut(indices, keys, |_, _| ());
            return self.peek_batch(indices, keys, found);
        }
        let Self { sets, generation, replacement, statistics, .. } = self;
        let marks_reference = *replacement == Replacement::SecondChance;
        let count = |is_hit| statistics.count_lookup(is_hit);
        lookup_batch(sets, *generation, marks_reference, (indices, keys), found, count);
    }

    /// Looks up a batch of keys as [`get_batch`](Self::get_batch), without recording uses or hits.
    ///
    /// # Panics
    ///
    /// If `indices` and `keys` differ in length, or `found` is shorter. Elements of `found` beyond
    /// the keys are set to `None`.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::SourceHashCache;
    /// use flowtable::hash::source_index::SourceIndex;
    ///
    /// let mut cache: SourceHashCache<char, u32> = SourceHashCache::new(100)?;
    /// _ = cache.insert(SourceIndex::new(1), 'a', 10);
    /// let mut found = [None; 2];
    /// cache.peek_batch(&[1, 2].map(SourceIndex::new), &['a', 'b'], &mut found);
    /// assert_eq!(found, [Some(&10), None]);
    /// assert_eq!((cache.statistics().hits, cache.statistics().misses), (0, 0));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    pub fn peek_batch<'a, Q>(
        &'a self,
        indices: &[SourceIndex],
        keys: &[Q],
        found: &mut [Option<&'a V>],
    ) where
        Q: Equivalent<K>,
    {
        lookup_batch(&self.sets, self.generation, false, (indices, keys), found, |_| ());
    }

    /// Calls `each` with the position of each key in `keys` and a mutable reference to its value,
    /// in order. A key may occur repeatedly. Cache misses overlap.
    ///
    /// # Panics
    ///
    /// If `indices` and `keys` differ in length.
    pub fn get_batch_mut<Q>(
        &mut self,
        indices: &[SourceIndex],
        keys: &[Q],
        mut each: impl FnMut(usize, Option<&mut V>),
    ) where
        Q: Equivalent<K>,
    {
        assert_eq!(keys.len(), indices.len(), "one index for each key");
        let ahead = prefetched(&self.sets, indices);
        ahead.iter().take(PREFETCH_DISTANCE).for_each(|&index| self.prefetch(index));
        for (position, (&index, key)) in indices.iter().zip(keys).enumerate() {
            if let Some(&next) = ahead.get(position + PREFETCH_DISTANCE) {
                self.prefetch(next);
            }
            each(position, self.get_mut(index, key));
        }
    }
}

/// Returns the indices whose sets are prefetched: none in a small cache, where a batch is a loop.
#[inline]
fn prefetched<'a, K, V, const WAYS: usize, A: Allocator>(
    sets: &Sets<K, V, WAYS, A>,
    indices: &'a [SourceIndex],
) -> &'a [SourceIndex] {
    if sets.allocation_size() > SMALL { indices } else { &[] }
}

/// Looks up a batch of keys, borrowing the sets for the lifetime of the results, and calls `count`
/// with whether each key was found.
#[inline]
fn lookup_batch<'a, K, V, Q: Equivalent<K>, const WAYS: usize, A: Allocator>(
    sets: &'a Sets<K, V, WAYS, A>,
    generation: Generation,
    marks_reference: bool,
    (indices, keys): (&[SourceIndex], &[Q]),
    found: &mut [Option<&'a V>],
    mut count: impl FnMut(bool),
) {
    assert_eq!(keys.len(), indices.len(), "one index for each key");
    let found = results_for(keys.len(), found);
    let ahead = prefetched(sets, indices);
    let first = ahead.iter().take(PREFETCH_DISTANCE);
    first.for_each(|index| sets.prefetch(index.get() as usize));
    for (position, ((&index, key), found)) in indices.iter().zip(keys).zip(found).enumerate() {
        if let Some(next) = ahead.get(position + PREFETCH_DISTANCE) {
            sets.prefetch(next.get() as usize);
        }
        let set = sets.get(index.get() as usize);
        *found = set.get(generation.tag(index), marks_reference, |stored| key.equivalent(stored));
        count(found.is_some());
    }
}
