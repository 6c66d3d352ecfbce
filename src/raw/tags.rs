//! Tags: a byte for each slot of a bucket, in one word, compared all at once.
//!
//! A free slot has the tag zero. A hash has eight tags, one for each slot, and the entry in slot `i` has
//! the `i`th of its own, with the highest bit set: seven bits. So a word with all tags of a hash is
//! compared with all tags of a bucket at once, without one tag being spread over the word first; no
//! vector instructions, no special machine. Of the wrong entries one in 128 is taken for the right one,
//! and then compared whole.

/// What a tag of a slot that is not free has.
pub(crate) const HIGHEST: u64 = 0x8080_8080_8080_8080;
const LOWEST: u64 = 0x0101_0101_0101_0101;

/// The slots of a word of tags whose entries may have the hash of these tags. Free slots are never
/// among them.
#[inline]
pub(crate) fn matches(word: u64, tags: u64) -> Slots {
    // Subtracting one makes a byte that is zero borrow, and a one above it, too: that entry is
    // compared for nothing. A free slot differs by 0x80 or more, which never borrows.
    let differs = (tags | HIGHEST) ^ word;
    Slots(differs.wrapping_sub(LOWEST) & !differs & HIGHEST)
}

/// The tags of a hash, one for each slot: its bytes, and those of its path from the other end, so that
/// a hash of 32 bits has eight tags, too.
#[inline]
pub(crate) fn tags(hash: u64, path: u64) -> u64 {
    hash ^ path.swap_bytes()
}

/// A word of tags with that of a hash for a slot, which was free.
#[inline]
pub(crate) fn with(word: u64, slot: usize, tags: u64) -> u64 {
    word | (tags | HIGHEST) & (0xff << (8 * slot))
}

/// A word of tags with a slot free.
#[inline]
pub(crate) fn without(word: u64, slot: usize) -> u64 {
    word & !(0xff << (8 * slot))
}

/// Some slots of a bucket, from the first to the last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slots(u64);

impl Slots {
    pub(crate) const NONE: Self = Self(0);

    /// Those whose bytes in a word have the highest bit set.
    #[inline]
    pub(crate) fn of(word: u64) -> Self {
        Self(word & HIGHEST)
    }

    #[inline]
    pub(crate) fn contains(self, slot: usize) -> bool {
        self.0 >> (8 * slot) & 0x80 != 0
    }

    /// The highest bit of the byte of each.
    #[inline]
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) fn count(self) -> usize {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// All pairs of a tag and a tag searched for, next to all kinds of neighbours below.
    #[test]
    #[cfg_attr(miri, ignore = "slow, and there is no memory in it")]
    fn matches_are_all_that_match_and_never_a_free_slot() {
        for below in [None, Some(0), Some(1), Some(0x7f)] {
            for tag in 0..0x80_u64 {
                for wanted in 0..0x80_u64 {
                    let tags = wanted << 8 | wanted;
                    let word = below.map_or(0, |tag| with(0, 0, tag));
                    assert!(!matches(word, tags).contains(1));
                    let found = matches(with(word, 1, tag << 8), tags);
                    assert!(found.contains(1) || tag != wanted);
                    // A neighbour that matches makes the tag that differs in the lowest bit match.
                    let borrowed = below == Some(wanted) && tag ^ wanted == 1;
                    assert_eq!(found.contains(1), tag == wanted || borrowed);
                }
            }
        }
    }
}
