//! Entries by hash: index lines that point to slots.
//!
//! ```text
//!     hash ──▸ line │ 12 tags │ 12 slots │        slots    0 │ a │   1 │ b │   2 │ – │   3 │ c │
//!                                   └──────────────────────────────────▲
//! ```
//!
//! A lookup reads a line, which compares 12 tags at once, and then the entry. All memory is
//! allocated by the constructor, for lines that are two thirds full at most; but without eviction,
//! entries whose segments have no slot, since hashes are not random, take more.
//!
//! Invariants: each entry is in the lines once, under its hash, and all numbers in lines are slots
//! of entries; there are at most as many entries as the capacity.
#![allow(unsafe_code)]

use alloc::alloc::handle_alloc_error;
use alloc::format;
use core::alloc::Layout;
use core::iter::FilterMap;
use core::num::NonZeroU64;
use core::slice;

use equivalent::Equivalent;

use super::CacheError;
use crate::eviction::EntryStats;
use crate::hash::Query;
use crate::invariant::{InvariantError, ensure};
use crate::memory::{Allocator, LineAligned};
use crate::raw::prefetch::BURST;
use crate::raw::slab::{Contiguous, Slab, Slot};
use crate::table::lines::FixedLines;
use crate::timestamp::Timestamp;

/// The maximum capacity of a cache: all slots that eviction policies support.
const MAX_CAPACITY: usize = (1 << 30) - 1;

/// An entry in a slot.
#[derive(Clone, Debug)]
pub(super) struct Entry<K, V> {
    /// The value of [`Entries::uses`] at the last use of this entry, times two, and a bit that is
    /// set if it was used since a policy examined it.
    last_use: NonZeroU64,
    hash: u32,
    pub(super) key: K,
    pub(super) value: V,
}

type Slots<K, V, A> = Slab<Entry<K, V>, Contiguous<Entry<K, V>, LineAligned<A>>>;

/// Entries by hash, in slots that do not change.
#[derive(Debug)]
pub(super) struct Entries<K, V, A: Allocator + Clone> {
    lines: FixedLines<A>,
    slots: Slots<K, V, A>,
    capacity: usize,
    /// The number of insertions and uses of entries: a clock for `last_use`.
    uses: u64,
}

fn stamp(uses: u64, is_used: bool) -> NonZeroU64 {
    // 2^63 uses take centuries.
    NonZeroU64::new(uses << 1 | u64::from(is_used)).unwrap_or(NonZeroU64::MAX)
}

impl<K, V> Entry<K, V> {
    /// Records a use, which is counted in `uses`, and returns a mutable reference to the value.
    #[inline(always)]
    fn record_use(&mut self, uses: &mut u64) -> &mut V {
        *uses += 1;
        self.last_use = stamp(*uses, true);
        &mut self.value
    }
}

impl<K, V, A: Allocator + Clone> Entries<K, V, A> {
    pub(super) fn new_in(capacity: usize, memory: A) -> Result<Self, CacheError> {
        match capacity {
            0 => return Err(CacheError::NoCapacity),
            1..=MAX_CAPACITY => {}
            _ => return Err(CacheError::TooLarge),
        }
        let lines = FixedLines::with_capacity_in(capacity, memory.clone());
        let lines = lines.map_err(|_| CacheError::NoMemory)?;
        let mut slots = Slab::new_in(LineAligned(memory));
        if !slots.try_reserve_exact(capacity) {
            return Err(CacheError::NoMemory);
        }
        Ok(Self { lines, slots, capacity, uses: 0 })
    }

    pub(super) const fn capacity(&self) -> usize {
        self.capacity
    }

    pub(super) const fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn allocator(&self) -> &A {
        self.lines.allocator()
    }

    pub(super) fn allocation_size(&self) -> usize {
        self.lines.allocation_size() + self.slots.allocation_size()
    }

    /// Returns the entry at a slot, which must be occupied.
    #[inline]
    pub(super) fn entry(&self, slot: u32) -> &Entry<K, V> {
        &self.slots[slot]
    }

    /// Returns a mutable reference to the entry at a slot, which must be occupied.
    #[inline]
    pub(super) fn entry_mut(&mut self, slot: u32) -> &mut Entry<K, V> {
        &mut self.slots[slot]
    }

    /// Returns the slot of the entry with this hash for whose key `eq` returns true.
    #[inline]
    pub(super) fn find(&self, hash: u32, mut eq: impl FnMut(&K) -> bool) -> Option<u32> {
        self.lines.find(hash, |slot| {
            let entry = &self.slots[slot];
            entry.hash == hash && eq(&entry.key)
        })
    }

    /// Returns the slot of an entry, as [`find`](Self::find), but compares the key without its
    /// hash: nearly all candidates are the right one.
    #[inline(always)]
    pub(super) fn find_likely(&self, hash: u32, eq: impl Fn(&K) -> bool) -> Option<u32> {
        let Self { lines, slots, .. } = self;
        let line = lines.home_line(hash);
        for slot in line.candidates(hash) {
            // SAFETY: numbers in lines are slots of entries.
            if eq(unsafe { &slots.get_unchecked(slot).key }) {
                return Some(slot);
            }
        }
        match line.has_overflowed() {
            true => find_beyond_home(lines, slots, hash, eq),
            false => None,
        }
    }

    /// Returns the slots of up to [`BURST`] entries. Their uses are recorded after this: a store to
    /// an entry that is still looked up would delay the loads of the next lookups.
    #[inline(always)]
    pub(super) fn find_burst<Q: Query<K>>(
        &self,
        hashes: &[u32],
        keys: &mut impl Iterator<Item = Q>,
    ) -> [Option<u32>; BURST] {
        let mut found = [None; BURST];
        for ((found, &hash), key) in found.iter_mut().zip(hashes).zip(keys) {
            *found = self.find_likely(hash, |stored| key.key().equivalent(stored));
        }
        found
    }

    /// Records a use of the entry with this hash for whose key `eq` returns true, and returns its
    /// slot and a mutable reference to its value.
    #[inline(always)]
    pub(super) fn use_entry(
        &mut self,
        hash: u32,
        eq: impl Fn(&K) -> bool,
    ) -> Option<(u32, &mut V)> {
        let slot = self.find_likely(hash, eq)?;
        // SAFETY: numbers in lines are slots of entries.
        let entry = unsafe { self.slots.get_unchecked_mut(slot) };
        Some((slot, entry.record_use(&mut self.uses)))
    }

    /// Records a use of an entry, and returns a mutable reference to its value.
    #[inline]
    pub(super) fn record_use(&mut self, slot: u32) -> &mut V {
        self.slots[slot].record_use(&mut self.uses)
    }

    /// Returns the use of an entry to a policy, and clears its mark of use.
    pub(super) fn examine(&mut self, slot: u32) -> EntryStats {
        let entry = &mut self.slots[slot];
        let (uses, is_used) = (entry.last_use.get() >> 1, entry.last_use.get() & 1 == 1);
        entry.last_use = stamp(uses, false);
        EntryStats { used: is_used, last_use: Timestamp::from_nanos(uses) }
    }

    /// Returns the least recently used of the entries with this hash, if there are at least
    /// `limit`.
    pub(super) fn victim_of_hash(&self, hash: u32, limit: usize) -> Option<u32> {
        let (mut count, mut oldest) = (0, None);
        self.lines.find(hash, |slot| {
            let entry = &self.slots[slot];
            if entry.hash == hash {
                count += 1;
                let last_use = entry.last_use.get() >> 1;
                if oldest.is_none_or(|(before, _)| last_use < before) {
                    oldest = Some((last_use, slot));
                }
            }
            false
        });
        oldest.filter(|_| count >= limit).map(|(_, slot)| slot)
    }

    /// Returns an entry for which its lines had no room, because of hashes that are not random.
    pub(super) fn overflowed(&self) -> Option<u32> {
        self.lines.stashed()
    }

    /// Inserts an entry, and returns its slot. The cache must not be full.
    ///
    /// # Errors
    ///
    /// Returns the entry if there are others for which the lines had no room, because of hashes
    /// that are not random, and there is no memory for one more.
    pub(super) fn insert(&mut self, hash: u32, key: K, value: V) -> Result<u32, (K, V)> {
        self.uses += 1;
        let slot = self.slots.next_index();
        if self.lines.insert_here(hash, slot).is_err() {
            return Err((key, value));
        }
        let last_use = stamp(self.uses, false);
        Ok(self.slots.insert(Entry { last_use, hash, key, value }))
    }

    /// Removes the entry at a slot, which must be occupied.
    pub(super) fn remove(&mut self, slot: u32) -> (K, V) {
        let Entry { hash, key, value, .. } = self.slots.remove(slot);
        self.lines.remove(hash, slot);
        (key, value)
    }

    /// Slots below this number may be occupied.
    pub(super) fn slot_count(&self) -> u32 {
        self.slots.slot_count()
    }

    /// Returns a mutable reference to the entry at a slot, if it is occupied.
    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut Entry<K, V>> {
        self.slots.get_mut(slot)
    }

    /// Iterates over the entries in the order of their slots.
    pub(super) fn iter(&self) -> Occupied<'_, K, V> {
        self.slots.slots().iter().filter_map(Slot::entry)
    }

    /// Iterates over the entries in the order of their slots, with mutable references.
    pub(super) fn iter_mut(&mut self) -> OccupiedMut<'_, K, V> {
        self.slots.slots_mut().iter_mut().filter_map(Slot::entry_mut)
    }

    /// Prefetches the line of a hash.
    #[inline]
    pub(super) fn prefetch_line(&self, hash: u32) {
        self.lines.prefetch(hash);
    }

    /// Prefetches an entry that may have this hash, whose line should be cached already.
    #[inline]
    pub(super) fn prefetch_entry(&self, hash: u32) {
        if let Some(slot) = self.lines.home_line(hash).candidate(hash) {
            self.slots.prefetch(slot);
        }
    }

    pub(super) fn validate(&self) -> Result<(), InvariantError> {
        let (entries, lines) = (self.len(), self.lines.len());
        ensure(entries == lines, || format!("{entries} entries, {lines} in the lines"))?;
        ensure(entries <= self.capacity, || "there are more entries than the capacity")?;
        self.lines.validate(|slot| self.slots[slot].hash)
    }
}

impl<K: Clone, V: Clone, A: Allocator + Clone> Clone for Entries<K, V, A> {
    /// Clones the entries, with memory for as many as the capacity.
    fn clone(&self) -> Self {
        let Self { capacity, uses, .. } = *self;
        let (mut lines, mut slots) = (self.lines.clone(), self.slots.clone());
        lines.reserve_stash().unwrap_or_else(|error| error.raise());
        if !slots.try_reserve_exact(capacity) {
            let layout = Layout::array::<Slot<Entry<K, V>>>(capacity);
            handle_alloc_error(layout.unwrap_or(Layout::new::<Entry<K, V>>()));
        }
        Self { lines, slots, capacity, uses }
    }
}

/// Returns the slot of the entry with this hash for whose key `eq` returns true, which is not in
/// its home line.
#[cold]
#[inline(never)]
fn find_beyond_home<K, V, A: Allocator + Clone>(
    lines: &FixedLines<A>,
    slots: &Slots<K, V, A>,
    hash: u32,
    eq: impl Fn(&K) -> bool,
) -> Option<u32> {
    lines.find_beyond_home(hash, |slot| slots[slot].hash == hash && eq(&slots[slot].key))
}

/// The entries of occupied slots.
pub(super) type Occupied<'a, K, V> = FilterMap<
    slice::Iter<'a, Slot<Entry<K, V>>>,
    fn(&'a Slot<Entry<K, V>>) -> Option<&'a Entry<K, V>>,
>;

/// The entries of occupied slots, with mutable references.
pub(super) type OccupiedMut<'a, K, V> = FilterMap<
    slice::IterMut<'a, Slot<Entry<K, V>>>,
    fn(&'a mut Slot<Entry<K, V>>) -> Option<&'a mut Entry<K, V>>,
>;
