//! A cache of buckets with chains of bounded length: the historical structure.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::vec::Vec;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::mem;

use super::{CacheError, Inserted, Statistics};
use crate::eviction::{EntryStats, Eviction, SecondChance};
use crate::hash::{DefaultHashBuilder, Query};
use crate::invariant::{InvariantError, ensure};
use crate::raw::slab::OptIndex;
use crate::raw::slab::Slab;
use crate::table::error::check_capacity;
use crate::timestamp::Timestamp;

/// The chains of a [`ChainedCache`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chains {
    /// The number of chains, rounded up to a power of two.
    pub buckets: usize,
    /// The entries of the longest chain: `gc_elasticity` of Linux.
    pub elasticity: usize,
}

/// A cache of buckets with chains, as the caches of the papers are.
///
/// ```text
///     heads      0 │ 2      1 │ –      2 │ 0      3 │ –           buckets: a power of two
///     slots      0 │ f, next – │   1 │ a, next – │   2 │ b, next 1 │
///     chains     ▸ 0: b, a         ▸ 2: f
/// ```
///
/// The other structures of this crate are compared with it. It is the route cache that Linux had
/// until 2012, with which the paper *TRASH* (2006) measures its trie (section 4.8: 32,768 and
/// 131,072 buckets, an elasticity of 4 and of 8), the table of calls of Birrell and Nelson (1984),
/// and the table of calls of Chandranmenon and Varghese (1995), section 3. A lookup follows a
/// pointer for each entry that it examines: a cache line each, where a
/// [`BoundedCache`](super::BoundedCache) compares twelve tags at once.
///
/// A new entry is the first of its chain. If the chain has its maximum length, the *elasticity*,
/// the least recently used entry of the chain is evicted; otherwise, in a full cache, the victim of
/// the policy `P`. So the chains of hostile keys are bounded, too: keys with one hash evict each
/// other.
///
/// | method | cost |
/// |---|---|
/// | `get`, `get_mut`, `peek`, `contains_key`, `remove` | O(1): at most as many entries as the elasticity |
/// | `insert`, `get_or_insert_with` | the same, and the policy |
/// | `new`, `with_parts`, `iter`, `retain`, `flush` | O(capacity + buckets) |
///
/// # Example
///
/// ```
/// use flowtable::cache::{ChainedCache, Chains};
///
/// let chains = Chains { buckets: 1, elasticity: 2 };
/// let mut routes: ChainedCache<&str, u32> = ChainedCache::new(100, chains)?;
/// for (port, host) in ["a", "b", "c"].into_iter().enumerate() {
///     _ = routes.insert(host, port as u32);
/// }
/// // The chain has two entries at most: "a" was evicted.
/// assert_eq!((routes.peek("a"), routes.peek("c")), (None, Some(&2)));
/// // The routing table has changed.
/// routes.flush();
/// assert!(routes.is_empty());
/// # Ok::<(), flowtable::cache::CacheError>(())
/// ```
#[derive(Clone)]
pub struct ChainedCache<K, V, P = SecondChance, S = DefaultHashBuilder> {
    heads: Vec<OptIndex>,
    slots: Slab<Chained<K, V>>,
    capacity: usize,
    elasticity: usize,
    policy: P,
    hasher: S,
    /// The number of uses so far: a clock for `last_use`.
    uses: u64,
    statistics: Statistics,
}

/// An entry of a chain.
#[derive(Clone, Debug)]
struct Chained<K, V> {
    hash: u64,
    next: OptIndex,
    /// The number of the last use.
    last_use: u64,
    /// Whether it was used since the policy examined it.
    used: bool,
    key: K,
    value: V,
}

impl<K, V> ChainedCache<K, V> {
    /// Creates a cache for this number of entries, with second-chance eviction.
    ///
    /// # Errors
    ///
    /// If the capacity or a number of [`Chains`] is zero, the size is 2^30 or more, or there is no
    /// memory for it.
    pub fn new(capacity: usize, chains: Chains) -> Result<Self, CacheError> {
        Self::with_parts(capacity, chains, SecondChance::new(), DefaultHashBuilder::new())
    }
}

impl<K, V, P: Eviction, S> ChainedCache<K, V, P, S> {
    /// Creates a cache with a policy, which must have no entries, and a hash. All memory is
    /// allocated here.
    ///
    /// # Errors
    ///
    /// As [`new`](ChainedCache::new).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::DefaultHashBuilder;
    /// use flowtable::cache::{CacheError, ChainedCache, Chains};
    /// use flowtable::eviction::Lru;
    ///
    /// let (policy, hasher) = (Lru::new(), DefaultHashBuilder::with_seed(7));
    /// let chains = Chains { buckets: 100, elasticity: 4 };
    /// let cache = ChainedCache::<u32, ()>::new(1000, chains)?;
    /// assert_eq!(cache.chains(), Chains { buckets: 128, elasticity: 4 });
    /// assert_eq!((cache.capacity(), cache.len()), (1000, 0));
    /// let none = Chains { buckets: 100, elasticity: 0 };
    /// let none = ChainedCache::<u32, (), _, _>::with_parts(1000, none, policy, hasher);
    /// assert_eq!(none.err(), Some(CacheError::NoCapacity));
    /// # Ok::<(), CacheError>(())
    /// ```
    pub fn with_parts(
        capacity: usize,
        chains: Chains,
        mut policy: P,
        hasher: S,
    ) -> Result<Self, CacheError> {
        let Chains { buckets, elasticity } = chains;
        check_capacity(capacity)?;
        check_capacity(buckets)?;
        if elasticity == 0 {
            return Err(CacheError::NoCapacity);
        }
        let (mut heads, mut slots) = (Vec::new(), Slab::new());
        let buckets = buckets.next_power_of_two();
        heads.try_reserve_exact(buckets).map_err(|_| CacheError::NoMemory)?;
        heads.resize(buckets, OptIndex::NONE);
        if !slots.try_reserve_exact(capacity) {
            return Err(CacheError::NoMemory);
        }
        policy.try_reserve(capacity as u32 - 1).map_err(|_| CacheError::NoMemory)?;
        let statistics = Statistics::default();
        Ok(Self { heads, slots, capacity, elasticity, policy, hasher, uses: 0, statistics })
    }

    /// Returns the number of bytes allocated by the cache and its policy.
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        let heads = self.heads.capacity() * size_of::<OptIndex>();
        heads + self.slots.allocation_size() + self.policy.allocation_size()
    }

    /// Removes all entries, as Linux does when its routes change. If the drop of one panics, others
    /// may stay.
    pub fn flush(&mut self) {
        self.retain(|_, _| false);
    }

    /// Retains the entries for which `keep` returns true.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::cache::{ChainedCache, Chains};
    ///
    /// let chains = Chains { buckets: 8, elasticity: 8 };
    /// let mut routes: ChainedCache<u32, u16> = ChainedCache::new(100, chains)?;
    /// for host in 0..10 {
    ///     _ = routes.insert(host, (host % 2) as u16);
    /// }
    /// // The router at port 1 has failed.
    /// routes.retain(|_, port| *port != 1);
    /// assert!(routes.iter().all(|(host, _)| host % 2 == 0));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        for slot in 0..self.slots.slot_count() {
            let entry = self.slots.get_mut(slot);
            if entry.is_some_and(|entry| !keep(&entry.key, &mut entry.value)) {
                drop(self.remove_at(slot));
            }
        }
    }

    /// Removes the entry at a slot from its chain.
    fn remove_at(&mut self, slot: u32) -> Option<Chained<K, V>> {
        let &Chained { hash, next, .. } = self.slots.get(slot)?;
        let before = self.chain(hash).take_while(|other| *other != slot).last();
        match before.and_then(|before| self.slots.get_mut(before)) {
            Some(before) => before.next = next,
            None => {
                let bucket = self.bucket(hash);
                self.heads[bucket] = next;
            }
        }
        self.policy.remove(slot);
        self.slots.try_remove(slot)
    }

    /// Returns the entry that an insertion into the chain of a hash evicts.
    fn victim(&mut self, hash: u64) -> Option<u32> {
        // Called for each insertion, as policies count the calls.
        let is_due = self.policy.is_due(self.len());
        if self.chain(hash).nth(self.elasticity - 1).is_some() {
            let last_use = |slot: &u32| self.slots.get(*slot).map(|entry| entry.last_use);
            return self.chain(hash).min_by_key(last_use);
        }
        if self.len() < self.capacity && !is_due {
            return None;
        }
        let Self { policy, slots, .. } = self;
        policy.victim(|slot| {
            let Some(entry) = slots.get_mut(slot) else { return EntryStats::default() };
            let used = mem::take(&mut entry.used);
            EntryStats { used, last_use: Timestamp::from_nanos(entry.last_use) }
        })
    }

    /// Records a use, and returns a mutable reference to the value.
    fn record_use(&mut self, slot: u32) -> Option<&mut V> {
        self.uses += 1;
        self.policy.touch(slot);
        let entry = self.slots.get_mut(slot)?;
        (entry.used, entry.last_use) = (true, self.uses);
        Some(&mut entry.value)
    }

    /// Inserts an absent key at the head of its chain. Returns its slot, unless the cache is full
    /// and the policy has no victim, and the entry that is not in the cache any more.
    fn insert_new(&mut self, hash: u64, key: K, value: V) -> (Option<u32>, Option<(K, V)>) {
        let evicted = self.victim(hash).and_then(|slot| self.remove_at(slot));
        let evicted = evicted.map(|entry| (entry.key, entry.value));
        if self.len() >= self.capacity {
            return (None, Some((key, value)));
        }
        self.uses += 1;
        let (bucket, last_use) = (self.bucket(hash), self.uses);
        let next = self.heads[bucket];
        let slot = self.slots.insert(Chained { hash, next, last_use, used: false, key, value });
        self.heads[bucket] = OptIndex::some(slot);
        self.policy.insert(slot, 0);
        self.statistics.count_insertion(evicted.is_some());
        (Some(slot), evicted)
    }
}

impl<K, V, P, S> ChainedCache<K, V, P, S> {
    /// Returns the maximum number of entries.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the number of entries.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns whether there are no entries.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of chains and their maximum length.
    #[must_use]
    pub fn chains(&self) -> Chains {
        Chains { buckets: self.heads.len(), elasticity: self.elasticity }
    }

    /// Returns the counters of lookups and insertions.
    #[must_use]
    pub const fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Returns the number of chains of each length, from 0 to the longest. O(buckets + entries).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::cache::{ChainedCache, Chains};
    ///
    /// let chains = Chains { buckets: 64, elasticity: 4 };
    /// let mut routes: ChainedCache<u32, ()> = ChainedCache::new(1000, chains)?;
    /// (0..64).for_each(|host| _ = routes.insert(host, ()));
    /// let lengths = routes.chain_lengths();
    /// assert!(lengths.len() <= 5 && lengths.iter().sum::<usize>() == 64);
    /// let entries = lengths.iter().enumerate().map(|(length, chains)| length * chains);
    /// assert_eq!(entries.sum::<usize>(), routes.len());
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    #[must_use]
    pub fn chain_lengths(&self) -> Vec<usize> {
        let mut lengths = Vec::new();
        for head in &self.heads {
            let length = self.list(*head).count();
            lengths.resize(lengths.len().max(length + 1), 0);
            lengths[length] += 1;
        }
        lengths
    }

    /// Iterates over the keys and values, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let entries = self.slots.slots().iter().filter_map(|slot| slot.entry());
        entries.map(|entry| (&entry.key, &entry.value))
    }

    fn bucket(&self, hash: u64) -> usize {
        hash as usize & (self.heads.len() - 1)
    }

    fn list(&self, first: OptIndex) -> impl Iterator<Item = u32> {
        first.list(|slot| self.slots.get(slot).map_or(OptIndex::NONE, |entry| entry.next))
    }

    /// The slots of the chain of a hash.
    fn chain(&self, hash: u64) -> impl Iterator<Item = u32> {
        self.list(self.heads[self.bucket(hash)])
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
    /// use flowtable::cache::{ChainedCache, Chains};
    ///
    /// let chains = Chains { buckets: 4, elasticity: 4 };
    /// let cache: ChainedCache<u32, ()> = ChainedCache::new(100, chains)?;
    /// assert_eq!(cache.validate(), Ok(()));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), InvariantError> {
        let mut chained = 0;
        for (bucket, head) in self.heads.iter().enumerate() {
            let chain = self.list(*head).take(self.elasticity + 1);
            let entries = chain.filter_map(|slot| self.slots.get(slot));
            let mut len = 0;
            for entry in entries {
                len += 1;
                let is_here = self.bucket(entry.hash) == bucket && entry.last_use <= self.uses;
                ensure(is_here, || format!("an entry of chain {bucket} has another hash"))?;
            }
            ensure(len <= self.elasticity, || format!("chain {bucket} is too long"))?;
            chained += len;
        }
        ensure(chained == self.len(), || "an entry is in no chain")?;
        ensure(self.len() <= self.capacity, || "there are more entries than the capacity")
    }
}

impl<K: Eq + Hash, V, P: Eviction, S: BuildHasher> ChainedCache<K, V, P, S> {
    fn find<Q: Query<K>>(&self, hash: u64, key: &Q) -> Option<u32> {
        let is_it = |entry: &Chained<K, V>| {
            entry.hash == hash && equivalent::Equivalent::equivalent(key.key(), &entry.key)
        };
        self.chain(hash).find(|slot| self.slots.get(*slot).is_some_and(is_it))
    }

    /// Returns the hash of a key, for a [`Prehashed`](crate::Prehashed).
    #[must_use]
    pub fn hash_of<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        self.hasher.hash_one(key)
    }

    /// Returns the value of `key`.
    pub fn get<Q: Query<K>>(&mut self, key: Q) -> Option<&V> {
        self.get_mut(key).map(|value| &*value)
    }

    /// Returns a mutable reference to the value of `key`.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::Prehashed;
    /// use flowtable::cache::{ChainedCache, Chains};
    ///
    /// let chains = Chains { buckets: 128, elasticity: 8 };
    /// let mut cache: ChainedCache<&str, u32> = ChainedCache::new(100, chains)?;
    /// let key = Prehashed { hash: cache.hash_of("name"), key: "name" };
    /// _ = cache.insert("name", 1);
    /// *cache.get_mut(key).unwrap() += 1;
    /// assert_eq!((cache.peek("name"), cache.contains_key("other")), (Some(&2), false));
    /// assert_eq!((cache.remove(key), cache.remove(key)), (Some(2), None));
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    pub fn get_mut<Q: Query<K>>(&mut self, key: Q) -> Option<&mut V> {
        let slot = self.find(key.hash_with(&self.hasher), &key);
        self.statistics.count_lookup(slot.is_some());
        self.record_use(slot?)
    }

    /// Returns the value of `key` without recording a use or a hit.
    #[must_use]
    pub fn peek<Q: Query<K>>(&self, key: Q) -> Option<&V> {
        let slot = self.find(key.hash_with(&self.hasher), &key)?;
        self.slots.get(slot).map(|entry| &entry.value)
    }

    /// Returns whether `key` has a value, without recording a use or a hit.
    #[must_use]
    pub fn contains_key<Q: Query<K>>(&self, key: Q) -> bool {
        self.peek(key).is_some()
    }

    /// Inserts or replaces the value of `key`. A new entry may evict the least recently used entry
    /// of its chain, or the victim of the policy.
    ///
    /// If the cache is full and the policy has no victim, `evicted` is the new entry. Policies of
    /// this crate always have a victim.
    pub fn insert(&mut self, key: K, value: V) -> Inserted<K, V> {
        let hash = self.hasher.hash_one(&key);
        if let Some(slot) = self.find(hash, &&key) {
            let previous = self.record_use(slot).map(|own| mem::replace(own, value));
            return Inserted { previous, evicted: None };
        }
        Inserted { previous: None, evicted: self.insert_new(hash, key, value).1 }
    }

    /// Returns a mutable reference to the value of `key`, after inserting the result of `make` if
    /// the key is absent. An evicted entry is dropped.
    ///
    /// # Panics
    ///
    /// If the cache is full and the policy has no victim. Policies of this crate always have one.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::cache::{ChainedCache, Chains};
    ///
    /// let chains = Chains { buckets: 128, elasticity: 8 };
    /// let mut lengths: ChainedCache<String, usize> = ChainedCache::new(100, chains)?;
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
        let hash = key.hash_with(&self.hasher);
        let found = self.find(hash, &key);
        self.statistics.count_lookup(found.is_some());
        let slot = found.or_else(|| {
            let value = make(key.key());
            self.insert_new(hash, key.key().to_owned(), value).0
        });
        let value = slot.and_then(|slot| self.record_use(slot));
        value.expect("the policy of a full cache has no victim")
    }

    /// Removes `key` and returns its value.
    pub fn remove<Q: Query<K>>(&mut self, key: Q) -> Option<V> {
        let slot = self.find(key.hash_with(&self.hasher), &key)?;
        self.remove_at(slot).map(|entry| entry.value)
    }
}

impl<K: fmt::Debug, V: fmt::Debug, P, S> fmt::Debug for ChainedCache<K, V, P, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
