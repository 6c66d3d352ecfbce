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

// First, so that the documentation of the type begins with its methods.
mod ordered_map;

mod entry;
mod iter;

use core::fmt;
use core::ops::Index;

use crate::key::bits::BitString;
use crate::trie::Trie;

pub use entry::{Entry, OccupiedEntry, VacantEntry};
pub use iter::{ExtractIf, IntoIter, Iter, IterMut, Keys, Range, Values, ValuesMut};

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
