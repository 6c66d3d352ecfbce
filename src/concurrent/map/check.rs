//! Invariants of a concurrent map.

use core::hash::{BuildHasher, Hash};

use crossbeam_epoch::Guard;

use super::ConcurrentMap;
use super::index::{Index, Segments};
use super::segment::Segment;
use crate::concurrent::collector;
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
        let pin = collector::pin();
        for shard in 0..self.shards.len() {
            let (len, slots, bytes) = self.validate_shard(shard, &pin)?;
            ensure(len == self.shards[shard].len(), || "a shard has miscounted its entries")?;
            let counted = self.shards[shard].state().slots;
            ensure(slots == counted, || "a shard has miscounted its slots")?;
            let counted = self.shards[shard].allocation_size();
            ensure(bytes == counted, || "a shard has miscounted its bytes")?;
        }
        Ok(())
    }

    /// Checks the directory and the segments of a shard, and returns their entries, slots and
    /// bytes.
    fn validate_shard(
        &self,
        shard: usize,
        pin: &Guard,
    ) -> Result<(usize, usize, usize), InvariantError> {
        let directory = self.index.directory(shard, pin);
        let (mut len, mut slots, mut bytes) = (0, 0, directory.ptr().allocation_size());
        let mut next = 0;
        for (at, segment) in Index::<(K, V)>::segments(directory) {
            let is_deeper = segment.depth() > directory.depth();
            ensure(!is_deeper, || "a segment is deeper than its directory")?;
            let end = next + (1 << (directory.depth() - segment.depth()));
            let is_prefix = (next..end).all(|index| directory.at(index) == at);
            ensure(is_prefix, || "the directory entries of a segment are not a prefix")?;
            self.validate_segment(shard, directory, (at, segment), pin)?;
            next = end;
            len += segment.count();
            if !segment.is_nothing() {
                slots += Segment::SLOTS;
                bytes += segment.allocation_size();
            }
        }
        Ok((len, slots, bytes))
    }

    fn validate_segment(
        &self,
        shard: usize,
        directory: Segments<'_>,
        (at, segment): (*mut Segment, &Segment),
        pin: &Guard,
    ) -> Result<(), InvariantError> {
        let mixed = |(key, _): &(K, V)| mix(self.hasher.hash_one(key));
        let is_here = |mixed| shard_of(mixed) == shard && directory.segment(mixed) == at;
        let are_here = self.index.entries(segment, pin).all(|entry| is_here(mixed(entry.get())));
        ensure(are_here, || "an entry is in a wrong segment")?;
        self.index.validate(segment, mixed, pin)
    }
}
