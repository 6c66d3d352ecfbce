//! An ordered map over bit strings on a level-compressed trie.
//!
//! [`LcTrieMap`] is the structure of the papers with the methods of a map; the
//! [parent module](super) describes the trie. It serves where keys are needed in order, for ranges
//! of keys, and for studying the structure. A lookup follows two or three pointers where a flat
//! hash table follows two.
//!
//! The depth depends on the keys, unless a keyed hash precedes each of them, as in
//! [`Headed`](crate::key::bits::Headed): that is the paper's TRASH, which is in the order of the
//! hashes.

mod entry;
mod iter;

use alloc::vec::Vec;
use core::iter::FusedIterator;
use core::ops::{Bound, Index, RangeBounds};
use core::{fmt, mem};

use crate::invariant::InvariantError;
use crate::key::bits::BitString;
use crate::probes::Observer;
use crate::trie::{BACK, FORWARD, SearchResult, Trie, TrieShape, Tuning};

pub use entry::{Entry, OccupiedEntry, VacantEntry};
pub use iter::{IntoIter, Iter, IterMut, Range};

/// A map from bit strings to values, in the order of the keys.
///
/// | method | cost for n random keys |
/// |---|---|
/// | `get`, `get_mut`, `contains_key`, `entry` | Θ(log* n): 1.3 to 1.6 nodes and a leaf |
/// | `insert`, `remove` | as `get`, and 4 to 6 slots written per key on average |
/// | `range` from a key | as `get`, and the empty slots after the key |
/// | a step of `iter`, `keys`, `values`, `range` | 2 or 3 slots on average |
/// | `first_entry`, `last_entry`, `pop_first`, `pop_last` | as a step of `iter`; from the root |
/// | `range_mut`, `split_off`, `append` | as `range`; O(keys) of those that are read or moved |
/// | `retain`, `iter_mut`, `values_mut`, `drain`, `clear` | O(slots), O(n log n) to sort, O(n) to drop |
/// | `len`, `allocation_size` | O(1) |
///
/// An insertion or removal that resizes the root reads all keys at once. A step of an iterator
/// scans up to all slots of the root where there are no keys.
///
/// Paper: Olsson and Nilsson, *TRASH*, section 2.
///
/// # Example
///
/// ```
/// use flowtable::LcTrieMap;
/// use std::net::Ipv4Addr;
///
/// let mut hosts = LcTrieMap::new();
/// hosts.insert(Ipv4Addr::new(10, 0, 0, 2), "printer");
/// hosts.insert(Ipv4Addr::new(10, 0, 0, 1), "router");
/// *hosts.entry(Ipv4Addr::new(10, 0, 0, 2)).or_insert("") = "scanner";
///
/// assert_eq!(hosts.get(&Ipv4Addr::new(10, 0, 0, 2)), Some(&"scanner"));
/// assert!(hosts.values().eq(&["router", "scanner"])); // in the order of the addresses
/// ```
#[doc(alias("BTreeMap", "ordered map"))]
#[derive(Clone)]
pub struct LcTrieMap<K, V> {
    pub(super) trie: Trie<K, V>,
}

impl<K: BitString, V> LcTrieMap<K, V> {
    /// Creates an empty map with the default tuning. Allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_tuning(Tuning::LINUX)
    }

    /// Creates an empty map with the given tuning.
    #[must_use]
    pub const fn with_tuning(tuning: Tuning) -> Self {
        Self { trie: Trie::new(tuning) }
    }

    /// Returns the parameters for doubling and halving nodes.
    #[must_use]
    pub const fn tuning(&self) -> Tuning {
        self.trie.tuning()
    }

    /// Returns the number of keys.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.trie.len()
    }

    /// Returns whether there are no keys.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value of `key`.
    #[inline]
    #[must_use]
    pub fn get(&self, key: &K) -> Option<&V> {
        self.get_observed(key, &mut ())
    }

    /// Returns the value of `key`, and reports the visited nodes and leaves to `observer`.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::LcTrieMap;
    /// use flowtable::probes::Probes;
    ///
    /// let map = LcTrieMap::from([(7_u16, 'x')]);
    /// let mut probes = Probes::default();
    /// map.get_observed(&8, &mut probes);
    /// assert_eq!(probes, Probes { nodes: 0, entries: 1 }); // one leaf, with another key
    /// ```
    #[inline]
    pub fn get_observed(&self, key: &K, observer: &mut impl Observer) -> Option<&V> {
        self.trie.find(key, observer).map(|leaf| self.trie.leaf(leaf).1)
    }

    /// Returns the stored key and the value of `key`.
    ///
    /// # Example
    ///
    /// ```
    /// let mut hosts = flowtable::LcTrieMap::from([(1_u32, "router"), (2, "printer")]);
    /// *hosts.get_mut(&2).unwrap() = "scanner";
    /// assert_eq!(hosts.get_key_value(&2), Some((&2, &"scanner")));
    /// assert_eq!(hosts.remove_entry(&2), Some((2, "scanner")));
    /// assert!(!hosts.contains_key(&2) && hosts.len() == 1);
    /// ```
    #[inline]
    #[must_use]
    pub fn get_key_value(&self, key: &K) -> Option<(&K, &V)> {
        self.trie.find(key, &mut ()).map(|leaf| self.trie.leaf(leaf))
    }

    /// Returns a mutable reference to the value of `key`.
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.trie.find(key, &mut ()).map(|leaf| self.trie.leaf_mut(leaf).1)
    }

    /// Returns whether `key` has a value.
    #[inline]
    #[must_use]
    pub fn contains_key(&self, key: &K) -> bool {
        self.trie.find(key, &mut ()).is_some()
    }

    /// Inserts or replaces the value of `key` and returns the previous one.
    ///
    /// # Panics
    ///
    /// If the map has 2^31 - 1 keys already.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.entry(key) {
            Entry::Occupied(mut entry) => Some(entry.insert(value)),
            Entry::Vacant(entry) => {
                entry.insert(value);
                None
            }
        }
    }

    /// Removes `key` and returns its value.
    ///
    /// # Example
    ///
    /// ```
    /// let mut map = flowtable::LcTrieMap::from([(1_u32, 'a')]);
    /// assert_eq!(map.remove(&1), Some('a'));
    /// assert_eq!(map.remove(&1), None);
    /// ```
    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.remove_entry(key).map(|(_, value)| value)
    }

    /// Removes `key` and returns it with its value.
    pub fn remove_entry(&mut self, key: &K) -> Option<(K, V)> {
        self.trie.remove(key)
    }

    /// Returns the entry of `key` for in-place manipulation, with a single search.
    ///
    /// # Example
    ///
    /// ```
    /// let mut packets = flowtable::LcTrieMap::new();
    /// for port in [443_u16, 53, 443] {
    ///     *packets.entry(port).or_insert(0) += 1;
    /// }
    /// assert_eq!(packets, flowtable::LcTrieMap::from([(53, 1), (443, 2)]));
    /// ```
    pub fn entry(&mut self, key: K) -> Entry<'_, K, V> {
        match self.trie.locate(&key) {
            SearchResult::Found(position) => {
                Entry::Occupied(OccupiedEntry { trie: &mut self.trie, position })
            }
            SearchResult::Vacant(insertion_point) => {
                Entry::Vacant(VacantEntry { trie: &mut self.trie, insertion_point, key })
            }
        }
    }

    /// Returns the smallest key and its value.
    ///
    /// Not suited for a queue: it scans the empty slots before the key, at worst all slots of the
    /// root, so removing the smallest key repeatedly is quadratic. [`drain`](Self::drain) removes
    /// all keys in order.
    ///
    /// # Example
    ///
    /// ```
    /// let mut ends = flowtable::LcTrieMap::from([(5_u32, 'b'), (9, 'c'), (1, 'a')]);
    /// assert_eq!(ends.first_key_value(), Some((&1, &'a')));
    /// assert_eq!(ends.last_key_value(), Some((&9, &'c')));
    /// assert!(ends.drain().map(|(_, value)| value).eq(['a', 'b', 'c']));
    /// assert_eq!(ends.first_key_value(), None);
    /// ```
    #[must_use]
    pub fn first_key_value(&self) -> Option<(&K, &V)> {
        self.iter().next()
    }

    /// Returns the largest key and its value. Cost: see [`first_key_value`](Self::first_key_value).
    #[must_use]
    pub fn last_key_value(&self) -> Option<(&K, &V)> {
        self.iter().next_back()
    }

    /// Returns the entry of the smallest key. Cost: see
    /// [`first_key_value`](Self::first_key_value).
    ///
    /// # Example
    ///
    /// ```
    /// let mut ends = flowtable::LcTrieMap::from([(5_u32, 'b'), (9, 'c'), (1, 'a')]);
    /// *ends.first_entry().unwrap().get_mut() = 'A';
    /// assert_eq!(ends.last_entry().unwrap().remove(), 'c');
    /// assert_eq!((ends.pop_first(), ends.pop_last()), (Some((1, 'A')), Some((5, 'b'))));
    /// assert_eq!((ends.pop_first(), ends.last_entry().is_none()), (None, true));
    /// ```
    pub fn first_entry(&mut self) -> Option<OccupiedEntry<'_, K, V>> {
        let position = self.trie.first_position::<FORWARD>()?;
        Some(OccupiedEntry { trie: &mut self.trie, position })
    }

    /// Returns the entry of the largest key. Cost: see [`first_key_value`](Self::first_key_value).
    pub fn last_entry(&mut self) -> Option<OccupiedEntry<'_, K, V>> {
        let position = self.trie.first_position::<BACK>()?;
        Some(OccupiedEntry { trie: &mut self.trie, position })
    }

    /// Removes the smallest key and returns it with its value. Cost: see
    /// [`first_key_value`](Self::first_key_value).
    pub fn pop_first(&mut self) -> Option<(K, V)> {
        self.first_entry().map(OccupiedEntry::remove_entry)
    }

    /// Removes the largest key and returns it with its value. Cost: see
    /// [`first_key_value`](Self::first_key_value).
    pub fn pop_last(&mut self) -> Option<(K, V)> {
        self.last_entry().map(OccupiedEntry::remove_entry)
    }

    /// Moves all entries of `other` to this map, and leaves `other` empty. Replaces the values of
    /// equal keys.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::LcTrieMap;
    ///
    /// let mut low = LcTrieMap::from([(1_u32, 'a'), (5, 'b'), (9, 'c')]);
    /// let mut high = low.split_off(&5);
    /// assert_eq!((low.len(), high.len()), (1, 2));
    /// low.append(&mut high);
    /// assert_eq!((low.len(), high.len()), (3, 0));
    /// ```
    pub fn append(&mut self, other: &mut Self) {
        self.extend(other.drain());
    }

    /// Removes the entries from `key` on, and returns them as a map of the same tuning. O(entries
    /// that are removed).
    #[must_use]
    pub fn split_off(&mut self, key: &K) -> Self {
        let keys: Vec<K> = self.range(key..).map(|(key, _)| *key).collect();
        let mut rest = Self::with_tuning(self.tuning());
        rest.extend(keys.iter().filter_map(|key| self.remove_entry(key)));
        rest
    }

    /// Removes all keys and frees their memory. The tuning stays. If the drop of a value panics,
    /// the map is empty, and the others are dropped.
    pub fn clear(&mut self) {
        *self = Self::with_tuning(self.tuning());
    }

    /// Retains the entries for which `keep` returns true, in the order of the keys.
    ///
    /// Allocates 4 bytes for each removed key until it returns. If `keep` panics, no key is
    /// removed; if the drop of a value does, some that it has rejected stay.
    ///
    /// # Example
    ///
    /// ```
    /// let mut map: flowtable::LcTrieMap<u32, u32> = (0..10).map(|i| (i, i * i)).collect();
    /// map.retain(|key, _| key % 3 == 0);
    /// assert!(map.keys().eq(&[0, 3, 6, 9]));
    /// ```
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        let mut walk = self.trie.walk();
        let mut removed = Vec::new();
        while let Some(leaf) = self.trie.next_leaf::<FORWARD>(&mut walk) {
            let (key, value) = self.trie.leaf_mut(leaf);
            if !keep(key, value) {
                removed.push(leaf);
            }
        }
        for leaf in removed {
            let key = *self.trie.leaf(leaf).0;
            self.trie.remove(&key);
        }
    }

    /// Returns an iterator that removes the entries for which `predicate` returns true, in the
    /// order of the keys. Entries that it has not visited when it is dropped stay.
    ///
    /// A removal costs as [`remove`](Self::remove), and a descent to the next key.
    ///
    /// # Example
    ///
    /// ```
    /// let mut map: flowtable::LcTrieMap<u32, u32> = (0..10).map(|i| (i, i * i)).collect();
    /// assert!(map.extract_if(|key, _| key % 3 > 0).take(2).eq([(1, 1), (2, 4)]));
    /// assert_eq!((map.len(), map.extract_if(|_, square| *square > 16).count()), (8, 5));
    /// assert!(map.keys().eq(&[0, 3, 4]));
    /// ```
    pub fn extract_if(
        &mut self,
        mut predicate: impl FnMut(&K, &mut V) -> bool,
    ) -> impl FusedIterator<Item = (K, V)> {
        // At most as many steps as entries: an inconsistent order of keys ends, too.
        let (mut walk, mut left) = (self.trie.walk(), self.len());
        let next = move || {
            while left > 0 {
                let leaf = self.trie.next_leaf::<FORWARD>(&mut walk)?;
                left -= 1;
                let (key, value) = self.trie.leaf_mut(leaf);
                let key = *key;
                if predicate(&key, value) {
                    let removed = self.trie.remove(&key);
                    walk = self.trie.walk_range(Bound::Excluded(&key), Bound::Unbounded);
                    if removed.is_some() {
                        return removed;
                    }
                }
            }
            None
        };
        core::iter::from_fn(next).fuse()
    }

    /// Removes all entries and returns an iterator over them in order. Entries that are not taken
    /// from the iterator are dropped with it.
    pub fn drain(&mut self) -> IntoIter<K, V> {
        let tuning = self.tuning();
        mem::replace(self, Self::with_tuning(tuning)).into_iter()
    }

    /// Iterates over keys and values in the order of the keys.
    #[must_use]
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter::new(&self.trie)
    }

    /// Iterates over keys and mutable references to values, in the order of the keys.
    ///
    /// The iterator allocates two pointers per key, and sorts the keys by their places in memory:
    /// in safe Rust, mutable references in the order of the keys must be collected in advance.
    /// [`retain`](Self::retain) modifies values one by one without memory.
    ///
    /// # Example
    ///
    /// ```
    /// let mut bytes = flowtable::LcTrieMap::from([(443_u16, 100), (53, 10)]);
    /// for (port, bytes) in bytes.iter_mut() {
    ///     *bytes += u32::from(*port) % 10;
    /// }
    /// bytes.values_mut().for_each(|bytes| *bytes *= 2);
    /// assert!(bytes.iter().eq([(&53, &26), (&443, &206)]));
    /// ```
    pub fn iter_mut(&mut self) -> IterMut<'_, K, V> {
        let walk = self.trie.walk();
        IterMut::new(&mut self.trie, walk)
    }

    /// Iterates over the keys in order.
    #[must_use]
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> + ExactSizeIterator + Clone {
        self.iter().map(|(key, _)| key)
    }

    /// Iterates over the values in the order of their keys.
    #[must_use]
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + ExactSizeIterator + Clone {
        self.iter().map(|(_, value)| value)
    }

    /// Iterates over mutable references to the values in the order of their keys. Cost: see
    /// [`iter_mut`](Self::iter_mut).
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut V> + ExactSizeIterator {
        self.iter_mut().map(|(_, value)| value)
    }

    /// Iterates over the keys within `range` and their values, in order. A range whose start is
    /// above its end is empty; a `BTreeMap` panics for such a range.
    ///
    /// # Example
    ///
    /// ```
    /// let map: flowtable::LcTrieMap<u16, ()> = [1, 5, 9].map(|key| (key, ())).into();
    /// assert!(map.range(5..).map(|(key, ())| key).eq(&[5, 9]));
    /// assert!(map.range(2..9).map(|(key, ())| key).eq(&[5]));
    /// assert_eq!(map.range(..9).next_back(), Some((&5, &()))); // the last key below 9
    /// ```
    pub fn range(&self, range: impl RangeBounds<K>) -> Range<'_, K, V> {
        Range::new(&self.trie, range.start_bound(), range.end_bound())
    }

    /// Iterates over the keys within `range` and mutable references to their values, in order.
    /// Cost: see [`iter_mut`](Self::iter_mut), for the keys within the range.
    ///
    /// # Example
    ///
    /// ```
    /// let mut map: flowtable::LcTrieMap<u16, u16> = [1, 5, 9].map(|key| (key, key)).into();
    /// map.range_mut(..9).for_each(|(_, value)| *value += 10);
    /// assert!(map.values().eq(&[11, 15, 9]));
    /// assert!(map.clone().into_keys().eq([1, 5, 9]) && map.into_values().eq([11, 15, 9]));
    /// ```
    pub fn range_mut(&mut self, range: impl RangeBounds<K>) -> IterMut<'_, K, V> {
        let walk = self.trie.walk_range(range.start_bound(), range.end_bound());
        IterMut::new(&mut self.trie, walk)
    }

    /// Returns an iterator over the keys in order, which owns them.
    pub fn into_keys(self) -> impl DoubleEndedIterator<Item = K> + ExactSizeIterator {
        self.into_iter().map(|(key, _)| key)
    }

    /// Returns an iterator over the values in the order of their keys, which owns them.
    pub fn into_values(self) -> impl DoubleEndedIterator<Item = V> + ExactSizeIterator {
        self.into_iter().map(|(_, value)| value)
    }

    /// Frees the memory of removed keys and unused capacity. The shape of the trie stays. O(slots);
    /// allocates 4 bytes per slot of the slabs, used or free, until it returns.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::LcTrieMap;
    /// use flowtable::trie::Tuning;
    ///
    /// let mut map = LcTrieMap::with_tuning(Tuning::TRASH_2006);
    /// map.extend((0..1000_u32).map(|key| (key << 22, ())));
    /// map.retain(|key, ()| *key < 1 << 25);
    /// let before = map.allocation_size();
    /// map.shrink_to_fit();
    /// assert!(map.allocation_size() < before);
    /// assert_eq!((map.shape().leaves, map.shape().bytes), (map.len(), map.allocation_size()));
    /// map.clear();
    /// assert_eq!((map.allocation_size(), map.tuning()), (0, Tuning::TRASH_2006));
    /// ```
    pub fn shrink_to_fit(&mut self) {
        self.trie.shrink_to_fit();
    }

    /// Returns the number of bytes allocated, free slots included, without memory owned by values.
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        self.trie.allocation_size()
    }

    /// Measures depths, node sizes and memory. O(slots).
    #[must_use]
    pub fn shape(&self) -> TrieShape {
        self.trie.shape()
    }

    /// Checks all invariants of the trie, for tests. O(slots).
    ///
    /// # Errors
    ///
    /// The first invariant that does not hold: a bug in this crate, or a key type that violates the
    /// contract of [`BitString`].
    ///
    /// # Example
    ///
    /// ```
    /// let mut map: flowtable::LcTrieMap<u32, ()> = (0..1000).map(|key| (key << 20, ())).collect();
    /// map.retain(|key, ()| key % 7 == 0);
    /// assert_eq!(map.validate(), Ok(()));
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), InvariantError> {
        self.trie.validate()
    }
}

impl<K: BitString, V> Default for LcTrieMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: BitString + fmt::Debug, V: fmt::Debug> fmt::Debug for LcTrieMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

/// Maps are equal if their keys and values are equal, whatever their tunings.
impl<K: BitString, V: PartialEq> PartialEq for LcTrieMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other)
    }
}

impl<K: BitString, V: Eq> Eq for LcTrieMap<K, V> {}

impl<K: BitString, V> Extend<(K, V)> for LcTrieMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        entries.into_iter().for_each(|(key, value)| drop(self.insert(key, value)));
    }
}

impl<'a, K: BitString, V: Copy> Extend<(&'a K, &'a V)> for LcTrieMap<K, V> {
    fn extend<I: IntoIterator<Item = (&'a K, &'a V)>>(&mut self, entries: I) {
        self.extend(entries.into_iter().map(|(&key, &value)| (key, value)));
    }
}

impl<K: BitString, V> FromIterator<(K, V)> for LcTrieMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::new();
        map.extend(entries);
        map
    }
}

impl<K: BitString, V, const N: usize> From<[(K, V); N]> for LcTrieMap<K, V> {
    fn from(entries: [(K, V); N]) -> Self {
        entries.into_iter().collect()
    }
}

impl<K: BitString, V> Index<&K> for LcTrieMap<K, V> {
    type Output = V;

    /// Returns the value of `key`.
    ///
    /// # Panics
    ///
    /// If the map does not contain the key.
    fn index(&self, key: &K) -> &V {
        self.get(key).expect("the map does not contain the key")
    }
}
