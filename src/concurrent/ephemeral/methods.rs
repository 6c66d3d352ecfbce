//! Construction, lookups and updates of `ConcurrentStore`.

use alloc::vec::Vec;
use core::hash::{BuildHasher, Hash};
use core::time::Duration;

use equivalent::Equivalent;

use super::{ConcurrentStore, MIN_PER_SHARD, Shard, ShardStore};
use crate::concurrent::lock::Lock;
use crate::concurrent::policy::{SHARDS, mix, shard_of};
use crate::ephemeral::{Full, StoreError};
use crate::hash::DefaultHashBuilder;
use crate::invariant::InvariantError;
use crate::memory::{Allocator, Global};
use crate::timestamp::Timestamp;

impl<T, V> ConcurrentStore<T, V> {
    /// Creates a store for `capacity` bindings or more, which live for `lifetime`, with a randomly
    /// keyed hasher. O(capacity): all memory is allocated here.
    ///
    /// # Errors
    ///
    /// Those of [`new`](crate::EphemeralStore::new) of a store for one thread.
    pub fn new(capacity: usize, lifetime: Duration) -> Result<Self, StoreError> {
        Self::with_parts(capacity, lifetime, DefaultHashBuilder::new())
    }
}

impl<T, V, S> ConcurrentStore<T, V, S> {
    /// Creates a store with a given hasher, as
    /// [`with_parts`](crate::EphemeralStore::with_parts) for one thread.
    ///
    /// # Errors
    ///
    /// Those of [`new`](crate::EphemeralStore::new) of a store for one thread.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::DefaultHashBuilder;
    /// use flowtable::concurrent::ConcurrentStore;
    /// use std::time::Duration;
    ///
    /// let (lifetime, hasher) = (Duration::from_secs(10), DefaultHashBuilder::with_seed(7));
    /// let store: ConcurrentStore =
    ///     ConcurrentStore::with_parts(50_000, lifetime, hasher)?;
    /// assert!(store.capacity() >= 50_000 && store.allocation_size() < 50_000 * 50);
    /// assert_eq!((store.lifetime(), store.len(), store.is_empty()), (lifetime, 0, true));
    /// # Ok::<(), flowtable::ephemeral::StoreError>(())
    /// ```
    pub fn with_parts(capacity: usize, lifetime: Duration, hasher: S) -> Result<Self, StoreError> {
        Self::with_parts_in(capacity, lifetime, hasher, Global)
    }
}

impl<T, V, S, A: Allocator + Clone> ConcurrentStore<T, V, S, A> {
    /// Creates a store as [`with_parts`](ConcurrentStore::with_parts), whose shards are in the
    /// memory of an allocator: three blocks each, which are allocated here. Threads can share the
    /// store if they can share the allocator.
    ///
    /// # Errors
    ///
    /// Those of [`new`](crate::EphemeralStore::new) of a store for one thread.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::concurrent::ConcurrentStore;
    /// use flowtable::{DefaultHashBuilder, Timestamp};
    /// use std::time::Duration;
    ///
    /// let arena = bumpalo::Bump::new();
    /// let (lifetime, hasher) = (Duration::from_secs(10), DefaultHashBuilder::with_seed(7));
    /// let store: ConcurrentStore<u64, u32, _, _> =
    ///     ConcurrentStore::with_parts_in(1000, lifetime, hasher, &arena)?;
    /// store.insert_new(1, Timestamp::ZERO, 10).unwrap();
    /// assert_eq!(store.get(&1, Timestamp::from_secs(9)), Some(10));
    /// assert!(arena.allocated_bytes() > 1000 * size_of::<(u64, u32)>());
    /// # Ok::<(), flowtable::ephemeral::StoreError>(())
    /// ```
    pub fn with_parts_in(
        capacity: usize,
        lifetime: Duration,
        hasher: S,
        memory: A,
    ) -> Result<Self, StoreError> {
        let count = SHARDS.min((capacity / MIN_PER_SHARD).max(1).next_power_of_two());
        let mean = capacity.div_ceil(count);
        // More than six standard deviations of the bindings in a shard: of up to 64 shards, none
        // has more bindings but for the chance of E4.
        let spare = if count > 1 { 6 * (mean.isqrt() + 1) } else { 0 };
        let slots = mean.saturating_add(spare);
        let shard = || ShardStore::with_parts_in(slots, lifetime, (), memory.clone());
        let shards = (0..count).map(|_| Ok(Shard(Lock::new(shard()?))));
        let shards: Result<Vec<_>, StoreError> = shards.collect();
        let shards = shards?.into_boxed_slice();
        // Rounded to ticks, as the shards have it.
        let lifetime = shards[0].0.lock().lifetime();
        Ok(Self { hasher, lifetime, shards })
    }

    pub(super) fn shard_of(&self, hash: u64) -> &Shard<T, V, A> {
        &self.shards[shard_of(mix(hash)) & (self.shards.len() - 1)]
    }

    /// Calls `each` with the store of each shard, under its lock, and returns the sum of the
    /// results.
    pub(super) fn sum(&self, each: impl Fn(&mut ShardStore<T, V, A>) -> usize) -> usize {
        self.shards.iter().map(|shard| each(&mut shard.0.lock())).sum()
    }

    /// Returns the number of slots of all shards: see E4 of the [module](super).
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.sum(|store| store.capacity())
    }

    /// Returns the lifetime of a binding.
    #[must_use]
    pub const fn lifetime(&self) -> Duration {
        self.lifetime
    }

    /// Returns the number of allocated bytes.
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        size_of_val(&*self.shards) + self.sum(|store| store.allocation_size())
    }

    /// Returns the number of bindings that occupy a slot. Not a snapshot: shards are counted one
    /// after the other, here and in the methods below.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sum(|store| store.len())
    }

    /// Returns whether no binding occupies a slot.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of [live](crate::EphemeralStore::live) bindings.
    #[must_use]
    pub fn live(&self, now: Timestamp) -> usize {
        self.sum(|store| store.live(now))
    }

    /// Reclaims at most `budget` expired bindings of each shard. Returns their number.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::Timestamp;
    /// use flowtable::concurrent::ConcurrentStore;
    /// use std::time::Duration;
    ///
    /// let store: ConcurrentStore = ConcurrentStore::new(1000, Duration::from_secs(10))?;
    /// for tag in 0..100 {
    ///     store.insert_new(tag, Timestamp::ZERO, tag).unwrap();
    /// }
    /// assert_eq!(store.clean(Timestamp::from_secs(10), 1000), 100);
    /// store.insert_new(7, Timestamp::from_secs(10), 7).unwrap();
    /// store.clear();
    /// assert!(store.is_empty());
    /// # Ok::<(), flowtable::ephemeral::StoreError>(())
    /// ```
    pub fn clean(&self, now: Timestamp, budget: usize) -> usize {
        self.sum(|store| store.clean(now, budget))
    }

    /// Removes all bindings, and resets the time.
    pub fn clear(&self) {
        self.shards.iter().for_each(|shard| shard.0.lock().clear());
    }
}

impl<T: Hash + Eq, V, S: BuildHasher, A: Allocator + Clone> ConcurrentStore<T, V, S, A> {
    /// Returns a copy of the value of a tag, if it has a live binding.
    #[must_use]
    pub fn get<Q>(&self, tag: &Q, now: Timestamp) -> Option<V>
    where
        Q: Hash + Equivalent<T> + ?Sized,
        V: Clone,
    {
        self.get_hashed(self.hash_of(tag), tag, now)
    }

    /// Calls `update` with a mutable reference to the value of a tag, if it has a live binding, and
    /// returns its result. Does not extend the life of the binding.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::Timestamp;
    /// use flowtable::concurrent::ConcurrentStore;
    /// use std::time::Duration;
    ///
    /// let store: ConcurrentStore<&str, Vec<u32>> =
    ///     ConcurrentStore::new(100, Duration::from_secs(10))?;
    /// assert!(store.insert_new("a", Timestamp::ZERO, vec![1]).unwrap());
    /// let push = |values: &mut Vec<u32>| {
    ///     values.push(2);
    ///     values.len()
    /// };
    /// assert_eq!(store.update("a", Timestamp::from_secs(9), push), Some(2));
    /// assert_eq!(store.update("a", Timestamp::from_secs(10), push), None);
    /// # Ok::<(), flowtable::ephemeral::StoreError>(())
    /// ```
    pub fn update<Q, R>(
        &self,
        tag: &Q,
        now: Timestamp,
        update: impl FnOnce(&mut V) -> R,
    ) -> Option<R>
    where
        Q: Hash + Equivalent<T> + ?Sized,
    {
        self.update_hashed(self.hash_of(tag), tag, now, update)
    }

    /// Creates a binding with this value, if the tag has none. Returns whether it did.
    ///
    /// # Errors
    ///
    /// [`Full`], with the tag, if there is no room: E4 of the [module](super).
    ///
    /// # Example
    ///
    /// Each request of a client is accepted once.
    ///
    /// ```
    /// use flowtable::Timestamp;
    /// use flowtable::concurrent::ConcurrentStore;
    /// use std::time::Duration;
    ///
    /// let nonces: ConcurrentStore<u64, ()> = ConcurrentStore::new(100, Duration::from_secs(10))?;
    /// let accept = |nonce, second| nonces.insert_new(nonce, Timestamp::from_secs(second), ());
    /// assert_eq!([accept(7, 0), accept(7, 9), accept(8, 9)], [Ok(true), Ok(false), Ok(true)]);
    /// # Ok::<(), flowtable::ephemeral::StoreError>(())
    /// ```
    pub fn insert_new(&self, tag: T, now: Timestamp, value: V) -> Result<bool, Full<T>> {
        self.insert_new_hashed(self.hash_of(&tag), tag, now, value)
    }

    /// Calls `each` with a mutable reference to the value of the live binding of a tag, and whether
    /// it was created by this call, with the result of `value`. Returns the result of `each`.
    ///
    /// # Errors
    ///
    /// [`Full`], with the tag, if there is no room: E4 of the [module](super). Neither closure is
    /// called.
    pub fn get_or_insert_with<R>(
        &self,
        tag: T,
        now: Timestamp,
        value: impl FnOnce() -> V,
        each: impl FnOnce(&mut V, bool) -> R,
    ) -> Result<R, Full<T>> {
        self.get_or_insert_with_hashed(self.hash_of(&tag), tag, now, value, each)
    }

    /// Removes the live binding of a tag and returns its value, as
    /// [`remove`](crate::EphemeralStore::remove) for one thread.
    pub fn remove<Q>(&self, tag: &Q, now: Timestamp) -> Option<V>
    where
        Q: Hash + Equivalent<T> + ?Sized,
    {
        self.remove_hashed(self.hash_of(tag), tag, now)
    }

    /// Removes the live bindings for which `keep` returns false, one shard after the other.
    /// O(capacity).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::Timestamp;
    /// use flowtable::concurrent::ConcurrentStore;
    /// use std::time::Duration;
    ///
    /// let store: ConcurrentStore = ConcurrentStore::new(100, Duration::from_secs(10))?;
    /// for tag in 0..10 {
    ///     store.insert_new(tag, Timestamp::ZERO, tag % 3).unwrap();
    /// }
    /// store.retain(Timestamp::from_secs(1), |_, value| *value == 0);
    /// assert_eq!(store.live(Timestamp::from_secs(1)), 4);
    /// # Ok::<(), flowtable::ephemeral::StoreError>(())
    /// ```
    pub fn retain(&self, now: Timestamp, keep: impl FnMut(&T, &mut V) -> bool) {
        self.retain_hashed(now, |tag| self.hash_of(tag), keep);
    }

    /// Checks the invariants of all shards, for tests. O(n).
    ///
    /// # Errors
    ///
    /// The first invariant that is broken: a bug in this crate.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::concurrent::ConcurrentStore;
    ///
    /// let store: ConcurrentStore = ConcurrentStore::new(100, std::time::Duration::MAX)?;
    /// assert_eq!(store.validate(), Ok(()));
    /// # Ok::<(), flowtable::ephemeral::StoreError>(())
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), InvariantError> {
        for (number, shard) in self.shards.iter().enumerate() {
            let store = shard.0.lock();
            let is_valid = store.validate_hashed(|tag| self.hasher.hash_one(tag));
            is_valid.map_err(|error| error.within(format_args!("shard {number}")))?;
        }
        Ok(())
    }
}
