//! Arithmetic on the six bits of a stride.
//!
//! ```text
//!     index                1                      level 0    the prefix of the node
//!                 2                 3                   1
//!             4       5         6       7               2
//!             …                         …               …
//!         32 33  …                     … 63             5    `inner`: a bit for each index
//!        64 65 66 …                      … 127          6    `outer`: a bit for each slot
//!      slot 0  1  2                        63                slots of children
//! ```
//!
//! The prefixes within a stride are numbered like the nodes of a heap: index `2^level + bits` is
//! the prefix of `level` more bits, and the prefixes that cover index `n` are `n / 2`, `n / 4` and
//! so on.

use crate::key::bits::{Address, BitString};
use crate::key::prefix::Prefix;

/// Bits that select a child of a node.
pub(crate) const STRIDE: u32 = 6;

/// Slots of a node, for up to that number of children.
pub(crate) const SLOTS: u32 = 1 << STRIDE;

/// The prefix indices of levels 0 to 5 that cover a slot, as bitmaps.
pub(crate) const COVERS: [u64; SLOTS as usize] = {
    let mut covers = [0; SLOTS as usize];
    let mut slot = 0;
    while slot < covers.len() {
        let mut index = (covers.len() | slot) / 2;
        while index > 0 {
            covers[slot] |= 1 << index;
            index /= 2;
        }
        slot += 1;
    }
    covers
};

/// Returns the position of the node that holds the routes of `len` bits. A node holds levels 1 to
/// 6, and the root level 0, too.
#[inline]
pub(crate) const fn node_pos(len: u32) -> u32 {
    len.saturating_sub(1) / STRIDE * STRIDE
}

/// Returns the slot of `address` in a node at `pos`.
#[inline]
pub(crate) fn slot_of(address: &impl BitString, pos: u32) -> u32 {
    first_slot(address.window(pos))
}

/// Returns the slot of the first stride of a window.
#[inline]
pub(crate) const fn first_slot(window: u64) -> u32 {
    (window >> (64 - STRIDE)) as u32
}

/// The heap index of a prefix within a stride: 1 to 127.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PrefixIndex(u32);

impl PrefixIndex {
    /// The prefix of the node itself.
    pub(super) const TOP: Self = Self(1);

    /// Returns the index of a prefix in its node, which is at `pos`, its [`node_pos`].
    pub(crate) fn of<A: Address>(prefix: &Prefix<A>, pos: u32) -> Self {
        let level = prefix.len() - pos;
        Self(1 << level | slot_of(&prefix.address(), pos) >> (STRIDE - level))
    }

    /// Returns the index at `level` that covers a slot.
    pub(crate) const fn covering(slot: u32, level: u32) -> Self {
        Self((SLOTS | slot) >> (STRIDE - level))
    }

    /// Wraps an index from 1 to 127.
    #[inline]
    pub(crate) const fn new(index: u64) -> Self {
        Self(index as u32)
    }

    /// Returns the longest prefix in a set of indices of levels 0 to 5, which is not empty.
    #[inline]
    pub(super) const fn longest_in(inner: u64) -> Self {
        Self(63 - inner.leading_zeros())
    }

    /// Returns the index as a number.
    #[inline]
    pub(crate) const fn get(self) -> u32 {
        self.0
    }

    /// Returns its length relative to the prefix of the node.
    #[inline]
    pub(crate) const fn level(self) -> u32 {
        self.0.ilog2()
    }

    /// Returns the slot, if the level is 6.
    #[inline]
    pub(crate) const fn slot(self) -> Option<u32> {
        self.0.checked_sub(SLOTS)
    }

    /// Returns the bits of the prefix after the bits of the node, left-aligned in a word.
    pub(crate) const fn bits(self) -> u64 {
        // The leading one is shifted out.
        (self.0 as u64) << (63 - self.level()) << 1
    }

    /// Returns the first slot that it covers.
    pub(super) const fn first_slot(self) -> u32 {
        self.0 << (STRIDE - self.level()) & (SLOTS - 1)
    }

    /// Returns the number of slots that it covers.
    pub(super) const fn count(self) -> u32 {
        SLOTS >> self.level()
    }

    /// Returns the slots that it covers as a bitmap.
    pub(super) const fn slots(self) -> u64 {
        u64::MAX >> (SLOTS - self.count()) << self.first_slot()
    }

    /// Returns whether it is `other`, or a shorter prefix that covers it.
    pub(super) const fn covers(self, other: Self) -> bool {
        match other.level().checked_sub(self.level()) {
            Some(longer) => other.0 >> longer == self.0,
            None => false,
        }
    }

    /// Returns the lowest level at which a prefix begins at `slot`.
    pub(super) const fn first_level(slot: u32) -> u32 {
        STRIDE.saturating_sub(slot.trailing_zeros())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_begin_at_slots_and_cover_the_slots_below() {
        for index in (1..128).map(PrefixIndex::new) {
            let slot = index.first_slot();
            assert_eq!(index, PrefixIndex::covering(slot, index.level()));
            assert_eq!(u64::from(slot) << 58, index.bits());
            assert!(index.level() >= PrefixIndex::first_level(slot));
            for other in 0..SLOTS {
                let covers = index.covers(PrefixIndex::covering(other, STRIDE));
                assert_eq!(covers, index.slots() >> other & 1 != 0);
                assert_eq!(covers, PrefixIndex::covering(other, index.level()) == index);
            }
        }
        let begin = |slot| 1 + STRIDE - PrefixIndex::first_level(slot);
        assert_eq!((0..SLOTS).map(begin).sum::<u32>(), 127, "each index begins once");
    }

    #[test]
    fn a_slot_is_covered_by_one_index_of_each_level() {
        for slot in 0..SLOTS {
            let covers = (0..STRIDE).map(|level| 1_u64 << PrefixIndex::covering(slot, level).get());
            assert_eq!(COVERS[slot as usize], covers.sum::<u64>());
            assert_eq!(PrefixIndex::covering(slot, STRIDE).slot(), Some(slot));
        }
    }

    #[test]
    fn a_prefix_belongs_to_the_node_of_its_last_bit() {
        assert_eq!([0, 1, 6, 7, 12, 13, 32].map(node_pos), [0, 0, 0, 6, 6, 12, 30]);
        let prefix = Prefix::new(0xAB00_0000_u32, 8).unwrap();
        let index = PrefixIndex::of(&prefix, 6);
        assert_eq!((index.get(), index.level(), index.slot()), (0b111, 2, None));
        assert_eq!(index.bits(), 0b11 << 62);
    }
}
