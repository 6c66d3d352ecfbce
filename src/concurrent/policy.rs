//! The policy that the hash tables share: shards, and loads of segments.
//!
//! ```text
//!     mixed hash   ┌──────────┬────────── … ─────────┬─────────┐
//!                  │ segment  │        bucket        │  shard  │
//!                  └──────────┴────────── … ─────────┴─────────┘
//!                   upper bits      lower 32 bits      6 bits
//!
//!     path         ┌─────────┬──────────┬─────── … ────────────┐
//!                  │  drahs  │ segment  │                      │
//!                  └─────────┴──────────┴─────── … ────────────┘
//!                   reversed   upper bits
//! ```
//!
//! A segment of depth `d` has the entries whose paths share `d` bits. So a table has one shard and
//! one segment in the beginning; six splits later, each shard has one segment.

use super::sync::IS_CHECKED;

/// The bits of a mixed hash that select its shard.
pub(super) const SHARD_BITS: u32 = match (IS_CHECKED, cfg!(miri)) {
    (true, _) => 1,
    // Traversals would be most of the time of tests in Miri.
    (_, true) => 2,
    _ => 6,
};

/// The greatest number of shards of a table.
pub(super) const SHARDS: usize = 1 << SHARD_BITS;

/// The greatest depth of a directory, in bits: as many bits as a note of a segment has, and fewer
/// than the upper half of a mixed hash.
const DEEPEST_DIRECTORY: u32 = 16;

/// The greatest depth of a segment.
pub(super) const DEEPEST: u32 = SHARD_BITS + DEEPEST_DIRECTORY;

/// The maximum difference of a segment's depth to the usual one: keys with colliding hashes would
/// double the directory for each few of them.
const DEEPER: u32 = 3;

/// The lowest limit on the load of a segment, and the range of limits, in 64ths.
const LIMIT: (usize, usize) = (45, 10);

/// Mixes a hash: its lowest bits select the shard, its upper ones the segment, its lower half the
/// bucket.
///
/// A multiplication, whose product is folded, so that also hashes that are consecutive numbers, or
/// differ in their upper bits only, select different buckets.
#[inline]
pub(super) fn mix(hash: u64) -> u64 {
    let product = u128::from(hash) * 0x9e37_79b9_7f4a_7c15;
    product as u64 ^ (product >> 64) as u64
}

/// Returns the root of a mixed hash.
#[inline]
pub(super) fn root_of(mixed: u64) -> usize {
    mixed as usize % SHARDS
}

/// Returns the roots that lead to the segment of this depth of a mixed hash: the first one is that
/// of its shard.
#[inline]
pub(super) fn roots_of(mixed: u64, depth: u32) -> impl Iterator<Item = usize> {
    let step = 1 << depth.min(SHARD_BITS);
    (mixed as usize % step..SHARDS).step_by(step)
}

/// Returns the path of a mixed hash.
#[inline]
pub(super) fn path(mixed: u64) -> u64 {
    (mixed % SHARDS as u64).reverse_bits() | mixed >> SHARD_BITS
}

/// Returns a mixed hash that has a path, but for its lowest bits.
#[inline]
pub(super) fn mixed_of(path: u64) -> u64 {
    (path.reverse_bits() % SHARDS as u64) | path << SHARD_BITS
}

/// Returns the bucket of a mixed hash, of `buckets`, at most 2^32.
#[inline]
pub(super) fn home(mixed: u64, buckets: usize) -> usize {
    // Less than 2^32 times the number of buckets, divided by 2^32.
    (((mixed & 0xffff_ffff) * buckets as u64) >> 32) as usize
}

/// Returns whether the load of `entries` in `slots` is above `load`, in 64ths.
pub(super) const fn is_above(entries: usize, slots: usize, load: usize) -> bool {
    entries * 64 > slots * load
}

/// Returns the number of used slots above which a segment of `slots` slots should grow; `seed`
/// distinguishes segments, so that they do not all grow at one size of the table.
pub(super) fn limit(slots: usize, seed: u64) -> usize {
    let (lowest, range) = LIMIT;
    let fraction = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
    let random = (fraction as usize * range) >> 16;
    if slots <= 16 { slots - slots.div_ceil(5) } else { slots * (lowest + random) / 64 }
}

/// Returns the seed of the limit of a segment, different for each: its prefix and depth.
pub(super) fn seed(mixed: u64, depth: u32) -> u64 {
    path(mixed).checked_shr(64 - depth).unwrap_or(0) | u64::from(depth) << 48
}

/// Returns the bit of a mixed hash that distinguishes the halves of a segment of this depth.
pub(super) const fn bit_below(depth: u32) -> u64 {
    if depth < SHARD_BITS { 1 << depth } else { 1 << (63 + SHARD_BITS - depth) }
}

/// Returns whether a segment of this depth is not much deeper than the number of entries of its
/// shard requires, if segments have `slots`.
pub(super) const fn may_split(depth: u32, entries: usize, slots: usize) -> bool {
    let deepest = SHARD_BITS + (entries / slots + 1).ilog2() + 1 + DEEPER;
    depth < deepest && depth < DEEPEST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_are_in_bounds_and_spread() {
        let mut counts = [0; 48];
        for number in 0..48_000_u64 {
            counts[home(mix(number), 48)] += 1;
        }
        assert!(counts.iter().all(|count| (800..1200).contains(count)), "{counts:?}");
        assert_eq!(home(u64::MAX, 48), 47);
    }

    #[test]
    fn segments_of_colliding_keys_do_not_split_for_ever() {
        let may_split = |depth, entries| may_split(SHARD_BITS + depth, entries, 160);
        assert!(may_split(0, 0) && may_split(3, 100) && !may_split(4, 100));
        assert!(may_split(13, 160 << 10) && !may_split(14, 160 << 10));
        assert!(!may_split(DEEPEST_DIRECTORY, usize::MAX / 2));
    }

    #[test]
    fn segments_have_the_entries_whose_paths_share_bits() {
        for mixed in (0..1000).map(mix) {
            assert_eq!(
                mixed_of(path(mixed)),
                (mixed >> SHARD_BITS << SHARD_BITS) | (mixed % SHARDS as u64)
            );
            for depth in 0..DEEPEST {
                let differs = path(mixed) ^ path(mixed ^ bit_below(depth));
                assert_eq!(differs, 1 << (63 - depth));
                assert!(roots_of(mixed, depth).any(|root| root == root_of(mixed)));
            }
        }
    }
}
