//! A counting allocator, and control over the memory that malloc retains.
//!
//! Requested bytes are counted, without malloc's overhead. A `realloc` that moves a block counts
//! one block and not two, which favours structures that use it. The counter is not a
//! read-modify-write operation, as one thread runs while bytes are counted.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn count(more: usize, less: usize) {
    let live = LIVE.load(Relaxed).wrapping_add(more).wrapping_sub(less);
    LIVE.store(live, Relaxed);
    if live > PEAK.load(Relaxed) {
        PEAK.store(live, Relaxed);
    }
}

// SAFETY: every call is forwarded to the system's allocator unchanged; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller upholds the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: the caller upholds the same contract, and the block comes from `System`.
        unsafe { System.dealloc(block, layout) };
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller upholds the same contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: the caller upholds the same contract, and the block comes from `System`.
        unsafe { System.realloc(block, layout, size) }
    }
}

/// Bytes of a block that is small enough for most gaps in the heap.
const SMALL: usize = 8 << 10;

/// Returns the bytes allocated now.
pub(crate) fn live() -> usize {
    LIVE.load(Relaxed)
}

/// Returns the maximum of [`live`] since [`reset_peak`].
pub(crate) fn peak() -> usize {
    PEAK.load(Relaxed)
}

pub(crate) fn reset_peak() {
    PEAK.store(live(), Relaxed);
}

/// Touches `bytes` of new memory, frees them, and sets malloc to retain and reuse all free memory:
/// no page is touched for the first time in the measurement that follows.
///
/// The memory is there twice: in one piece, for a map in one block; and in small blocks, which also
/// fill the gaps in the heap, for a map in many blocks.
pub(crate) fn preallocate(bytes: usize) {
    configure_malloc(0, -1);
    let touched = |bytes: usize| black_box(vec![1_u8; bytes]);
    let small: Vec<_> = (0..bytes.div_ceil(SMALL)).map(|_| touched(SMALL)).collect();
    drop((touched(bytes), small));
}

/// Undoes [`preallocate`]: free memory is returned to the system.
pub(crate) fn release() {
    // The defaults of malloc(3).
    configure_malloc(65_536, 128 << 10);
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the function has no preconditions.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Sets the number of blocks that malloc may map, and the free bytes at the end of the heap from
/// which on it returns memory to the system.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn configure_malloc(mmap_max: i32, trim_threshold: i32) {
    let parameters = [(libc::M_MMAP_MAX, mmap_max), (libc::M_TRIM_THRESHOLD, trim_threshold)];
    for (parameter, value) in parameters {
        // SAFETY: any parameter and value may be passed; unknown ones are refused.
        let result = unsafe { libc::mallopt(parameter, value) };
        assert_eq!(result, 1, "malloc refuses a parameter");
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn configure_malloc(_: i32, _: i32) {}
