//! A pool of blocks: blocks of one size lie side by side, in chunks.
//!
//! ```text
//!     chunk  ▕ header │ block │ block │ free │ block │ free │ never used ▏      blocks of 48 bytes
//!     chunk  ▕ header │ block     │ free      │ block     │ block       ▏      blocks of 80 bytes
//!
//!     writer        allocate ◂── free blocks of a size ◂──┐
//!     any thread    free ──────▸ stack of freed blocks ───┘ some by each update
//! ```
//!
//! A heap puts the blocks of a table among other things, and rounds them to more: with the routes
//! of the Internet they are on a quarter more pages, and a lookup waits for the page tables. Here a
//! block takes its size, rounded to words, and nothing else, and a new one takes the place of a
//! freed one.
//!
//! Writers allocate, under their lock. Any thread frees, also later than the table exists: it
//! pushes the block to a stack. The writer takes the whole stack at once, so no thread pops a block
//! that another thread pushes again. The last owner of the stack frees the chunks: the table, or
//! its retired blocks.
//!
//! Of each size, some free blocks are listed for the next allocations: up to an eighth of the
//! blocks in use. The others are returned to their chunks, which are aligned to their size, so the
//! address of a block determines the address of its chunk. When the list is empty, a block is taken
//! from the chunk that has become free last, which is almost full; other ones empty in the
//! meantime, and are freed.
#![allow(unsafe_code)]

mod chunks;
#[cfg(all(test, not(crossbeam_loom)))]
mod model;

use alloc::alloc::{alloc, dealloc, handle_alloc_error};
use core::alloc::Layout;
use core::mem::{MaybeUninit, take};
use core::ptr::{self, NonNull};
use std::sync::OnceLock;

use crate::concurrent::sync::{Arc, AtomicPtr, Ordering};
use crate::invariant::InvariantError;
use chunks::{Chunks, Link, List, pooled};

/// Freed blocks that are returned to their chunks before one is added.
const RETURNED: usize = 256;

/// The memory of a pool: blocks that were freed by any thread, which the writer has not taken.
pub(super) struct Freed {
    last: AtomicPtr<Link>,
    /// The chunks of a pool that does not exist any more.
    chunks: OnceLock<Chunks>,
}

/// The pool of a table.
pub(super) struct Pool {
    freed: Arc<Freed>,
    /// Blocks that were taken from the stack.
    taken: List,
    chunks: Chunks,
}

// SAFETY: the pool alone owns the blocks that it has taken from the stack.
unsafe impl Send for Pool {}

/// Returns the bytes that a block takes.
pub(super) const fn size_of_block(layout: Layout) -> usize {
    match pooled(layout) {
        Some(size) => size,
        None => layout.size(),
    }
}

/// Frees a block, which writers of the pool may allocate again.
///
/// # Safety
///
/// The block is from [`Pool::allocate`], with this layout, and is not used any more. `memory`
/// belongs to the pool, and has an owner.
pub(super) unsafe fn free(memory: NonNull<Freed>, block: NonNull<u8>, layout: Layout) {
    let Some(size) = pooled(layout) else {
        // SAFETY: by the contract, and large blocks are from the heap.
        return unsafe { dealloc(block.as_ptr(), layout) };
    };
    for at in (0..size).step_by(size_of::<usize>()) {
        let word = block.as_ptr().wrapping_add(at).cast::<MaybeUninit<usize>>();
        // SAFETY: within the block; blocks are aligned. No instructions: for Miri, nothing is
        // readable.
        unsafe { word.write(MaybeUninit::uninit()) };
    }
    // SAFETY: by the contract.
    unsafe { memory.as_ref() }.push(block.cast(), size);
}

impl Freed {
    fn push(&self, block: NonNull<Link>, size: usize) {
        let mut next = self.last.load(Ordering::Relaxed);
        loop {
            // SAFETY: the block is freed, and not in the stack yet.
            unsafe { block.write(Link { next, size }) };
            // Release: pairs with the Acquire in `take`; the link is visible, and all uses of the
            // block have ended. Fails only if another thread has pushed or taken one.
            let pushed = (Ordering::Release, Ordering::Relaxed);
            match self.last.compare_exchange_weak(next, block.as_ptr(), pushed.0, pushed.1) {
                Ok(_) => return,
                Err(last) => next = last,
            }
        }
    }

    /// Takes all blocks, for the writer.
    fn take(&self) -> List {
        if self.last.load(Ordering::Relaxed).is_null() {
            return List::EMPTY;
        }
        // Acquire: pairs with the Release in `push`.
        List(self.last.swap(ptr::null_mut(), Ordering::Acquire))
    }
}

impl Pool {
    pub(super) fn new() -> Self {
        let last = AtomicPtr::new(ptr::null_mut());
        let freed = Arc::new(Freed { last, chunks: OnceLock::new() });
        Self { freed, taken: List::EMPTY, chunks: Chunks::new() }
    }

    /// Returns an owner of the memory of its blocks.
    pub(super) const fn memory(&self) -> &Arc<Freed> {
        &self.freed
    }

    /// Returns the bytes that are in chunks, but not in blocks that are used or not returned.
    pub(super) const fn unused_bytes(&self) -> usize {
        self.chunks.unused_bytes()
    }

    /// Allocates a block.
    pub(super) fn allocate(&mut self, layout: Layout) -> NonNull<u8> {
        let Some(size) = pooled(layout) else {
            // SAFETY: the size is greater than zero.
            let block = unsafe { alloc(layout) };
            return NonNull::new(block).unwrap_or_else(|| handle_alloc_error(layout));
        };
        if let Some(free) = self.chunks.allocate(size) {
            return free;
        }
        self.return_freed(RETURNED);
        if let Some(freed) = self.chunks.allocate(size) {
            return freed;
        }
        self.chunks.add(size);
        self.chunks.allocate(size).expect("a new chunk has free blocks")
    }

    /// Returns up to this number of freed blocks to their chunks.
    pub(super) fn return_freed(&mut self, limit: usize) {
        for _ in 0..limit {
            if self.taken.is_empty() {
                self.taken = self.freed.take();
            }
            let Some(block) = self.taken.pop() else { return };
            // SAFETY: blocks that are pushed are from `allocate`, and freed.
            unsafe { self.chunks.free(block) };
        }
    }

    /// Checks all invariants.
    pub(super) fn validate(&self) -> Result<(), InvariantError> {
        self.chunks.validate()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let is_first = self.freed.chunks.set(take(&mut self.chunks)).is_ok();
        debug_assert!(is_first, "a pool is dropped once");
    }
}
