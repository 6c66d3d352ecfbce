//! Checking the invariants: which one is broken, and where.

use alloc::vec;
use core::fmt;

use super::Table;
use super::policy;
use super::segment::Segment;
use super::tags::{FREE, GROUP, tag};

/// An invariant of a table that does not hold. It never happens unless a key type breaks the
/// contract of
/// [`Hash`](core::hash::Hash); tests check it after each step.
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
        /// The slot in its segment.
        slot: usize,
    },
    /// A group has another overflow count than there are entries that have overflowed it.
    Overflow {
        /// The group in its segment.
        group: usize,
    },
    /// The counts of slots and entries are wrong.
    Account {
        /// Segments that there are.
        segments: usize,
        /// Entries that there are.
        len: usize,
    },
    /// An entry cannot be found.
    Lost,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag { slot } => write!(f, "slot {slot} has a wrong tag"),
            Self::Overflow { group } => write!(f, "group {group} has a wrong overflow count"),
            Self::Account { segments, len } => {
                write!(f, "there are {len} entries in {segments} segments")
            }
            Self::Lost => f.write_str("an entry cannot be found"),
        }
    }
}

impl core::error::Error for Broken {}

impl<T> Table<T> {
    /// Checks every invariant.
    pub(crate) fn validate(&self, hasher: &impl Fn(&T) -> u64) -> Result<(), Broken> {
        let (mut segments, mut len) = (0, self.stash.len());
        for (number, segment) in self.directory.numbers(self.mask) {
            len += self.validate_segment(number, segment, hasher)?;
            segments += 1;
        }
        let is_stashed = |(hash, entry): &(u64, alloc::boxed::Box<T>)| hasher(entry) == *hash;
        if !self.stash.iter().all(is_stashed) {
            return Err(Broken::Lost);
        }
        let has_sizes = segments < 2 || self.mask + GROUP == policy::SLOTS;
        if (segments, len) != (self.segments, self.len) || !has_sizes {
            return Err(Broken::Account { segments, len });
        }
        let is_found = |entry: &T| {
            let is_it = |other: &T| core::ptr::eq(entry, other);
            size_of::<T>() == 0 || self.find(hasher(entry), is_it).is_some()
        };
        if self.iter().all(is_found) { Ok(()) } else { Err(Broken::Lost) }
    }

    /// Checks one segment; returns how many entries it has.
    fn validate_segment(
        &self,
        number: usize,
        segment: Segment<T>,
        hasher: &impl Fn(&T) -> u64,
    ) -> Result<usize, Broken> {
        let mask = self.mask;
        let header = segment.header(mask);
        let mut counts = vec![0_usize; mask / GROUP + 1];
        let mut len = 0;
        for (_, slot) in segment.slots(mask) {
            let hash = hasher(segment.get(slot));
            if segment.tag(slot) != tag(hash) || slot >= header.slots as usize {
                return Err(Broken::Tag { slot });
            }
            if (hash as usize ^ number) & ((1 << header.depth) - 1) != 0 {
                return Err(Broken::Lost);
            }
            let mut group = self.home(hash);
            while group != slot & !(GROUP - 1) {
                counts[group / GROUP] += 1;
                group = self.next(group);
            }
            len += 1;
        }
        for (group, &count) in counts.iter().enumerate() {
            let is_full = segment.group(group * GROUP).free().is_empty();
            let counted = usize::from(segment.overflow(mask, group * GROUP));
            if counted != count || (count > 0 && !is_full) {
                return Err(Broken::Overflow { group });
            }
        }
        let tags = mask + GROUP;
        let free = (0..tags).filter(|&slot| segment.tag(slot) == FREE).count();
        let is_counted = len == segment.len(mask)
            && len <= policy::most(header.slots as usize)
            && header.left as usize <= free;
        if is_counted { Ok(len) } else { Err(Broken::Account { segments: number, len }) }
    }

    /// Counts the entries by how many groups they are from home; those of the last place and
    /// further
    /// together.
    pub(crate) fn count_distances(&self, distances: &mut [usize], hasher: &impl Fn(&T) -> u64) {
        let last = distances.len() - 1;
        for (_, segment) in self.directory.numbers(self.mask) {
            for (_, slot) in segment.slots(self.mask) {
                let home = self.home(hasher(segment.get(slot)));
                let distance = ((slot & !(GROUP - 1)).wrapping_sub(home) & self.mask) / GROUP;
                distances[distance.min(last)] += 1;
            }
        }
        distances[last] += self.stash.len();
    }
}
