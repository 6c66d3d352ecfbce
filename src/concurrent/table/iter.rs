//! Traversals of a table: copies of all entries. Traits of collections.

use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::iter::FusedIterator;

use bytemuck::NoUninit;

use super::ConcurrentTable;
use super::storage::Inline;
use crate::concurrent::engine::{Slot, Walk};
use crate::concurrent::pinned::{Guard, Pinned};

impl<K, V, S, G> Pinned<'_, ConcurrentTable<K, V, S>, G>
where
    K: NoUninit + Eq + Hash,
    V: NoUninit,
    S: BuildHasher,
    G: Borrow<Guard>,
{
    /// Iterates over copies of all entries, in no order. A key is visited at most once, and exactly
    /// once if it stays in the table. Waits for writers: the slots of one segment at a time are
    /// noted under the lock of its shard.
    ///
    /// # Example
    ///
    /// ```
    /// let table = flowtable::ConcurrentTable::from([(1_u32, 10_u32), (2, 20)]);
    /// let pin = table.pin();
    /// assert_eq!(pin.iter().map(|(_, value)| value).sum::<u32>(), 30);
    /// ```
    #[inline]
    #[must_use]
    pub fn iter(&self) -> TableIter<'_, K, V, S> {
        TableIter { table: self.of, walk: Walk::new(&self.of.engine, self.epoch()) }
    }

    /// Iterates over copies of all keys: see [`iter`](Self::iter).
    ///
    /// # Example
    ///
    /// ```
    /// let table = flowtable::ConcurrentTable::from([(1_u32, 10_u32)]);
    /// assert!(table.pin().keys().eq([1]));
    /// ```
    pub fn keys(&self) -> impl Iterator<Item = K> {
        self.iter().map(|(key, _)| key)
    }

    /// Iterates over copies of all values: see [`iter`](Self::iter).
    ///
    /// # Example
    ///
    /// ```
    /// let table = flowtable::ConcurrentTable::from([(1_u32, 10_u32)]);
    /// assert!(table.pin().values().eq([10]));
    /// ```
    pub fn values(&self) -> impl Iterator<Item = V> {
        self.iter().map(|(_, value)| value)
    }
}

/// An iterator over copies of all entries of a table: see [`Pinned::iter`].
pub struct TableIter<'t, K, V, S> {
    table: &'t ConcurrentTable<K, V, S>,
    walk: Walk<'t, Inline<K, V>>,
}

/// Returns a copy of the entry in a slot that was noted under the lock of its shard. Its words were
/// stored before, and stay as they are, even if it is removed, except for a value of one word,
/// which may be replaced.
fn entry<K: NoUninit, V: NoUninit>(slot: Slot<'_, Inline<K, V>>) -> (K, V) {
    (slot.key(), slot.value())
}

impl<K: NoUninit + Eq + Hash, V: NoUninit, S: BuildHasher> Iterator for TableIter<'_, K, V, S> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        let hasher = &self.table.hasher;
        let number = self.walk.next(Slot::number, |slot| hasher.hash_one(slot.key()))?;
        Some(entry(self.walk.segment.slot(number)))
    }

    #[inline]
    fn fold<B, F: FnMut(B, Self::Item) -> B>(mut self, initial: B, mut fold: F) -> B {
        let (hasher, mut folded) = (&self.table.hasher, Some(initial));
        let hash_of = |slot: Slot<'_, Inline<K, V>>| hasher.hash_one(slot.key());
        self.walk.for_each(Slot::number, hash_of, |segment, number| {
            let entry = entry(segment.slot(number));
            folded = folded.take().map(|folded| fold(folded, entry));
        });
        folded.expect("it is folded")
    }
}

impl<K: NoUninit + Eq + Hash, V: NoUninit, S: BuildHasher> FusedIterator
    for TableIter<'_, K, V, S>
{
}

impl<'p, K, V, S, G> IntoIterator for &'p Pinned<'_, ConcurrentTable<K, V, S>, G>
where
    K: NoUninit + Eq + Hash,
    V: NoUninit,
    S: BuildHasher,
    G: Borrow<Guard>,
{
    type Item = (K, V);
    type IntoIter = TableIter<'p, K, V, S>;

    fn into_iter(self) -> TableIter<'p, K, V, S> {
        self.iter()
    }
}

impl<K: NoUninit, V: NoUninit, S: Default> Default for ConcurrentTable<K, V, S> {
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

impl<K, V, S> Extend<(K, V)> for &ConcurrentTable<K, V, S>
where
    K: NoUninit + Eq + Hash,
    V: NoUninit,
    S: BuildHasher,
{
    /// Inserts all entries.
    ///
    /// # Panics
    ///
    /// If an insertion is refused: see [`Refused`](crate::concurrent::Refused).
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        self.pin().insert_all(entries, |pin, (key, value)| pin.insert(key, value).map(drop));
    }
}

impl<K, V, S> Extend<(K, V)> for ConcurrentTable<K, V, S>
where
    K: NoUninit + Eq + Hash,
    V: NoUninit,
    S: BuildHasher,
{
    /// Inserts all entries.
    ///
    /// # Panics
    ///
    /// If an insertion is refused: see [`Refused`](crate::concurrent::Refused).
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        (&*self).extend(entries);
    }
}

impl<K, V, S> FromIterator<(K, V)> for ConcurrentTable<K, V, S>
where
    K: NoUninit + Eq + Hash,
    V: NoUninit,
    S: BuildHasher + Default,
{
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut table = Self::default();
        table.extend(entries);
        table
    }
}

impl<K: NoUninit + Eq + Hash, V: NoUninit, const N: usize> From<[(K, V); N]>
    for ConcurrentTable<K, V>
{
    fn from(entries: [(K, V); N]) -> Self {
        Self::from_iter(entries)
    }
}

impl<K, V, S> fmt::Debug for ConcurrentTable<K, V, S>
where
    K: NoUninit + Eq + Hash + fmt::Debug,
    V: NoUninit + fmt::Debug,
    S: BuildHasher,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pin().fmt(f)
    }
}

impl<K, V, S, G> fmt::Debug for Pinned<'_, ConcurrentTable<K, V, S>, G>
where
    K: NoUninit + Eq + Hash + fmt::Debug,
    V: NoUninit + fmt::Debug,
    S: BuildHasher,
    G: Borrow<Guard>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K, V, S> fmt::Debug for TableIter<'_, K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableIter").finish_non_exhaustive()
    }
}
