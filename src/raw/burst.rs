//! Bursts of lookups: buffers for values, and slices for results.
//!
//! A buffer is in place: no allocation, and no initialisation of values that the burst then
//! overwrites.
#![allow(unsafe_code)]

use core::mem::{MaybeUninit, needs_drop};
use core::ptr;

use super::prefetch::BURST;

/// A buffer for at most [`BURST`] values.
pub(crate) struct BurstVec<T> {
    places: [MaybeUninit<T>; BURST],
    /// **B1** The first `len` places are initialised. At most [`BURST`]; 0 if values need no drop.
    len: usize,
}

impl<T> BurstVec<T> {
    /// An empty buffer.
    #[inline(always)]
    pub(crate) const fn new() -> Self {
        Self { places: [const { MaybeUninit::uninit() }; BURST], len: 0 }
    }

    /// Replaces the values by those that an iterator yields next, up to [`BURST`]. Returns them.
    /// The iterator is not called for more.
    #[inline(always)]
    pub(crate) fn fill(&mut self, values: impl Iterator<Item = T>) -> &mut [T] {
        self.clear();
        let mut count = 0;
        // Over two slices, this is a counted loop.
        for (place, value) in self.places.iter_mut().zip(values) {
            place.write(value);
            count += 1;
            if needs_drop::<T>() {
                // The iterator may panic.
                self.len = count;
            }
        }
        let places: *mut [MaybeUninit<T>] = &mut self.places[..count];
        // SAFETY: the first `count` places were written, and they are borrowed as `self` is.
        unsafe { &mut *(places as *mut [T]) }
    }

    #[inline(always)]
    fn clear(&mut self) {
        if needs_drop::<T>() {
            let places: *mut [MaybeUninit<T>] = &mut self.places[..self.len];
            self.len = 0;
            // SAFETY: B1: they are initialised, and none is accessed after `len` is 0.
            unsafe { ptr::drop_in_place(places as *mut [T]) };
        }
    }
}

impl<T> Drop for BurstVec<T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.clear();
    }
}

/// Returns a closure for a burst that writes each result to its index in a slice.
///
/// # Panics
///
/// The closure does, if the slice is shorter than the burst.
///
/// # Example
///
/// ```
/// use flowtable::TrashMap;
///
/// let map = TrashMap::from([(80_u16, 1), (443, 2)]);
/// let mut found = [None; 32];
/// map.get_batch(&[443, 53], flowtable::write_to(&mut found));
/// assert_eq!(found[..2], [Some(&2), None]);
/// ```
#[inline]
pub fn write_to<T>(results: &mut [T]) -> impl FnMut(usize, T) {
    |index, result| results[index] = result
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::rc::Rc;

    use super::*;

    #[test]
    fn values_are_replaced_and_dropped_once() {
        let value = Rc::new(());
        let count = || Rc::strong_count(&value) - 1;
        let mut burst = BurstVec::new();
        for len in [3, 0, BURST, 1] {
            assert_eq!(burst.fill((0..len).map(|_| value.clone())).len(), len);
            assert_eq!(count(), len);
        }
        assert_eq!((burst.fill((0..).map(|_| value.clone())).len(), count()), (BURST, BURST));
        drop(burst);
        assert_eq!(count(), 0);
    }

    #[test]
    fn the_values_are_the_next_ones() {
        let (mut burst, mut values) = (BurstVec::new(), 0..BURST + 2);
        let numbers = burst.fill(&mut values);
        numbers[1] += 6;
        assert_eq!((numbers.len(), numbers[1], numbers[BURST - 1]), (BURST, 7, BURST - 1));
        assert_eq!(burst.fill(values), [BURST, BURST + 1]);
    }

    #[test]
    fn values_before_a_panic_are_dropped() {
        let value = Rc::new(());
        let mut burst = BurstVec::new();
        burst.fill([value.clone()].into_iter());
        let mut left = 3;
        let values = core::iter::from_fn(|| {
            left -= 1;
            assert!(left > 0, "the last one panics");
            Some(value.clone())
        });
        assert!(catch_unwind(AssertUnwindSafe(|| burst.fill(values).len())).is_err());
        assert_eq!(Rc::strong_count(&value), 3);
        drop(burst);
        assert_eq!(Rc::strong_count(&value), 1);
    }
}
