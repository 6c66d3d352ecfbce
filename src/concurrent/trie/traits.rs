//! Traits of the standard library for concurrent tries.

use core::fmt;

use super::ConcurrentLcTrie;
use crate::concurrent::garbage::LIMIT;
use crate::concurrent::pinned::Pinned;
use crate::key::bits::BitString;

impl<K: BitString, V> Default for ConcurrentLcTrie<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V> Extend<(K, V)> for &ConcurrentLcTrie<K, V>
where
    K: BitString + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    /// Inserts all entries.
    ///
    /// # Panics
    ///
    /// If an insertion is refused: see `insert` of its [pin](ConcurrentLcTrie::pin).
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        let mut pinned = self.pin();
        for (nth, (key, value)) in entries.into_iter().enumerate() {
            if let Err(error) = pinned.insert(key, value) {
                panic!("{error}");
            }
            if nth % 32 == 31 {
                pinned.repin();
            }
        }
    }
}

impl<K, V> Extend<(K, V)> for ConcurrentLcTrie<K, V>
where
    K: BitString + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    /// Inserts all entries.
    ///
    /// # Panics
    ///
    /// If an insertion is refused: see `insert` of its [pin](ConcurrentLcTrie::pin).
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        (&*self).extend(entries);
    }
}

impl<K, V> FromIterator<(K, V)> for ConcurrentLcTrie<K, V>
where
    K: BitString + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        // Other pins may delay the collector while the trie is built.
        let mut trie = Self::new().with_garbage_limit(usize::MAX, 0);
        trie.extend(entries);
        trie.with_garbage_limit(LIMIT, 0)
    }
}

/// Formats the entries in order, as a map.
impl<K: BitString + fmt::Debug, V: fmt::Debug> fmt::Debug for ConcurrentLcTrie<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.pin().iter()).finish()
    }
}

impl<K, V, G: fmt::Debug> fmt::Debug for Pinned<'_, ConcurrentLcTrie<K, V>, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pinned").field("guard", &self.guard).finish_non_exhaustive()
    }
}
