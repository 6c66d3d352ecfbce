//! Entries in the order of their keys.

use core::borrow::Borrow;
use core::fmt;
use core::iter::FusedIterator;
use core::ops::Bound;

use super::ConcurrentLcTrie;
use super::order::Walk;
use crate::concurrent::guard::Guard;
use crate::concurrent::pinned::{Pinned, Protect};
use crate::key::bits::BitString;

/// An iterator over the entries of a [`ConcurrentLcTrie`] in the order of their keys. Created by
/// `iter` and `iter_from` of a [pin](ConcurrentLcTrie::pin).
pub struct TrieIter<'p, K, V>(Walk<'p, K, V>);

impl<'t, K: BitString, V, G: Borrow<Guard>> Pinned<'t, ConcurrentLcTrie<K, V>, G> {
    /// Returns an iterator over all entries, in the order of their keys.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::concurrent::ConcurrentLcTrie;
    ///
    /// let trie = ConcurrentLcTrie::<u32, ()>::new();
    /// let pinned = trie.pin();
    /// [3, 1, 2].into_iter().for_each(|key| assert!(pinned.insert(key, ()).is_ok()));
    /// assert!(pinned.iter().map(|(key, ())| key).eq([1, 2, 3]));
    /// ```
    pub fn iter<'p, 'r>(&'p self) -> TrieIter<'r, K, V>
    where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        self.iter_from(Bound::Unbounded)
    }

    /// Returns an iterator over the entries from a bound on, in the order of their keys.
    ///
    /// # Example
    ///
    /// ```
    /// use std::ops::Bound;
    ///
    /// use flowtable::concurrent::ConcurrentLcTrie;
    ///
    /// let trie = ConcurrentLcTrie::<u32, ()>::new();
    /// let pinned = trie.pin();
    /// (0..9).for_each(|key| assert!(pinned.insert(key, ()).is_ok()));
    /// assert_eq!(pinned.iter_from(Bound::Included(7)).count(), 2);
    /// assert_eq!(pinned.iter_from(Bound::Excluded(7)).count(), 1);
    /// ```
    pub fn iter_from<'p, 'r>(&'p self, from: Bound<K>) -> TrieIter<'r, K, V>
    where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        TrieIter(self.walk(from))
    }
}

impl<'p, K: BitString, V> Iterator for TrieIter<'p, K, V> {
    type Item = (K, &'p V);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|leaf| (leaf.key, &leaf.value))
    }
}

impl<K: BitString, V> FusedIterator for TrieIter<'_, K, V> {}

impl<'p, K: BitString, V, G> IntoIterator for &'p Pinned<'_, ConcurrentLcTrie<K, V>, G>
where
    G: Protect<'p, 'p>,
{
    type Item = (K, &'p V);
    type IntoIter = TrieIter<'p, K, V>;

    fn into_iter(self) -> TrieIter<'p, K, V> {
        self.iter()
    }
}

impl<K, V> fmt::Debug for TrieIter<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrieIter").finish_non_exhaustive()
    }
}
