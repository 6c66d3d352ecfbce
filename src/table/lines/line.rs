//! A line of 12 tags and 12 numbers.
#![allow(unsafe_code)]

use crate::probes::Observer;
use crate::table::tags::{Group, Mask};

/// Slots of a line.
pub(super) const SLOTS: usize = 12;

/// The tag of a free slot.
const FREE: u8 = 0;

/// The index of the overflow count behind the tags.
const OVERFLOW: usize = SLOTS;

/// A line of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub(crate) struct Line {
    /// 12 tags, the overflow count and three spare bytes.
    tags: [u8; 16],
    /// By slot; the numbers of free slots have no meaning.
    numbers: [u32; SLOTS],
}

impl Line {
    /// A line without entries.
    pub(super) const EMPTY: Self = Self { tags: [FREE; 16], numbers: [0; SLOTS] };

    /// The slots with the tag of a hash.
    #[inline(always)]
    pub(super) fn matches_hash(&self, hash: u32) -> Mask {
        self.group().matches_hash(u64::from(hash) << u32::BITS).below(SLOTS)
    }

    /// The slots with this tag.
    #[inline(always)]
    pub(super) fn matches(&self, tag: u8) -> Mask {
        self.group().matches(tag).below(SLOTS)
    }

    #[inline(always)]
    fn group(&self) -> Group {
        // SAFETY: there are 16 bytes, at the begin of a value aligned to 64 bytes.
        unsafe { Group::load(self.tags.as_ptr()) }
    }

    /// The number with this tag for which `eq` returns true.
    #[inline(always)]
    pub(super) fn find(
        &self,
        hash: u32,
        eq: &mut impl FnMut(u32) -> bool,
        observer: &mut impl Observer,
    ) -> Option<u32> {
        observer.node();
        for slot in self.matches_hash(hash) {
            let number = self.number(slot);
            observer.entry();
            if eq(number) {
                return Some(number);
            }
        }
        None
    }

    /// The free slots.
    #[inline(always)]
    pub(super) fn free(&self) -> Mask {
        self.matches(FREE)
    }

    /// The number in a slot.
    #[inline(always)]
    pub(super) const fn number(&self, slot: usize) -> u32 {
        self.numbers[slot]
    }

    /// Entries that have passed this line.
    #[inline(always)]
    pub(super) fn overflow(&self) -> u8 {
        // Volatile, or else it is extracted from the register of the tags, by way of the stack.
        // SAFETY: it is a reference.
        unsafe { (&raw const self.tags[OVERFLOW]).read_volatile() }
    }

    /// The tags and numbers of the entries.
    pub(super) fn entries(&self) -> impl Iterator<Item = (u8, u32)> {
        let slots = self.tags.iter().copied().zip(self.numbers);
        slots.filter(|(tag, _)| *tag != FREE)
    }

    /// Inserts an entry into a free slot. Returns whether there is one.
    #[inline(always)]
    pub(super) fn try_insert(&mut self, tag: u8, number: u32) -> bool {
        let Some(slot) = self.free().next() else { return false };
        self.tags[slot] = tag;
        self.numbers[slot] = number;
        true
    }

    /// Removes an entry. Returns whether it was there.
    #[inline(always)]
    pub(super) fn remove(&mut self, tag: u8, number: u32) -> bool {
        let slot = self.matches(tag).find(|slot| self.number(*slot) == number);
        if let Some(slot) = slot {
            self.tags[slot] = FREE;
        }
        slot.is_some()
    }

    /// Counts an entry that passes this line. A count of 255 stays.
    #[inline(always)]
    pub(super) fn increment(&mut self) {
        self.tags[OVERFLOW] = self.overflow().saturating_add(1);
    }

    /// Counts an entry no more that has passed this line.
    #[inline(always)]
    pub(super) fn decrement(&mut self) {
        debug_assert!(self.overflow() > 0, "L3");
        self.tags[OVERFLOW] -= u8::from(self.overflow() < u8::MAX);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn a_line_is_a_cache_line_of_twelve_entries() {
        assert_eq!((size_of::<Line>(), align_of::<Line>()), (64, 64));
        let mut line = Line::EMPTY;
        for number in 0..SLOTS as u32 {
            assert_eq!(line.free().count(), SLOTS - number as usize);
            assert!(line.try_insert(1 + number as u8 % 3, 100 + number));
        }
        assert!(line.free().is_empty() && !line.try_insert(1, 0));
        let numbers =
            |line: &Line| -> Vec<u32> { line.matches(2).map(|slot| line.number(slot)).collect() };
        assert_eq!(numbers(&line), [101, 104, 107, 110]);
        assert!(line.remove(2, 104) && !line.remove(2, 104) && !line.remove(1, 110));
        assert_eq!(numbers(&line), [101, 107, 110]);
        assert_eq!((line.entries().count(), line.free().lowest()), (11, 4));
    }

    #[test]
    fn the_overflow_count_is_no_tag_and_saturates() {
        let mut line = Line::EMPTY;
        (0..7).for_each(|_| line.increment());
        assert_eq!((line.overflow(), line.matches(7).count(), line.free().count()), (7, 0, 12));
        (0..7).for_each(|_| line.decrement());
        assert_eq!(line, Line::EMPTY);
        (0..300).for_each(|_| line.increment());
        (0..300).for_each(|_| line.decrement());
        assert_eq!(line.overflow(), 255);
    }
}
