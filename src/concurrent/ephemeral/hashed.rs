//! Methods that take the hash of a tag, and iteration.

use alloc::vec::Vec;
use core::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::{ConcurrentStore, ShardStore};
use crate::concurrent::lock::LockGuard;
use crate::ephemeral::Full;
use crate::memory::Allocator;
use crate::timestamp::Timestamp;

impl<T, V, S, A: Allocator + Clone> ConcurrentStore<T, V, S, A> {
    /// Iterates over copies of the tags and values of the live bindings, in no particular order.
    /// O(capacity).
    ///
    /// The bindings of a shard are copied under its lock when the iterator comes to it, so each
    /// shard is as it was at a moment of its own, and no lock is held between two calls of the
    /// iterator. It allocates memory for the bindings of one shard at a time.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::Timestamp;
    /// use flowtable::concurrent::ConcurrentStore;
    /// use std::time::Duration;
    ///
    /// let store: ConcurrentStore = ConcurrentStore::new(1000, Duration::from_secs(10))?;
    /// for tag in 0..300 {
    ///     store.insert_new(tag, Timestamp::from_millis(100 * tag), 2 * tag).unwrap();
    /// }
    /// let mut live: Vec<(u64, u64)> = store.iter(Timestamp::from_secs(31)).collect();
    /// live.sort_unstable();
    /// assert!(live.into_iter().eq((211..300).map(|tag| (tag, 2 * tag))));
    /// # Ok::<(), flowtable::ephemeral::StoreError>(())
    /// ```
    pub fn iter(&self, now: Timestamp) -> impl Iterator<Item = (T, V)>
    where
        T: Clone,
        V: Clone,
    {
        self.shards.iter().flat_map(move |shard| {
            let store = shard.0.lock();
            let live = store.iter(now).map(|(tag, value)| (tag.clone(), value.clone()));
            live.collect::<Vec<(T, V)>>()
        })
    }
}

impl<T: Eq, V, S, A: Allocator + Clone> ConcurrentStore<T, V, S, A> {
    /// Locks the shard of a hash.
    fn lock(&self, hash: u64) -> LockGuard<'_, ShardStore<T, V, A>> {
        self.shard_of(hash).0.lock()
    }

    /// Returns a copy of the value of a tag, if it has a live binding, given its hash.
    ///
    /// Equal tags must have equal hashes: so a store is used with the hashes of its hasher, or with
    /// those of the caller.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::Timestamp;
    /// use flowtable::concurrent::ConcurrentStore;
    /// use std::time::Duration;
    ///
    /// // It has no hasher: a network card computes the hashes.
    /// let store: ConcurrentStore<&str, u32, ()> =
    ///     ConcurrentStore::with_parts(100, Duration::from_secs(10), ())?;
    /// let (hash, now) = (0x51cc_c178, Timestamp::ZERO);
    /// assert_eq!(store.insert_new_hashed(hash, "a", now, 1), Ok(true));
    /// assert_eq!(store.update_hashed(hash, "a", now, |value| *value += 1), Some(()));
    /// let add = |value: &mut u32, _| {
    ///     *value += 1;
    ///     *value
    /// };
    /// assert_eq!(store.get_or_insert_with_hashed(hash, "a", now, || 7, add), Ok(3));
    /// assert_eq!(store.get_hashed(hash, "a", now), Some(3));
    /// store.retain_hashed(now, |_| hash, |_, value| *value > 2);
    /// assert_eq!(store.remove_hashed(hash, "a", now), Some(3));
    /// # Ok::<(), flowtable::ephemeral::StoreError>(())
    /// ```
    #[must_use]
    pub fn get_hashed<Q>(&self, hash: u64, tag: &Q, now: Timestamp) -> Option<V>
    where
        Q: Equivalent<T> + ?Sized,
        V: Clone,
    {
        self.lock(hash).get_hashed(hash, tag, now).cloned()
    }

    /// Calls `update` with a mutable reference to the value of a tag, if it has a live binding,
    /// given its hash, and returns its result. See [`update`](Self::update).
    pub fn update_hashed<Q, R>(
        &self,
        hash: u64,
        tag: &Q,
        now: Timestamp,
        update: impl FnOnce(&mut V) -> R,
    ) -> Option<R>
    where
        Q: Equivalent<T> + ?Sized,
    {
        self.lock(hash).get_mut_hashed(hash, tag, now).map(update)
    }

    /// Creates a binding with this value, if the tag has none, given its hash. Returns whether it
    /// did. See [`insert_new`](Self::insert_new).
    ///
    /// # Errors
    ///
    /// [`Full`], with the tag, if there is no room: E4 of the [module](super).
    pub fn insert_new_hashed(
        &self,
        hash: u64,
        tag: T,
        now: Timestamp,
        value: V,
    ) -> Result<bool, Full<T>> {
        // Before the lock: a value that is not used is dropped without it.
        let mut value = Some(value);
        let value = || value.take().expect("called once");
        let mut store = self.lock(hash);
        store.find_or_create_hashed(hash, tag, now, value).map(|bound| bound.is_new)
    }

    /// Calls `each` with a mutable reference to the value of the live binding of a tag, given its
    /// hash, and whether it was created by this call. See
    /// [`get_or_insert_with`](Self::get_or_insert_with).
    ///
    /// # Errors
    ///
    /// [`Full`], with the tag, if there is no room: E4 of the [module](super). Neither closure is
    /// called.
    pub fn get_or_insert_with_hashed<R>(
        &self,
        hash: u64,
        tag: T,
        now: Timestamp,
        value: impl FnOnce() -> V,
        each: impl FnOnce(&mut V, bool) -> R,
    ) -> Result<R, Full<T>> {
        let (mut is_new, mut store) = (false, self.lock(hash));
        let value = || {
            is_new = true;
            value()
        };
        let value = store.get_or_insert_with_hashed(hash, tag, now, value)?;
        Ok(each(value, is_new))
    }

    /// Removes the live binding of a tag and returns its value, given its hash.
    pub fn remove_hashed<Q>(&self, hash: u64, tag: &Q, now: Timestamp) -> Option<V>
    where
        Q: Equivalent<T> + ?Sized,
    {
        self.lock(hash).remove_hashed(hash, tag, now)
    }

    /// Removes the live bindings for which `keep` returns false, given the hashes under which they
    /// were created; those that are not found under their hash stay. O(capacity).
    pub fn retain_hashed(
        &self,
        now: Timestamp,
        mut hash_of: impl FnMut(&T) -> u64,
        mut keep: impl FnMut(&T, &mut V) -> bool,
    ) {
        for shard in &self.shards {
            shard.0.lock().retain_hashed(now, &mut hash_of, &mut keep);
        }
    }
}

impl<T: Hash + Eq, V, S: BuildHasher, A: Allocator + Clone> ConcurrentStore<T, V, S, A> {
    /// Returns the hash of a tag, for the methods that take one.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::Timestamp;
    /// use flowtable::concurrent::ConcurrentStore;
    /// use std::time::Duration;
    ///
    /// let store: ConcurrentStore = ConcurrentStore::new(100, Duration::from_secs(10))?;
    /// store.insert_new(7, Timestamp::ZERO, 1).unwrap();
    /// assert_eq!(store.get_hashed(store.hash_of(&7), &7, Timestamp::ZERO), Some(1));
    /// # Ok::<(), flowtable::ephemeral::StoreError>(())
    /// ```
    #[must_use]
    pub fn hash_of<Q: Hash + ?Sized>(&self, tag: &Q) -> u64 {
        self.hasher.hash_one(tag)
    }
}
