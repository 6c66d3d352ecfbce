//! Arithmetic on the six bits that a node looks at.
//!
//! ```text
//!     spot                 1                      level 0    the prefix that the node stands for
//!                 2                 3                   1
//!             4       5         6       7               2
//!             …                         …               …
//!         32 33  …                     … 63             5    `inner` of a node: a bit for each spot
//!        64 65 66 …                      … 127          6    `outer`: a bit for each slot
//!      slot 0  1  2                        63                where children hang
//! ```
//!
//! The prefixes within a stride are numbered like the places in a heap: spot `2^level + bits` is the
//! prefix of `level` more bits, and what covers spot `n` is `n / 2`, `n / 4` and so on.

use crate::key::bits::{Address, BitString};
use crate::key::prefix::Prefix;

/// Bits that a node looks at.
pub(super) const STRIDE: u32 = 6;

/// Children that a node can have.
pub(super) const SLOTS: u32 = 1 << STRIDE;

/// The spots of levels 0 to 5 that cover a slot.
pub(super) const COVERS: [u64; SLOTS as usize] = {
    let mut covers = [0; SLOTS as usize];
    let mut slot = 0;
    while slot < covers.len() {
        let mut spot = (covers.len() | slot) / 2;
        while spot > 0 {
            covers[slot] |= 1 << spot;
            spot /= 2;
        }
        slot += 1;
    }
    covers
};

/// The position of the node that holds the routes of `len` bits. A node holds its levels 1 to 6, and
/// the root its level 0, too.
#[inline]
pub(super) const fn home(len: u32) -> u32 {
    len.saturating_sub(1) / STRIDE * STRIDE
}

/// The slot that `address` belongs to in a node at `pos`.
#[inline]
pub(super) fn slot_of(address: &impl BitString, pos: u32) -> u32 {
    first_slot(address.window(pos))
}

/// The slot of the first stride of a window.
#[inline]
pub(super) const fn first_slot(window: u64) -> u32 {
    (window >> (64 - STRIDE)) as u32
}

/// A prefix within a stride: 1 to 127.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot(u32);

impl Spot {
    /// The prefix that the node stands for.
    pub(super) const TOP: Self = Self(1);

    /// The spot of a prefix in its [`home`] at `pos`.
    pub(super) fn of<A: Address>(prefix: &Prefix<A>, pos: u32) -> Self {
        let level = prefix.len() - pos;
        Self(1 << level | slot_of(&prefix.address(), pos) >> (STRIDE - level))
    }

    /// The spot at `level` that covers a slot.
    pub(super) const fn above(slot: u32, level: u32) -> Self {
        Self((SLOTS | slot) >> (STRIDE - level))
    }

    /// The spot of a number from 1 to 127.
    #[inline]
    pub(super) const fn numbered(number: u64) -> Self {
        Self(number as u32)
    }

    /// One of the spots of levels 0 to 5: the longest in a set of them that is not empty.
    #[inline]
    pub(super) const fn last_of(inner: u64) -> Self {
        Self(63 - inner.leading_zeros())
    }

    /// The number of this spot.
    #[inline]
    pub(super) const fn number(self) -> u32 {
        self.0
    }

    /// By how many bits it is longer than the prefix of the node.
    #[inline]
    pub(super) const fn level(self) -> u32 {
        self.0.ilog2()
    }

    /// The slot, if the spot is of level 6.
    #[inline]
    pub(super) const fn slot(self) -> Option<u32> {
        self.0.checked_sub(SLOTS)
    }

    /// Its bits behind those of the node, as the first bits of a word.
    pub(super) const fn bits(self) -> u64 {
        // The leading one falls out.
        (self.0 as u64) << (63 - self.level()) << 1
    }

    /// The first slot that it covers.
    pub(super) const fn first_slot(self) -> u32 {
        self.0 << (STRIDE - self.level()) & (SLOTS - 1)
    }

    /// The slots that it covers.
    pub(super) const fn slots(self) -> u64 {
        let count = SLOTS >> self.level();
        u64::MAX >> (SLOTS - count) << self.first_slot()
    }

    /// Whether it is `other`, or shorter and covers it.
    pub(super) const fn covers(self, other: Self) -> bool {
        match other.level().checked_sub(self.level()) {
            Some(longer) => other.0 >> longer == self.0,
            None => false,
        }
    }

    /// The first level of which a spot begins at `slot`.
    pub(super) const fn first_level(slot: u32) -> u32 {
        STRIDE.saturating_sub(slot.trailing_zeros())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spots_begin_at_slots_and_cover_what_is_below() {
        for spot in (1..128).map(Spot::numbered) {
            let slot = spot.first_slot();
            assert_eq!(spot, Spot::above(slot, spot.level()));
            assert_eq!(u64::from(slot) << 58, spot.bits());
            assert!(spot.level() >= Spot::first_level(slot));
            for other in 0..SLOTS {
                let covers = spot.covers(Spot::above(other, STRIDE));
                assert_eq!(covers, spot.slots() >> other & 1 != 0);
                assert_eq!(covers, Spot::above(other, spot.level()) == spot);
            }
        }
        let begin = |slot| 1 + STRIDE - Spot::first_level(slot);
        assert_eq!((0..SLOTS).map(begin).sum::<u32>(), 127, "each spot begins once");
    }

    #[test]
    fn a_slot_is_covered_by_one_spot_of_each_level() {
        for slot in 0..SLOTS {
            let covers = (0..STRIDE).map(|level| 1_u64 << Spot::above(slot, level).number());
            assert_eq!(COVERS[slot as usize], covers.sum::<u64>());
            assert_eq!(Spot::above(slot, STRIDE).slot(), Some(slot));
        }
    }

    #[test]
    fn a_prefix_is_at_home_where_its_last_bit_is() {
        assert_eq!([0, 1, 6, 7, 12, 13, 32].map(home), [0, 0, 0, 6, 6, 12, 30]);
        let prefix = Prefix::new(0xAB00_0000_u32, 8).unwrap();
        let spot = Spot::of(&prefix, 6);
        assert_eq!((spot.number(), spot.level(), spot.slot()), (0b111, 2, None));
        assert_eq!(spot.bits(), 0b11 << 62);
    }
}
