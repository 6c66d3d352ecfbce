//! The hash table engine: groups of 16 tags, entries inline, segments that split.
//!
//! It receives hashes: there is no `Hash` and no `BuildHasher` in it. `eq` closures compare
//! entries, `hasher` closures return the hash of an entry that has to move.
//!
//! ```text
//!  hash   │ top 7 bits: tag │ … bits 32 to 37: group in the segment … │ … low bits: segment │
//!
//!  directory  ┌──┬──┬──┬──┐  a pointer for each value of the low bits
//!             └──┴┬─┴──┴──┘
//!  segment        ▼  1024 slots in 64 groups; one that is too full splits by the next low bit
//!   …entries of group 1 │ entries of group 0 │ 16 tags │ 16 tags │ … │ header │ overflow counts
//!                                            ▲ the directory points here
//! ```
//!
//! - **A lookup** reads the directory, which is small, 16 tags with one comparison, and the entry.
//! - **It stops at a group with a free slot.** An entry whose home group is full is in the next
//!   group that is not, and the groups between count it. A removal from a group with such a count
//!   moves one of those entries back (*backward shift*), so a group that has a count is always
//!   full. There are no tombstones, and lookups do not read the counts.
//! - **Growth** splits one segment by the next bit of the hash. An entry's home group does not
//!   change, so group *g* moves into group *g* of the new segment, and half of the entries do not
//!   move at all. Merging is the same backwards. No operation touches more than two segments.
//! - **Small tables** have one segment of 4, 8, 16, 32, … slots; an empty one has no memory.
//!
//! # Invariants
//!
//! - **T1** A segment has a free slot, if it has a group at least; [`policy::most`].
//! - **T2** The overflow count of a group is the number of entries that are in a later group
//!   although their home is this one or an earlier one. A group with a count is full.
//! - **T3** Every entry has the tag of its hash and is in the segment of its hash, between its home
//!   group and the first group with a free slot; or it is in the *stash*.
//! - **T4** All segments are allocated for the mask of the table. If there are two, they have
//!   [`policy::SLOTS`] slots.
//! - **T5** `left` of a segment is its limit less its entries; it is above the number of free slots
//!   never.
//!
//! They hold when user code runs: a closure that panics leaves a table that is as it was, or that
//! has taken a complete step.
//!
//! # Hashes that are not random
//!
//! If many hashes are equal in their low bits, splitting does not separate them: beyond a depth at
//! which random hashes would have been separated ([`policy::can_split`]), the table is *flooded*,
//! see [`Table::is_flooded`]. So it is if an entry gets far from home in a segment that is half
//! empty (equal middle bits), or if tags hardly differ (equal upper bits). It goes on working:
//! entries for which a segment has no slot are in the stash, a list that lookups search after a
//! miss. It is for the owner to use another hash.
//!
//! # Costs
//!
//! With entries of 24 bytes: 25.2 bytes for a slot, 8 for a segment in the directory; segments are
//! filled to 60 % on average. An insertion that splits hashes and moves up to 1000 entries. The
//! directory is doubled at once: 8 bytes for some 600 entries.

mod batch;
mod check;
mod directory;
pub(crate) mod error;
mod growth;
mod iter;
mod policy;
mod probe;
mod segment;
mod tags;

use alloc::boxed::Box;
use alloc::vec::Vec;

use directory::Directory;
use segment::Segment;
use tags::GROUP;

pub(crate) use batch::{BURST, Candidates};
pub(crate) use iter::{Cursor, IntoIter, Iter, IterMut};
pub(crate) use policy::REACH;
pub(crate) use probe::{Place, Position};
pub(crate) use segment::{uninit_box, write_box};

/// Entries by hash.
pub(crate) struct Table<T> {
    directory: Directory<T>,
    /// The offset of the last group of a segment.
    mask: usize,
    /// A lookup that finds nothing in the segments goes on: the stash is not empty, or the owner
    /// has entries elsewhere.
    goes_on: bool,
    /// Entries, with those of the stash.
    len: usize,
    /// Segments that are allocated.
    segments: usize,
    /// Segments do not merge below what as many entries need.
    reserved: usize,
    /// Hashes have been found that are not random.
    flooded: bool,
    /// Entries, with their hashes, for which there is no slot that a lookup would reach.
    stash: Vec<(u64, Box<T>)>,
}

impl<T> Table<T> {
    /// A table without memory.
    pub(crate) const fn new() -> Self {
        Self {
            directory: Directory::new(),
            mask: 0,
            goes_on: false,
            len: 0,
            segments: 0,
            reserved: 0,
            flooded: false,
            stash: Vec::new(),
        }
    }

    #[inline]
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Whether hashes have been found that are not random.
    #[inline]
    pub(crate) const fn is_flooded(&self) -> bool {
        self.flooded
    }

    /// Forgets that the table is flooded.
    pub(crate) const fn forget_flood(&mut self) {
        self.flooded = false;
    }

    /// Whether a lookup that finds nothing in the segments goes on.
    #[inline(always)]
    pub(crate) const fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// Sets that lookups go on, at the owner.
    pub(crate) const fn set_goes_on(&mut self) {
        self.goes_on = true;
    }

    /// The home group of a hash, as an offset.
    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        (hash >> 28) as usize & self.mask
    }

    /// The next group.
    #[inline(always)]
    fn next(&self, offset: usize) -> usize {
        (offset + GROUP) & self.mask
    }

    /// Number of segments.
    pub(crate) const fn segments(&self) -> usize {
        self.segments
    }

    /// Slots of the segments.
    pub(crate) fn slots(&self) -> usize {
        match self.segments {
            0 => 0,
            1 => self.only().header(self.mask).slots as usize,
            segments => segments * policy::SLOTS,
        }
    }

    /// The segment of a table that has one, or none.
    fn only(&self) -> Segment<T> {
        self.directory.segment(0)
    }

    /// Entries that fit before the table grows, if chance spreads them evenly.
    pub(crate) fn capacity(&self) -> usize {
        match self.segments {
            0 => 0,
            1 => self.only().header(self.mask).limit as usize,
            segments => segments * policy::RESERVED,
        }
    }

    /// Bytes allocated.
    pub(crate) fn allocation_size(&self) -> usize {
        let segments = match self.segments {
            0 => 0,
            segments => segments * Segment::<T>::bytes(self.slots() / segments),
        };
        let in_slots = (self.len - self.stash.len()) * Segment::<T>::BOX;
        let stash =
            self.stash.capacity() * size_of::<(u64, Box<T>)>() + self.stash.len() * size_of::<T>();
        self.directory.allocation_size() + segments + in_slots + stash
    }

    /// What it keeps room for.
    pub(crate) const fn reserved(&self) -> usize {
        self.reserved
    }

    /// Keeps room for `entries` until [`Self::shrink_to`].
    pub(crate) fn keep(&mut self, entries: usize) {
        self.reserved = self.reserved.max(entries);
    }
}
