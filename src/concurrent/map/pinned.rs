//! A view of a map: how it is read.

use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;

use crossbeam_epoch::Guard;
use equivalent::Equivalent;

use super::ConcurrentMap;
use super::directory::{path, shard_of};
use super::index::Entry;
use crate::concurrent::sync::{Ordering, fence};
use crate::hash::DefaultHashBuilder;

/// A view of a [`ConcurrentMap`], with a map's methods: see [`pin`](ConcurrentMap::pin).
///
/// References that it gives live as long as it is borrowed: whatever others do, nothing that it has seen is
/// dropped before it ends, or is [`repin`](Self::repin)ned. So one that is kept for long keeps garbage.
///
/// It stays with its thread, and does not keep anybody from writing, itself included.
///
/// # Example
///
/// ```
/// let map = flowtable::ConcurrentMap::new();
/// let pin = map.pin();
/// pin.insert("key", 1)?;
/// let old = pin.get("key").unwrap();
/// pin.insert("key", 2)?;
/// pin.remove("key");
/// assert_eq!((*old, pin.get("key")), (1, None));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Pinned<'m, K, V, S = DefaultHashBuilder> {
    pub(super) map: &'m ConcurrentMap<K, V, S>,
    pub(super) guard: Guard,
    /// Not `Sync`, whatever the guard is.
    here: PhantomData<*const ()>,
}

impl<'m, K, V, S> Pinned<'m, K, V, S> {
    pub(super) fn new(map: &'m ConcurrentMap<K, V, S>) -> Self {
        Self { map, guard: crossbeam_epoch::pin(), here: PhantomData }
    }

    /// The map.
    #[must_use]
    pub fn map(&self) -> &'m ConcurrentMap<K, V, S> {
        self.map
    }

    /// Number of entries: see [`ConcurrentMap::len`].
    #[must_use]
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Lets go of all that has been seen, as if the pin had ended and another one begun. Cheaper than that.
    ///
    /// If the thread has other pins, nothing is let go of before they have ended, too.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([(1, 'a'), (2, 'b')]);
    /// let mut pin = map.pin();
    /// for burst in [[1, 2], [2, 3]] {
    ///     let found = pin.get_many(burst.each_ref());
    ///     assert_eq!(found[0].is_some(), true);
    ///     pin.repin();
    /// }
    /// ```
    pub fn repin(&mut self) {
        self.guard.repin();
        // SeqCst: pairs with the fence that the collector has before it looks at the epoch of what is
        // retired. The guard's own `repin` has none, and what is read next must not be from before the
        // epoch that it has just noted.
        fence(Ordering::SeqCst);
    }
}

impl<K: Eq + Hash, V, S: BuildHasher> Pinned<'_, K, V, S> {
    /// The hash of `key` under the map's hasher: what the methods that take a hash expect.
    #[inline]
    pub fn hash_of<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        self.map.hasher.hash_one(key)
    }

    /// The value of `key`. Wait-free.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([("a", 1)]);
    /// assert_eq!(map.pin().get("a"), Some(&1));
    /// ```
    #[inline]
    #[must_use]
    pub fn get<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<&V> {
        self.get_hashed(self.hash_of(key), key)
    }

    /// The value of `key`, whose hash the caller has.
    ///
    /// A hash other than [`hash_of`](Self::hash_of) the key does not find it, and an insertion with it
    /// may have the key twice. To use the hash that a network card delivers, give the map a hasher that
    /// computes the same.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([("a", 1)]);
    /// let pin = map.pin();
    /// assert_eq!(pin.get_hashed(pin.hash_of("a"), "a"), Some(&1));
    /// ```
    #[inline]
    #[must_use]
    pub fn get_hashed<Q: Hash + Equivalent<K> + ?Sized>(&self, hash: u64, key: &Q) -> Option<&V> {
        self.find(hash, key).map(|entry| &entry.get().1)
    }

    /// The key of the map and the value of `key`.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([("a", 1)]);
    /// assert_eq!(map.pin().get_key_value("a"), Some((&"a", &1)));
    /// ```
    #[inline]
    #[must_use]
    pub fn get_key_value<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<(&K, &V)> {
        self.find(self.hash_of(key), key).map(|entry| (&entry.get().0, &entry.get().1))
    }

    /// Whether `key` has a value.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([("a", 1)]);
    /// assert!(!map.pin().contains_key("b"));
    /// ```
    #[inline]
    #[must_use]
    pub fn contains_key<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> bool {
        self.find(self.hash_of(key), key).is_some()
    }

    /// The entry of `key`.
    #[inline]
    pub(super) fn find<Q: Equivalent<K> + ?Sized>(
        &self,
        hash: u64,
        key: &Q,
    ) -> Option<Entry<'_, (K, V)>> {
        let path = path(hash);
        let index = &self.map.indices[shard_of(path)];
        index.find(hash, path, |(own, _)| key.equivalent(own), &self.guard)
    }
}
