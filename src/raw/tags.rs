//! Tags: one byte for each slot of a bucket, in one word.
//!
//! A free slot has the tag zero. A hash has eight tags, one for each slot; the entry in slot `i`
//! has the `i`th tag of its hash, with the highest bit set: seven bits of hash.

/// The bit that is set in the tag of each occupied slot.
pub(crate) const HIGHEST: u64 = 0x8080_8080_8080_8080;

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
    #[inline]
    pub(crate) fn of(word: u64) -> Self {
        Self(word & HIGHEST)
    }

    #[inline]
    pub(crate) fn contains(self, slot: usize) -> bool {
        self.0 >> (8 * slot) & 0x80 != 0
    }

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
