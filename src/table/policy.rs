//! When segments grow, split and merge: pure functions of counts.
//!
//! ```text
//!     slots     4  8  16  32 … 1024              one segment, rebuilt with twice the slots
//!     segments  1 of 1024, 2, 3, 4, 5, …         one of them splits at a time
//!
//!     entries of a segment of 1024 slots
//!     0          288..352 ×2                      864 ... 927            1023
//!     ├───────────┼────────────────────────────────┼───────┼──────────────┤
//!                 └ two of them merge              └───────┴ it splits    └ without memory
//! ```
//!
//! All segments of a table have nearly as many entries, so with one threshold for all they would
//! split together: bytes for an entry would swing between 29 and 57, and a table that grows would
//! have phases in which each insertion splits. The thresholds are *staggered* by the number of the
//! segment.

use super::tags::GROUP;

/// Slots of a segment that does not grow any more, but splits.
pub(crate) const SLOTS: usize = 1024;

/// Slots of the smallest segment.
pub(crate) const FEWEST: usize = 4;

/// Entries at which segments split: at least this many, and up to [`SPREAD`] more.
const SPLIT_FROM: usize = SLOTS * 27 / 32;

/// How far the thresholds are apart.
const SPREAD: usize = SLOTS * 2 / 32;

/// Two segments merge if they have at most this many entries together, and up to [`MERGE_SPREAD`]
/// more.
const MERGE_FROM: usize = SLOTS * 18 / 32;

/// How far the thresholds of merging are apart.
const MERGE_SPREAD: usize = SLOTS * 4 / 32;

/// A segment with more entries than this is not examined for merging.
pub(crate) const EXAMINE_BELOW: usize = (MERGE_FROM + MERGE_SPREAD) / 2 + 16;

/// Entries of a segment for which a reservation makes room: five standard deviations of the number
/// that chance gives to a segment are above.
pub(crate) const RESERVED: usize = 780;

/// Entries up to which segments are filled while the table has fewer than it has reserved for.
pub(crate) const FULLEST: usize = SLOTS - SLOTS / 16;

/// An entry further from its home than this many groups, in a segment that is at most half full,
/// means that hashes are not random: by chance that happens once in 10^11 insertions.
pub(crate) const REACH: usize = 8;

/// Spreads the number of a segment over 0..256.
const fn stagger(number: usize) -> usize {
    ((number as u32).wrapping_mul(0x9e37_79b1) >> 24) as usize
}

/// Entries up to which a segment of `slots` is filled before it grows or splits.
pub(crate) const fn limit(slots: usize, number: usize) -> usize {
    match slots {
        0..GROUP => slots,
        SLOTS => SPLIT_FROM + SPREAD * stagger(number) / 256,
        _ => slots / 8 * 7,
    }
}

/// Entries that a segment of `slots` can have at all: a search must find a free slot.
pub(crate) const fn most(slots: usize) -> usize {
    if slots < GROUP { slots } else { slots - 1 }
}

/// Slots of the smallest segment that takes `entries` without growing; nothing if one does not
/// suffice.
pub(crate) const fn slots_for(entries: usize) -> Option<usize> {
    let mut slots = FEWEST;
    while slots <= SLOTS {
        if entries <= limit(slots, 0) {
            return Some(slots);
        }
        slots *= 2;
    }
    None
}

/// log2 of the segments that a reservation for `entries` needs.
pub(crate) const fn depth_for(entries: usize) -> u32 {
    entries.div_ceil(RESERVED).next_power_of_two().trailing_zeros()
}

/// Whether a segment of `slots` with `entries`, the only one, is rebuilt with half the slots.
pub(crate) const fn should_halve(slots: usize, entries: usize) -> bool {
    slots > FEWEST && entries * 16 < slots * 3
}

/// Whether two segments with `entries` together become the segment `number`.
pub(crate) const fn should_merge(entries: usize, number: usize) -> bool {
    entries <= MERGE_FROM + MERGE_SPREAD * stagger(number) / 256
}

/// Whether splitting a segment of this depth can be of use in a table of `len` entries. Random
/// hashes leave a segment alone with its entries long before this fails; others would have the
/// directory grow without end.
pub(crate) const fn can_split(len: usize, depth: u32) -> bool {
    depth < 28 && len >> depth >= SLOTS / 8
}

/// Whether tags that differ in these bits only are varied enough for random hashes, in a segment
/// of at least four groups.
pub(crate) const fn is_varied(different: u8) -> bool {
    different.count_ones() >= 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_that_split_do_not_merge_at_once() {
        for number in 0..5000 {
            let limit = limit(SLOTS, number);
            assert!((SPLIT_FROM..SPLIT_FROM + SPREAD).contains(&limit));
            assert!(limit < FULLEST && FULLEST < most(SLOTS));
            // The halves of a split segment share its entries: 100 entries must leave before a
            // merge.
            assert!(!should_merge(limit - 100, number));
            // A merged segment has room for 50 entries before it splits.
            let merged = (0..=SLOTS).rev().find(|&entries| should_merge(entries, number));
            assert!(merged.is_some_and(|merged| merged + 50 < limit && merged < 2 * EXAMINE_BELOW));
        }
    }

    #[test]
    fn thresholds_are_spread_evenly() {
        let numbers = 4096;
        let mean = (0..numbers).map(|number| limit(SLOTS, number)).sum::<usize>() / numbers;
        assert!(mean.abs_diff(SPLIT_FROM + SPREAD / 2) < 5, "{mean}");
        let below = (0..numbers).filter(|&number| limit(SLOTS, number) < mean).count();
        assert!(below.abs_diff(numbers / 2) < 100, "{below}");
    }

    #[test]
    fn small_segments_double_and_halve_with_a_gap() {
        let mut slots = FEWEST;
        while slots < SLOTS {
            let limit = limit(slots, 0);
            assert!(limit <= most(slots));
            assert_eq!((slots_for(limit), slots_for(limit + 1)), (Some(slots), Some(2 * slots)));
            assert!(!should_halve(2 * slots, limit + 1 - limit.div_ceil(3)), "{slots}");
            let most = (0..slots).rev().find(|&entries| should_halve(2 * slots, entries));
            assert!(most.is_none_or(|most| 4 * most < 3 * limit), "{slots}");
            slots *= 2;
        }
        assert_eq!((slots_for(0), slots_for(SLOTS)), (Some(FEWEST), None));
    }

    #[test]
    fn reservations_leave_room_for_chance() {
        assert_eq!((depth_for(1), depth_for(RESERVED), depth_for(RESERVED + 1)), (0, 0, 1));
        // A standard deviation is the root of the mean.
        assert!((FULLEST - RESERVED).pow(2) > 25 * RESERVED);
    }

    #[test]
    fn random_hashes_may_always_split() {
        // The fullest segments of a table have twice the entries of the mean.
        for depth in 0..20 {
            assert!(can_split((SPLIT_FROM / 2) << depth, depth));
            assert!(!can_split((SLOTS / 8 - 1) << depth, depth));
        }
    }
}
