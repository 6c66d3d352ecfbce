//! Visiting the entries that may have one hash.
#![allow(unsafe_code)]

use core::fmt;
use core::iter::FusedIterator;
use core::marker::PhantomData;
use core::slice;

use super::Table;
use super::segment::{Boxed, Segment};
use super::tags::{GROUP, Mask, tag};
use crate::memory::Allocator;

/// The slots that a search for a hash compares.
pub(super) struct SlotsOfHash<T> {
    segment: Segment<T>,
    /// The mask of the table.
    mask: usize,
    tag: u8,
    /// The group that is visited.
    offset: usize,
    /// The remaining matches of the group.
    matches: Mask,
    /// It has a free slot, so the search ends here.
    is_last: bool,
}

impl<T> SlotsOfHash<T> {
    /// No slot.
    const NONE: Self = Self {
        segment: Segment::EMPTY,
        mask: 0,
        tag: 0,
        offset: 0,
        matches: Mask::NONE,
        is_last: true,
    };

    pub(super) fn new<A: Allocator + Clone>(table: &Table<T, A>, hash: u64) -> Self {
        let (segment, offset) = (table.directory.segment(hash), table.home(hash));
        let group = segment.group(offset);
        let (matches, is_last) = (group.matches_hash(hash), !group.free().is_empty());
        Self { segment, mask: table.mask, tag: tag(hash), offset, matches, is_last }
    }
}

impl<T> Clone for SlotsOfHash<T> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<T> Iterator for SlotsOfHash<T> {
    type Item = (Segment<T>, usize);

    #[inline]
    fn next(&mut self) -> Option<(Segment<T>, usize)> {
        loop {
            if let Some(slot) = self.matches.next() {
                return Some((self.segment, self.offset + slot));
            }
            // T1: there is one in the segment.
            if self.is_last {
                return None;
            }
            self.offset = (self.offset + GROUP) & self.mask;
            let group = self.segment.group(self.offset);
            (self.matches, self.is_last) = (group.matches(self.tag), !group.free().is_empty());
        }
    }
}

/// An iterator over the entries whose tags match a hash, false matches included.
pub struct IterHash<'t, T> {
    slots: SlotsOfHash<T>,
    stash: slice::Iter<'t, (u64, Boxed<T>)>,
    hash: u64,
}

impl<T> Default for IterHash<'_, T> {
    fn default() -> Self {
        Self { slots: SlotsOfHash::NONE, stash: [].iter(), hash: 0 }
    }
}

impl<T> Clone for IterHash<'_, T> {
    fn clone(&self) -> Self {
        Self { slots: self.slots.clone(), stash: self.stash.clone(), hash: self.hash }
    }
}

impl<'t, T> Iterator for IterHash<'t, T> {
    type Item = &'t T;

    fn next(&mut self) -> Option<&'t T> {
        if let Some((segment, slot)) = self.slots.next() {
            return Some(segment.get(slot));
        }
        let hash = self.hash;
        self.stash.find(|(own, _)| *own == hash).map(|(_, entry)| &**entry)
    }
}

impl<T> FusedIterator for IterHash<'_, T> {}

impl<T: fmt::Debug> fmt::Debug for IterHash<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

/// An iterator over mutable references to the entries of a table that may have one hash.
pub struct IterHashMut<'t, T> {
    slots: SlotsOfHash<T>,
    stash: slice::IterMut<'t, (u64, Boxed<T>)>,
    hash: u64,
    entries: PhantomData<&'t mut T>,
}

impl<T> Default for IterHashMut<'_, T> {
    fn default() -> Self {
        let stash = [].iter_mut();
        Self { slots: SlotsOfHash::NONE, stash, hash: 0, entries: PhantomData }
    }
}

impl<'t, T> Iterator for IterHashMut<'t, T> {
    type Item = &'t mut T;

    fn next(&mut self) -> Option<&'t mut T> {
        if let Some((segment, slot)) = self.slots.next() {
            return Some(segment.get_mut(slot));
        }
        let hash = self.hash;
        self.stash.find(|(own, _)| *own == hash).map(|(_, entry)| &mut **entry)
    }
}

impl<T> FusedIterator for IterHashMut<'_, T> {}

impl<T> fmt::Debug for IterHashMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IterHashMut").finish_non_exhaustive()
    }
}

impl<T, A: Allocator + Clone> Table<T, A> {
    /// References to the entries that may have this hash.
    pub(crate) fn iter_hash(&self, hash: u64) -> IterHash<'_, T> {
        IterHash { slots: SlotsOfHash::new(self, hash), stash: self.stash.iter(), hash }
    }

    /// Mutable references to the entries that may have this hash.
    pub(crate) fn iter_hash_mut(&mut self, hash: u64) -> IterHashMut<'_, T> {
        let slots = SlotsOfHash::new(self, hash);
        IterHashMut { slots, stash: self.stash.iter_mut(), hash, entries: PhantomData }
    }
}

// SAFETY: as a shared reference to the table.
unsafe impl<T: Sync> Send for IterHash<'_, T> {}
// SAFETY: as a shared reference to the table.
unsafe impl<T: Sync> Sync for IterHash<'_, T> {}
// SAFETY: as a mutable reference to the table.
unsafe impl<T: Send> Send for IterHashMut<'_, T> {}
// SAFETY: a shared one gives nothing.
unsafe impl<T: Sync> Sync for IterHashMut<'_, T> {}
