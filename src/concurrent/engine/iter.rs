//! Traversals, concurrent with writers.
//!
//! A traversal copies one segment after the other, in the order of the paths of mixed hashes; of
//! ids, as many segments at a time as there is room for. If a segment has split since, its half is
//! copied next; if it was merged, the entries that the traversal has passed are left out, by their
//! hashes. So an entry that stays in the table is visited once.
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
use core::slice;

use crossbeam_epoch::Guard;

use super::Engine;
use super::plan::MOST;
use super::segment::{Segment, Slot};
use super::shard::Writer;
use super::storage::Storage;
use crate::concurrent::policy::{self, SHARD_BITS, mixed_of, root_of};
use crate::table::tags::GROUP as NUMBERS;

/// The paths of the entries of a segment.
struct Range {
    first: u64,
    /// The first path after them.
    end: Option<u64>,
}

impl Range {
    /// Returns the range of a segment, which has this path.
    #[inline]
    fn of<C: Storage>(segment: Segment<'_, C>, path: u64) -> Self {
        // 0 for a segment of all paths.
        let size = 1_u64 << 63 >> segment.depth() << 1;
        let first = path & size.wrapping_neg();
        Self { first, end: Some(first.wrapping_add(size)).filter(|&end| end != 0) }
    }
}

impl<C: Storage> Writer<'_, C> {
    /// Returns the first path after the range of the segment that has this path; `None` if the
    /// segment is the last one.
    pub(super) fn end(&self, path: u64) -> Option<u64> {
        Range::of(self.segment(mixed_of(path)), path).end
    }
}

/// A traversal of all entries. The fields that each step reads are in one cache line, before the
/// numbers: `repr(C)` keeps that order.
#[repr(C)]
pub(in crate::concurrent) struct Walk<'p, C: Storage> {
    engine: &'p Engine<C>,
    pin: &'p Guard,
    /// The first path that is not copied yet.
    position: Option<u64>,
    /// The count of the remaining `numbers`.
    len: usize,
    /// The last segment, which is not freed while the pin lasts.
    pub(in crate::concurrent) segment: Segment<'p, C>,
    /// Of the entries that were copied last: ids, or slots of `segment`. With room for the numbers
    /// of another group, free slots included.
    numbers: [MaybeUninit<u32>; MOST + NUMBERS],
}

impl<'p, C: Storage> Walk<'p, C> {
    /// Begins a traversal. Inlined, so that the numbers are not copied.
    #[inline]
    pub(in crate::concurrent) fn new(engine: &'p Engine<C>, pin: &'p Guard) -> Self {
        const { assert!(C::SIZES.largest() as usize * C::SLOTS <= MOST) };
        Self {
            engine,
            pin,
            position: Some(0),
            len: 0,
            segment: engine.segment(0, pin),
            numbers: [MaybeUninit::uninit(); MOST + NUMBERS],
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
        let number = *self.left().last()?;
        self.len -= 1;
        Some(number)
    }

    /// Calls `each` with the segment of each entry that is left, and its number, by `number_of`.
    #[inline]
    pub(in crate::concurrent) fn for_each(
        &mut self,
        number_of: impl Fn(Slot<'p, C>) -> u32,
        hash_of: impl Fn(Slot<'_, C>) -> u64,
        mut each: impl FnMut(Segment<'p, C>, u32),
    ) {
        loop {
            let segment = self.segment;
            self.left().iter().for_each(|&number| each(segment, number));
            self.len = 0;
            self.fill(&number_of, &hash_of);
            if self.len == 0 {
                return;
            }
        }
    }

    /// Returns the numbers of the entries that are left of those that were copied.
    #[inline]
    fn left(&self) -> &[u32] {
        // SAFETY: the numbers before `len` are written.
        unsafe { slice::from_raw_parts(self.numbers.as_ptr().cast(), self.len) }
    }

    /// Copies the numbers of the next segment; of ids, of all next segments that have room.
    #[inline(never)]
    fn fill(
        &mut self,
        number_of: impl Fn(Slot<'p, C>) -> u32,
        hash_of: impl Fn(Slot<'_, C>) -> u64,
    ) {
        while let Some(path) = self.position {
            let segment = self.engine.segment(mixed_of(path), self.pin);
            let is_copied = self.has_room(segment)
                && (self.copy_unlocked(segment, path, &number_of)
                    || self.copy_locked(path, &number_of, &hash_of));
            if !is_copied {
                return;
            }
        }
    }

    /// Returns whether all entries of a segment can be copied now: so it is without earlier ones.
    #[inline]
    fn has_room(&self, segment: Segment<'p, C>) -> bool {
        // The number of a slot is found in the last segment only.
        self.len == 0 || C::REUSES && self.len + segment.len() * C::SLOTS <= MOST
    }

    /// Copies the ids of the segment that has a path, unless a removal takes effect before the end,
    /// or some of its entries have been visited. Returns whether it has.
    #[inline]
    fn copy_unlocked(
        &mut self,
        segment: Segment<'p, C>,
        path: u64,
        number_of: impl Fn(Slot<'p, C>) -> u32,
    ) -> bool {
        let range = Range::of(segment, path);
        if !C::REUSES || range.first != path {
            return false;
        }
        // The first path of a segment is the number of its shard, even if that has split since.
        let shard = &self.engine.shards[root_of(mixed_of(path))];
        let before = shard.counts().removals;
        let len = self.copy(segment, |_| true, number_of);
        let is_copied = shard.counts().removals == before;
        if is_copied {
            (self.position, self.len, self.segment) = (range.end, len, segment);
        }
        is_copied
    }

    /// Copies the numbers of the entries of the segment that has a path, and that have not been
    /// visited, under the lock of the shard. Returns whether it has: not if the segment has grown,
    /// so that there is no room.
    fn copy_locked(
        &mut self,
        path: u64,
        number_of: impl Fn(Slot<'p, C>) -> u32,
        hash_of: impl Fn(Slot<'_, C>) -> u64,
    ) -> bool {
        let writer = self.engine.lock(mixed_of(path), self.pin);
        let segment = writer.segment(mixed_of(path));
        if !self.has_room(segment) {
            return false;
        }
        let range = Range::of(segment, path);
        self.len = if range.first == path {
            self.copy(segment, |_| true, number_of)
        } else {
            // The bits of the shard are those of the position.
            let rest = |path: u64| path << SHARD_BITS;
            let is_left = |slot| rest(policy::path(C::mix(hash_of(slot)))) >= rest(path);
            self.copy(segment, is_left, number_of)
        };
        // After all hashes, which may panic.
        (self.position, self.segment) = (range.end, segment);
        true
    }

    /// Copies the numbers of entries. Returns the number of all that are copied.
    ///
    /// A branch for each slot would be mispredicted: so the numbers of free slots are stored, too,
    /// and overwritten by the next one.
    #[inline(always)]
    fn copy(
        &mut self,
        segment: Segment<'p, C>,
        is_left: impl Fn(Slot<'p, C>) -> bool,
        number_of: impl Fn(Slot<'p, C>) -> u32,
    ) -> usize {
        let mut len = self.len;
        for (slots, occupied) in segment.occupied() {
            let Some(numbers) = self.numbers[len..].first_chunk_mut::<NUMBERS>() else { break };
            let mut count = 0;
            for slot in 0..C::SLOTS {
                numbers[count % NUMBERS].write(number_of(slots(slot)));
                let own = occupied.count_at(slot);
                count += if own == 0 || is_left(slots(slot)) { own } else { 0 };
            }
            len += count;
        }
        len
    }
}
