//! Blocks that begin at cache lines.
#![allow(unsafe_code)]

use core::alloc::Layout;
use core::ptr::NonNull;

use super::array::CACHE_LINE;
use super::{AllocError, Allocator};

/// An allocator whose blocks begin at cache lines: so elements of 16, 32 or 64 bytes are each in
/// one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineAligned<A>(pub(crate) A);

/// The layout that is allocated for `layout`.
fn aligned(layout: Layout) -> Layout {
    layout.align_to(CACHE_LINE).unwrap_or(layout)
}

// SAFETY: blocks come from the inner allocator, for layouts of the same size and a larger
// alignment; they are freed with the layout with which they were allocated.
unsafe impl<A: Allocator> Allocator for LineAligned<A> {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        self.0.allocate(aligned(layout))
    }

    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: it was allocated with this layout, as the caller has allocated it here.
        unsafe { self.0.deallocate(block, aligned(layout)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Global, Vec};

    #[test]
    fn vectors_begin_at_cache_lines() {
        for len in 1..100 {
            let mut bytes = Vec::new_in(LineAligned(Global));
            bytes.extend(0..len);
            assert_eq!(bytes.as_ptr().addr() % CACHE_LINE, 0);
            assert_eq!(bytes.last(), Some(&(len - 1_u8)));
        }
    }
}
