//! Traversals, concurrent with writers.
//!
//! A traversal copies one segment at a time, under the lock of its shard, in the order of the mixed
//! hashes. If a segment has split since, its half is copied next; if it was merged, the entries
//! that the traversal has passed are left out, by their hashes. So an entry that stays in the table
//! is visited once.

use alloc::vec::Vec;

use crossbeam_epoch::Guard;

use super::Engine;
use super::segment::Slot;
use super::shard::Writer;
use super::storage::Storage;
use crate::concurrent::policy::SHARDS;

impl<'p, C: Storage> Writer<'p, C> {
    /// Returns the first mixed hash after the range of the segment of `mixed`, with its low bits
    /// cleared; `None` if the segment is the last one.
    pub(super) fn end(&self, mixed: u64) -> Option<u64> {
        let segment = self.segment(mixed);
        let shift = 64 - segment.depth();
        let prefix = mixed.checked_shr(shift).unwrap_or(0);
        (prefix + 1).checked_shl(shift).filter(|&end| end != 0 && shift < 64)
    }

    /// Copies to `to` the entries of the segment of `mixed` whose mixed hashes are not less.
    fn copy_entries<T>(
        &self,
        mixed: u64,
        to: &mut Vec<T>,
        copy: impl Fn(Slot<'p, C>) -> T,
        hash_of: impl Fn(Slot<'_, C>) -> u64,
    ) {
        let segment = self.segment(mixed);
        // The bits of `first` after the prefix of the segment: not zero if the segment begins
        // before it.
        let first = mixed & !(SHARDS as u64 - 1);
        let rest = first & u64::MAX.checked_shr(segment.depth()).unwrap_or(0);
        let is_left = |&slot: &_| rest == 0 || C::mix(hash_of(slot)) >= first;
        to.extend(segment.entries().filter(is_left).map(copy));
    }
}

/// A traversal of all entries, copied as `T`.
pub(in crate::concurrent) struct Walk<'p, C: Storage, T> {
    engine: &'p Engine<C>,
    pin: &'p Guard,
    shard: usize,
    /// The first prefix of the shard that is not copied yet; `None` if all are.
    position: Option<u64>,
    /// The remaining entries of the last segment.
    entries: Vec<T>,
}

impl<'p, C: Storage, T> Walk<'p, C, T> {
    pub(in crate::concurrent) fn new(engine: &'p Engine<C>, pin: &'p Guard) -> Self {
        Self { engine, pin, shard: 0, position: Some(0), entries: Vec::new() }
    }

    /// Returns the next entry, by `copy`.
    pub(in crate::concurrent) fn next(
        &mut self,
        copy: impl Fn(Slot<'p, C>) -> T,
        hash_of: impl Fn(Slot<'_, C>) -> u64,
    ) -> Option<T> {
        loop {
            if let Some(entry) = self.entries.pop() {
                return Some(entry);
            }
            // Most shards of a small table have no entries: they are not locked.
            let has_entries = self.engine.shards[self.shard].len() > 0;
            let Some(position) = self.position.filter(|_| has_entries) else {
                if self.shard + 1 >= SHARDS {
                    return None;
                }
                (self.shard, self.position) = (self.shard + 1, Some(0));
                continue;
            };
            let writer = Writer::new(self.engine, self.shard, self.pin);
            let mixed = position | self.shard as u64;
            writer.copy_entries(mixed, &mut self.entries, &copy, &hash_of);
            self.position = writer.end(mixed);
        }
    }
}
