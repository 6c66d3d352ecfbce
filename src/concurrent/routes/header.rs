//! The header of a block, and words with a pointer to one and a number.

use core::ptr;

use crate::concurrent::sync::AtomicPtr;
use crate::raw::bit_ops::count_ones;

/// A word with a pointer to a block or to a group, and a number.
pub(super) type Cell = AtomicPtr<Header>;

/// The alignment of headers: pointers to them have four bits for a number. Not more than that of
/// `malloc`: blocks that were aligned to cache lines were on twice as many pages, since glibc does
/// not use small free blocks again for aligned ones.
pub(super) const ALIGN: usize = 16;

/// The alignment of inherited values, whose length needs five bits.
pub(super) const INHERITED_ALIGN: usize = 32;

/// Returns the word of a pointer with this alignment and a number.
pub(super) fn tagged<const ALIGN: usize, T>(pointer: *mut T, tag: usize) -> *mut T {
    debug_assert!(tag < ALIGN && pointer.addr() % ALIGN == 0);
    pointer.map_addr(|address| address | tag)
}

/// Returns the pointer and the number of a word.
#[inline(always)]
pub(super) fn untagged<const ALIGN: usize, T>(word: *mut T) -> (*mut T, usize) {
    (word.map_addr(|address| address & !(ALIGN - 1)), word.addr() % ALIGN)
}

/// The bitmaps of a block.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Bits {
    /// Routes of levels 1 to 5: bit `n` for prefix index `n`.
    pub(super) inner: u64,
    /// Routes of level 6: bit `n` for slot `n`.
    pub(super) outer: u64,
    /// Children: bit `n` for slot `n`.
    pub(super) branches: u64,
}

impl Bits {
    pub(super) const NONE: Self = Self { inner: 0, outer: 0, branches: 0 };

    /// Returns whether there are neither routes nor children.
    pub(super) const fn is_empty(self) -> bool {
        self.inner | self.outer | self.branches == 0
    }

    pub(super) fn routes(self) -> usize {
        (count_ones(self.inner) + count_ones(self.outer)) as usize
    }

    pub(super) fn children(self) -> usize {
        count_ones(self.branches) as usize
    }
}

/// What all blocks begin with.
#[repr(C, align(16))]
pub(super) struct Header {
    pub(super) bits: Bits,
    /// The value of the inherited route, which is in its shared block, with its length as the
    /// number; or null.
    pub(super) inherited: AtomicPtr<u8>,
}

/// The block without routes, of slots without routes. It is not freed.
#[cfg(not(crossbeam_loom))]
pub(super) fn empty() -> &'static Header {
    static EMPTY: Header = Header { bits: Bits::NONE, inherited: AtomicPtr::new(ptr::null_mut()) };
    &EMPTY
}

/// The block without routes of an execution, whose atomics the checker knows.
#[cfg(crossbeam_loom)]
pub(super) fn empty() -> &'static Header {
    loom::lazy_static! {
        static ref EMPTY: Header =
            Header { bits: Bits::NONE, inherited: AtomicPtr::new(ptr::null_mut()) };
    }
    &EMPTY
}
