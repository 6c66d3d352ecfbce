//! The ring: entries by number, which leave in the order in which they came.
//!
//! ```text
//!     number      40     41     42     43     44     45     46
//!     slot         0      1      2      3      4      5      6      7        the number modulo a power of two
//!               ╭──────┬──────┬──────┬──────┬──────┬──────┬──────┬──────╮
//!               │ dead │ dead │ living                           │      │
//!               ╰──────┴──────┴──────┴──────┴──────┴──────┴──────┴──────╯
//!                               ▲ oldest                          ▲ next
//! ```
//!
//! What holds: the slots of the numbers from the first of the dead to the last of the living are initialized, and no
//! others; they are as many as there are slots at most.
#![allow(unsafe_code)]

use alloc::alloc::handle_alloc_error;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::mem::{MaybeUninit, needs_drop};

use super::StoreError;
use crate::raw::prefetch::prefetch;

/// The first entry's number: the heads of empty chains are zero, and shall lead nowhere.
const FIRST: u64 = 1;

/// Slots, at most: the low halves of their numbers have to tell them apart.
const MOST: usize = 1 << 31;

/// Entries that die in the order in which they came, in a power of two of slots.
pub(super) struct Ring<E> {
    slots: Box<[MaybeUninit<E>]>,
    /// The number of the oldest one that lives, or that comes next.
    oldest: u64,
    living: usize,
    /// Those before it, who are not reclaimed yet.
    dead: usize,
}

impl<E> Ring<E> {
    /// Room for so many, rounded up to a power of two.
    pub(super) fn new(capacity: usize) -> Result<Self, StoreError> {
        if capacity == 0 {
            return Err(StoreError::NoCapacity);
        }
        let count = capacity.checked_next_power_of_two().filter(|&count| count <= MOST);
        let count = count.ok_or(StoreError::TooLarge)?;
        let mut slots = Vec::new();
        slots.try_reserve_exact(count).map_err(|_| StoreError::NoMemory)?;
        slots.resize_with(count, MaybeUninit::uninit);
        Ok(Self { slots: slots.into_boxed_slice(), oldest: FIRST, living: 0, dead: 0 })
    }

    pub(super) fn capacity(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn living(&self) -> usize {
        self.living
    }

    pub(super) fn dead(&self) -> usize {
        self.dead
    }

    pub(super) fn is_full(&self) -> bool {
        self.living + self.dead == self.slots.len()
    }

    /// The number of the oldest one that lives.
    #[inline]
    pub(super) fn oldest(&self) -> u64 {
        self.oldest
    }

    /// How many of the living came before the one whose number has this low half; as many as there are, or more, if it
    /// is none of the living.
    #[inline]
    pub(super) fn order_of(&self, number: u32) -> usize {
        number.wrapping_sub(self.oldest as u32) as usize
    }

    /// The living but for the oldest ones, so many of them; oldest first.
    pub(super) fn iter_from(&self, order: usize) -> impl DoubleEndedIterator<Item = &E> {
        (order..self.living).filter_map(|order| self.get(order))
    }

    #[inline]
    fn slot(&self, number: u64) -> usize {
        number as usize & (self.slots.len() - 1)
    }

    /// The entry that so many of the living came before.
    #[inline]
    pub(super) fn get(&self, order: usize) -> Option<&E> {
        if order >= self.living {
            return None;
        }
        let slot = self.slot(self.oldest + order as u64);
        // SAFETY: it is one of the living, so it is initialized.
        Some(unsafe { self.slots[slot].assume_init_ref() })
    }

    /// The same, to change.
    #[inline]
    pub(super) fn get_mut(&mut self, order: usize) -> Option<&mut E> {
        if order >= self.living {
            return None;
        }
        let slot = self.slot(self.oldest + order as u64);
        // SAFETY: it is one of the living, so it is initialized.
        Some(unsafe { self.slots[slot].assume_init_mut() })
    }

    /// Asks for the entry that would have this number.
    #[inline]
    pub(super) fn prefetch(&self, number: u32) {
        prefetch(&raw const self.slots[self.slot(u64::from(number))]);
    }

    /// The oldest ones, so many of them, die.
    #[inline]
    pub(super) fn expire(&mut self, count: usize) {
        let count = count.min(self.living);
        self.living -= count;
        self.dead += count;
        self.oldest += count as u64;
    }

    /// Drops the dead, oldest first, and at most so many. How many it were.
    #[inline]
    pub(super) fn reclaim(&mut self, most: usize) -> usize {
        let count = self.dead.min(most);
        if !needs_drop::<E>() {
            self.dead -= count;
            return count;
        }
        for _ in 0..count {
            let slot = self.slot(self.oldest - self.dead as u64);
            // It counts as gone before it is dropped, which may panic.
            self.dead -= 1;
            // SAFETY: it was one of the dead, so it is initialized; it is none now.
            unsafe { self.slots[slot].assume_init_drop() };
        }
        count
    }

    /// The number that comes next.
    #[inline]
    pub(super) fn next(&self) -> u64 {
        self.oldest + self.living as u64
    }

    /// Adds a living one, if there is a slot.
    #[inline]
    pub(super) fn push(&mut self, entry: E) -> Option<&mut E> {
        if self.is_full() {
            return None;
        }
        let slot = self.slot(self.next());
        self.living += 1;
        Some(self.slots[slot].write(entry))
    }
}

#[cfg(test)]
impl<E> Ring<E> {
    /// Has the next number be this one. Nobody is in it.
    pub(super) fn begin_at(&mut self, number: u64) {
        assert_eq!((self.living, self.dead), (0, 0));
        self.oldest = number;
    }
}

impl<E: Clone> Clone for Ring<E> {
    /// The living, with their numbers. The dead stay behind.
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
        /// Drops what is left when the drop of one has panicked.
        struct Rest<'a, E>(&'a mut Ring<E>);

        impl<E> Drop for Rest<'_, E> {
            fn drop(&mut self) {
                self.0.reclaim(usize::MAX);
            }
        }

        self.expire(self.living);
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
        assert!(ring.push(Rc::clone(&counted)).is_none(), "the dead take their slots with them");
        assert_eq!((ring.reclaim(2), ring.living(), ring.dead()), (2, 1, 1));
        assert_eq!(Rc::strong_count(&counted), 3);
        assert!(ring.push(Rc::clone(&counted)).is_some());
        let clone = ring.clone();
        assert_eq!((clone.living(), clone.dead(), Rc::strong_count(&counted)), (2, 0, 6));
        drop(clone);
        drop(ring);
        assert_eq!(Rc::strong_count(&counted), 1);
    }

    #[test]
    fn entries_are_known_by_their_numbers() {
        let mut ring = Ring::new(4).unwrap();
        for number in 1..40_u64 {
            assert_eq!(ring.next(), number);
            if ring.is_full() {
                ring.expire(1);
                ring.reclaim(1);
            }
            assert!(ring.push(number).is_some());
            let orders = 0..ring.living();
            assert!(
                orders
                    .clone()
                    .all(|order| ring.get(order) == Some(&(ring.oldest() + order as u64)))
            );
            assert!(
                orders
                    .clone()
                    .all(|order| ring.order_of((ring.oldest() + order as u64) as u32) == order)
            );
            assert_eq!(ring.get(ring.living()), None);
            assert_eq!(ring.get_mut(usize::MAX), None);
            assert!(ring.order_of(ring.oldest() as u32 - 1) >= ring.living());
        }
    }

    #[cfg(feature = "std")]
    #[test]
    fn a_panic_keeps_nobody_from_being_dropped() {
        struct Bomb(#[expect(dead_code, reason = "it counts")] Rc<()>, bool);

        impl Drop for Bomb {
            fn drop(&mut self) {
                if self.1 {
                    std::panic::resume_unwind(alloc::boxed::Box::new(()));
                }
            }
        }

        let counted = Rc::new(());
        let mut ring = Ring::new(8).unwrap();
        (0..8).for_each(|number| _ = ring.push(Bomb(Rc::clone(&counted), number == 3)));
        ring.expire(5);
        let dropped = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| drop(ring)));
        assert_eq!((dropped.is_err(), Rc::strong_count(&counted)), (true, 1));
    }

    #[test]
    fn nothing_of_no_size_is_kept_too() {
        let mut ring = Ring::new(2).unwrap();
        assert!(ring.push(()).is_some() && ring.push(()).is_some() && ring.push(()).is_none());
        assert_eq!(ring.get(1), Some(&()));
    }
}
