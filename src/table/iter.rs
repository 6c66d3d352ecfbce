//! Visiting, removing, copying and dropping all entries.

use core::fmt;
use core::iter::FusedIterator;
use core::marker::PhantomData;
use core::{mem, slice};

use super::Table;
use super::directory::Directory;
use super::growth::free;
use super::probe::Position;
use super::segment::{Boxed, Segment, Slots};
use super::tags::GROUP;
use crate::memory::{Allocator, Global};

/// Every occupied slot of the segments with some numbers.
pub(super) struct AllSlots<'t, T> {
    directory: &'t Directory<T>,
    mask: usize,
    /// The next index in the directory.
    index: usize,
    /// The index to end before.
    end: usize,
    slots: Slots<T>,
}

impl<'t, T> AllSlots<'t, T> {
    const NOWHERE: &'t Directory<T> = &Directory::new();

    /// No slot.
    const NONE: Self =
        Self { directory: Self::NOWHERE, mask: 0, index: 0, end: 0, slots: Slots::NONE };

    /// All slots of a table from an index of its directory on.
    pub(super) fn from(
        directory: &'t Directory<T>,
        mask: usize,
        index: usize,
        slots: Slots<T>,
    ) -> Self {
        Self { directory, mask, index, end: directory.len(), slots }
    }

    fn new<A: Allocator + Clone>(table: &'t Table<T, A>) -> Self {
        Self::from(&table.directory, table.mask, 0, Slots::NONE)
    }

    /// Splits the slots of the upper half of the indices off.
    #[cfg(feature = "rayon")]
    pub(super) fn split_off(&mut self) -> Option<Self> {
        let half = self.index.midpoint(self.end);
        if half == self.index {
            return None;
        }
        let upper = Self { index: half, slots: Slots::NONE, ..*self };
        self.end = half;
        Some(upper)
    }

    /// The number of entries of the segments that have not been visited.
    #[cfg(feature = "rayon")]
    pub(super) fn entries(&self) -> usize {
        let mut index = self.index;
        let segments =
            core::iter::from_fn(|| self.directory.next_from(&mut index, self.end, self.mask));
        segments.map(|(_, segment)| segment.len(self.mask)).sum()
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
            let (_, segment) = self.directory.next_from(&mut self.index, self.end, self.mask)?;
            self.slots = segment.slots(self.mask);
        }
    }
}

/// An iterator over references to the entries of a table.
pub struct Iter<'t, T> {
    pub(super) slots: AllSlots<'t, T>,
    pub(super) stash: slice::Iter<'t, (u64, Boxed<T>)>,
    pub(super) left: usize,
}

impl<T> Default for Iter<'_, T> {
    fn default() -> Self {
        Self { slots: AllSlots::NONE, stash: [].iter(), left: 0 }
    }
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
    pub(super) slots: AllSlots<'t, T>,
    pub(super) stash: slice::IterMut<'t, (u64, Boxed<T>)>,
    pub(super) left: usize,
    pub(super) entries: PhantomData<&'t mut T>,
}

impl<T> Default for IterMut<'_, T> {
    fn default() -> Self {
        let stash = [].iter_mut();
        Self { slots: AllSlots::NONE, stash, left: 0, entries: PhantomData }
    }
}

impl<'t, T> Iterator for IterMut<'t, T> {
    type Item = &'t mut T;

    #[inline]
    fn next(&mut self) -> Option<&'t mut T> {
        let entry = match self.slots.next() {
            Some((segment, slot)) => segment.get_mut(slot),
            None => self.stash.next().map(|(_, entry)| &mut **entry)?,
        };
        self.left -= 1;
        Some(entry)
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
    pub(super) table: Table<T, A>,
    pub(super) index: usize,
    pub(super) slots: Slots<T>,
    pub(super) left: usize,
}

impl<T, A: Allocator + Clone + Default> Default for IntoIter<T, A> {
    fn default() -> Self {
        Table::new_in(A::default()).into_entries()
    }
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
            let (directory, mask) = (&self.table.directory, self.table.mask);
            let end = directory.len();
            let Some((_, segment)) = directory.next_from(&mut self.index, end, mask) else {
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
        let slots = AllSlots::from(&self.directory, self.mask, 0, Slots::NONE);
        IterMut { slots, stash: self.stash.iter_mut(), left: self.len, entries: PhantomData }
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
            let end = self.directory.len();
            let next = self.directory.next_from(&mut cursor.index, end, mask);
            let Some((number, segment)) = next else {
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
