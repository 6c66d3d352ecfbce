//! Slots in rings, each with a hand that goes round: the clocks behind [`SecondChance`](super::SecondChance) and
//! [`ByClass`](super::ByClass).
//!
//! ```text
//!               hand                                                    hand
//!                 ▾  used                                                 ▾
//!     a   b   c   d   e   f   g        e is the victim      a  b  c  d  –  f  g
//!                     ▴ unused                              a  b  c  d  x  f  g     x comes
//! ```
//!
//! A ring is an array, so what the hand will come to is known ahead and can be fetched ahead: a list would
//! have to be followed from slot to slot, with a cache miss for each. Who comes takes the place of who
//! left last, which is behind the hand if it was the victim: so the newcomer has the longest way before
//! it. If several leave in a row, the last of the array fills the place of each but one.
//!
//! What holds: a slot is in one ring at most, and `places` says where; a ring has no gaps but its hole.
//!
//! Price: all is O(1). 4 bytes for each slot, and 4 for each slot of each ring when it had the most.

use super::Standing;
use crate::raw::chunked_vec::ChunkedVec;
use crate::timestamp::Timestamp;

/// Nobody: the place of a slot in no ring, and who is in the hole.
const NONE: u32 = u32::MAX;

/// Most slots that the hand passes for one victim. With more than 8 in a row in use nearly all are, and
/// then the one that was silent longest of 8 is a good victim.
const LOOKS: u32 = 8;

/// Bits of a place for the position in the ring; the upper ones are for the ring.
const POSITION: u32 = 30;

#[derive(Clone, Debug)]
struct Ring {
    members: ChunkedVec<u32>,
    /// Members in use, the hole included.
    len: u32,
    /// The position of nobody, or [`NONE`].
    hole: u32,
    hand: u32,
}

impl Ring {
    const fn new() -> Self {
        Self { members: ChunkedVec::new(), len: 0, hole: NONE, hand: 0 }
    }

    fn count(&self) -> usize {
        self.len as usize - usize::from(self.hole != NONE)
    }

    /// Takes in a slot and returns its position.
    fn enter(&mut self, slot: u32) -> u32 {
        let position = if self.hole == NONE { self.len } else { self.hole };
        self.hole = NONE;
        self.len = self.len.max(position + 1);
        match self.members.get_mut(position) {
            Some(member) => *member = slot,
            None => _ = self.members.push(slot),
        }
        position
    }

    /// Makes a position the hole. Returns who has moved to the former hole, if anyone, and to where.
    fn leave(&mut self, position: u32) -> Option<(u32, u32)> {
        let hole = core::mem::replace(&mut self.hole, position);
        self.members[position] = NONE;
        if hole == NONE {
            return None;
        }
        self.len -= 1;
        let last = self.members[self.len];
        if last == NONE {
            // The last one is a hole itself: this one, or the former.
            self.hole = hole.min(position);
            return None;
        }
        self.members[hole] = last;
        Some((last, hole))
    }

    /// Who is at the hand, which goes on.
    fn pass(&mut self) -> Option<u32> {
        let position = if self.hand < self.len { self.hand } else { 0 };
        self.hand = position + 1;
        let slot = *self.members.get(position)?;
        (slot != NONE).then_some(slot)
    }

    /// Who is at the hand and behind it.
    fn upcoming(&self) -> impl Iterator<Item = u32> {
        let (before, behind) = (0..self.hand.min(self.len), self.hand..self.len);
        behind.chain(before).map(|at| self.members[at]).filter(|slot| *slot != NONE)
    }
}

/// Slots in `N` rings, `N` up to 4.
#[derive(Clone, Debug)]
pub(super) struct Rings<const N: usize> {
    rings: [Ring; N],
    /// By slot: ring and position.
    places: ChunkedVec<u32>,
}

impl<const N: usize> Rings<N> {
    pub(super) const fn new() -> Self {
        Self { rings: [const { Ring::new() }; N], places: ChunkedVec::new() }
    }

    /// Slots in a ring.
    pub(super) fn count(&self, ring: usize) -> usize {
        self.rings[ring].count()
    }

    fn place(&self, slot: u32) -> Option<(usize, u32)> {
        let place = *self.places.get(slot)?;
        (place != NONE).then_some(((place >> POSITION) as usize, place & ((1 << POSITION) - 1)))
    }

    fn set_place(&mut self, slot: u32, ring: usize, position: u32) {
        self.places[slot] = (ring as u32) << POSITION | position;
    }

    /// The ring of a slot.
    pub(super) fn ring_of(&self, slot: u32) -> Option<usize> {
        self.place(slot).map(|(ring, _)| ring)
    }

    /// Puts a slot into a ring, out of the one in which it was.
    ///
    /// # Panics
    ///
    /// If the slot is 2^30 - 1 or more.
    pub(super) fn enter(&mut self, slot: u32, ring: usize) {
        assert!(slot < (1 << POSITION) - 1, "slot {slot}: must be less than 2^30 - 1");
        self.leave(slot);
        self.places.cover(slot, NONE);
        let position = self.rings[ring].enter(slot);
        self.set_place(slot, ring, position);
    }

    /// Takes a slot out of its ring, if it is in one.
    pub(super) fn leave(&mut self, slot: u32) {
        let Some((ring, position)) = self.place(slot) else { return };
        self.places[slot] = NONE;
        if let Some((moved, position)) = self.rings[ring].leave(position) {
            self.set_place(moved, ring, position);
        }
    }

    /// The next slot of a ring that was not used, if the hand finds one in 8; it takes the marks of those
    /// that were.
    pub(super) fn first_unused(
        &mut self,
        ring: usize,
        mut look: impl FnMut(u32) -> Standing,
    ) -> Option<u32> {
        let ring = &mut self.rings[ring];
        // One position more, for the hole.
        (0..=LOOKS).filter_map(|_| ring.pass()).take(LOOKS as usize).find(|slot| !look(*slot).used)
    }

    /// The next slot of a ring that was not used. After 8 used ones, that of them which was used longest
    /// ago, the first of equals.
    ///
    /// In a ring of fewer than 8 a slot comes round again, and by then its mark is gone.
    pub(super) fn second_chance(
        &mut self,
        ring: usize,
        mut look: impl FnMut(u32) -> Standing,
    ) -> Option<u32> {
        let mut oldest: Option<(Timestamp, u32)> = None;
        let unused = self.first_unused(ring, |slot| {
            let standing = look(slot);
            if oldest.is_none_or(|(least, _)| standing.last_use < least) {
                oldest = Some((standing.last_use, slot));
            }
            standing
        });
        unused.or(oldest.map(|(_, slot)| slot))
    }

    /// Fills `slots` with those of a ring that the hand comes to next, and returns how many they are.
    pub(super) fn upcoming(&self, ring: usize, slots: &mut [u32]) -> usize {
        let upcoming = slots.iter_mut().zip(self.rings[ring].upcoming());
        upcoming.map(|(place, slot)| *place = slot).count()
    }

    pub(super) fn allocation_size(&self) -> usize {
        let members = self.rings.iter().map(|ring| ring.members.allocation_size());
        self.places.allocation_size() + members.sum::<usize>()
    }
}
