//! Whether a map is what it should be.

use core::fmt;
use core::hash::{BuildHasher, Hash};

use crossbeam_epoch::Guard;

use super::ConcurrentMap;
use super::bucket::Bucket;
use super::directory::{Directory, path, shard_of};
use super::segment::Segment;

/// What is not as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Broken {
    /// The directory of a shard shows a segment at places that are not a prefix's.
    Directory,
    /// An entry is in a shard or segment where it is not looked for.
    Lost,
    /// A bucket has counted fewer entries than have passed it.
    Passed,
    /// A segment does not have as many entries as it has counted, or a shard.
    Count,
    /// A shard does not have as many slots as it has counted.
    Slots,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Directory => "a segment is at places that are not a prefix's",
            Self::Lost => "an entry is where it is not looked for",
            Self::Passed => "a bucket has counted fewer entries than have passed it",
            Self::Count => "a segment or a shard has counted its entries wrongly",
            Self::Slots => "a shard has counted its slots wrongly",
        })
    }
}

impl core::error::Error for Broken {}

/// An error if something is not so.
fn ensure(is_so: bool, broken: Broken) -> Result<(), Broken> {
    if is_so { Ok(()) } else { Err(broken) }
}

impl<K: Hash, V, S: BuildHasher> ConcurrentMap<K, V, S> {
    /// Names the first thing that is not as it should be. O(slots).
    ///
    /// # Errors
    ///
    /// If there is such a thing: a mistake of this crate, or keys that break the law of [`Hash`].
    ///
    /// # Example
    ///
    /// ```
    /// let mut map: flowtable::ConcurrentMap<u32, u32> = (0..1000).map(|key| (key, key)).collect();
    /// map.pin().retain(|key, _| key % 7 == 0);
    /// assert_eq!(map.validate(), Ok(()));
    /// ```
    #[doc(hidden)]
    pub fn validate(&mut self) -> Result<(), Broken> {
        let pin = crossbeam_epoch::pin();
        for shard in 0..self.shards.len() {
            let (len, slots) = self.validate_shard(shard, &pin)?;
            ensure(len == self.shards[shard].len(), Broken::Count)?;
            ensure(slots == self.shards[shard].state().slots, Broken::Slots)?;
        }
        Ok(())
    }

    fn validate_shard(&self, shard: usize, pin: &Guard) -> Result<(usize, usize), Broken> {
        let (mut len, mut slots) = (0, 0);
        let directory = self.indices[shard].root.directory(pin);
        for first in directory.firsts() {
            let span = directory.span(first);
            let places = &directory.places()[first..first + span.len];
            let is_prefix = span.first == first && places.iter().all(|place| *place == places[0]);
            ensure(is_prefix, Broken::Directory)?;
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
    ) -> Result<(), Broken> {
        let buckets = segment.buckets();
        let mut passed = alloc::vec![0_usize; buckets.len()];
        let mut count = 0;
        for (number, bucket) in buckets.iter().enumerate() {
            for entry in self.indices[shard].entries(bucket.look(), pin) {
                let path = path(self.hasher.hash_one(&entry.get().0));
                let is_here = directory.span(directory.index(path)).first == first;
                ensure(shard_of(path) == shard && is_here, Broken::Lost)?;
                let home = segment.home(path);
                let distance = (number + buckets.len() - home) % buckets.len();
                (0..distance).for_each(|nth| passed[(home + nth) % buckets.len()] += 1);
                count += 1;
            }
        }
        let is_counted = |(bucket, &passed): (&Bucket, &usize)| {
            usize::from(bucket.look().passed()) >= passed.min(255)
        };
        ensure(buckets.iter().zip(&passed).all(is_counted), Broken::Passed)?;
        ensure(count == segment.count(), Broken::Count)
    }
}
