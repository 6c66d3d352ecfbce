//! The header of a block.

use core::ptr;

use crate::concurrent::sync::AtomicPtr;
use crate::raw::bit_ops::count_ones;

/// A word with a pointer to a block or to a group.
pub(super) type Cell = AtomicPtr<Header>;

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

/// The header of a block, between the items on both sides of it. Not aligned to more than its
/// words: aligned blocks would take more memory, on more pages.
#[repr(C, align(8))]
pub(super) struct Header {
    pub(super) bits: Bits,
    /// The value of the inherited route, which is in its shared block, or null.
    pub(super) inherited: AtomicPtr<u8>,
}

/// The block without routes, of slots without routes. It is not freed.
#[cfg(not(crossbeam_loom))]
pub(super) fn empty() -> &'static Header {
    static EMPTY: Header = Header { bits: Bits::NONE, inherited: AtomicPtr::new(ptr::null_mut()) };
    &EMPTY
}

/// The block without routes of an execution, with the checker's atomics.
#[cfg(crossbeam_loom)]
pub(super) fn empty() -> &'static Header {
    loom::lazy_static! {
        static ref EMPTY: Header =
            Header { bits: Bits::NONE, inherited: AtomicPtr::new(ptr::null_mut()) };
    }
    &EMPTY
}
