//! The longest route of a block: pointers to its value and length, without a branch.
//!
//! ```text
//!     routes of level 6 of the block  ─┐
//!     others of the block that cover  ─┼→ pointer to the value, pointer to the length
//!     the inherited one, or none      ─┘
//! ```
//!
//! The search in the bitmaps is that of a [`RouteTable`](crate::RouteTable), [`Covering`]; a block
//! has its values beside the bitmaps, so the result are pointers instead of the index of a value.
#![allow(unsafe_code)]

use super::block::Block;
use super::slots::END;
use crate::raw::bit_ops::{BitOps, select, select_ptrs, select_ptrs_by_sign};
use crate::routes::search::Covering;
use crate::routes::stride::{COVERS, STRIDE};

/// Where the length of outer routes is in a table of lengths.
const OUTER: usize = 65;

/// The lengths of the routes of a block at `pos`: the length of an inner route by the zeros before
/// its bit, and then the length of outer routes.
const fn lengths(pos: u32) -> [u32; OUTER + 1] {
    let mut lengths = [pos + STRIDE; OUTER + 1];
    let mut zeros = 0;
    while zeros < 63 {
        lengths[zeros] = pos + (63 - zeros).ilog2();
        zeros += 1;
    }
    lengths
}

/// The lengths in the block of a slot.
static AT_SLOT: [u32; OUTER + 1] = lengths(END);

/// The lengths in a block below, relative to its position.
static BELOW: [u32; OUTER + 1] = lengths(0);

impl<'p, V> Block<'p, V> {
    /// Returns the length, only if `LEN`, and the value of the longest route for a slot, which may
    /// be the inherited one. Without branches, but for the result.
    ///
    /// If not `DEEP`, it is the block of a slot, and has no children.
    ///
    /// # Safety
    ///
    /// If `FAST`, the CPU has the instructions of `bit_ops`.
    #[inline(always)]
    pub(super) unsafe fn longest<const FAST: bool, const LEN: bool, const DEEP: bool>(
        self,
        slot: u32,
        pos: u32,
    ) -> Option<(u32, &'p V)> {
        debug_assert!(DEEP || !self.has_children() && pos == END);
        let bits = self.bits();
        // SAFETY: by the contract of this function.
        let ops = unsafe { BitOps::<FAST>::assume() };
        let found = Covering::of(ops, (bits.inner, bits.outer), &COVERS, slot);
        let children = || ops.ones(bits.branches);
        let children = if DEEP { children() as usize } else { 0 };
        // Of those that do not exist, the address is of no use.
        let lengths = if DEEP { BELOW.as_ptr() } else { AT_SLOT.as_ptr() };
        let inner = (
            self.inner_value(children, found.below as usize),
            lengths.wrapping_add(found.zeros as usize),
        );
        let outer =
            (self.outer_value(found.before as usize).wrapping_sub(1), lengths.wrapping_add(OUTER));
        let inherited = self.inherited_word().cast::<V>().cast_const();
        let inherited = (inherited, Self::inherited_len(inherited));
        let either = select_ptrs(found.inner, inner, inherited);
        let (value, len) = select_ptrs_by_sign(found.outer, outer, either);
        // SAFETY: the pointer is null, or refers to the value of a route of the block, or to the
        // inherited value, whose shared block is freed no earlier than this block.
        let value: &'p V = unsafe { value.as_ref() }?;
        if !LEN {
            return Some((0, value));
        }
        // SAFETY: the length belongs to the same route, in a table or in the shared block.
        let len = unsafe { len.read() };
        let above =
            if DEEP { select(found.inner | found.outer >> 63, pos.into(), 0) as u32 } else { 0 };
        Some((above + len, value))
    }
}
