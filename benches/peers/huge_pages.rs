//! Memory in pages of 2 MiB, for subjects that are measured in both sizes of pages.
//!
//! An arena is a range of addresses for which the kernel is advised to use huge pages. Blocks are
//! cut from it one after the other. The last block is cut again when it has been freed; when all
//! have been freed, the arena begins again, with the pages that it has. That suits a table that is
//! filled, measured and dropped, and needs no lists.
#![allow(unsafe_code)]

use std::alloc::Layout;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};

use crate::maps::subject::{MapBenchmark, Operation};
use crate::subject::Timed;

/// Addresses of an arena. Memory is used for what is touched only.
const BYTES: usize = 4 << 30;

const HUGE_PAGE: usize = 2 << 20;

struct Arena {
    start: AtomicPtr<u8>,
    /// Bytes that have been cut off.
    used: AtomicUsize,
    /// Blocks that have not been freed.
    live: AtomicUsize,
}

/// Arenas of the subjects, which are measured on one thread.
static ARENAS: [Arena; 2] = [const { Arena::new() }; 2];

/// The arena that blocks are cut from; any other number for none.
static CURRENT: AtomicUsize = AtomicUsize::new(usize::MAX);

impl Arena {
    const fn new() -> Self {
        Self {
            start: AtomicPtr::new(null_mut()),
            used: AtomicUsize::new(0),
            live: AtomicUsize::new(0),
        }
    }

    /// Returns its first address, a null pointer if the system has none.
    fn start(&self) -> *mut u8 {
        let start = self.start.load(Relaxed);
        if !start.is_null() {
            return start;
        }
        let start = map_huge_pages(BYTES);
        self.start.store(start, Relaxed);
        start
    }

    fn allocate(&self, layout: Layout) -> *mut u8 {
        let start = self.start();
        let from = self.used.load(Relaxed).next_multiple_of(layout.align());
        if start.is_null() || from + layout.size() > BYTES {
            return null_mut();
        }
        self.used.store(from + layout.size(), Relaxed);
        self.live.fetch_add(1, Relaxed);
        start.wrapping_add(from)
    }

    fn contains(&self, block: *mut u8) -> bool {
        let start = self.start.load(Relaxed);
        !start.is_null() && (block.addr().wrapping_sub(start.addr())) < BYTES
    }
}

/// Allocates in the current arena; returns a null pointer if there is none, or no room in it.
pub(crate) fn allocate(layout: Layout) -> *mut u8 {
    ARENAS.get(CURRENT.load(Relaxed)).map_or(null_mut(), |arena| arena.allocate(layout))
}

/// Whether a block is in an arena.
pub(crate) fn contain(block: *mut u8) -> bool {
    ARENAS.iter().any(|arena| arena.contains(block))
}

/// Frees a block if it is in an arena. Returns whether it is.
pub(crate) fn free(block: *mut u8, layout: Layout) -> bool {
    let Some(arena) = ARENAS.iter().find(|arena| arena.contains(block)) else { return false };
    let from = block.addr() - arena.start().addr();
    if arena.live.fetch_sub(1, Relaxed) == 1 {
        arena.used.store(0, Relaxed);
    } else if from + layout.size() == arena.used.load(Relaxed) {
        arena.used.store(from, Relaxed);
    }
    true
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn map_huge_pages(bytes: usize) -> *mut u8 {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: new memory at an address that the kernel picks.
    let start = unsafe { libc::mmap(null_mut(), bytes + HUGE_PAGE, access, kind, -1, 0) };
    if start == libc::MAP_FAILED {
        return null_mut();
    }
    let start: *mut u8 = start.cast();
    let aligned = start.wrapping_add(start.align_offset(HUGE_PAGE));
    // SAFETY: the range is in the mapping. Without huge pages the advice has no effect.
    unsafe { libc::madvise(aligned.cast(), bytes, libc::MADV_HUGEPAGE) };
    aligned
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn map_huge_pages(_: usize) -> *mut u8 {
    null_mut()
}

/// A benchmark whose memory is in an arena.
pub(crate) struct InHugePages<B: ?Sized> {
    benchmark: Box<B>,
    arena: usize,
}

/// Returns a benchmark with its memory in the arena of this number, 0 or 1.
pub(crate) fn in_huge_pages<B: ?Sized>(benchmark: Box<B>, arena: usize) -> Box<InHugePages<B>> {
    Box::new(InHugePages { benchmark, arena })
}

impl<B: ?Sized> InHugePages<B> {
    pub(crate) fn get(&self) -> &B {
        &self.benchmark
    }

    /// Runs a part of the benchmark, which allocates in the arena.
    pub(crate) fn with<R>(&mut self, run: impl FnOnce(&mut B) -> R) -> R {
        CURRENT.store(self.arena, Relaxed);
        let result = run(&mut self.benchmark);
        CURRENT.store(usize::MAX, Relaxed);
        result
    }
}

impl<K> MapBenchmark<K> for InHugePages<dyn MapBenchmark<K>> {
    fn supports(&self, operation: Operation) -> bool {
        self.get().supports(operation)
    }

    fn run(&mut self, operation: Operation, keys: &[K]) -> Timed {
        self.with(|map| map.run(operation, keys))
    }

    fn grow(&mut self, keys: &[K], after: &mut dyn FnMut(usize)) {
        self.with(|map| map.grow(keys, after));
    }

    fn time_insertions(&mut self, keys: &[K], ns: &mut [u32]) {
        self.with(|map| map.time_insertions(keys, ns));
    }

    fn clear(&mut self) {
        self.with(MapBenchmark::clear);
    }
}
