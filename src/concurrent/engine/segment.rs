//! Segments: arrays of groups with some hundred entries, and the counts and notes of writers.
//!
//! ```text
//!     segment ──→ ┌───────┬───────┬───────┬─────┬ ─ ─ ─ ┬───────────────────────────┐
//!                 │ group │ group │ group │  …  │ notes │ used, live, limit, depth  │
//!                 └───────┴───────┴───────┴─────┴ ─ ─ ─ ┴───────────────────────────┘
//!                                                         a cache line of its own
//! ```
//!
//! An entry has a *home*: the group that its mixed hash selects. It is there, or in the first later
//! group that had a free slot, modulo the number of groups. Every group from its home to the one
//! before its own has counted it in its *overflow count*, and a search continues with the next
//! group while that count is not zero.
//!
//! - **S1** A slot is free, then occupied by one entry; then dead as long as the segment exists, or
//!   free again if the slot stores one atomic that refers to a key. While it is occupied, neither
//!   its tag nor its key changes. So a probe of consecutive groups cannot miss an entry that stays.
//! - **S2** An insertion publishes the slot first and increments the overflow counts then; a
//!   removal clears the slot first and decrements then. So while no writer works, a count is never
//!   less than the number of overflowed entries.
//! - **S3** A value of one atomic is replaced in place. One of several words is replaced by another
//!   entry in the same group, with one store of the header; or in a later one, published and
//!   counted before the old entry is killed. A probe that is beyond the new entry was at the old
//!   one before, and has found it.
//! - **S4** A segment that grows, splits, shrinks or merges is copied, and the copy published; the
//!   old one is not written any more. So its readers find its entries of that time.
#![allow(unsafe_code)]

use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::sync::atomic::{AtomicU16, AtomicU32};

use super::group::{Group, Shape};
use super::plan::{LARGEST, Load};
use super::storage::{Entries, Storage};
use crate::concurrent::memory::{ALIGN, allocate_bytes, free_bytes};
use crate::concurrent::policy;
use crate::concurrent::sync::{AtomicU64, Ordering};
use crate::raw::prefetch::{CACHE_LINE, prefetch};
use crate::table::error::TryReserveError;
use crate::table::tags::{GROUP as NUMBERS, Mask};

/// Counts of the lock holder. Not atomics of a checker, so that the interleavings of readers are
/// not multiplied; all accesses are Relaxed.
#[repr(C, align(64))]
struct Counts {
    /// The slots that are not free.
    used: AtomicU32,
    /// The entries.
    live: AtomicU32,
    /// The number of used slots above which the segment should grow.
    limit: u32,
    /// The number of bits of a mixed hash that all entries share.
    depth: u32,
}

/// A tagged pointer to a segment: the low bits are the code of its number of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::concurrent) struct SegmentPtr(pub(super) *mut u8);

impl SegmentPtr {
    /// The bits of the pointer that store the code.
    const CODE: usize = ALIGN - 1;

    #[inline]
    fn first(self) -> *mut u8 {
        self.0.map_addr(|address| address & !Self::CODE)
    }

    /// Returns the segment.
    ///
    /// # Safety
    ///
    /// The pointer refers to a segment of this storage, which is not freed during `'p`.
    #[inline]
    pub(super) unsafe fn segment<'p, C>(self) -> Segment<'p, C> {
        Segment { ptr: self, shape: PhantomData }
    }

    /// Returns the offset of the counts in a segment of `len` groups.
    const fn counts<C: Storage>(len: usize) -> usize {
        let notes = if C::REUSES { C::SLOTS * size_of::<AtomicU16>() } else { 0 };
        (len * (Shape::<C>::GROUP + notes)).next_multiple_of(CACHE_LINE)
    }

    /// Returns the bytes of a segment of `len` groups.
    pub(super) const fn bytes<C: Storage>(len: usize) -> usize {
        Self::counts::<C>(len) + size_of::<Counts>()
    }

    /// Returns the allocated bytes of a segment of this storage.
    pub(super) fn allocation_size<C: Storage>(self) -> usize {
        Self::bytes::<C>(C::groups(self.0.addr() & Self::CODE))
    }

    /// Frees the segment.
    ///
    /// # Safety
    ///
    /// It was allocated for this storage, is not used any more, and is freed once.
    pub(super) unsafe fn free<C: Storage>(self) {
        if core::mem::needs_drop::<AtomicU64>() {
            for nth in 0..C::groups(self.0.addr() & Self::CODE) {
                let group = self.first().wrapping_add(nth * Shape::<C>::GROUP);
                // SAFETY: a segment has these groups; by the contract.
                unsafe { Group::<C>::drop_at(group) };
            }
        }
        // SAFETY: by the contract; allocated in `SegmentBox::new`.
        unsafe { free_bytes(self.first(), self.allocation_size::<C>()) };
    }
}

/// A segment that is not published yet. Frees it.
pub(super) struct SegmentBox<C: Storage>(SegmentPtr, PhantomData<C>);

impl<C: Storage> Drop for SegmentBox<C> {
    fn drop(&mut self) {
        // SAFETY: allocated in `new`, and not published.
        unsafe { self.0.free::<C>() };
    }
}

impl<C: Storage> SegmentBox<C> {
    /// Allocates a segment without entries, of a number of groups; `seed` determines its limit.
    pub(super) fn new(size: u32, depth: u32, seed: u64) -> Result<Self, TryReserveError> {
        debug_assert!(size > 0 && size <= LARGEST);
        let len = size as usize;
        let limit = policy::limit(len * C::SLOTS, seed) as u32;
        let first = allocate_bytes(SegmentPtr::bytes::<C>(len))?.as_ptr();
        for nth in 0..len {
            // SAFETY: a segment has these groups, allocated, and not used yet.
            unsafe { Group::<C>::initialize(first.wrapping_add(nth * Shape::<C>::GROUP)) };
        }
        let [used, live] = [(); 2].map(|()| AtomicU32::new(0));
        let counts = first.wrapping_add(SegmentPtr::counts::<C>(len)).cast::<Counts>();
        // SAFETY: a segment has counts at this offset.
        unsafe { counts.write(Counts { used, live, limit, depth }) };
        let notes = first.wrapping_add(len * Shape::<C>::GROUP).cast::<AtomicU16>();
        for nth in 0..if C::REUSES { len * C::SLOTS } else { 0 } {
            // SAFETY: a segment has notes after its groups, as many as slots.
            unsafe { notes.wrapping_add(nth).write(AtomicU16::new(0)) };
        }
        Ok(Self(SegmentPtr(first.map_addr(|address| address | C::code(len))), PhantomData))
    }

    pub(super) fn segment(&self) -> Segment<'_, C> {
        // SAFETY: it is freed when it is dropped.
        unsafe { self.0.segment() }
    }

    /// Returns the pointer, for publication.
    pub(super) fn into_ptr(self) -> SegmentPtr {
        ManuallyDrop::new(self).0
    }
}

/// A segment that is not freed during `'p`.
pub(in crate::concurrent) struct Segment<'p, C> {
    ptr: SegmentPtr,
    shape: PhantomData<(&'p AtomicU64, C)>,
}

impl<C> Clone for Segment<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Segment<'_, C> {}

/// A slot of a segment, for the lock holder. Other threads read the id in an occupied slot, or the
/// entry in a slot that was occupied under the lock, if slots are not reused (S1).
pub(in crate::concurrent) struct Slot<'p, C> {
    segment: Segment<'p, C>,
    /// The index of its group.
    group: usize,
    slot: usize,
}

impl<C> Clone for Slot<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Slot<'_, C> {}

impl<'p, C: Storage> Slot<'p, C> {
    /// Returns its group, and the slot there.
    pub(in crate::concurrent) fn place(self) -> (Group<'p, C>, usize) {
        (self.segment.group(self.group), self.slot)
    }

    /// Returns its number in the segment: see [`Segment::slot`].
    pub(in crate::concurrent) fn number(self) -> u32 {
        (self.group * NUMBERS + self.slot) as u32
    }

    /// Returns the tag.
    pub(in crate::concurrent) fn tag(self) -> u8 {
        self.segment.group(self.group).tag(self.slot)
    }

    /// Returns its note: the upper 16 bits of the mixed hash of its entry, if slots are reused.
    pub(in crate::concurrent) fn note(self) -> u16 {
        self.atomic_note().load(Ordering::Relaxed)
    }

    fn atomic_note(self) -> &'p AtomicU16 {
        debug_assert!(C::REUSES);
        let groups = self.segment.len() * Shape::<C>::GROUP;
        let notes = self.segment.ptr.first().wrapping_add(groups).cast::<AtomicU16>();
        let note = notes.wrapping_add(self.group * C::SLOTS + self.slot);
        // SAFETY: a segment of such a storage has notes after its groups, as many as slots; not
        // freed during 'p: see `SegmentPtr::segment`.
        unsafe { &*note }
    }
}

impl<C: Entries> Slot<'_, C> {
    /// Returns the value.
    pub(in crate::concurrent) fn value(self) -> C::Value {
        self.segment.group(self.group).value(self.slot)
    }
}

/// The slot of an entry, and the way to it from its home.
pub(in crate::concurrent) struct Position<'p, C> {
    pub(super) slot: Slot<'p, C>,
    home: usize,
    /// Number of groups after its home.
    pub(super) distance: usize,
}

impl<C> Clone for Position<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Position<'_, C> {}

impl<'p, C: Storage> Position<'p, C> {
    /// Calls `count` for each group that the entry has overflowed.
    fn for_passed(self, count: impl Fn(Group<'p, C>)) {
        let (segment, mut index) = (self.slot.segment, self.home);
        for _ in 0..self.distance {
            count(segment.group(index));
            index = segment.next(index);
        }
    }
}

impl<'p, C: Storage> Segment<'p, C> {
    pub(super) fn ptr(self) -> SegmentPtr {
        self.ptr
    }

    #[inline]
    fn code(self) -> usize {
        self.ptr.0.addr() & SegmentPtr::CODE
    }

    /// Returns the number of groups.
    #[inline]
    pub(super) fn len(self) -> usize {
        C::groups(self.code())
    }

    /// Returns the index of the group in which a search for this mixed hash begins.
    #[inline]
    fn home_index(self, mixed: u64) -> usize {
        C::home(mixed, self.code())
    }

    /// Returns a group.
    #[inline]
    fn group(self, index: usize) -> Group<'p, C> {
        debug_assert!(index < self.len());
        let first = self.ptr.first().wrapping_add(index * Shape::<C>::GROUP);
        // SAFETY: a segment has `len` groups; not freed during 'p: see `SegmentPtr::segment`.
        unsafe { Group::at(first) }
    }

    /// Returns the group in which a search for this mixed hash begins.
    #[inline]
    pub(in crate::concurrent) fn home(self, mixed: u64) -> Group<'p, C> {
        self.group(self.home_index(mixed))
    }

    /// Iterates over all groups.
    pub(super) fn groups(self) -> impl Iterator<Item = Group<'p, C>> {
        (0..self.len()).map(move |index| self.group(index))
    }

    /// Returns the index of the group after one, cyclically.
    fn next(self, index: usize) -> usize {
        if index + 1 < self.len() { index + 1 } else { 0 }
    }

    /// Iterates over the groups: the function that returns the slots of each, and which of them are
    /// occupied.
    #[inline(always)]
    pub(super) fn occupied(self) -> impl Iterator<Item = (impl Fn(usize) -> Slot<'p, C>, Mask)> {
        let slots = move |group| move |slot| Slot { segment: self, group, slot };
        (0..self.len()).map(move |group| (slots(group), self.group(group).header().occupied()))
    }

    /// Iterates over the occupied slots.
    pub(in crate::concurrent) fn entries(self) -> impl Iterator<Item = Slot<'p, C>> {
        self.occupied().flat_map(|(slots, occupied)| occupied.map(slots))
    }

    /// Returns the slot with a number that [`Slot::number`] has returned under the lock.
    #[inline]
    pub(in crate::concurrent) fn slot(self, number: u32) -> Slot<'p, C> {
        let number = number as usize;
        Slot { segment: self, group: number / NUMBERS, slot: number % NUMBERS }
    }

    fn counts(self) -> &'p Counts {
        let offset = SegmentPtr::counts::<C>(self.len());
        let counts = self.ptr.first().wrapping_add(offset).cast::<Counts>();
        // SAFETY: a segment has counts at this offset; not freed during 'p: see
        // `SegmentPtr::segment`.
        unsafe { &*counts }
    }

    /// Prefetches the cache lines that an insertion reads and writes.
    pub(super) fn prefetch_for_write(self, mixed: u64) {
        let home = self.home_index(mixed);
        self.group(home).prefetch();
        self.group(home).prefetch_second();
        prefetch(self.counts());
        if C::REUSES {
            prefetch(Slot { segment: self, group: home, slot: 0 }.atomic_note());
        }
    }

    /// Returns the depth: the number of bits of a mixed hash that all entries share.
    pub(super) fn depth(self) -> u32 {
        self.counts().depth
    }

    /// Returns the occupancy.
    pub(super) fn load(self) -> Load {
        let counts = self.counts();
        let [used, live] =
            [&counts.used, &counts.live].map(|count| count.load(Ordering::Relaxed) as usize);
        let (size, sizes, limit) = (self.len() as u32, C::SIZES, counts.limit as usize);
        let least = if counts.depth == 0 { sizes.first() } else { 1 };
        Load { size, sizes, least, slots: C::SLOTS, used, live, limit }
    }

    /// Changes the counts of used slots and of entries.
    fn add(self, used: i32, live: i32) {
        let counts = self.counts();
        for (count, difference) in [(&counts.used, used), (&counts.live, live)] {
            let sum = count.load(Ordering::Relaxed).wrapping_add_signed(difference);
            count.store(sum, Ordering::Relaxed);
        }
    }

    /// Returns the first free slot for a mixed hash, from a distance on.
    #[inline]
    pub(super) fn vacancy(self, mixed: u64, from: usize) -> Option<Position<'p, C>> {
        let home = self.home_index(mixed);
        let mut index = home;
        for distance in 0..self.len() {
            if distance >= from {
                if let Some(slot) = self.group(index).header().free().next() {
                    let slot = Slot { segment: self, group: index, slot };
                    return Some(Position { slot, home, distance });
                }
            }
            index = self.next(index);
        }
        None
    }

    /// Copies an entry of another segment. There is a free slot.
    pub(super) fn copy(self, hash: u64, from: Slot<'_, C>) {
        let free = self.vacancy(C::mix(hash), 0).expect("the segment has a free slot");
        let (group, slot) = free.slot.place();
        group.copy_entry(slot, from.place());
        self.publish(hash, free);
    }

    /// Makes an entry visible whose words are written.
    fn publish(self, hash: u64, at: Position<'p, C>) {
        if C::REUSES {
            at.slot.atomic_note().store((C::mix(hash) >> 48) as u16, Ordering::Relaxed);
        }
        let (group, slot) = at.slot.place();
        // S2.
        group.publish(slot, hash, None);
        at.for_passed(Group::increment_overflow);
        self.add(1, 1);
    }

    /// Removes an entry.
    pub(super) fn remove(self, at: Position<'p, C>) {
        let (group, slot) = at.slot.place();
        // S2.
        group.remove(slot);
        at.for_passed(Group::decrement_overflow);
        self.add(if C::REUSES { -1 } else { 0 }, -1);
    }

    /// Removes all entries. Returns their number.
    pub(in crate::concurrent) fn clear(self) -> usize {
        let live = self.load().live;
        self.groups().for_each(Group::clear);
        let difference = -(live as i32);
        self.add(if C::REUSES { difference } else { 0 }, difference);
        live
    }

    /// Returns the first result of `is` for the candidates for a hash.
    #[inline]
    pub(in crate::concurrent) fn find<R>(
        self,
        hash: u64,
        mixed: u64,
        is: impl Fn(Group<'p, C>, usize) -> Option<R>,
    ) -> Option<R> {
        let home = self.home(mixed);
        home.prefetch_second();
        let candidate = home.first(hash);
        match candidate.map(|slot| is(home, slot)) {
            Some(Some(found)) => Some(found),
            None if !home.has_overflowed() => None,
            _ => self.find_further(hash, mixed, is),
        }
    }

    /// Searches all groups from the home on, if the entry is not the first candidate.
    #[cold]
    #[inline(never)]
    pub(in crate::concurrent) fn find_further<R>(
        self,
        hash: u64,
        mixed: u64,
        is: impl Fn(Group<'p, C>, usize) -> Option<R>,
    ) -> Option<R> {
        let mut index = self.home_index(mixed);
        for _ in 0..self.len() {
            let group = self.group(index);
            let (found, has_overflowed) = group.find(hash, |slot| is(group, slot));
            if found.is_some() || !has_overflowed {
                return found;
            }
            index = self.next(index);
        }
        None
    }

    /// Returns the position of the candidate for a hash for which `is` returns true.
    #[inline]
    pub(super) fn locate(
        self,
        hash: u64,
        mixed: u64,
        is: impl Fn(Group<'p, C>, usize) -> bool,
    ) -> Option<Position<'p, C>> {
        let home = self.home_index(mixed);
        let (mut index, mut distance) = (home, 0);
        loop {
            let group = self.group(index);
            let (slot, has_overflowed) = group.find(hash, |slot| is(group, slot).then_some(slot));
            if let Some(slot) = slot {
                let slot = Slot { segment: self, group: index, slot };
                return Some(Position { slot, home, distance });
            }
            distance += 1;
            if !has_overflowed || distance == self.len() {
                return None;
            }
            index = self.next(index);
        }
    }

    /// Inserts an entry, whose key must be absent, in a free slot.
    pub(super) fn insert(self, hash: u64, free: Position<'p, C>, words: impl Fn(usize) -> u64) {
        let (group, slot) = free.slot.place();
        group.write(slot, words);
        self.publish(hash, free);
    }

    /// Replaces an entry by one with another value, in a free slot at the same distance from its
    /// home or at a greater one.
    pub(super) fn exchange(
        self,
        hash: u64,
        [old, free]: [Position<'p, C>; 2],
        words: impl Fn(usize) -> u64,
    ) {
        if free.distance > old.distance {
            // S3.
            self.insert(hash, free, words);
            self.remove(old);
            return;
        }
        let (group, slot) = free.slot.place();
        group.write(slot, words);
        // S3.
        group.publish(slot, hash, Some(old.slot.slot));
        self.add(1, 0);
    }
}
