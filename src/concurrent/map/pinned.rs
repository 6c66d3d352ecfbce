//! Pinned maps: the methods that read.

use core::hash::{BuildHasher, Hash};

use super::ConcurrentMap;
use super::view::{Entry, View};
use crate::concurrent::pinned::{Pinned, Protect};
use crate::hash::Query;

impl<'t, K, V, S, G> Pinned<'t, ConcurrentMap<K, V, S>, G> {
    #[inline]
    pub(super) fn view<'p, 'r>(&'p self) -> View<'r, K, V, S>
    where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        View { map: self.of, pin: self.guard.protect().epoch() }
    }
}

impl<'t, K: Eq + Hash, V, S: BuildHasher, G> Pinned<'t, ConcurrentMap<K, V, S>, G> {
    /// Returns the value of `key`. Wait-free.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ConcurrentMap, Prehashed, concurrent::pin};
    ///
    /// let map = ConcurrentMap::from([("a", 1)]);
    /// assert_eq!(map.pin().get("a"), Some(&1));
    /// let key = Prehashed { hash: map.hash_of("a"), key: "a" }; // once for what follows
    /// assert_eq!(map.pin().get(key), Some(&1));
    ///
    /// let guard = pin();
    /// let value = map.pinned(&guard).get("a"); // lives as long as the guard
    /// assert_eq!(value, Some(&1));
    /// ```
    #[inline]
    #[must_use]
    pub fn get<'p, 'r, Q: Query<K>>(&'p self, key: Q) -> Option<&'r V>
    where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        self.view().find(key.hash_with(&self.of.hasher), key.key()).map(Entry::value)
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
    pub fn get_key_value<'p, 'r, Q: Query<K>>(&'p self, key: Q) -> Option<(&'r K, &'r V)>
    where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        self.view().find(key.hash_with(&self.of.hasher), key.key()).map(Entry::pair)
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
    pub fn contains_key<'p, Q: Query<K>>(&'p self, key: Q) -> bool
    where
        G: Protect<'p, 'p>,
    {
        self.get(key).is_some()
    }
}
