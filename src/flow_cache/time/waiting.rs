//! Slots that the timer wheel has no memory for.
//!
//! ```text
//!     waiting ─▸ 9 ─▸ 4 ─▸ –     not due before the tick `again`, when all of them become due
//!     due     ─▸ 7 ─▸ –          due until they are armed for later, the first one first
//! ```
//!
//! The links are in the places of slots, which have no meaning for a slot that is in no list of
//! the wheel. So a slot is armed without allocating, and is due at its tick or before.
//!
//! Cost: O(1), but O(slots here) for the removal of a slot that is not the first due one.

use crate::invariant::{InvariantError, ensure};
use crate::memory::Allocator;
use crate::raw::chunked_vec::{ChunkedVec, DEFAULT_BITS};

/// A number for each slot.
pub(crate) type Places<A> = ChunkedVec<u32, DEFAULT_BITS, A>;

/// No slot.
const NONE: u32 = u32::MAX;

/// The tick at which nothing is due.
const NEVER: u64 = u64::MAX;

/// Two stacks of slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    waiting: u32,
    due: u32,
    /// No later than the tick of each waiting slot; [`NEVER`] without any.
    again: u64,
}

impl Waiting {
    pub(crate) const EMPTY: Self = Self { waiting: NONE, due: NONE, again: NEVER };

    /// Adds a slot that is due at a tick.
    #[cold]
    pub(crate) fn push<A>(&mut self, places: &mut Places<A>, slot: u32, tick: u64)
    where
        A: Allocator + Clone,
    {
        places[slot] = core::mem::replace(&mut self.waiting, slot);
        self.hasten(tick);
    }

    /// Makes all slots due at a tick, unless they are before.
    pub(crate) fn hasten(&mut self, tick: u64) {
        self.again = self.again.min(tick);
    }

    /// Whether this is the first due slot.
    pub(crate) const fn is_first(&self, slot: u32) -> bool {
        self.due == slot
    }

    /// The tick at which slots are due: 0 if some are; `None` if there are no slots.
    #[inline]
    pub(crate) const fn next(&self) -> Option<u64> {
        match (self.due, self.again) {
            (NONE, NEVER) => None,
            (NONE, again) => Some(again),
            _ => Some(0),
        }
    }

    /// Writes the first due slots to `slots`, and returns their number.
    pub(crate) fn first<A>(&mut self, places: &Places<A>, now: u64, slots: &mut [u32]) -> usize
    where
        A: Allocator + Clone,
    {
        if self.due == NONE && self.again <= now {
            (self.due, self.waiting, self.again) = (self.waiting, NONE, NEVER);
        }
        let due = Self::stack(self.due, places);
        slots.iter_mut().zip(due).map(|(place, slot)| *place = slot).count()
    }

    /// Removes a slot.
    #[cold]
    pub(crate) fn remove<A>(&mut self, places: &mut Places<A>, slot: u32)
    where
        A: Allocator + Clone,
    {
        let after = places[slot];
        for head in [&mut self.due, &mut self.waiting] {
            if *head == slot {
                *head = after;
                break;
            }
            let before = Self::stack(*head, places).find(|before| places[*before] == slot);
            if let Some(before) = before {
                places[before] = after;
                break;
            }
        }
        if self.waiting == NONE {
            self.again = NEVER;
        }
    }

    fn stack<A>(head: u32, places: &Places<A>) -> impl Iterator<Item = u32>
    where
        A: Allocator + Clone,
    {
        let slot = |slot: u32| (slot != NONE).then_some(slot);
        core::iter::successors(slot(head), move |at| slot(places[*at]))
    }

    /// Checks that each slot is one of those that wait, once. Returns their number.
    pub(crate) fn validate<A>(
        &self,
        places: &Places<A>,
        is_waiting: impl Fn(u32) -> bool,
    ) -> Result<usize, InvariantError>
    where
        A: Allocator + Clone,
    {
        let mut count = 0;
        for slot in [self.due, self.waiting].into_iter().flat_map(|head| Self::stack(head, places))
        {
            ensure(is_waiting(slot), || "a slot that does not wait")?;
            count += 1;
            ensure(count <= places.len() as usize, || "slots wait in a circle")?;
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Global;

    #[test]
    fn the_first_due_slot_is_removed_without_a_walk_over_the_others() {
        let mut places = Places::new_in(4, Global);
        places.cover(3, NONE);
        let mut waiting = Waiting::EMPTY;
        waiting.push(&mut places, 0, 5);
        waiting.push(&mut places, 1, 5);
        let mut slots = [NONE; 4];
        assert_eq!(waiting.first(&places, 5, &mut slots), 2);
        assert_eq!(slots[..2], [1, 0]);
        // A stack that ends in a slot without a place: a walk over it would panic.
        waiting.push(&mut places, 2, 9);
        places[2] = 99;
        waiting.remove(&mut places, 1);
        assert!(waiting.is_first(0));
        waiting.remove(&mut places, 0);
        assert_eq!(waiting.next(), Some(9));
    }
}
