//! Memory of a fixed size: a heap in a buffer.
#![allow(unsafe_code)]

use core::alloc::Layout;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use flowtable::memory::{AllocError, Allocator};
use talc::locking::AssumeUnlockable;
use talc::{ErrOnOom, Span, Talc, Talck};

/// An allocator in a buffer, for one thread: `&Area` is the memory of structures.
pub struct Area<'m> {
    heap: Talck<AssumeUnlockable, ErrOnOom>,
    /// Not `Sync` and not `Send`: the heap has no lock.
    memory: PhantomData<(&'m mut [MaybeUninit<u8>], *const ())>,
}

impl<'m> Area<'m> {
    /// Creates an allocator. A buffer that is too small for the heap itself has no memory to
    /// allocate.
    pub fn new(memory: &'m mut [MaybeUninit<u8>]) -> Self {
        let mut heap = Talc::new(ErrOnOom);
        let span = Span::from_base_size(memory.as_mut_ptr().cast(), memory.len());
        // SAFETY: the buffer is borrowed for as long as the heap exists.
        _ = unsafe { heap.claim(span) };
        Self { heap: heap.lock(), memory: PhantomData }
    }

    /// Bytes of the blocks that are allocated.
    pub fn allocated_bytes(&self) -> usize {
        self.heap.lock().get_counters().allocated_bytes
    }
}

// SAFETY: every call is forwarded to the heap unchanged, which is used by one thread, as the type
// is not `Sync`.
unsafe impl Allocator for Area<'_> {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        self.heap.allocate(layout)
    }

    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller upholds the same contract.
        unsafe { self.heap.deallocate(block, layout) };
    }
}
