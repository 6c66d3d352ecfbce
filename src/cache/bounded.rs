//! A bounded cache with an eviction policy.

use alloc::borrow::ToOwned;
use core::convert::Infallible;
use core::hash::{BuildHasher, Hash};
use core::mem;

use equivalent::Equivalent;

use super::entries::Entries;
use super::{CacheError, Inserted, Statistics};
use crate::eviction::{Eviction, SecondChance};
use crate::hash::{DefaultHashBuilder, Query};
use crate::invariant::InvariantError;
use crate::memory::{Allocator, Global};
use crate::raw::burst::BurstVec;
use crate::table::error::check_capacity;
use crate::table::lines::fold;
use crate::table::records::Record;
use crate::table::records::{Bursts, Hashed};

/// The maximum number of entries with one hash.
const EQUAL_HASHES: usize = 8;

/// A bounded cache by key, with an eviction policy.
///
/// `S` is the hash: the crate's keyed one, or any other [`BuildHasher`], those without keys in
/// [`crate::hash`] included. A [`Prehashed`](crate::Prehashed) key has a hash that the caller knows
/// already. All calls on one cache must use the same hash.
///
/// Two rules determine the victim of an insertion: if eight entries have the hash of the new one,
/// the least recently used of them; otherwise, if the cache is full, the victim of the policy `P`.
/// So a flood of keys with one hash evicts its own entries. An entry for which there is no room
/// near its place, because of hashes that are not random, is evicted by the next insertion.
///
/// | method | cost |
/// |---|---|
/// | `get`, `get_mut`, `peek`, `contains_key` | two cache lines: of the index, and of the entry |
/// | `get_or_insert_with`, `try_get_or_insert_with`, `insert`, `remove`, each key of a batch | O(1), and the policy |
/// | with the policy LRU: `peek_lru`, `pop_lru`, each entry of `iter_by_recency` | O(1) |
/// | `new`, `with_parts`, `set_capacity`, `clear` | O(capacity) |
/// | `iter`, `iter_mut`, `retain`, `extract_if` | O(capacity) |
/// | `len`, `allocation_size` | O(1) |
///
/// The memory of entries is allocated by the constructor, and by `set_capacity`. The cache panics
/// if a policy implemented by the user returns a vacant slot as victim.
///
/// The caches of the papers have chains: see [`ChainedCache`](super::ChainedCache). Here the index
/// compares twelve tags at once.
///
/// # Example
///
/// ```
/// use flowtable::BoundedCache;
///
/// let mut names: BoundedCache<&str, u32> = BoundedCache::new(2)?;
/// for (id, name) in ["a", "b", "c"].into_iter().enumerate() {
///     names.get_or_insert_with(&name, |_| id as u32);
/// }
/// assert_eq!((names.len(), names.get("c")), (2, Some(&2)));
/// assert_eq!(names.statistics().evictions, 1);
/// # Ok::<(), flowtable::cache::CacheError>(())
/// ```
#[doc(alias("lru"))]
#[derive(Clone)]
pub struct BoundedCache<K, V, P = SecondChance, S = DefaultHashBuilder, A = Global>
where
    A: Allocator + Clone,
{
    pub(super) entries: Entries<K, V, A>,
    pub(super) policy: P,
    hasher: S,
    statistics: Statistics,
}

impl<K, V> BoundedCache<K, V> {
    /// Creates a cache with this capacity and second-chance eviction.
    ///
    /// # Errors
    ///
    /// If the capacity is zero, 2^30 or more, or there is no memory for it.
    pub fn new(capacity: usize) -> Result<Self, CacheError> {
        Self::with_parts(capacity, SecondChance::new(), DefaultHashBuilder::new())
    }
}

impl<K, V, P: Eviction, S> BoundedCache<K, V, P, S> {
    /// Creates a cache with this capacity, a policy, which must have no entries, and a hash.
    ///
    /// # Errors
    ///
    /// If the capacity is zero, 2^30 or more, or there is no memory for it.
    ///
    /// # Example
    ///
    /// ```
    /// use core::hash::BuildHasherDefault;
    /// use flowtable::BoundedCache;
    /// use flowtable::eviction::Lru;
    /// use std::hash::DefaultHasher;
    ///
    /// let hasher = BuildHasherDefault::<DefaultHasher>::new();
    /// let mut cache = BoundedCache::with_parts(1000, Lru::new(), hasher)?;
    /// _ = cache.insert("a name", 1);
    /// assert_eq!(cache.get("a name"), Some(&1));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    pub fn with_parts(capacity: usize, policy: P, hasher: S) -> Result<Self, CacheError> {
        Self::with_parts_in(capacity, policy, hasher, Global)
    }
}

impl<K, V, P, S, A: Allocator + Clone> BoundedCache<K, V, P, S, A> {
    /// Returns the allocator that the cache was created with.
    #[must_use]
    pub fn allocator(&self) -> &A {
        self.entries.records().allocator()
    }

    /// Returns the maximum number of entries.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.entries.records().capacity()
    }

    /// Returns the number of entries.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.records().len()
    }

    /// Returns whether there are no entries.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the counters of lookups and insertions.
    #[must_use]
    pub const fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Checks the invariants, for tests. O(capacity).
    ///
    /// # Errors
    ///
    /// The first invariant that does not hold.
    ///
    /// # Example
    ///
    /// ```
    /// let mut cache: flowtable::BoundedCache<u32, ()> = flowtable::BoundedCache::new(10)?;
    /// for key in 0..100 {
    ///     _ = cache.insert(key, ());
    ///     assert_eq!(cache.validate(), Ok(()));
    /// }
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), InvariantError> {
        self.entries.validate()
    }
}

impl<K, V, P: Eviction, S, A: Allocator + Clone> BoundedCache<K, V, P, S, A> {
    /// Creates a cache as [`with_parts`](BoundedCache::with_parts), whose entries are in `memory`.
    /// The policy allocates its own memory.
    ///
    /// # Errors
    ///
    /// If the capacity is zero, 2^30 or more, or there is no memory for it.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::eviction::SecondChance;
    /// use flowtable::{BoundedCache, DefaultHashBuilder};
    ///
    /// let arena = bumpalo::Bump::new();
    /// let (policy, hasher) = (SecondChance::new_in(&arena), DefaultHashBuilder::with_seed(7));
    /// let mut names = BoundedCache::with_parts_in(1000, policy, hasher, &arena)?;
    /// _ = names.insert("a name", 1);
    /// assert!(names.allocator().allocated_bytes() > 1000 * 24);
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    pub fn with_parts_in(
        capacity: usize,
        mut policy: P,
        hasher: S,
        memory: A,
    ) -> Result<Self, CacheError> {
        let (entries, statistics) = (Entries::new_in(capacity, memory)?, Statistics::default());
        // Insertions allocate nothing.
        policy.try_reserve(capacity as u32 - 1).map_err(|_| CacheError::NoMemory)?;
        Ok(Self { entries, policy, hasher, statistics })
    }

    /// Returns the number of bytes allocated by the cache and its policy.
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        self.entries.records().allocation_size() + self.policy.allocation_size()
    }
}

impl<K, V, P, S, A> BoundedCache<K, V, P, S, A>
where
    K: Eq + Hash,
    P: Eviction,
    S: BuildHasher,
    A: Allocator + Clone,
{
    /// Returns the hash of a key, for a [`Prehashed`](crate::Prehashed).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{BoundedCache, Prehashed};
    ///
    /// let mut cache: BoundedCache<&str, u32> = BoundedCache::new(100)?;
    /// let name = Prehashed { hash: cache.hash_of("name"), key: "name" };
    /// _ = cache.insert("name", 1);
    /// *cache.get_mut(name).unwrap() += 1;
    /// assert_eq!(cache.peek("name"), Some(&2));
    /// assert_eq!((cache.remove(name), cache.remove("name")), (Some(2), None));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn hash_of<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        self.hasher.hash_one(key)
    }

    /// Returns the slot of the entry of a key.
    #[inline]
    fn find<Q: Query<K>>(&self, key: &Q) -> Option<u32> {
        let hash = fold(key.hash_with(&self.hasher));
        self.entries.find(hash, |stored| key.key().equivalent(stored))
    }

    /// Returns the value of `key`.
    #[inline]
    pub fn get<Q: Query<K>>(&mut self, key: Q) -> Option<&V> {
        self.get_mut(key).map(|value| &*value)
    }

    /// Returns a mutable reference to the value of `key`.
    #[inline]
    pub fn get_mut<Q: Query<K>>(&mut self, key: Q) -> Option<&mut V> {
        let (hash, key) = (fold(key.hash_with(&self.hasher)), key.key());
        let used = self.entries.use_entry(hash, move |stored| key.equivalent(stored));
        self.statistics.count_lookup(used.is_some());
        let (slot, value) = used?;
        self.policy.touch(slot);
        Some(value)
    }

    /// Returns whether `key` has a value, without recording a use or a hit.
    #[inline]
    #[must_use]
    pub fn contains_key<Q: Query<K>>(&self, key: Q) -> bool {
        self.find(&key).is_some()
    }

    /// Returns the value of `key` without recording a use or a hit.
    #[inline]
    #[must_use]
    pub fn peek<Q: Query<K>>(&self, key: Q) -> Option<&V> {
        let slot = self.find(&key)?;
        Some(&self.entries.records().record(slot).value)
    }

    /// Returns a mutable reference to the value of `key` without recording a use or a hit.
    ///
    /// # Example
    ///
    /// ```
    /// let mut ages: flowtable::BoundedCache<&str, u32> = flowtable::BoundedCache::new(100)?;
    /// ages.extend([("a", 1), ("b", 2)]);
    /// *ages.peek_mut("a").unwrap() += 1;
    /// assert_eq!((ages.promote("a"), ages.promote("c")), (true, false));
    /// assert_eq!((ages.peek("a"), ages.statistics().hits), (Some(&2), 0));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    pub fn peek_mut<Q: Query<K>>(&mut self, key: Q) -> Option<&mut V> {
        let slot = self.find(&key)?;
        Some(&mut self.entries.records_mut().record_mut(slot).value)
    }

    /// Records a use of `key`, but no hit. Returns whether it has a value.
    pub fn promote<Q: Query<K>>(&mut self, key: Q) -> bool {
        let found = self.find(&key);
        if let Some(slot) = found {
            self.record_use(slot);
        }
        found.is_some()
    }

    /// Returns a mutable reference to the value of `key`, after inserting the result of `make` if
    /// the key is absent.
    ///
    /// An evicted entry is dropped; [`insert`](Self::insert) returns it instead.
    ///
    /// # Panics
    ///
    /// If the cache is full and the policy has no victim. Policies of this crate always have one.
    ///
    /// # Example
    ///
    /// ```
    /// let mut lengths: flowtable::BoundedCache<String, usize> =
    ///     flowtable::BoundedCache::new(100)?;
    /// for _ in 0..2 {
    ///     assert_eq!(*lengths.get_or_insert_with("name", |name| name.len()), 4);
    /// }
    /// assert_eq!(lengths.statistics().hit_ratio(), Some(0.5));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    pub fn get_or_insert_with<Q>(&mut self, key: Q, make: impl FnOnce(&Q::Key) -> V) -> &mut V
    where
        Q: Query<K, Key: ToOwned<Owned = K>>,
    {
        let make = |key: &Q::Key| Ok::<_, Infallible>(make(key));
        let Ok(value) = self.try_get_or_insert_with(key, make);
        value
    }

    /// Returns a mutable reference to the value of `key`, after inserting the result of `make` if
    /// the key is absent and `make` returns a value.
    ///
    /// An evicted entry is dropped.
    ///
    /// # Errors
    ///
    /// The error of `make`. Then no entry is inserted or evicted.
    ///
    /// # Panics
    ///
    /// As [`get_or_insert_with`](Self::get_or_insert_with).
    ///
    /// # Example
    ///
    /// ```
    /// use core::net::{AddrParseError, IpAddr};
    ///
    /// let mut parsed: flowtable::BoundedCache<String, IpAddr> =
    ///     flowtable::BoundedCache::new(100)?;
    /// let mut parse = |text: &str| -> Result<IpAddr, AddrParseError> {
    ///     parsed.try_get_or_insert_with(text, |text| text.parse()).copied()
    /// };
    /// assert_eq!(parse("192.0.2.1"), Ok([192, 0, 2, 1].into()));
    /// assert!(parse("192.0.2").is_err());
    /// assert_eq!(parsed.len(), 1);
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    pub fn try_get_or_insert_with<Q, E>(
        &mut self,
        key: Q,
        make: impl FnOnce(&Q::Key) -> Result<V, E>,
    ) -> Result<&mut V, E>
    where
        Q: Query<K, Key: ToOwned<Owned = K>>,
    {
        let hash = fold(key.hash_with(&self.hasher));
        let found = self.entries.find(hash, |stored| key.key().equivalent(stored));
        self.statistics.count_lookup(found.is_some());
        if let Some(slot) = found {
            return Ok(self.record_use(slot));
        }
        let value = make(key.key())?;
        let slot = self.insert_new(hash, key.key().to_owned(), value).0;
        let slot = slot.expect("the policy of a full cache has no victim");
        Ok(&mut self.entries.records_mut().record_mut(slot).value)
    }

    /// Inserts or replaces the value of `key`. A new entry may evict the victim of the policy.
    ///
    /// If the cache is full and the policy has no victim, `evicted` is the new entry. Policies of
    /// this crate always have a victim.
    pub fn insert(&mut self, key: K, value: V) -> Inserted<K, V> {
        let hash = fold(self.hash_of(&key));
        if let Some(slot) = self.entries.find(hash, |stored| key == *stored) {
            let previous = Some(mem::replace(self.record_use(slot), value));
            return Inserted { previous, evicted: None };
        }
        self.insert_new(hash, key, value).1
    }

    /// Removes `key` and returns its value.
    pub fn remove<Q: Query<K>>(&mut self, key: Q) -> Option<V> {
        let slot = self.find(&key)?;
        Some(self.remove_at(slot).1)
    }

    /// Calls `each` with the index of each key and a mutable reference to its value, in the order
    /// of the keys. Cache misses overlap.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{BoundedCache, Prehashed};
    ///
    /// let mut bytes: BoundedCache<u16, u64> = BoundedCache::new(100)?;
    /// _ = bytes.insert(443, 0);
    /// let mut unknown = vec![];
    /// bytes.get_batch_mut(&[443, 53, 443], |packet, flow| match flow {
    ///     Some(bytes) => *bytes += 100,
    ///     None => unknown.push(packet),
    /// });
    /// assert_eq!((bytes.peek(&443), unknown), (Some(&200), vec![1]));
    ///
    /// let hashed = [443, 443].map(|key| Prehashed { hash: bytes.hash_of(&key), key });
    /// bytes.get_batch_mut(&hashed, |_, flow| *flow.unwrap() += 100);
    /// assert_eq!(bytes.peek(&443), Some(&400));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    pub fn get_batch_mut<I>(&mut self, keys: I, mut each: impl FnMut(usize, Option<&mut V>))
    where
        I: IntoIterator<Item: Query<K>>,
    {
        if !self.entries.records().is_large() {
            let keys = keys.into_iter().enumerate();
            return keys.for_each(|(index, key)| each(index, self.get_mut(key)));
        }
        let (mut bursts, mut slots) = (Bursts::new(keys.into_iter()), BurstVec::new());
        while let Some(burst) =
            bursts.next(self.entries.records(), |key| fold(key.hash_with(&self.hasher)))
        {
            // Uses are recorded after this: a store to an entry that is still looked up would delay
            // the loads of the next lookups.
            let slots = slots.fill(burst.iter().map(|Hashed { hash, key, .. }| {
                self.entries.find(*hash, |stored| key.key().equivalent(stored))
            }));
            for (key, slot) in burst.iter().zip(slots) {
                self.statistics.count_lookup(slot.is_some());
                each(key.index, slot.map(|slot| self.record_use(slot)));
            }
        }
    }
}

impl<K, V, P: Eviction, S, A: Allocator + Clone> BoundedCache<K, V, P, S, A> {
    /// Changes the capacity. Entries above a lower one are evicted and dropped: victims of the
    /// policy, or others if it has none. O(capacity).
    ///
    /// A lower capacity frees no memory: the cache may grow again.
    ///
    /// # Errors
    ///
    /// If the capacity is zero, 2^30 or more, or there is no memory for it. Nothing has changed
    /// then.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::BoundedCache;
    /// use flowtable::cache::CacheError;
    ///
    /// let mut names: BoundedCache<u32, &str> = BoundedCache::new(2)?;
    /// names.extend([(1, "a"), (2, "b")]);
    /// names.set_capacity(3)?;
    /// _ = names.insert(3, "c");
    /// assert_eq!((names.len(), names.set_capacity(0)), (3, Err(CacheError::NoCapacity)));
    /// names.set_capacity(1)?;
    /// assert_eq!((names.len(), names.get(&3)), (1, Some(&"c")));
    /// # Ok::<(), CacheError>(())
    /// ```
    pub fn set_capacity(&mut self, capacity: usize) -> Result<(), CacheError> {
        check_capacity(capacity)?;
        if capacity > self.capacity() {
            // Insertions allocate nothing.
            self.policy.try_reserve(capacity as u32 - 1).map_err(|_| CacheError::NoMemory)?;
        }
        while self.len() > capacity {
            let Some(victim) = self.victim() else { break };
            drop(self.remove_at(victim));
        }
        let mut excess = self.len().saturating_sub(capacity);
        if excess > 0 {
            self.retain(|_, _| {
                let is_kept = excess == 0;
                excess = excess.saturating_sub(1);
                is_kept
            });
        }
        Ok(self.entries.records_mut().set_capacity(capacity)?)
    }

    /// Removes the entry at a slot.
    pub(super) fn remove_at(&mut self, slot: u32) -> (K, V) {
        self.policy.remove(slot);
        let Record { key, value, .. } = self.entries.records_mut().remove(slot);
        (key, value)
    }

    /// Records a use of the entry at a slot, and returns a mutable reference to its value.
    #[inline]
    pub(super) fn record_use(&mut self, slot: u32) -> &mut V {
        self.policy.touch(slot);
        self.entries.record_use(slot)
    }

    /// Returns the next victim of the policy.
    pub(super) fn victim(&mut self) -> Option<u32> {
        let Self { policy, entries, .. } = self;
        policy.victim(|slot| entries.examine(slot))
    }

    /// Returns the victim of an insertion with this hash, if it must evict.
    fn victim_for(&mut self, hash: u32) -> Option<u32> {
        // Called for each insertion, as policies count the calls.
        let is_due = self.policy.is_due(self.len());
        let victim = self.entries.victim_of_hash(hash, EQUAL_HASHES);
        match victim.or_else(|| self.entries.records().overflowed()) {
            None if is_due || self.len() >= self.capacity() => self.victim(),
            victim => victim,
        }
    }

    /// Inserts an entry, whose key must be absent. Returns its slot, unless the cache is full and
    /// the policy has no victim.
    pub(super) fn insert_new(
        &mut self,
        hash: u32,
        key: K,
        value: V,
    ) -> (Option<u32>, Inserted<K, V>) {
        let inserted = match self.victim_for(hash) {
            // In its place: no slot is freed.
            Some(slot) => self.entries.replace(slot, hash, key, value).map(|evicted| {
                self.policy.replace(slot, 0);
                (slot, Some(evicted))
            }),
            None if self.len() >= self.capacity() => Err((key, value)),
            None => self.entries.insert(hash, key, value).map(|slot| {
                self.policy.insert(slot, 0);
                (slot, None)
            }),
        };
        match inserted {
            Ok((slot, evicted)) => {
                self.statistics.count_insertion(evicted.is_some());
                (Some(slot), Inserted { previous: None, evicted })
            }
            Err(entry) => (None, Inserted { previous: None, evicted: Some(entry) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::IdHasher;

    /// A unit test, as it needs hashes with one home in the index.
    #[test]
    #[cfg_attr(miri, ignore = "no unsafe code, and long")]
    fn hashes_with_one_home_fill_a_segment_and_then_evict_each_other() {
        let mut cache = BoundedCache::with_parts(2000, SecondChance::new(), IdHasher).unwrap();
        // The first two of 384 lines.
        for hash in (0..).filter(|hash| fold(*hash) & 0xff_0000 == 0).take(1500) {
            _ = cache.insert(hash, ());
            assert_eq!(cache.peek(&hash), Some(&()));
        }
        cache.validate().unwrap();
        // 64 lines of 12 slots, and one entry more.
        assert_eq!(cache.len(), 769);
    }
}
