//! The longest route in the bitmaps of a node, in some thirty instructions.
//!
//! Without a branch: which of the routes of a node is the longest one depends on the address of a
//! packet, so a branch would be mispredicted. [`Covering`] is the search; the tables of one thread
//! compute the index of the value from it, the blocks of the concurrent ones its address.
#![allow(unsafe_code)]

use super::route_bits::RouteBits;
use super::stride::{COVERS, SLOTS, STRIDE};
use crate::raw::bit_ops::{leading_zeros, ones, select, select_by_sign, shift_left};

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
    ///
    /// # Safety
    ///
    /// If `FAST`, the CPU has the instructions of `bit_ops`.
    #[inline(always)]
    pub(crate) unsafe fn of<const FAST: bool>(
        (inner, outer): (u64, u64),
        covers: &[u64; SLOTS as usize],
        slot: u32,
    ) -> Self {
        let covering = inner & covers[slot as usize];
        // SAFETY: by the contract of this function; and so for the calls below.
        let zeros = unsafe { leading_zeros::<FAST>(covering) };
        // SAFETY: as above. Leaves the bits up to the bit of the longest route.
        let up_to = unsafe { shift_left::<FAST>(inner, zeros) };
        // SAFETY: as above.
        let below = unsafe { ones::<FAST>(up_to) };
        // SAFETY: as above. The bit of the slot is the highest one.
        let outer = unsafe { shift_left::<FAST>(outer, u64::from(slot ^ (SLOTS - 1))) };
        // SAFETY: as above.
        let before = unsafe { ones::<FAST>(outer) };
        Self { inner: covering, zeros, below, outer, before }
    }
}

/// Returns the longest route of a node that covers `slot`, or `inherited` if there is none; without
/// `inherited`, there is one.
///
/// - `bits`: the routes of the node; prefix indices 0 and 1 may be flags.
/// - `flags`: the number of flags that are set. They are counted like routes.
/// - `POS + pos`: the position of the node; `POS` is the part known at compile time.
/// - `LEN`: whether the length of the route is computed.
///
/// # Safety
///
/// If `FAST`, the CPU has the instructions of `bit_ops`.
#[inline(always)]
pub(super) unsafe fn search<const FAST: bool, const LEN: bool, const POS: u32>(
    bits: RouteBits,
    flags: u32,
    pos: u32,
    slot: u32,
    inherited: Option<RouteMatch>,
) -> RouteMatch {
    let tables = const { &Tables::new(POS) };
    // SAFETY: by the contract of this function.
    let found = unsafe { Covering::of::<FAST>((bits.inner, bits.outer), &tables.covers, slot) };
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
