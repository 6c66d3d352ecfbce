//! Tags: one byte for each slot of a bucket, in one word, compared all at once.
//!
//! A free slot has the tag zero. A hash has eight tags, one for each slot; the entry in slot `i`
//! has the `i`th tag of its hash, with the highest bit set: seven bits of hash. So one word with
//! all tags of a hash is compared with all tags of a bucket at once, without broadcasting a tag
//! over the word first and without vector instructions. A wrong entry matches with a probability of
//! 1/128, and its key is then compared in full.

/// The bit that is set in the tag of each occupied slot.
pub(crate) const HIGHEST: u64 = 0x8080_8080_8080_8080;
const LOWEST: u64 = 0x0101_0101_0101_0101;

/// The slots of a word of tags whose entries may have the hash with these tags. Never includes a
/// free slot.
#[inline]
pub(crate) fn matches(word: u64, tags: u64) -> SlotMask {
    // The subtraction borrows from a zero byte, and then also from a byte of one above it: a false
    // positive. A free slot differs by 0x80 or more, which never borrows.
    let differs = (tags | HIGHEST) ^ word;
    SlotMask(differs.wrapping_sub(LOWEST) & !differs & HIGHEST)
}

/// The word with the tag of a hash set in `slot`, which was free.
#[inline]
pub(crate) fn with(word: u64, slot: usize, tags: u64) -> u64 {
    word | (tags | HIGHEST) & (0xff << (8 * slot))
}

/// The word with `slot` free.
#[inline]
pub(crate) fn without(word: u64, slot: usize) -> u64 {
    word & !(0xff << (8 * slot))
}

/// A set of slots of a bucket. Iterates in ascending order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotMask(u64);

impl SlotMask {
    /// The slots whose bytes of `word` have the highest bit set.
    #[cfg(feature = "concurrent")]
    #[inline]
    pub(crate) fn of(word: u64) -> Self {
        Self(word & HIGHEST)
    }

    #[cfg(any(feature = "concurrent", test))]
    #[inline]
    pub(crate) fn contains(self, slot: usize) -> bool {
        self.0 >> (8 * slot) & 0x80 != 0
    }

    /// The highest bit of the byte of each slot in the set.
    #[inline]
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    #[cfg(feature = "concurrent")]
    #[inline]
    pub(crate) fn count(self) -> usize {
        self.0.count_ones() as usize
    }
}

impl Iterator for SlotMask {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// All pairs of a stored tag and a probed tag, next to each kind of lower neighbour.
    #[test]
    #[cfg_attr(miri, ignore = "slow, and without memory accesses to check")]
    fn matches_include_all_equal_tags_and_no_free_slot() {
        for below in [None, Some(0), Some(1), Some(0x7f)] {
            for tag in 0..0x80_u64 {
                for probed in 0..0x80_u64 {
                    let tags = probed << 8 | probed;
                    let word = below.map_or(0, |tag| with(0, 0, tag));
                    assert!(!matches(word, tags).contains(1));
                    let matched = matches(with(word, 1, tag << 8), tags).contains(1);
                    // A matching neighbour makes the tag that differs in the lowest bit match.
                    let borrowed = below == Some(probed) && tag ^ probed == 1;
                    assert_eq!(matched, tag == probed || borrowed);
                }
            }
        }
    }
}
