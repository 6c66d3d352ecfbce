//! Entries in the order of their keys.

use core::borrow::Borrow;
use core::fmt;
use core::iter::FusedIterator;
use core::ops::Bound;

use super::pinned::PinnedTrie;
use crate::concurrent::guard::Guard;
use crate::key::bits::BitString;

/// An iterator over the entries of a [`ConcurrentLcTrie`](super::ConcurrentLcTrie) in the order of
/// their keys. Each step descends from the root. Created by [`PinnedTrie::iter`].
pub struct TrieIter<'p, K, V, G = Guard> {
    pinned: &'p PinnedTrie<'p, K, V, G>,
    /// `None` at the end.
    from: Option<Bound<K>>,
}

impl<K: BitString, V, G: Borrow<Guard>> PinnedTrie<'_, K, V, G> {
    /// Returns an iterator over all entries, in the order of their keys.
    ///
    /// # Example
    ///
    /// ```
    /// let trie = flowtable::ConcurrentLcTrie::<u32, ()>::new();
    /// let pinned = trie.pin();
    /// [3, 1, 2].into_iter().for_each(|key| assert!(pinned.insert(key, ()).is_ok()));
    /// assert!(pinned.iter().map(|(key, ())| key).eq([1, 2, 3]));
    /// ```
    pub fn iter(&self) -> TrieIter<'_, K, V, G> {
        self.iter_from(Bound::Unbounded)
    }

    /// Returns an iterator over the entries from a bound on, in the order of their keys.
    ///
    /// # Example
    ///
    /// ```
    /// use std::ops::Bound;
    ///
    /// let trie = flowtable::ConcurrentLcTrie::<u32, ()>::new();
    /// let pinned = trie.pin();
    /// (0..9).for_each(|key| assert!(pinned.insert(key, ()).is_ok()));
    /// assert_eq!(pinned.iter_from(Bound::Included(7)).count(), 2);
    /// assert_eq!(pinned.iter_from(Bound::Excluded(7)).count(), 1);
    /// ```
    pub fn iter_from(&self, from: Bound<K>) -> TrieIter<'_, K, V, G> {
        TrieIter { pinned: self, from: Some(from) }
    }
}

impl<'p, K: BitString, V, G: Borrow<Guard>> Iterator for TrieIter<'p, K, V, G> {
    type Item = (K, &'p V);

    fn next(&mut self) -> Option<Self::Item> {
        let first = self.pinned.first(self.from?);
        self.from = first.as_ref().map(|(key, _)| Bound::Excluded(*key));
        first
    }
}

impl<K: BitString, V, G: Borrow<Guard>> FusedIterator for TrieIter<'_, K, V, G> {}

impl<'p, K: BitString, V, G: Borrow<Guard>> IntoIterator for &'p PinnedTrie<'_, K, V, G> {
    type Item = (K, &'p V);
    type IntoIter = TrieIter<'p, K, V, G>;

    fn into_iter(self) -> TrieIter<'p, K, V, G> {
        self.iter()
    }
}

impl<K: fmt::Debug, V, G> fmt::Debug for TrieIter<'_, K, V, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrieIter").field("from", &self.from).finish_non_exhaustive()
    }
}
