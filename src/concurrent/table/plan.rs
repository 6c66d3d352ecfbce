//! When a segment grows, splits, shrinks or merges: arithmetic only.
//!
//! ```text
//!     groups         …  24         32         48         2 × 32
//!     load           ·52 → ·77  ·58 → ·77  ·51 → ·77  ·58 → ·77      on average
//! ```
//!
//! Segments have limits of their own, between 70 and 84 percent of their slots, so that they do not
//! all grow at one size of the table: then its memory would rise and fall by a half.

use crate::concurrent::policy::{is_above, larger, smaller};
use crate::concurrent::sync::IS_CHECKED;

/// The size of a segment after a split, in groups: 4 KiB for groups of 128 bytes. Larger ones take
/// longer to copy, smaller ones need a larger directory.
pub(super) const SPLIT: u32 = if IS_CHECKED { 1 } else { 32 };

/// The size of a segment that grows no more, but splits.
const WHOLE: u32 = larger(SPLIT);

/// The greatest size of a segment, for keys that a split does not separate.
pub(super) const LARGEST: u32 = if IS_CHECKED { 4 } else { 96 };

/// The maximum load of a segment that was copied, in 64ths.
const COPIED: usize = 42;

/// The load below which a segment shrinks, in 64ths.
const SHRINK_BELOW: usize = 20;

/// The maximum load of a merged segment, in 64ths.
const MERGE_BELOW: usize = 32;

/// A greater distance of an entry from its home makes its segment grow, if that is half full.
const REACH: usize = 8;

/// What makes room in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// A copy of this size, without the dead slots.
    Copy(u32),
    /// Two segments, by the next bit of the mixed hashes.
    Split,
}

/// The occupancy of a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// Its size in groups.
    pub(super) size: u32,
    /// Slots of a group.
    pub(super) slots: usize,
    /// Slots that are not free.
    pub(super) used: usize,
    /// Entries.
    pub(super) live: usize,
    /// The number of used slots above which the segment should grow.
    pub(super) limit: usize,
}

/// Returns the size of a segment for a number of entries, with some more to come.
pub(super) fn size_for(entries: usize, slots: usize) -> u32 {
    let mut size = 1;
    while size < LARGEST && is_above(entries, size as usize * slots, COPIED) {
        size = larger(size);
    }
    size
}

impl Load {
    /// Returns whether another entry at this distance from its home is acceptable.
    pub(super) fn has_room(self, distance: usize) -> bool {
        let is_near = distance <= REACH || 2 * self.used < self.size as usize * self.slots;
        self.used < self.limit && is_near
    }

    /// Returns what makes room in this segment, or `None` if there is nothing.
    pub(super) fn growth(self, may_split: bool) -> Option<Plan> {
        let has_dead = self.used > self.live;
        if has_dead && 4 * self.live <= 3 * self.limit {
            return Some(Plan::Copy(self.size));
        }
        match self.size {
            size if size < WHOLE => Some(Plan::Copy(larger(size))),
            _ if may_split => Some(Plan::Split),
            size if size < LARGEST => Some(Plan::Copy(larger(size))),
            size => has_dead.then_some(Plan::Copy(size)),
        }
    }

    /// Returns whether the segment should shrink, or merge with its sibling, after a removal.
    pub(super) fn is_low(self) -> bool {
        !is_above(self.live, self.size as usize * self.slots, SHRINK_BELOW)
    }

    /// Returns a smaller size for this segment, if there is one: the next one, or the smallest.
    pub(super) fn smaller(self, smallest: bool) -> Option<u32> {
        let size = match self.size {
            1 => 1,
            _ if smallest => size_for(self.live, self.slots),
            size => smaller(size),
        };
        (size < self.size).then_some(size)
    }

    /// Returns the size of a segment for the entries of this one and its sibling, if they are few.
    pub(super) fn merged(self, sibling: Self) -> Option<u32> {
        let entries = self.live + sibling.live;
        let is_large = is_above(entries, SPLIT as usize * self.slots, MERGE_BELOW)
            || self.size.max(sibling.size) > SPLIT;
        (!is_large).then(|| size_for(entries, self.slots))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::concurrent::policy::limit;

    fn load(size: u32, used: usize, live: usize, seed: u64) -> Load {
        let slots = 5;
        Load { size, slots, used, live, limit: limit(size as usize * slots, seed) }
    }

    #[test]
    fn limits_leave_free_slots_and_differ() {
        for slots in [3, 5, 7, 10, 14, 15, 21, 160, 480] {
            let limits = (0..1000).map(|seed| limit(slots, seed));
            assert!(limits.clone().all(|limit| limit > 0 && limit < slots), "{slots}");
            assert!(slots <= 16 || limits.clone().all(|limit| (limit + 1) * 64 > slots * 45));
        }
        let mut limits: Vec<usize> = (0..1000).map(|seed| limit(160, seed)).collect();
        limits.sort_unstable();
        assert!(limits[0] < 116 && limits[500].abs_diff(123) < 4 && limits[999] > 130);
    }

    #[test]
    fn what_has_grown_has_room_and_does_not_shrink() {
        for seed in 0..200 {
            for size in [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48] {
                let full = load(size, limit(size as usize * 5, seed), 0, seed);
                // From no dead slot to all.
                for live in 0..=full.used {
                    let full = Load { live, ..full };
                    assert!(!full.has_room(0));
                    let after = match full.growth(true).unwrap() {
                        Plan::Copy(size) => load(size, live, live, seed + 1),
                        Plan::Split => load(SPLIT, live / 2, live / 2, seed + 1),
                    };
                    assert!(after.has_room(0), "{full:?} {after:?}");
                    assert!(size < 8 || 4 * live < 3 * full.used || !after.is_low(), "{after:?}");
                }
            }
        }
    }

    #[test]
    fn what_has_shrunk_has_room() {
        for size in [2, 3, 4, 6, 8, 12, 16, 24, 32, 48] {
            let live = size as usize * 5 * SHRINK_BELOW / 64;
            let low = load(size, live, live, 0);
            assert!(low.is_low());
            for smallest in [false, true] {
                let Some(smaller) = low.smaller(smallest) else { panic!("{low:?}") };
                let after = load(smaller, live, live, 0);
                assert!(after.has_room(0), "{after:?}");
            }
            let sibling = load(size, live, live, 1);
            let Some(merged) = low.merged(sibling) else { continue };
            assert!(size <= SPLIT && load(merged, 2 * live, 2 * live, 2).has_room(0));
        }
        assert_eq!(load(1, 0, 0, 0).smaller(true), None);
    }

    #[test]
    fn keys_that_do_not_separate_fill_the_largest_segment() {
        let mut size = 1;
        while let Some(Plan::Copy(next)) =
            load(size, usize::MAX / 8, usize::MAX / 8, 0).growth(false)
        {
            assert!(next > size);
            size = next;
        }
        assert_eq!(size, LARGEST);
        let dead = load(LARGEST, 480, 479, 0);
        assert_eq!(dead.growth(false), Some(Plan::Copy(LARGEST)));
    }
}
