//! Inserting.

use core::alloc::Layout;
use core::mem::MaybeUninit;

use super::error::TryReserveError;
use super::policy;
use super::probe::Position;
use super::segment::{Boxed, Segment, UninitBox, uninit_box};
use super::tags::{GROUP, tag};
use super::{FLOODED, STASHED, Table};
use crate::memory::{Allocator, Box};

/// Room for one entry: inserting it takes no memory, and runs no user code.
pub(crate) struct Room<'t, T, A: Allocator + Clone> {
    table: &'t mut Table<T, A>,
    hash: u64,
    place: Free<T, A>,
}

/// Where there is room.
enum Free<T, A: Allocator> {
    /// A free slot, the first that a search finds.
    Slot { segment: Segment<T>, slot: usize, uninit: UninitBox<T, A> },
    /// The end of the stash, and a box.
    Stash(Box<MaybeUninit<T>, A>),
}

impl<'t, T, A: Allocator + Clone> Room<'t, T, A> {
    /// Inserts the entry.
    pub(crate) fn insert(self, entry: T) -> &'t mut T {
        let Self { table, hash, place } = self;
        match place {
            Free::Slot { segment, slot, uninit } => {
                table.write_entry(segment, slot, hash, uninit, entry);
                segment.get_mut(slot)
            }
            Free::Stash(uninit) => {
                table.len += 1;
                table.extras |= STASHED;
                table.stash.push((hash, Boxed::new(Box::write(uninit, entry))));
                let last = table.stash.len() - 1;
                &mut table.stash[last].1
            }
        }
    }

    /// Inserts the entry, and returns the table and where the entry is.
    pub(crate) fn insert_at(self, entry: T) -> (&'t mut Table<T, A>, Position) {
        let Self { table, hash, place } = self;
        let at = match &place {
            Free::Slot { slot, .. } => Position::new(table.directory.index(hash), *slot, hash),
            Free::Stash(_) => Position::in_stash(table.stash.len(), hash),
        };
        Room { table: &mut *table, hash, place }.insert(entry);
        (table, at)
    }
}

impl<T, A: Allocator + Clone> Table<T, A> {
    /// Inserts an entry, in one pass. If `eq` returns true for one that is there, both are given to
    /// `replace`, and its result is returned. `hasher` returns the hashes of entries that have to
    /// move.
    ///
    /// # Errors
    ///
    /// If memory is needed and cannot be allocated, the entry. While there is a free slot, entries
    /// of up to 64 bytes need none.
    #[inline]
    pub(crate) fn insert<R>(
        &mut self,
        hash: u64,
        entry: T,
        mut eq: impl FnMut(&T, &T) -> bool,
        replace: impl FnOnce(&mut T, T) -> R,
        hasher: &impl Fn(&T) -> u64,
    ) -> Result<Option<R>, (T, TryReserveError)> {
        let hit = |segment, slot| (segment, slot, true);
        let miss = |segment, slot| (segment, slot, false);
        let (segment, slot, is_found) = self.search(hash, &mut |own| eq(own, &entry), hit, miss);
        if is_found {
            return Ok(Some(replace(segment.get_mut(slot), entry)));
        }
        let is_simple = Segment::<T>::IS_INLINE
            && !self.has_extras()
            && !segment.header(self.mask).is_at_limit();
        if is_simple {
            self.write_entry(segment, slot, hash, None, entry);
            return Ok(None);
        }
        self.insert_further(hash, entry, eq, replace, hasher)
    }

    /// Inserts an entry that is in no segment.
    #[cold]
    #[inline(never)]
    fn insert_further<R>(
        &mut self,
        hash: u64,
        entry: T,
        mut eq: impl FnMut(&T, &T) -> bool,
        replace: impl FnOnce(&mut T, T) -> R,
        hasher: &impl Fn(&T) -> u64,
    ) -> Result<Option<R>, (T, TryReserveError)> {
        if let Some(at) = self.stashed(hash, |own| eq(own, &entry)) {
            return Ok(Some(replace(&mut self.stash[at].1, entry)));
        }
        match self.make_room(hash, hasher) {
            Ok(room) => {
                room.insert(entry);
                Ok(None)
            }
            Err(error) => Err((entry, error)),
        }
    }

    /// Writes an entry to a free slot, the first that a search finds.
    #[inline]
    fn write_entry(
        &mut self,
        segment: Segment<T>,
        slot: usize,
        hash: u64,
        uninit: UninitBox<T, A>,
        entry: T,
    ) {
        segment.write(slot, tag(hash), uninit, entry);
        segment.header_mut(self.mask).len += 1;
        self.len += 1;
        if slot & !(GROUP - 1) != self.home(hash) {
            self.displace(segment, slot, hash);
        }
    }

    /// Marks an entry as displaced.
    #[cold]
    #[inline(never)]
    fn displace(&mut self, segment: Segment<T>, slot: usize, hash: u64) {
        segment.mark_displaced(self.mask, slot, true);
        let distance = (slot & !(GROUP - 1)).wrapping_sub(self.home(hash)) & self.mask;
        let slots = self.mask + GROUP;
        if distance / GROUP > policy::REACH && segment.len(self.mask) <= slots / 2 {
            self.extras |= FLOODED;
        }
    }

    /// Room for an entry of this hash, which is not in the table.
    ///
    /// # Errors
    ///
    /// If memory is needed and cannot be allocated.
    #[inline]
    pub(crate) fn make_room(
        &mut self,
        hash: u64,
        hasher: &impl Fn(&T) -> u64,
    ) -> Result<Room<'_, T, A>, TryReserveError> {
        let is_at_limit = self.directory.segment(hash).header(self.mask).is_at_limit();
        if is_at_limit && !self.grow_for(hash, hasher)? {
            self.extras |= FLOODED;
            self.reserve_in_stash()?;
            let place = Free::Stash(uninit_box(self.allocator())?);
            return Ok(Room { hash, place, table: self });
        }
        let uninit =
            if Segment::<T>::IS_INLINE { None } else { Some(uninit_box(self.allocator())?) };
        let segment = self.directory.segment(hash);
        let slot = segment.first_free(self.mask, self.home(hash));
        Ok(Room { table: self, hash, place: Free::Slot { segment, slot, uninit } })
    }

    /// Allocates room for one entry more in the stash, and for as many as there are if there is
    /// none.
    fn reserve_in_stash(&mut self) -> Result<(), TryReserveError> {
        let len = self.stash.len();
        if len < self.stash.capacity() {
            return Ok(());
        }
        let additional = len.max(4);
        let layout = Layout::array::<(u64, Boxed<T>)>(len + additional);
        let layout = layout.map_err(|_| TryReserveError::OVERFLOW)?;
        let reserved = self.stash.try_reserve_exact(additional);
        reserved.map_err(|_| TryReserveError::memory(layout))
    }
}
