//! The header of a bucket: eight tags in one word, one for each of its slots.
//!
//! A free slot has the tag zero. A hash has eight tags, one for each slot, and the entry in slot `i` has
//! the `i`th of its own, with the highest bit set: seven bits. So a word with all tags of a hash is
//! compared with all tags of a bucket at once, without one tag being spread over the word first; no
//! vector instructions, no special machine. Of the wrong entries one in 128 is taken for the right one,
//! and then compared whole.

/// Slots of a bucket.
pub(super) const SLOTS: usize = 8;

const HIGHEST: u64 = 0x8080_8080_8080_8080;
const LOWEST: u64 = 0x0101_0101_0101_0101;

/// The tags of a bucket, those of slot 0 in the lowest byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Header(u64);

impl Header {
    /// All slots are free.
    pub(super) const FREE: Self = Self(0);

    /// The slots whose entries may have the hash of these tags. Free slots are never among them.
    #[inline]
    pub(super) fn matches(self, tags: u64) -> Slots {
        // Subtracting one makes a byte that is zero borrow, and a one above it, too: that entry is
        // compared for nothing. A free slot differs by 0x80 or more, which never borrows.
        let differs = (tags | HIGHEST) ^ self.0;
        Slots(differs.wrapping_sub(LOWEST) & !differs & HIGHEST)
    }

    /// The slots that hold an entry.
    #[inline]
    pub(super) fn full(self) -> Slots {
        Slots(self.0 & HIGHEST)
    }

    /// The slots that hold none.
    #[inline]
    pub(super) fn free(self) -> Slots {
        Slots(!self.0 & HIGHEST)
    }

    /// With its one of these tags in `slot`, which was free.
    #[inline]
    pub(super) fn with(self, slot: usize, tags: u64) -> Self {
        Self(self.0 | (tags | HIGHEST) & (0xff << (8 * slot)))
    }

    /// With the tags of the slots up to `slot` alone.
    #[inline]
    pub(super) fn up_to(self, slot: usize) -> Self {
        Self(self.0 & u64::MAX >> (56 - 8 * slot))
    }

    /// With `slot` free.
    #[inline]
    pub(super) fn without(self, slot: usize) -> Self {
        Self(self.0 & !(0xff << (8 * slot)))
    }
}

/// Some slots of a bucket, from the first to the last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slots(u64);

impl Slots {
    pub(super) const NONE: Self = Self(0);

    pub(super) fn contains(self, slot: usize) -> bool {
        self.0 >> (8 * slot) & 0x80 != 0
    }

    pub(super) fn count(self) -> usize {
        self.0.count_ones() as usize
    }
}

impl Iterator for Slots {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let slot = self.0.trailing_zeros() as usize / 8;
        self.0 &= self.0 - 1;
        Some(slot)
    }
}

/// The tags of a hash, one for each slot: its bytes, and those of its path from the other end, so that
/// a hash of 32 bits has eight tags, too.
#[inline]
pub(super) fn tags(hash: u64) -> u64 {
    hash ^ path(hash).swap_bytes()
}

/// Mixes a hash into a path: its upper bits lead to a segment, its lower half to a bucket in it.
///
/// A multiplication by an odd number, so that even hashes that are just numbers counted upwards
/// lead to different segments and buckets.
#[inline]
pub(super) fn path(hash: u64) -> u64 {
    hash.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn a_header_knows_what_was_put_into_it() {
        let hash = 0x0123_4567_89ab_cdef;
        let header =
            (0..SLOTS).step_by(2).fold(Header::FREE, |header, slot| header.with(slot, hash));
        assert_eq!(header.full().collect::<Vec<_>>(), [0, 2, 4, 6]);
        assert_eq!(header.free().collect::<Vec<_>>(), [1, 3, 5, 7]);
        assert_eq!(header.matches(hash).collect::<Vec<_>>(), [0, 2, 4, 6]);
        assert_eq!(header.matches(hash ^ 0x80).count(), 4, "the highest bits do not count");
        assert_eq!(header.without(4).full().collect::<Vec<_>>(), [0, 2, 6]);
        assert!(header.full().contains(2) && !header.full().contains(3));
    }

    /// All pairs of a tag and a tag searched for, next to all kinds of neighbours below.
    #[test]
    #[cfg_attr(miri, ignore = "slow, and there is no memory in it")]
    fn matches_are_all_that_match_and_never_a_free_slot() {
        for below in [None, Some(0), Some(1), Some(0x7f)] {
            for tag in 0..0x80_u64 {
                for wanted in 0..0x80_u64 {
                    let hash = wanted << 8 | wanted;
                    let header = below.map_or(Header::FREE, |tag| Header::FREE.with(0, tag));
                    assert!(!header.matches(hash).contains(1));
                    let matches = header.with(1, tag << 8).matches(hash);
                    assert!(matches.contains(1) || tag != wanted);
                    // A neighbour that matches makes the tag that differs in the lowest bit match.
                    let borrowed = below == Some(wanted) && tag ^ wanted == 1;
                    assert_eq!(matches.contains(1), tag == wanted || borrowed);
                }
            }
        }
    }
}
