//! A map over bit strings, in order, on a level-compressed trie.
//!
//! [`LcTrieMap`] is the plain structure of the papers with the methods of a map; the trie itself
//! is drawn and explained in `trie.rs`. Use it where keys must come out in order, where a range
//! from a key on is wanted, or to see how the structure behaves. Its look-up follows two or three
//! pointers where a flat hash table follows two.
//!
//! Its depth depends on the keys. Put a keyed hash in front of each with
//! [`Headed`](crate::key::bits::Headed) and it does not: that is the paper's TRASH, whose order is that of the
//! hashes.

mod entry;
mod iter;

use core::fmt;
use core::ops::{Index, RangeBounds};

use alloc::vec::Vec;

use crate::key::bits::BitString;
use crate::probes::Observer;
use crate::trie::{Broken, Place, Trie, TrieShape, Tuning};

pub use entry::{Entry, OccupiedEntry, VacantEntry};
pub use iter::{IntoIter, Iter, IterMut, Keys, Range, Values, ValuesMut};

/// A map from bit strings to values, in the order of the keys.
///
/// | method | cost for n random keys |
/// |---|---|
/// | `get`, `get_mut`, `get_key_value`, `get_observed`, `contains_key`, `entry` | Θ(log* n): 1.3 to 1.6 nodes and a leaf |
/// | `insert`, `remove`, `remove_entry` | the same, and 4 to 6 slots made per key on average; all keys at once when the root is resized |
/// | `range` from a key | the same as `get`, and the empty slots behind the key |
/// | a step of `iter`, `keys`, `values` or `range` | 2 or 3 slots on average; up to all slots of the root at once, where there are no keys |
/// | `retain`, `iter_mut`, `values_mut`, `drain`, `clear` | O(slots), and O(n) for what is put in order or dropped |
/// | `len`, `allocation_size` | O(1) |
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
#[derive(Clone)]
pub struct LcTrieMap<K, V> {
    trie: Trie<K, V>,
}

impl<K: BitString, V> LcTrieMap<K, V> {
    /// An empty map with the default tuning. Allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_tuning(Tuning::LINUX)
    }

    /// An empty map that doubles and halves its nodes as `tuning` says.
    #[must_use]
    pub const fn with_tuning(tuning: Tuning) -> Self {
        Self { trie: Trie::new(tuning) }
    }

    /// When nodes are doubled and halved.
    #[must_use]
    pub const fn tuning(&self) -> Tuning {
        self.trie.tuning()
    }

    /// Number of keys.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.trie.len()
    }

    /// Whether there are no keys.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of `key`.
    #[inline]
    #[must_use]
    pub fn get(&self, key: &K) -> Option<&V> {
        self.get_observed(key, &mut ())
    }

    /// The value of `key`, counting what the look-up touches.
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
    /// assert_eq!(probes, Probes { nodes: 0, entries: 1 }); // one leaf, and it is not the one
    /// ```
    #[inline]
    pub fn get_observed(&self, key: &K, observer: &mut impl Observer) -> Option<&V> {
        self.trie.find(key, observer).map(|leaf| self.trie.leaf(leaf).1)
    }

    /// The key and value of `key`.
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

    /// The value of `key`, to change.
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.trie.find(key, &mut ()).map(|leaf| self.trie.leaf_mut(leaf).1)
    }

    /// Whether `key` has a value.
    #[inline]
    #[must_use]
    pub fn contains_key(&self, key: &K) -> bool {
        self.trie.find(key, &mut ()).is_some()
    }

    /// Gives `key` a value and returns the one that it had.
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

    /// Takes `key` out and returns its value.
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

    /// Takes `key` out and returns it with its value.
    pub fn remove_entry(&mut self, key: &K) -> Option<(K, V)> {
        self.trie.remove(key)
    }

    /// The place of `key`, found once: to look at, fill, change or empty.
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
            Place::Found(seat) => Entry::Occupied(OccupiedEntry { trie: &mut self.trie, seat }),
            Place::Vacant(gap) => Entry::Vacant(VacantEntry { trie: &mut self.trie, gap, key }),
        }
    }

    /// The smallest key and its value.
    ///
    /// Not made for a queue: the way to it passes the empty slots before it, all of the root at
    /// worst, so taking out the smallest key again and again is quadratic. [`drain`](Self::drain)
    /// hands over all in order.
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

    /// The largest key and its value; see [`first_key_value`](Self::first_key_value) for the price.
    #[must_use]
    pub fn last_key_value(&self) -> Option<(&K, &V)> {
        self.iter().next_back()
    }

    /// Takes out every key. Gives the memory back and keeps the tuning.
    pub fn clear(&mut self) {
        *self = Self::with_tuning(self.tuning());
    }

    /// Keeps the keys for which `keep` says so; asks in order of the keys.
    ///
    /// Takes 4 bytes for each key that goes. If `keep` panics, all stay.
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
        let mut going = Vec::new();
        while let Some(leaf) = self.trie.step(&mut walk) {
            let (key, value) = self.trie.leaf_mut(leaf);
            if !keep(key, value) {
                going.push(leaf);
            }
        }
        for leaf in going {
            let key = *self.trie.leaf(leaf).0;
            self.trie.remove(&key);
        }
    }

    /// Takes out all keys and hands them over in order; what is not fetched is dropped.
    pub fn drain(&mut self) -> IntoIter<K, V> {
        let tuning = self.tuning();
        core::mem::replace(self, Self::with_tuning(tuning)).into_iter()
    }

    /// Keys and values in the order of the keys.
    #[must_use]
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter::new(&self.trie)
    }

    /// Keys and values in the order of the keys, the values to change.
    ///
    /// Takes two pointers per key while it lasts: in safe Rust, references in the order of the keys
    /// must be collected before the first is handed out. To change values one by one,
    /// [`retain`](Self::retain) needs no memory.
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
        IterMut::new(&mut self.trie)
    }

    /// The keys in order.
    #[must_use]
    pub fn keys(&self) -> Keys<'_, K, V> {
        Keys(self.iter())
    }

    /// The values in the order of their keys.
    #[must_use]
    pub fn values(&self) -> Values<'_, K, V> {
        Values(self.iter())
    }

    /// The values in the order of their keys, to change; see [`iter_mut`](Self::iter_mut).
    pub fn values_mut(&mut self) -> ValuesMut<'_, K, V> {
        ValuesMut(self.iter_mut())
    }

    /// Keys and values within `range`, in the order of the keys. An empty range gives nothing.
    ///
    /// # Example
    ///
    /// ```
    /// let map: flowtable::LcTrieMap<u16, ()> = [1, 5, 9].map(|key| (key, ())).into();
    /// assert!(map.range(5..).map(|(key, ())| key).eq(&[5, 9]));
    /// assert!(map.range(2..9).map(|(key, ())| key).eq(&[5]));
    /// assert_eq!(map.range(..9).next_back(), Some((&5, &()))); // the last one before 9
    /// ```
    pub fn range(&self, range: impl RangeBounds<K>) -> Range<'_, K, V> {
        Range::new(&self.trie, range.start_bound(), range.end_bound())
    }

    /// Gives back the memory that removed keys have left behind, and what was allocated ahead. The
    /// shape stays. O(slots); takes 4 bytes for each key that the map ever had at once, meanwhile.
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

    /// Bytes that the map has allocated, free slots included; without what values own.
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        self.trie.allocation_size()
    }

    /// Depths, node sizes and memory at this moment. O(slots).
    #[must_use]
    pub fn shape(&self) -> TrieShape {
        self.trie.shape()
    }

    /// Checks every invariant of the trie, for tests. O(slots).
    ///
    /// # Errors
    ///
    /// The invariant that is broken, which would be a mistake in this crate or a key type that
    /// breaks the law of [`BitString`].
    ///
    /// # Example
    ///
    /// ```
    /// let mut map: flowtable::LcTrieMap<u32, ()> = (0..1000).map(|key| (key << 20, ())).collect();
    /// map.retain(|key, ()| key % 7 == 0);
    /// assert_eq!(map.validate(), Ok(()));
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), Broken> {
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

/// Equal keys with equal values; the tuning does not count.
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

    /// The value of `key`.
    ///
    /// # Panics
    ///
    /// If the map does not have the key.
    fn index(&self, key: &K) -> &V {
        self.get(key).expect("the map does not have the key")
    }
}

impl<K: BitString, V> IntoIterator for LcTrieMap<K, V> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V>;

    fn into_iter(self) -> IntoIter<K, V> {
        IntoIter::new(self.trie)
    }
}

impl<'a, K: BitString, V> IntoIterator for &'a LcTrieMap<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Iter<'a, K, V> {
        self.iter()
    }
}

impl<'a, K: BitString, V> IntoIterator for &'a mut LcTrieMap<K, V> {
    type Item = (&'a K, &'a mut V);
    type IntoIter = IterMut<'a, K, V>;

    fn into_iter(self) -> IterMut<'a, K, V> {
        self.iter_mut()
    }
}
