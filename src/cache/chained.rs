//! The cache of chains of bounded length.

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::mem;

use equivalent::Equivalent;

use super::chains::{ChainedConfig, Chains};
use super::{Broken, CacheError, Inserted, Statistics};
use crate::eviction::{Eviction, SecondChance};
use crate::hash::DefaultHashBuilder;

/// Keys that go through the stages of a burst at a time.
const BURST: usize = 32;

/// A bounded cache of hash chains: new entries in front, chains of bounded length, and an eviction policy for when it is
/// full.
///
/// `S` is the hash: the crate's keyed one, any other [`BuildHasher`], those of [`crate::hash`] that are not keyed among
/// them; or the caller's own, an index that came with the packet, by the methods whose names end in `hashed`. One
/// cache must always be asked in the same way.
///
/// Two rules say who leaves for a new entry: if its chain is as long as chains may be, the one of the chain that was used
/// longest ago; else, if the cache is full, whom the policy `P` gives up. So a flood of keys with one hash displaces
/// its own, and a look-up never walks further than the elasticity.
///
/// | method | cost |
/// |---|---|
/// | `get`, `get_mut`, `peek`, `contains_key` | O(elasticity); 1 + n / (2 buckets) entries are examined for a hit on average |
/// | `get_or_insert_with`, `insert`, `remove`, and each key of a batch | the same |
/// | `new`, `with_parts`, `iter`, `retain`, `clear`, `longest_chain` | O(capacity + buckets) |
/// | `len`, `allocation_size` | O(1) |
///
/// What it allocates for entries it allocates when it is made. A policy of one's own that gives up a slot where
/// nobody is has it panic.
///
/// Papers: Chandranmenon and Varghese, section 3, and Birrell and Nelson 1984. The bounded chains are those of the routing
/// cache that Linux had until 2012.
///
/// # Example
///
/// ```
/// use flowtable::ChainedCache;
///
/// let mut names: ChainedCache<&str, u32> = ChainedCache::new(2)?;
/// for (number, name) in ["a", "b", "c"].into_iter().enumerate() {
///     names.get_or_insert_with(name, |_| number as u32);
/// }
/// assert_eq!((names.len(), names.get("c")), (2, Some(&2)));
/// assert_eq!(names.statistics().evictions, 1);
/// # Ok::<(), flowtable::cache::CacheError>(())
/// ```
#[derive(Clone)]
pub struct ChainedCache<K, V, P = SecondChance, S = DefaultHashBuilder> {
    chains: Chains<K, V>,
    policy: P,
    hasher: S,
    config: ChainedConfig,
    statistics: Statistics,
}

impl<K, V> ChainedCache<K, V> {
    /// A cache for so many entries, with twice as many buckets or more, chains of up to 8, and a clock.
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
    /// A cache of this size, with a policy, which must have no entries, and a hash.
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

    /// How large it is.
    #[must_use]
    pub const fn config(&self) -> ChainedConfig {
        self.config
    }

    /// The most entries that there are at once.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.config.capacity()
    }

    /// Number of entries.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.chains.len()
    }

    /// Whether there are no entries.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What came of look-ups and insertions.
    #[must_use]
    pub const fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Entries of the longest chain: what the slowest look-up examines.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ChainedCache, cache::ChainedConfig, DefaultHashBuilder};
    /// use flowtable::eviction::Lru;
    ///
    /// // One bucket: all is in one chain, and the fifth displaces the one that was used longest ago.
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
        self.chains.longest()
    }

    /// The entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let entries = self.chains.slots().map(|slot| self.chains.entry(slot));
        entries.map(|entry| (&entry.key, &entry.value))
    }

    /// Checks the invariants. O(capacity + buckets).
    ///
    /// # Errors
    ///
    /// Which one does not hold.
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
    pub fn validate(&self) -> Result<(), Broken> {
        self.chains.validate()
    }
}

impl<K, V, P: Eviction, S> ChainedCache<K, V, P, S> {
    /// Bytes allocated, with those of the policy.
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        self.chains.allocation_size() + self.policy.allocation_size()
    }

    /// Keeps the entries for which `keep` says so.
    ///
    /// # Example
    ///
    /// ```
    /// let mut routes: flowtable::ChainedCache<u32, u16> = flowtable::ChainedCache::new(100)?;
    /// for host in 0..10 {
    ///     _ = routes.insert(host, 1);
    /// }
    /// *routes.get_mut(&4).unwrap() = 2;
    /// // The router behind port 1 is gone.
    /// routes.retain(|_, port| *port != 1);
    /// assert!(routes.iter().eq([(&4, &2)]));
    /// assert_eq!((routes.remove(&4), routes.is_empty()), (Some(2), true));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        for bucket in 0..self.chains.buckets() {
            let mut before = None;
            while let Some(slot) = self.chains.next(bucket, before) {
                let entry = self.chains.entry_mut(slot);
                if keep(&entry.key, &mut entry.value) {
                    before = Some(slot);
                } else {
                    drop(self.take(slot));
                }
            }
        }
    }

    /// Takes out every entry.
    pub fn clear(&mut self) {
        self.retain(|_, _| false);
    }

    /// Takes out the entry at a slot.
    pub(super) fn take(&mut self, slot: u32) -> (K, V) {
        self.policy.remove(slot);
        self.chains.take(slot)
    }

    /// The value at a slot, which is used thereby.
    #[inline]
    pub(super) fn use_of(&mut self, slot: u32) -> &mut V {
        self.policy.touch(slot);
        self.chains.use_of(slot)
    }

    /// The entry that the policy gives up next.
    pub(super) fn victim(&mut self) -> Option<u32> {
        let Self { policy, chains, .. } = self;
        policy.victim(|slot| chains.look(slot))
    }

    #[inline]
    pub(super) fn chains(&self) -> &Chains<K, V> {
        &self.chains
    }

    /// Who leaves for an entry with this hash.
    fn leaves_for(&mut self, hash: u32) -> Option<u32> {
        // Policies count how often they are asked.
        let is_due = self.policy.is_due(self.len());
        match self.chains.displaced_by(hash) {
            None if is_due || self.len() >= self.capacity() => self.victim(),
            displaced => displaced,
        }
    }
}

impl<K: Eq, V, P: Eviction, S> ChainedCache<K, V, P, S> {
    /// The value of `key`, found by the caller's hash: the same for the same key, always.
    ///
    /// # Example
    ///
    /// ```
    /// let mut cache: flowtable::ChainedCache<&str, u32> = flowtable::ChainedCache::new(100)?;
    /// let hash = 0x51cc_c178; // of the network card, say; the cache is asked by such ones only
    /// _ = cache.insert_hashed(hash, "flow", 1);
    /// *cache.get_mut_hashed(hash, "flow").unwrap() += 1;
    /// *cache.get_or_insert_with_hashed(hash, "flow", |_| unreachable!("it is there")) += 1;
    /// cache.get_batch_mut_hashed(&[hash; 2], &["flow"; 2], |_, value| *value.unwrap() += 1);
    /// assert_eq!(cache.get_hashed(hash, "flow"), Some(&5));
    /// assert_eq!(cache.peek_hashed(hash + 1, "flow"), None); // under another hash it is not found
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

    /// The same, to change.
    #[inline]
    pub fn get_mut_hashed<Q>(&mut self, hash: u64, key: &Q) -> Option<&mut V>
    where
        Q: Equivalent<K> + ?Sized,
    {
        let slot = self.chains.find(hash as u32, |own| key.equivalent(own));
        self.statistics.count(slot.is_some());
        slot.map(|slot| self.use_of(slot))
    }

    /// The same without a trace: see [`peek`](Self::peek).
    #[inline]
    #[must_use]
    pub fn peek_hashed<Q>(&self, hash: u64, key: &Q) -> Option<&V>
    where
        Q: Equivalent<K> + ?Sized,
    {
        let slot = self.chains.find(hash as u32, |own| key.equivalent(own))?;
        Some(&self.chains.entry(slot).value)
    }

    /// Gives `key` a value under the caller's hash: see [`insert`](Self::insert).
    pub fn insert_hashed(&mut self, hash: u64, key: K, value: V) -> Inserted<K, V> {
        let found = self.chains.find(hash as u32, |own| key == *own);
        if let Some(slot) = found {
            let previous = Some(mem::replace(self.use_of(slot), value));
            return Inserted { previous, evicted: None };
        }
        self.insert_new(hash as u32, key, value).1
    }

    /// The value of `key`, found by the caller's hash; where it has none, the one that `make` finds: see
    /// [`get_or_insert_with`](Self::get_or_insert_with).
    ///
    /// # Panics
    ///
    /// If the cache is full and the policy, which is not of this crate, has nobody to give up.
    pub fn get_or_insert_with_hashed(
        &mut self,
        hash: u64,
        key: K,
        make: impl FnOnce(&K) -> V,
    ) -> &mut V {
        let hash = hash as u32;
        let found = self.chains.find(hash, |own| key == *own);
        self.statistics.count(found.is_some());
        if let Some(slot) = found {
            return self.use_of(slot);
        }
        let value = make(&key);
        let slot = self.insert_new(hash, key, value).0;
        &mut self.chains.entry_mut(slot.expect("a full cache has somebody to give up")).value
    }

    /// Puts in an entry whose key is not there. Its slot, unless the policy gives nobody up.
    pub(super) fn insert_new(
        &mut self,
        hash: u32,
        key: K,
        value: V,
    ) -> (Option<u32>, Inserted<K, V>) {
        let evicted = self.leaves_for(hash).map(|slot| self.take(slot));
        if self.len() >= self.capacity() {
            return (None, Inserted { previous: None, evicted: Some((key, value)) });
        }
        let slot = self.chains.push(hash, key, value);
        self.policy.insert(slot, 0);
        self.statistics.came(evicted.is_some());
        (Some(slot), Inserted { previous: None, evicted })
    }

    /// Takes out `key`, found by the caller's hash.
    pub fn remove_hashed<Q>(&mut self, hash: u64, key: &Q) -> Option<V>
    where
        Q: Equivalent<K> + ?Sized,
    {
        let slot = self.chains.find(hash as u32, |own| key.equivalent(own))?;
        Some(self.take(slot).1)
    }

    /// Calls `each` with the number of each key in the slice and its value, to change, in the order of the slice. The
    /// misses overlap.
    ///
    /// # Panics
    ///
    /// If there are not as many hashes as keys.
    pub fn get_batch_mut_hashed<Q>(
        &mut self,
        hashes: &[u64],
        keys: &[Q],
        mut each: impl FnMut(usize, Option<&mut V>),
    ) where
        Q: Equivalent<K>,
    {
        assert_eq!(keys.len(), hashes.len(), "a hash for each key");
        for (burst, (hashes, keys)) in hashes.chunks(BURST).zip(keys.chunks(BURST)).enumerate() {
            self.fetch(hashes);
            for (number, (&hash, key)) in hashes.iter().zip(keys).enumerate() {
                each(burst * BURST + number, self.get_mut_hashed(hash, key));
            }
        }
    }

    /// Asks for what a burst begins with: the heads, and when they are there the first entries.
    #[inline]
    fn fetch(&self, hashes: &[u64]) {
        hashes.iter().for_each(|&hash| self.chains.prefetch_head(hash as u32));
        hashes.iter().for_each(|&hash| self.chains.prefetch_first(hash as u32));
    }
}

impl<K: Eq + Hash, V, P: Eviction, S: BuildHasher> ChainedCache<K, V, P, S> {
    /// The hash of a key, for the methods that take one.
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

    /// The value of `key`.
    #[inline]
    pub fn get<Q>(&mut self, key: &Q) -> Option<&V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.get_hashed(self.hash_of(key), key)
    }

    /// The value of `key`, to change.
    #[inline]
    pub fn get_mut<Q>(&mut self, key: &Q) -> Option<&mut V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.get_mut_hashed(self.hash_of(key), key)
    }

    /// Whether `key` has a value, without a trace.
    #[inline]
    #[must_use]
    pub fn contains_key<Q>(&self, key: &Q) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.peek(key).is_some()
    }

    /// The value of `key`, without a trace: it does not count, neither as a use nor as a hit.
    #[inline]
    #[must_use]
    pub fn peek<Q>(&self, key: &Q) -> Option<&V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.peek_hashed(self.hash_of(key), key)
    }

    /// The value of `key`; where it has none, the one that `make` finds on the long way.
    ///
    /// The entry that leaves for it is dropped. Who needs it takes [`get_mut`](Self::get_mut) and [`insert`](Self::insert).
    ///
    /// # Panics
    ///
    /// If the cache is full and the policy, which is not of this crate, has nobody to give up.
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce(&K) -> V) -> &mut V {
        self.get_or_insert_with_hashed(self.hash_of(&key), key, make)
    }

    /// Gives `key` a value. A new entry may have another one leave for it.
    ///
    /// If the cache is full and the policy has nobody to give up, as those of this crate always do, it is the new
    /// entry that `evicted` has.
    pub fn insert(&mut self, key: K, value: V) -> Inserted<K, V> {
        self.insert_hashed(self.hash_of(&key), key, value)
    }

    /// Takes out `key` and returns its value.
    pub fn remove<Q>(&mut self, key: &Q) -> Option<V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.remove_hashed(self.hash_of(key), key)
    }

    /// Calls `each` with the number of each key in the slice and its value, to change, in the order of the slice. The
    /// misses overlap.
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
            self.get_batch_mut_hashed(hashes, keys, |number, value| {
                each(burst * BURST + number, value);
            });
        }
    }
}

impl<K: fmt::Debug, V: fmt::Debug, P, S> fmt::Debug for ChainedCache<K, V, P, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
