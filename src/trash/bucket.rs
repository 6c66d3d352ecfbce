//! The header of a bucket: the tags of its eight slots in one word.

use crate::raw::tags::{self, HIGHEST};

pub(super) use crate::raw::tags::SlotMask;

/// Slots of a bucket.
pub(super) const SLOTS: usize = 8;

/// The tags of a bucket, those of slot 0 in the lowest byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Header(u64);

impl Header {
    /// All slots are free.
    pub(super) const FREE: Self = Self(0);

    /// The slots whose entries may have the hash of these tags. Free slots are never among them.
    #[inline]
    pub(super) fn matches(self, tags: u64) -> SlotMask {
        tags::matches(self.0, tags)
    }

    /// The slots that hold an entry.
    #[inline]
    pub(super) fn full(self) -> SlotMask {
        SlotMask::of(self.0)
    }

    /// The slots that hold none.
    #[inline]
    pub(super) fn free(self) -> SlotMask {
        SlotMask::of(self.0 ^ HIGHEST)
    }

    /// With its one of these tags in `slot`, which was free.
    #[inline]
    pub(super) fn with(self, slot: usize, tags: u64) -> Self {
        Self(tags::with(self.0, slot, tags))
    }

    /// With the tags of the slots up to `slot` alone.
    #[inline]
    pub(super) fn up_to(self, slot: usize) -> Self {
        Self(self.0 & u64::MAX >> (56 - 8 * slot))
    }

    /// With `slot` free.
    #[inline]
    pub(super) fn without(self, slot: usize) -> Self {
        Self(tags::without(self.0, slot))
    }
}

/// The tags of a hash, one for each slot.
#[inline]
pub(super) fn tags(hash: u64) -> u64 {
    tags::tags(hash, path(hash))
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
}
