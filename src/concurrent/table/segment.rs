//! Segments: arrays of groups with some hundred entries, and the counts of the lock holder.
//!
//! ```text
//!     segment ──→ ┌───────┬───────┬───────┬─────┬───────────────────────────┐
//!                 │ group │ group │ group │  …  │ used, live, limit, depth  │
//!                 └───────┴───────┴───────┴─────┴───────────────────────────┘
//!                   128 bytes                     a cache line of its own
//! ```
//!
//! An entry has a *home*: the group that its mixed hash selects. It is there, or in the first later
//! group that had a free slot, modulo the number of groups. Every group from its home to the one
//! before its own has counted it in its *overflow count*, and a search continues with the next
//! group while that count is not zero.
//!
//! - **S1** A slot is free, then occupied by one entry, then dead. So the words of an entry whose
//!   tag a reader has loaded are of that entry as long as the segment exists, and a probe of
//!   consecutive groups cannot miss an entry that stays.
//! - **S2** An insertion publishes the slot first and increments the overflow counts then; a
//!   removal kills the slot first and decrements then. So a count is never less than the number of
//!   overflowed entries.
//! - **S3** A value of several words is replaced by another entry in the same group, with one store
//!   of the header; or in a later one, published and counted before the old entry is killed. A
//!   probe that is beyond the new entry was at the old one before, and has found it.
//! - **S4** A segment that grows, splits, shrinks or merges is copied, and the copy published; the
//!   old one is not written any more. So its readers find its entries of that time.
#![allow(unsafe_code)]

use core::marker::PhantomData;

use bytemuck::NoUninit;

use super::group::{Group, Shape};
use super::plan::{LARGEST, Load};
use crate::concurrent::memory::{ALIGN, allocate, free};
use crate::concurrent::policy;
use crate::concurrent::sync::{AtomicU64, Ordering};
use crate::raw::prefetch::prefetch;
use crate::table::error::TryReserveError;

/// Words after the groups.
const COUNTS: usize = 8;
/// The word with the number of slots that are not free.
const USED: usize = 0;
/// The word with the number of entries.
const LIVE: usize = 1;
/// The word with the limit of the segment.
const LIMIT: usize = 2;
/// The word with its depth.
const DEPTH: usize = 3;

/// A tagged pointer to a segment: the low bits are its size in groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentPtr(pub(super) *mut AtomicU64);

impl SegmentPtr {
    /// The bits of the pointer that store the size.
    const SIZE: usize = ALIGN - 1;

    #[inline(always)]
    fn len(self) -> usize {
        self.0.addr() & Self::SIZE
    }

    #[inline(always)]
    fn first(self) -> *mut AtomicU64 {
        self.0.map_addr(|address| address & !Self::SIZE)
    }

    /// Returns the segment.
    ///
    /// # Safety
    ///
    /// The pointer is that of a segment for these types, which is not freed during `'p`.
    #[inline(always)]
    pub(super) unsafe fn segment<'p, K, V>(self) -> Segment<'p, K, V> {
        Segment { first: self.first(), len: self.len(), shape: PhantomData }
    }

    /// Returns the words of a segment for these types.
    const fn words<K, V>(len: usize) -> usize {
        len * Shape::<K, V>::GROUP + COUNTS
    }

    /// Returns the bytes of a segment of `len` groups for these types.
    pub(super) const fn bytes<K, V>(len: usize) -> usize {
        Self::words::<K, V>(len) * size_of::<u64>()
    }

    /// Returns the allocated bytes of a segment for these types.
    pub(super) fn allocation_size<K, V>(self) -> usize {
        Self::bytes::<K, V>(self.len())
    }

    /// Frees the segment.
    ///
    /// # Safety
    ///
    /// It was allocated for these types, is not used any more, and is freed once.
    pub(super) unsafe fn free<K, V>(self) {
        // SAFETY: by the contract; allocated in `SegmentBox::new`.
        unsafe { free(self.first(), Self::words::<K, V>(self.len())) };
    }
}

/// A segment that is not published yet. Frees it.
pub(super) struct SegmentBox<K, V>(SegmentPtr, PhantomData<(K, V)>);

impl<K, V> Drop for SegmentBox<K, V> {
    fn drop(&mut self) {
        // SAFETY: allocated in `new`, and not published.
        unsafe { self.0.free::<K, V>() };
    }
}

impl<K, V> SegmentBox<K, V> {
    /// Allocates a segment without entries, of a number of groups; `seed` determines its limit.
    pub(super) fn new(size: u32, depth: u32, seed: u64) -> Result<Self, TryReserveError> {
        debug_assert!(size > 0 && size <= LARGEST);
        let size = size as usize;
        let words = SegmentPtr::words::<K, V>(size);
        let limit = policy::limit(size * Shape::<K, V>::SLOTS, seed) as u64;
        let first = allocate(words, |word| {
            AtomicU64::new(match (word + COUNTS).checked_sub(words) {
                Some(LIMIT) => limit,
                Some(DEPTH) => depth.into(),
                _ => 0,
            })
        })?;
        Ok(Self(SegmentPtr(first.as_ptr().map_addr(|address| address | size)), PhantomData))
    }

    pub(super) fn segment(&self) -> Segment<'_, K, V> {
        // SAFETY: it is freed when it is dropped.
        unsafe { self.0.segment() }
    }

    /// Returns the pointer, for publication.
    pub(super) fn into_ptr(self) -> SegmentPtr {
        core::mem::ManuallyDrop::new(self).0
    }
}

/// A segment that is not freed during `'p`.
pub(super) struct Segment<'p, K, V> {
    first: *mut AtomicU64,
    /// Number of groups.
    len: usize,
    shape: PhantomData<(&'p AtomicU64, K, V)>,
}

impl<K, V> Clone for Segment<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for Segment<'_, K, V> {}

/// The position of an entry in a segment.
#[derive(Clone, Copy)]
pub(super) struct SlotId {
    home: usize,
    /// Number of groups after its home.
    pub(super) distance: usize,
    slot: usize,
}

impl<'p, K, V> Segment<'p, K, V> {
    pub(super) fn ptr(self) -> SegmentPtr {
        SegmentPtr(self.first.map_addr(|address| address | self.len))
    }

    /// Returns a group.
    #[inline(always)]
    fn group(self, index: usize) -> Group<'p, K, V> {
        debug_assert!(index < self.len);
        // SAFETY: a segment has `len` groups.
        let first = unsafe { self.first.add(index * Shape::<K, V>::GROUP) };
        // SAFETY: not freed during 'p: see `SegmentPtr::segment`.
        unsafe { Group::at(first) }
    }

    /// Returns the group in which a search for this mixed hash begins.
    #[inline(always)]
    pub(super) fn home(self, mixed: u64) -> Group<'p, K, V> {
        self.group(policy::home(mixed, self.len))
    }

    /// Iterates over all groups from a home on, cyclically.
    fn around(self, home: usize) -> impl Iterator<Item = Group<'p, K, V>> {
        (home..self.len).chain(0..home).map(move |index| self.group(index))
    }

    /// Returns the group at a distance from a home.
    fn at(self, home: usize, distance: usize) -> Group<'p, K, V> {
        self.group((home + distance) % self.len)
    }

    /// Iterates over all groups.
    pub(super) fn groups(self) -> impl Iterator<Item = Group<'p, K, V>> {
        self.around(0)
    }

    /// Iterates over the occupied slots.
    pub(super) fn entries(self) -> impl Iterator<Item = (Group<'p, K, V>, usize)> {
        self.groups().flat_map(|group| group.header().occupied().map(move |slot| (group, slot)))
    }

    /// Returns a count of the lock holder.
    fn count(self, word: usize) -> &'p AtomicU64 {
        // SAFETY: a segment has these words after its groups.
        let count = unsafe { self.first.add(self.len * Shape::<K, V>::GROUP + word) };
        // SAFETY: not freed during 'p: see `SegmentPtr::segment`.
        unsafe { &*count }
    }

    /// Prefetches what an insertion reads and writes.
    pub(super) fn prefetch_for_write(self, mixed: u64) {
        self.home(mixed).prefetch();
        self.home(mixed).prefetch_second();
        prefetch(self.first.wrapping_add(self.len * Shape::<K, V>::GROUP));
    }

    /// Returns the depth: the number of bits of a mixed hash that all entries share.
    pub(super) fn depth(self) -> u32 {
        // Relaxed: for the lock holder, like all counts.
        self.count(DEPTH).load(Ordering::Relaxed) as u32
    }

    /// Returns the occupancy.
    pub(super) fn load(self) -> Load {
        let count = |word| self.count(word).load(Ordering::Relaxed) as usize;
        let (used, live, limit) = (count(USED), count(LIVE), count(LIMIT));
        Load { size: self.len as u32, slots: Shape::<K, V>::SLOTS, used, live, limit }
    }

    /// Changes the counts of used slots and of entries.
    fn add(self, used: u64, live: i64) {
        let (all, entries) = (self.count(USED), self.count(LIVE));
        all.store(all.load(Ordering::Relaxed) + used, Ordering::Relaxed);
        entries.store(entries.load(Ordering::Relaxed).wrapping_add_signed(live), Ordering::Relaxed);
    }

    /// Returns the first distance from its home, from `from` on, at which there is a free slot.
    pub(super) fn distance_to_free(self, mixed: u64, from: usize) -> Option<usize> {
        let home = policy::home(mixed, self.len);
        (from..self.len).find(|&distance| self.at(home, distance).header().free().count() > 0)
    }

    /// Returns a free slot at a distance where there is one.
    fn free_slot(self, mixed: u64, distance: usize) -> SlotId {
        let home = policy::home(mixed, self.len);
        let slot = self.at(home, distance).header().free().next();
        SlotId { home, distance, slot: slot.expect("there is a free slot") }
    }

    fn group_of(self, slot_id: SlotId) -> Group<'p, K, V> {
        self.at(slot_id.home, slot_id.distance)
    }

    /// Copies an entry of another segment. There is a free slot.
    pub(super) fn copy(self, hash: u64, from: Group<'_, K, V>, slot: usize) {
        let mixed = policy::mix(hash);
        let distance = self.distance_to_free(mixed, 0).expect("the segment has a free slot");
        let slot_id = self.free_slot(mixed, distance);
        self.group_of(slot_id).copy_entry(slot_id.slot, from, slot);
        self.publish(hash, slot_id);
    }

    /// Makes an entry visible whose words are written.
    fn publish(self, hash: u64, slot_id: SlotId) {
        // S2.
        self.group_of(slot_id).publish(slot_id.slot, hash, None);
        self.around(slot_id.home).take(slot_id.distance).for_each(Group::increment_overflow);
        self.add(1, 1);
    }

    /// Removes an entry.
    pub(super) fn remove(self, slot_id: SlotId) {
        // S2.
        self.group_of(slot_id).kill(slot_id.slot);
        self.around(slot_id.home).take(slot_id.distance).for_each(Group::decrement_overflow);
        self.add(0, -1);
    }

    /// Removes all entries. Returns their number.
    pub(super) fn clear(self) -> usize {
        let live = self.load().live;
        self.groups().for_each(Group::kill_all);
        self.add(0, -(live as i64));
        live
    }
}

impl<'p, K: NoUninit, V: NoUninit> Segment<'p, K, V> {
    /// Returns the value of a key, given its hash.
    #[inline(always)]
    pub(super) fn find(self, hash: u64, mixed: u64, key: &K) -> Option<V> {
        let home = self.home(mixed);
        home.prefetch_second();
        let (found, has_overflowed) = home.find(hash, key);
        if has_overflowed { self.find_overflowed(hash, mixed, key) } else { found }
    }

    /// Searches the groups after the home.
    #[cold]
    #[inline(never)]
    fn find_overflowed(self, hash: u64, mixed: u64, key: &K) -> Option<V> {
        let later = self.around(policy::home(mixed, self.len)).skip(1);
        let mut found = later.map(|group| group.find(hash, key));
        found.find(|(_, has_overflowed)| !has_overflowed)?.0
    }

    /// Returns the slot of a key, given its hash.
    pub(super) fn locate(self, hash: u64, mixed: u64, key: &K) -> Option<SlotId> {
        let home = policy::home(mixed, self.len);
        for (distance, group) in self.around(home).enumerate() {
            if let Some(slot) = group.slot_of(hash, key) {
                return Some(SlotId { home, distance, slot });
            }
            if group.header().overflow() == 0 {
                return None;
            }
        }
        None
    }

    /// Returns the value in a slot.
    pub(super) fn value(self, slot_id: SlotId) -> V {
        self.group_of(slot_id).value(slot_id.slot)
    }

    /// Inserts an entry, whose key must be absent, at a distance where there is a free slot.
    pub(super) fn insert(self, hash: u64, mixed: u64, distance: usize, key: &K, value: &V) {
        let slot_id = self.free_slot(mixed, distance);
        self.group_of(slot_id).write(slot_id.slot, key, value);
        self.publish(hash, slot_id);
    }

    /// Replaces a value of at most one word.
    pub(super) fn replace(self, slot_id: SlotId, value: &V) {
        self.group_of(slot_id).replace(slot_id.slot, value);
    }

    /// Replaces an entry by one with another value, at the same distance from its home or a greater
    /// one, where there is a free slot.
    pub(super) fn exchange(self, hash: u64, old: SlotId, distance: usize, key: &K, value: &V) {
        let new = self.free_slot(policy::mix(hash), distance);
        self.group_of(new).write(new.slot, key, value);
        // S3.
        if new.distance == old.distance {
            self.group_of(new).publish(new.slot, hash, Some(old.slot));
            self.add(1, 0);
        } else {
            self.publish(hash, new);
            self.remove(old);
        }
    }
}
