//! Traversals, concurrent with writers.
//!
//! A traversal copies one segment after the other, in the order of the mixed hashes; of ids, as
//! many segments at a time as there is room for. If a segment has split since, its half is copied
//! next; if it was merged, the entries that the traversal has passed are left out, by their hashes.
//! So an entry that stays in the table is visited once.
//!
//! A copy is a number for each entry: its id, or its slot, if the slots of a segment are not
//! reused. They are stored in the traversal itself, which allocates nothing.
//!
//! Ids are copied without the lock of the shard, and copied again under the lock if the count of
//! removals has changed in the meantime:
//!
//! - An entry that stays is in one slot of a segment, from its insertion on, and is copied once:
//!   its slot does not change, only the id there, when its value is replaced.
//! - A segment that is replaced after it was loaded does not change any more: it has each key once,
//!   and each entry that stays, and its range is passed then.
//! - A key is copied twice only if its entry is removed after it was copied, and the key inserted
//!   again in a later group. The removal is counted before the insertion is published, so the
//!   second count observes it; the first count did not, or the copy would not have the entry.
//!
//! The slots of entries of words are copied under the lock: an entry whose value is replaced may
//! move to another group. So are the ids of a segment that begins before the position, after a
//! merge or during a split: the hashes of its entries are for lock holders.

#![allow(unsafe_code)]

use core::mem::MaybeUninit;

use crossbeam_epoch::Guard;

use super::Engine;
use super::plan::MOST;
use super::segment::{Segment, Slot};
use super::shard::{Shard, Writer};
use super::storage::Storage;
use crate::concurrent::policy::{SHARDS, bit_below};

/// The mixed hashes of a segment.
struct Range {
    first: u64,
    /// The first mixed hash after them; 0 if there is none.
    end: u64,
}

impl Range {
    /// Returns the range of a segment, the segment of `mixed`.
    #[inline]
    fn of<C: Storage>(segment: Segment<'_, C>, mixed: u64) -> Self {
        // 0 for a segment of all mixed hashes.
        let size = bit_below(segment.depth()) << 1;
        let first = mixed & size.wrapping_neg();
        Self { first, end: first.wrapping_add(size) }
    }
}

impl<C: Storage> Writer<'_, C> {
    /// Returns the first mixed hash after the range of the segment of `mixed`; `None` if the
    /// segment is the last one.
    pub(super) fn end(&self, mixed: u64) -> Option<u64> {
        Some(Range::of(self.segment(mixed), mixed).end).filter(|&end| end != 0)
    }
}

/// A traversal of all entries. The fields that each step reads are in one cache line, before the
/// numbers: `repr(C)` keeps that order.
#[repr(C)]
pub(in crate::concurrent) struct Walk<'p, C: Storage> {
    engine: &'p Engine<C>,
    pin: &'p Guard,
    shard: usize,
    /// The first prefix of the shard that is not copied yet.
    position: u64,
    /// The count of the remaining `numbers`.
    len: usize,
    /// The last segment, which is not freed while the pin lasts.
    segment: Segment<'p, C>,
    /// Of the entries that were copied last: ids, or slots of `segment`.
    numbers: [MaybeUninit<u32>; MOST],
}

impl<'p, C: Storage> Walk<'p, C> {
    /// Begins a traversal. Inlined, so that the numbers are not copied.
    #[inline]
    pub(in crate::concurrent) fn new(engine: &'p Engine<C>, pin: &'p Guard) -> Self {
        const { assert!(C::SIZES.largest() as usize * C::SLOTS <= MOST) };
        let segment = engine.segment(0, pin);
        Self {
            engine,
            pin,
            shard: 0,
            position: 0,
            numbers: [MaybeUninit::uninit(); MOST],
            len: 0,
            segment,
        }
    }

    /// Returns the number of the next entry, by `number_of`.
    #[inline]
    pub(in crate::concurrent) fn next(
        &mut self,
        number_of: impl Fn(Slot<'p, C>) -> u32,
        hash_of: impl Fn(Slot<'_, C>) -> u64,
    ) -> Option<u32> {
        if self.len == 0 {
            self.fill(number_of, hash_of);
        }
        self.len = self.len.checked_sub(1)?;
        // SAFETY: the numbers before `len` are written.
        Some(unsafe { self.numbers[self.len].assume_init() })
    }

    /// Copies the numbers of the next segment; of ids, of all next segments that have room.
    #[inline(never)]
    fn fill(
        &mut self,
        number_of: impl Fn(Slot<'p, C>) -> u32,
        hash_of: impl Fn(Slot<'_, C>) -> u64,
    ) {
        while self.shard < SHARDS {
            // Most shards of a small table have no entries.
            while self.shard().counts().len > 0 {
                let mixed = self.position | self.shard as u64;
                let segment = self.engine.segment(mixed, self.pin);
                if !self.has_room(segment) {
                    return;
                }
                let end = self
                    .copy_unlocked(segment, mixed, &number_of)
                    .or_else(|| self.copy_locked(mixed, &number_of, &hash_of));
                let Some(end) = end else { return };
                // A branch, which the CPU predicts: the next loads do not wait for the depth.
                if end == 0 {
                    break;
                }
                self.position = end;
            }
            (self.shard, self.position) = (self.shard + 1, 0);
        }
    }

    fn shard(&self) -> &'p Shard<C> {
        &self.engine.shards[self.shard]
    }

    /// Returns whether all entries of a segment can be copied now: so it is without earlier ones.
    #[inline]
    fn has_room(&self, segment: Segment<'p, C>) -> bool {
        // The number of a slot is found in the last segment only.
        self.len == 0 || C::REUSES && self.len + segment.len() * C::SLOTS <= MOST
    }

    /// Copies the ids of the segment of `mixed`, unless a removal takes effect in the meantime, or
    /// some of its entries have been visited. Returns the end of its range.
    #[inline]
    fn copy_unlocked(
        &mut self,
        segment: Segment<'p, C>,
        mixed: u64,
        number_of: impl Fn(Slot<'p, C>) -> u32,
    ) -> Option<u64> {
        let range = Range::of(segment, mixed);
        if !C::REUSES || range.first != self.position {
            return None;
        }
        let before = self.shard().counts().removals;
        let len = self.copy(segment, |_| true, number_of);
        (self.shard().counts().removals == before).then(|| {
            (self.len, self.segment) = (len, segment);
            range.end
        })
    }

    /// Copies the numbers of the entries of the segment of `mixed` that have not been visited,
    /// under the lock of the shard. Returns the end of its range; `None` if the segment has grown,
    /// so that there is no room.
    #[inline]
    fn copy_locked(
        &mut self,
        mixed: u64,
        number_of: impl Fn(Slot<'p, C>) -> u32,
        hash_of: impl Fn(Slot<'_, C>) -> u64,
    ) -> Option<u64> {
        let writer = Writer::new(self.engine, self.shard, self.pin);
        let (segment, first) = (writer.segment(mixed), self.position);
        if !self.has_room(segment) {
            return None;
        }
        let range = Range::of(segment, mixed);
        let is_left = |slot| range.first == first || C::mix(hash_of(slot)) >= first;
        // After all hashes, which may panic.
        (self.len, self.segment) = (self.copy(segment, is_left, number_of), segment);
        Some(range.end)
    }

    /// Copies the numbers of entries. Returns the number of all that are copied.
    #[inline]
    fn copy(
        &mut self,
        segment: Segment<'p, C>,
        is_left: impl Fn(Slot<'p, C>) -> bool,
        number_of: impl Fn(Slot<'p, C>) -> u32,
    ) -> usize {
        let mut len = self.len;
        segment.entries().filter(|&slot| is_left(slot)).for_each(|slot| {
            if let Some(number) = self.numbers.get_mut(len) {
                number.write(number_of(slot));
                len += 1;
            }
        });
        len
    }

    /// Returns the slot with a number, of the segment of the last entry. Read without the lock:
    /// the words of the entry were stored before the slot was noted under it, and the slot is not
    /// reused.
    pub(in crate::concurrent) fn slot(&self, number: u32) -> Slot<'p, C> {
        self.segment.slot(number)
    }
}
