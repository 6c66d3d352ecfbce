//! Slots by number: the slots of each index of the directory, then the places of the stash.

use super::Table;
use super::iter_hash::SlotsOfHash;
use super::probe::Position;
use super::tags::GROUP;
use crate::memory::Allocator;

impl<T, A: Allocator + Clone> Table<T, A> {
    /// The numbers of the slots of a segment.
    fn width(&self) -> usize {
        self.mask + GROUP
    }

    /// The number of the first place of the stash.
    fn first_stashed(&self) -> usize {
        if self.directory.is_allocated() { self.directory.len() * self.width() } else { 0 }
    }

    /// All numbers are below this one.
    pub(crate) fn end_of_numbers(&self) -> usize {
        self.first_stashed() + self.stash.len()
    }

    /// The number of an occupied slot.
    pub(crate) fn number_of(&self, at: Position) -> usize {
        if at.index == Position::STASH {
            return self.first_stashed() + at.slot;
        }
        let depth = self.directory.segment(at.index as u64).header(self.mask).depth;
        (at.index & ((1 << depth) - 1)) * self.width() + at.slot
    }

    /// The occupied slot with a number. Its hash is known in the bits that choose the segment.
    pub(crate) fn at_number(&self, number: usize) -> Option<Position> {
        if let Some(slot) = number.checked_sub(self.first_stashed()) {
            let &(hash, _) = self.stash.get(slot)?;
            return Some(Position::in_stash(slot, hash));
        }
        let index = number / self.width();
        let at = Position::new(index, number % self.width(), index as u64);
        let segment = self.occupied(at)?;
        // An index above the segment's own one has its slots, too, by other numbers.
        (index >> segment.header(self.mask).depth == 0).then_some(at)
    }

    /// The numbers of all occupied slots.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = usize> {
        let (mask, width) = (self.mask, self.width());
        let in_segments = self.directory.numbers(mask).flat_map(move |(number, segment)| {
            segment.slots(mask).map(move |(_, slot)| number * width + slot)
        });
        in_segments.chain(self.first_stashed()..self.end_of_numbers())
    }

    /// The numbers of the entries that may have a hash.
    pub(crate) fn numbers_of_hash(&self, hash: u64) -> impl Iterator<Item = usize> {
        let index = self.directory.index(hash);
        let slots =
            SlotsOfHash::new(self, hash).map(move |(_, slot)| Position::new(index, slot, hash));
        let is_it = move |&slot: &usize| self.stash[slot].0 == hash;
        let stashed = (0..self.stash.len()).filter(is_it);
        slots
            .chain(stashed.map(move |slot| Position::in_stash(slot, hash)))
            .map(|at| self.number_of(at))
    }
}
