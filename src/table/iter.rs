//! Visiting, removing, copying and dropping all entries.

use alloc::boxed::Box;
use alloc::vec;
use core::fmt;
use core::iter::FusedIterator;
use core::marker::PhantomData;
use core::slice;

use super::Table;
use super::directory::Directory;
use super::error::TryReserveError;
use super::growth::free;
use super::probe::Position;
use super::segment::{Segment, Slots};
use super::tags::GROUP;

/// Every occupied slot of a table.
struct AllSlots<'t, T> {
    table: &'t Table<T>,
    /// The next index in the directory.
    index: usize,
    slots: Slots<T>,
}

impl<'t, T> AllSlots<'t, T> {
    fn new(table: &'t Table<T>) -> Self {
        Self { table, index: 0, slots: Slots::NONE }
    }
}

impl<T> Clone for AllSlots<'_, T> {
    fn clone(&self) -> Self {
        Self { table: self.table, index: self.index, slots: self.slots.clone() }
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
            let mask = self.table.mask;
            let (_, segment) = self.table.directory.next_from(&mut self.index, mask)?;
            self.slots = segment.slots(mask);
        }
    }
}

/// An iterator over references to the entries of a table.
pub struct Iter<'t, T> {
    slots: AllSlots<'t, T>,
    stash: slice::Iter<'t, (u64, Box<T>)>,
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
    stash: slice::IterMut<'t, (u64, Box<T>)>,
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
pub struct IntoIter<T> {
    /// It is not used as a table any more, but for its memory and what is left in it.
    table: Table<T>,
    index: usize,
    slots: Slots<T>,
    stash: vec::IntoIter<(u64, Box<T>)>,
    left: usize,
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        loop {
            if let Some((segment, slot)) = self.slots.next() {
                self.left -= 1;
                return Some(segment.take(slot));
            }
            let mask = self.table.mask;
            let Some((_, segment)) = self.table.directory.next_from(&mut self.index, mask) else {
                let (_, entry) = self.stash.next()?;
                self.left -= 1;
                return Some(*entry);
            };
            self.slots = segment.slots(mask);
        }
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T> ExactSizeIterator for IntoIter<T> {}
impl<T> FusedIterator for IntoIter<T> {}

impl<T> fmt::Debug for IntoIter<T> {
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

impl<T> Table<T> {
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
    pub(crate) fn into_entries(mut self) -> IntoIter<T> {
        let stash = core::mem::take(&mut self.stash).into_iter();
        let left = self.len;
        IntoIter { table: self, index: 0, slots: Slots::NONE, stash, left }
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
        hasher: impl Fn(&T) -> u64,
    ) -> Option<T> {
        let mut budget = usize::MAX;
        loop {
            let at = self.visit(cursor, &mut budget)?;
            if picks(self.get_mut(at)?) {
                return self.take_slot(at, &hasher);
            }
            cursor.advance();
        }
    }

    /// Removes the entries for which `keep` returns false.
    pub(crate) fn retain(
        &mut self,
        mut keep: impl FnMut(&mut T) -> bool,
        hasher: impl Fn(&T) -> u64,
    ) {
        let mut cursor = Cursor::default();
        let mut picks = |entry: &mut T| !keep(entry);
        while self.extract_next(&mut cursor, &mut picks, &hasher).is_some() {}
    }

    /// A copy of the same shape.
    fn try_clone(&self) -> Result<Self, TryReserveError>
    where
        T: Clone,
    {
        let mut copy = Self::new();
        if self.directory.is_allocated() {
            copy.directory = Directory::allocate(self.directory.len())?;
        }
        (copy.mask, copy.reserved, copy.extras) = (self.mask, self.reserved, self.extras);
        for (number, segment) in self.directory.numbers(self.mask) {
            let header = segment.header(self.mask);
            let new = segment.alike(self.mask)?;
            copy.directory.set_all(number, header.depth, new);
            copy.segments += 1;
            for (_, slot) in segment.slots(self.mask) {
                let entry = segment.get(slot).clone();
                let uninit =
                    if Segment::<T>::IS_INLINE { None } else { Some(super::uninit_box()?) };
                new.write(slot, segment.tag(slot), uninit, entry);
                copy.len += 1;
            }
            *new.header_mut(self.mask) = header;
        }
        copy.stash.reserve_exact(self.stash.len());
        for (hash, entry) in &self.stash {
            copy.stash.push((*hash, entry.clone()));
            copy.len += 1;
        }
        Ok(copy)
    }

    /// Drops the entries of a segment and frees it; goes on if one of them panics.
    fn drop_segment(segment: Segment<T>, mask: usize) {
        struct Rest<T>(Segment<T>, usize);
        impl<T> Drop for Rest<T> {
            fn drop(&mut self) {
                if Segment::<T>::NEEDS_DROP {
                    self.0.slots(self.1).for_each(|(segment, slot)| segment.drop_entry(slot));
                }
                free(self.0, self.1);
            }
        }
        let rest = Rest(segment, mask);
        if Segment::<T>::NEEDS_DROP {
            segment.slots(mask).for_each(|(segment, slot)| segment.drop_entry(slot));
        }
        drop(rest);
    }
}

/// Ends the program without memory, as all copies do.
impl<T: Clone> Clone for Table<T> {
    fn clone(&self) -> Self {
        self.try_clone().unwrap_or_else(|error| error.raise())
    }
}

impl<T> Drop for Table<T> {
    fn drop(&mut self) {
        struct Rest<'t, T>(&'t Table<T>, usize);
        impl<T> Rest<'_, T> {
            fn drop_segments(&mut self) {
                // Downwards: a segment is freed at its number, which is the lowest of its indices.
                while let Some(segment) = self.0.directory.last_before(&mut self.1, self.0.mask) {
                    Table::drop_segment(segment, self.0.mask);
                }
            }
        }
        impl<T> Drop for Rest<'_, T> {
            fn drop(&mut self) {
                self.drop_segments();
            }
        }
        Rest(self, self.directory.len()).drop_segments();
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
unsafe impl<T: Send> Send for Table<T> {}
#[allow(unsafe_code)]
// SAFETY: a shared table gives shared references only.
unsafe impl<T: Sync> Sync for Table<T> {}
#[allow(unsafe_code)]
// SAFETY: it owns what is left.
unsafe impl<T: Send> Send for IntoIter<T> {}
#[allow(unsafe_code)]
// SAFETY: a shared one gives nothing.
unsafe impl<T: Sync> Sync for IntoIter<T> {}
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
