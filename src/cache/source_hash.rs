//! The cache whose index comes with the packet.

use core::{fmt, mem};

use equivalent::Equivalent;

use super::lines::{LINE, Lines};
use super::set::{At, MAX_WAYS, PAST, Set};
use super::{Broken, CacheError, Inserted, Statistics};
use crate::hash::source_index::SourceIndex;

/// How many keys ahead of the one that is looked up sets are asked for: enough to keep the machine busy, and
/// little enough that they are still in its first cache when it is their turn.
const AHEAD: usize = 32;

/// Which entry of a full set leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Replacement {
    /// The one that came first of those that were not used since, or since they were passed over for that. A hit
    /// is noted if none has been: mostly it writes nothing.
    #[default]
    SecondChance,
    /// The one that was used longest ago, exactly. Each hit writes the order of the set.
    LeastRecentlyUsed,
    /// The one that came first. Hits write nothing.
    Oldest,
}

/// A cache of fixed size, whose index comes with the packet: a look-up computes no hash and touches one line.
///
/// `WAYS` entries are in a set: 1 is the direct-mapped cache of the paper, where a new entry displaces the one
/// that has its place; up to 8 get along with equal indices. A set begins with a line, and has one if its entries fit beside
/// 4 bytes and 4 more for each: see [`ways_in_line`](Self::ways_in_line).
///
/// | ways | in one line are entries (key and value) of up to | memory for an entry of that size |
/// |--:|--:|--:|
/// | 1 | 56 bytes; two in a line: 24 bytes | 64; 32 |
/// | 2 | 26 bytes | 32 |
/// | 3 | 16 bytes | 21 |
/// | 4 | 11 bytes | 16 |
/// | 8 | 3 bytes | 8 |
///
/// # What the index can and cannot do
///
/// Keys are compared, whole: no index, be it wrong, hostile or [absent](SourceIndex::ABSENT), ever finds another key's
/// value. But a key that comes with two indices has two entries, which may differ: so what is cached must
/// be true wherever it is, and when it changes, [`clear`](Self::clear) it, which costs nothing.
///
/// | method | cost |
/// |---|---|
/// | `get`, `get_mut`, `peek`, `contains_key`, `get_or_insert_with`, `insert`, `remove` | O(1): one set |
/// | `get_batch`, `get_batch_mut`, `peek_batch` | O(keys), the misses of 32 overlapping |
/// | `clear` | O(1); entries of a set are dropped when it is used next |
/// | `iter`, `retain`, `drop` | O(sets) |
///
/// Paper: Chandranmenon and Varghese, section 3: two instructions to find the place, 18 to compare 12 bytes and follow a
/// pointer.
///
/// # Example
///
/// ```
/// use flowtable::{FourTuple, SourceHashCache};
/// use flowtable::hash::source_index::SourceIndex;
///
/// // What a route look-up said, by connection, and by the hash that the network card has computed anyway.
/// let mut routes: SourceHashCache<FourTuple<u32>, u16, 2> = SourceHashCache::new(10_000)?;
/// assert_eq!(routes.capacity(), 16_384);
/// let packet = FourTuple { src: 0x0a00_0001, dst: 0xc633_6401, sport: 40_000, dport: 443 };
/// let index = SourceIndex::from_rss(0x51cc_c178);
/// let long_way = |packet: &FourTuple<u32>| (packet.dst >> 24) as u16;
/// assert_eq!(*routes.get_or_insert_with(index, packet, long_way), 0xc6);
/// assert_eq!(routes.get(index, &packet), Some(&0xc6));
/// // A route has changed: everything is looked up again.
/// routes.clear();
/// assert_eq!(routes.get(index, &packet), None);
/// # Ok::<(), flowtable::cache::CacheError>(())
/// ```
pub struct SourceHashCache<K, V, const WAYS: usize = 1> {
    sets: Lines<Set<K, V, WAYS>>,
    /// Entries of sets with another one are no entries any more.
    generation: u32,
    replacement: Replacement,
    len: usize,
    statistics: Statistics,
}

impl<K, V, const WAYS: usize> SourceHashCache<K, V, WAYS> {
    /// A cache for `capacity` entries or more: the number of sets is a power of two.
    ///
    /// A program with no way, or more than 8, does not compile:
    ///
    /// ```compile_fail
    /// let cache: flowtable::SourceHashCache<u32, u32, 9> = flowtable::SourceHashCache::new(100).unwrap();
    /// ```
    ///
    /// O(capacity).
    ///
    /// # Errors
    ///
    /// If the capacity is zero, or there is no memory for it.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::SourceHashCache;
    /// use flowtable::cache::CacheError;
    ///
    /// let cache: SourceHashCache<u64, u32, 3> = SourceHashCache::new(1000)?;
    /// assert_eq!(cache.capacity(), 3 * 512, "three do not divide a thousand, and 334 is no power of two");
    /// let none = SourceHashCache::<u64, u32>::new(0);
    /// assert_eq!(none.unwrap_err(), CacheError::NoCapacity);
    /// # Ok::<(), CacheError>(())
    /// ```
    pub fn new(capacity: usize) -> Result<Self, CacheError> {
        const { assert!(WAYS >= 1 && WAYS <= MAX_WAYS, "a set has one to eight ways") }
        if capacity == 0 {
            return Err(CacheError::NoCapacity);
        }
        let sets = Lines::new(capacity.div_ceil(WAYS), |_| Set::new())?;
        let (replacement, statistics) = (Replacement::default(), Statistics::default());
        Ok(Self { sets, generation: 0, replacement, len: 0, statistics })
    }

    /// The same cache with another rule for who leaves.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::cache::{Replacement, SourceHashCache};
    /// use flowtable::hash::source_index::SourceIndex;
    ///
    /// let cache: SourceHashCache<char, u32, 2> = SourceHashCache::new(2)?;
    /// let mut cache = cache.with_replacement(Replacement::Oldest);
    /// assert_eq!(cache.replacement(), Replacement::Oldest);
    /// let index = SourceIndex::new(0);
    /// for key in ['a', 'b'] {
    ///     _ = cache.insert(index, key, 0);
    /// }
    /// // Uses do not count.
    /// *cache.get_mut(index, &'a').unwrap() += 1;
    /// assert_eq!(cache.insert(index, 'c', 0).evicted, Some(('a', 1)));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    #[must_use]
    pub fn with_replacement(self, replacement: Replacement) -> Self {
        Self { replacement, ..self }
    }

    /// Who leaves.
    #[must_use]
    pub const fn replacement(&self) -> Replacement {
        self.replacement
    }

    /// The most ways that have such entries in one line, 1 if there is none.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{FourTuple, SourceHashCache};
    ///
    /// type Name = FourTuple<u32>;
    /// const WAYS: usize = SourceHashCache::<Name, u32>::ways_in_line();
    /// let cache: SourceHashCache<Name, u32, WAYS> = SourceHashCache::new(3000)?;
    /// assert_eq!((WAYS, cache.capacity(), cache.allocation_size()), (3, 3 * 1024, 64 * 1024));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    #[must_use]
    pub const fn ways_in_line() -> usize {
        let sizes = [
            size_of::<Set<K, V, 8>>(),
            size_of::<Set<K, V, 7>>(),
            size_of::<Set<K, V, 6>>(),
            size_of::<Set<K, V, 5>>(),
            size_of::<Set<K, V, 4>>(),
            size_of::<Set<K, V, 3>>(),
            size_of::<Set<K, V, 2>>(),
        ];
        let mut fewer = 0;
        while fewer < sizes.len() && sizes[fewer] > LINE {
            fewer += 1;
        }
        MAX_WAYS - fewer
    }

    /// Entries that there is room for, if their indices are spread evenly.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.sets.len() * WAYS
    }

    /// Number of entries.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no entries.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What came of look-ups and insertions.
    #[must_use]
    pub const fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Bytes allocated.
    #[must_use]
    pub const fn allocation_size(&self) -> usize {
        self.sets.allocation_size()
    }

    /// Takes out every entry, in O(1): what is cached is true no more.
    ///
    /// Entries are dropped when something is put in their set, or with the cache. Once in 2^32 - 1 times it takes O(sets).
    pub fn clear(&mut self) {
        self.len = 0;
        self.generation += 1;
        if self.generation == PAST {
            // Generations begin again, and no set must be of one that is to come.
            self.generation = 0;
            (0..self.sets.len()).for_each(|set| self.sets.at_mut(set).generation = PAST);
        }
    }

    /// The entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let sets = self.sets.iter().filter(|set| set.generation == self.generation);
        sets.flat_map(Set::iter)
    }

    /// Keeps the entries for which `keep` says so.
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
        for set in 0..self.sets.len() {
            let set = self.sets.at_mut(set);
            if set.generation == self.generation {
                // It counts as it goes: `keep` may panic.
                set.retain(|key, value| keep(key, value), || self.len -= 1);
            }
        }
    }

    /// Checks the invariants. O(sets).
    ///
    /// # Errors
    ///
    /// Which one does not hold.
    ///
    /// # Example
    ///
    /// ```
    /// let cache: flowtable::SourceHashCache<u32, u32> = flowtable::SourceHashCache::new(4)?;
    /// assert_eq!(cache.validate(), Ok(()));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), Broken> {
        if let Some(set) = self.sets.iter().position(|set| !set.is_sound()) {
            return Err(Broken::Set(set));
        }
        let found = self.iter().count();
        if found != self.len { Err(Broken::Count { found, counted: self.len }) } else { Ok(()) }
    }

    /// Asks for the set of an index, which will be looked at soon.
    ///
    /// For those who have something else to do meanwhile. [`get_batch`](Self::get_batch) does it by itself.
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
    /// let packet = [0x45, 0, 0, 20, 0xba, 0xeb]; // verified while the line is on its way
    /// assert!(flowtable::dml::Checksum::of(&packet).verifies());
    /// assert_eq!(cache.get(index, "flow"), Some(&1));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    #[inline]
    pub fn prefetch(&self, index: SourceIndex) {
        self.sets.prefetch(index.get() as usize);
    }

    #[inline]
    fn set(&self, index: SourceIndex) -> &Set<K, V, WAYS> {
        self.sets.at(index.get() as usize)
    }

    /// Where the entries of an index are in their set.
    #[inline]
    fn at(&self, index: SourceIndex) -> At {
        At::new(index, self.generation)
    }
}

impl<K: Eq, V, const WAYS: usize> SourceHashCache<K, V, WAYS> {
    /// The value of `key`, without a trace: it does not count, neither as a use nor as a hit.
    #[inline]
    #[must_use]
    pub fn peek<Q>(&self, index: SourceIndex, key: &Q) -> Option<&V>
    where
        Q: Equivalent<K> + ?Sized,
    {
        self.set(index).get(self.at(index), false, |own| key.equivalent(own))
    }

    /// Whether `key` has a value, without a trace.
    #[inline]
    #[must_use]
    pub fn contains_key<Q>(&self, index: SourceIndex, key: &Q) -> bool
    where
        Q: Equivalent<K> + ?Sized,
    {
        self.peek(index, key).is_some()
    }

    /// The value of `key`.
    #[inline(always)]
    pub fn get<Q>(&mut self, index: SourceIndex, key: &Q) -> Option<&V>
    where
        Q: Equivalent<K> + ?Sized,
    {
        self.get_mut(index, key).map(|value| &*value)
    }

    /// The value of `key`, to change.
    #[inline(always)]
    pub fn get_mut<Q>(&mut self, index: SourceIndex, key: &Q) -> Option<&mut V>
    where
        Q: Equivalent<K> + ?Sized,
    {
        let at = self.at(index);
        let set = self.sets.at_mut(index.get() as usize);
        let value = set.get_mut(at, self.replacement, |own| key.equivalent(own));
        self.statistics.count(value.is_some());
        value
    }

    /// The value of `key`; where it has none, the one that `make` finds on the long way.
    ///
    /// The entry that leaves for it is dropped. Who needs it takes [`get_mut`](Self::get_mut) and [`insert`](Self::insert).
    #[inline]
    pub fn get_or_insert_with(
        &mut self,
        index: SourceIndex,
        key: K,
        make: impl FnOnce(&K) -> V,
    ) -> &mut V {
        let at = self.at(index);
        let set = self.sets.at_mut(index.get() as usize);
        if let Some(way) = set.find(at, |own| key == *own) {
            self.statistics.count(true);
            return set.value_mut(way, self.replacement);
        }
        self.statistics.count(false);
        let value = make(&key);
        let (value, evicted) = set.put(at, self.replacement, key, value);
        self.len += usize::from(evicted.is_none());
        self.statistics.came(evicted.is_some());
        value
    }

    /// Gives `key` a value. A new entry takes the place of another one of its set, if that is full.
    #[inline]
    pub fn insert(&mut self, index: SourceIndex, key: K, value: V) -> Inserted<K, V> {
        let at = self.at(index);
        let set = self.sets.at_mut(index.get() as usize);
        if let Some(previous) = set.get_mut(at, self.replacement, |own| key == *own) {
            let previous = Some(mem::replace(previous, value));
            return Inserted { previous, evicted: None };
        }
        let (_, evicted) = set.put(at, self.replacement, key, value);
        self.len += usize::from(evicted.is_none());
        self.statistics.came(evicted.is_some());
        Inserted { previous: None, evicted }
    }

    /// Takes out `key` and returns its value.
    pub fn remove<Q>(&mut self, index: SourceIndex, key: &Q) -> Option<V>
    where
        Q: Equivalent<K> + ?Sized,
    {
        let at = self.at(index);
        let set = self.sets.at_mut(index.get() as usize);
        let way = set.find(at, |own| key.equivalent(own))?;
        self.len -= 1;
        set.take(way).map(|(_, value)| value)
    }

    /// The values of a burst of keys, each put where its key is in the slice: their misses overlap.
    ///
    /// Under [`Replacement::LeastRecentlyUsed`] it looks twice: first for the order, then for the values.
    ///
    /// # Panics
    ///
    /// If there are not as many indices and places as keys.
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
            // The order has to be written before anything is borrowed from the sets.
            self.get_batch_mut(indices, keys, |_, _| ());
            return self.peek_batch(indices, keys, found);
        }
        let Self { sets, generation, replacement, statistics, .. } = self;
        let is_use = *replacement == Replacement::SecondChance;
        let at = |index| At::new(index, *generation);
        let count = |is_hit| statistics.count(is_hit);
        look_up(sets, at, is_use, (indices, keys), found, count);
    }

    /// The same without a trace: see [`peek`](Self::peek).
    ///
    /// # Panics
    ///
    /// If there are not as many indices and places as keys.
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
        look_up(&self.sets, |index| self.at(index), false, (indices, keys), found, |_| ());
    }

    /// Calls `each` with the number of each key in the slice and its value, to change: in the order of
    /// the slice, so that a key may come twice.
    ///
    /// # Panics
    ///
    /// If there are not as many indices as keys.
    pub fn get_batch_mut<Q>(
        &mut self,
        indices: &[SourceIndex],
        keys: &[Q],
        mut each: impl FnMut(usize, Option<&mut V>),
    ) where
        Q: Equivalent<K>,
    {
        assert_eq!(keys.len(), indices.len(), "an index for each key");
        indices.iter().take(AHEAD).for_each(|&index| self.prefetch(index));
        for (number, (&index, key)) in indices.iter().zip(keys).enumerate() {
            if let Some(&next) = indices.get(number + AHEAD) {
                self.prefetch(next);
            }
            each(number, self.get_mut(index, key));
        }
    }
}

/// Looks a burst up in sets that are borrowed for as long as what is found; says of each key whether it was.
#[inline]
fn look_up<'a, K, V, Q: Equivalent<K>, const WAYS: usize>(
    sets: &'a Lines<Set<K, V, WAYS>>,
    at: impl Fn(SourceIndex) -> At,
    is_use: bool,
    (indices, keys): (&[SourceIndex], &[Q]),
    found: &mut [Option<&'a V>],
    mut count: impl FnMut(bool),
) {
    assert_eq!(keys.len(), indices.len(), "an index for each key");
    assert_eq!(keys.len(), found.len(), "a place for each key");
    indices.iter().take(AHEAD).for_each(|index| sets.prefetch(index.get() as usize));
    for (number, ((&index, key), found)) in indices.iter().zip(keys).zip(found).enumerate() {
        if let Some(next) = indices.get(number + AHEAD) {
            sets.prefetch(next.get() as usize);
        }
        let set = sets.at(index.get() as usize);
        *found = set.get(at(index), is_use, |own| key.equivalent(own));
        count(found.is_some());
    }
}

/// Entries that a [`clear`](SourceHashCache::clear) has left behind are not cloned.
impl<K: Clone, V: Clone, const WAYS: usize> Clone for SourceHashCache<K, V, WAYS> {
    fn clone(&self) -> Self {
        let is_present = |set: &Set<K, V, WAYS>| set.generation == self.generation;
        let sets = self.sets.copied(|set| if is_present(set) { set.clone() } else { Set::new() });
        Self { sets, ..*self }
    }
}

impl<K: fmt::Debug, V: fmt::Debug, const WAYS: usize> fmt::Debug for SourceHashCache<K, V, WAYS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It would take 2^32 clears otherwise.
    #[test]
    fn generations_that_begin_again_bring_nothing_back() {
        let mut cache: SourceHashCache<u32, u32, 2> = SourceHashCache::new(8).unwrap();
        let index = SourceIndex::new;
        _ = cache.insert(index(0), 0, 70);
        cache.generation = PAST - 2;
        _ = cache.insert(index(1), 1, 71);
        cache.len = 1;
        for _ in 0..3 {
            cache.clear();
            assert_eq!((cache.len(), cache.validate()), (0, Ok(())));
            assert_eq!([0, 1].map(|key| cache.peek(index(key), &key)), [None; 2]);
        }
        assert_eq!(cache.generation, 1);
        _ = cache.insert(index(0), 2, 72);
        assert_eq!((cache.peek(index(0), &2), cache.iter().count()), (Some(&72), 1));
    }
}
