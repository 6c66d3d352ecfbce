//! CLOCK over sets of slots, for [`SecondChance`](super::SecondChance) and
//! [`ByClass`](super::ByClass).
//!
//! ```text
//!     level 1    0 1 1 0 …                        a bit for each word below that is not 0
//!     level 0    0 0 … 0 │ 0 1 … 0 │ 1 1 0 … 1 │  a bit for each slot in the set
//!                            ▴ hand: the victim is the next slot that was not used
//! ```
//!
//! The hand moves over the slots in their order. An entry that takes the slot of the last victim is
//! behind the hand, so it is examined last. The next slots under the hand are known and can be
//! prefetched; a linked list would have a dependent cache miss for each of them.
//!
//! The words of all sets for the same 64 slots are side by side, so moving a slot from one set to
//! another touches one cache line.
//!
//! Invariants: a slot is in at most one set; a bit of an upper level is set if and only if the word
//! below is not 0; levels have words for all slots that were in a set.
//!
//! Cost: all operations are O(1): at most five words for 2^30 slots. A bit for each slot and set.

use super::EntryStats;
use crate::memory::{AllocError, Allocator, Global};
use crate::raw::chunked_vec::ChunkedVec;

/// Maximum number of slots that the hand passes for one victim. If more than 8 in a row were used,
/// nearly all were, and then the least recently used of 8 is a good victim.
const MAX_EXAMINED: u32 = 8;

/// log2 of the bits of a word.
const BITS: u32 = 6;

/// log2 of the words that are allocated together.
const WORDS: u32 = 4;

/// Levels for all slots.
const LEVELS: usize = 5;

/// The number of slots is below this.
const MAX_SLOTS: u32 = (1 << 30) - 1;

/// `N` sets of slots, each with a hand.
#[derive(Clone, Debug)]
pub(super) struct Clocks<const N: usize, A: Allocator + Clone = Global> {
    /// 1024 slots at a time, and few words above.
    levels: [ChunkedVec<[u64; N], WORDS, A>; LEVELS],
    /// The number of slots in each set.
    pub(super) counts: [usize; N],
    /// The slot from which on the next victim of each set is searched.
    hands: [u32; N],
}

impl<const N: usize> Clocks<N> {
    /// Bytes allocated for a slot, at most: no level has more chunks than the first.
    pub(super) const BYTES_PER_SLOT: usize = {
        type Words<const N: usize> = ChunkedVec<[u64; N], WORDS>;
        (LEVELS * (Words::<N>::GROWTH + Words::<N>::HEADER)).div_ceil(1 << (WORDS + BITS))
    };

    pub(super) const fn new() -> Self {
        Self { levels: [const { ChunkedVec::new() }; LEVELS], counts: [0; N], hands: [0; N] }
    }
}

impl<const N: usize, A: Allocator + Clone> Clocks<N, A> {
    /// Empty sets whose memory will be from `memory`.
    pub(super) fn new_in(memory: A) -> Self {
        let levels = [(); LEVELS].map(|()| ChunkedVec::new_in(usize::MAX, memory.clone()));
        Self { levels, counts: [0; N], hands: [0; N] }
    }

    /// Allocates the words for a slot, so that [inserting](Self::insert) it into any set does not
    /// allocate.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated. Some may be.
    pub(super) fn try_reserve(&mut self, slot: u32) -> Result<(), AllocError> {
        let mut index = slot;
        self.levels.iter_mut().try_for_each(|level| {
            index >>= BITS;
            level.try_reserve(index)
        })
    }

    /// Returns the set of a slot.
    #[inline]
    fn set_of(&self, slot: u32) -> Option<usize> {
        let words = self.levels[0].get(slot >> BITS)?;
        words.iter().position(|word| word >> (slot % 64) & 1 != 0)
    }

    /// Inserts a slot into a set, and removes it from its previous set.
    ///
    /// # Panics
    ///
    /// If the slot is 2^30 - 1 or more.
    #[inline]
    pub(super) fn insert(&mut self, slot: u32, set: usize) {
        assert!(slot < MAX_SLOTS, "slot {slot}: must be less than 2^30 - 1");
        if !self.change(slot, set) {
            self.counts[set] += 1;
            self.set_bits(0, slot, set);
        }
    }

    /// Moves a slot to another set, if it is in one. Returns whether it is.
    #[inline]
    pub(super) fn change(&mut self, slot: u32, set: usize) -> bool {
        let Some(words) = self.levels[0].get_mut(slot >> BITS) else { return false };
        let bit = 1 << (slot % 64);
        let Some(before) = words.iter().position(|word| word & bit != 0) else { return false };
        if before != set {
            self.change_from(slot, before, set);
        }
        true
    }

    /// Moves a slot from the set `before` to `set`, if it is in `before`. Nothing changes if the
    /// sets are equal.
    #[inline]
    pub(super) fn change_from(&mut self, slot: u32, before: usize, set: usize) {
        let Some(words) = self.levels[0].get_mut(slot >> BITS) else { return };
        let bit = 1 << (slot % 64);
        if words[before] & bit == 0 {
            return;
        }
        words[before] ^= bit;
        let was_empty = words[set] == 0;
        words[set] |= bit;
        let is_empty = words[before] == 0;
        self.counts[before] -= 1;
        self.counts[set] += 1;
        if is_empty | was_empty {
            self.change_above(slot >> BITS, (before, is_empty), (set, was_empty));
        }
    }

    /// Changes the upper levels after a slot of a word has moved from the set `before` to `set`. In
    /// that word, `before` may be empty now, and `set` may have been empty.
    #[inline(never)]
    fn change_above(
        &mut self,
        word: u32,
        (before, is_empty): (usize, bool),
        (set, was_empty): (usize, bool),
    ) {
        if was_empty {
            self.set_bits(1, word, set);
        }
        if is_empty {
            self.clear_bits(1, word, before);
        }
    }

    /// Sets the bit with this index of a level and those above it.
    #[inline]
    fn set_bits(&mut self, first: usize, mut index: u32, set: usize) {
        for level in &mut self.levels[first..] {
            let bit = 1 << (index % 64);
            index >>= BITS;
            level.cover(index, [0; N]);
            let word = &mut level[index][set];
            let before = *word;
            *word |= bit;
            if before != 0 {
                return;
            }
        }
    }

    /// Removes a slot from its set, if it is in one.
    #[inline]
    pub(super) fn remove(&mut self, slot: u32) {
        if let Some(set) = self.set_of(slot) {
            self.counts[set] -= 1;
            self.clear_bits(0, slot, set);
        }
    }

    /// Clears the bit with this index of a level, and those above it of words that are 0 then.
    #[inline]
    fn clear_bits(&mut self, first: usize, mut index: u32, set: usize) {
        for level in &mut self.levels[first..] {
            let bit = 1 << (index % 64);
            index >>= BITS;
            let word = &mut level[index][set];
            *word &= !bit;
            if *word != 0 {
                return;
            }
        }
    }

    /// Returns the first slot of a set from `from` on, and around the end.
    #[inline]
    fn next(&self, set: usize, from: u32) -> Option<u32> {
        let words = self.levels[0].get(from >> BITS);
        match words.map_or(0, |words| words[set] >> (from % 64)) {
            0 => self.next_further(set, from),
            word => Some(from + word.trailing_zeros()),
        }
    }

    /// Slow path of [`next`](Self::next): the word of the slot `from` has none from there on.
    #[inline(never)]
    fn next_further(&self, set: usize, from: u32) -> Option<u32> {
        let further = self.next_above(set, (from >> BITS) + 1);
        further.or_else(|| if from > 0 { self.next(set, 0) } else { None })
    }

    /// Returns the first slot of the words from a word on.
    #[inline]
    fn next_above(&self, set: usize, mut index: u32) -> Option<u32> {
        for level in 1..LEVELS {
            let word = self.levels[level].get(index >> BITS)?[set] >> (index % 64);
            if word != 0 {
                let mut found = index + word.trailing_zeros();
                for below in (0..level).rev() {
                    let word = self.levels[below][found][set];
                    found = (found << BITS) + word.trailing_zeros();
                }
                return Some(found);
            }
            index = (index >> BITS) + 1;
        }
        None
    }

    /// Returns the next slot under the hand of a set, and moves the hand past it.
    #[inline]
    pub(super) fn advance(&mut self, set: usize) -> Option<u32> {
        let slot = self.next(set, self.hands[set])?;
        self.hands[set] = slot + 1;
        Some(slot)
    }

    /// Returns the next slot of a set that was not used, if there is one among the next 7: one more
    /// was examined before. Clears the marks of the used ones.
    #[inline]
    pub(super) fn first_unused(
        &mut self,
        set: usize,
        mut stats: impl FnMut(u32) -> EntryStats,
    ) -> Option<u32> {
        let (mut hand, mut left) = (self.hands[set], MAX_EXAMINED - 1);
        while left > 0 {
            let slot = self.next(set, hand)?;
            // This slot and all others of its word, without a search.
            let mut word = self.levels[0][slot >> BITS][set] & u64::MAX << (slot % 64);
            while word != 0 && left > 0 {
                let slot = (slot & !63) + word.trailing_zeros();
                word &= word - 1;
                left -= 1;
                hand = slot + 1;
                if !stats(slot).used {
                    self.hands[set] = hand;
                    return Some(slot);
                }
            }
        }
        self.hands[set] = hand;
        None
    }

    /// Returns the next slot of a set that was not used, given a slot that was examined before and
    /// was used. If 8 were used, returns the least recently used of them, the first one of equals.
    ///
    /// In a set of fewer than 8 slots the hand returns to a slot whose mark it has cleared.
    pub(super) fn second_chance(
        &mut self,
        (slot, first): (u32, EntryStats),
        set: usize,
        mut stats: impl FnMut(u32) -> EntryStats,
    ) -> u32 {
        let mut oldest = (first.last_use, slot);
        let unused = self.first_unused(set, |slot| {
            let entry = stats(slot);
            if entry.used && entry.last_use < oldest.0 {
                oldest = (entry.last_use, slot);
            }
            entry
        });
        unused.unwrap_or(oldest.1)
    }

    /// Calls `each` with the numbers from 0 on of the next slots under the hand of a set, up to
    /// `most`, and with these slots.
    #[inline]
    pub(super) fn upcoming(&self, set: usize, most: usize, mut each: impl FnMut(usize, u32)) {
        let most = most.min(self.counts[set]);
        let (mut from, mut count) = (self.hands[set], 0);
        while count < most {
            let Some(first) = self.next(set, from) else { return };
            // This one and all others of its word, without a search.
            let index = first >> BITS;
            let mut word = self.levels[0][index][set] & u64::MAX << (first % 64);
            while word != 0 && count < most {
                each(count, (index << BITS) + word.trailing_zeros());
                word &= word - 1;
                count += 1;
            }
            from = (index + 1) << BITS;
        }
    }

    pub(super) fn allocation_size(&self) -> usize {
        self.levels.iter().map(ChunkedVec::allocation_size).sum()
    }
}
