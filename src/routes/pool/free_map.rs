//! The free units of a chunk, as a bitmap.

use super::Exhausted;
use crate::memory::{Allocator, Vec};

/// The free units of a chunk.
#[derive(Debug)]
pub(super) struct FreeMap<M: Allocator> {
    /// One bit for each unit: 1 is free.
    map: Vec<u64, M>,
    /// The number of free units.
    pub(super) free: usize,
}

impl<M: Allocator + Clone> FreeMap<M> {
    pub(super) fn new(units: usize, memory: M) -> Result<Self, Exhausted> {
        let mut map = Vec::new_in(memory);
        map.try_reserve_exact(units / 64).map_err(|_| Exhausted)?;
        map.resize(units / 64, 0);
        Ok(Self { map, free: 0 })
    }

    /// Frees the map of a chunk that is released: no unit is free.
    pub(super) fn release(&mut self) {
        *self = Self { map: Vec::new_in(self.map.allocator().clone()), free: 0 };
    }

    /// Marks units as free or allocated.
    #[inline]
    pub(super) fn set(&mut self, at: usize, count: usize, free: bool) {
        for_each_mask(at, count, |word, mask| match free {
            true => self.map[word] |= mask,
            false => self.map[word] &= !mask,
        });
        self.free = if free { self.free + count } else { self.free - count };
    }

    /// Marks units as allocated, if all of them are free; the units of a released chunk are not.
    #[inline]
    pub(super) fn take(&mut self, at: usize, count: usize) -> bool {
        if at % 64 + count <= 64 {
            // Almost always.
            let mask = u64::MAX >> (64 - count) << (at % 64);
            let Some(word) = self.map.get_mut(at / 64) else { return false };
            let are_free = *word & mask == mask;
            if are_free {
                *word ^= mask;
                self.free -= count;
            }
            return are_free;
        }
        if self.map.is_empty() {
            return false;
        }
        let mut are_free = true;
        for_each_mask(at, count, |word, mask| are_free &= self.map[word] & mask == mask);
        if are_free {
            self.set(at, count, false);
        }
        are_free
    }

    /// Returns the first free stretch at or after `from`, and its length.
    pub(super) fn next_free(&self, from: usize) -> Option<(usize, usize)> {
        let free = self.next_bit(from, 0)?;
        let end = self.next_bit(free, u64::MAX).unwrap_or(64 * self.map.len());
        Some((free, end - free))
    }

    /// Returns the first 1 at or after bit `from` in the map, after an exclusive or with `flip`.
    fn next_bit(&self, from: usize, flip: u64) -> Option<usize> {
        let words = self.map.get(from / 64..)?.iter().enumerate();
        let mut ones = words.map(|(nth, word)| (from / 64 * 64 + 64 * nth, word ^ flip));
        let (first, word) = ones.next()?;
        let rest = word >> (from % 64) << (from % 64);
        core::iter::once((first, rest))
            .chain(ones)
            .find(|&(_, word)| word != 0)
            .map(|(first, word)| first + word.trailing_zeros() as usize)
    }
}

/// Calls a function for the words that contain the bits, each with the mask of these bits.
#[inline(always)]
fn for_each_mask(at: usize, count: usize, mut each: impl FnMut(usize, u64)) {
    let (mut word, mut from, mut left) = (at / 64, at % 64, count);
    if from + left <= 64 {
        // Almost always.
        return each(word, u64::MAX >> (64 - left) << from);
    }
    while left > 0 {
        let here = left.min(64 - from);
        each(word, u64::MAX >> (64 - here) << from);
        (word, from, left) = (word + 1, 0, left - here);
    }
}
