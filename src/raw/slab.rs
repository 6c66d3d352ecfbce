//! A slab: entries with stable indices, in slots that are reused.
//!
//! ```text
//!     index     0    1     2    3     4
//!     slots   │ a │ ──┐ │ c │ ◂─┘ │ e │        free list: 1 → 3
//! ```
//!
//! An entry keeps its index until it is removed, so structures link entries by 4-byte index instead
//! of by pointer, in safe Rust. An index is valid for as long as its entry: a structure that stores
//! an index drops it together with the entry.
//!
//! | | slots in | access | insertion into a full slab |
//! |---|---|---|---|
//! | [`Slab`] | a `Vec` | one load | moves all entries, amortised O(1) |
//! | [`ChunkedSlab`] | a [`ChunkedVec`] | two loads | allocates a chunk, moves nothing |
//!
//! An index in a link is optional: an [`OptIndex`], in four bytes.
//!
//! Cost: insertion and removal are O(1). Freed slots keep their memory for later insertions.
#![allow(unsafe_code)]

use core::hint::unreachable_unchecked;
use core::iter;
use core::marker::PhantomData;
use core::mem;
use core::ops::{Index, IndexMut};

use allocator_api2::alloc::{AllocError, Allocator, Global};
use allocator_api2::vec::Vec;

use super::chunked_vec::{ChunkedVec, DEFAULT_BITS};
use super::prefetch::prefetch_value;

/// Maximum number of entries. Indices are below it, which leaves bit 31 and one more value to the
/// users of a slab.
const MAX_LEN: usize = (1 << 31) - 1;

/// A slot of a slab.
#[derive(Clone, Debug)]
pub(crate) enum Slot<T> {
    Occupied(T),
    /// The next free slot.
    Free(OptIndex),
}

/// Append-only storage for the slots of a slab.
pub(crate) trait Storage<T>: Index<u32, Output = Slot<T>> + IndexMut<u32> {
    fn len(&self) -> usize;
    fn get(&self, index: u32) -> Option<&Slot<T>>;
    fn get_mut(&mut self, index: u32) -> Option<&mut Slot<T>>;
    fn push(&mut self, slot: Slot<T>);
    fn prefetch(&self, index: u32) -> bool;
    fn allocation_size(&self) -> usize;
}

/// A `Vec` of slots, indexed by `u32`.
#[derive(Clone, Debug)]
pub(crate) struct Contiguous<T, A: Allocator = Global>(Vec<Slot<T>, A>);

impl<T, A: Allocator> Index<u32> for Contiguous<T, A> {
    type Output = Slot<T>;

    #[inline]
    fn index(&self, index: u32) -> &Slot<T> {
        &self.0[index as usize]
    }
}

impl<T, A: Allocator> IndexMut<u32> for Contiguous<T, A> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut Slot<T> {
        &mut self.0[index as usize]
    }
}

impl<T, A: Allocator> Storage<T> for Contiguous<T, A> {
    #[inline]
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn get(&self, index: u32) -> Option<&Slot<T>> {
        self.0.get(index as usize)
    }

    #[inline]
    fn get_mut(&mut self, index: u32) -> Option<&mut Slot<T>> {
        self.0.get_mut(index as usize)
    }

    #[inline]
    fn push(&mut self, slot: Slot<T>) {
        self.0.push(slot);
    }

    #[inline]
    fn prefetch(&self, index: u32) -> bool {
        let slot = self.0.get(index as usize);
        slot.inspect(|slot| prefetch_value(*slot)).is_some()
    }

    fn allocation_size(&self) -> usize {
        self.0.capacity() * size_of::<Slot<T>>()
    }
}

impl<T, const BITS: u32, A: Allocator + Clone> Storage<T> for ChunkedVec<Slot<T>, BITS, A> {
    #[inline]
    fn len(&self) -> usize {
        Self::len(self) as usize
    }

    #[inline]
    fn get(&self, index: u32) -> Option<&Slot<T>> {
        Self::get(self, index)
    }

    #[inline]
    fn get_mut(&mut self, index: u32) -> Option<&mut Slot<T>> {
        Self::get_mut(self, index)
    }

    #[inline]
    fn push(&mut self, slot: Slot<T>) {
        Self::push(self, slot);
    }

    #[inline]
    fn prefetch(&self, index: u32) -> bool {
        Self::prefetch(self, index)
    }

    #[inline]
    fn allocation_size(&self) -> usize {
        Self::allocation_size(self)
    }
}

/// Entries of `T` with stable indices, in slots of the storage `S`.
#[derive(Clone, Debug)]
pub(crate) struct Slab<T, S = Contiguous<T>> {
    slots: S,
    first_free: OptIndex,
    len: usize,
    entries: PhantomData<T>,
}

/// A slab whose growth does not move entries: millions of entries without a pause.
pub(crate) type ChunkedSlab<T, A = Global, const BITS: u32 = DEFAULT_BITS> =
    Slab<T, ChunkedVec<Slot<T>, BITS, A>>;

impl<T, S> Slab<T, S> {
    /// Returns the number of entries.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Whether the slab has its maximum number of entries.
    pub(crate) const fn is_full(&self) -> bool {
        self.len >= MAX_LEN
    }

    /// Creates a slab of empty storage.
    const fn of(slots: S) -> Self {
        Self { slots, first_free: OptIndex::NONE, len: 0, entries: PhantomData }
    }
}

impl<T> Slab<T> {
    /// Creates an empty slab, without allocating.
    pub(crate) const fn new() -> Self {
        Self::new_in(Global)
    }
}

impl<T, const BITS: u32, A: Allocator + Clone> ChunkedSlab<T, A, BITS> {
    /// Returns a mutable reference to the entry of a slot, if it has one, without checking that
    /// there is such a slot.
    ///
    /// # Safety
    ///
    /// `index` is less than [`slot_count`](Self::slot_count).
    #[inline(always)]
    pub(crate) unsafe fn get_of_slot_mut(&mut self, index: u32) -> Option<&mut T> {
        // SAFETY: as the caller promises.
        match unsafe { self.slots.get_unchecked_mut(index) } {
            Slot::Occupied(entry) => Some(entry),
            Slot::Free(_) => None,
        }
    }
}

impl<T, S: Storage<T>> Slab<T, S> {
    /// Returns the index that the next insertion will use.
    #[inline]
    pub(crate) fn next_index(&self) -> u32 {
        self.first_free.get().unwrap_or(self.slots.len() as u32)
    }

    /// Whether no slot is free, so that the next insertion appends one.
    pub(crate) const fn needs_slot(&self) -> bool {
        self.first_free.is_none()
    }

    /// Returns the number of slots, free ones included: an upper bound of all indices.
    pub(crate) fn slot_count(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Inserts an entry and returns its index, which is [`next_index`](Self::next_index).
    ///
    /// # Panics
    ///
    /// If the slab has 2^31 - 1 entries already.
    #[inline]
    pub(crate) fn insert(&mut self, entry: T) -> u32 {
        let index = self.next_index();
        match self.slots.get_mut(index) {
            None => {
                assert!(self.slots.len() < MAX_LEN, "more than 2^31 - 1 entries");
                self.slots.push(Slot::Occupied(entry));
            }
            Some(slot) => {
                let Slot::Free(next) = slot else {
                    unreachable!("the free list contains free slots only")
                };
                self.first_free = *next;
                *slot = Slot::Occupied(entry);
            }
        }
        self.len += 1;
        index
    }

    /// Removes the entry at `index`, if there is one.
    #[inline]
    pub(crate) fn try_remove(&mut self, index: u32) -> Option<T> {
        let slot = self.slots.get_mut(index)?;
        if let Slot::Free(_) = slot {
            return None;
        }
        let Slot::Occupied(entry) = mem::replace(slot, Slot::Free(self.first_free)) else {
            return None;
        };
        self.first_free = OptIndex::some(index);
        self.len -= 1;
        Some(entry)
    }

    /// Removes the entry at `index`, which must exist.
    #[inline]
    pub(crate) fn remove(&mut self, index: u32) -> T {
        self.try_remove(index).unwrap_or_else(|| unreachable!("no entry at this index"))
    }

    /// Drops the entry at `index`, which must exist, without moving it.
    pub(crate) fn free(&mut self, index: u32) {
        self.slots[index] = Slot::Free(self.first_free);
        self.first_free = OptIndex::some(index);
        self.len -= 1;
    }

    /// Returns a reference to the entry at `index`.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        match self.slots.get(index)? {
            Slot::Occupied(entry) => Some(entry),
            Slot::Free(_) => None,
        }
    }

    /// Returns a mutable reference to the entry at `index`.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        match self.slots.get_mut(index)? {
            Slot::Occupied(entry) => Some(entry),
            Slot::Free(_) => None,
        }
    }

    /// Prefetches the slot at `index`. Returns whether there is one.
    #[inline]
    pub(crate) fn prefetch(&self, index: u32) -> bool {
        self.slots.prefetch(index)
    }

    /// Returns the bytes allocated, free slots included.
    pub(crate) fn allocation_size(&self) -> usize {
        self.slots.allocation_size()
    }
}

impl<T, A: Allocator> Slab<T, Contiguous<T, A>> {
    /// Creates an empty slab whose memory will be from `memory`, without allocating.
    pub(crate) const fn new_in(memory: A) -> Self {
        Self::of(Contiguous(Vec::new_in(memory)))
    }

    /// Reserves memory for one more entry. Returns whether it succeeded.
    pub(crate) fn try_reserve(&mut self) -> bool {
        self.first_free.is_some() || self.slots.0.try_reserve(1).is_ok()
    }

    /// Reserves memory for `entries` entries in total, up to which insertions do not allocate.
    /// Returns whether it succeeded.
    pub(crate) fn try_reserve_exact(&mut self, entries: usize) -> bool {
        self.slots.0.try_reserve_exact(entries.saturating_sub(self.slots.len())).is_ok()
    }

    /// Returns mutable references to the entries at indices, which exist and ascend.
    pub(crate) fn get_ascending_mut(
        &mut self,
        indices: impl Iterator<Item = u32>,
    ) -> impl Iterator<Item = &mut T> {
        let (mut rest, mut first) = (self.slots.0.as_mut_slice(), 0);
        indices.map_while(move |index| {
            let from = mem::take(&mut rest).get_mut(index.checked_sub(first)? as usize..)?;
            let (slot, after) = from.split_first_mut()?;
            (rest, first) = (after, index + 1);
            match slot {
                Slot::Occupied(entry) => Some(entry),
                Slot::Free(_) => None,
            }
        })
    }

    /// Returns a reference to the entry at `index`, without checking that there is one.
    ///
    /// # Safety
    ///
    /// There is an entry at `index`.
    #[inline(always)]
    pub(crate) unsafe fn get_unchecked(&self, index: u32) -> &T {
        // SAFETY: slots with entries are slots of the vector.
        match unsafe { self.slots.0.get_unchecked(index as usize) } {
            Slot::Occupied(entry) => entry,
            // SAFETY: as the caller promises.
            Slot::Free(_) => unsafe { unreachable_unchecked() },
        }
    }

    /// Returns a mutable reference to the entry at `index`, without checking that there is one.
    ///
    /// # Safety
    ///
    /// There is an entry at `index`.
    #[inline(always)]
    pub(crate) unsafe fn get_unchecked_mut(&mut self, index: u32) -> &mut T {
        // SAFETY: slots with entries are slots of the vector.
        match unsafe { self.slots.0.get_unchecked_mut(index as usize) } {
            Slot::Occupied(entry) => entry,
            // SAFETY: as the caller promises.
            Slot::Free(_) => unsafe { unreachable_unchecked() },
        }
    }

    /// Removes all free slots and releases their memory, which renumbers the entries. Returns the
    /// new index of each entry by its old index.
    pub(crate) fn compact(&mut self) -> alloc::vec::Vec<u32> {
        let mut renumbered = alloc::vec::Vec::with_capacity(self.slots.len());
        let mut next = 0;
        self.slots.0.retain(|slot| {
            renumbered.push(next);
            let occupied = matches!(slot, Slot::Occupied(_));
            next += u32::from(occupied);
            occupied
        });
        self.slots.0.shrink_to_fit();
        self.first_free = OptIndex::NONE;
        renumbered
    }

    /// Iterates over all entries with their indices, in the order of the indices.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        self.slots_mut().iter_mut().enumerate().filter_map(|(index, slot)| match slot {
            Slot::Occupied(entry) => Some((index as u32, entry)),
            Slot::Free(_) => None,
        })
    }

    /// Returns all slots, in the order of their indices.
    pub(crate) fn slots(&self) -> &[Slot<T>] {
        &self.slots.0
    }

    /// Returns all slots, in the order of their indices.
    pub(crate) fn slots_mut(&mut self) -> &mut [Slot<T>] {
        &mut self.slots.0
    }
}

impl<T> Slot<T> {
    /// Returns the entry, if there is one.
    #[inline]
    pub(crate) fn entry(&self) -> Option<&T> {
        if let Self::Occupied(entry) = self { Some(entry) } else { None }
    }

    /// Returns a mutable reference to the entry, if there is one.
    #[inline]
    pub(crate) fn entry_mut(&mut self) -> Option<&mut T> {
        if let Self::Occupied(entry) = self { Some(entry) } else { None }
    }
}

impl<T, const BITS: u32, A: Allocator + Clone> Slab<T, ChunkedVec<Slot<T>, BITS, A>> {
    /// Creates an empty slab of at most `limit` entries, whose memory will be from `memory`,
    /// without allocating.
    pub(crate) fn chunked_in(limit: usize, memory: A) -> Self {
        Self::of(ChunkedVec::new_in(limit, memory))
    }

    /// Reserves memory for one more entry.
    pub(crate) fn try_reserve_one(&mut self) -> Result<(), AllocError> {
        if self.needs_slot() { self.slots.try_reserve(self.slots.len()) } else { Ok(()) }
    }

    /// Returns the bytes that the next insertion will allocate.
    pub(crate) fn growth(&self) -> usize {
        if self.needs_slot() { self.slots.growth() } else { 0 }
    }
}

impl<T, S: Storage<T>> Index<u32> for Slab<T, S> {
    type Output = T;

    #[inline]
    fn index(&self, index: u32) -> &T {
        match &self.slots[index] {
            Slot::Occupied(entry) => entry,
            Slot::Free(_) => unreachable!("no entry at this index"),
        }
    }
}

impl<T, S: Storage<T>> IndexMut<u32> for Slab<T, S> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut T {
        match &mut self.slots[index] {
            Slot::Occupied(entry) => entry,
            Slot::Free(_) => unreachable!("no entry at this index"),
        }
    }
}

/// The index of a slot, or none: an `Option<u32>` in four bytes, in which `u32::MAX` is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OptIndex(u32);

impl OptIndex {
    /// No index.
    pub(crate) const NONE: Self = Self(u32::MAX);

    /// Wraps `index`, which must be less than `u32::MAX`.
    #[inline]
    pub(crate) const fn some(index: u32) -> Self {
        debug_assert!(index != u32::MAX);
        Self(index)
    }

    /// Returns the index, if there is one.
    #[inline]
    pub(crate) const fn get(self) -> Option<u32> {
        if self.is_none() { None } else { Some(self.0) }
    }

    #[inline]
    pub(crate) const fn is_none(self) -> bool {
        self.0 == u32::MAX
    }

    #[inline]
    pub(crate) const fn is_some(self) -> bool {
        !self.is_none()
    }

    /// Iterates over the indices of a singly linked list that begins with this one; `next` returns
    /// the link of an entry.
    #[inline]
    pub(crate) fn list(self, next: impl Fn(u32) -> Self) -> impl Iterator<Item = u32> {
        iter::successors(self.get(), move |&index| next(index).get())
    }
}

impl From<Option<u32>> for OptIndex {
    #[inline]
    fn from(index: Option<u32>) -> Self {
        index.map_or(Self::NONE, Self::some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_keep_their_index_and_freed_slots_are_reused() {
        let mut slab = Slab::<char>::new();
        let [a, b, c] = ['a', 'b', 'c'].map(|entry| slab.insert(entry));
        let allocated = slab.allocation_size();
        assert_eq!((slab.remove(b), slab.remove(a)), ('b', 'a'));
        assert_eq!((slab[c], slab.len()), ('c', 1));
        assert_eq!((slab.insert('d'), slab.insert('e')), (a, b));
        assert!(slab.iter_mut().map(|(id, entry)| (id, *entry)).eq([(a, 'd'), (b, 'e'), (c, 'c')]));
        assert_eq!(slab.allocation_size(), allocated);
    }

    #[test]
    fn compacting_renumbers_the_entries() {
        let mut slab = Slab::<char>::new();
        let [a, b, c, d] = ['a', 'b', 'c', 'd'].map(|entry| slab.insert(entry));
        slab.free(c);
        slab.free(a);
        let renumbered = slab.compact();
        assert_eq!((slab[renumbered[b as usize]], slab[renumbered[d as usize]]), ('b', 'd'));
        assert_eq!((slab.len(), slab.allocation_size()), (2, 2 * size_of::<Slot<char>>()));
        assert_eq!(slab.insert('e'), 2, "no free slot is left");
    }

    #[test]
    fn a_chunked_slab_assigns_equal_indices() {
        let mut slab = ChunkedSlab::<char>::chunked_in(100, Global);
        let [a, b, c] = ['a', 'b', 'c'].map(|entry| slab.insert(entry));
        assert_eq!(
            (slab.try_remove(b), slab.try_remove(a), slab.try_remove(a)),
            (Some('b'), Some('a'), None)
        );
        assert_eq!(
            (slab.get(c), slab.get(a), slab.get(7), slab.len()),
            (Some(&'c'), None, None, 1)
        );
        assert_eq!((slab.next_index(), slab.insert('d'), slab.insert('e')), (a, a, b));
        assert!(slab.needs_slot());
        assert_eq!((slab.next_index(), slab.insert('f'), slab.slot_count()), (3, 3, 4));
        *slab.get_mut(3).unwrap() = 'g';
        assert_eq!(slab.get(3), Some(&'g'));
    }

    #[test]
    fn none_contains_no_index() {
        assert_eq!((OptIndex::NONE.get(), OptIndex::some(0).get()), (None, Some(0)));
        assert!(OptIndex::NONE.is_none() && OptIndex::some(u32::MAX - 1).is_some());
        assert_eq!(OptIndex::from(None), OptIndex::NONE);
        assert_eq!(OptIndex::from(Some(3)), OptIndex::some(3));
    }

    #[test]
    fn a_list_ends_at_none() {
        let links = [OptIndex::some(2), OptIndex::NONE, OptIndex::some(1)];
        let list = |first: OptIndex| first.list(|index| links[index as usize]);
        assert!(list(OptIndex::some(0)).eq([0, 2, 1]));
        assert_eq!(list(OptIndex::NONE).count(), 0);
    }
}
