//! Groups: a header and the slots of some entries, all of them atomics.
//!
//! ```text
//!     ┌──┬──┬──┬──┬──┬──┬──┬────────┬─────┬───────┬─────┬───────┬─ …
//!     │t0│t1│t2│t3│t4│  │  │overflow│ key │ value │ key │ value │      words: 128 bytes or more,
//!     └──┴──┴──┴──┴──┴──┴──┴────────┴─────┴───────┴─────┴───────┴─ …   64 for entries of a word
//!      header: one word              slot 0        slot 1
//!
//!     ┌──┬──┬─ … ─┬──┬──┬──┬──┬─ … ─┬───┬───────┬────────┬────┬────┬─ … ─┬─────┐
//!     │t0│t1│     │t7│t8│t9│  │     │t11│       │overflow│ id │ id │     │ id  │   ids: 64 bytes
//!     └──┴──┴─ … ─┴──┴──┴──┴──┴─ … ─┴───┴───────┴────────┴────┴────┴─ … ─┴─────┘
//!      header: two words                                  twelve times four bytes
//! ```
//!
//! A slot is *free*, then *occupied*, then *dead* and never reused, so that the words of its entry
//! are stored once, before its tag; except for a value of one word, which is replaced by one store.
//! The slot of an id becomes free again: a reader that has loaded the tag of a removed entry may
//! find the id of a later one, whose key it compares.
//!
//! Only the lock holder stores.
//!
//! A header of two words is loaded one word after the other. A reader that finds no entry has
//! observed for each of its slots, and with the overflow count for later groups, a moment at which
//! the entry was not there. An entry moves between them by a removal and an insertion only. So
//! between two such moments it was absent.
#![allow(unsafe_code)]

use core::marker::PhantomData;

use super::storage::{Atom, Entries, Storage};
use crate::concurrent::sync::{AtomicU64, Ordering};
use crate::raw::prefetch::{CACHE_LINE, prefetch};
use crate::table::tags::{FREE, Group as Tags, Mask};

/// The tag of a dead slot. Where slots can be dead, the tag of an occupied slot has the highest bit
/// set.
const DEAD: u8 = 1;

/// The position of the overflow count in the last word of a header.
const OVERFLOW: u32 = 56;

/// The layout of groups.
pub(super) struct Shape<C>(PhantomData<C>);

impl<C: Storage> Shape<C> {
    /// Atomics of an entry.
    const ENTRY: usize = C::KEY + C::VALUE;

    /// Bytes of a header.
    const HEADER: usize = C::HEADER * size_of::<AtomicU64>();

    /// Bytes of a group: a cache line for entries of one atomic, else pairs of them, as CPUs
    /// prefetch them in pairs.
    pub(super) const GROUP: usize = {
        let lines = if Self::ENTRY <= 1 { 1 } else { 2 };
        (Self::HEADER + Self::ATOMS * size_of::<C::Atom>()).next_multiple_of(lines * CACHE_LINE)
    };

    /// Atomics of all entries.
    const ATOMS: usize = C::SLOTS * Self::ENTRY;
}

/// Returns the word of a slot's tag in a header, and the position of the tag there.
const fn position(slot: usize) -> (usize, usize) {
    (slot / 8, slot % 8 * 8)
}

/// A header that was loaded.
pub(super) struct Header<C>([u64; 2], PhantomData<C>);

impl<C: Storage> Header<C> {
    /// Returns the slots whose entries may have this hash.
    #[inline(always)]
    fn matches(&self, hash: u64) -> Mask {
        C::matches(self.0, hash).below(C::SLOTS)
    }

    fn tag(&self, slot: usize) -> u8 {
        let (word, shift) = position(slot);
        (self.0[word] >> shift) as u8
    }

    /// Returns the occupied slots.
    #[inline(always)]
    pub(super) fn occupied(&self) -> Mask {
        let tags = Tags::of_words(self.0);
        let used = tags.full().below(C::SLOTS);
        if C::REUSES { used } else { used.without(tags.matches(DEAD)) }
    }

    /// Returns the free slots.
    pub(super) fn free(&self) -> Mask {
        Tags::of_words(self.0).matches(FREE).below(C::SLOTS)
    }

    /// Returns the overflow count: the number of entries whose home is this group or an earlier
    /// one, and that are in a later one. It saturates at 255, which means "unknown".
    #[inline(always)]
    pub(super) fn overflow(&self) -> u8 {
        (self.0[C::HEADER - 1] >> OVERFLOW) as u8
    }
}

/// A group of a segment.
pub(in crate::concurrent) struct Group<'p, C> {
    /// Points to the bytes of a group, which are not freed during `'p`.
    first: *const u8,
    shape: PhantomData<(&'p AtomicU64, C)>,
}

impl<C> Clone for Group<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Group<'_, C> {}

impl<'p, C: Storage> Group<'p, C> {
    /// # Safety
    ///
    /// There are the bytes of a group that was initialised, which are not freed during `'p`.
    #[inline(always)]
    pub(super) unsafe fn at(first: *const u8) -> Self {
        Self { first, shape: PhantomData }
    }

    /// Creates a group with free slots.
    ///
    /// # Safety
    ///
    /// There are as many bytes as a group has, aligned to a cache line, and no thread accesses
    /// them.
    pub(super) unsafe fn initialize(first: *mut u8) {
        for nth in 0..C::HEADER {
            let word = first.cast::<AtomicU64>().wrapping_add(nth);
            // SAFETY: a group has these words; by the contract.
            unsafe { word.write(AtomicU64::new(0)) };
        }
        let atoms = first.wrapping_byte_add(Shape::<C>::HEADER).cast::<C::Atom>();
        for nth in 0..Shape::<C>::ATOMS {
            // SAFETY: a group has these atomics after its header; by the contract.
            unsafe { atoms.wrapping_add(nth).write(C::Atom::new()) };
        }
    }

    /// Drops the atomics of a group: the atomics of a model checker have destructors.
    ///
    /// # Safety
    ///
    /// It is a group, which is not used any more.
    pub(super) unsafe fn drop_at(first: *mut u8) {
        let words = core::ptr::slice_from_raw_parts_mut(first.cast::<AtomicU64>(), C::HEADER);
        // SAFETY: by the contract.
        unsafe { words.drop_in_place() };
        let atoms = first.wrapping_byte_add(Shape::<C>::HEADER).cast::<C::Atom>();
        let atoms = core::ptr::slice_from_raw_parts_mut(atoms, Shape::<C>::ATOMS);
        // SAFETY: by the contract.
        unsafe { atoms.drop_in_place() };
    }

    #[inline(always)]
    fn word(self, index: usize) -> &'p AtomicU64 {
        debug_assert!(index < C::HEADER);
        let word = self.first.cast::<AtomicU64>().wrapping_add(index);
        // SAFETY: a group has these words, and is not freed during 'p: see `at`.
        unsafe { &*word }
    }

    /// Returns an atomic of the entry in a slot.
    #[inline(always)]
    fn atom(self, slot: usize, index: usize) -> &'p C::Atom {
        debug_assert!(slot < C::SLOTS && index < Shape::<C>::ENTRY);
        let first = self.first.wrapping_byte_add(Shape::<C>::HEADER).cast::<C::Atom>();
        let atom = first.wrapping_add(slot * Shape::<C>::ENTRY + index);
        // SAFETY: a group has these atomics after its header, and is not freed during 'p: see `at`.
        unsafe { &*atom }
    }

    /// Prefetches the first cache line.
    #[inline(always)]
    pub(in crate::concurrent) fn prefetch(self) {
        prefetch(self.first);
    }

    /// Prefetches the second cache line, if there is one.
    #[inline(always)]
    pub(in crate::concurrent) fn prefetch_second(self) {
        if Shape::<C>::GROUP > CACHE_LINE {
            prefetch(self.first.wrapping_add(CACHE_LINE));
        }
    }

    /// Loads the header.
    #[inline(always)]
    pub(super) fn header(self) -> Header<C> {
        // Acquire: pairs with the Release in `set`: a reader that observes a tag observes the words
        // of the entry, and one that observes an overflow count observes the overflowed entry.
        let load = |nth| if nth < C::HEADER { self.word(nth).load(Ordering::Acquire) } else { 0 };
        Header([load(0), load(1)], PhantomData)
    }

    fn set(self, word: usize, change: impl FnOnce(u64) -> u64) {
        let word = self.word(word);
        // Relaxed: stored by lock holders only.
        // Release: pairs with the Acquire in `header`.
        word.store(change(word.load(Ordering::Relaxed)), Ordering::Release);
    }

    /// Increments the overflow count.
    pub(super) fn increment_overflow(self) {
        if self.header().overflow() < u8::MAX {
            self.set(C::HEADER - 1, |word| word + (1 << OVERFLOW));
        }
    }

    /// Decrements the overflow count.
    pub(super) fn decrement_overflow(self) {
        // A count of zero here is the result of inconsistent hashes of a key.
        if let 1..=254 = self.header().overflow() {
            self.set(C::HEADER - 1, |word| word - (1 << OVERFLOW));
        }
    }

    /// Makes the entry in a free slot visible, and that in `old` invisible, by one store: that is
    /// for headers of one word.
    pub(super) fn publish(self, slot: usize, hash: u64, old: Option<usize>) {
        debug_assert!(self.header().tag(slot) == FREE && (old.is_none() || C::HEADER == 1));
        let (word, shift) = position(slot);
        self.set(word, |tags| {
            let rest = old.map_or(tags, |old| without::<C>(tags, old));
            rest | u64::from(C::tag(hash, slot)) << shift
        });
    }

    /// Makes the entry in a slot invisible. Its words stay, for readers that have loaded the tag.
    pub(super) fn remove(self, slot: usize) {
        self.set(position(slot).0, |tags| without::<C>(tags, slot));
    }

    /// Makes all entries of a segment that is cleared invisible.
    pub(super) fn clear(self) {
        for word in 0..C::HEADER {
            let occupied = self.header().occupied().filter(|&slot| position(slot).0 == word);
            self.set(word, |tags| {
                let rest = occupied.fold(tags, without::<C>);
                if word + 1 < C::HEADER { rest } else { rest & (u64::MAX >> (64 - OVERFLOW)) }
            });
        }
    }

    /// Copies the words of an entry to a free slot of a group that is not published yet.
    pub(super) fn copy_entry(self, slot: usize, (from, other): (Group<'_, C>, usize)) {
        // Relaxed: the group is published by a later Release.
        self.write(slot, |index| from.atom(other, index).load(Ordering::Relaxed));
    }

    /// Returns whether this is the same group.
    pub(super) fn is(self, other: Self) -> bool {
        self.first == other.first
    }

    /// Returns the first slot whose entry may have this hash.
    #[inline(always)]
    pub(in crate::concurrent) fn first(self, hash: u64) -> Option<usize> {
        self.header().matches(hash).next()
    }

    /// Returns whether an entry may be in a later group: if the count is zero that is loaded now,
    /// after the tags, none is.
    #[inline(always)]
    pub(in crate::concurrent) fn has_overflowed(self) -> bool {
        // Acquire: pairs with the Release in `set`: a reader that observes a count observes the
        // overflowed entry.
        self.word(C::HEADER - 1).load(Ordering::Acquire) >> OVERFLOW != 0
    }

    /// Searches an entry: the first result of `is` for the slots with the tag of its hash. Returns
    /// it, or whether there may be one in a later group.
    pub(super) fn find<R>(
        self,
        hash: u64,
        is: impl FnMut(usize) -> Option<R>,
    ) -> (Option<R>, bool) {
        let header = self.header();
        (header.matches(hash).find_map(is), header.overflow() != 0)
    }

    /// Loads a word of a key in a slot whose tag was loaded.
    #[inline(always)]
    pub(in crate::concurrent) fn key_word(self, slot: usize, index: usize) -> u64 {
        debug_assert!(index < C::KEY && !C::REUSES);
        // Relaxed: stored once, before the tag that was loaded with Acquire.
        self.atom(slot, index).load(Ordering::Relaxed)
    }

    /// Returns the tag of a slot.
    pub(super) fn tag(self, slot: usize) -> u8 {
        self.header().tag(slot)
    }

    /// Replaces a value of at most one atomic.
    pub(super) fn replace(self, slot: usize, words: impl Fn(usize) -> u64) {
        debug_assert!(C::VALUE <= 1);
        for index in C::KEY..Shape::<C>::ENTRY {
            // Release: pairs with the Acquire in `value`, which makes the target of the value
            // visible.
            self.atom(slot, index).store(words(index), Ordering::Release);
        }
    }

    /// Writes an entry to a free slot, not visible yet.
    pub(super) fn write(self, slot: usize, words: impl Fn(usize) -> u64) {
        // Relaxed: published by the tag. Release, if slots are reused: pairs with the Acquire in
        // `value`, for readers that have loaded the tag of the former entry.
        let order = if C::REUSES { Ordering::Release } else { Ordering::Relaxed };
        for index in 0..Shape::<C>::ENTRY {
            self.atom(slot, index).store(words(index), order);
        }
    }
}

impl<C: Entries> Group<'_, C> {
    /// Returns the value in a slot whose tag was loaded; of a slot that is reused, any id.
    #[inline(always)]
    pub(in crate::concurrent) fn value(self, slot: usize) -> C::Value {
        // Acquire: pairs with the Release in `replace` and in `write`. Several words are stored
        // once, before the tag.
        let order = if C::VALUE > 1 { Ordering::Relaxed } else { Ordering::Acquire };
        // SAFETY: several words are stored once, before the tag; one is always of one value.
        unsafe { C::value(|index| self.atom(slot, C::KEY + index).load(order)) }
    }
}

/// Returns the word of a header without the entry in a slot: dead, unless slots are reused.
fn without<C: Storage>(word: u64, slot: usize) -> u64 {
    let shift = position(slot).1;
    let tag = if C::REUSES { FREE } else { DEAD };
    word & !(0xff << shift) | u64::from(tag) << shift
}

#[cfg(all(test, not(any(crossbeam_loom, shuttle))))]
mod tests {
    use super::*;
    use crate::concurrent::map::storage::Ids;
    use crate::concurrent::table::storage::Inline;

    #[test]
    fn groups_are_whole_cache_lines() {
        fn shape<C: Storage>() -> (usize, usize) {
            (Shape::<C>::GROUP, C::SLOTS)
        }
        assert_eq!(shape::<Ids>(), (64, 12));
        assert_eq!(shape::<Inline<(), ()>>(), (64, 7));
        assert_eq!(shape::<Inline<u32, ()>>(), (64, 7));
        assert_eq!(shape::<Inline<u64, u64>>(), (128, 7));
        assert_eq!(shape::<Inline<[u64; 2], u64>>(), (128, 5));
        assert_eq!(shape::<Inline<[u8; 13], [u64; 2]>>(), (128, 3));
        assert_eq!(shape::<Inline<[u64; 4], u64>>(), (128, 3));
        assert_eq!(shape::<Inline<[u64; 5], u64>>(), (256, 5));
        assert_eq!(shape::<Inline<[u8; 37], [u64; 4]>>(), (256, 3));
        assert_eq!(shape::<Inline<[u64; 5], [u64; 32]>>(), (896, 3));
    }

    #[repr(align(128))]
    struct Memory([u64; 16]);

    /// Inserts entries to all slots of a group, and removes some.
    fn check<C: Storage>() {
        let hash = |nth: usize| (nth as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut memory = Memory([!0; 16]);
        let first = memory.0.as_mut_ptr().cast();
        // SAFETY: of this size, and aligned.
        unsafe { Group::<C>::initialize(first) };
        // SAFETY: as above.
        let group = unsafe { Group::<C>::at(first) };
        for slot in 0..C::SLOTS {
            assert_eq!(group.header().free().next(), Some(slot));
            group.write(slot, |index| (100 * slot + index) as u64);
            group.publish(slot, hash(slot), None);
        }
        assert_eq!(group.header().free().next(), None);
        for slot in 0..C::SLOTS {
            assert!(group.header().matches(hash(slot)).any(|other| other == slot));
        }
        assert_eq!(group.find(hash(3), Some), (Some(3), false));
        group.increment_overflow();
        [0, C::SLOTS - 1].into_iter().for_each(|slot| group.remove(slot));
        assert!(group.header().occupied().eq(1..C::SLOTS - 1));
        assert_eq!(group.header().free().count(), if C::REUSES { 2 } else { 0 });
        assert_eq!(group.find(hash(0), |slot| (slot == 0).then_some(())), (None, true));
        group.clear();
        assert_eq!((group.header().occupied().count(), group.header().overflow()), (0, 0));
        assert_eq!(group.header().free().count(), if C::REUSES { C::SLOTS } else { 0 });
    }

    #[test]
    fn slots_become_occupied_and_dead_or_free() {
        check::<Ids>();
        check::<Inline<u64, u64>>();
        check::<Inline<[u64; 2], u64>>();
    }

    #[test]
    fn the_overflow_count_saturates() {
        let mut memory = Memory([0; 16]);
        let first = memory.0.as_mut_ptr().cast();
        // SAFETY: of this size, and aligned.
        unsafe { Group::<Ids>::initialize(first) };
        // SAFETY: as above.
        let group = unsafe { Group::<Ids>::at(first) };
        (0..7).for_each(|_| group.increment_overflow());
        assert_eq!(group.header().overflow(), 7);
        (0..9).for_each(|_| group.decrement_overflow());
        assert_eq!((group.header().overflow(), group.header().free().count()), (0, 12));
        (0..300).for_each(|_| group.increment_overflow());
        (0..300).for_each(|_| group.decrement_overflow());
        assert_eq!(group.header().overflow(), 255);
    }
}
