//! What removals leave behind: holes, which entries that have passed them fill.
//!
//! Without this, entries would stay where they were pushed to when their home was full. Under churn
//! four times as many would be away from home, and misses would take twice as long.

use super::bucket::path;
use super::segment::Segment;
use super::slot::SlotId;

impl<T> Segment<T> {
    /// Fills a free slot of a bucket with an entry that has passed it, and what that leaves behind in the
    /// same way. `hasher` is asked for the hashes of the entries in the buckets behind, which is for
    /// one removal in ten.
    pub(super) fn fill_hole(&mut self, bucket: usize, hasher: &impl Fn(&T) -> u64) {
        let mut hole = bucket;
        while let Some(left) = self.fill_from_behind(hole, hasher) {
            hole = left;
        }
    }

    /// Moves an entry into a bucket that has a free slot and that it has passed. Returns the bucket
    /// that it has left; nothing if there is no such entry.
    fn fill_from_behind(&mut self, hole: usize, hasher: &impl Fn(&T) -> u64) -> Option<usize> {
        if self.passed(hole) == 0 || self.header(hole).free().count() == 0 {
            return None;
        }
        let (from, hash) = self.first_to_pass(hole, hasher)?;
        self.move_back(from, hole, hash);
        Some(from.bucket())
    }

    /// The nearest entry that has passed a bucket, and its hash.
    fn first_to_pass(&self, bucket: usize, hasher: &impl Fn(&T) -> u64) -> Option<(SlotId, u64)> {
        let mut behind = bucket;
        for distance in 1..self.buckets() {
            behind = self.behind(behind);
            for slot in self.header(behind).full() {
                let spot = SlotId::new(behind, slot, 0);
                let hash = hasher(self.get(spot)?);
                if self.distance(behind, path(hash)) >= distance {
                    return Some((spot, hash));
                }
            }
            if self.passed(behind) == 0 {
                return None;
            }
        }
        None
    }

    /// Drops the entries for which `keep` does not say so, and counts `len` down with each.
    /// `hasher` is asked for their hashes. Leaves the holes.
    pub(super) fn retain(
        &mut self,
        len: &mut usize,
        keep: &mut impl FnMut(&mut T) -> bool,
        hasher: &impl Fn(&T) -> u64,
    ) {
        for bucket in 0..self.buckets() {
            for slot in self.header(bucket).full() {
                let spot = SlotId::new(bucket, slot, 0);
                let Some(entry) = self.get_mut(spot) else { continue };
                if keep(entry) {
                    continue;
                }
                let path = path(hasher(entry));
                let distance = self.distance(bucket, path);
                let entry = self.take(SlotId::new(bucket, slot, distance));
                *len -= 1;
                drop(entry);
            }
        }
    }

    /// Fills the free slots of all buckets with entries that have passed them.
    pub(super) fn fill_all_holes(&mut self, hasher: &impl Fn(&T) -> u64) {
        for bucket in 0..self.buckets() {
            while self.fill_from_behind(bucket, hasher).is_some() {}
        }
    }
}
