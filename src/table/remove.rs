//! Removing.
//!
//! An entry of a group with a free slot goes, and that is all. From a full group others may have
//! been displaced, which a search would not reach any more:
//!
//! ```text
//!     home of     a a a a   b b a c   c · · ·       groups of four; the first a is to go
//!     swapped     a a a a   b b ✗ c   c · · ·       with the first entry that has passed its group
//!     swapped     a a a a   b b c c   ✗ · · ·       and so on, until its group is not full
//!     removed     a a a a   b b c c   · · · ·
//! ```
//!
//! The table is valid after each swap: the entry that is to go has been displaced, and found. So a
//! hasher that panics on the way leaves all entries in their places.

use super::probe::Position;
use super::segment::Segment;
use super::tags::{FREE, GROUP, tag};
use super::{STASHED, Table};
use crate::memory::{Allocator, Vec};

impl<T, A: Allocator + Clone> Table<T, A> {
    /// Removes the entry of this hash for which `eq` returns true, and makes the table smaller if
    /// that is due. `hasher` returns the hashes of entries that have to move.
    #[inline]
    pub(crate) fn remove(
        &mut self,
        hash: u64,
        mut eq: impl FnMut(&T) -> bool,
        hasher: &impl Fn(&T) -> u64,
    ) -> Option<T> {
        let hit = |segment, slot| Some((segment, slot));
        let Some((segment, slot)) = self.search(hash, &mut eq, hit, |_, _| None) else {
            return if self.has_extras() { self.remove_stashed(hash, eq) } else { None };
        };
        let is_at_home = slot & !(GROUP - 1) == self.home(hash);
        let entry = self.vacate(segment, slot, is_at_home, hasher);
        if self.has_extras() {
            self.unstash();
        }
        self.shrink_around_in(segment, hash, hasher);
        Some(entry)
    }

    #[cold]
    #[inline(never)]
    fn remove_stashed(&mut self, hash: u64, eq: impl FnMut(&T) -> bool) -> Option<T> {
        let at = self.search_stash(hash, eq)?;
        let entry = self.take_stashed(at);
        self.unstash();
        entry
    }

    /// Removes the entry at a position. The table does not get smaller: see
    /// [`Self::shrink_around`]. `hasher` returns the hashes of entries that have to move.
    pub(crate) fn take(&mut self, at: Position, hasher: &impl Fn(&T) -> u64) -> Option<T> {
        let entry = self.take_slot(at, hasher);
        self.unstash();
        entry
    }

    /// Removes the entry at a position, such as a cursor's. Entries of the stash stay there: with a
    /// cursor, their segments may have been visited.
    pub(crate) fn take_slot(&mut self, at: Position, hasher: &impl Fn(&T) -> u64) -> Option<T> {
        if at.index == Position::STASH {
            return self.take_stashed(at.slot);
        }
        let segment = self.occupied(at)?;
        // Not by the hash: a closure may have changed the entry before its removal.
        let is_at_home = !segment.is_displaced(self.mask, at.slot);
        Some(self.vacate(segment, at.slot, is_at_home, hasher))
    }

    /// Removes the entry from an occupied slot, and returns it.
    #[inline]
    fn vacate(
        &mut self,
        segment: Segment<T>,
        mut slot: usize,
        is_at_home: bool,
        hasher: &impl Fn(&T) -> u64,
    ) -> T {
        if !is_at_home || segment.is_group_full(slot & !(GROUP - 1)) {
            slot = self.shift_back(segment, slot, hasher);
        }
        let entry = segment.take(slot, self.allocator());
        segment.header_mut(self.mask).len -= 1;
        self.len -= 1;
        entry
    }

    /// Exchanges an entry with others until it can go. Returns the slot that it is in then.
    #[cold]
    #[inline(never)]
    fn shift_back(
        &self,
        segment: Segment<T>,
        mut slot: usize,
        hasher: &impl Fn(&T) -> u64,
    ) -> usize {
        while let Some((next, home)) = self.next_to_shift(segment, slot & !(GROUP - 1), hasher) {
            segment.swap(slot, next);
            segment.mark_displaced(self.mask, slot, slot & !(GROUP - 1) != home);
            slot = next;
        }
        segment.mark_displaced(self.mask, slot, false);
        slot
    }

    /// The slot of the first entry that has passed a group, and its home.
    fn next_to_shift(
        &self,
        segment: Segment<T>,
        group: usize,
        hasher: &impl Fn(&T) -> u64,
    ) -> Option<(usize, usize)> {
        let mask = self.mask;
        let mut offset = group;
        while segment.is_group_full(offset) {
            offset = self.next(offset);
            if offset == group {
                return None;
            }
            for slot in segment.displaced_slots(mask, offset) {
                let home = self.home(hasher(segment.get(slot)));
                let (from_home, from_group) =
                    (offset.wrapping_sub(home) & mask, offset.wrapping_sub(group) & mask);
                if from_home >= from_group {
                    return Some((slot, home));
                }
            }
        }
        None
    }

    /// Removes an entry of the stash.
    fn take_stashed(&mut self, at: usize) -> Option<T> {
        if at >= self.stash.len() {
            return None;
        }
        let (_, entry) = self.stash.swap_remove(at);
        self.free_stash();
        self.len -= 1;
        Some(entry.into_entry(self.allocator()))
    }

    /// Frees the stash if it is empty.
    pub(super) fn free_stash(&mut self) {
        if self.stash.is_empty() {
            self.stash = Vec::new_in(self.allocator().clone());
            self.extras &= !STASHED;
        }
    }

    /// Moves the last entry of the stash to its segment, if that has room.
    #[cold]
    fn unstash(&mut self) {
        let Some(&(hash, _)) = self.stash.last() else { return };
        let segment = self.directory.segment(hash);
        if segment.header(self.mask).is_at_limit() {
            return;
        }
        if let Some((_, entry)) = self.stash.pop() {
            segment.header_mut(self.mask).len += 1;
            let slot = segment.claim(self.mask, self.home(hash));
            segment.write_boxed(slot, tag(hash), entry, self.allocator());
        }
        self.free_stash();
    }

    /// Whether a slot is free by its tag: for tests of the invariants.
    pub(super) fn is_free(segment: Segment<T>, slot: usize) -> bool {
        segment.tag(slot) == FREE
    }
}
