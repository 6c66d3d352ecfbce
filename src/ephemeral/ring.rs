//! A ring buffer of entries, indexed by sequence number and removed first in, first out.
//!
//! ```text
//!     sequence    40     41     42     43     44     45     46
//!     slot         0      1      2      3      4      5      6      7      sequence mod slots
//!               ╭──────┬──────┬──────┬──────┬──────┬──────┬──────┬──────╮
//!               │ expired     │ live                             │      │
//!               ╰──────┴──────┴──────┴──────┴──────┴──────┴──────┴──────╯
//!                               ▲ oldest                          ▲ next
//! ```
//!
//! An entry has a body, and a link and an expiry time, which stay when the body is removed from the
//! middle: its slot is vacant then, until another body is put there, or until it is the oldest.
//!
//! Invariant: exactly the slots of the sequence numbers from the first expired to the last live
//! entry have a body, except for those whose bit of `vacant` is set, which are `vacancies`; no
//! other bit is set. There are at most as many entries as slots.
#![allow(unsafe_code)]

use alloc::alloc::handle_alloc_error;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::mem::{MaybeUninit, needs_drop};

use super::StoreError;
use crate::raw::prefetch::prefetch;

/// The first sequence number. The heads of empty chains are zero, which must not match an entry.
const FIRST_SEQUENCE: u64 = 1;

/// The maximum number of slots: the low halves of sequence numbers must distinguish them.
const MAX_SLOTS: usize = 1 << 31;

/// What is known of an entry whether its slot is vacant or not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// The low half of the sequence number of the next older entry of the chain, which may be
    /// stale; for a vacant slot, that of another vacant one.
    pub(super) link: u32,
    /// The low half of the tick at which the binding expires, or would have expired.
    pub(super) expiry: u32,
}

/// A slot of 24 bytes for bodies of 16, as the word counts of the paper imply. What a lookup reads
/// comes first, to share a cache line.
#[repr(C)]
struct Slot<B> {
    times: Times,
    body: MaybeUninit<B>,
}

/// A queue of entries that expire in the order of insertion, in a power of two of slots.
pub(super) struct Ring<B> {
    slots: Box<[Slot<B>]>,
    /// One bit for each slot.
    vacant: Box<[u64]>,
    /// The sequence number of the oldest live entry, or the next one if none is live.
    oldest: u64,
    live: usize,
    /// Entries before `oldest` that are not reclaimed yet.
    expired: usize,
    /// Live and expired entries without a body.
    vacancies: usize,
}

/// Allocates `count` items.
fn allocate<T>(count: usize, item: impl FnMut() -> T) -> Result<Box<[T]>, StoreError> {
    let mut items = Vec::new();
    items.try_reserve_exact(count).map_err(|_| StoreError::NoMemory)?;
    items.resize_with(count, item);
    Ok(items.into_boxed_slice())
}

impl<B> Ring<B> {
    /// Creates a ring with this capacity, rounded up to a power of two.
    pub(super) fn new(capacity: usize) -> Result<Self, StoreError> {
        if capacity == 0 {
            return Err(StoreError::NoCapacity);
        }
        let count = capacity.checked_next_power_of_two().filter(|&count| count <= MAX_SLOTS);
        let count = count.ok_or(StoreError::TooLarge)?;
        let times = Times { link: 0, expiry: 0 };
        let slots = allocate(count, || Slot { times, body: MaybeUninit::uninit() })?;
        let vacant = allocate(count.div_ceil(64), || 0)?;
        Ok(Self { slots, vacant, oldest: FIRST_SEQUENCE, live: 0, expired: 0, vacancies: 0 })
    }

    pub(super) fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Returns the number of allocated bytes.
    pub(super) fn allocation_size(&self) -> usize {
        size_of_val(&*self.slots) + size_of_val(&*self.vacant)
    }

    /// Returns the number of live entries, with or without a body.
    #[inline]
    pub(super) fn live(&self) -> usize {
        self.live
    }

    /// Returns the number of bodies of live and expired entries.
    pub(super) fn bodies(&self) -> usize {
        self.live + self.expired - self.vacancies
    }

    /// Returns whether any live or expired entry has no body.
    #[inline]
    pub(super) fn has_vacancies(&self) -> bool {
        self.vacancies > 0
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.live + self.expired == self.slots.len()
    }

    /// Returns the sequence number of the oldest live entry.
    #[inline]
    pub(super) fn oldest(&self) -> u64 {
        self.oldest
    }

    /// Returns the position among the live entries of the one whose sequence number has this low
    /// half. The result is at least [`live`](Self::live) if there is none.
    #[inline]
    pub(super) fn position_of(&self, sequence: u32) -> usize {
        sequence.wrapping_sub(self.oldest as u32) as usize
    }

    #[inline]
    fn slot(&self, sequence: u64) -> usize {
        sequence as usize & (self.slots.len() - 1)
    }

    /// Returns the slot at a position of the live entries; 0 is the oldest.
    #[inline]
    fn slot_at(&self, position: usize) -> Option<usize> {
        (position < self.live).then(|| self.slot(self.oldest + position as u64))
    }

    #[inline]
    fn is_vacant(&self, slot: usize) -> bool {
        self.vacancies > 0 && self.vacant[slot / 64] >> (slot % 64) & 1 == 1
    }

    /// Sets or clears the bit of a slot, which has the other value.
    fn flip_vacant(&mut self, slot: usize) {
        self.vacant[slot / 64] ^= 1 << (slot % 64);
    }

    /// Returns the link and the expiry time of the live entry at a position, with or without a
    /// body.
    #[inline]
    pub(super) fn times(&self, position: usize) -> Option<Times> {
        Some(self.slots[self.slot_at(position)?].times)
    }

    /// Sets the link of the live entry at a position.
    pub(super) fn set_link(&mut self, position: usize, link: u32) {
        if let Some(slot) = self.slot_at(position) {
            self.slots[slot].times.link = link;
        }
    }

    /// Returns the body of the live entry at a position, if it has one.
    #[inline]
    pub(super) fn get(&self, position: usize) -> Option<&B> {
        Some(self.entry(position)?.1)
    }

    /// Returns the link, the expiry time and the body of the live entry at a position, if it has
    /// one.
    #[inline(always)]
    pub(super) fn entry(&self, position: usize) -> Option<(Times, &B)> {
        let slot = self.slot_at(position)?;
        if self.is_vacant(slot) {
            return None;
        }
        let slot = &self.slots[slot];
        // SAFETY: the entry is live and not vacant, so it has a body.
        Some((slot.times, unsafe { slot.body.assume_init_ref() }))
    }

    /// Returns a mutable reference to the body of the live entry at a position, if it has one.
    #[inline]
    pub(super) fn get_mut(&mut self, position: usize) -> Option<&mut B> {
        let slot = self.slot_at(position)?;
        if self.is_vacant(slot) {
            return None;
        }
        // SAFETY: the entry is live and not vacant, so it has a body.
        Some(unsafe { self.slots[slot].body.assume_init_mut() })
    }

    /// Prefetches the slot of a sequence number.
    #[inline]
    pub(super) fn prefetch(&self, sequence: u32) {
        prefetch(&raw const self.slots[self.slot(u64::from(sequence))]);
    }

    /// Marks the `count` oldest live entries as expired.
    #[inline]
    pub(super) fn expire(&mut self, count: usize) {
        let count = count.min(self.live);
        self.live -= count;
        self.expired += count;
        self.oldest += count as u64;
    }

    /// Drops the bodies of up to `budget` expired entries, oldest first. Returns their number.
    #[inline]
    pub(super) fn reclaim(&mut self, budget: usize) -> usize {
        let count = self.expired.min(budget);
        if !needs_drop::<B>() && self.vacancies == 0 {
            self.expired -= count;
            return count;
        }
        self.reclaim_each(count)
    }

    fn reclaim_each(&mut self, count: usize) -> usize {
        let mut dropped = 0;
        for _ in 0..count {
            let slot = self.slot(self.oldest - self.expired as u64);
            let is_vacant = self.is_vacant(slot);
            // Uncounted before the drop, which may panic.
            self.expired -= 1;
            if is_vacant {
                self.flip_vacant(slot);
                self.vacancies -= 1;
            } else {
                dropped += 1;
                // SAFETY: the entry was counted as expired and is not vacant, so it has a body; it
                // is uncounted now.
                unsafe { self.slots[slot].body.assume_init_drop() };
            }
        }
        dropped
    }

    /// Returns the next sequence number.
    #[inline]
    pub(super) fn next(&self) -> u64 {
        self.oldest + self.live as u64
    }

    /// Appends a live entry, unless the ring is full.
    #[inline]
    pub(super) fn push(&mut self, times: Times, body: B) -> Option<&mut B> {
        if self.is_full() {
            return None;
        }
        let slot = self.slot(self.next());
        self.live += 1;
        self.slots[slot].times = times;
        Some(self.slots[slot].body.write(body))
    }

    /// Takes the body out of the live entry at a position, if it has one. The slot is vacant then.
    pub(super) fn take(&mut self, position: usize) -> Option<B> {
        let slot = self.slot_at(position).filter(|slot| !self.is_vacant(*slot))?;
        self.vacancies += 1;
        self.flip_vacant(slot);
        // SAFETY: the entry was live and not vacant, so it had a body; it is vacant now.
        Some(unsafe { self.slots[slot].body.assume_init_read() })
    }

    /// Puts a body into the vacant slot of the live entry at a position.
    pub(super) fn fill(&mut self, position: usize, times: Times, body: B) -> Option<&mut B> {
        let slot = self.slot_at(position).filter(|slot| self.is_vacant(*slot))?;
        self.vacancies -= 1;
        self.flip_vacant(slot);
        self.slots[slot].times = times;
        Some(self.slots[slot].body.write(body))
    }

    /// Checks that `vacancies` are counted, for tests. O(slots).
    pub(super) fn are_vacancies_counted(&self) -> bool {
        let bits: u32 = self.vacant.iter().map(|bits| bits.count_ones()).sum();
        let first = self.oldest - self.expired as u64;
        let entries = (first..self.next()).filter(|sequence| self.is_vacant(self.slot(*sequence)));
        bits as usize == self.vacancies && entries.count() == self.vacancies
    }
}

#[cfg(test)]
impl<B> Ring<B> {
    /// Sets the next sequence number of an empty ring.
    pub(super) fn set_next_sequence(&mut self, sequence: u64) {
        assert_eq!((self.live, self.expired), (0, 0));
        self.oldest = sequence;
    }

    /// Sets the expiry time of the live entry at a position.
    pub(super) fn set_expiry(&mut self, position: usize, expiry: u32) {
        let slot = self.slot_at(position).expect("it is live");
        self.slots[slot].times.expiry = expiry;
    }
}

impl<B: Clone> Clone for Ring<B> {
    /// Clones the live entries with their sequence numbers. Expired entries are not cloned.
    fn clone(&self) -> Self {
        let mut clone = Self::new(self.capacity()).unwrap_or_else(|_| {
            handle_alloc_error(Layout::for_value(&*self.slots));
        });
        clone.oldest = self.oldest;
        for position in 0..self.live {
            let slot = self.slot(self.oldest + position as u64);
            let times = self.slots[slot].times;
            match self.get(position) {
                Some(body) => _ = clone.push(times, body.clone()),
                None => clone.push_vacant(times),
            }
        }
        clone
    }
}

impl<B> Ring<B> {
    /// Appends a live entry without a body to a ring that is not full.
    fn push_vacant(&mut self, times: Times) {
        let slot = self.slot(self.next());
        self.slots[slot].times = times;
        self.flip_vacant(slot);
        self.vacancies += 1;
        self.live += 1;
    }
}

impl<B> Drop for Ring<B> {
    fn drop(&mut self) {
        /// Drops the remaining entries after the drop of one has panicked.
        struct Rest<'a, B>(&'a mut Ring<B>);

        impl<B> Drop for Rest<'_, B> {
            fn drop(&mut self) {
                self.0.reclaim(usize::MAX);
            }
        }

        self.expire(self.live);
        let rest = Rest(self);
        rest.0.reclaim(usize::MAX);
    }
}

#[cfg(test)]
mod tests {
    use alloc::rc::Rc;

    use super::*;

    const TIMES: Times = Times { link: 0, expiry: 0 };

    #[test]
    fn entries_are_dropped_once() {
        let counted = Rc::new(());
        let mut ring = Ring::new(3).unwrap();
        for _ in 0..4 {
            assert!(ring.push(TIMES, Rc::clone(&counted)).is_some());
        }
        assert!(ring.push(TIMES, Rc::clone(&counted)).is_none());
        ring.expire(3);
        assert!(
            ring.push(TIMES, Rc::clone(&counted)).is_none(),
            "expired entries occupy their slots"
        );
        assert_eq!((ring.reclaim(2), ring.live(), ring.expired), (2, 1, 1));
        assert_eq!(Rc::strong_count(&counted), 3);
        assert!(ring.push(TIMES, Rc::clone(&counted)).is_some());
        let clone = ring.clone();
        assert_eq!((clone.live(), clone.expired, Rc::strong_count(&counted)), (2, 0, 6));
        drop(clone);
        drop(ring);
        assert_eq!(Rc::strong_count(&counted), 1);
    }

    #[test]
    fn entries_are_found_by_sequence_number() {
        let mut ring = Ring::new(4).unwrap();
        for next in 1..40_u64 {
            assert_eq!(ring.next(), next);
            if ring.is_full() {
                ring.expire(1);
                ring.reclaim(1);
            }
            assert!(ring.push(TIMES, next).is_some());
            for position in 0..ring.live() {
                let sequence = ring.oldest() + position as u64;
                assert_eq!(ring.get(position), Some(&sequence));
                assert_eq!(ring.position_of(sequence as u32), position);
            }
            assert_eq!(ring.get(ring.live()), None);
            assert_eq!(ring.get_mut(usize::MAX), None);
            assert!(ring.position_of(ring.oldest() as u32 - 1) >= ring.live());
        }
    }

    #[test]
    fn bodies_are_removed_from_the_middle() {
        let counted = Rc::new(());
        let mut ring = Ring::new(8).unwrap();
        (0..8).for_each(|_| _ = ring.push(TIMES, Rc::clone(&counted)));
        for position in [2, 5, 6] {
            assert!(ring.take(position).is_some() && ring.take(position).is_none());
            assert!(ring.get(position).is_none() && ring.times(position).is_some());
        }
        assert_eq!((ring.bodies(), Rc::strong_count(&counted)), (5, 6));
        assert!(ring.push(TIMES, Rc::clone(&counted)).is_none(), "vacant slots are occupied");
        let times = Times { link: 7, expiry: 9 };
        assert!(ring.fill(5, times, Rc::clone(&counted)).is_some());
        assert!(ring.fill(5, times, Rc::clone(&counted)).is_none(), "it is not vacant");
        assert_eq!(ring.times(5).map(|times| (times.link, times.expiry)), Some((7, 9)));
        let clone = ring.clone();
        assert!(clone.are_vacancies_counted() && ring.are_vacancies_counted());
        assert_eq!((clone.bodies(), clone.vacancies), (6, 2));
        drop(clone);
        // Entries 0, 1 and 3 have a body, entry 2 has none.
        ring.expire(4);
        assert_eq!((ring.reclaim(4), ring.vacancies, ring.bodies()), (3, 1, 3));
        assert!(ring.are_vacancies_counted());
        (0..4).for_each(|_| assert!(ring.push(TIMES, Rc::clone(&counted)).is_some()));
        assert_eq!((ring.bodies(), Rc::strong_count(&counted)), (7, 8));
        drop(ring);
        assert_eq!(Rc::strong_count(&counted), 1);
    }

    #[cfg(feature = "std")]
    #[test]
    fn a_panic_in_drop_does_not_leak_the_other_entries() {
        struct Bomb {
            _counted: Rc<()>,
            panics: bool,
        }

        impl Drop for Bomb {
            fn drop(&mut self) {
                if self.panics {
                    std::panic::resume_unwind(alloc::boxed::Box::new(()));
                }
            }
        }

        let counted = Rc::new(());
        let bomb = |panics| Bomb { _counted: Rc::clone(&counted), panics };
        let mut ring = Ring::new(8).unwrap();
        (0..8).for_each(|index| _ = ring.push(TIMES, bomb(index == 3)));
        ring.expire(5);
        let dropped = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| drop(ring)));
        assert_eq!((dropped.is_err(), Rc::strong_count(&counted)), (true, 1));
    }

    #[test]
    fn entries_may_be_zero_sized() {
        let mut ring = Ring::new(2).unwrap();
        assert!(
            ring.push(TIMES, ()).is_some()
                && ring.push(TIMES, ()).is_some()
                && ring.push(TIMES, ()).is_none()
        );
        assert_eq!(ring.get(1), Some(&()));
    }
}
