//! An allocator that counts what each thread allocates, and can be made to fail.
//!
//! A test binary declares it once:
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: model::alloc::Counting = model::alloc::Counting::new();
//! # fn main() {
//! let (buffer, usage) = model::alloc::measure(|| vec![0_u8; 1000]);
//! assert_eq!((usage.allocations, usage.kept), (1, 1000));
//! # drop(buffer);
//! # }
//! ```
#![allow(unsafe_code)]

use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use std::alloc::System;

thread_local! {
    /// Allocations of this thread.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    /// Bytes that this thread has allocated, less those that it has freed.
    static BYTES: Cell<isize> = const { Cell::new(0) };
    /// The maximum of `BYTES` since the last [`measure`] has begun.
    static PEAK: Cell<isize> = const { Cell::new(0) };
    /// Allocations of this thread that succeed from now on.
    static REMAINING: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The allocator of the system with counters for each thread.
///
/// It refuses sizes above a limit: a sanitizer would end the program there.
#[derive(Debug)]
pub struct Counting {
    max_size: usize,
}

impl Counting {
    /// An allocator that refuses a TiB and more; half of the address space if that is smaller.
    pub const fn new() -> Self {
        Self::with_max_size(1 << if usize::BITS > 40 { 40 } else { usize::BITS - 1 })
    }

    /// An allocator that refuses more than `max_size` bytes in one allocation.
    pub const fn with_max_size(max_size: usize) -> Self {
        Self { max_size }
    }

    /// Counts an allocation, unless it fails.
    fn admits(&self, layout: Layout) -> bool {
        let remaining = REMAINING.get();
        if layout.size() > self.max_size || remaining == 0 {
            return false;
        }
        if remaining < usize::MAX {
            REMAINING.set(remaining - 1);
        }
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        BYTES.set(BYTES.get() + layout.size() as isize);
        PEAK.set(PEAK.get().max(BYTES.get()));
        true
    }
}

impl Default for Counting {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: the blocks are those of the system's allocator; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !self.admits(layout) {
            return core::ptr::null_mut();
        }
        // SAFETY: the caller guarantees that the layout is valid.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !self.admits(layout) {
            return core::ptr::null_mut();
        }
        // SAFETY: the caller guarantees that the layout is valid.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        BYTES.set(BYTES.get() - layout.size() as isize);
        // SAFETY: the block is the system's, and the caller guarantees the rest.
        unsafe { System.dealloc(block, layout) }
    }
}

/// The allocations of a function on its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    pub allocations: usize,
    /// Bytes allocated less bytes freed.
    pub kept: isize,
    /// The maximum of the bytes allocated less those freed.
    pub peak: usize,
}

/// Runs `act` and measures what it allocates on this thread. Not to be nested.
pub fn measure<R>(act: impl FnOnce() -> R) -> (R, Usage) {
    let (allocations, bytes) = (ALLOCATIONS.get(), BYTES.get());
    PEAK.set(bytes);
    let result = act();
    let allocations = ALLOCATIONS.get() - allocations;
    let (kept, peak) = (BYTES.get() - bytes, (PEAK.get() - bytes) as usize);
    (result, Usage { allocations, kept, peak })
}

/// Runs `act` on this thread, on which `allowed` allocations succeed and further ones fail.
///
/// A panic in `act` would end the program.
pub fn with_allocations<R>(allowed: usize, act: impl FnOnce() -> R) -> R {
    REMAINING.set(allowed);
    let result = act();
    REMAINING.set(usize::MAX);
    result
}

/// Bytes that this thread has allocated, less those that it has freed.
pub fn bytes() -> isize {
    BYTES.get()
}
