//! Chunks: allocated when the pool grows, released when they are empty; and the bitmaps of their
//! free units.
#![allow(unsafe_code)]

use core::alloc::Layout;
use core::ptr::{self, NonNull};

use super::{Exhausted, FIRST_UNITS, MAX_UNITS, Pool, Unit};
use crate::memory::{Allocator, Vec};

impl<T: Unit, M: Allocator + Clone> Pool<T, M> {
    pub(super) fn add_chunk(&mut self) -> Result<(), Exhausted> {
        // The index after the last one is a `u32`, too.
        if ((self.chunks.len() as u64 + 1) << Self::SHIFT) >= MAX_UNITS {
            return Err(Exhausted);
        }
        self.chunks.try_reserve(1).map_err(|_| Exhausted)?;
        self.free_maps.try_reserve(1).map_err(|_| Exhausted)?;
        let map = FreeMap::new(Self::UNITS, self.memory().clone())?;
        let chunk = self.new_chunk(Self::UNITS)?;
        self.chunks.push(Some(chunk));
        self.free_maps.push(map);
        Ok(())
    }

    /// Releases a chunk whose units are all free, if as many are free in others: so the next
    /// allocation does not need it again.
    #[cold]
    pub(super) fn release_chunk(&mut self, chunk: usize) {
        if chunk == 0 || self.free < 2 * Self::UNITS {
            return;
        }
        if let Some(released) = self.chunks[chunk].take() {
            self.free_chunk(released, Self::UNITS);
            self.free_maps[chunk].release();
            self.free -= Self::UNITS;
            self.released += 1;
        }
    }

    /// Allocates a chunk that was released, and lists its units as free.
    #[cold]
    pub(super) fn restore_chunk(&mut self) -> Result<(), Exhausted> {
        let chunk = self.chunks.iter().position(Option::is_none).ok_or(Exhausted)?;
        let map = FreeMap::new(Self::UNITS, self.memory().clone())?;
        self.chunks[chunk] = Some(self.new_chunk(Self::UNITS)?);
        self.free_maps[chunk] = map;
        self.released -= 1;
        self.free_block((chunk << Self::SHIFT) as u32, Self::UNITS);
        Ok(())
    }

    /// Allocates the first chunk, or doubles it while it is small.
    pub(super) fn grow_first(&mut self) -> Result<(), Exhausted> {
        if self.free_maps.is_empty() {
            self.chunks.try_reserve_exact(1).map_err(|_| Exhausted)?;
            self.free_maps.try_reserve_exact(1).map_err(|_| Exhausted)?;
            let map = FreeMap::new(Self::UNITS, self.memory().clone())?;
            self.free_maps.push(map);
        }
        let units = if self.first_units == 0 { FIRST_UNITS } else { 2 * self.first_units };
        let grown = self.new_chunk(units)?;
        if let Some(old) = self.chunks.pop().flatten() {
            // SAFETY: both chunks are allocated, and the new one is larger.
            unsafe { ptr::copy_nonoverlapping(old.as_ptr(), grown.as_ptr(), self.first_units) };
            self.free_chunk(old, self.first_units);
        }
        self.chunks.push(Some(grown));
        self.first_units = units;
        Ok(())
    }
}

/// Chunks.
impl<T, M: Allocator + Clone> Pool<T, M> {
    /// Returns the allocator.
    pub(in super::super) fn memory(&self) -> &M {
        self.chunks.allocator()
    }

    /// Allocates a chunk of zeros.
    fn new_chunk(&self, units: usize) -> Result<NonNull<T>, Exhausted> {
        let layout = Layout::array::<T>(units).map_err(|_| Exhausted)?;
        if layout.size() == 0 {
            return Ok(NonNull::dangling());
        }
        Ok(self.memory().allocate_zeroed(layout).map_err(|_| Exhausted)?.cast())
    }

    /// Frees a chunk of [`new_chunk`](Self::new_chunk) that is not in the pool any more.
    fn free_chunk(&self, chunk: NonNull<T>, units: usize) {
        let layout = Layout::array::<T>(units).expect("it was allocated with it");
        if layout.size() > 0 {
            // SAFETY: allocated by this allocator with this layout, and not used any more.
            unsafe { self.memory().deallocate(chunk.cast(), layout) };
        }
    }
}

impl<T, M: Allocator + Clone> Drop for Pool<T, M> {
    fn drop(&mut self) {
        while let Some(chunk) = self.chunks.pop() {
            let units = if self.chunks.is_empty() { self.first_units } else { Self::UNITS };
            if let Some(chunk) = chunk {
                self.free_chunk(chunk, units);
            }
        }
    }
}

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
