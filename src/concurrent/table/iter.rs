//! Traversals, concurrent with writers.
//!
//! A traversal copies one segment at a time, under the lock of its shard, in the order of the mixed
//! hashes. If a segment has split since, its half is copied next; if it was merged, the entries
//! that the traversal has passed are left out, by their hashes. So an entry that stays in the table
//! is visited once.

use alloc::vec;
use alloc::vec::Vec;
use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};
use core::iter::FusedIterator;

use bytemuck::NoUninit;

use super::ConcurrentTable;
use super::pinned::PinnedTable;
use super::shard::Writer;
use crate::concurrent::guard::Guard;
use crate::concurrent::policy::{SHARDS, mix};

impl<K, V, S> Writer<'_, K, V, S> {
    /// Returns the first mixed hash after those of the segment of `mixed`, with its low bits
    /// cleared; `None` if the segment is the last one.
    pub(super) fn end(&self, mixed: u64) -> Option<u64> {
        let segment = self.segment(mixed);
        let shift = 64 - segment.depth();
        let prefix = mixed.checked_shr(shift).unwrap_or(0);
        (prefix + 1).checked_shl(shift).filter(|&end| end != 0 && shift < 64)
    }
}

impl<K: NoUninit + Hash, V: NoUninit, S: BuildHasher> Writer<'_, K, V, S> {
    /// Copies the entries of the segment of `mixed` whose mixed hashes are not less.
    fn entries(&self, mixed: u64) -> Vec<(K, V)> {
        let segment = self.segment(mixed);
        let depth = segment.depth();
        // The bits of a prefix after that of the segment: set if it began before `mixed`.
        let rest = mixed & (u64::MAX.checked_shr(depth).unwrap_or(0)) & !(SHARDS as u64 - 1);
        let entries = segment.entries().map(|(group, slot)| (group.key(slot), group.value(slot)));
        let is_left = |(key, _): &(K, V)| mix(self.table.hasher.hash_one(key)) >= mixed & !63;
        entries.filter(|entry| rest == 0 || is_left(entry)).collect()
    }
}

impl<K: NoUninit + Hash, V: NoUninit, S: BuildHasher, G: Borrow<Guard>>
    PinnedTable<'_, K, V, S, G>
{
    /// Iterates over copies of all entries, in no order. A key is visited at most once, and exactly
    /// once if it stays in the table. Waits for writers: it copies one segment at a time under the
    /// lock of its shard.
    ///
    /// # Example
    ///
    /// ```
    /// let table = flowtable::ConcurrentTable::from([(1_u32, 10_u32), (2, 20)]);
    /// let pin = table.pin();
    /// assert_eq!(pin.iter().map(|(_, value)| value).sum::<u32>(), 30);
    /// ```
    #[must_use]
    pub fn iter(&self) -> TableIter<'_, K, V, S> {
        TableIter { table: self.table, shard: 0, position: Some(0), entries: vec![].into_iter() }
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

/// An iterator over copies of all entries of a table: see [`PinnedTable::iter`].
pub struct TableIter<'t, K, V, S> {
    pub(super) table: &'t ConcurrentTable<K, V, S>,
    shard: usize,
    /// The first prefix of the shard that is not copied yet; `None` if all are.
    position: Option<u64>,
    /// The remaining entries of the last segment.
    entries: vec::IntoIter<(K, V)>,
}

impl<K: NoUninit + Hash, V: NoUninit, S: BuildHasher> Iterator for TableIter<'_, K, V, S> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        loop {
            if let Some(entry) = self.entries.next() {
                return Some(entry);
            }
            let Some(position) = self.position else {
                if self.shard + 1 >= SHARDS {
                    return None;
                }
                (self.shard, self.position) = (self.shard + 1, Some(0));
                continue;
            };
            let writer = Writer::new(self.table, self.shard);
            let mixed = position | self.shard as u64;
            self.entries = writer.entries(mixed).into_iter();
            self.position = writer.end(mixed);
        }
    }
}

impl<K: NoUninit + Hash, V: NoUninit, S: BuildHasher> FusedIterator for TableIter<'_, K, V, S> {}

impl<'p, K, V, S, G> IntoIterator for &'p PinnedTable<'_, K, V, S, G>
where
    K: NoUninit + Hash,
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
