//! A bump allocator in static memory, which frees nothing.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Enough for `work`, and small enough for a microcontroller.
const SIZE: usize = 256 * 1024;

/// The largest supported alignment.
const ALIGN: usize = 64;

#[repr(align(64))]
struct Memory(UnsafeCell<[u8; SIZE]>);

pub(crate) struct Bump {
    memory: Memory,
    /// Bytes allocated. It only grows, so no two blocks overlap.
    used: AtomicUsize,
}

impl Bump {
    pub(crate) const fn new() -> Self {
        Self { memory: Memory(UnsafeCell::new([0; SIZE])), used: AtomicUsize::new(0) }
    }

    /// The bytes allocated so far.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

// SAFETY: the memory is reached through `alloc` alone, which returns each byte of it at most once.
unsafe impl Sync for Bump {}

// SAFETY: blocks lie inside `memory`, are aligned because it is, and never overlap; none is reused.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Relaxed: no other memory is shared.
        let grown = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            let end = used.next_multiple_of(layout.align()).checked_add(layout.size())?;
            (layout.align() <= ALIGN && end <= SIZE).then_some(end)
        });
        let Ok(used) = grown else { return ptr::null_mut() };
        self.memory.0.get().cast::<u8>().wrapping_add(used.next_multiple_of(layout.align()))
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}
