//! The hash table engine: groups of 16 tags, entries inline, segments that split.
//!
//! It receives hashes: there is no `Hash` and no `BuildHasher` in it. `eq` closures compare
//! entries, `hasher` closures return the hash of an entry that has to move.
//!
//! ```text
//!  hash   │ top 8 bits: tag │ … bits 32 to 37: group in the segment … │ … low bits: segment │
//!
//!  directory  ┌──┬──┬──┬──┐  a pointer for each value of the low bits
//!             └──┴┬─┴──┴──┘
//!  segment        ▼  1024 slots in 64 groups; one that is too full splits by the next low bit
//!   …entries of group 1 │ entries of group 0 │ 16 tags │ 16 tags │ … │ header │ displaced bits
//!                                            ▲ the directory points here
//! ```
//!
//! - **A lookup** reads the directory, which is small, 16 tags with one comparison, and the entry.
//! - **It stops at a group with a free slot.** An entry whose home group is full is in the next
//!   group that is not, and is marked as *displaced*. So all groups that an entry has passed are
//!   full, and a removal from a full group moves an entry that has passed it back (*backward
//!   shift*). There are no tombstones, and lookups do not read the marks.
//! - **Growth** splits one segment by the next bit of the hash. An entry's home group does not
//!   change, so group *g* moves into group *g* of the new segment, and half of the entries do not
//!   move at all. Merging is the same backwards. No operation touches more than two segments.
//! - **Small tables** have one segment of 4, 8, 16, 32, … slots; an empty one has no memory.
//!
//! # Invariants
//!
//! - **T1** A segment has at least one tag of a free slot: segments with fewer slots than a group
//!   have tags to spare, others are never full ([`policy::most`]).
//! - **T2** The groups from the home of an entry up to the one before its own are full. An entry is
//!   marked as displaced if and only if it has another home group. (With an inconsistent hasher,
//!   marks may be wrong, also of free slots: entries can be lost then, and nothing else happens.)
//! - **T3** Every entry has the tag of its hash and is in the segment of its hash, between its home
//!   group and the first group with a free slot; or it is in the *stash*.
//! - **T4** All segments are allocated for the mask of the table. If there are two, they have
//!   [`policy::SLOTS`] slots.
//! - **T5** The limit of a segment is at most the number of entries that it can have.
//!
//! # Unsafe code
//!
//! The boundary is this folder. The methods of [`Segment`] and [`Directory`] are not `unsafe`,
//! although they rely on T1 to T4: every line here that uses them would be marked. Outside of the
//! folder nothing can break these invariants, whatever `eq` and `hasher` return.
//!
//! The invariants hold when user code runs: a closure that panics leaves a table that is as it was,
//! or that has taken a complete step.
//!
//! # Hashes that are not random
//!
//! If many hashes are equal in their low bits, splitting does not separate them: beyond a depth at
//! which random hashes would have been separated ([`policy::can_split`]), the table is *flooded*,
//! see [`Table::is_flooded`]. So it is if an entry gets far from home in a segment that is half
//! empty (equal middle bits), or if tags hardly differ (equal upper bits). It goes on working:
//! entries for which a segment has no slot are in the stash, a list that lookups search after a
//! miss. The caller should use another hash then.
//!
//! # Costs
//!
//! With entries of 24 bytes: 25.2 bytes for a slot, 8 for a segment in the directory; segments are
//! filled to 60 % on average. An insertion that splits hashes and moves up to 1000 entries. The
//! directory is doubled at once: 8 bytes for some 600 entries.

mod directory;
pub(crate) mod error;
pub(crate) mod expiring;
mod growth;
mod insert;
mod iter;
mod iter_hash;
pub(crate) mod lines;
#[cfg(feature = "rayon")]
mod parallel;
mod policy;
mod probe;
pub(crate) mod records;
mod remove;
mod segment;
pub(crate) mod tags;

use alloc::{format, vec};

use crate::invariant::{InvariantError, ensure};
use crate::memory::{Allocator, Box, Global, Vec};
use directory::Directory;
use error::TryReserveError;
use segment::{Boxed, Segment};
use tags::{GROUP, tag};

pub use iter::{IntoIter, Iter, IterMut};
pub use iter_hash::{IterHash, IterHashMut};

pub(crate) use insert::Room;
pub(crate) use iter::Cursor;
#[cfg(feature = "rayon")]
pub(crate) use parallel::Split;
pub(crate) use policy::REACH;
pub(crate) use probe::{Burst, Position};
pub(crate) use segment::uninit_box;
pub(crate) use tags::Group;

/// The stash is not empty.
const STASHED: u8 = 1;

/// Hashes have been found that are not random.
const FLOODED: u8 = 2;

/// The caller has entries in other tables.
const OTHER_TABLES: u8 = 4;

/// Entries by hash.
pub(crate) struct Table<T, A: Allocator + Clone = Global> {
    directory: Directory<T>,
    /// The offset of the last group of a segment.
    mask: usize,
    /// Flags of the states that need a slow path: [`STASHED`], [`FLOODED`], [`OTHER_TABLES`].
    extras: u8,
    /// The number of entries, in segments and in the stash.
    len: usize,
    /// Segments that are allocated.
    segments: usize,
    /// The number of entries for which memory is reserved: segments do not merge below their need.
    reserved: usize,
    /// Entries, with their hashes, for which there is no slot that a lookup would reach. It has the
    /// allocator of the table.
    stash: Vec<(u64, Boxed<T>), A>,
}

impl<T, A: Allocator + Clone> Table<T, A> {
    /// A table without memory.
    pub(crate) const fn new_in(memory: A) -> Self {
        Self {
            directory: Directory::new(),
            mask: 0,
            extras: 0,
            len: 0,
            segments: 0,
            reserved: 0,
            stash: Vec::new_in(memory),
        }
    }

    /// The allocator.
    pub(crate) fn allocator(&self) -> &A {
        self.stash.allocator()
    }

    /// Returns the table, and leaves an empty table in its place.
    pub(crate) fn replace_by_empty(&mut self) -> Self {
        let empty = Self::new_in(self.allocator().clone());
        core::mem::replace(self, empty)
    }

    #[inline]
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Whether hashes have been found that are not random.
    #[inline]
    pub(crate) const fn is_flooded(&self) -> bool {
        self.extras & FLOODED > 0
    }

    /// Forgets that the table is flooded.
    pub(crate) const fn forget_flood(&mut self) {
        self.extras &= !FLOODED;
    }

    /// Whether the stash or other tables have entries, or hashes are not random. If not, the
    /// segments have all entries, and lookups, insertions and removals access the segments only.
    #[inline(always)]
    pub(crate) const fn has_extras(&self) -> bool {
        self.extras != 0
    }

    /// Sets that the caller has entries in other tables.
    pub(crate) const fn set_other_tables(&mut self) {
        self.extras |= OTHER_TABLES;
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
        let stash = self.stash.capacity() * size_of::<(u64, Boxed<T>)>()
            + self.stash.len() * size_of::<T>();
        self.directory.allocation_size() + segments + in_slots + stash
    }

    /// Entries for which capacity is kept.
    pub(crate) const fn reserved(&self) -> usize {
        self.reserved
    }

    /// Keeps capacity for `entries` until [`Self::shrink_to`].
    pub(crate) fn set_reserved(&mut self, entries: usize) {
        self.reserved = self.reserved.max(entries);
    }
}

impl<T, A: Allocator + Clone> Table<T, A> {
    /// A copy of the same shape, in the memory of `spare`, which has no entries, as far as its
    /// segments have the same size.
    fn try_copy(&self, mut spare: Self) -> Result<Self, TryReserveError>
    where
        T: Clone,
    {
        let mut copy = Self::new_in(spare.allocator().clone());
        if self.directory.is_allocated() {
            copy.directory = Directory::allocate(self.directory.len(), copy.allocator())?;
        }
        (copy.mask, copy.reserved, copy.extras) = (self.mask, self.reserved, self.extras);
        for (number, segment) in self.directory.numbers(self.mask) {
            let header = segment.header(self.mask);
            let new = match spare.take_segment(self.mask, header.slots) {
                Some(new) => new,
                None => {
                    let (slots, limit) = (header.slots as usize, header.limit as usize);
                    Segment::allocate(slots, header.depth, limit, copy.allocator())?
                }
            };
            new.copy_displaced(segment, self.mask);
            *new.header_mut(self.mask) = header;
            copy.directory.set_all(number, header.depth, new);
            copy.segments += 1;
            for (_, slot) in segment.slots(self.mask) {
                let entry = segment.get(slot).clone();
                let is_inline = Segment::<T>::IS_INLINE;
                let uninit = if is_inline { None } else { Some(uninit_box(copy.allocator())?) };
                new.write(slot, segment.tag(slot), uninit, entry);
                copy.len += 1;
            }
        }
        copy.stash.reserve_exact(self.stash.len());
        for (hash, entry) in &self.stash {
            let entry = T::clone(entry);
            let uninit = uninit_box(copy.allocator())?;
            copy.stash.push((*hash, Boxed::new(Box::write(uninit, entry))));
            copy.len += 1;
        }
        Ok(copy)
    }

    /// Drops all entries. The table is of no use then but for its segments. If a drop panics, the
    /// others are dropped with the table.
    fn drop_entries(&mut self) {
        if Segment::<T>::NEEDS_DROP {
            for (_, segment) in self.directory.numbers(self.mask) {
                let drop_entry =
                    |(own, slot): (Segment<T>, usize)| own.drop_entry(slot, self.allocator());
                segment.slots(self.mask).for_each(drop_entry);
            }
        }
        while let Some((_, entry)) = self.stash.pop() {
            drop(entry.into_entry(self.allocator()));
        }
    }

    /// Removes a segment from a table without entries, if its segments have the given size.
    fn take_segment(&mut self, mask: usize, slots: u32) -> Option<Segment<T>> {
        let mut end = self.directory.len();
        let segment = self.directory.last_before(&mut end, self.mask)?;
        let header = segment.header(self.mask);
        if self.mask != mask || header.slots != slots {
            return None;
        }
        self.directory.set_all(end, header.depth, Segment::EMPTY);
        segment.clear_tags(mask);
        Some(segment)
    }
}

/// Ends the program without memory, as all copies do.
impl<T: Clone, A: Allocator + Clone> Clone for Table<T, A> {
    fn clone(&self) -> Self {
        let spare = Self::new_in(self.allocator().clone());
        self.try_copy(spare).unwrap_or_else(|error| error.raise())
    }

    /// If the drop or the clone of an entry panics, the table is empty.
    fn clone_from(&mut self, source: &Self) {
        let mut spare = self.replace_by_empty();
        spare.drop_entries();
        *self = source.try_copy(spare).unwrap_or_else(|error| error.raise());
    }
}

impl<T, A: Allocator + Clone> Table<T, A> {
    /// Checks every invariant.
    pub(crate) fn validate(&self, hasher: &impl Fn(&T) -> u64) -> Result<(), InvariantError> {
        let (mut segments, mut len) = (0, self.stash.len());
        for (number, segment) in self.directory.numbers(self.mask) {
            len += self.validate_segment(number, segment, hasher)?;
            segments += 1;
        }
        self.validate_directory()?;
        let is_stashed = |(hash, entry): &(u64, Boxed<T>)| hasher(entry) == *hash;
        ensure(self.stash.iter().all(is_stashed), || "an entry of the stash has another hash")?;
        let has_sizes = segments < 2 || self.mask + GROUP == policy::SLOTS;
        let is_counted = (segments, len) == (self.segments, self.len);
        ensure(is_counted && has_sizes, || {
            format!("there are {len} entries in {segments} segments")
        })?;
        let is_found = |entry: &T| {
            let is_it = |other: &T| core::ptr::eq(entry, other);
            size_of::<T>() == 0 || self.find(hasher(entry), is_it).is_some()
        };
        ensure(self.iter().all(is_found), || "an entry cannot be found")
    }

    /// Checks that each index has the segment of its low bits, and the sizes of segments.
    fn validate_directory(&self) -> Result<(), InvariantError> {
        let slots = if self.segments > 1 { policy::SLOTS } else { self.slots() };
        for index in 0..self.directory.len() {
            let segment = self.directory.segment(index as u64);
            let header = segment.header(self.mask);
            let number = index & ((1 << header.depth) - 1);
            let is_shared = header.depth <= self.directory.depth()
                && self.directory.segment(number as u64) == segment;
            ensure(is_shared, || format!("index {index} has not the segment {number}"))?;
            let has_size = header.slots as usize == slots
                && (slots.div_ceil(GROUP).max(1) - 1) * GROUP == self.mask;
            ensure(has_size, || format!("segment {number} has {} slots", header.slots))?;
        }
        let is_stashed = self.extras & STASHED > 0;
        ensure(is_stashed != self.stash.is_empty(), || "the stash is marked wrongly")
    }

    /// Checks one segment; returns how many entries it has.
    fn validate_segment(
        &self,
        number: usize,
        segment: Segment<T>,
        hasher: &impl Fn(&T) -> u64,
    ) -> Result<usize, InvariantError> {
        let mask = self.mask;
        let header = segment.header(mask);
        let mut is_passed = vec![false; mask / GROUP + 1];
        let mut len = 0;
        for (_, slot) in segment.slots(mask) {
            let hash = hasher(segment.get(slot));
            let has_tag = segment.tag(slot) == tag(hash) && slot < header.slots as usize;
            ensure(has_tag, || format!("slot {slot} of segment {number} has a wrong tag"))?;
            let is_in_segment = (hash as usize ^ number) & ((1 << header.depth) - 1) == 0;
            ensure(is_in_segment, || {
                format!("slot {slot} belongs to another segment than {number}")
            })?;
            let mut group = self.home(hash);
            let is_displaced = group != slot & !(GROUP - 1);
            ensure(segment.is_displaced(mask, slot) == is_displaced, || {
                format!("slot {slot} of segment {number} is marked wrongly as displaced")
            })?;
            while group != slot & !(GROUP - 1) {
                is_passed[group / GROUP] = true;
                group = self.next(group);
            }
            len += 1;
        }
        for (group, &is_passed) in is_passed.iter().enumerate() {
            let offset = group * GROUP;
            ensure(!is_passed || segment.is_group_full(offset), || {
                format!("an entry has passed group {group} of segment {number}, which is not full")
            })?;
            let mut free = segment.group(offset).free();
            ensure(free.all(|slot| !segment.is_displaced(mask, offset + slot)), || {
                format!("group {group} of segment {number} has a free slot marked as displaced")
            })?;
        }
        let is_counted = len == segment.len(mask)
            && len <= policy::most(header.slots as usize)
            && header.limit as usize <= policy::most(header.slots as usize).max(len);
        ensure(is_counted, || format!("segment {number} counts its {len} entries wrongly"))?;
        Ok(len)
    }

    /// Counts the entries by their distance from home, in groups. The last place of `distances`
    /// counts all greater distances too, and the stash.
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
