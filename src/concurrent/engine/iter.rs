//! Traversals, concurrent with writers.
//!
//! A traversal copies one segment at a time, under the lock of its shard, in the order of the mixed
//! hashes. If a segment has split since, its half is copied next; if it was merged, the entries
//! that the traversal has passed are left out, by their hashes. So an entry that stays in the table
//! is visited once.
//!
//! A copy is a number for each entry: its id, or its slot, if the slots of a segment are not
//! reused. They are stored in the traversal itself, which allocates nothing.

use crossbeam_epoch::Guard;

use super::Engine;
use super::plan::MOST;
use super::segment::{Segment, Slot};
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
}

/// Iterates over the entries of the segment of `mixed` whose mixed hashes are not less.
fn entries_from<'p, C: Storage>(
    segment: Segment<'p, C>,
    mixed: u64,
    hash_of: impl Fn(Slot<'_, C>) -> u64,
) -> impl Iterator<Item = Slot<'p, C>> {
    // The bits of `first` after the prefix of the segment: not zero if the segment begins before
    // it.
    let first = mixed & !(SHARDS as u64 - 1);
    let rest = first & u64::MAX.checked_shr(segment.depth()).unwrap_or(0);
    segment.entries().filter(move |&slot| rest == 0 || C::mix(hash_of(slot)) >= first)
}

/// A traversal of all entries.
pub(in crate::concurrent) struct Walk<'p, C: Storage> {
    engine: &'p Engine<C>,
    pin: &'p Guard,
    shard: usize,
    /// The first prefix of the shard that is not copied yet; `None` if all are.
    position: Option<u64>,
    /// The numbers of the remaining entries of the last segment, and their count.
    numbers: [u32; MOST],
    len: usize,
    /// The last segment, which is not freed while the pin lasts.
    segment: Segment<'p, C>,
}

impl<'p, C: Storage> Walk<'p, C> {
    /// Begins a traversal. Inlined, so that the numbers are not copied.
    #[inline]
    pub(in crate::concurrent) fn new(engine: &'p Engine<C>, pin: &'p Guard) -> Self {
        const { assert!(C::SIZES.largest() as usize * C::SLOTS <= MOST) };
        let segment = engine.segment(0, pin);
        Self { engine, pin, shard: 0, position: Some(0), numbers: [0; MOST], len: 0, segment }
    }

    /// Returns the number of the next entry, by `number_of`.
    pub(in crate::concurrent) fn next(
        &mut self,
        number_of: impl Fn(Slot<'p, C>) -> u32,
        hash_of: impl Fn(Slot<'_, C>) -> u64,
    ) -> Option<u32> {
        loop {
            if let Some(last) = self.len.checked_sub(1) {
                self.len = last;
                return Some(self.numbers[last]);
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
            self.segment = writer.segment(mixed);
            let entries = entries_from(self.segment, mixed, &hash_of);
            let mut len = 0;
            for (number, slot) in self.numbers.iter_mut().zip(entries) {
                *number = number_of(slot);
                len += 1;
            }
            // After all hashes, which may panic.
            (self.len, self.position) = (len, writer.end(mixed));
        }
    }

    /// Returns the slot with a number, of the segment of the last entry. Read without the lock:
    /// the words of the entry were stored before the slot was noted under it, and the slot is not
    /// reused.
    pub(in crate::concurrent) fn slot(&self, number: u32) -> Slot<'p, C> {
        self.segment.slot(number)
    }
}
