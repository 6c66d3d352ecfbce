//! Invariants of a concurrent map.

use core::hash::{BuildHasher, Hash};

use crossbeam_epoch::Guard;

use super::ConcurrentMap;
use super::bucket::Bucket;
use super::directory::Directory;
use super::segment::Segment;
use crate::concurrent::policy::{mix, shard_of};
use crate::invariant::{InvariantError, ensure};

impl<K: Hash, V, S: BuildHasher> ConcurrentMap<K, V, S> {
    /// Checks all invariants. O(slots): for tests.
    ///
    /// # Errors
    ///
    /// If an invariant is violated.
    ///
    /// # Example
    ///
    /// ```
    /// let mut map: flowtable::ConcurrentMap<u32, u32> = (0..1000).map(|key| (key, key)).collect();
    /// map.pin().retain(|key, _| key % 7 == 0);
    /// assert_eq!(map.validate(), Ok(()));
    /// ```
    #[doc(hidden)]
    pub fn validate(&mut self) -> Result<(), InvariantError> {
        let pin = crossbeam_epoch::pin();
        for shard in 0..self.shards.len() {
            let (len, slots) = self.validate_shard(shard, &pin)?;
            ensure(len == self.shards[shard].len(), || "a shard has miscounted its entries")?;
            let deferred = self.shards[shard].state().slots;
            ensure(slots == deferred, || "a shard has miscounted its slots")?;
        }
        Ok(())
    }

    fn validate_shard(&self, shard: usize, pin: &Guard) -> Result<(usize, usize), InvariantError> {
        let (mut len, mut slots) = (0, 0);
        let directory = self.indices[shard].root.directory(pin);
        for first in directory.firsts() {
            let span = directory.span(first);
            let segments = &directory.segments()[first..first + span.len];
            let is_prefix = span.first == first
                && segments.iter().all(|segment_ptr| *segment_ptr == segments[0]);
            ensure(is_prefix, || "the directory entries of a segment are not a prefix")?;
            let segment = directory.at(first);
            self.validate_segment(shard, directory, first, segment, pin)?;
            len += segment.count();
            slots += segment.size().slots();
        }
        Ok((len, slots))
    }

    fn validate_segment(
        &self,
        shard: usize,
        directory: Directory<'_>,
        first: usize,
        segment: Segment<'_>,
        pin: &Guard,
    ) -> Result<(), InvariantError> {
        let buckets = segment.buckets();
        let mut overflow = alloc::vec![0_usize; buckets.len()];
        let mut count = 0;
        for (id, bucket) in buckets.iter().enumerate() {
            for entry in self.indices[shard].entries(bucket.header(), pin) {
                let mixed = mix(self.hasher.hash_one(&entry.get().0));
                let is_here = directory.span(directory.index(mixed)).first == first;
                ensure(shard_of(mixed) == shard && is_here, || "an entry is in a wrong segment")?;
                let home = segment.home(mixed);
                let distance = (id + buckets.len() - home) % buckets.len();
                (0..distance).for_each(|nth| overflow[(home + nth) % buckets.len()] += 1);
                count += 1;
            }
        }
        let is_counted = |(bucket, &overflow): (&Bucket, &usize)| {
            usize::from(bucket.header().overflow()) >= overflow.min(255)
        };
        let is_enough = buckets.iter().zip(&overflow).all(is_counted);
        ensure(is_enough, || "an overflow count is too low")?;
        ensure(count == segment.count(), || "a segment has miscounted its entries")
    }
}
