//! Pinned maps: the methods that read.
//!
//! Bursts are lookups in stages, so that the cache misses of all keys overlap. As in
//! [`TrashMap`](crate::TrashMap): all groups are prefetched, then all candidates, and then keys are
//! compared. Keys that are not the first candidate of their home are looked up singly, as are all
//! keys in a map that the CPU has in its caches.

use core::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::ConcurrentMap;
use super::storage::Ids;
use super::store::Store;
use super::view::{Entry, View};
use crate::concurrent::engine::Group;
use crate::concurrent::pinned::{Pinned, Protect};
use crate::concurrent::policy::mix;
use crate::hash::Query;
use crate::raw::prefetch::BURST;

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

impl<'t, K: Eq + Hash, V, S: BuildHasher, G> Pinned<'t, ConcurrentMap<K, V, S>, G> {
    /// Calls `each` with the index of each key and its value, in the order of the keys. Each lookup
    /// is a read of its own; together they are not a snapshot.
    ///
    /// The cache misses of 32 lookups overlap, in a map of more than 2 MiB. The iterator is cloned,
    /// and yields each key three times, to hash and to compare them. For results in a slice or
    /// array, pass [`write_to`](crate::write_to).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ConcurrentMap, Prehashed, write_to};
    ///
    /// let map: ConcurrentMap<u32, u32> = (0..1000).map(|key| (key, key + 1)).collect();
    /// let (pin, packets) = (map.pin(), [3, 2000, 3]);
    /// let mut found = [None; 3];
    /// pin.get_batch(&packets, write_to(&mut found));
    /// assert_eq!(found, [Some(&4), None, Some(&4)]);
    ///
    /// let hashed = packets.map(|key| Prehashed { hash: map.hash_of(&key), key });
    /// let hashed = hashed.iter().map(Prehashed::as_ref);
    /// pin.get_batch(hashed, |at, value| assert_eq!(value, found[at]));
    /// ```
    pub fn get_batch<'p, 'r, I>(&'p self, keys: I, each: impl FnMut(usize, Option<&'r V>))
    where
        I: IntoIterator<Item: Query<K>, IntoIter: Clone>,
        G: Protect<'p, 'r>,
        't: 'r,
    {
        let keys = keys.into_iter();
        if self.of.engine.is_small(size_of::<(K, V)>(), self.view().pin) {
            self.get_each(keys, each);
        } else {
            self.get_bursts(keys, each);
        }
    }

    /// Looks the keys up singly. A function of its own, so that `get_batch` stays short.
    #[inline(never)]
    fn get_each<'p, 'r, I>(&'p self, keys: I, mut each: impl FnMut(usize, Option<&'r V>))
    where
        I: Iterator<Item: Query<K>>,
        G: Protect<'p, 'r>,
        't: 'r,
    {
        keys.enumerate().for_each(|(at, key)| each(at, self.get(key)));
    }

    /// Looks the keys up in bursts.
    #[inline]
    fn get_bursts<'p, 'r, I>(&'p self, mut keys: I, mut each: impl FnMut(usize, Option<&'r V>))
    where
        I: Iterator<Item: Query<K>> + Clone,
        G: Protect<'p, 'r>,
        't: 'r,
    {
        let (view, hasher) = (self.view(), &self.of.hasher);
        let home = |mixed| view.map.engine.segment(mixed, view.pin).home(mixed);
        let mut hashes = [0; BURST];
        let mut homes: [Group<'_, Ids>; BURST] = [home(0); BURST];
        let mut candidates: [Option<&'r (K, V)>; BURST] = [None; BURST];
        let mut first = 0;
        loop {
            // Clones of an iterator over a slice make counted loops.
            let mut count = 0;
            for ((mixed, own), key) in hashes.iter_mut().zip(&mut homes).zip(keys.clone()) {
                *mixed = mix(key.hash_with(hasher));
                *own = home(*mixed);
                own.prefetch();
                count += 1;
            }
            let probed = hashes[..count].iter().zip(&homes[..count]);
            for ((&mixed, home), candidate) in probed.clone().zip(&mut candidates) {
                *candidate = home.first(mixed).map(|slot| view.entry(home.value(slot)).entry);
                candidate.inspect(|entry| Store::prefetch(*entry));
            }
            let lookups = probed.zip(&candidates).zip(keys.clone());
            for (at, (((&mixed, home), candidate), key)) in lookups.enumerate() {
                let found = match candidate {
                    Some(entry) if key.key().equivalent(&entry.0) => Some(&entry.1),
                    None if !home.has_overflowed() => None,
                    _ => view.find_further(mixed, key.key()).map(Entry::value),
                };
                each(first + at, found);
            }
            if count < BURST || keys.nth(BURST - 1).is_none() {
                return;
            }
            first += BURST;
        }
    }
}
