//! Lines: a cache line with the tags and the ids of twelve entries.
//!
//! ```text
//!     ┌──┬──┬─ … ─┬──┬──┬──┬──┬─ … ─┬───┬───────┬────────┬────┬────┬─ … ─┬─────┐
//!     │t0│t1│     │t7│t8│t9│  │     │t11│       │overflow│ id │ id │     │ id  │
//!     └──┴──┴─ … ─┴──┴──┴──┴──┴─ … ─┴───┴───────┴────────┴────┴────┴─ … ─┴─────┘
//!      a word of tags │ a word of tags and the count      │ twelve times four bytes
//! ```
//!
//! Only the lock holder stores. A slot whose tag is not zero has the id of an entry. A reader that
//! has loaded the tag may find the id of a later entry of the slot: so a key is always compared.
//!
//! The two words are loaded one after the other, and then, only if no entry was found, the overflow
//! count. A reader that does not find an entry in any of them has seen for each a moment at which
//! the entry was not there: in the slots of a word, or in a later line. And an entry moves from one
//! to another only by a removal and an insertion, so between two such moments it was absent.

use core::array;
use core::ops::Range;

use crate::concurrent::sync::{AtomicU32, AtomicU64, IS_CHECKED, Ordering};
use crate::table::tags::{Group, Mask};

/// Slots of a line. Under a checker, one for each word of tags.
pub(super) const SLOTS: usize = if IS_CHECKED { 2 } else { 12 };

/// The distance of two tags, in bytes.
const STEP: usize = if IS_CHECKED { 8 } else { 1 };

/// The bytes of tags.
const TAGS: usize = (SLOTS - 1) * STEP + 1;

/// The tag of a free slot.
const FREE: u8 = 0;

/// The position of the overflow count in the second word.
const OVERFLOW: u32 = 56;

/// Returns the tag of a mixed hash.
#[inline(always)]
pub(super) fn tag(mixed: u64) -> u8 {
    ((mixed >> 16) as u8).max(FREE + 1)
}

/// Returns the word of a slot's tag, and its position there.
const fn position(slot: usize) -> (usize, usize) {
    (slot * STEP / 8, slot * STEP % 8 * 8)
}

#[repr(C, align(64))]
pub(super) struct Line {
    tags: [AtomicU64; 2],
    ids: [AtomicU32; SLOTS],
}

/// The tags of a line that were loaded.
#[derive(Clone, Copy)]
pub(super) struct Tags([u64; 2]);

impl Tags {
    #[inline(always)]
    fn slots(self, mask: Mask) -> impl Iterator<Item = usize> {
        let bytes = mask.below(TAGS).filter(|byte| !IS_CHECKED || byte % 8 == 0);
        bytes.map(|byte| byte / STEP)
    }

    /// Iterates over the slots with this tag.
    #[inline(always)]
    pub(super) fn matches(self, tag: u8) -> impl Iterator<Item = usize> {
        self.slots(Group::of_words(self.0).matches(tag))
    }

    /// Iterates over the free slots.
    #[inline(always)]
    pub(super) fn free(self) -> impl Iterator<Item = usize> {
        self.matches(FREE)
    }

    /// Iterates over the slots of entries.
    pub(super) fn full(self) -> Full {
        Full { tags: self, slots: 0..SLOTS }
    }

    /// Returns the tag of a slot.
    pub(super) fn tag(self, slot: usize) -> u8 {
        let (word, shift) = position(slot);
        (self.0[word] >> shift) as u8
    }
}

/// An iterator over the slots of entries of a line whose tags have been loaded.
pub(super) struct Full {
    tags: Tags,
    slots: Range<usize>,
}

impl Iterator for Full {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.slots.find(|&slot| self.tags.tag(slot) != FREE)
    }
}

impl Line {
    /// Creates a line with free slots.
    pub(super) fn new() -> Self {
        let tags = array::from_fn(|_| AtomicU64::new(0));
        Self { tags, ids: array::from_fn(|_| AtomicU32::new(0)) }
    }

    /// Loads the tags.
    #[inline(always)]
    pub(super) fn tags(&self) -> Tags {
        // Acquire: pairs with the Release in `set`: a reader that observes a tag observes the id
        // and the entry.
        Tags(array::from_fn(|word| self.tags[word].load(Ordering::Acquire)))
    }

    /// Loads the overflow count: the number of entries whose home is this line or an earlier one,
    /// and that are in a later one. It saturates at 255, which means "unknown". Loaded after the
    /// tags.
    #[inline(always)]
    pub(super) fn overflow(&self) -> u8 {
        // Acquire: pairs with the Release in `set`: a reader that observes a count observes the
        // overflowed entry.
        (self.tags[1].load(Ordering::Acquire) >> OVERFLOW) as u8
    }

    /// Loads the id of a slot whose tag has been loaded.
    #[inline(always)]
    pub(super) fn id(&self, slot: usize) -> u32 {
        // Acquire: pairs with the Release in `replace`, which publishes an entry under an old tag,
        // and with that in `write` if the slot was reused.
        self.ids[slot].load(Ordering::Acquire)
    }

    /// Writes an entry to a free slot.
    pub(super) fn write(&self, slot: usize, tag: u8, id: u32) {
        debug_assert!(self.tags().tag(slot) == FREE && tag != FREE);
        // Release: pairs with the Acquire in `id`, for readers that loaded the tag of a former
        // entry.
        self.ids[slot].store(id, Ordering::Release);
        let (word, shift) = position(slot);
        self.set(word, |tags| tags | u64::from(tag) << shift);
    }

    /// Replaces an entry by another one with the same key.
    pub(super) fn replace(&self, slot: usize, id: u32) {
        // Release: pairs with the Acquire in `id`.
        self.ids[slot].store(id, Ordering::Release);
    }

    /// Frees a slot. The id stays, for readers that have loaded the tag.
    pub(super) fn free(&self, slot: usize) {
        let (word, shift) = position(slot);
        self.set(word, |tags| tags & !(0xff << shift));
    }

    /// Increments the overflow count.
    pub(super) fn increment_overflow(&self) {
        if self.overflow() < u8::MAX {
            self.set(1, |word| word + (1 << OVERFLOW));
        }
    }

    /// Decrements the overflow count.
    pub(super) fn decrement_overflow(&self) {
        // A count of zero here is the result of inconsistent hashes of a key.
        if let 1..=254 = self.overflow() {
            self.set(1, |word| word - (1 << OVERFLOW));
        }
    }

    fn set(&self, word: usize, change: impl FnOnce(u64) -> u64) {
        let word = &self.tags[word];
        // Relaxed: stored by lock holders only.
        // Release: pairs with the Acquire in `tags`.
        word.store(change(word.load(Ordering::Relaxed)), Ordering::Release);
    }
}

#[cfg(all(test, not(any(crossbeam_loom, shuttle))))]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn a_line_is_a_cache_line_of_twelve_entries() {
        assert_eq!((size_of::<Line>(), align_of::<Line>()), (64, 64));
        let line = Line::new();
        for slot in 0..SLOTS {
            assert_eq!(line.tags().free().next(), Some(slot));
            line.write(slot, 1 + slot as u8 % 3, 100 + slot as u32);
        }
        assert_eq!(line.tags().free().next(), None);
        let ids = || -> Vec<u32> { line.tags().matches(2).map(|slot| line.id(slot)).collect() };
        assert_eq!(ids(), [101, 104, 107, 110]);
        line.free(4);
        line.replace(10, 7);
        assert_eq!((ids(), line.tags().full().count()), ([101, 107, 7].to_vec(), 11));
    }

    #[test]
    fn the_overflow_count_is_no_tag_and_saturates() {
        let line = Line::new();
        (0..7).for_each(|_| line.increment_overflow());
        assert_eq!((line.overflow(), line.tags().matches(7).count()), (7, 0));
        (0..9).for_each(|_| line.decrement_overflow());
        assert_eq!((line.overflow(), line.tags().free().count()), (0, SLOTS));
        (0..300).for_each(|_| line.increment_overflow());
        (0..300).for_each(|_| line.decrement_overflow());
        assert_eq!(line.overflow(), 255);
    }

    #[test]
    fn no_tag_is_that_of_a_free_slot() {
        assert!((0..256).all(|byte| tag(byte << 16) != FREE));
    }
}
