//! The policy that the hash tables share: shards, and loads of segments.
//!
//! ```text
//!     mixed hash   ┌──────────┬────────── … ─────────┬─────────┐
//!                  │ segment  │        bucket        │  shard  │
//!                  └──────────┴────────── … ─────────┴─────────┘
//!                   upper bits      lower 32 bits      6 bits
//! ```

use super::sync::IS_CHECKED;

/// Shards of a table.
pub(super) const SHARDS: usize = match (IS_CHECKED, cfg!(miri)) {
    (true, _) => 2,
    // Traversals would be most of the time of tests in Miri.
    (_, true) => 4,
    _ => 64,
};

/// The greatest depth of a directory, in bits: as many bits as a note of a segment has, and fewer
/// than the upper half of a mixed hash.
pub(super) const DEEPEST: u32 = 16;

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

/// Returns the shard of a mixed hash.
#[inline]
pub(super) fn shard_of(mixed: u64) -> usize {
    mixed as usize % SHARDS
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

/// Returns the seed of the limit of a segment, different for each: prefix and depth in the
/// directory, and the number of the shard.
pub(super) fn seed(mixed: u64, depth: u32, shard: usize) -> u64 {
    let prefix = mixed.checked_shr(64 - depth).unwrap_or(0);
    (prefix << 5 | u64::from(depth)) << 6 | shard as u64
}

/// Returns the bit of a mixed hash that distinguishes the halves of a segment of this depth.
pub(super) const fn bit_below(depth: u32) -> u64 {
    1 << (63 - depth)
}

/// Returns whether a segment of this depth is not much deeper than the number of entries of its
/// shard requires, if segments have `slots`.
pub(super) const fn may_split(depth: u32, entries: usize, slots: usize) -> bool {
    let deepest = (entries / slots + 1).ilog2() + 1 + DEEPER;
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
        assert!(may_split(0, 0, 160) && may_split(3, 100, 160) && !may_split(4, 100, 160));
        assert!(may_split(13, 160 << 10, 160) && !may_split(14, 160 << 10, 160));
        assert!(!may_split(DEEPEST, usize::MAX / 2, 160));
    }
}
