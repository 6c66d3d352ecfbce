//! Entries at stable slots that never move: a [slab](crate::raw::slab) that grows without copying.
//!
//! ```text
//!     chunks   │ a │ b │ ──┐ … │   │ … │ ◂─┘ │ z │        free: 2 → 1025 → end
//! ```
//!
//! For tables of millions of entries that must not pause: growth allocates a chunk and copies nothing,
//! where a vector would copy them all. What that costs is one more load for each access.
//!
//! Price: all is O(1). The memory of freed slots is kept for entries to come.

use core::mem;

use crate::raw::chunked_vec::Chunks;
use crate::raw::prefetch::prefetch_value;

/// The end of the free list.
const END: u32 = u32::MAX;

#[derive(Clone, Debug)]
enum Slot<T> {
    Taken(T),
    /// The next free slot, or [`END`].
    Free(u32),
}

/// Entries of `T` under numbers that stay the same.
#[derive(Clone, Debug)]
pub(crate) struct Slots<T> {
    slots: Chunks<Slot<T>>,
    first_free: u32,
    len: usize,
}

impl<T> Slots<T> {
    /// Bytes for the slots that are allocated together.
    pub(crate) const GROWTH: usize = Chunks::<Slot<T>>::GROWTH;

    pub(crate) const fn new() -> Self {
        Self { slots: Chunks::new(), first_free: END, len: 0 }
    }

    /// The number of entries.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// The number of slots there are, free ones included: all numbers are below it.
    pub(crate) fn count(&self) -> u32 {
        self.slots.len()
    }

    /// The slot that the next insertion fills.
    pub(crate) fn next(&self) -> u32 {
        if self.first_free == END { self.slots.len() } else { self.first_free }
    }

    /// Whether the next insertion may allocate.
    pub(crate) fn is_full(&self) -> bool {
        self.first_free == END
    }

    /// Bytes that the next insertion allocates.
    pub(crate) fn growth(&self) -> usize {
        if self.is_full() { self.slots.growth() } else { 0 }
    }

    /// Asks for the memory of a slot.
    #[inline]
    pub(crate) fn prefetch(&self, slot: u32) {
        if let Some(slot) = self.slots.get(slot) {
            prefetch_value(slot);
        }
    }

    /// Puts in an entry and returns its slot, which is the [`next`](Self::next) one.
    pub(crate) fn insert(&mut self, entry: T) -> u32 {
        self.len += 1;
        let slot = self.first_free;
        match self.slots.get_mut(slot) {
            None => self.slots.push(Slot::Taken(entry)),
            Some(place) => {
                if let Slot::Free(next) = mem::replace(place, Slot::Taken(entry)) {
                    self.first_free = next;
                }
                slot
            }
        }
    }

    /// Takes out the entry of a slot, if there is one.
    pub(crate) fn take(&mut self, slot: u32) -> Option<T> {
        let place = self.slots.get_mut(slot)?;
        if let Slot::Free(_) = place {
            return None;
        }
        let Slot::Taken(entry) = mem::replace(place, Slot::Free(self.first_free)) else {
            return None;
        };
        self.first_free = slot;
        self.len -= 1;
        Some(entry)
    }

    #[inline]
    pub(crate) fn get(&self, slot: u32) -> Option<&T> {
        match self.slots.get(slot)? {
            Slot::Taken(entry) => Some(entry),
            Slot::Free(_) => None,
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        match self.slots.get_mut(slot)? {
            Slot::Taken(entry) => Some(entry),
            Slot::Free(_) => None,
        }
    }

    /// Bytes allocated, freed slots included.
    pub(crate) fn allocation_size(&self) -> usize {
        self.slots.allocation_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_keeps_its_slot_and_freed_slots_are_used_again() {
        let mut slots = Slots::new();
        let [a, b, c] = ['a', 'b', 'c'].map(|entry| slots.insert(entry));
        assert_eq!((slots.take(b), slots.take(a), slots.take(a)), (Some('b'), Some('a'), None));
        assert_eq!(
            (slots.get(c), slots.get(a), slots.get(7), slots.len()),
            (Some(&'c'), None, None, 1)
        );
        assert_eq!((slots.next(), slots.insert('d'), slots.insert('e')), (a, a, b));
        assert!(slots.is_full());
        assert_eq!((slots.next(), slots.insert('f'), slots.count()), (3, 3, 4));
        *slots.get_mut(3).unwrap() = 'g';
        assert_eq!(slots.get(3), Some(&'g'));
    }
}
