//! Groups: a header and the entries of three to seven slots, all of them atomic words.
//!
//! ```text
//!     ┌──┬──┬──┬──┬──┬──┬──┬────────┬─────┬───────┬─────┬───────┬─ …
//!     │t0│t1│t2│t3│t4│  │  │overflow│ key │ value │ key │ value │        16 words: 128 bytes
//!     └──┴──┴──┴──┴──┴──┴──┴────────┴─────┴───────┴─────┴───────┴─ …
//!      header: one word              slot 0        slot 1
//! ```
//!
//! A slot is *free*, *occupied* or *dead*, in this order, and never again free: it is not reused
//! while the group exists. So the words of an entry are stored once, before its tag, except for a
//! value of one word, which is replaced by one store.
//!
//! Only the lock holder stores.
#![allow(unsafe_code)]

use core::marker::PhantomData;

use bytemuck::NoUninit;

use super::plain::{assemble, word, words};
use crate::concurrent::sync::{AtomicU64, Ordering};
use crate::raw::prefetch::prefetch;
use crate::raw::tags::{self, HIGHEST, SlotMask};
use crate::table::tags::{Group as Tags, Mask};

/// The tag of a dead slot. A tag of an entry has the highest bit set, that of a free slot is 0.
const DEAD: u64 = 1;

/// The position of the overflow count in a header.
const OVERFLOW: u32 = 56;

/// Words of a cache line.
const LINE: usize = 8;

/// The layout of groups for keys `K` and values `V`.
pub(super) struct Shape<K, V>(PhantomData<(K, V)>);

impl<K, V> Shape<K, V> {
    /// Words of a key.
    const KEY: usize = words::<K>();
    /// Words of a value.
    pub(super) const VALUE: usize = words::<V>();
    /// Words of an entry.
    const ENTRY: usize = Self::KEY + Self::VALUE;

    /// Words of a group: a cache line for entries of a word; else two, or as many pairs of lines as
    /// three entries need.
    pub(super) const GROUP: usize = match Self::ENTRY {
        0 | 1 => LINE,
        entry => (1 + 3 * entry).next_multiple_of(2 * LINE),
    };

    /// Slots of a group: seven at most, as a header has that number of tags.
    pub(super) const SLOTS: usize = match Self::ENTRY {
        0 => 7,
        entry if (Self::GROUP - 1) / entry < 7 => (Self::GROUP - 1) / entry,
        _ => 7,
    };

    /// The tags of a header.
    const TAGS: u64 = u64::MAX >> (64 - 8 * Self::SLOTS);
}

/// A header that was loaded.
pub(super) struct Header<K, V>(u64, PhantomData<(K, V)>);

impl<K, V> Header<K, V> {
    /// Returns the slots whose entries may have this hash. Its `i`th byte is the tag of slot `i`.
    #[inline(always)]
    fn matches(&self, hash: u64) -> Mask {
        let [stored, probed] = [self.0, hash | HIGHEST].map(|word| Tags::of_words([word, 0]));
        stored.equal(probed).below(Shape::<K, V>::SLOTS)
    }

    /// Returns the occupied slots.
    pub(super) fn occupied(&self) -> SlotMask {
        SlotMask::of(self.0 & Shape::<K, V>::TAGS)
    }

    /// Returns the free slots.
    pub(super) fn free(&self) -> SlotMask {
        // The tag of an occupied slot has the highest bit, that of a dead one the lowest.
        SlotMask::of(!(self.0 | self.0 << 7) & Shape::<K, V>::TAGS)
    }

    /// Returns the overflow count: the number of entries whose home is this group or an earlier
    /// one, and that are in a later one. It saturates at 255, which means "unknown".
    #[inline(always)]
    pub(super) fn overflow(&self) -> u8 {
        (self.0 >> OVERFLOW) as u8
    }
}

/// A group of a segment.
pub(super) struct Group<'p, K, V> {
    /// The header. Points to the words of a group, which are not freed during `'p`.
    first: *const AtomicU64,
    shape: PhantomData<(&'p AtomicU64, K, V)>,
}

impl<K, V> Clone for Group<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for Group<'_, K, V> {}

impl<'p, K, V> Group<'p, K, V> {
    /// # Safety
    ///
    /// There are the words of a group, which are not freed during `'p`.
    #[inline(always)]
    pub(super) unsafe fn at(first: *const AtomicU64) -> Self {
        Self { first, shape: PhantomData }
    }

    #[inline(always)]
    fn word(self, index: usize) -> &'p AtomicU64 {
        debug_assert!(index < Shape::<K, V>::GROUP);
        // SAFETY: a group has these words: see `at`.
        let word = unsafe { self.first.add(index) };
        // SAFETY: not freed during 'p: see `at`.
        unsafe { &*word }
    }

    /// Returns a word of the entry in a slot.
    #[inline(always)]
    fn entry(self, slot: usize, index: usize) -> &'p AtomicU64 {
        self.word(1 + slot * Shape::<K, V>::ENTRY + index)
    }

    /// Prefetches the first cache line.
    #[inline(always)]
    pub(super) fn prefetch(self) {
        prefetch(self.first);
    }

    /// Prefetches the second cache line, if there is one.
    #[inline(always)]
    pub(super) fn prefetch_second(self) {
        if Shape::<K, V>::GROUP > LINE {
            prefetch(self.first.wrapping_add(LINE));
        }
    }

    /// Loads the header.
    #[inline(always)]
    pub(super) fn header(self) -> Header<K, V> {
        // Acquire: pairs with the Release in `set`: a reader that observes a tag observes the words
        // of the entry, and one that observes an overflow count observes the overflowed entry.
        Header(self.word(0).load(Ordering::Acquire), PhantomData)
    }

    fn set(self, header: u64) {
        // Release: pairs with the Acquire in `header`.
        self.word(0).store(header, Ordering::Release);
    }

    /// Increments the overflow count.
    pub(super) fn increment_overflow(self) {
        let header = self.header();
        if header.overflow() < u8::MAX {
            self.set(header.0 + (1 << OVERFLOW));
        }
    }

    /// Decrements the overflow count.
    pub(super) fn decrement_overflow(self) {
        let header = self.header();
        debug_assert!(header.overflow() > 0, "S2");
        if let 1..=254 = header.overflow() {
            self.set(header.0 - (1 << OVERFLOW));
        }
    }

    /// Makes the entry in a slot visible, and that in `dead` invisible, by one store.
    pub(super) fn publish(self, slot: usize, hash: u64, dead: Option<usize>) {
        let header = self.header();
        debug_assert!(header.free().contains(slot));
        let dead = dead.map_or(header.0, |dead| with_dead(header.0, dead));
        self.set(tags::with(dead, slot, hash));
    }

    /// Makes the entry in a slot invisible. Its words stay, for readers that have loaded the tag.
    pub(super) fn kill(self, slot: usize) {
        self.set(with_dead(self.header().0, slot));
    }

    /// Makes all entries of a segment that is cleared invisible.
    pub(super) fn kill_all(self) {
        let header = self.header();
        let dead = header.occupied().fold(header.0, with_dead);
        self.set(dead & (u64::MAX >> (64 - OVERFLOW)));
    }

    /// Copies the words of an entry to a free slot of a group that is not published yet.
    pub(super) fn copy_entry(self, slot: usize, from: Group<'_, K, V>, other: usize) {
        for index in 0..Shape::<K, V>::ENTRY {
            // Relaxed: the group is published by a later Release.
            self.entry(slot, index)
                .store(from.entry(other, index).load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

/// Returns the header with a slot dead.
fn with_dead(header: u64, slot: usize) -> u64 {
    tags::without(header, slot) | DEAD << (8 * slot)
}

impl<K: NoUninit, V: NoUninit> Group<'_, K, V> {
    /// Searches a key, given its hash. Returns its value, or whether it may be in a later group.
    #[inline(always)]
    pub(super) fn find(self, hash: u64, key: &K) -> (Option<V>, bool) {
        let header = self.header();
        for slot in header.matches(hash) {
            if self.has_key(slot, key) {
                return (Some(self.value(slot)), false);
            }
        }
        (None, header.overflow() != 0)
    }

    /// Returns the slot of a key, for the lock holder.
    pub(super) fn slot_of(self, hash: u64, key: &K) -> Option<usize> {
        self.header().matches(hash).find(|&slot| self.has_key(slot, key))
    }

    /// Returns whether the entry in a slot whose tag was loaded has this key.
    #[inline(always)]
    fn has_key(self, slot: usize, key: &K) -> bool {
        // Relaxed: stored once, before the tag that was loaded with Acquire.
        (0..Shape::<K, V>::KEY)
            .all(|index| self.entry(slot, index).load(Ordering::Relaxed) == word(key, index))
    }

    /// Returns the key in a slot whose tag was loaded.
    pub(super) fn key(self, slot: usize) -> K {
        // SAFETY: the words of a key are stored once, before the tag.
        unsafe { assemble(|index| self.entry(slot, index).load(Ordering::Relaxed)) }
    }

    /// Returns the value in a slot whose tag was loaded.
    #[inline(always)]
    pub(super) fn value(self, slot: usize) -> V {
        // Acquire: pairs with the Release in `replace`. Several words are stored once, before the
        // tag.
        let order = if Shape::<K, V>::VALUE > 1 { Ordering::Relaxed } else { Ordering::Acquire };
        // SAFETY: several words are stored once, before the tag; one is always of one value.
        unsafe { assemble(|index| self.entry(slot, Shape::<K, V>::KEY + index).load(order)) }
    }

    /// Replaces a value of at most one word.
    pub(super) fn replace(self, slot: usize, value: &V) {
        debug_assert!(Shape::<K, V>::VALUE <= 1);
        for index in 0..Shape::<K, V>::VALUE {
            // Release: pairs with the Acquire in `value`: what the value refers to is visible.
            let place = self.entry(slot, Shape::<K, V>::KEY + index);
            place.store(word(value, index), Ordering::Release);
        }
    }

    /// Writes an entry to a free slot, not visible yet.
    pub(super) fn write(self, slot: usize, key: &K, value: &V) {
        debug_assert!(self.header().free().contains(slot));
        for index in 0..Shape::<K, V>::KEY {
            // Relaxed: published by the tag.
            self.entry(slot, index).store(word(key, index), Ordering::Relaxed);
        }
        for index in 0..Shape::<K, V>::VALUE {
            // Relaxed: as above.
            let place = self.entry(slot, Shape::<K, V>::KEY + index);
            place.store(word(value, index), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_whole_cache_lines_with_three_to_seven_slots() {
        fn shape<K, V>() -> (usize, usize) {
            (8 * Shape::<K, V>::GROUP, Shape::<K, V>::SLOTS)
        }
        assert_eq!(shape::<(), ()>(), (64, 7));
        assert_eq!(shape::<u32, ()>(), (64, 7));
        assert_eq!(shape::<u64, u64>(), (128, 7));
        assert_eq!(shape::<[u64; 2], u64>(), (128, 5));
        assert_eq!(shape::<[u8; 13], [u64; 2]>(), (128, 3));
        assert_eq!(shape::<[u64; 4], u64>(), (128, 3));
        assert_eq!(shape::<[u64; 5], u64>(), (256, 5));
        assert_eq!(shape::<[u8; 37], [u64; 4]>(), (256, 3));
        assert_eq!(shape::<[u64; 5], [u64; 32]>(), (896, 3));
    }

    #[test]
    fn slots_become_occupied_and_dead() {
        let header = |word| Header::<u64, u64>(word, PhantomData);
        let occupied = tags::with(tags::with(0, 2, u64::MAX), 0, 0);
        let dead = with_dead(occupied, 2);
        assert!(header(dead).occupied().eq([0]));
        assert!(header(dead).free().eq([1, 3, 4, 5, 6]));
        assert!(header(dead).matches(0).eq([0]));
        assert!(header(dead).matches(u64::MAX).next().is_none());
        assert_eq!(header(dead | 3 << OVERFLOW).overflow(), 3);
    }
}
