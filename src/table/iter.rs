//! Visiting, removing, copying and dropping all entries.

use core::fmt;
use core::iter::FusedIterator;
use core::marker::PhantomData;
use core::{mem, slice};

use super::Table;
use super::directory::Directory;
use super::error::TryReserveError;
use super::growth::free;
use super::probe::Position;
use super::segment::{Boxed, Segment, Slots, uninit_box};
use super::tags::GROUP;
use crate::memory::{Allocator, Box, Global};

/// Every occupied slot of a table.
struct AllSlots<'t, T> {
    directory: &'t Directory<T>,
    mask: usize,
    /// The next index in the directory.
    index: usize,
    slots: Slots<T>,
}

impl<'t, T> AllSlots<'t, T> {
    fn new<A: Allocator + Clone>(table: &'t Table<T, A>) -> Self {
        Self { directory: &table.directory, mask: table.mask, index: 0, slots: Slots::NONE }
    }
}

impl<T> Clone for AllSlots<'_, T> {
    fn clone(&self) -> Self {
        Self { slots: self.slots.clone(), ..*self }
    }
}

impl<T> Iterator for AllSlots<'_, T> {
    type Item = (Segment<T>, usize);

    #[inline]
    fn next(&mut self) -> Option<(Segment<T>, usize)> {
        loop {
            if let Some(slot) = self.slots.next() {
                return Some(slot);
            }
            let (_, segment) = self.directory.next_from(&mut self.index, self.mask)?;
            self.slots = segment.slots(self.mask);
        }
    }
}

/// An iterator over references to the entries of a table.
pub struct Iter<'t, T> {
    slots: AllSlots<'t, T>,
    stash: slice::Iter<'t, (u64, Boxed<T>)>,
    left: usize,
}

impl<T> Clone for Iter<'_, T> {
    fn clone(&self) -> Self {
        Self { slots: self.slots.clone(), stash: self.stash.clone(), left: self.left }
    }
}

impl<'t, T> Iterator for Iter<'t, T> {
    type Item = &'t T;

    #[inline]
    fn next(&mut self) -> Option<&'t T> {
        let entry = match self.slots.next() {
            Some((segment, slot)) => segment.get(slot),
            None => self.stash.next().map(|(_, entry)| &**entry)?,
        };
        self.left -= 1;
        Some(entry)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T> ExactSizeIterator for Iter<'_, T> {}
impl<T> FusedIterator for Iter<'_, T> {}

impl<T: fmt::Debug> fmt::Debug for Iter<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

/// An iterator over mutable references to the entries of a table.
pub struct IterMut<'t, T> {
    directory: &'t Directory<T>,
    mask: usize,
    index: usize,
    slots: Slots<T>,
    stash: slice::IterMut<'t, (u64, Boxed<T>)>,
    left: usize,
    entries: PhantomData<&'t mut T>,
}

impl<'t, T> Iterator for IterMut<'t, T> {
    type Item = &'t mut T;

    #[inline]
    fn next(&mut self) -> Option<&'t mut T> {
        loop {
            if let Some((segment, slot)) = self.slots.next() {
                self.left -= 1;
                return Some(segment.get_mut(slot));
            }
            let Some((_, segment)) = self.directory.next_from(&mut self.index, self.mask) else {
                let (_, entry) = self.stash.next()?;
                self.left -= 1;
                return Some(&mut **entry);
            };
            self.slots = segment.slots(self.mask);
        }
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T> ExactSizeIterator for IterMut<'_, T> {}
impl<T> FusedIterator for IterMut<'_, T> {}

impl<T> fmt::Debug for IterMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IterMut").field("left", &self.left).finish_non_exhaustive()
    }
}

/// An owning iterator over the entries of a table; it drops the rest when dropped.
pub struct IntoIter<T, A: Allocator + Clone = Global> {
    /// No longer used as a table: it owns the memory and the remaining entries.
    table: Table<T, A>,
    index: usize,
    slots: Slots<T>,
    left: usize,
}

impl<T, A: Allocator + Clone> Iterator for IntoIter<T, A> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        loop {
            if let Some((segment, slot)) = self.slots.next() {
                self.left -= 1;
                return Some(segment.take(slot, self.table.allocator()));
            }
            let mask = self.table.mask;
            let Some((_, segment)) = self.table.directory.next_from(&mut self.index, mask) else {
                let (_, entry) = self.table.stash.pop()?;
                self.left -= 1;
                return Some(entry.into_entry(self.table.allocator()));
            };
            self.slots = segment.slots(mask);
        }
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T, A: Allocator + Clone> ExactSizeIterator for IntoIter<T, A> {}
impl<T, A: Allocator + Clone> FusedIterator for IntoIter<T, A> {}

impl<T, A: Allocator + Clone> fmt::Debug for IntoIter<T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntoIter").field("left", &self.left).finish_non_exhaustive()
    }
}

/// A visit of all entries that may remove some on its way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cursor {
    /// The next index in the directory.
    index: usize,
    /// The number of the segment that is visited.
    number: usize,
    /// Where the visit of the segment began: no entry has passed the group before.
    first: usize,
    /// Slots of the segment that have been visited.
    visited: usize,
    /// Slots to visit.
    slots: usize,
    /// Entries of the stash that have been visited.
    stashed: usize,
}

impl<T, A: Allocator + Clone> Table<T, A> {
    /// References to all entries.
    pub(crate) fn iter(&self) -> Iter<'_, T> {
        Iter { slots: AllSlots::new(self), stash: self.stash.iter(), left: self.len }
    }

    /// Mutable references to all entries.
    pub(crate) fn iter_mut(&mut self) -> IterMut<'_, T> {
        IterMut {
            directory: &self.directory,
            mask: self.mask,
            index: 0,
            slots: Slots::NONE,
            stash: self.stash.iter_mut(),
            left: self.len,
            entries: PhantomData,
        }
    }

    /// All entries.
    pub(crate) fn into_entries(self) -> IntoIter<T, A> {
        let left = self.len;
        IntoIter { table: self, index: 0, slots: Slots::NONE, left }
    }

    /// The position of the entry that a cursor visits next, without its hash: see
    /// [`Self::take_slot`]. The cursor stays there until [`Cursor::advance`]. `budget` bounds the
    /// slots that it passes.
    ///
    /// An entry that moves because one has been removed moves from after the cursor to where it is:
    /// so each is visited once.
    pub(crate) fn visit(&mut self, cursor: &mut Cursor, budget: &mut usize) -> Option<Position> {
        let mask = self.mask;
        loop {
            while cursor.visited < cursor.slots {
                let slot = cursor.slot(mask);
                let segment = self.directory.segment(cursor.number as u64);
                if !Self::is_free(segment, slot) {
                    return Some(Position::new(cursor.number, slot, 0));
                }
                if *budget == 0 {
                    return None;
                }
                *budget -= 1;
                cursor.visited += 1;
            }
            let Some((number, segment)) = self.directory.next_from(&mut cursor.index, mask) else {
                let at = Position::in_stash(cursor.stashed, 0);
                return self.get(at).map(|_| at);
            };
            // T1: there is one. No entry has passed it.
            let first = segment.first_with_room(mask).unwrap_or(0);
            (cursor.number, cursor.first) = (number, self.next(first));
            (cursor.visited, cursor.slots) = (0, mask + GROUP);
        }
    }

    /// Removes the next entry, from a cursor on, for which `picks` returns true.
    pub(crate) fn extract_next(
        &mut self,
        cursor: &mut Cursor,
        mut picks: impl FnMut(&mut T) -> bool,
        hasher: &impl Fn(&T) -> u64,
    ) -> Option<T> {
        let mut budget = usize::MAX;
        loop {
            let at = self.visit(cursor, &mut budget)?;
            if picks(self.get_mut(at)?) {
                return self.take_slot(at, hasher);
            }
            cursor.advance();
        }
    }

    /// Removes the entries for which `keep` returns false.
    pub(crate) fn retain(
        &mut self,
        mut keep: impl FnMut(&mut T) -> bool,
        hasher: &impl Fn(&T) -> u64,
    ) {
        let mut cursor = Cursor::default();
        let mut picks = |entry: &mut T| !keep(entry);
        while self.extract_next(&mut cursor, &mut picks, hasher).is_some() {}
    }

    /// A copy of the same shape.
    fn try_clone(&self) -> Result<Self, TryReserveError>
    where
        T: Clone,
    {
        let mut copy = Self::new_in(self.allocator().clone());
        if self.directory.is_allocated() {
            copy.directory = Directory::allocate(self.directory.len(), self.allocator())?;
        }
        (copy.mask, copy.reserved, copy.extras) = (self.mask, self.reserved, self.extras);
        for (number, segment) in self.directory.numbers(self.mask) {
            let header = segment.header(self.mask);
            let new = segment.alike(self.mask, self.allocator())?;
            copy.directory.set_all(number, header.depth, new);
            copy.segments += 1;
            for (_, slot) in segment.slots(self.mask) {
                let entry = segment.get(slot).clone();
                let is_inline = Segment::<T>::IS_INLINE;
                let uninit = if is_inline { None } else { Some(uninit_box(self.allocator())?) };
                new.write(slot, segment.tag(slot), uninit, entry);
                copy.len += 1;
            }
            *new.header_mut(self.mask) = header;
        }
        copy.stash.reserve_exact(self.stash.len());
        for (hash, entry) in &self.stash {
            let entry = T::clone(entry);
            let uninit = uninit_box(self.allocator())?;
            copy.stash.push((*hash, Boxed::new(Box::write(uninit, entry))));
            copy.len += 1;
        }
        Ok(copy)
    }

    /// Drops the entries of a segment and frees it; goes on if one of them panics.
    fn drop_segment(segment: Segment<T>, mask: usize, memory: &A) {
        struct Rest<'m, T, A: Allocator + Clone>(Segment<T>, usize, &'m A);
        impl<T, A: Allocator + Clone> Rest<'_, T, A> {
            fn drop_entries(&self) {
                let Self(segment, mask, memory) = self;
                if Segment::<T>::NEEDS_DROP {
                    segment.slots(*mask).for_each(|(own, slot)| own.drop_entry(slot, *memory));
                }
            }
        }
        impl<T, A: Allocator + Clone> Drop for Rest<'_, T, A> {
            fn drop(&mut self) {
                self.drop_entries();
                free(self.0, self.1, self.2);
            }
        }
        Rest(segment, mask, memory).drop_entries();
    }
}

/// Ends the program without memory, as all copies do.
impl<T: Clone, A: Allocator + Clone> Clone for Table<T, A> {
    fn clone(&self) -> Self {
        self.try_clone().unwrap_or_else(|error| error.raise())
    }
}

impl<T, A: Allocator + Clone> Drop for Table<T, A> {
    fn drop(&mut self) {
        struct Rest<'t, T, A: Allocator + Clone>(&'t mut Table<T, A>, usize);
        impl<T, A: Allocator + Clone> Rest<'_, T, A> {
            fn drop_entries(&mut self) {
                let Self(table, index) = self;
                // Downwards: a segment is freed at its number, which is the lowest of its indices.
                while let Some(segment) = table.directory.last_before(index, table.mask) {
                    Table::drop_segment(segment, table.mask, table.allocator());
                }
                while let Some((_, entry)) = table.stash.pop() {
                    drop(entry.into_entry(table.allocator()));
                }
            }
        }
        impl<T, A: Allocator + Clone> Drop for Rest<'_, T, A> {
            fn drop(&mut self) {
                self.drop_entries();
                let directory = mem::replace(&mut self.0.directory, Directory::new());
                directory.free(self.0.allocator());
            }
        }
        let len = self.directory.len();
        Rest(self, len).drop_entries();
    }
}

impl Cursor {
    /// The slot that is visited.
    fn slot(&self, mask: usize) -> usize {
        let group = (self.first + self.visited / GROUP * GROUP) & mask;
        group + self.visited % GROUP
    }

    /// Leaves the entry that has been visited where it is.
    pub(crate) fn advance(&mut self) {
        if self.visited < self.slots { self.visited += 1 } else { self.stashed += 1 }
    }
}

#[allow(unsafe_code)]
// SAFETY: a table owns its entries.
unsafe impl<T: Send, A: Allocator + Clone + Send> Send for Table<T, A> {}
#[allow(unsafe_code)]
// SAFETY: a shared table gives shared references only.
unsafe impl<T: Sync, A: Allocator + Clone + Sync> Sync for Table<T, A> {}
#[allow(unsafe_code)]
// SAFETY: the iterator owns the remaining entries.
unsafe impl<T: Send, A: Allocator + Clone + Send> Send for IntoIter<T, A> {}
#[allow(unsafe_code)]
// SAFETY: a shared one gives nothing.
unsafe impl<T: Sync, A: Allocator + Clone + Sync> Sync for IntoIter<T, A> {}
#[allow(unsafe_code)]
// SAFETY: as a shared reference to the table.
unsafe impl<T: Sync> Send for Iter<'_, T> {}
#[allow(unsafe_code)]
// SAFETY: as a shared reference to the table.
unsafe impl<T: Sync> Sync for Iter<'_, T> {}
#[allow(unsafe_code)]
// SAFETY: as a mutable reference to the table.
unsafe impl<T: Send> Send for IterMut<'_, T> {}
#[allow(unsafe_code)]
// SAFETY: a shared one gives nothing.
unsafe impl<T: Sync> Sync for IterMut<'_, T> {}
