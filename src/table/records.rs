//! Records by hash: index lines that point to slots.
//!
//! ```text
//!     hash ──▸ line │ 12 tags │ 12 slots │        slots    0 │ a │   1 │ b │   2 │ – │   3 │ c │
//!                                   └──────────────────────────────────▲
//! ```
//!
//! A lookup reads a line, which compares 12 tags at once, and then the record. All memory is
//! allocated by the constructor, for lines that are half full at most; records whose segments
//! have no slot, since hashes are not random, take more.
//!
//! Keys of a batch are looked up in [`Bursts`], whose cache misses overlap.
//!
//! Invariants: each record is in the lines once, under its hash, and all numbers in lines are slots
//! of records; there are at most as many records as the capacity.
#![allow(unsafe_code)]

use alloc::format;
use core::alloc::Layout;
use core::iter::{Enumerate, FilterMap, Fuse};
use core::slice;

use super::error::{CapacityError, TryReserveError, check_capacity};
use super::lines::FixedLines;
use crate::invariant::{InvariantError, ensure};
use crate::memory::{Allocator, LineAligned};
use crate::raw::burst::BurstVec;
use crate::raw::prefetch::SMALL;
use crate::raw::slab::{Contiguous, Slab, Slot};

/// A record: a key and a value, and the metadata `M` of its structure.
#[derive(Clone, Debug)]
pub(crate) struct Record<M, K, V> {
    pub(crate) meta: M,
    hash: u32,
    pub(crate) key: K,
    pub(crate) value: V,
}

type Slots<M, K, V, A> = Slab<Record<M, K, V>, Contiguous<Record<M, K, V>, LineAligned<A>>>;

/// Records by hash, up to a capacity, in slots that do not change.
#[derive(Debug)]
pub(crate) struct Records<M, K, V, A: Allocator + Clone> {
    lines: FixedLines<A>,
    slots: Slots<M, K, V, A>,
    capacity: usize,
}

/// The records of occupied slots.
pub(crate) type Occupied<'a, M, K, V> = FilterMap<
    slice::Iter<'a, Slot<Record<M, K, V>>>,
    fn(&'a Slot<Record<M, K, V>>) -> Option<&'a Record<M, K, V>>,
>;

/// The records of occupied slots, with mutable references.
pub(crate) type OccupiedMut<'a, M, K, V> = FilterMap<
    slice::IterMut<'a, Slot<Record<M, K, V>>>,
    fn(&'a mut Slot<Record<M, K, V>>) -> Option<&'a mut Record<M, K, V>>,
>;

impl<M, K, V, A: Allocator + Clone> Records<M, K, V, A> {
    /// Memory for a capacity.
    ///
    /// # Errors
    ///
    /// If the capacity is zero or 2^30 or more, or memory cannot be allocated.
    pub(crate) fn new_in(capacity: usize, memory: A) -> Result<Self, CapacityError> {
        check_capacity(capacity)?;
        let lines = FixedLines::with_capacity_in(capacity, memory.clone())?;
        let mut slots = Slab::new_in(LineAligned(memory));
        if !slots.try_reserve_exact(capacity) {
            return Err(Self::memory_error(capacity).into());
        }
        Ok(Self { lines, slots, capacity })
    }

    #[cold]
    fn memory_error(capacity: usize) -> TryReserveError {
        let layout = Layout::array::<Slot<Record<M, K, V>>>(capacity);
        layout.map_or(TryReserveError::OVERFLOW, TryReserveError::memory)
    }

    #[inline]
    pub(crate) const fn capacity(&self) -> usize {
        self.capacity
    }

    #[inline]
    pub(crate) const fn len(&self) -> usize {
        self.slots.len()
    }

    #[inline]
    pub(crate) const fn is_full(&self) -> bool {
        self.len() >= self.capacity
    }

    /// Changes the capacity, which must not be below the number of records. A lower one frees no
    /// memory.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated. Nothing has changed then.
    pub(crate) fn set_capacity(&mut self, capacity: usize) -> Result<(), CapacityError> {
        debug_assert!(self.len() <= capacity);
        let lines = match self.lines.has_room_for(capacity) {
            true => None,
            false => Some(self.lines_for(capacity)?),
        };
        if !self.slots.try_reserve_exact(capacity) {
            return Err(Self::memory_error(capacity).into());
        }
        if let Some(lines) = lines {
            self.lines = lines;
        }
        self.capacity = capacity;
        Ok(())
    }

    /// Lines with these records, and room for as many as a capacity.
    fn lines_for(&self, capacity: usize) -> Result<FixedLines<A>, TryReserveError> {
        let mut lines = FixedLines::with_capacity_in(capacity, self.allocator().clone())?;
        for slot in 0..self.slot_count() {
            if let Some(record) = self.slots.get(slot) {
                lines.insert_here(record.hash, slot)?;
            }
        }
        Ok(lines)
    }

    /// Resets the lines, if there are no records: overflow counts that were saturated by hashes
    /// that are not random end. O(capacity).
    pub(crate) fn reset_lines(&mut self) {
        if self.len() == 0 {
            self.lines.clear();
        }
    }

    pub(crate) fn allocator(&self) -> &A {
        self.lines.allocator()
    }

    pub(crate) fn allocation_size(&self) -> usize {
        self.lines.allocation_size() + self.slots.allocation_size()
    }

    /// Returns the record in an occupied slot.
    #[inline]
    pub(crate) fn record(&self, slot: u32) -> &Record<M, K, V> {
        &self.slots[slot]
    }

    /// Returns a mutable reference to the record in an occupied slot.
    #[inline]
    pub(crate) fn record_mut(&mut self, slot: u32) -> &mut Record<M, K, V> {
        &mut self.slots[slot]
    }

    /// Returns the record in a slot, if it is occupied.
    #[inline]
    pub(crate) fn get(&self, slot: u32) -> Option<&Record<M, K, V>> {
        self.slots.get(slot)
    }

    /// Returns a mutable reference to the record in a slot, if it is occupied.
    #[inline]
    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut Record<M, K, V>> {
        self.slots.get_mut(slot)
    }

    /// Returns the slot of the record with this hash for which `is_it` returns true, and the
    /// record. Hashes are not compared: nearly all candidates are the right one.
    #[inline]
    pub(crate) fn find(
        &self,
        hash: u32,
        mut is_it: impl FnMut(&Record<M, K, V>) -> bool,
    ) -> Option<(u32, &Record<M, K, V>)> {
        let Self { lines, slots, .. } = self;
        let line = lines.home_line(hash);
        let at_home = line.find_map(hash, |slot| {
            // SAFETY: numbers in lines are slots of records.
            let record = unsafe { slots.get_unchecked(slot) };
            is_it(record).then_some((slot, record))
        });
        if at_home.is_some() || !line.has_overflowed() {
            return at_home;
        }
        let slot = find_beyond_home(lines, slots, hash, is_it)?;
        // SAFETY: it is the slot of a record.
        Some((slot, unsafe { slots.get_unchecked(slot) }))
    }

    /// As [`find`](Self::find), with a mutable reference to the record.
    #[inline]
    pub(crate) fn find_mut(
        &mut self,
        hash: u32,
        mut is_it: impl FnMut(&Record<M, K, V>) -> bool,
    ) -> Option<(u32, &mut Record<M, K, V>)> {
        let Self { lines, slots, .. } = self;
        let line = lines.home_line(hash);
        let at_home = line.find_map(hash, |slot| {
            // SAFETY: numbers in lines are slots of records.
            let record: *mut _ = unsafe { slots.get_unchecked_mut(slot) };
            // SAFETY: it is the only reference to a record.
            let record = unsafe { &mut *record };
            is_it(record).then_some((slot, record))
        });
        if at_home.is_some() || !line.has_overflowed() {
            return at_home;
        }
        let slot = find_beyond_home(lines, slots, hash, is_it)?;
        // SAFETY: it is the slot of a record.
        Some((slot, unsafe { slots.get_unchecked_mut(slot) }))
    }

    /// Calls `each` with the slot of each record that has this hash.
    pub(crate) fn for_each_with_hash(
        &self,
        hash: u32,
        mut each: impl FnMut(u32, &Record<M, K, V>),
    ) {
        self.lines.find(hash, |slot| {
            let record = &self.slots[slot];
            if record.hash == hash {
                each(slot, record);
            }
            false
        });
    }

    /// Returns the slot of a record for which its lines had no room, because of hashes that are not
    /// random.
    #[inline]
    pub(crate) fn overflowed(&self) -> Option<u32> {
        self.lines.stashed()
    }

    /// Inserts a record, and returns its slot. There must be room.
    ///
    /// # Errors
    ///
    /// Returns the key and the value if there are others for which the lines had no room, because
    /// of hashes that are not random, and there is no memory for one more.
    #[inline]
    pub(crate) fn insert(&mut self, hash: u32, meta: M, key: K, value: V) -> Result<u32, (K, V)> {
        debug_assert!(!self.is_full());
        let slot = self.slots.next_index();
        if self.lines.insert_here(hash, slot).is_err() {
            return Err((key, value));
        }
        Ok(self.slots.insert(Record { meta, hash, key, value }))
    }

    /// Moves the record in an occupied slot to another hash, for the caller to write its key and
    /// its value. Returns none if there is no memory, as of [`insert`](Self::insert): nothing has
    /// changed then.
    #[inline]
    pub(crate) fn rehash(&mut self, slot: u32, hash: u32) -> Option<&mut Record<M, K, V>> {
        let record = &mut self.slots[slot];
        self.lines.rehash((record.hash, hash), slot).ok()?;
        record.hash = hash;
        Some(record)
    }

    /// Removes the record from an occupied slot.
    #[inline]
    pub(crate) fn remove(&mut self, slot: u32) -> Record<M, K, V> {
        let record = self.slots.remove(slot);
        self.lines.remove(record.hash, slot);
        record
    }

    /// Slots below this number may be occupied.
    pub(crate) fn slot_count(&self) -> u32 {
        self.slots.slot_count()
    }

    /// Iterates over the records in the order of their slots.
    pub(crate) fn iter(&self) -> Occupied<'_, M, K, V> {
        self.slots.slots().iter().filter_map(Slot::entry)
    }

    /// Iterates over the records in the order of their slots, with mutable references.
    pub(crate) fn iter_mut(&mut self) -> OccupiedMut<'_, M, K, V> {
        self.slots.slots_mut().iter_mut().filter_map(Slot::entry_mut)
    }

    /// Prefetches the line of the record in a slot, if it is occupied; nothing if the records have
    /// few bytes.
    #[inline]
    pub(crate) fn prefetch_line_of(&self, slot: u32) {
        let slots = self.is_large().then_some(&self.slots);
        if let Some(record) = slots.and_then(|slots| slots.get(slot)) {
            self.lines.prefetch(record.hash);
        }
    }

    /// Whether the records have more than [`SMALL`] bytes: only then prefetches pay.
    #[inline]
    pub(crate) const fn is_large(&self) -> bool {
        self.capacity > SMALL / size_of::<Slot<Record<M, K, V>>>()
    }

    /// Prefetches the home line of a hash.
    #[inline]
    pub(crate) fn prefetch_line(&self, hash: u32) {
        self.lines.prefetch(hash);
    }

    /// Prefetches the record that the home line of a hash leads to.
    #[inline]
    pub(crate) fn prefetch_record(&self, hash: u32) {
        if let Some(slot) = self.lines.home_line(hash).candidate(hash) {
            self.slots.prefetch(slot);
        }
    }

    pub(crate) fn validate(&self) -> Result<(), InvariantError> {
        let (records, lines) = (self.len(), self.lines.len());
        ensure(records == lines, || format!("{records} records, {lines} in the lines"))?;
        ensure(records <= self.capacity, || "there are more records than the capacity")?;
        self.lines.validate(|slot| self.slots[slot].hash)
    }
}

impl<M: Clone, K: Clone, V: Clone, A: Allocator + Clone> Clone for Records<M, K, V, A> {
    /// Clones the records, with memory for as many as the capacity.
    fn clone(&self) -> Self {
        let capacity = self.capacity;
        let (mut lines, mut slots) = (self.lines.clone(), self.slots.clone());
        lines.reserve_stash().unwrap_or_else(|error| error.raise());
        if !slots.try_reserve_exact(capacity) {
            Self::memory_error(capacity).raise();
        }
        Self { lines, slots, capacity }
    }
}

/// Returns the slot of the record with this hash for which `is_it` returns true, which is not in
/// its home line.
#[cold]
#[inline(never)]
fn find_beyond_home<M, K, V, A: Allocator + Clone>(
    lines: &FixedLines<A>,
    slots: &Slots<M, K, V, A>,
    hash: u32,
    mut is_it: impl FnMut(&Record<M, K, V>) -> bool,
) -> Option<u32> {
    // SAFETY: numbers in lines are slots of records.
    lines.find_beyond_home(hash, |slot| is_it(unsafe { slots.get_unchecked(slot) }))
}

/// A key of a batch: its index, its hash, and itself.
pub(crate) struct Hashed<Q> {
    pub(crate) index: usize,
    pub(crate) hash: u32,
    pub(crate) key: Q,
}

/// The keys of a batch, in bursts.
pub(crate) struct Bursts<I: Iterator> {
    keys: Fuse<Enumerate<I>>,
    burst: BurstVec<Hashed<I::Item>>,
}

impl<I: Iterator> Bursts<I> {
    #[inline(always)]
    pub(crate) fn new(keys: I) -> Self {
        Self { keys: keys.enumerate().fuse(), burst: BurstVec::new() }
    }

    /// Hashes the keys of the next burst, and prefetches the lines of `records` and the records
    /// that their lookups read. Returns none after the last burst.
    #[inline(always)]
    pub(crate) fn next<M, K, V, A: Allocator + Clone>(
        &mut self,
        records: &Records<M, K, V, A>,
        hash_of: impl Fn(&I::Item) -> u32,
    ) -> Option<&[Hashed<I::Item>]> {
        let hashed = self.keys.by_ref().map(|(index, key)| {
            let hash = hash_of(&key);
            records.prefetch_line(hash);
            Hashed { index, hash, key }
        });
        let burst = self.burst.fill(hashed);
        burst.iter().for_each(|hashed| records.prefetch_record(hashed.hash));
        (!burst.is_empty()).then_some(burst)
    }
}
