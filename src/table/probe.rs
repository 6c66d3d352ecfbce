//! Searching, inserting and removing: what happens in the groups of one segment.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::Table;
use super::error::TryReserveError;
use super::policy;
use super::segment::{Segment, Shell, uninit_box, write_box};
use super::tags::{FREE, GROUP, tag};
use crate::probes::Observer;

/// Where an entry is, and its hash. Any change of the table makes it void.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position {
    /// The index in the directory; [`Position::STASH`] if the slot is in the stash.
    index: usize,
    slot: usize,
    hash: u64,
}

impl Position {
    const STASH: usize = usize::MAX;

    pub(super) fn new(index: usize, slot: usize, hash: u64) -> Self {
        Self { index, slot, hash }
    }

    pub(super) fn in_stash(slot: usize) -> Self {
        Self { index: Self::STASH, slot, hash: 0 }
    }

    pub(crate) fn hash(self) -> u64 {
        self.hash
    }

    pub(super) fn with_hash(self, hash: u64) -> Self {
        Self { hash, ..self }
    }
}

/// What a search for an entry or for room for it has found.
pub(crate) enum Place<'t, T> {
    /// The entry.
    Found(&'t mut T),
    /// Room for it.
    Vacant(Room<'t, T>),
}

/// Room for one entry: inserting it takes no memory, and runs no user code.
pub(crate) struct Room<'t, T> {
    table: &'t mut Table<T>,
    hash: u64,
    place: Free<T>,
}

/// Where there is room.
enum Free<T> {
    /// A free slot, the first that a search finds.
    Slot { segment: Segment<T>, slot: usize, shell: Shell<T> },
    /// The end of the stash, and a box.
    Stash(Box<core::mem::MaybeUninit<T>>),
}

impl<'t, T> Room<'t, T> {
    /// Inserts the entry.
    #[inline(always)]
    pub(crate) fn insert(self, entry: T) -> &'t mut T {
        let Self { table, hash, place } = self;
        table.len += 1;
        match place {
            Free::Slot { segment, slot, shell } => {
                let header = segment.header_mut(table.mask);
                header.left -= 1;
                segment.write(slot, tag(hash), shell, entry);
                let home = table.home(hash);
                if slot & !(GROUP - 1) != home {
                    table.count_overflow(segment, home, slot);
                }
                segment.get_mut(slot)
            }
            Free::Stash(shell) => {
                table.goes_on = true;
                table.stash.push((hash, write_box(shell, entry)));
                let last = table.stash.len() - 1;
                &mut table.stash[last].1
            }
        }
    }
}

impl<T> Room<'_, T> {
    /// Inserts the entry, and returns where it is.
    pub(crate) fn insert_at(self, entry: T) -> Position {
        let (hash, index) = (self.hash, self.table.directory.index(self.hash));
        let at = match &self.place {
            Free::Slot { slot, .. } => Position { index, slot: *slot, hash },
            Free::Stash(_) => {
                Position { index: Position::STASH, slot: self.table.stash.len(), hash }
            }
        };
        self.insert(entry);
        at
    }
}

impl<T> Table<T> {
    /// The entry of this hash for which `eq` returns true.
    #[inline(always)]
    pub(crate) fn find(&self, hash: u64, mut eq: impl FnMut(&T) -> bool) -> Option<&T> {
        let found = self.search(hash, &mut eq, |segment, slot| Some(segment.get(slot)), || None);
        if found.is_some() || !self.goes_on {
            return found;
        }
        self.search_stash(hash, eq).map(|at| &*self.stash[at].1)
    }

    /// A mutable reference to the entry of this hash for which `eq` returns true.
    #[inline(always)]
    pub(crate) fn find_mut(&mut self, hash: u64, mut eq: impl FnMut(&T) -> bool) -> Option<&mut T> {
        let hit = |segment: Segment<T>, slot| Some(segment.get_mut(slot));
        if let Some(found) = self.search(hash, &mut eq, hit, || None) {
            return Some(found);
        }
        self.stashed(hash, eq).map(|at| &mut *self.stash[at].1)
    }

    /// Calls `hit` with the entry of this hash for which `eq` returns true, or `miss` if there is
    /// none in the segments: see [`Self::goes_on`].
    #[inline(always)]
    pub(crate) fn find_or<'t, R>(
        &'t self,
        hash: u64,
        mut eq: impl FnMut(&T) -> bool,
        hit: impl FnOnce(&'t T) -> R,
        miss: impl FnOnce() -> R,
    ) -> R {
        self.search(hash, &mut eq, |segment, slot| hit(segment.get(slot)), miss)
    }

    /// Calls `hit` with the slot of the entry of this hash for which `eq` returns true, or `miss`
    /// if there is none in the segments. With two continuations each outcome has a path of its own.
    #[inline(always)]
    fn search<R>(
        &self,
        hash: u64,
        eq: &mut impl FnMut(&T) -> bool,
        hit: impl FnOnce(Segment<T>, usize) -> R,
        miss: impl FnOnce() -> R,
    ) -> R {
        let segment = self.directory.segment(hash);
        let mut offset = self.home(hash);
        loop {
            let group = segment.group(offset);
            let mut matches = group.matches(tag(hash));
            // Not as an iterator, which would clear the lowest bit before the next slot is needed.
            while !matches.is_empty() {
                let slot = offset + matches.lowest();
                if eq(segment.get(slot)) {
                    return hit(segment, slot);
                }
                matches = matches.without_lowest();
            }
            // T1: there is one in the segment.
            if !group.free().is_empty() {
                return miss();
            }
            offset = self.next(offset);
        }
    }

    /// The index of an entry in the stash.
    #[inline(always)]
    fn stashed(&self, hash: u64, eq: impl FnMut(&T) -> bool) -> Option<usize> {
        if self.goes_on { self.search_stash(hash, eq) } else { None }
    }

    #[cold]
    #[inline(never)]
    fn search_stash(&self, hash: u64, mut eq: impl FnMut(&T) -> bool) -> Option<usize> {
        self.stash.iter().position(|(other, entry)| *other == hash && eq(entry))
    }

    /// The first entry in the home group of this hash that has its tag.
    #[inline]
    pub(crate) fn candidate(&self, hash: u64) -> Option<&T> {
        let (segment, home) = (self.directory.segment(hash), self.home(hash));
        let slot = segment.group(home).matches(tag(hash)).next()?;
        Some(segment.get(home + slot))
    }

    /// [`Self::find`], observed: a group is a node.
    pub(crate) fn find_observed(
        &self,
        hash: u64,
        mut eq: impl FnMut(&T) -> bool,
        observer: &mut impl Observer,
    ) -> Option<&T> {
        let segment = self.directory.segment(hash);
        let mut offset = self.home(hash);
        loop {
            let group = segment.group(offset);
            observer.node();
            for slot in group.matches(tag(hash)) {
                observer.entry();
                if eq(segment.get(offset + slot)) {
                    return Some(segment.get(offset + slot));
                }
            }
            if !group.free().is_empty() {
                break;
            }
            offset = self.next(offset);
        }
        let found = self.stashed(hash, |entry| {
            observer.entry();
            eq(entry)
        });
        found.map(|at| &*self.stash[at].1)
    }

    /// The position of the entry of this hash for which `eq` returns true.
    #[inline(always)]
    pub(crate) fn locate(&self, hash: u64, mut eq: impl FnMut(&T) -> bool) -> Option<Position> {
        let hit = |_, slot| Some(Position { index: self.directory.index(hash), slot, hash });
        let found = self.search(hash, &mut eq, hit, || None);
        if found.is_some() || !self.goes_on {
            return found;
        }
        let slot = self.search_stash(hash, eq)?;
        Some(Position { index: Position::STASH, slot, hash })
    }

    /// The segment of a position in it, if there is an entry.
    #[inline]
    fn occupied(&self, at: Position) -> Option<Segment<T>> {
        if at.index >= self.directory.len() {
            return None;
        }
        let segment = self.directory.segment(at.index as u64);
        segment.is_full(self.mask, at.slot).then_some(segment)
    }

    /// The entry at a position.
    #[inline]
    pub(crate) fn get(&self, at: Position) -> Option<&T> {
        if at.index == Position::STASH {
            return self.stash.get(at.slot).map(|(_, entry)| &**entry);
        }
        Some(self.occupied(at)?.get(at.slot))
    }

    /// A mutable reference to the entry at a position.
    #[inline]
    pub(crate) fn get_mut(&mut self, at: Position) -> Option<&mut T> {
        if at.index == Position::STASH {
            return self.stash.get_mut(at.slot).map(|(_, entry)| &mut **entry);
        }
        Some(self.occupied(at)?.get_mut(at.slot))
    }

    fn is_same_place(&self, a: Position, b: Position) -> bool {
        let is_stashed = |at: Position| at.index == Position::STASH;
        match (is_stashed(a), is_stashed(b)) {
            (true, true) => a.slot == b.slot,
            (false, false) => {
                let segment = |at: Position| self.directory.segment(at.index as u64);
                a.slot == b.slot && segment(a) == segment(b)
            }
            _ => false,
        }
    }

    /// Mutable references to entries at several positions.
    ///
    /// # Panics
    ///
    /// If two positions are the same.
    pub(crate) fn get_many_mut<const N: usize>(
        &mut self,
        at: [Option<Position>; N],
    ) -> [Option<&mut T>; N] {
        for (i, a) in at.iter().enumerate() {
            let is_same =
                |b: &Option<Position>| a.zip(*b).is_some_and(|(a, b)| self.is_same_place(a, b));
            assert!(!at[..i].iter().any(is_same), "two keys have the same entry");
        }
        let mut stash: Vec<Option<&mut T>> = Vec::new();
        if at.iter().flatten().any(|at| at.index == Position::STASH) {
            stash.extend(self.stash.iter_mut().map(|(_, entry)| Some(&mut **entry)));
        }
        let (directory, mask) = (&self.directory, self.mask);
        at.map(|at| {
            let at = at?;
            if at.index == Position::STASH {
                return stash.get_mut(at.slot)?.take();
            }
            let segment = directory.segment(at.index as u64);
            segment.is_full(mask, at.slot).then(|| segment.get_mut(at.slot))
        })
    }

    /// The entry of this hash for which `eq` returns true, or room for it, in one pass. `hasher`
    /// returns the hashes of entries that have to move.
    ///
    /// # Errors
    ///
    /// If memory is needed and cannot be allocated. While there is a free slot, none is needed.
    #[inline(always)]
    pub(crate) fn find_or_make_room(
        &mut self,
        hash: u64,
        mut eq: impl FnMut(&T) -> bool,
        hasher: impl Fn(&T) -> u64,
    ) -> Result<Place<'_, T>, TryReserveError> {
        let segment = self.directory.segment(hash);
        let mut offset = self.home(hash);
        let free = loop {
            let group = segment.group(offset);
            for slot in group.matches(tag(hash)) {
                if eq(segment.get(offset + slot)) {
                    return Ok(Place::Found(segment.get_mut(offset + slot)));
                }
            }
            let free = group.free();
            if !free.is_empty() {
                break offset + free.lowest();
            }
            offset = self.next(offset);
        };
        if let Some(at) = self.stashed(hash, eq) {
            return Ok(Place::Found(&mut self.stash[at].1));
        }
        if segment.header(self.mask).left == 0 {
            return Ok(Place::Vacant(self.make_room_by_growth(hash, &hasher)?));
        }
        let shell = if Segment::<T>::IS_INLINE { None } else { Some(uninit_box()?) };
        let place = Free::Slot { segment, slot: free, shell };
        Ok(Place::Vacant(Room { table: self, hash, place }))
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
        hasher: impl Fn(&T) -> u64,
    ) -> Result<Room<'_, T>, TryReserveError> {
        if self.directory.segment(hash).header(self.mask).left == 0 {
            return self.make_room_by_growth(hash, &hasher);
        }
        self.claim_room(hash)
    }

    #[cold]
    #[inline(never)]
    fn make_room_by_growth(
        &mut self,
        hash: u64,
        hasher: &impl Fn(&T) -> u64,
    ) -> Result<Room<'_, T>, TryReserveError> {
        if self.grow_for(hash, hasher)? {
            return self.claim_room(hash);
        }
        self.flooded = true;
        super::error::reserve_one(&mut self.stash)?;
        Ok(Room { hash, place: Free::Stash(uninit_box()?), table: self })
    }

    /// Room in the segment of this hash, which has some.
    fn claim_room(&mut self, hash: u64) -> Result<Room<'_, T>, TryReserveError> {
        let shell = if Segment::<T>::IS_INLINE { None } else { Some(uninit_box()?) };
        let segment = self.directory.segment(hash);
        let mut offset = self.home(hash);
        loop {
            let free = segment.group(offset).free();
            if !free.is_empty() {
                let place = Free::Slot { segment, slot: offset + free.lowest(), shell };
                return Ok(Room { table: self, hash, place });
            }
            offset = self.next(offset);
        }
    }

    /// Counts an entry in the groups between its home and its slot.
    #[cold]
    #[inline(never)]
    fn count_overflow(&mut self, segment: Segment<T>, home: usize, slot: usize) {
        let to = slot & !(GROUP - 1);
        let distance = (to.wrapping_sub(home) & self.mask) / GROUP;
        let slots = self.mask + GROUP;
        if distance > policy::REACH && segment.len(self.mask) <= slots / 2 {
            self.flooded = true;
        }
        let mut from = home;
        while from != to {
            let count = segment.overflow(self.mask, from);
            segment.set_overflow(self.mask, from, count.saturating_add(1));
            from = self.next(from);
        }
    }

    /// Removes the entry at a position. The table does not get smaller: see
    /// [`Self::shrink_around`]. `hasher` returns the hashes of entries in the next groups, if one
    /// of them has to move.
    #[inline]
    pub(crate) fn take(&mut self, at: Position, hasher: impl Fn(&T) -> u64) -> Option<T> {
        let entry = self.take_slot(at, hasher);
        if !self.stash.is_empty() {
            self.unstash();
        }
        entry
    }

    /// [`Self::take`], with the stash as it is.
    #[inline]
    pub(super) fn take_slot(&mut self, at: Position, hasher: impl Fn(&T) -> u64) -> Option<T> {
        if at.index == Position::STASH {
            return self.take_stashed(at.slot);
        }
        let segment = self.occupied(at)?;
        let group = at.slot & !(GROUP - 1);
        // T2: a group with a free slot has no count, and that is in another cache line.
        let has_overflowed =
            segment.group(group).free().is_empty() && segment.overflow(self.mask, group) > 0;
        let entry = if !has_overflowed {
            segment.take(at.slot)
        } else {
            self.take_and_shift(segment, at.slot, &hasher)
        };
        let home = self.home(at.hash);
        if home != group {
            segment.uncount(self.mask, home, group);
        }
        segment.header_mut(self.mask).left += 1;
        self.len -= 1;
        Some(entry)
    }

    fn take_stashed(&mut self, at: usize) -> Option<T> {
        if at >= self.stash.len() {
            return None;
        }
        let (_, entry) = self.stash.swap_remove(at);
        self.free_stash();
        self.len -= 1;
        Some(*entry)
    }

    /// Frees the stash if it is empty.
    pub(super) fn free_stash(&mut self) {
        if self.stash.is_empty() {
            (self.stash, self.goes_on) = (Vec::new(), false);
        }
    }

    /// Moves the last entry of the stash to its segment, if that has room.
    #[cold]
    fn unstash(&mut self) {
        let Some(&(hash, _)) = self.stash.last() else { return };
        let segment = self.directory.segment(hash);
        if segment.header(self.mask).left == 0 {
            return;
        }
        if let Some((_, entry)) = self.stash.pop() {
            segment.header_mut(self.mask).left -= 1;
            let slot = segment.claim(self.mask, self.home(hash));
            segment.write_boxed(slot, tag(hash), entry);
        }
        self.free_stash();
    }

    /// Takes the entry out of a slot of an overflowed group, and lets others move back.
    #[cold]
    #[inline(never)]
    fn take_and_shift(
        &mut self,
        segment: Segment<T>,
        slot: usize,
        hasher: &impl Fn(&T) -> u64,
    ) -> T {
        let mut chain = [0; policy::GROUPS];
        // The hasher may panic: nothing has changed until it has returned.
        let length = self.find_chain(segment, slot, hasher, &mut chain);
        let entry = segment.take(slot);
        let mut vacancy = slot;
        for &from in &chain[..length] {
            segment.relocate(from, segment, vacancy);
            segment.uncount(self.mask, vacancy & !(GROUP - 1), from & !(GROUP - 1));
            vacancy = from;
        }
        entry
    }

    /// The slots whose entries move, each to the one before it, when the entry in `slot` goes.
    fn find_chain(
        &self,
        segment: Segment<T>,
        slot: usize,
        hasher: &impl Fn(&T) -> u64,
        chain: &mut [usize; policy::GROUPS],
    ) -> usize {
        let (mut vacancy, mut length) = (slot, 0);
        while length < chain.len() {
            let Some(next) = self.next_to_shift(segment, vacancy & !(GROUP - 1), hasher) else {
                break;
            };
            chain[length] = next;
            length += 1;
            vacancy = next;
        }
        length
    }

    /// The slot of the first entry in later groups that a group was too full for.
    fn next_to_shift(
        &self,
        segment: Segment<T>,
        group: usize,
        hasher: &impl Fn(&T) -> u64,
    ) -> Option<usize> {
        let mask = self.mask;
        let mut offset = group;
        while segment.overflow(mask, offset) > 0 {
            offset = self.next(offset);
            if offset == group {
                return None;
            }
            for slot in segment.group(offset).full() {
                let home = self.home(hasher(segment.get(offset + slot)));
                let (from_home, from_group) =
                    (offset.wrapping_sub(home) & mask, offset.wrapping_sub(group) & mask);
                if from_home >= from_group {
                    return Some(offset + slot);
                }
            }
        }
        None
    }

    /// Prefetches the tags that a lookup of this hash begins with.
    #[inline(always)]
    pub(crate) fn prefetch_group(&self, hash: u64) {
        self.directory.segment(hash).prefetch_group(self.home(hash));
    }

    /// Prefetches the entry that may have this hash; its tags should be in the cache already.
    #[inline(always)]
    pub(crate) fn prefetch_entry(&self, hash: u64) {
        let (segment, home) = (self.directory.segment(hash), self.home(hash));
        let matches = segment.group(home).matches(tag(hash));
        if !matches.is_empty() {
            segment.prefetch_slot(home + matches.lowest());
        }
    }

    /// Whether a tag is that of a free slot: for tests of the invariants.
    pub(super) fn is_free(segment: Segment<T>, slot: usize) -> bool {
        segment.tag(slot) == FREE
    }
}
