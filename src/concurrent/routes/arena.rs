//! Blocks of memory that readers find by numbers of 29 bits.
//!
//! ```text
//!     number   0 … 63 │ 64 … 127 │ 128 … 255 │ 256 … 511 │ …      units of 32 bytes
//!     chunk       0   │    1     │     2     │     3     │ …      each as large as all before it
//! ```
//!
//! A chunk never moves, and is freed with the arena. So two numbers fit into a word, and a reader
//! converts one into an address by a shift and a load of the table of chunks, which stays in the L1
//! cache. The free blocks are known to writers only (`space.rs`).
#![allow(unsafe_code)]

use alloc::alloc::{alloc, dealloc, handle_alloc_error};
use core::alloc::Layout;

use crate::concurrent::sync::{AtomicPtr, Ordering};
use crate::raw::bit_ops::leading_zeros;

/// A unit of memory.
#[repr(C, align(32))]
pub(super) struct Unit([u64; 4]);

/// Units of the first chunk, as a power of two.
const FIRST_BITS: u32 = 6;

/// Bits of a number: 16 GiB.
pub(super) const ID_BITS: u32 = 29;

/// The chunks that numbers address.
const CHUNKS: usize = (ID_BITS - FIRST_BITS) as usize + 1;

/// No block. Its unit exists, and is zeros: a node without routes and children.
pub(super) const NONE: u32 = 0;

/// Returns the number of units for some bytes.
pub(super) const fn units(bytes: usize) -> u32 {
    bytes.div_ceil(size_of::<Unit>()) as u32
}

pub(super) struct Arena {
    /// Where unit 0 would be if the chunk were longer; null if it has not been allocated.
    chunks: [AtomicPtr<Unit>; CHUNKS],
}

/// Returns the chunk of a unit.
///
/// # Safety
///
/// If `FAST`, the CPU has the instructions of `bit_ops`.
#[inline(always)]
unsafe fn chunk_of<const FAST: bool>(id: u32) -> usize {
    // Not `ilog2`, whose instruction takes eight operations on some CPUs.
    // SAFETY: by the contract of this function.
    let zeros = unsafe { leading_zeros::<FAST>(u64::from(id | ((1 << FIRST_BITS) - 1))) };
    (u64::BITS - FIRST_BITS - zeros) as usize
}

/// Returns the first unit of a chunk, and the first one of the next chunk.
pub(super) const fn bounds(chunk: usize) -> (u64, u64) {
    let end = 1 << (FIRST_BITS as usize + chunk);
    (if chunk == 0 { 0 } else { end / 2 }, end)
}

fn layout(chunk: usize) -> Layout {
    let (first, end) = bounds(chunk);
    Layout::array::<Unit>((end - first) as usize).expect("a chunk is within the address space")
}

impl Arena {
    pub(super) fn new() -> Self {
        let arena =
            Self { chunks: core::array::from_fn(|_| AtomicPtr::new(core::ptr::null_mut())) };
        arena.make_chunk(0);
        // SAFETY: the first chunk has the unit.
        unsafe { arena.at(NONE).write(Unit([0; 4])) };
        arena
    }

    /// Returns a pointer to a block. It is valid if the block was allocated in this arena.
    #[inline(always)]
    pub(super) fn at(&self, id: u32) -> *mut Unit {
        // SAFETY: this copy needs no instructions.
        unsafe { self.at_by::<false>(id) }
    }

    /// Returns a pointer to a block, as [`at`](Self::at).
    ///
    /// # Safety
    ///
    /// If `FAST`, the CPU has the instructions of `bit_ops`.
    #[inline(always)]
    pub(super) unsafe fn at_by<const FAST: bool>(&self, id: u32) -> *mut Unit {
        // SAFETY: by the contract of this function.
        let chunk = unsafe { chunk_of::<FAST>(id) };
        // SAFETY: there is a chunk for each number of a unit.
        let chunk = unsafe { self.chunks.get_unchecked(chunk) };
        // Relaxed: the number of a block is read by an Acquire, and stored after its chunk.
        chunk.load(Ordering::Relaxed).wrapping_add(id as usize)
    }

    /// Returns whether a chunk has been allocated.
    pub(super) fn has_chunk(&self, chunk: usize) -> bool {
        !self.chunks[chunk].load(Ordering::Relaxed).is_null()
    }

    /// Allocates a chunk, unless it exists. Only one thread at a time calls this.
    pub(super) fn make_chunk(&self, chunk: usize) {
        if self.has_chunk(chunk) {
            return;
        }
        let layout = layout(chunk);
        // SAFETY: a chunk has a size.
        let memory = unsafe { alloc(layout) }.cast::<Unit>();
        if memory.is_null() {
            handle_alloc_error(layout);
        }
        let start = memory.wrapping_sub(bounds(chunk).0 as usize);
        // Relaxed: see `at`.
        self.chunks[chunk].store(start, Ordering::Relaxed);
    }

    /// Returns the bytes of all chunks.
    pub(super) fn allocation_size(&self) -> usize {
        let chunks = (0..CHUNKS).filter(|&chunk| self.has_chunk(chunk));
        chunks.map(|chunk| layout(chunk).size()).sum()
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        for chunk in 0..CHUNKS {
            let start = self.chunks[chunk].load(Ordering::Relaxed);
            if !start.is_null() {
                let memory = start.wrapping_add(bounds(chunk).0 as usize);
                // SAFETY: allocated with this layout, and freed once.
                unsafe { dealloc(memory.cast(), layout(chunk)) };
            }
        }
    }
}

#[cfg(all(test, not(any(crossbeam_loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn units_follow_each_other_in_their_chunks() {
        let arena = Arena::new();
        (0..4).for_each(|chunk| arena.make_chunk(chunk));
        for chunk in 0..CHUNKS {
            let (first, end) = bounds(chunk);
            // SAFETY: this copy needs no instructions.
            let chunk_of = |id: u64| unsafe { chunk_of::<false>(id as u32) };
            assert_eq!((chunk_of(first), chunk_of(end - 1)), (chunk, chunk));
        }
        for id in 0..511 {
            let distance = arena.at(id + 1).addr().wrapping_sub(arena.at(id).addr());
            let is_last = (id + 1).is_power_of_two() && id >= 63;
            assert!(is_last || distance == size_of::<Unit>());
        }
        assert_eq!(arena.allocation_size(), 512 * size_of::<Unit>());
    }
}
