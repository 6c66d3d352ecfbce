//! An allocator that counts, and malloc told to keep what it has.
//!
//! Counted are the bytes that were asked for: not what malloc adds, and when a block is moved by
//! `realloc` not both places, which flatters those who use it. One counter is enough, and cheap: the
//! benches have one thread while they count.
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

// SAFETY: everything is handed to the system's allocator unchanged; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller's promise is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: the caller's promise is the same, and all blocks come from `System`.
        unsafe { System.dealloc(block, layout) };
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller's promise is the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: the caller's promise is the same, and all blocks come from `System`.
        unsafe { System.realloc(block, layout, size) }
    }
}

/// Bytes of a block that fits into most holes.
const SMALL: usize = 8 << 10;

/// Bytes that are allocated.
pub(crate) fn live() -> usize {
    LIVE.load(Relaxed)
}

/// The most that [`live`] has been since [`forget_peak`].
pub(crate) fn peak() -> usize {
    PEAK.load(Relaxed)
}

pub(crate) fn forget_peak() {
    PEAK.store(live(), Relaxed);
}

/// Gets so many bytes from the system and touches them, then frees them, and sees to it that malloc
/// keeps them, and takes all blocks from there. So that nobody gets new pages while it is watched.
///
/// They are there in one piece, for a map that is one block. And as many again are there in small
/// ones, which also fill the holes between what is allocated: a map of many blocks gets these first.
pub(crate) fn keep(bytes: usize) {
    tell_malloc(0, -1);
    let touched = |bytes: usize| black_box(vec![1_u8; bytes]);
    let small: Vec<_> = (0..bytes.div_ceil(SMALL)).map(|_| touched(SMALL)).collect();
    drop((touched(bytes), small));
}

/// The contrary of [`keep`]: memory is new for who asks for it.
pub(crate) fn give_back() {
    // As malloc(3) says that these are set.
    tell_malloc(65_536, 128 << 10);
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it has no conditions.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// How many blocks may be mapped each for itself, and how many bytes may be left at the end of the
/// heap.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn tell_malloc(maps: i32, rest: i32) {
    for (parameter, value) in [(libc::M_MMAP_MAX, maps), (libc::M_TRIM_THRESHOLD, rest)] {
        // SAFETY: it takes any parameter and value; those that it does not know it refuses.
        let done = unsafe { libc::mallopt(parameter, value) };
        assert_eq!(done, 1, "malloc refuses a parameter");
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn tell_malloc(_: i32, _: i32) {}
