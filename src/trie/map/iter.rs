//! Double-ended iterators over an [`LcTrieMap`] in the order of the keys.

use alloc::vec;
use core::fmt;
use core::iter::FusedIterator;
use core::ops::Bound;

use super::LcTrieMap;
use crate::key::bits::BitString;
use crate::trie::{BACK, FORWARD, Trie, Walk};

/// An iterator over keys and values in order. See [`LcTrieMap::iter`](super::LcTrieMap::iter).
pub struct Iter<'a, K, V> {
    trie: &'a Trie<K, V>,
    walk: Walk,
}

impl<'a, K: BitString, V> Iter<'a, K, V> {
    pub(super) fn new(trie: &'a Trie<K, V>) -> Self {
        Self { trie, walk: trie.walk() }
    }
}

impl<K, V> Clone for Iter<'_, K, V> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<K: BitString + fmt::Debug, V: fmt::Debug> fmt::Debug for Iter<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

impl<'a, K: BitString, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        self.trie.next_leaf::<FORWARD>(&mut self.walk).map(|leaf| self.trie.leaf(leaf))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.walk.remaining, Some(self.walk.remaining))
    }
}

impl<K: BitString, V> DoubleEndedIterator for Iter<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.trie.next_leaf::<BACK>(&mut self.walk).map(|leaf| self.trie.leaf(leaf))
    }
}

impl<K: BitString, V> ExactSizeIterator for Iter<'_, K, V> {}
impl<K: BitString, V> FusedIterator for Iter<'_, K, V> {}

/// An iterator over keys and values within bounds, in order. See
/// [`LcTrieMap::range`](super::LcTrieMap::range).
pub struct Range<'a, K, V> {
    trie: &'a Trie<K, V>,
    walk: Walk,
}

impl<'a, K: BitString, V> Range<'a, K, V> {
    pub(super) fn new(trie: &'a Trie<K, V>, from: Bound<&K>, to: Bound<&K>) -> Self {
        Self { trie, walk: trie.walk_range(from, to) }
    }
}

impl<K, V> Clone for Range<'_, K, V> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<K: BitString + fmt::Debug, V: fmt::Debug> fmt::Debug for Range<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

impl<'a, K: BitString, V> Iterator for Range<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        self.trie.next_leaf::<FORWARD>(&mut self.walk).map(|leaf| self.trie.leaf(leaf))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.walk.remaining))
    }
}

impl<K: BitString, V> DoubleEndedIterator for Range<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.trie.next_leaf::<BACK>(&mut self.walk).map(|leaf| self.trie.leaf(leaf))
    }
}

impl<K: BitString, V> FusedIterator for Range<'_, K, V> {}

/// An iterator over keys and mutable values in order. See
/// [`LcTrieMap::iter_mut`](super::LcTrieMap::iter_mut) and
/// [`range_mut`](super::LcTrieMap::range_mut).
pub struct IterMut<'a, K, V> {
    entries: vec::IntoIter<Option<(&'a K, &'a mut V)>>,
}

impl<'a, K: BitString, V> IterMut<'a, K, V> {
    /// Returns an iterator over the leaves of a walk.
    pub(super) fn new(trie: &'a mut Trie<K, V>, mut walk: Walk) -> Self {
        // Each leaf with its place in the walk, in the order of memory.
        let mut leaves = vec![];
        while let Some(leaf) = trie.next_leaf::<FORWARD>(&mut walk) {
            leaves.push((leaf.0, leaves.len()));
        }
        let mut entries = vec![];
        entries.resize_with(leaves.len(), || None);
        leaves.sort_unstable();
        // A walk over inconsistent keys may find a leaf twice.
        leaves.dedup_by_key(|(leaf, _)| *leaf);
        let (ids, places): (vec::Vec<_>, vec::Vec<_>) = leaves.into_iter().unzip();
        for (place, entry) in places.into_iter().zip(trie.leaves_mut(ids.into_iter())) {
            entries[place] = Some(entry);
        }
        Self { entries: entries.into_iter() }
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for IterMut<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.entries.as_slice().iter().flatten()).finish()
    }
}

impl<'a, K, V> Iterator for IterMut<'a, K, V> {
    type Item = (&'a K, &'a mut V);

    fn next(&mut self) -> Option<Self::Item> {
        self.entries.next().flatten()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.entries.size_hint()
    }
}

impl<K, V> DoubleEndedIterator for IterMut<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.entries.next_back().flatten()
    }
}

impl<K, V> ExactSizeIterator for IterMut<'_, K, V> {}
impl<K, V> FusedIterator for IterMut<'_, K, V> {}

/// An owning iterator over keys and values in order. See
/// [`LcTrieMap::drain`](super::LcTrieMap::drain).
pub struct IntoIter<K, V> {
    trie: Trie<K, V>,
    walk: Walk,
}

impl<K: BitString, V> IntoIter<K, V> {
    pub(super) fn new(trie: Trie<K, V>) -> Self {
        Self { walk: trie.walk(), trie }
    }
}

impl<K, V> fmt::Debug for IntoIter<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntoIter").finish_non_exhaustive()
    }
}

impl<K: BitString, V> Iterator for IntoIter<K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        let leaf = self.trie.next_leaf::<FORWARD>(&mut self.walk)?;
        Some(self.trie.free_leaf(leaf))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.walk.remaining, Some(self.walk.remaining))
    }
}

impl<K: BitString, V> DoubleEndedIterator for IntoIter<K, V> {
    fn next_back(&mut self) -> Option<(K, V)> {
        let leaf = self.trie.next_leaf::<BACK>(&mut self.walk)?;
        Some(self.trie.free_leaf(leaf))
    }
}

impl<K: BitString, V> ExactSizeIterator for IntoIter<K, V> {}
impl<K: BitString, V> FusedIterator for IntoIter<K, V> {}

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
