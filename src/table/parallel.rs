//! Splitting the entries of a table between threads, by segments.
//!
//! ```text
//!     directory   │ A │ B │ C │ D │ A │ E │ C │ F │      a segment belongs to its lowest index
//!                 ◄── one part ───►◄─ the other ──►      A, B, C, D and E, F
//! ```
//!
//! A part is a range of indices of the directory: the segments whose number is in the range. No
//! segment is in two parts. The stash, which hardly ever has an entry, stays with the last part.

use core::mem;

use super::Table;
use super::iter::{AllSlots, IntoIter, Iter, IterMut};
use super::segment::Boxed;
use crate::memory::{Allocator, Vec};

/// An iterator whose rest can be split into two parts.
pub(crate) trait Split: Iterator<Item: Send> + Send + Sized {
    /// Returns two parts of the rest, or all of it if it is small.
    fn split(self) -> (Self, Option<Self>);
}

impl<T: Sync> Split for Iter<'_, T> {
    fn split(mut self) -> (Self, Option<Self>) {
        let Some(slots) = self.slots.split_off() else { return (self, None) };
        let stash = mem::take(&mut self.stash);
        let left = slots.entries() + stash.len();
        self.left -= left;
        (self, Some(Self { slots, stash, left }))
    }
}

impl<T: Send> Split for IterMut<'_, T> {
    fn split(mut self) -> (Self, Option<Self>) {
        let Some(slots) = self.slots.split_off() else { return (self, None) };
        let stash = mem::take(&mut self.stash);
        let left = slots.entries() + stash.len();
        self.left -= left;
        let entries = self.entries;
        (self, Some(Self { slots, stash, left, entries }))
    }
}

/// An iterator that removes the entries of a table, whose memory stays where it is.
pub(crate) struct Removed<'t, T, A: Allocator + Clone> {
    slots: AllSlots<'t, T>,
    /// None in all parts but the last one.
    stash: Option<&'t mut Vec<(u64, Boxed<T>), A>>,
    memory: A,
    left: usize,
}

impl<T, A: Allocator + Clone> IntoIter<T, A> {
    /// An iterator over the rest, which leaves the memory to this one.
    pub(crate) fn removed(&mut self) -> Removed<'_, T, A> {
        let Self { table, index, slots, left } = self;
        let memory = table.allocator().clone();
        let Table { directory, mask, stash, .. } = table;
        let slots = AllSlots::from(directory, *mask, *index, slots.clone());
        Removed { slots, stash: Some(stash), memory, left: *left }
    }
}

impl<T, A: Allocator + Clone> Iterator for Removed<'_, T, A> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        let entry = match self.slots.next() {
            Some((segment, slot)) => segment.take(slot, &self.memory),
            None => self.stash.as_mut()?.pop()?.1.into_entry(&self.memory),
        };
        self.left -= 1;
        Some(entry)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T, A: Allocator + Clone> ExactSizeIterator for Removed<'_, T, A> {}

impl<T: Send, A: Allocator + Clone + Send> Split for Removed<'_, T, A> {
    fn split(mut self) -> (Self, Option<Self>) {
        let Some(slots) = self.slots.split_off() else { return (self, None) };
        let stash = self.stash.take();
        let left = slots.entries() + stash.as_ref().map_or(0, |stash| stash.len());
        self.left -= left;
        let memory = self.memory.clone();
        (self, Some(Self { slots, stash, memory, left }))
    }
}

#[allow(unsafe_code)]
// SAFETY: it owns the entries that it returns; no segment is in two parts.
unsafe impl<T: Send, A: Allocator + Clone + Send> Send for Removed<'_, T, A> {}
