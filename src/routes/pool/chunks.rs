//! Chunks: allocated when the pool grows, released when they are empty.
#![allow(unsafe_code)]

use core::alloc::Layout;
use core::ptr::{self, NonNull};

use super::free_map::FreeMap;
use super::{Exhausted, FIRST_UNITS, MAX_UNITS, Pool, Unit};
use crate::memory::Allocator;

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
