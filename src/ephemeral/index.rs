//! The index: from the hash of a tag to sequence numbers of bindings.
//!
//! ```text
//!     hash, mixed   │ top 8 bits: tag │ … bits from 24 on: home group … │
//!
//!     groups        │ 15 tags │ overflow count │ 15 tags │ count │ …     16 bytes each
//!                     0: free slot
//!     numbers       │ 15 sequence numbers, their low halves │ spare │ …  64 bytes each
//!
//!     location      │ distance from home: 3 bits │ group │ slot: 4 bits │
//! ```
//!
//! Groups are dense, so the groups of a million bindings have 2 MB: they stay in caches when
//! bindings do not. A lookup compares 15 tags at once. Before the comparison it prefetches the
//! numbers of the group, whose address does not depend on the tags.
//!
//! A binding whose home group is full is in the next group that is not. The overflow count of a
//! group is the number of bindings that have passed it; a lookup goes on while it is not 0. A
//! binding stays at its *location*, which its entry of the ring stores. So a removal needs no hash:
//! it frees the slot, and decrements the counts of as many groups before it as the distance is.
//!
//! There are nearly two slots for a binding, so of the bindings of a full store two of a thousand
//! are not in their home groups.
//!
//! # Invariants
//!
//! - **I1** There are at most as many bindings as the capacity, and more slots: one is free.
//! - **I2** A binding is in the first group from its home on that had a free slot when it was
//!   inserted, and all groups that it has passed have counted it.
//! - **I3** There are as many numbers as bytes of tags; a place is an index of both.
//! - A distance of [`FAR`] groups or more is stored as that, and bindings so far away stay counted
//!   when they are removed; a count of 255 stays, too. It takes hashes that are alike to get there.
//!   Then lookups of absent tags walk on from these groups, until the index is
//!   [reset](Index::reset).
#![allow(unsafe_code)]

use alloc::vec::Vec;
use core::ptr::NonNull;

use super::StoreError;
use crate::memory::{Allocator, Array};
use crate::raw::prefetch::prefetch;
use crate::table::tags::{FREE, GROUP, Group, Mask, tag};

/// Slots of a group.
const SLOTS: usize = GROUP - 1;

/// The index of the overflow count behind the tags.
const OVERFLOW: usize = SLOTS;

/// Bits of a location for the group and the slot.
const PLACE_BITS: u32 = 29;

/// The distance that is not exact.
const FAR: u32 = (1 << (u32::BITS - PLACE_BITS)) - 1;

/// The maximum number of bindings.
pub(super) const MAX_CAPACITY: usize = 1 << (PLACE_BITS - 1);

/// Where a binding is: its group and slot, and how many groups it has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Location(u32);

impl Location {
    /// Returns the location that is stored in the link of an entry.
    #[inline(always)]
    pub(super) const fn from_link(link: u32) -> Self {
        Self(link)
    }

    #[inline(always)]
    pub(super) const fn link(self) -> u32 {
        self.0
    }

    #[inline(always)]
    const fn new(place: usize, distance: u32) -> Self {
        Self(place as u32 | distance << PLACE_BITS)
    }

    /// Returns the index of the tag and of the number.
    #[inline(always)]
    const fn place(self) -> usize {
        (self.0 & ((1 << PLACE_BITS) - 1)) as usize
    }

    /// Returns the first place of the group.
    const fn start(self) -> usize {
        self.place() / GROUP * GROUP
    }

    #[inline(always)]
    const fn distance(self) -> u32 {
        self.0 >> PLACE_BITS
    }

    /// Returns whether the binding is in its home group.
    #[inline(always)]
    pub(super) const fn is_home(self) -> bool {
        self.distance() == 0
    }
}

/// The tags and sequence numbers of bindings.
pub(super) struct Index<A: Allocator> {
    /// 16 bytes for each group.
    tags: Array<u8, A>,
    /// As many as bytes of tags: I3.
    numbers: Array<u32, A>,
    /// Whether counts may be too high.
    has_stale_counts: bool,
}

/// Returns a hash whose upper bits depend on all bits, also if it has 32 bits only.
#[inline(always)]
const fn mix(hash: u64) -> u64 {
    hash.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl<A: Allocator + Clone> Index<A> {
    /// Allocates the index for a power of two of bindings.
    pub(super) fn new_in(capacity: usize, memory: A) -> Result<Self, StoreError> {
        debug_assert!(capacity <= MAX_CAPACITY);
        let places = (2 * capacity).next_multiple_of(GROUP);
        let numbers = Array::new_in(places, memory.clone(), |_| 0)?;
        let tags = Array::new_in(places, memory, |_| FREE)?;
        Ok(Self { tags, numbers, has_stale_counts: false })
    }
}

impl<A: Allocator> Index<A> {
    pub(super) const fn allocator(&self) -> &A {
        self.tags.allocator()
    }

    pub(super) const fn allocation_size(&self) -> usize {
        self.tags.allocation_size() + self.numbers.allocation_size()
    }

    /// Returns the first place of the home group of a mixed hash.
    #[inline(always)]
    fn home_of(&self, mixed: u64) -> usize {
        // The tag is in the highest bits.
        self.start((mixed >> 24 << GROUP.trailing_zeros()) as usize)
    }

    /// Returns the first place of a group, from one that may be beyond the last group.
    #[inline(always)]
    fn start(&self, place: usize) -> usize {
        debug_assert!(place % GROUP == 0);
        place & (self.tags.len() - 1)
    }

    /// Returns the first place of the group `by` groups before the group at `start`.
    fn group_before(&self, start: usize, by: usize) -> usize {
        self.start(start.wrapping_sub(by * GROUP))
    }

    /// Returns the tags of the group with a first place.
    #[inline(always)]
    fn group(&self, start: usize) -> Group {
        debug_assert!(start % GROUP == 0);
        // SAFETY: there are 16 bytes, aligned to 16: the array is aligned to cache lines.
        unsafe { Group::load(self.tags.pointer(start).as_ptr()) }
    }

    /// Returns the slots of a group with the tag of a mixed hash.
    #[inline(always)]
    fn matches(&self, start: usize, mixed: u64) -> Mask {
        self.group(start).matches_hash(mixed).below(SLOTS)
    }

    #[inline(always)]
    fn free(&self, start: usize) -> Mask {
        self.group(start).free().below(SLOTS)
    }

    /// Returns the number of bindings that have passed a group.
    #[inline(always)]
    fn overflow(&self, start: usize) -> u8 {
        let first = self.tags.pointer(start);
        // SAFETY: the group has 16 bytes.
        let count = unsafe { first.add(OVERFLOW) };
        // Volatile, or else it is extracted from the register of the tags, by way of the stack.
        // SAFETY: it is initialized, and not written while the index is borrowed.
        unsafe { count.read_volatile() }
    }

    /// Returns the address of the number at a place.
    #[inline(always)]
    fn number(&self, place: usize) -> NonNull<u32> {
        debug_assert!(place < self.numbers.len());
        // SAFETY: places are below the lengths of both arrays: I3.
        unsafe { self.numbers.pointer_unchecked(place) }
    }

    /// Returns the first result of `test` for a sequence number that may be of a tag with this
    /// hash.
    #[inline(always)]
    pub(super) fn find<R>(&self, hash: u64, mut test: impl FnMut(u32) -> Option<R>) -> Option<R> {
        let mixed = mix(hash);
        let home = self.home_of(mixed);
        // Needed as soon as a tag matches.
        prefetch(self.number(home).as_ptr());
        let found = self.find_in(home, self.matches(home, mixed), &mut test);
        if found.is_some() || self.overflow(home) == 0 {
            return found;
        }
        self.find_further(mixed, test)
    }

    /// Returns the first result of `test` for the numbers of these slots of a group.
    #[inline(always)]
    fn find_in<R>(
        &self,
        start: usize,
        mut slots: Mask,
        test: &mut impl FnMut(u32) -> Option<R>,
    ) -> Option<R> {
        while !slots.is_empty() {
            // SAFETY: it is initialized, and not written while the index is borrowed.
            let found = test(unsafe { self.number(start + slots.lowest()).read() });
            if found.is_some() {
                return found;
            }
            slots = slots.without_lowest();
        }
        None
    }

    /// Goes on with the groups after the home group.
    #[cold]
    #[inline(never)]
    fn find_further<R>(&self, mixed: u64, mut test: impl FnMut(u32) -> Option<R>) -> Option<R> {
        let home = self.home_of(mixed);
        for distance in (GROUP..self.tags.len()).step_by(GROUP) {
            let start = self.start(home + distance);
            let found = self.find_in(start, self.matches(start, mixed), &mut test);
            if found.is_some() || self.overflow(start) == 0 {
                return found;
            }
        }
        None
    }

    /// Inserts a sequence number. There is room for it: I1.
    #[inline(always)]
    pub(super) fn insert(&mut self, hash: u64, number: u32) -> Location {
        let mixed = mix(hash);
        let home = self.home_of(mixed);
        let free = self.free(home);
        match free.is_empty() {
            false => self.put(home, free, tag(mixed), number, 0),
            true => self.insert_further(home, tag(mixed), number),
        }
    }

    /// Passes the full groups from a home group on, and inserts into the first one that is not.
    #[cold]
    #[inline(never)]
    fn insert_further(&mut self, home: usize, tag: u8, number: u32) -> Location {
        let (mut start, mut distance) = (home, 0);
        loop {
            let free = self.free(start);
            if !free.is_empty() {
                return self.put(start, free, tag, number, distance.min(FAR));
            }
            debug_assert!((distance as usize) < self.tags.len() / GROUP, "I1");
            let count = self.tags.get_mut(start + OVERFLOW);
            *count = count.saturating_add(1);
            (start, distance) = (self.start(start + GROUP), distance + 1);
        }
    }

    /// Puts a number into the first of these slots of a group.
    #[inline(always)]
    fn put(&mut self, start: usize, free: Mask, tag: u8, number: u32, distance: u32) -> Location {
        let place = start + free.lowest();
        *self.tags.get_mut(place) = tag;
        // SAFETY: the index is mutably borrowed.
        unsafe { self.number(place).write(number) };
        Location::new(place, distance)
    }

    /// Frees the slot of a binding.
    #[inline(always)]
    pub(super) fn remove(&mut self, location: Location) {
        self.free_slot(location);
        if !location.is_home() {
            self.uncount(location);
        }
    }

    /// Frees the slot of a binding in its home group.
    #[inline(always)]
    pub(super) fn free_slot(&mut self, location: Location) {
        // Its upper bits do not matter.
        *self.tags.get_mut(location.0 as usize) = FREE;
    }

    /// Decrements the counts of the groups that a binding has passed.
    #[cold]
    #[inline(never)]
    fn uncount(&mut self, location: Location) {
        if location.distance() == FAR {
            self.has_stale_counts = true;
            return;
        }
        for by in 1..=location.distance() as usize {
            let start = self.group_before(location.start(), by);
            let count = self.tags.get_mut(start + OVERFLOW);
            debug_assert!(*count > 0, "I2");
            match *count {
                u8::MAX => self.has_stale_counts = true,
                _ => *count -= 1,
            }
        }
    }

    /// Sets all counts to 0, if there is no binding.
    pub(super) fn reset(&mut self) {
        if core::mem::take(&mut self.has_stale_counts) {
            for start in (0..self.tags.len()).step_by(GROUP) {
                debug_assert_eq!(self.free(start).count(), SLOTS);
                *self.tags.get_mut(start + OVERFLOW) = 0;
            }
        }
    }

    /// Prefetches the group of a binding.
    #[inline(always)]
    pub(super) fn prefetch_location(&self, location: Location) {
        prefetch(self.tags.pointer(location.0 as usize).as_ptr());
    }

    /// Prefetches the home group of a hash, and its numbers.
    #[inline(always)]
    pub(super) fn prefetch(&self, hash: u64) {
        let home = self.home_of(mix(hash));
        prefetch(self.tags.pointer(home).as_ptr());
        prefetch(self.number(home).as_ptr());
    }

    /// Returns the first number in the home group of a hash that may be the one of its tag.
    #[inline(always)]
    pub(super) fn first(&self, hash: u64) -> Option<u32> {
        let mixed = mix(hash);
        let home = self.home_of(mixed);
        self.find_in(home, self.matches(home, mixed), &mut Some)
    }

    /// Returns the number at a location, if its slot is in use, for tests.
    pub(super) fn number_at(&self, location: Location) -> Option<u32> {
        let place = location.place();
        let is_used = *self.tags.get(place) != FREE && place % GROUP < SLOTS;
        is_used.then(|| *self.numbers.get(place))
    }

    /// Counts the slots in use, for tests.
    pub(super) fn count(&self) -> usize {
        let starts = (0..self.tags.len()).step_by(GROUP);
        starts.map(|start| SLOTS - self.free(start).count()).sum()
    }

    /// Checks that the overflow counts match bindings at these locations, for tests. Bindings that
    /// were far away may still be counted.
    pub(super) fn are_passed(&self, locations: impl Iterator<Item = Location>) -> bool {
        let groups = self.tags.len() / GROUP;
        let mut passed = Vec::from_iter((0..groups).map(|_| 0_usize));
        for location in locations {
            for by in 1..=location.distance() as usize {
                passed[self.group_before(location.start(), by) / GROUP] += 1;
            }
        }
        let counts = (0..groups).map(|group| usize::from(self.overflow(group * GROUP)));
        counts.zip(passed).all(|(count, passed)| count >= passed.min(255))
    }
}

impl<A: Allocator + Clone> Clone for Index<A> {
    fn clone(&self) -> Self {
        let tags = self.tags.clone_with(|tag| *tag);
        let numbers = self.numbers.clone_with(|number| *number);
        Self { tags, numbers, has_stale_counts: self.has_stale_counts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::memory::Global;
    use crate::raw::splitmix::mix as random;

    /// Inserts and removes numbers at random, in all loads up to the capacity, and compares with a
    /// list.
    fn churn(capacity: usize, steps: u64, hash: impl Fn(u32) -> u64) {
        let mut index = Index::new_in(capacity, Global).unwrap();
        let mut model: Vec<(u32, Location)> = Vec::new();
        for step in 0..steps {
            let is_inserted = random(step) % 16 < 8 + 2 * (step / 64 % 2);
            if is_inserted && model.len() < capacity {
                let number = step as u32;
                model.push((number, index.insert(hash(number), number)));
            } else if !model.is_empty() {
                let (_, location) = model.swap_remove(random(!step) as usize % model.len());
                index.remove(location);
            }
            // Comparisons would be most of the time.
            if cfg!(miri) && step % 10 > 0 {
                continue;
            }
            assert_eq!(index.count(), model.len());
            assert!(index.are_passed(model.iter().map(|(_, location)| *location)));
            for (number, location) in &model {
                assert_eq!(index.number_at(*location), Some(*number));
                let found = index.find(hash(*number), |found| (found == *number).then_some(found));
                assert_eq!(found, Some(*number));
            }
        }
        let never = |_| -> Option<()> { panic!("a free slot has no number") };
        model.iter().for_each(|(_, location)| index.remove(*location));
        assert_eq!(index.find(hash(0), never), None);
    }

    #[test]
    fn numbers_are_found_until_they_are_removed() {
        let steps = if cfg!(miri) { 40 } else { 2000 };
        for capacity in [1, 2, 8, 16, 64] {
            churn(capacity, steps, |number| random(number.into()));
            churn(capacity, steps, |number| u64::from(random(number.into()) as u32));
            // Alike, and equal: far from home.
            churn(capacity, steps, |number| u64::from(number % 3));
            churn(if cfg!(miri) { capacity } else { 4 * capacity }, steps, |_| 7);
        }
    }

    /// Returns whether all slots are free and all counts are 0.
    fn is_empty(index: &Index<Global>) -> bool {
        index.tags.iter().all(|byte| *byte == 0)
    }

    #[test]
    fn counts_are_zero_when_random_bindings_have_gone() {
        let capacity = if cfg!(miri) { 128 } else { 1 << 14 };
        let mut index = Index::new_in(capacity, Global).unwrap();
        let numbers = 0..capacity as u32;
        let locations: Vec<_> =
            numbers.map(|number| index.insert(random(number.into()), number)).collect();
        let displaced = locations.iter().filter(|location| location.distance() > 0).count();
        assert!(displaced < capacity / 200 + 5, "{displaced}");
        assert!(locations.iter().all(|location| location.distance() < FAR));
        locations.into_iter().for_each(|location| index.remove(location));
        assert!(is_empty(&index));
    }

    #[test]
    fn counts_of_far_bindings_are_reset() {
        // As many groups of equal hashes as make some of them far.
        let capacity = if cfg!(miri) { (FAR + 1) * SLOTS as u32 } else { 256 };
        let mut index = Index::new_in(capacity as usize, Global).unwrap();
        let locations: Vec<_> = (0..capacity).map(|number| index.insert(7, number)).collect();
        assert!(locations.iter().any(|location| location.distance() == FAR));
        locations.into_iter().for_each(|location| index.remove(location));
        assert!(!is_empty(&index));
        index.reset();
        assert!(is_empty(&index));
    }

    #[test]
    fn a_location_has_the_distance_and_the_place() {
        let location = Location::new((1 << PLACE_BITS) - 1, FAR);
        assert_eq!((location.place(), location.distance()), (2 * MAX_CAPACITY - 1, FAR));
        assert_eq!(Location::from_link(location.link()), location);
    }
}
