//! Checking the invariants: which one is broken, and where.

use alloc::vec;
use core::fmt;

use super::bucket::{SLOTS, path, tags};
use super::segment::Segment;
use super::segment_iter::SlotIds;
use super::table::Table;

/// An invariant of the map that does not hold. It never happens unless a key type breaks the law of
/// [`Hash`](core::hash::Hash); tests ask after each step.
///
/// # Example
///
/// ```
/// let mut map: flowtable::TrashMap<u32, u32> = (0..1000).map(|key| (key, key)).collect();
/// map.retain(|key, _| key % 7 == 0);
/// assert_eq!(map.validate(), Ok(()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Broken {
    /// The tag of an entry is not that of its hash.
    Tag {
        /// The bucket in its segment.
        bucket: usize,
        /// The slot in its bucket.
        slot: usize,
    },
    /// A bucket counts other entries as passed than have passed it.
    Passed {
        /// The bucket in its segment.
        bucket: usize,
    },
    /// The account of slots and entries is wrong.
    Account {
        /// Slots that there are.
        slots: usize,
        /// Entries that there are.
        len: usize,
    },
    /// An entry cannot be found.
    Lost,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag { bucket, slot } => {
                write!(f, "slot {slot} of bucket {bucket} has a wrong tag")
            }
            Self::Passed { bucket } => write!(f, "bucket {bucket} has a wrong count"),
            Self::Account { slots, len } => write!(f, "there are {len} entries in {slots} slots"),
            Self::Lost => f.write_str("an entry cannot be found"),
        }
    }
}

impl core::error::Error for Broken {}

impl<T> Segment<T> {
    /// Whether tags are those of the entries, and every bucket knows how many have passed it.
    fn validate(&self, hasher: &impl Fn(&T) -> u64) -> Result<(), Broken> {
        let mut passed = vec![0; self.buckets()];
        for spot in SlotIds::new(self) {
            let (bucket, slot) = (spot.bucket(), spot.slot());
            let entry = self.get(spot).ok_or(Broken::Lost)?;
            let hash = hasher(entry);
            if !self.header(bucket).matches(tags(hash)).contains(slot) {
                return Err(Broken::Tag { bucket, slot });
            }
            let mut passing = self.home(path(hash));
            while passing != bucket {
                passed[passing] += 1;
                passing = self.behind(passing);
            }
        }
        // The highest count means "perhaps".
        let counted = |bucket: usize| self.passed(bucket);
        let is_wrong = |&(bucket, &count): &(usize, &usize)| {
            counted(bucket) != u8::MAX && usize::from(counted(bucket)) != count
        };
        let wrong = passed.iter().enumerate().find(is_wrong);
        wrong.map_or(Ok(()), |(bucket, _)| Err(Broken::Passed { bucket }))
    }
}

impl<T> Table<T> {
    /// Checks every invariant.
    pub(super) fn validate(&self, hasher: &impl Fn(&T) -> u64) -> Result<(), Broken> {
        let (mut slots, mut len) = (0, 0);
        for segment in self.directory.segments() {
            segment.validate(hasher)?;
            slots += segment.buckets() * SLOTS;
            len += segment.count();
        }
        if (slots, len) != (self.slots(), self.len()) {
            return Err(Broken::Account { slots, len });
        }
        let is_found = |entry: &T| {
            let is_it = |other: &T| core::ptr::eq(entry, other);
            size_of::<T>() == 0 || self.find(hasher(entry), is_it, &mut ()).is_some()
        };
        if self.iter().flatten().all(is_found) { Ok(()) } else { Err(Broken::Lost) }
    }
}
