//! CLOCK rings: circular arrays of slots, each with a hand, for
//! [`SecondChance`](super::SecondChance) and [`ByClass`](super::ByClass).
//!
//! ```text
//!               hand                                                    hand
//!                 ▾  used                                                 ▾
//!     a   b   c   d   e   f   g        e is the victim      a  b  c  d  –  f  g
//!                     ▴ unused                              a  b  c  d  x  f  g     x is inserted
//! ```
//!
//! A ring is an array, so the next slots under the hand are known and can be prefetched; a linked
//! list would have a dependent cache miss for each slot. An insertion fills the vacancy of the last
//! removal. After an eviction the vacancy is the position that the hand has just passed, so the new
//! entry is examined last. Of several removals in a row, each but the last has its vacancy filled
//! by the last slot of the array.
//!
//! Invariants: a slot is in at most one ring, at its recorded position; a ring has at most one
//! vacancy.
//!
//! Cost: all operations are O(1). 4 bytes for each slot, and 4 for each slot of the maximum length
//! of each ring.

use super::EntryStats;
use crate::raw::chunked_vec::ChunkedVec;
use crate::raw::index::OptIndex;
use crate::timestamp::Timestamp;

/// Maximum number of slots that the hand passes for one victim. If more than 8 in a row were used,
/// nearly all were, and then the least recently used of 8 is a good victim.
const MAX_EXAMINED: u32 = 8;

/// Bits of a packed [`Location`] for the position in the ring; the upper bits are the ring.
const POSITION_BITS: u32 = 30;

/// The ring of a slot, and its position in the ring.
#[derive(Clone, Copy)]
struct Location {
    ring: usize,
    position: u32,
}

impl Location {
    fn packed(self) -> OptIndex {
        OptIndex::some((self.ring as u32) << POSITION_BITS | self.position)
    }

    fn unpack(packed: OptIndex) -> Option<Self> {
        let bits = packed.get()?;
        let position = bits & ((1 << POSITION_BITS) - 1);
        Some(Self { ring: (bits >> POSITION_BITS) as usize, position })
    }
}

#[derive(Clone, Debug)]
struct Ring {
    /// By position. None at the vacancy; meaningless from `len` on.
    slots: ChunkedVec<OptIndex>,
    /// Positions in use, the vacancy included.
    len: u32,
    /// The position without a slot.
    vacancy: OptIndex,
    /// The position that is examined next; the first one if it is `len` or more.
    hand: u32,
}

impl Ring {
    const fn new() -> Self {
        Self { slots: ChunkedVec::new(), len: 0, vacancy: OptIndex::NONE, hand: 0 }
    }

    fn count(&self) -> usize {
        self.len as usize - usize::from(self.vacancy.is_some())
    }

    /// Inserts a slot and returns its position.
    fn insert(&mut self, slot: u32) -> u32 {
        let position = self.vacancy.get().unwrap_or(self.len);
        self.vacancy = OptIndex::NONE;
        self.len = self.len.max(position + 1);
        match self.slots.get_mut(position) {
            Some(vacant) => *vacant = OptIndex::some(slot),
            None => _ = self.slots.push(OptIndex::some(slot)),
        }
        position
    }

    /// Makes a position the vacancy, and fills the previous vacancy, if any. Returns the slot that
    /// was moved for this and its new position.
    fn remove(&mut self, position: u32) -> Option<(u32, u32)> {
        let previous = core::mem::replace(&mut self.vacancy, OptIndex::some(position));
        self.slots[position] = OptIndex::NONE;
        let previous = previous.get()?;
        self.len -= 1;
        let Some(last) = self.slots[self.len].get() else {
            // The last position is itself vacant: this one or the previous one.
            self.vacancy = OptIndex::some(previous.min(position));
            return None;
        };
        self.slots[previous] = OptIndex::some(last);
        Some((last, previous))
    }

    /// Returns the slot under the hand, if it is not vacant, and advances the hand.
    fn advance(&mut self) -> Option<u32> {
        let position = if self.hand < self.len { self.hand } else { 0 };
        self.hand = position + 1;
        self.slots.get(position)?.get()
    }

    /// Iterates over all slots once, from the hand on.
    fn upcoming(&self) -> impl Iterator<Item = u32> {
        let hand = self.hand.min(self.len);
        (hand..self.len).chain(0..hand).filter_map(|position| self.slots[position].get())
    }
}

/// `N` rings of slots, `N` up to 4.
#[derive(Clone, Debug)]
pub(super) struct Rings<const N: usize> {
    rings: [Ring; N],
    /// The packed [`Location`] of each slot.
    locations: ChunkedVec<OptIndex>,
}

impl<const N: usize> Rings<N> {
    pub(super) const fn new() -> Self {
        Self { rings: [const { Ring::new() }; N], locations: ChunkedVec::new() }
    }

    /// Returns the number of slots in a ring.
    pub(super) fn count(&self, ring: usize) -> usize {
        self.rings[ring].count()
    }

    fn location(&self, slot: u32) -> Option<Location> {
        Location::unpack(*self.locations.get(slot)?)
    }

    /// Returns the ring of a slot.
    pub(super) fn ring_of(&self, slot: u32) -> Option<usize> {
        self.location(slot).map(|location| location.ring)
    }

    /// Inserts a slot into a ring, and removes it from its previous ring.
    ///
    /// # Panics
    ///
    /// If the slot is 2^30 - 1 or more.
    pub(super) fn insert(&mut self, slot: u32, ring: usize) {
        assert!(slot < (1 << POSITION_BITS) - 1, "slot {slot}: must be less than 2^30 - 1");
        self.remove(slot);
        self.locations.cover(slot, OptIndex::NONE);
        let position = self.rings[ring].insert(slot);
        self.locations[slot] = Location { ring, position }.packed();
    }

    /// Removes a slot from its ring, if it is in one.
    pub(super) fn remove(&mut self, slot: u32) {
        let Some(Location { ring, position }) = self.location(slot) else { return };
        self.locations[slot] = OptIndex::NONE;
        if let Some((moved, position)) = self.rings[ring].remove(position) {
            self.locations[moved] = Location { ring, position }.packed();
        }
    }

    /// Returns the next slot of a ring that was not used, if there is one among the next 8. Clears
    /// the marks of the used ones.
    pub(super) fn first_unused(
        &mut self,
        ring: usize,
        mut stats: impl FnMut(u32) -> EntryStats,
    ) -> Option<u32> {
        let ring = &mut self.rings[ring];
        // One more position than slots, for the vacancy.
        let slots = (0..=MAX_EXAMINED).filter_map(|_| ring.advance());
        slots.take(MAX_EXAMINED as usize).find(|slot| !stats(*slot).used)
    }

    /// Returns the next slot of a ring that was not used; if the next 8 were all used, the least
    /// recently used of them, the first one of equals.
    ///
    /// In a ring of fewer than 8 slots the hand returns to a slot, whose mark is cleared by then.
    pub(super) fn second_chance(
        &mut self,
        ring: usize,
        mut stats: impl FnMut(u32) -> EntryStats,
    ) -> Option<u32> {
        let mut oldest: Option<(Timestamp, u32)> = None;
        let unused = self.first_unused(ring, |slot| {
            let entry = stats(slot);
            if oldest.is_none_or(|(last_use, _)| entry.last_use < last_use) {
                oldest = Some((entry.last_use, slot));
            }
            entry
        });
        unused.or(oldest.map(|(_, slot)| slot))
    }

    /// Writes the next slots under the hand of a ring to the front of `slots`, and returns their
    /// number.
    pub(super) fn upcoming(&self, ring: usize, slots: &mut [u32]) -> usize {
        let upcoming = slots.iter_mut().zip(self.rings[ring].upcoming());
        upcoming.map(|(slot, next)| *slot = next).count()
    }

    pub(super) fn allocation_size(&self) -> usize {
        let slots = self.rings.iter().map(|ring| ring.slots.allocation_size());
        self.locations.allocation_size() + slots.sum::<usize>()
    }
}
