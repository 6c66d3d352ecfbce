//! Double-ended iterators over an [`LcTrieMap`] in the order of the keys.

use alloc::vec;
use core::fmt;
use core::iter::FusedIterator;
use core::ops::Bound;

use super::LcTrieMap;
use crate::key::bits::BitString;
use crate::trie::{Trie, Walk};

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
        self.trie.next_leaf(&mut self.walk).map(|leaf| self.trie.leaf(leaf))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.walk.remaining(), Some(self.walk.remaining()))
    }
}

impl<K: BitString, V> DoubleEndedIterator for Iter<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.trie.next_leaf_back(&mut self.walk).map(|leaf| self.trie.leaf(leaf))
    }
}

impl<K: BitString, V> ExactSizeIterator for Iter<'_, K, V> {}
impl<K: BitString, V> FusedIterator for Iter<'_, K, V> {}

/// An iterator over keys in order. See [`LcTrieMap::keys`](super::LcTrieMap::keys).
pub struct Keys<'a, K, V>(pub(super) Iter<'a, K, V>);

impl<K, V> Clone for Keys<'_, K, V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: BitString + fmt::Debug, V> fmt::Debug for Keys<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

impl<'a, K: BitString, V> Iterator for Keys<'a, K, V> {
    type Item = &'a K;

    fn next(&mut self) -> Option<&'a K> {
        self.0.next().map(|(key, _)| key)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<K: BitString, V> DoubleEndedIterator for Keys<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(|(key, _)| key)
    }
}

impl<K: BitString, V> ExactSizeIterator for Keys<'_, K, V> {}
impl<K: BitString, V> FusedIterator for Keys<'_, K, V> {}

/// An iterator over values in the order of their keys. See
/// [`LcTrieMap::values`](super::LcTrieMap::values).
pub struct Values<'a, K, V>(pub(super) Iter<'a, K, V>);

impl<K, V> Clone for Values<'_, K, V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: BitString, V: fmt::Debug> fmt::Debug for Values<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

impl<'a, K: BitString, V> Iterator for Values<'a, K, V> {
    type Item = &'a V;

    fn next(&mut self) -> Option<&'a V> {
        self.0.next().map(|(_, value)| value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<K: BitString, V> DoubleEndedIterator for Values<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(|(_, value)| value)
    }
}

impl<K: BitString, V> ExactSizeIterator for Values<'_, K, V> {}
impl<K: BitString, V> FusedIterator for Values<'_, K, V> {}

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
        self.trie.next_leaf(&mut self.walk).map(|leaf| self.trie.leaf(leaf))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.walk.remaining()))
    }
}

impl<K: BitString, V> DoubleEndedIterator for Range<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.trie.next_leaf_back(&mut self.walk).map(|leaf| self.trie.leaf(leaf))
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
        while let Some(leaf) = trie.next_leaf(&mut walk) {
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

/// An iterator over mutable values in the order of their keys. See
/// [`LcTrieMap::values_mut`](super::LcTrieMap::values_mut).
pub struct ValuesMut<'a, K, V>(pub(super) IterMut<'a, K, V>);

impl<K, V: fmt::Debug> fmt::Debug for ValuesMut<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = self.0.entries.as_slice().iter().flatten().map(|(_, value)| value);
        f.debug_list().entries(values).finish()
    }
}

impl<'a, K, V> Iterator for ValuesMut<'a, K, V> {
    type Item = &'a mut V;

    fn next(&mut self) -> Option<&'a mut V> {
        self.0.next().map(|(_, value)| value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<K, V> DoubleEndedIterator for ValuesMut<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(|(_, value)| value)
    }
}

impl<K, V> ExactSizeIterator for ValuesMut<'_, K, V> {}
impl<K, V> FusedIterator for ValuesMut<'_, K, V> {}

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
        let leaf = self.trie.next_leaf(&mut self.walk)?;
        Some(self.trie.free_leaf(leaf))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.walk.remaining(), Some(self.walk.remaining()))
    }
}

impl<K: BitString, V> DoubleEndedIterator for IntoIter<K, V> {
    fn next_back(&mut self) -> Option<(K, V)> {
        let leaf = self.trie.next_leaf_back(&mut self.walk)?;
        Some(self.trie.free_leaf(leaf))
    }
}

impl<K: BitString, V> ExactSizeIterator for IntoIter<K, V> {}
impl<K: BitString, V> FusedIterator for IntoIter<K, V> {}

/// Removes and returns the entries for which a predicate returns true. See
/// [`LcTrieMap::extract_if`].
pub struct ExtractIf<'a, K, V, F> {
    map: &'a mut LcTrieMap<K, V>,
    predicate: F,
    walk: Walk,
    /// The maximum number of entries to visit: an inconsistent order of keys ends, too.
    left: usize,
}

impl<K: BitString, V> LcTrieMap<K, V> {
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
    pub fn extract_if<F: FnMut(&K, &mut V) -> bool>(
        &mut self,
        predicate: F,
    ) -> ExtractIf<'_, K, V, F> {
        let (walk, left) = (self.trie.walk(), self.len());
        ExtractIf { map: self, predicate, walk, left }
    }
}

impl<K: BitString, V, F: FnMut(&K, &mut V) -> bool> Iterator for ExtractIf<'_, K, V, F> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        let trie = &mut self.map.trie;
        while self.left > 0 {
            let leaf = trie.next_leaf(&mut self.walk)?;
            self.left -= 1;
            let (key, value) = trie.leaf_mut(leaf);
            let key = *key;
            if (self.predicate)(&key, value) {
                let removed = trie.remove(&key);
                self.walk = trie.walk_range(Bound::Excluded(&key), Bound::Unbounded);
                if removed.is_some() {
                    return removed;
                }
            }
        }
        None
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left))
    }
}

impl<K: BitString, V, F: FnMut(&K, &mut V) -> bool> FusedIterator for ExtractIf<'_, K, V, F> {}

impl<K, V, F> fmt::Debug for ExtractIf<'_, K, V, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtractIf").finish_non_exhaustive()
    }
}
