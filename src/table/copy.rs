//! Copying all entries, to new memory or to the memory of another table.

use super::Table;
use super::directory::Directory;
use super::error::TryReserveError;
use super::segment::{Boxed, Segment, uninit_box};
use crate::memory::{Allocator, Box};

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
