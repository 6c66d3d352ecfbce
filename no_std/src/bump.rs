//! The simplest allocator: hands out a piece of static memory from front to back, and takes none
//! of it back.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Enough for `work`, little enough for a microcontroller.
const SIZE: usize = 256 * 1024;

/// No layout asks for more.
const ALIGN: usize = 64;

#[repr(align(64))]
struct Memory(UnsafeCell<[u8; SIZE]>);

pub(crate) struct Bump {
    memory: Memory,
    /// Bytes handed out. Only grows, so no two pieces overlap.
    used: AtomicUsize,
}

impl Bump {
    pub(crate) const fn new() -> Self {
        Self { memory: Memory(UnsafeCell::new([0; SIZE])), used: AtomicUsize::new(0) }
    }
}

// SAFETY: the memory is reached through `alloc` alone, which hands out each byte of it once.
unsafe impl Sync for Bump {}

// SAFETY: pieces lie inside `memory`, are aligned because it is, and never overlap; none is reused.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Relaxed: the counter is the only thing that is shared.
        let grown = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            let end = used.next_multiple_of(layout.align()).checked_add(layout.size())?;
            (layout.align() <= ALIGN && end <= SIZE).then_some(end)
        });
        let Ok(used) = grown else { return ptr::null_mut() };
        self.memory.0.get().cast::<u8>().wrapping_add(used.next_multiple_of(layout.align()))
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}
