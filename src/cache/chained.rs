//! A bounded cache of hash chains with an eviction policy.

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::mem;

use equivalent::Equivalent;

use super::chains::{ChainedConfig, Chains};
use super::{CacheError, Inserted, Statistics};
use crate::eviction::{Eviction, SecondChance};
use crate::hash::DefaultHashBuilder;
use crate::invariant::InvariantError;
use crate::raw::prefetch::BURST;

/// A bounded cache of hash chains, with chains of bounded length and an eviction policy.
///
/// `S` is the hash: the crate's keyed one, or any other [`BuildHasher`], those without keys in
/// [`crate::hash`] included. Methods whose names end in `hashed` take a hash computed by the caller
/// instead, such as an index from the packet. All calls on one cache must use the same hash.
///
/// Two rules determine the victim of an insertion: if the chain has the maximum length, its least
/// recently used entry; otherwise, if the cache is full, the victim of the policy `P`. So a flood
/// of keys with one hash evicts its own entries, and no lookup examines more entries than the
/// elasticity.
///
/// | method | cost |
/// |---|---|
/// | `get`, `get_mut`, `peek`, `contains_key` | O(elasticity); a hit: 1 + n / (2 buckets) entries |
/// | `get_or_insert_with`, `insert`, `remove`, each key of a batch | O(elasticity) |
/// | `new`, `with_parts`, `iter`, `retain`, `clear`, `longest_chain` | O(capacity + buckets) |
/// | `len`, `allocation_size` | O(1) |
///
/// The memory of entries is allocated by the constructor. The cache panics if a policy implemented
/// by the user returns a vacant slot as victim.
///
/// Papers: Chandranmenon and Varghese, section 3, and Birrell and Nelson 1984. Bounded chains are
/// from the route cache that Linux had until 2012.
///
/// # Example
///
/// ```
/// use flowtable::ChainedCache;
///
/// let mut names: ChainedCache<&str, u32> = ChainedCache::new(2)?;
/// for (id, name) in ["a", "b", "c"].into_iter().enumerate() {
///     names.get_or_insert_with(name, |_| id as u32);
/// }
/// assert_eq!((names.len(), names.get("c")), (2, Some(&2)));
/// assert_eq!(names.statistics().evictions, 1);
/// # Ok::<(), flowtable::cache::CacheError>(())
/// ```
#[doc(alias("lru", "route cache"))]
#[derive(Clone)]
pub struct ChainedCache<K, V, P = SecondChance, S = DefaultHashBuilder> {
    chains: Chains<K, V>,
    policy: P,
    hasher: S,
    config: ChainedConfig,
    statistics: Statistics,
}

impl<K, V> ChainedCache<K, V> {
    /// Creates a cache with this capacity, at least twice as many buckets, chains of at most 8
    /// entries, and second-chance eviction.
    ///
    /// # Errors
    ///
    /// If the capacity is zero, 2^30 or more, or there is no memory for it.
    pub fn new(capacity: usize) -> Result<Self, CacheError> {
        Self::with_parts(
            ChainedConfig::new(capacity)?,
            SecondChance::new(),
            DefaultHashBuilder::new(),
        )
    }
}

impl<K, V, P, S> ChainedCache<K, V, P, S> {
    /// Creates a cache from a configuration, a policy, which must have no entries, and a hash.
    ///
    /// # Errors
    ///
    /// If there is no memory for it.
    ///
    /// # Example
    ///
    /// ```
    /// use core::hash::BuildHasherDefault;
    /// use flowtable::cache::{CacheError, ChainedConfig};
    /// use flowtable::hash::Crc32;
    /// use flowtable::ChainedCache;
    /// use flowtable::eviction::Lru;
    ///
    /// let config = ChainedConfig::new(1000)?.with_elasticity(4)?;
    /// let hasher = BuildHasherDefault::<Crc32>::new();
    /// let mut cache = ChainedCache::with_parts(config, Lru::new(), hasher)?;
    /// _ = cache.insert("a name", 1);
    /// assert_eq!(cache.get("a name"), Some(&1));
    /// # Ok::<(), CacheError>(())
    /// ```
    pub fn with_parts(config: ChainedConfig, policy: P, hasher: S) -> Result<Self, CacheError> {
        let (chains, statistics) = (Chains::new(&config)?, Statistics::default());
        Ok(Self { chains, policy, hasher, config, statistics })
    }

    /// Returns the configuration.
    #[must_use]
    pub const fn config(&self) -> ChainedConfig {
        self.config
    }

    /// Returns the maximum number of entries.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.config.capacity()
    }

    /// Returns the number of entries.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.chains.len()
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

    /// Returns the length of the longest chain, which the slowest lookup examines.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ChainedCache, cache::ChainedConfig, DefaultHashBuilder};
    /// use flowtable::eviction::Lru;
    ///
    /// // One bucket, so one chain: the fifth entry evicts the least recently used one.
    /// let config = ChainedConfig::new(100)?.with_buckets(1)?.with_elasticity(4)?;
    /// let mut cache = ChainedCache::with_parts(config, Lru::new(), DefaultHashBuilder::new())?;
    /// for port in 1..=5 {
    ///     _ = cache.insert(port, ());
    /// }
    /// assert_eq!((cache.longest_chain(), cache.config().elasticity()), (4, 4));
    /// assert!(!cache.contains_key(&1));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    #[must_use]
    pub fn longest_chain(&self) -> usize {
        self.chains.longest_chain()
    }

    /// Iterates over the entries in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let entries = self.chains.slots().map(|slot| self.chains.entry(slot));
        entries.map(|entry| (&entry.key, &entry.value))
    }

    /// Checks the invariants, for tests. O(capacity + buckets).
    ///
    /// # Errors
    ///
    /// The first invariant that does not hold.
    ///
    /// # Example
    ///
    /// ```
    /// let mut cache: flowtable::ChainedCache<u32, ()> = flowtable::ChainedCache::new(10)?;
    /// for key in 0..100 {
    ///     _ = cache.insert(key, ());
    ///     assert_eq!(cache.validate(), Ok(()));
    /// }
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), InvariantError> {
        self.chains.validate()
    }
}

impl<K, V, P: Eviction, S> ChainedCache<K, V, P, S> {
    /// Returns the number of bytes allocated, those of the policy included.
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        self.chains.allocation_size() + self.policy.allocation_size()
    }

    /// Retains the entries for which `keep` returns true.
    ///
    /// # Example
    ///
    /// ```
    /// let mut routes: flowtable::ChainedCache<u32, u16> = flowtable::ChainedCache::new(100)?;
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
        for bucket in 0..self.chains.buckets() {
            let mut previous = None;
            while let Some(slot) = self.chains.next_in_chain(bucket, previous) {
                let entry = self.chains.entry_mut(slot);
                if keep(&entry.key, &mut entry.value) {
                    previous = Some(slot);
                } else {
                    drop(self.remove_at(slot));
                }
            }
        }
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.retain(|_, _| false);
    }

    /// Removes the entry at a slot.
    pub(super) fn remove_at(&mut self, slot: u32) -> (K, V) {
        self.policy.remove(slot);
        self.chains.remove(slot)
    }

    /// Records a use of the entry at a slot, and returns a mutable reference to its value.
    #[inline]
    pub(super) fn record_use(&mut self, slot: u32) -> &mut V {
        self.policy.touch(slot);
        self.chains.record_use(slot)
    }

    /// Returns the next victim of the policy.
    pub(super) fn victim(&mut self) -> Option<u32> {
        let Self { policy, chains, .. } = self;
        policy.victim(|slot| chains.examine(slot))
    }

    #[inline]
    pub(super) fn chains(&self) -> &Chains<K, V> {
        &self.chains
    }

    /// Returns the victim of an insertion with this hash, if it must evict.
    fn victim_for(&mut self, hash: u32) -> Option<u32> {
        // Called for each insertion, as policies count the calls.
        let is_due = self.policy.is_due(self.len());
        match self.chains.victim_in_chain(hash) {
            None if is_due || self.len() >= self.capacity() => self.victim(),
            victim => victim,
        }
    }
}

impl<K: Eq, V, P: Eviction, S> ChainedCache<K, V, P, S> {
    /// Returns the value of `key`, given its hash, which must always be the same for equal keys.
    ///
    /// # Example
    ///
    /// ```
    /// let mut cache: flowtable::ChainedCache<&str, u32> = flowtable::ChainedCache::new(100)?;
    /// let hash = 0x51cc_c178; // from the network card, as all hashes of this cache
    /// _ = cache.insert_hashed(hash, "flow", 1);
    /// *cache.get_mut_hashed(hash, "flow").unwrap() += 1;
    /// *cache.get_or_insert_with_hashed(hash, "flow", |_| unreachable!("it exists")) += 1;
    /// cache.get_batch_mut_hashed(&[hash; 2], &["flow"; 2], |_, value| *value.unwrap() += 1);
    /// assert_eq!(cache.get_hashed(hash, "flow"), Some(&5));
    /// assert_eq!(cache.peek_hashed(hash + 1, "flow"), None); // not found by another hash
    /// assert_eq!(cache.remove_hashed(hash, "flow"), Some(5));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    #[inline]
    pub fn get_hashed<Q>(&mut self, hash: u64, key: &Q) -> Option<&V>
    where
        Q: Equivalent<K> + ?Sized,
    {
        self.get_mut_hashed(hash, key).map(|value| &*value)
    }

    /// Returns a mutable reference to the value of `key`, given its hash.
    #[inline]
    pub fn get_mut_hashed<Q>(&mut self, hash: u64, key: &Q) -> Option<&mut V>
    where
        Q: Equivalent<K> + ?Sized,
    {
        let slot = self.chains.find(hash as u32, |stored| key.equivalent(stored));
        self.statistics.count_lookup(slot.is_some());
        slot.map(|slot| self.record_use(slot))
    }

    /// Returns the value of `key`, given its hash, without recording a use or a hit.
    #[inline]
    #[must_use]
    pub fn peek_hashed<Q>(&self, hash: u64, key: &Q) -> Option<&V>
    where
        Q: Equivalent<K> + ?Sized,
    {
        let slot = self.chains.find(hash as u32, |stored| key.equivalent(stored))?;
        Some(&self.chains.entry(slot).value)
    }

    /// Inserts or replaces the value of `key`, given its hash. See [`insert`](Self::insert).
    pub fn insert_hashed(&mut self, hash: u64, key: K, value: V) -> Inserted<K, V> {
        let found = self.chains.find(hash as u32, |stored| key == *stored);
        if let Some(slot) = found {
            let previous = Some(mem::replace(self.record_use(slot), value));
            return Inserted { previous, evicted: None };
        }
        self.insert_new(hash as u32, key, value).1
    }

    /// Returns a mutable reference to the value of `key`, given its hash, after inserting the
    /// result of `make` if the key is absent. See [`get_or_insert_with`](Self::get_or_insert_with).
    ///
    /// # Panics
    ///
    /// If the cache is full and the policy has no victim. Policies of this crate always have one.
    pub fn get_or_insert_with_hashed(
        &mut self,
        hash: u64,
        key: K,
        make: impl FnOnce(&K) -> V,
    ) -> &mut V {
        let hash = hash as u32;
        let found = self.chains.find(hash, |stored| key == *stored);
        self.statistics.count_lookup(found.is_some());
        if let Some(slot) = found {
            return self.record_use(slot);
        }
        let value = make(&key);
        let slot = self.insert_new(hash, key, value).0;
        &mut self.chains.entry_mut(slot.expect("the policy of a full cache has no victim")).value
    }

    /// Inserts an entry, whose key must be absent. Returns its slot, unless the cache is full and
    /// the policy has no victim.
    pub(super) fn insert_new(
        &mut self,
        hash: u32,
        key: K,
        value: V,
    ) -> (Option<u32>, Inserted<K, V>) {
        let evicted = self.victim_for(hash).map(|slot| self.remove_at(slot));
        if self.len() >= self.capacity() {
            return (None, Inserted { previous: None, evicted: Some((key, value)) });
        }
        let slot = self.chains.insert(hash, key, value);
        self.policy.insert(slot, 0);
        self.statistics.count_insertion(evicted.is_some());
        (Some(slot), Inserted { previous: None, evicted })
    }

    /// Removes `key`, given its hash, and returns its value.
    pub fn remove_hashed<Q>(&mut self, hash: u64, key: &Q) -> Option<V>
    where
        Q: Equivalent<K> + ?Sized,
    {
        let slot = self.chains.find(hash as u32, |stored| key.equivalent(stored))?;
        Some(self.remove_at(slot).1)
    }

    /// Calls `each` with the index of each key in `keys` and a mutable reference to its value, in
    /// order, given the hashes. Cache misses overlap.
    ///
    /// # Panics
    ///
    /// If `hashes` and `keys` differ in length.
    pub fn get_batch_mut_hashed<Q>(
        &mut self,
        hashes: &[u64],
        keys: &[Q],
        mut each: impl FnMut(usize, Option<&mut V>),
    ) where
        Q: Equivalent<K>,
    {
        assert_eq!(keys.len(), hashes.len(), "one hash for each key");
        for (burst, (hashes, keys)) in hashes.chunks(BURST).zip(keys.chunks(BURST)).enumerate() {
            self.prefetch(hashes);
            for (index, (&hash, key)) in hashes.iter().zip(keys).enumerate() {
                each(burst * BURST + index, self.get_mut_hashed(hash, key));
            }
        }
    }

    /// Prefetches the heads of the chains, then their first entries.
    #[inline]
    fn prefetch(&self, hashes: &[u64]) {
        hashes.iter().for_each(|&hash| self.chains.prefetch_head(hash as u32));
        hashes.iter().for_each(|&hash| self.chains.prefetch_first(hash as u32));
    }
}

impl<K: Eq + Hash, V, P: Eviction, S: BuildHasher> ChainedCache<K, V, P, S> {
    /// Returns the hash of a key, for the methods that take one.
    ///
    /// # Example
    ///
    /// ```
    /// let mut cache: flowtable::ChainedCache<&str, u32> = flowtable::ChainedCache::new(100)?;
    /// let hash = cache.hash_of("name");
    /// _ = cache.insert("name", 1);
    /// assert_eq!(cache.get_hashed(hash, "name"), Some(&1));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn hash_of<Q>(&self, key: &Q) -> u64
    where
        Q: Hash + ?Sized,
    {
        self.hasher.hash_one(key)
    }

    /// Returns the value of `key`.
    #[inline]
    pub fn get<Q>(&mut self, key: &Q) -> Option<&V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.get_hashed(self.hash_of(key), key)
    }

    /// Returns a mutable reference to the value of `key`.
    #[inline]
    pub fn get_mut<Q>(&mut self, key: &Q) -> Option<&mut V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.get_mut_hashed(self.hash_of(key), key)
    }

    /// Returns whether `key` has a value, without recording a use or a hit.
    #[inline]
    #[must_use]
    pub fn contains_key<Q>(&self, key: &Q) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.peek(key).is_some()
    }

    /// Returns the value of `key` without recording a use or a hit.
    #[inline]
    #[must_use]
    pub fn peek<Q>(&self, key: &Q) -> Option<&V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.peek_hashed(self.hash_of(key), key)
    }

    /// Returns a mutable reference to the value of `key`, after inserting the result of `make` if
    /// the key is absent.
    ///
    /// An evicted entry is dropped; [`insert`](Self::insert) returns it instead.
    ///
    /// # Panics
    ///
    /// If the cache is full and the policy has no victim. Policies of this crate always have one.
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce(&K) -> V) -> &mut V {
        self.get_or_insert_with_hashed(self.hash_of(&key), key, make)
    }

    /// Inserts or replaces the value of `key`. A new entry may evict another one.
    ///
    /// If the cache is full and the policy has no victim, `evicted` is the new entry. Policies of
    /// this crate always have a victim.
    pub fn insert(&mut self, key: K, value: V) -> Inserted<K, V> {
        self.insert_hashed(self.hash_of(&key), key, value)
    }

    /// Removes `key` and returns its value.
    pub fn remove<Q>(&mut self, key: &Q) -> Option<V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.remove_hashed(self.hash_of(key), key)
    }

    /// Calls `each` with the index of each key in `keys` and a mutable reference to its value, in
    /// order. Cache misses overlap.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::ChainedCache;
    ///
    /// let mut bytes: ChainedCache<u16, u64> = ChainedCache::new(100)?;
    /// _ = bytes.insert(443, 0);
    /// let mut unknown = vec![];
    /// bytes.get_batch_mut(&[443, 53, 443], |packet, flow| match flow {
    ///     Some(bytes) => *bytes += 100,
    ///     None => unknown.push(packet),
    /// });
    /// assert_eq!((bytes.peek(&443), unknown), (Some(&200), vec![1]));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    pub fn get_batch_mut<Q>(&mut self, keys: &[Q], mut each: impl FnMut(usize, Option<&mut V>))
    where
        Q: Hash + Equivalent<K>,
    {
        for (burst, keys) in keys.chunks(BURST).enumerate() {
            let mut hashes = [0; BURST];
            hashes.iter_mut().zip(keys).for_each(|(hash, key)| *hash = self.hash_of(key));
            let hashes = &hashes[..keys.len()];
            self.get_batch_mut_hashed(hashes, keys, |index, value| {
                each(burst * BURST + index, value);
            });
        }
    }
}

impl<K: fmt::Debug, V: fmt::Debug, P, S> fmt::Debug for ChainedCache<K, V, P, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
