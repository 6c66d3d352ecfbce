//! The longest route in the bitmaps of a node, in some thirty instructions without a branch.
#![allow(unsafe_code)]

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

/// A search in the bitmaps of a node: `inner` with the bits of its routes and some lower ones,
/// `values` the index of its value for the first outer route, and the number of the lower bits that
/// are set. Returns the match in the node, or else `inherited`; without that, the node has a match.
/// The node is at bit `POS + pos`, where the former is known when compiled. The length is only
/// computed if `LEN`. Branch-free, since the length of the route is unpredictable.
///
/// # Safety
///
/// If `FAST`, the CPU has the instructions of `bit_ops`.
#[inline(always)]
pub(crate) unsafe fn search<const FAST: bool, const LEN: bool, const POS: u32>(
    (inner, outer, values): (u64, u64, u32),
    flags: u32,
    pos: u32,
    slot: u32,
    inherited: Option<RouteMatch>,
) -> RouteMatch {
    let tables = const { &Tables::new(POS) };
    let covering = inner & tables.covers[slot as usize];
    // SAFETY: by the contract of this function; and so for the calls below.
    let zeros = unsafe { leading_zeros::<FAST>(covering) };
    // SAFETY: as above. Leaves the bits up to the bit of the longest route.
    let up_to = unsafe { shift_left::<FAST>(inner, zeros) };
    // SAFETY: as above.
    let below = unsafe { ones::<FAST>(up_to) };
    // SAFETY: as above. The bit of the slot is the top one.
    let up_to = unsafe { shift_left::<FAST>(outer, u64::from(slot ^ (SLOTS - 1))) };
    // SAFETY: as above.
    let before = unsafe { ones::<FAST>(up_to) };
    // In 64 bits, the upper half of which is the length. A result that is not selected may
    // overflow.
    let values = u64::from(values) | if LEN { u64::from(pos) << 32 } else { 0 };
    let mut left = values.wrapping_sub(below);
    let mut constant = 0_u64.wrapping_sub(u64::from(flags) + 1);
    if LEN {
        // SAFETY: a word has at most 64 zeros.
        left = left.wrapping_add(*unsafe { tables.lengths.get_unchecked(zeros as usize) });
        constant = constant.wrapping_add(u64::from(POS + STRIDE) << 32);
    }
    let right = values.wrapping_add(before).wrapping_add(constant);
    let found = inherited.map_or(left, |inherited| select(covering, left, inherited.0));
    RouteMatch(select_by_sign(up_to, right, found))
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
