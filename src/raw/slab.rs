//! Entries at stable slots: a vector whose freed slots are used again.
//!
//! ```text
//!     slots   │ a │ ──┐ │ c │ ◂─┘ │ e │        free: 1 → 3 → end
//! ```
//!
//! An entry keeps its index until it is taken out, so structures link entries by 4-byte index
//! instead of by pointer, and stay safe Rust. An index is good for as long as its entry: whoever
//! keeps one takes care that it is forgotten when the entry is taken.
//!
//! Price: insertion and removal are O(1), amortised for the growth of the vector. The memory of
//! freed slots is kept for the next insertion.

use alloc::vec::Vec;
use core::mem;
use core::ops::{Index, IndexMut};

/// The end of the free list.
const END: u32 = u32::MAX;

/// As many entries as a slab holds. Indices stay below it, so users have their upper halves for
/// themselves, and one index more.
const MAX_LEN: usize = (1 << 31) - 1;

#[derive(Clone, Debug)]
enum Slot<T> {
    Taken(T),
    /// The next free slot, or [`END`].
    Free(u32),
}

/// Entries of `T` under indices that stay the same.
#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<Slot<T>>,
    first_free: u32,
    len: usize,
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new(), first_free: END, len: 0 }
    }

    /// The number of entries.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Whether it has as many entries as it can.
    pub(crate) const fn is_full(&self) -> bool {
        self.len >= MAX_LEN
    }

    /// Whether there is memory for an entry more.
    pub(crate) fn try_reserve(&mut self) -> bool {
        self.first_free != END || self.slots.try_reserve(1).is_ok()
    }

    /// Whether there is memory for so many entries in all, which it then never allocates again.
    pub(crate) fn try_reserve_exact(&mut self, entries: usize) -> bool {
        self.slots.try_reserve_exact(entries.saturating_sub(self.slots.len())).is_ok()
    }

    /// Puts in an entry and returns its index.
    ///
    /// # Panics
    ///
    /// If there are 2^31 - 1 entries already.
    pub(crate) fn insert(&mut self, entry: T) -> u32 {
        let index = self.first_free;
        if index == END {
            assert!(self.slots.len() < MAX_LEN, "more than 2^31 - 1 entries");
            self.slots.push(Slot::Taken(entry));
            self.len += 1;
            return self.slots.len() as u32 - 1;
        }
        self.len += 1;
        match mem::replace(&mut self.slots[index as usize], Slot::Taken(entry)) {
            Slot::Free(next) => self.first_free = next,
            Slot::Taken(_) => unreachable!("the free list leads to free slots only"),
        }
        index
    }

    /// Takes out the entry at `index`, which must be there.
    pub(crate) fn take(&mut self, index: u32) -> T {
        match mem::replace(&mut self.slots[index as usize], Slot::Free(self.first_free)) {
            Slot::Taken(entry) => {
                self.first_free = index;
                self.len -= 1;
                entry
            }
            Slot::Free(_) => unreachable!("an index is good for as long as its entry"),
        }
    }

    /// Drops the entry at `index`, which must be there, without moving it.
    pub(crate) fn free(&mut self, index: u32) {
        self.slots[index as usize] = Slot::Free(self.first_free);
        self.first_free = index;
        self.len -= 1;
    }

    /// Closes the gaps and gives back the memory of freed slots. Returns the new index of each
    /// entry by its old one.
    pub(crate) fn compact(&mut self) -> Vec<u32> {
        let mut renumbered = Vec::with_capacity(self.slots.len());
        let mut next = 0;
        self.slots.retain(|slot| {
            renumbered.push(next);
            let taken = matches!(slot, Slot::Taken(_));
            next += u32::from(taken);
            taken
        });
        self.slots.shrink_to_fit();
        self.first_free = END;
        renumbered
    }

    /// Every entry, in the order of their slots, together with its index.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        self.slots.iter_mut().enumerate().filter_map(|(index, slot)| match slot {
            Slot::Taken(entry) => Some((index as u32, entry)),
            Slot::Free(_) => None,
        })
    }

    /// Bytes allocated, freed slots included.
    pub(crate) fn allocation_size(&self) -> usize {
        self.slots.capacity() * mem::size_of::<Slot<T>>()
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: u32) -> &T {
        match &self.slots[index as usize] {
            Slot::Taken(entry) => entry,
            Slot::Free(_) => unreachable!("an index is good for as long as its entry"),
        }
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut T {
        match &mut self.slots[index as usize] {
            Slot::Taken(entry) => entry,
            Slot::Free(_) => unreachable!("an index is good for as long as its entry"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_keeps_its_index_and_freed_slots_are_used_again() {
        let mut slab = Slab::new();
        let [a, b, c] = ['a', 'b', 'c'].map(|entry| slab.insert(entry));
        let allocated = slab.allocation_size();
        assert_eq!((slab.take(b), slab.take(a)), ('b', 'a'));
        assert_eq!((slab[c], slab.len()), ('c', 1));
        assert_eq!((slab.insert('d'), slab.insert('e')), (a, b));
        assert!(slab.iter_mut().map(|(id, entry)| (id, *entry)).eq([(a, 'd'), (b, 'e'), (c, 'c')]));
        assert_eq!(slab.allocation_size(), allocated);
    }

    #[test]
    fn compacting_renumbers_what_is_left() {
        let mut slab = Slab::new();
        let [a, b, c, d] = ['a', 'b', 'c', 'd'].map(|entry| slab.insert(entry));
        slab.free(c);
        slab.free(a);
        let renumbered = slab.compact();
        assert_eq!((slab[renumbered[b as usize]], slab[renumbered[d as usize]]), ('b', 'd'));
        assert_eq!((slab.len(), slab.allocation_size()), (2, 2 * size_of::<Slot<char>>()));
        assert_eq!(slab.insert('e'), 2, "no free slot is left over");
    }
}
