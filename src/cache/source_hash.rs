//! A set-associative cache by an index from the packet.

use alloc::format;
use core::{fmt, mem};

use equivalent::Equivalent;

use super::set::{Replacement, Set};
use super::tag::{Generation, MAX_WAYS, Tag};
use super::{CacheError, Inserted, Statistics};
use crate::hash::source_index::SourceIndex;
use crate::invariant::{InvariantError, ensure};
use crate::memory::{Allocator, Array, CACHE_LINE, Global};
use crate::raw::prefetch::SMALL;
use crate::table::error::check_capacity;

/// The sets of a cache, each in as few cache lines as possible.
pub(super) type Sets<K, V, const WAYS: usize, A> = Array<Set<K, V, WAYS>, A, true>;

/// A set-associative cache of fixed size by an index from the packet: lookups compute no hash.
///
/// A set has `WAYS` entries. One way is the direct-mapped cache of the paper, where a new entry
/// evicts the one in its slot; up to 8 tolerate equal indices. A lookup reads one cache line if the
/// entries of a set fit into it beside 4 bytes for each way: see
/// [`WAYS_PER_CACHE_LINE`](Self::WAYS_PER_CACHE_LINE).
///
/// | ways | key and value, for a set in one cache line | memory per entry |
/// |--:|--:|--:|
/// | 1 | 60 bytes; two sets per line: 28 bytes; three: 16 bytes | 64; 32; 21 |
/// | 2 | 28 bytes | 32 |
/// | 3 | 17 bytes | 21 |
/// | 4 | 12 bytes | 16 |
/// | 8 | 4 bytes | 8 |
///
/// # Effects of a wrong index
///
/// Whole keys are compared: no index, be it wrong, hostile or [absent](SourceIndex::ABSENT), ever
/// finds the value of another key. But a key that is used with two indices has two entries, which
/// may differ. So cached values must be valid independent of their entry, and
/// [`clear`](Self::clear), which is amortized O(1), must be called when they change.
///
/// | method | cost |
/// |---|---|
/// | `get`, `get_mut`, `peek`, `contains_key` | O(1): one set |
/// | `get_or_insert_with`, `insert`, `remove` | O(1): one set |
/// | `get_batch`, `get_batch_mut` | O(keys); the cache misses of 32 keys overlap |
/// | `clear` | amortized O(1); the entries of a set are dropped at its next insertion |
/// | `iter`, `iter_mut`, `retain`, `extract_if`, `drop` | O(sets) |
///
/// Paper: Chandranmenon and Varghese, sections 3.4 and 4.1: two instructions to locate the entry,
/// 18 to compare 12 bytes and follow a pointer.
///
/// # Example
///
/// ```
/// use flowtable::{FourTuple, SourceHashCache};
/// use flowtable::hash::source_index::SourceIndex;
///
/// // Results of route lookups by connection, indexed by the hash of the network card.
/// let mut routes: SourceHashCache<FourTuple<u32>, u16, 2> = SourceHashCache::new(10_000)?;
/// assert_eq!(routes.capacity(), 16_384);
/// let packet = FourTuple { src: 0x0a00_0001, dst: 0xc633_6401, sport: 40_000, dport: 443 };
/// let index = SourceIndex::from_rss(0x51cc_c178);
/// let lookup = |packet: &FourTuple<u32>| (packet.dst >> 24) as u16;
/// assert_eq!(*routes.get_or_insert_with(index, packet, lookup), 0xc6);
/// assert_eq!(routes.get(index, &packet), Some(&0xc6));
/// // A route has changed: all cached results are invalid.
/// routes.clear();
/// assert_eq!(routes.get(index, &packet), None);
/// # Ok::<(), flowtable::cache::CacheError>(())
/// ```
#[doc(alias("connection id", "flow label", "rss"))]
pub struct SourceHashCache<K, V, const WAYS: usize = 1, A: Allocator + Clone = Global> {
    pub(super) sets: Sets<K, V, WAYS, A>,
    /// Incremented by `clear`. Entries of another generation are stale.
    pub(super) generation: Generation,
    pub(super) replacement: Replacement,
    pub(super) len: usize,
    pub(super) statistics: Statistics,
}

impl<K, V, const WAYS: usize> SourceHashCache<K, V, WAYS> {
    /// Creates a cache for `capacity` entries or more: the number of sets is a power of two.
    /// O(capacity).
    ///
    /// A number of ways that is zero, or above 8, does not compile:
    ///
    /// ```compile_fail
    /// use flowtable::SourceHashCache;
    ///
    /// let cache: SourceHashCache<u32, u32, 9> = SourceHashCache::new(100).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// If the capacity is zero, 2^30 or more, or there is no memory for it.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::SourceHashCache;
    /// use flowtable::cache::CacheError;
    ///
    /// let cache: SourceHashCache<u64, u32, 3> = SourceHashCache::new(1000)?;
    /// assert_eq!(cache.capacity(), 3 * 512, "1000 / 3, rounded up to a power of two of sets");
    /// let none = SourceHashCache::<u64, u32>::new(0);
    /// assert_eq!(none.unwrap_err(), CacheError::NoCapacity);
    /// # Ok::<(), CacheError>(())
    /// ```
    pub fn new(capacity: usize) -> Result<Self, CacheError> {
        Self::new_in(capacity, Global)
    }
}

impl<K, V, const WAYS: usize, A: Allocator + Clone> SourceHashCache<K, V, WAYS, A> {
    /// The maximum number of ways whose set fits into one cache line, at least 1.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{FourTuple, SourceHashCache};
    ///
    /// type Key = FourTuple<u32>;
    /// const WAYS: usize = SourceHashCache::<Key, u32>::WAYS_PER_CACHE_LINE;
    /// let cache: SourceHashCache<Key, u32, WAYS> = SourceHashCache::new(3000)?;
    /// assert_eq!((WAYS, cache.capacity(), cache.allocation_size()), (3, 3 * 1024, 64 * 1024));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    pub const WAYS_PER_CACHE_LINE: usize = {
        let sizes = [
            size_of::<Set<K, V, 8>>(),
            size_of::<Set<K, V, 7>>(),
            size_of::<Set<K, V, 6>>(),
            size_of::<Set<K, V, 5>>(),
            size_of::<Set<K, V, 4>>(),
            size_of::<Set<K, V, 3>>(),
            size_of::<Set<K, V, 2>>(),
        ];
        let mut too_large = 0;
        while too_large < sizes.len() && sizes[too_large] > CACHE_LINE {
            too_large += 1;
        }
        MAX_WAYS - too_large
    };

    /// Creates a cache as [`new`](SourceHashCache::new), whose memory is from `memory`: one block,
    /// which is allocated here.
    ///
    /// # Errors
    ///
    /// If the capacity is zero, 2^30 or more, or there is no memory for it.
    ///
    /// # Example
    ///
    /// ```
    /// use bumpalo::Bump;
    /// use flowtable::SourceHashCache;
    /// use flowtable::cache::CacheError;
    ///
    /// let arena = Bump::new();
    /// arena.set_allocation_limit(Some(8192));
    /// let cache: SourceHashCache<u32, u16, 4, _> = SourceHashCache::new_in(200, &arena)?;
    /// assert!(cache.allocation_size() < cache.allocator().allocated_bytes());
    /// let other = SourceHashCache::<u32, u16, 4, _>::new_in(2000, &arena);
    /// assert_eq!(other.unwrap_err(), CacheError::NoMemory);
    /// # Ok::<(), CacheError>(())
    /// ```
    pub fn new_in(capacity: usize, memory: A) -> Result<Self, CacheError> {
        const { assert!(WAYS >= 1 && WAYS <= MAX_WAYS, "a set has one to eight ways") }
        check_capacity(capacity)?;
        let sets = Array::new_in(capacity.div_ceil(WAYS), memory, |_| Set::new())?;
        let (replacement, statistics) = (Replacement::default(), Statistics::default());
        let generation = Generation::first(sets.len());
        Ok(Self { sets, generation, replacement, len: 0, statistics })
    }

    /// Returns the allocator that the cache was created with.
    #[must_use]
    pub const fn allocator(&self) -> &A {
        self.sets.allocator()
    }

    /// Sets the replacement rule.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::cache::{Replacement, SourceHashCache};
    /// use flowtable::hash::source_index::SourceIndex;
    ///
    /// let cache: SourceHashCache<char, u32, 2> = SourceHashCache::new(2)?;
    /// let mut cache = cache.with_replacement(Replacement::Oldest);
    /// let index = SourceIndex::new(0);
    /// for key in ['a', 'b'] {
    ///     _ = cache.insert(index, key, 0);
    /// }
    /// // A hit does not protect the oldest entry.
    /// *cache.get_mut(index, &'a').unwrap() += 1;
    /// assert_eq!(cache.insert(index, 'c', 0).evicted, Some(('a', 1)));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    #[must_use]
    pub fn with_replacement(self, replacement: Replacement) -> Self {
        Self { replacement, ..self }
    }

    /// Returns the maximum number of entries, which evenly distributed indices reach.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.sets.len() * WAYS
    }

    /// Returns the number of entries.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no entries.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the counters of lookups and insertions.
    #[must_use]
    pub const fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Returns the number of bytes allocated.
    #[must_use]
    pub const fn allocation_size(&self) -> usize {
        self.sets.allocation_size()
    }

    /// Removes all entries, to invalidate the cache. Amortized O(1).
    ///
    /// Entries are dropped at the next insertion into their set, or with the cache. With n sets,
    /// one in n calls takes O(n), and drops all entries that are left.
    pub fn clear(&mut self) {
        if let Some(next) = self.generation.next() {
            (self.generation, self.len) = (next, 0);
            return;
        }
        // Generations wrap around, and no entry may have one that is used again.
        for set in 0..self.sets.len() {
            let set = self.sets.get_mut(set);
            for way in 0..WAYS {
                // If a drop panics, the entries that remain are counted as before.
                self.len -= usize::from(set.entry(way, self.generation).is_some());
                drop(set.remove(way));
            }
        }
        self.generation = Generation::first(self.sets.len());
    }

    /// Checks the invariants, for tests. O(sets).
    ///
    /// # Errors
    ///
    /// The first invariant that does not hold.
    ///
    /// # Example
    ///
    /// ```
    /// let cache: flowtable::SourceHashCache<u32, u32> = flowtable::SourceHashCache::new(4)?;
    /// assert_eq!(cache.validate(), Ok(()));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), InvariantError> {
        for (index, set) in self.sets.iter().enumerate() {
            set.validate().map_err(|error| error.within(format_args!("set {index}")))?;
        }
        let count = self.iter().count();
        ensure(count == self.len, || format!("{count} entries are counted as {}", self.len))
    }

    /// Prefetches the set of an index for a later lookup.
    ///
    /// It pays if there is other work before the lookup. [`get_batch`](Self::get_batch) prefetches
    /// by itself.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::SourceHashCache;
    /// use flowtable::hash::source_index::SourceIndex;
    ///
    /// let mut cache: SourceHashCache<&str, u32> = SourceHashCache::new(1000)?;
    /// let index = SourceIndex::from_rss(0x51cc_c178);
    /// _ = cache.insert(index, "flow", 1);
    /// cache.prefetch(index);
    /// let packet = [0x45, 0, 0, 20, 0xba, 0xeb];
    /// assert_eq!(packet[0] >> 4, 4, "parsed during the prefetch");
    /// assert_eq!(cache.get(index, "flow"), Some(&1));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    #[inline]
    pub fn prefetch(&self, index: SourceIndex) {
        self.sets.prefetch(index.get() as usize);
    }

    #[inline]
    fn set(&self, index: SourceIndex) -> &Set<K, V, WAYS> {
        self.sets.get(index.get() as usize)
    }

    /// Returns the tag of entries with an index.
    #[inline]
    pub(super) fn tag_of(&self, index: SourceIndex) -> Tag {
        self.generation.tag(index)
    }
}

impl<K: Eq, V, const WAYS: usize, A: Allocator + Clone> SourceHashCache<K, V, WAYS, A> {
    /// Returns the value of `key` without recording a use or a hit.
    #[inline]
    #[must_use]
    pub fn peek<Q>(&self, index: SourceIndex, key: &Q) -> Option<&V>
    where
        Q: Equivalent<K> + ?Sized,
    {
        self.set(index).peek(self.tag_of(index), |stored| key.equivalent(stored))
    }

    /// Returns whether `key` has a value, without recording a use or a hit.
    #[inline]
    #[must_use]
    pub fn contains_key<Q>(&self, index: SourceIndex, key: &Q) -> bool
    where
        Q: Equivalent<K> + ?Sized,
    {
        self.peek(index, key).is_some()
    }

    /// Returns the value of `key`.
    #[inline]
    pub fn get<Q>(&mut self, index: SourceIndex, key: &Q) -> Option<&V>
    where
        Q: Equivalent<K> + ?Sized,
    {
        self.get_mut(index, key).map(|value| &*value)
    }

    /// Returns a mutable reference to the value of `key`.
    #[inline]
    pub fn get_mut<Q>(&mut self, index: SourceIndex, key: &Q) -> Option<&mut V>
    where
        Q: Equivalent<K> + ?Sized,
    {
        let tag = self.tag_of(index);
        let set = self.sets.get_mut(index.get() as usize);
        let value = set.get_mut(tag, self.replacement, |stored| key.equivalent(stored));
        self.statistics.count_lookup(value.is_some());
        value
    }

    /// Returns a mutable reference to the value of `key`, after inserting the result of `make` if
    /// the key is absent.
    ///
    /// An evicted entry is dropped; [`insert`](Self::insert) returns it instead.
    #[inline]
    pub fn get_or_insert_with(
        &mut self,
        index: SourceIndex,
        key: K,
        make: impl FnOnce(&K) -> V,
    ) -> &mut V {
        let tag = self.tag_of(index);
        let set = self.sets.get_mut(index.get() as usize);
        if let Some(way) = set.find(tag, |stored| key == *stored) {
            self.statistics.count_lookup(true);
            return set.record_hit(way, self.replacement);
        }
        self.statistics.count_lookup(false);
        let value = make(&key);
        let (value, evicted) = set.insert((tag, self.generation), self.replacement, key, value);
        self.len += usize::from(evicted.is_none());
        self.statistics.count_insertion(evicted.is_some());
        value
    }

    /// Inserts or replaces the value of `key`. If the set is full, a new entry evicts an entry of
    /// the set.
    #[inline]
    pub fn insert(&mut self, index: SourceIndex, key: K, value: V) -> Inserted<K, V> {
        let tag = self.tag_of(index);
        let set = self.sets.get_mut(index.get() as usize);
        if let Some(previous) = set.get_mut(tag, self.replacement, |stored| key == *stored) {
            let previous = Some(mem::replace(previous, value));
            return Inserted { previous, evicted: None };
        }
        let (_, evicted) = set.insert((tag, self.generation), self.replacement, key, value);
        self.len += usize::from(evicted.is_none());
        self.statistics.count_insertion(evicted.is_some());
        Inserted { previous: None, evicted }
    }

    /// Removes `key` and returns its value.
    pub fn remove<Q>(&mut self, index: SourceIndex, key: &Q) -> Option<V>
    where
        Q: Equivalent<K> + ?Sized,
    {
        let tag = self.tag_of(index);
        let set = self.sets.get_mut(index.get() as usize);
        let way = set.find(tag, |stored| key.equivalent(stored))?;
        self.len -= 1;
        set.remove(way).map(|(_, value)| value)
    }
}

/// Stale entries, removed by [`clear`](SourceHashCache::clear) but not dropped yet, are not cloned.
impl<K: Clone, V: Clone, const WAYS: usize, A: Allocator + Clone> Clone
    for SourceHashCache<K, V, WAYS, A>
{
    fn clone(&self) -> Self {
        let sets = self.sets.clone_with(|set| set.clone_of(self.generation));
        Self { sets, ..*self }
    }
}

impl<K: fmt::Debug, V: fmt::Debug, const WAYS: usize, A: Allocator + Clone> fmt::Debug
    for SourceHashCache<K, V, WAYS, A>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// The distance in keys between the prefetch of a set and its lookup: enough to hide the latency of
/// memory, and few enough that sets are not evicted from L1 before their lookup.
const PREFETCH_DISTANCE: usize = 32;

impl<K: Eq, V, const WAYS: usize, A: Allocator + Clone> SourceHashCache<K, V, WAYS, A> {
    /// Calls `each` with the position of each key and its value, in the order of the keys. Cache
    /// misses overlap.
    ///
    /// Keys come with their indices. The iterator is cloned: it should be cheap, as over a slice.
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
    pub fn get_batch<'a, 'q, Q, I>(
        &'a mut self,
        keys: I,
        mut each: impl FnMut(usize, Option<&'a V>),
    ) where
        Q: Equivalent<K> + ?Sized + 'q,
        I: IntoIterator<Item = (SourceIndex, &'q Q), IntoIter: Clone>,
    {
        let keys = keys.into_iter();
        let Self { sets, generation, replacement, statistics, .. } = self;
        let sets = &*sets;
        let prefetch = |index: SourceIndex| sets.prefetch(index.get() as usize);
        let mut ahead = keys.clone().take(prefetched(sets));
        ahead.by_ref().take(PREFETCH_DISTANCE).for_each(|(index, _)| prefetch(index));
        for (position, (index, key)) in keys.enumerate() {
            if let Some((next, _)) = ahead.next() {
                prefetch(next);
            }
            let set = sets.get(index.get() as usize);
            let equals = |stored: &K| key.equivalent(stored);
            let value = set.get(generation.tag(index), *replacement, equals);
            statistics.count_lookup(value.is_some());
            each(position, value);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_entries_stay_removed_when_generations_wrap_around() {
        let mut cache: SourceHashCache<u32, u32, 2> = SourceHashCache::new(8).unwrap();
        let index = SourceIndex::new;
        _ = cache.insert(index(0), 0, 70);
        for _ in 0..2 {
            cache.clear();
            _ = cache.insert(index(1), 1, 71);
        }
        for _ in 0..3 {
            cache.clear();
            assert_eq!((cache.len(), cache.validate()), (0, Ok(())));
            assert_eq!([0, 1].map(|key| cache.peek(index(key), &key)), [None; 2]);
        }
        assert_eq!(Some(cache.generation), Generation::first(4).next());
        _ = cache.insert(index(0), 2, 72);
        assert_eq!((cache.peek(index(0), &2), cache.iter().count()), (Some(&72), 1));
    }
}
