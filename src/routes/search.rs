//! The routes of a node as bitmaps: where their values are, and the longest one that covers a slot,
//! in some thirty instructions.
//!
//! Without a branch: which of the routes of a node is the longest one depends on the address of a
//! packet, so a branch would be mispredicted. [`Covering`] is the search; the tables of one thread
//! compute the index of the value from it, the blocks of the concurrent ones its address.
#![allow(unsafe_code)]

use super::stride::{COVERS, PrefixIndex, SLOTS, STRIDE};
use crate::raw::bit_ops::{BitOps, select, select_by_sign};

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
        match BitOps::detected() {
            Some(ops) => self.position_by(ops, index),
            None => self.position_portable(index),
        }
    }

    /// [`position`](Self::position): fallback without POPCNT, LZCNT and BMI2.
    #[inline(never)]
    fn position_portable(&self, index: PrefixIndex) -> Position {
        self.position_by(BitOps::PORTABLE, index)
    }

    /// Returns where the value of a route is, or belongs. Branch-free, since the kind of the route
    /// is unpredictable.
    #[inline(always)]
    fn position_by<const FAST: bool>(&self, ops: BitOps<FAST>, index: PrefixIndex) -> Position {
        let bit = 1 << (index.get() % SLOTS);
        let outer_bit = select(u64::from(index.get() & SLOTS), bit, 0);
        let inner_bit = bit ^ outer_bit;
        // The inner routes descend from left to right: those above the bit precede it.
        let above = self.inner & !((inner_bit << 1).wrapping_sub(1));
        let preceding = select(outer_bit, self.outer & (outer_bit.wrapping_sub(1)), above);
        let [inner, outer, preceding] =
            [self.inner, self.outer, preceding].map(|word| ops.ones(word) as u32);
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

/// A matching route: its length, and the index of its value. In one word, so that a lookup selects
/// one of several matches by one conditional move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct RouteMatch(u64);

impl RouteMatch {
    /// All zeros, as in a slot that has not been computed.
    pub(super) const ZERO: Self = Self(0);

    /// No match. An `Option` would be returned by memory. No pool has this number of units.
    pub(crate) const NONE: Self = Self(u32::MAX as u64);

    #[inline(always)]
    pub(crate) const fn new(value: u32, len: u32) -> Self {
        Self((len as u64) << 32 | value as u64)
    }

    /// Returns the index of the value.
    #[inline(always)]
    pub(crate) const fn value(self) -> u32 {
        self.0 as u32
    }

    /// Returns the length of the route.
    #[inline(always)]
    pub(crate) const fn len(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Returns the match, if it exists.
    #[inline(always)]
    pub(crate) fn exists(self) -> Option<Self> {
        if self.value() == u32::MAX { None } else { Some(self) }
    }

    /// Returns the match, or `other` if it does not exist, without a branch.
    #[inline(always)]
    pub(super) fn or(self, other: Self) -> Self {
        // The index of none is the last one.
        Self(select(u64::from(self.value().wrapping_add(1)), self.0, other.0))
    }
}

/// The longest routes of a node that cover a slot, counted in its bitmaps.
#[derive(Clone, Copy)]
pub(crate) struct Covering {
    /// The routes of levels 0 to 5 that cover the slot: not 0 if there is one.
    pub(crate) inner: u64,
    /// The number of zeros before the bit of the longest one.
    pub(crate) zeros: u64,
    /// The number of routes of levels 0 to 5 up to the longest one, from the highest bit down.
    pub(crate) below: u64,
    /// The routes of level 6 up to the slot, whose bit is the highest one: negative if the slot has
    /// a route.
    pub(crate) outer: u64,
    /// The number of routes of level 6 up to the slot.
    pub(crate) before: u64,
}

impl Covering {
    /// Searches the bitmaps of a node, without a branch. `covers` has the bits of the routes that
    /// cover each slot.
    #[inline(always)]
    pub(crate) fn of<const FAST: bool>(
        ops: BitOps<FAST>,
        (inner, outer): (u64, u64),
        covers: &[u64; SLOTS as usize],
        slot: u32,
    ) -> Self {
        let covering = inner & covers[slot as usize];
        let zeros = ops.leading_zeros(covering);
        // Leaves the bits up to the bit of the longest route.
        let below = ops.ones(ops.shift_left(inner, zeros));
        // The bit of the slot is the highest one.
        let outer = ops.shift_left(outer, u64::from(slot ^ (SLOTS - 1)));
        Self { inner: covering, zeros, below, outer, before: ops.ones(outer) }
    }
}

/// Returns the longest route of a node that covers `slot`, or `inherited` if there is none; without
/// `inherited`, there is one.
///
/// - `bits`: the routes of the node; prefix indices 0 and 1 may be flags.
/// - `flags`: the number of flags that are set. They are counted like routes.
/// - `POS + pos`: the position of the node; `POS` is the part known at compile time.
/// - `LEN`: whether the length of the route is computed.
#[inline(always)]
pub(super) fn search<const FAST: bool, const LEN: bool, const POS: u32>(
    ops: BitOps<FAST>,
    bits: RouteBits,
    flags: u32,
    pos: u32,
    slot: u32,
    inherited: Option<RouteMatch>,
) -> RouteMatch {
    let tables = const { &Tables::new(POS) };
    let found = Covering::of(ops, (bits.inner, bits.outer), &tables.covers, slot);
    // In 64 bits, the upper half of which is the length. A result that is not selected may
    // overflow.
    let values = u64::from(bits.values) | if LEN { u64::from(pos) << 32 } else { 0 };
    let mut left = values.wrapping_sub(found.below);
    let mut constant = 0_u64.wrapping_sub(u64::from(flags) + 1);
    if LEN {
        // SAFETY: a word has at most 64 zeros.
        left = left.wrapping_add(*unsafe { tables.lengths.get_unchecked(found.zeros as usize) });
        constant = constant.wrapping_add(u64::from(POS + STRIDE) << 32);
    }
    let right = values.wrapping_add(found.before).wrapping_add(constant);
    let left = inherited.map_or(left, |inherited| select(found.inner, left, inherited.0));
    RouteMatch(select_by_sign(found.outer, right, left))
}

/// The tables of a search, next to each other: so they have one address.
struct Tables {
    /// [`COVERS`] without prefix indices 0 and 1, whose bits are flags.
    covers: [u64; SLOTS as usize],
    /// The length of the prefix whose bit is the first one in a word, by the number of zeros before
    /// it; in the upper half, as in a [`RouteMatch`].
    lengths: [u64; u64::BITS as usize + 1],
}

impl Tables {
    /// Creates the tables of a node at `pos`.
    const fn new(pos: u32) -> Self {
        let (mut covers, mut lengths) = (COVERS, [0; u64::BITS as usize + 1]);
        let mut at = 0;
        while at < covers.len() {
            covers[at] &= !3;
            // Bit 0 belongs to no prefix.
            if at < covers.len() - 1 {
                lengths[at] = ((pos + (63 - at).ilog2()) as u64) << 32;
            }
            at += 1;
        }
        Self { covers, lengths }
    }
}
