//! Pinned maps: the methods that read.

use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::ConcurrentMap;
use super::storage::Ids;
use crate::concurrent::engine::Group;
use crate::concurrent::guard::{Guard, pin};
use crate::concurrent::policy::mix;
use crate::hash::DefaultHashBuilder;

/// A pinned [`ConcurrentMap`], with the methods of a map: see [`pin`](ConcurrentMap::pin).
///
/// It owns its guard, or borrows one of type `G = &Guard` that it shares with other structures: see
/// [`pinned`](ConcurrentMap::pinned).
///
/// References live as long as the borrow of the pin: no entry that it has observed is dropped
/// before the pin ends or is [repinned](Self::repin). So a pin that is held for long keeps garbage.
///
/// A pin is bound to its thread. It does not block writers, its own thread included.
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
pub struct Pinned<'m, K, V, S = DefaultHashBuilder, G = Guard> {
    pub(super) map: &'m ConcurrentMap<K, V, S>,
    guard: G,
}

impl<'m, K, V, S> Pinned<'m, K, V, S> {
    #[inline]
    pub(super) fn new(map: &'m ConcurrentMap<K, V, S>) -> Self {
        Self { map, guard: pin() }
    }

    /// Ends the pin and begins another one, at a lower cost. References of the former pin are
    /// invalid. Other pins of the thread stay as they are.
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
    #[inline]
    pub fn repin(&mut self) {
        self.guard.repin();
    }
}

impl<'m, 'g, K, V, S> Pinned<'m, K, V, S, &'g Guard> {
    #[inline]
    pub(super) const fn of(map: &'m ConcurrentMap<K, V, S>, guard: &'g Guard) -> Self {
        Self { map, guard }
    }
}

impl<'m, K, V, S, G: Borrow<Guard>> Pinned<'m, K, V, S, G> {
    /// Returns the guard of the collector.
    #[inline]
    pub(super) fn epoch(&self) -> &crossbeam_epoch::Guard {
        self.guard.borrow().epoch()
    }

    /// Returns the map.
    #[must_use]
    pub fn map(&self) -> &'m ConcurrentMap<K, V, S> {
        self.map
    }

    /// Returns the number of entries: see [`ConcurrentMap::len`].
    #[must_use]
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Returns whether the map has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Returns the bytes that are retired and not freed yet: see [`ConcurrentMap::garbage`].
    #[must_use]
    pub fn garbage(&self) -> usize {
        self.map.garbage()
    }

    /// Returns the number of allocated bytes: see [`ConcurrentMap::allocation_size`].
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        self.map.allocation_size()
    }
}

impl<K: Eq + Hash, V, S: BuildHasher, G: Borrow<Guard>> Pinned<'_, K, V, S, G> {
    /// Returns the hash of `key` under the map's hasher, for the methods that take a hash.
    #[inline]
    pub fn hash_of<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        self.map.hasher.hash_one(key)
    }

    /// Returns the value of `key`. Wait-free.
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

    /// Returns the value of `key`, given its hash.
    ///
    /// A hash other than [`hash_of`](Self::hash_of) the key does not find it, and an insertion with
    /// it may duplicate the key. To use the hash that a network card computes, give the map a
    /// hasher that computes the same.
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

    /// Returns the stored key and the value of `key`.
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

    /// Returns whether the map contains `key`.
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

    /// Finds the entry of `key`.
    #[inline]
    pub(super) fn find<Q: Equivalent<K> + ?Sized>(
        &self,
        hash: u64,
        key: &Q,
    ) -> Option<Entry<'_, (K, V)>> {
        self.find_mixed(mix(hash), key)
    }

    /// Finds the entry of `key`, given its mixed hash.
    #[inline]
    pub(super) fn find_mixed<Q: Equivalent<K> + ?Sized>(
        &self,
        mixed: u64,
        key: &Q,
    ) -> Option<Entry<'_, (K, V)>> {
        self.map.engine.segment(mixed, self.epoch()).find(mixed, mixed, self.entry_of(key))
    }

    /// Finds the entry of `key`, if it is not the first candidate.
    pub(super) fn find_further<Q: Equivalent<K> + ?Sized>(
        &self,
        mixed: u64,
        key: &Q,
    ) -> Option<Entry<'_, (K, V)>> {
        self.map.engine.segment(mixed, self.epoch()).find_further(mixed, mixed, self.entry_of(key))
    }

    /// Returns the function that returns the entry in a slot if it has this key.
    #[inline(always)]
    fn entry_of<'p, Q: Equivalent<K> + ?Sized>(
        &'p self,
        key: &Q,
    ) -> impl Fn(Group<'p, Ids>, usize) -> Option<Entry<'p, (K, V)>> {
        |group, slot| {
            let entry = self.map.entry(group.value(slot), self.epoch());
            key.equivalent(&entry.get().0).then_some(entry)
        }
    }
}

/// An entry under a pin. While the pin lasts, its id is not reused.
pub(super) struct Entry<'p, T> {
    pub(super) id: u32,
    pub(super) entry: &'p T,
}

impl<T> Clone for Entry<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Entry<'_, T> {}

impl<'p, T> Entry<'p, T> {
    #[inline(always)]
    pub(super) fn get(self) -> &'p T {
        self.entry
    }
}
