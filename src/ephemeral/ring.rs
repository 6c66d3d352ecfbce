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
//! Invariant: exactly the slots of the sequence numbers from the first expired to the last live
//! entry are initialized; there are at most as many entries as slots.
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

/// A queue of entries that expire in the order of insertion, in a power of two of slots.
pub(super) struct Ring<E> {
    slots: Box<[MaybeUninit<E>]>,
    /// The sequence number of the oldest live entry, or the next one if none is live.
    oldest: u64,
    live: usize,
    /// Entries before `oldest` that are not reclaimed yet.
    expired: usize,
}

impl<E> Ring<E> {
    /// Creates a ring with this capacity, rounded up to a power of two.
    pub(super) fn new(capacity: usize) -> Result<Self, StoreError> {
        if capacity == 0 {
            return Err(StoreError::NoCapacity);
        }
        let count = capacity.checked_next_power_of_two().filter(|&count| count <= MAX_SLOTS);
        let count = count.ok_or(StoreError::TooLarge)?;
        let mut slots = Vec::new();
        slots.try_reserve_exact(count).map_err(|_| StoreError::NoMemory)?;
        slots.resize_with(count, MaybeUninit::uninit);
        Ok(Self { slots: slots.into_boxed_slice(), oldest: FIRST_SEQUENCE, live: 0, expired: 0 })
    }

    pub(super) fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Returns the number of live entries.
    pub(super) fn live(&self) -> usize {
        self.live
    }

    /// Returns the number of expired entries that are not reclaimed yet.
    pub(super) fn expired(&self) -> usize {
        self.expired
    }

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

    /// Iterates over the live entries from a position on, oldest first.
    pub(super) fn iter_from(&self, position: usize) -> impl DoubleEndedIterator<Item = &E> {
        (position..self.live).filter_map(|position| self.get(position))
    }

    #[inline]
    fn slot(&self, sequence: u64) -> usize {
        sequence as usize & (self.slots.len() - 1)
    }

    /// Returns the live entry at a position; 0 is the oldest.
    #[inline]
    pub(super) fn get(&self, position: usize) -> Option<&E> {
        if position >= self.live {
            return None;
        }
        let slot = self.slot(self.oldest + position as u64);
        // SAFETY: the entry is live, so its slot is initialized.
        Some(unsafe { self.slots[slot].assume_init_ref() })
    }

    /// Returns a mutable reference to the live entry at a position.
    #[inline]
    pub(super) fn get_mut(&mut self, position: usize) -> Option<&mut E> {
        if position >= self.live {
            return None;
        }
        let slot = self.slot(self.oldest + position as u64);
        // SAFETY: the entry is live, so its slot is initialized.
        Some(unsafe { self.slots[slot].assume_init_mut() })
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

    /// Drops up to `budget` expired entries, oldest first. Returns their number.
    #[inline]
    pub(super) fn reclaim(&mut self, budget: usize) -> usize {
        let count = self.expired.min(budget);
        if !needs_drop::<E>() {
            self.expired -= count;
            return count;
        }
        for _ in 0..count {
            let slot = self.slot(self.oldest - self.expired as u64);
            // Uncounted before the drop, which may panic.
            self.expired -= 1;
            // SAFETY: the entry was counted as expired, so its slot is initialized; it is uncounted
            // now.
            unsafe { self.slots[slot].assume_init_drop() };
        }
        count
    }

    /// Returns the next sequence number.
    #[inline]
    pub(super) fn next(&self) -> u64 {
        self.oldest + self.live as u64
    }

    /// Appends a live entry, unless the ring is full.
    #[inline]
    pub(super) fn push(&mut self, entry: E) -> Option<&mut E> {
        if self.is_full() {
            return None;
        }
        let slot = self.slot(self.next());
        self.live += 1;
        Some(self.slots[slot].write(entry))
    }
}

#[cfg(test)]
impl<E> Ring<E> {
    /// Sets the next sequence number of an empty ring.
    pub(super) fn set_next_sequence(&mut self, sequence: u64) {
        assert_eq!((self.live, self.expired), (0, 0));
        self.oldest = sequence;
    }
}

impl<E: Clone> Clone for Ring<E> {
    /// Clones the live entries with their sequence numbers. Expired entries are not cloned.
    fn clone(&self) -> Self {
        let mut clone = Self::new(self.capacity()).unwrap_or_else(|_| {
            handle_alloc_error(Layout::for_value(&*self.slots));
        });
        clone.oldest = self.oldest;
        for entry in self.iter_from(0) {
            clone.push(entry.clone());
        }
        clone
    }
}

impl<E> Drop for Ring<E> {
    fn drop(&mut self) {
        /// Drops the remaining entries after the drop of one has panicked.
        struct Rest<'a, E>(&'a mut Ring<E>);

        impl<E> Drop for Rest<'_, E> {
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

    #[test]
    fn entries_are_dropped_once() {
        let counted = Rc::new(());
        let mut ring = Ring::new(3).unwrap();
        for _ in 0..4 {
            assert!(ring.push(Rc::clone(&counted)).is_some());
        }
        assert!(ring.push(Rc::clone(&counted)).is_none());
        ring.expire(3);
        assert!(ring.push(Rc::clone(&counted)).is_none(), "expired entries occupy their slots");
        assert_eq!((ring.reclaim(2), ring.live(), ring.expired()), (2, 1, 1));
        assert_eq!(Rc::strong_count(&counted), 3);
        assert!(ring.push(Rc::clone(&counted)).is_some());
        let clone = ring.clone();
        assert_eq!((clone.live(), clone.expired(), Rc::strong_count(&counted)), (2, 0, 6));
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
            assert!(ring.push(next).is_some());
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
        (0..8).for_each(|index| _ = ring.push(bomb(index == 3)));
        ring.expire(5);
        let dropped = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| drop(ring)));
        assert_eq!((dropped.is_err(), Rc::strong_count(&counted)), (true, 1));
    }

    #[test]
    fn entries_may_be_zero_sized() {
        let mut ring = Ring::new(2).unwrap();
        assert!(ring.push(()).is_some() && ring.push(()).is_some() && ring.push(()).is_none());
        assert_eq!(ring.get(1), Some(&()));
    }
}
