//! Removal of the entries that a predicate picks, one with each step of an iterator.

use core::fmt;
use core::iter::FusedIterator;
use core::ops::Bound;

use super::LcTrieMap;
use crate::key::bits::BitString;
use crate::trie::Walk;

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
