//! Batches of lookups in a `SourceHashCache`.

use equivalent::Equivalent;

use super::replacement::Replacement;
use super::source_hash::{Sets, SourceHashCache};
use super::tag::Generation;
use crate::hash::source_index::SourceIndex;
use crate::memory::Allocator;
use crate::raw::prefetch::SMALL;

/// The distance in keys between the prefetch of a set and its lookup: enough to hide the latency of
/// memory, and few enough that sets are not evicted from L1 before their lookup.
const PREFETCH_DISTANCE: usize = 32;

impl<K: Eq, V, const WAYS: usize, A: Allocator + Clone> SourceHashCache<K, V, WAYS, A> {
    /// Calls `each` with the position of each key and its value, in the order of the keys. Cache
    /// misses overlap.
    ///
    /// Keys come with their indices. The iterator is cloned: it should be cheap, as over a slice.
    /// Under [`Replacement::LeastRecentlyUsed`] it is run twice: first to update the order of the
    /// sets, then for the values.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::hash::source_index::SourceIndex;
    /// use flowtable::{SourceHashCache, write_to};
    ///
    /// let mut cache: SourceHashCache<char, u32> = SourceHashCache::new(100)?;
    /// _ = cache.insert(SourceIndex::new(1), 'a', 10);
    /// let packets = [(SourceIndex::new(1), 'a'), (SourceIndex::new(2), 'b')];
    /// let mut found = [None; 2];
    /// cache.get_batch(packets.iter().map(|(index, key)| (*index, key)), write_to(&mut found));
    /// assert_eq!(found, [Some(&10), None]);
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    #[inline]
    pub fn get_batch<'a, 'q, Q, I>(&'a mut self, keys: I, each: impl FnMut(usize, Option<&'a V>))
    where
        Q: Equivalent<K> + ?Sized + 'q,
        I: IntoIterator<Item = (SourceIndex, &'q Q), IntoIter: Clone>,
    {
        let keys = keys.into_iter();
        if WAYS > 1 && self.replacement == Replacement::LeastRecentlyUsed {
            // The order must be written before values are borrowed from the sets.
            self.get_batch_mut(keys.clone(), |_, _| ());
            return self.peek_batch(keys, each);
        }
        let Self { sets, generation, replacement, statistics, .. } = self;
        let marks_reference = *replacement == Replacement::SecondChance;
        let mut each = each;
        lookup_batch(sets, *generation, marks_reference, keys, |position, value| {
            statistics.count_lookup(value.is_some());
            each(position, value);
        });
    }

    /// Looks up keys as [`get_batch`](Self::get_batch), without recording uses or hits.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::SourceHashCache;
    /// use flowtable::hash::source_index::SourceIndex;
    ///
    /// let mut cache: SourceHashCache<char, u32> = SourceHashCache::new(100)?;
    /// let index = SourceIndex::new(1);
    /// _ = cache.insert(index, 'a', 10);
    /// let mut sum = 0;
    /// cache.peek_batch([(index, &'a'), (index, &'b')], |_, value| sum += value.unwrap_or(&1));
    /// assert_eq!((sum, cache.statistics().hit_ratio()), (11, None));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    #[inline]
    pub fn peek_batch<'a, 'q, Q, I>(&'a self, keys: I, each: impl FnMut(usize, Option<&'a V>))
    where
        Q: Equivalent<K> + ?Sized + 'q,
        I: IntoIterator<Item = (SourceIndex, &'q Q), IntoIter: Clone>,
    {
        lookup_batch(&self.sets, self.generation, false, keys.into_iter(), each);
    }

    /// Calls `each` with the position of each key and a mutable reference to its value, in the
    /// order of the keys, so that a key may come twice. Cache misses overlap.
    ///
    /// See [`get_batch`](Self::get_batch).
    #[inline]
    pub fn get_batch_mut<'q, Q, I>(&mut self, keys: I, mut each: impl FnMut(usize, Option<&mut V>))
    where
        Q: Equivalent<K> + ?Sized + 'q,
        I: IntoIterator<Item = (SourceIndex, &'q Q), IntoIter: Clone>,
    {
        let keys = keys.into_iter();
        let mut ahead = keys.clone().take(prefetched(&self.sets));
        ahead.by_ref().take(PREFETCH_DISTANCE).for_each(|(index, _)| self.prefetch(index));
        for (position, (index, key)) in keys.enumerate() {
            if let Some((next, _)) = ahead.next() {
                self.prefetch(next);
            }
            each(position, self.get_mut(index, key));
        }
    }
}

/// Returns how many keys have their sets prefetched: none in a small cache, where a batch is a
/// loop.
#[inline]
fn prefetched<K, V, const WAYS: usize, A: Allocator>(sets: &Sets<K, V, WAYS, A>) -> usize {
    if sets.allocation_size() > SMALL { usize::MAX } else { 0 }
}

/// Looks up a batch of keys, borrowing the sets for the lifetime of the results.
#[inline]
fn lookup_batch<'a, 'q, K, V, Q, const WAYS: usize, A: Allocator>(
    sets: &'a Sets<K, V, WAYS, A>,
    generation: Generation,
    marks_reference: bool,
    keys: impl Iterator<Item = (SourceIndex, &'q Q)> + Clone,
    mut each: impl FnMut(usize, Option<&'a V>),
) where
    Q: Equivalent<K> + ?Sized + 'q,
{
    let prefetch = |index: SourceIndex| sets.prefetch(index.get() as usize);
    let mut ahead = keys.clone().take(prefetched(sets));
    ahead.by_ref().take(PREFETCH_DISTANCE).for_each(|(index, _)| prefetch(index));
    for (position, (index, key)) in keys.enumerate() {
        if let Some((next, _)) = ahead.next() {
            prefetch(next);
        }
        let set = sets.get(index.get() as usize);
        let equals = |stored: &K| key.equivalent(stored);
        each(position, set.get(generation.tag(index), marks_reference, equals));
    }
}
