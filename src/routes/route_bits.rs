//! The routes of a node as bitmaps, and where their values are.
#![allow(unsafe_code)]

use super::stride::{PrefixIndex, SLOTS};
use crate::raw::bit_ops::{has_popcnt, ones, select};

/// The routes of a node, as in the node or in a copy of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RouteBits {
    /// Routes of levels 0 to 5: bit `n` for prefix index `n`.
    pub(crate) inner: u64,
    /// Routes of level 6: bit `n` for slot `n`.
    pub(crate) outer: u64,
    /// Index of the value of the first outer route.
    pub(crate) values: u32,
}

/// A node and its routes.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeRoutes {
    pub(super) id: u32,
    pub(super) bits: RouteBits,
}

/// Where the value of a route is, or belongs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    /// The block of the values of the node, and their number.
    pub(super) block: u32,
    pub(super) len: u32,
    /// The offset in the block.
    pub(super) at: u32,
    pub(super) exists: bool,
    /// The number of inner routes.
    inner: u32,
    /// The bits of the route in the bitmaps, one of which is zero.
    inner_bit: u64,
    outer_bit: u64,
}

/// The routes of a node after an insertion or a removal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Changed {
    pub(super) bits: RouteBits,
    /// The offset in the block of values from which on they have moved.
    pub(super) moved_from: u32,
}

impl RouteBits {
    /// No routes.
    pub(super) const NONE: Self = Self { inner: 0, outer: 0, values: 0 };

    /// Returns whether there are no routes.
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.inner | self.outer == 0
    }

    /// Returns where the value of a route is, or belongs.
    #[inline(always)]
    pub(super) fn position(&self, index: PrefixIndex) -> Position {
        if has_popcnt() {
            // SAFETY: the CPU has POPCNT.
            return unsafe { self.position_by::<true>(index) };
        }
        self.position_portable(index)
    }

    /// [`position`](Self::position): fallback without POPCNT.
    #[inline(never)]
    fn position_portable(&self, index: PrefixIndex) -> Position {
        // SAFETY: nothing is required of the CPU.
        unsafe { self.position_by::<false>(index) }
    }

    /// Returns where the value of a route is, or belongs. Branch-free, since the kind of the route
    /// is unpredictable.
    ///
    /// # Safety
    ///
    /// If `FAST`, the CPU has POPCNT.
    #[inline(always)]
    unsafe fn position_by<const FAST: bool>(&self, index: PrefixIndex) -> Position {
        let bit = 1 << (index.get() % SLOTS);
        let outer_bit = select(u64::from(index.get() & SLOTS), bit, 0);
        let inner_bit = bit ^ outer_bit;
        // The inner routes descend from left to right: those above the bit precede it.
        let above = self.inner & !((inner_bit << 1).wrapping_sub(1));
        let preceding = select(outer_bit, self.outer & (outer_bit.wrapping_sub(1)), above);
        // SAFETY: by the contract of this function.
        let [inner, outer, preceding] =
            [self.inner, self.outer, preceding].map(|word| unsafe { ones::<FAST>(word) } as u32);
        Position {
            block: self.values - inner,
            len: inner + outer,
            at: preceding + select(outer_bit, inner.into(), 0) as u32,
            exists: self.inner & inner_bit | self.outer & outer_bit != 0,
            inner,
            inner_bit,
            outer_bit,
        }
    }

    /// Returns the routes with or without the one at a position; `block` is the block of values
    /// after that. Without routes the index is 0, as in a node that never had any.
    #[inline]
    pub(super) fn flipped(&self, position: &Position, block: u32) -> Changed {
        let inner = self.inner ^ position.inner_bit;
        let outer = self.outer ^ position.outer_bit;
        // The number of inner routes now.
        let one = u32::from(position.inner_bit != 0);
        let count = if position.exists { position.inner - one } else { position.inner + one };
        let values = if inner | outer == 0 { 0 } else { block + count };
        let moved_from = if block == position.block { position.at } else { 0 };
        Changed { bits: Self { inner, outer, values }, moved_from }
    }
}
