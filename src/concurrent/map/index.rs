//! The readers' part of a map: its index and its store.
//!
//! - **I1** An id in a line is that of an entry of the store. A removed entry is retired after its
//!   id is cleared from the line: a reader that has loaded the id under a pin may use the entry
//!   while the pin lasts.
//! - **I2** A segment is retired after no directory that can be loaded refers to it, and a
//!   directory after its root does not: a reader that has loaded one under a pin may use it while
//!   the pin lasts.
#![allow(unsafe_code)]

use core::array;

use crossbeam_epoch::Guard;

use super::line::{Line, tag};
use super::segment::{Segment, SegmentBox, SlotId};
use super::store::Store;
use crate::concurrent::directory::{self, Directory, DirectoryBox, Root};
use crate::concurrent::policy::{SHARDS, shard_of};
use crate::invariant::InvariantError;

/// A directory of segments that are not freed while it is not.
pub(super) type Segments<'p> = Directory<'p, Segment>;

/// The index and the store of a map. Nothing in its cache lines is written often.
#[repr(align(128))]
pub(super) struct Index<T> {
    roots: [Root<Segment>; SHARDS],
    pub(super) store: Store<T>,
    /// The segment of each shard that has had no entry yet.
    nothing: SegmentBox,
}

/// An entry under a pin. While the pin lasts, its id is not reused.
pub(super) struct Entry<'p, T> {
    pub(super) id: u32,
    entry: &'p T,
}

impl<T> Clone for Entry<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Entry<'_, T> {}

impl<'p, T> Entry<'p, T> {
    #[inline(always)]
    pub(super) fn get(self) -> &'p T {
        self.entry
    }
}

/// The bytes of a directory of depth 1.
pub(super) const EMPTY_DIRECTORY_BYTES: usize = directory::bytes(1);

/// Returns a directory of depth 1 with one segment.
fn directory_of(segment: &SegmentBox) -> DirectoryBox<Segment> {
    DirectoryBox::new(1, |_| segment.ptr()).unwrap_or_else(|error| error.raise())
}

impl<T> Index<T> {
    pub(super) fn new() -> Self {
        let nothing = SegmentBox::new(0, 0);
        let roots = array::from_fn(|_| Root::new(directory_of(&nothing)));
        Self { roots, store: Store::new(), nothing }
    }

    /// Returns the bytes of the index and the store, without directories and segments.
    pub(super) fn allocation_size(&self) -> usize {
        size_of::<Self>() + self.nothing.segment().allocation_size() + self.store.allocation_size()
    }

    /// Returns the root of a shard.
    #[inline(always)]
    pub(super) fn root(&self, shard: usize) -> &Root<Segment> {
        &self.roots[shard]
    }

    /// Returns a directory for a shard without entries.
    pub(super) fn empty_directory(&self) -> DirectoryBox<Segment> {
        directory_of(&self.nothing)
    }

    /// Returns the directory of a shard.
    #[inline(always)]
    pub(super) fn directory<'p>(&'p self, shard: usize, _pin: &'p Guard) -> Segments<'p> {
        // SAFETY: the pin lasts for 'p (I2).
        unsafe { self.root(shard).directory() }
    }

    /// Returns the segment of a mixed hash.
    #[inline(always)]
    pub(super) fn segment<'p>(&'p self, mixed: u64, pin: &'p Guard) -> &'p Segment {
        // SAFETY: loaded under the pin from a directory, which contains no null (I2).
        unsafe { &*self.directory(shard_of(mixed), pin).segment(mixed) }
    }

    /// Returns the entry with an id.
    ///
    /// # Safety
    ///
    /// The id was loaded from a line of this map under this pin, or inserted under it.
    #[inline(always)]
    pub(super) unsafe fn entry<'p>(&'p self, id: u32, _pin: &'p Guard) -> Entry<'p, T> {
        // SAFETY: by the contract; the pin lasts for 'p.
        Entry { id, entry: unsafe { self.store.get(id) } }
    }

    /// Returns the entry with this hash for which `is` returns true.
    #[inline(always)]
    pub(super) fn find<'p>(
        &'p self,
        mixed: u64,
        is: impl Fn(&T) -> bool,
        pin: &'p Guard,
    ) -> Option<Entry<'p, T>> {
        let segment = self.segment(mixed, pin);
        let home = segment.home_line(mixed);
        match self.candidate(home, mixed, pin) {
            Some(entry) if is(entry.get()) => Some(entry),
            None if home.overflow() == 0 => None,
            _ => self.find_further(segment, mixed, is, pin),
        }
    }

    /// Searches all lines, if the entry is not the first candidate of its home: in one lookup of
    /// forty.
    #[cold]
    #[inline(never)]
    fn find_further<'p>(
        &'p self,
        segment: &'p Segment,
        mixed: u64,
        is: impl Fn(&T) -> bool,
        pin: &'p Guard,
    ) -> Option<Entry<'p, T>> {
        segment.find(mixed, |id| {
            // SAFETY: the id is in a line (I1).
            let entry = unsafe { self.entry(id, pin) };
            is(entry.get()).then_some(entry)
        })
    }

    /// Returns the entry with this hash for which `is` returns true, with its slot.
    pub(super) fn locate<'p>(
        &'p self,
        segment: &'p Segment,
        mixed: u64,
        is: impl Fn(&T) -> bool,
        pin: &'p Guard,
    ) -> Option<(SlotId<'p>, Entry<'p, T>)> {
        // SAFETY: the id is in a line (I1).
        let entry = |id| unsafe { self.entry(id, pin) };
        let slot_id = segment.locate(mixed, |id| is(entry(id).get()))?;
        Some((slot_id, entry(slot_id.id)))
    }

    /// Returns the line in which a search for this mixed hash begins.
    #[inline(always)]
    pub(super) fn home<'p>(&'p self, mixed: u64, pin: &'p Guard) -> &'p Line {
        self.segment(mixed, pin).home_line(mixed)
    }

    /// Returns the first candidate for a mixed hash in its home line: the right entry, but for one
    /// case in sixty.
    #[inline(always)]
    pub(super) fn candidate<'p>(
        &'p self,
        home: &'p Line,
        mixed: u64,
        pin: &'p Guard,
    ) -> Option<Entry<'p, T>> {
        let slot = home.tags().matches(tag(mixed)).next()?;
        // SAFETY: the id is in a line (I1).
        Some(unsafe { self.entry(home.id(slot), pin) })
    }

    /// Iterates over the entries of a segment of this map.
    pub(super) fn entries<'p>(
        &'p self,
        segment: &'p Segment,
        pin: &'p Guard,
    ) -> impl Iterator<Item = Entry<'p, T>> {
        // SAFETY: the id is in a line (I1).
        segment.ids().map(move |id| unsafe { self.entry(id, pin) })
    }

    /// Returns the entry of a slot of a line of this map whose tag has been loaded.
    pub(super) fn at_slot<'p>(
        &'p self,
        line: &'p Line,
        slot: usize,
        pin: &'p Guard,
    ) -> Entry<'p, T> {
        // SAFETY: the id is in a line (I1).
        unsafe { self.entry(line.id(slot), pin) }
    }

    /// Checks a segment of this map; `mixed` returns the mixed hash of an entry.
    pub(super) fn validate(
        &self,
        segment: &Segment,
        mixed: impl Fn(&T) -> u64,
        pin: &Guard,
    ) -> Result<(), InvariantError> {
        // SAFETY: the id is in a line (I1).
        segment.validate(|id| mixed(unsafe { self.entry(id, pin) }.get()))
    }

    /// Iterates over the segments of a directory.
    pub(super) fn segments<'p>(
        directory: Segments<'p>,
    ) -> impl Iterator<Item = (*mut Segment, &'p Segment)> {
        // SAFETY: the segments of a live directory are not freed (I2).
        let segment = |at: *mut Segment| unsafe { &*at };
        directory.segments(move |at| segment(at).depth()).map(move |at| (at, segment(at)))
    }

    /// Returns the segment of an entry of a directory.
    pub(super) fn at<'p>(directory: Segments<'p>, index: usize) -> &'p Segment {
        // SAFETY: the segments of a live directory are not freed (I2).
        unsafe { &*directory.at(index) }
    }
}
