//! Values that lie in as few cache lines as they can.
//!
//! ```text
//!     40 bytes each, in a slice:   │ 0     1 │  2    3│    4    │        every other one in two lines
//!     the same, 64 bytes apart:    │ 0       │ 1      │ 2       │        each in one
//! ```
//!
//! A value of up to 64 bytes has the next power of two to itself, a larger one whole lines. How many bytes that
//! is depends on the type, and Rust has no type with such an alignment; hence the unsafe code.
//!
//! What holds: there is a power of two of values, all of them initialized from when it is made until it is dropped.
//! The memory is given back whatever panics, as it has an owner of its own.
#![allow(unsafe_code)]

use alloc::alloc::{alloc, dealloc, handle_alloc_error};
use core::alloc::Layout;
use core::marker::PhantomData;
use core::ptr::NonNull;

use super::CacheError;
use crate::raw::prefetch::prefetch;

/// Bytes of a cache line, nearly everywhere.
pub(super) const LINE: usize = 64;

/// Lines of a value that are asked for ahead, at most: more would push each other out of the cache.
const FETCHED: usize = 4;

/// Memory that is given back.
struct Memory {
    first: NonNull<u8>,
    layout: Layout,
}

impl Memory {
    /// The size of the layout is not zero.
    fn new(layout: Layout) -> Result<Self, CacheError> {
        assert_ne!(layout.size(), 0, "a stride is at least one byte");
        // SAFETY: the size is not zero.
        let first = unsafe { alloc(layout) };
        Ok(Self { first: NonNull::new(first).ok_or(CacheError::NoMemory)?, layout })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout.
        unsafe { dealloc(self.first.as_ptr(), self.layout) };
    }
}

/// A power of two of values.
pub(super) struct Lines<T> {
    first: NonNull<T>,
    /// How many there are, less one.
    mask: usize,
    /// How many have been made: all, but while they are.
    made: usize,
    /// Where they are. It is dropped after them.
    _memory: Memory,
    owned: PhantomData<T>,
}

// SAFETY: it owns its values, as a boxed slice does.
unsafe impl<T: Send> Send for Lines<T> {}
// SAFETY: a shared reference to it gives shared references to its values only.
unsafe impl<T: Sync> Sync for Lines<T> {}

impl<T> Lines<T> {
    /// Bytes from one value to the next: a multiple of the alignment, which is a power of two.
    pub(super) const STRIDE: usize = {
        let (size, align) = (size_of::<T>(), align_of::<T>());
        if size > LINE {
            size.next_multiple_of(if align > LINE { align } else { LINE })
        } else if size == 0 {
            align
        } else {
            size.next_power_of_two()
        }
    };

    /// Makes `len` values, rounded up to a power of two, each from its number.
    pub(super) fn new(len: usize, make: impl Fn(usize) -> T) -> Result<Self, CacheError> {
        let len = len.checked_next_power_of_two().ok_or(CacheError::TooLarge)?;
        let layout = Self::layout(len).ok_or(CacheError::TooLarge)?;
        let memory = Memory::new(layout)?;
        let first = memory.first.cast();
        let mut lines = Self { first, mask: len - 1, made: 0, _memory: memory, owned: PhantomData };
        // What `make` leaves when it panics is dropped with `lines`.
        while lines.made < len {
            let (place, value) = (lines.place(lines.made), make(lines.made));
            // SAFETY: the place is within the allocation, aligned, and nothing is there yet.
            unsafe { place.write(value) };
            lines.made += 1;
        }
        Ok(lines)
    }

    /// The same values, each copied so. Ends as failed allocations do, if this one fails.
    pub(super) fn copied(&self, copy: impl Fn(&T) -> T) -> Self {
        let copies = Self::new(self.len(), |number| copy(self.at(number)));
        copies.unwrap_or_else(|_| match Self::layout(self.len()) {
            Some(layout) => handle_alloc_error(layout),
            None => unreachable!("as many as there are have a layout"),
        })
    }

    fn layout(len: usize) -> Option<Layout> {
        let align = Self::STRIDE.min(LINE).max(align_of::<T>());
        Layout::from_size_align(Self::STRIDE.checked_mul(len)?, align).ok()
    }

    pub(super) const fn len(&self) -> usize {
        self.mask + 1
    }

    /// Where the value of this number is, less the bits that are too many.
    #[inline]
    fn place(&self, number: usize) -> NonNull<T> {
        // SAFETY: below the mask there is a place for each number, in one allocation; it is aligned: see `STRIDE`.
        unsafe { self.first.byte_add((number & self.mask) * Self::STRIDE) }
    }

    /// The value of this number, less the bits that are too many.
    #[inline]
    pub(super) fn at(&self, number: usize) -> &T {
        // SAFETY: it is initialized, and not borrowed to be changed while `self` is borrowed.
        unsafe { self.place(number).as_ref() }
    }

    /// The value of this number, less the bits that are too many, to change.
    #[inline]
    pub(super) fn at_mut(&mut self, number: usize) -> &mut T {
        // SAFETY: it is initialized, and not borrowed otherwise while `self` is borrowed to be changed.
        unsafe { self.place(number).as_mut() }
    }

    /// Asks for the first lines of the value of this number, less the bits that are too many.
    #[inline]
    pub(super) fn prefetch(&self, number: usize) {
        let first = self.place(number).as_ptr();
        let lines = (0..size_of::<T>()).step_by(LINE).take(FETCHED);
        lines.for_each(|line| prefetch(first.wrapping_byte_add(line)));
    }

    /// All values, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len()).map(|number| self.at(number))
    }

    /// Bytes allocated.
    pub(super) const fn allocation_size(&self) -> usize {
        self.len() * Self::STRIDE
    }
}

impl<T> Drop for Lines<T> {
    fn drop(&mut self) {
        for number in 0..self.made {
            // SAFETY: it was made, and nobody sees it afterwards. Where one panics the others are leaked.
            unsafe { self.place(number).drop_in_place() };
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::rc::Rc;

    use super::*;

    #[test]
    fn no_value_is_in_more_lines_than_it_must_be() {
        fn check<T: Default>(stride: usize) {
            let lines = Lines::<T>::new(5, |_| T::default()).unwrap();
            assert_eq!(
                (lines.len(), Lines::<T>::STRIDE, lines.allocation_size()),
                (8, stride, 8 * stride)
            );
            for value in lines.iter() {
                let address = (&raw const *value).addr();
                assert_eq!(address % align_of::<T>(), 0);
                let end = address + size_of::<T>().max(1) - 1;
                assert_eq!(end / LINE - address / LINE, size_of::<T>().saturating_sub(1) / LINE);
            }
        }
        #[derive(Default)]
        #[repr(align(128))]
        struct Wide([u64; 3]);
        #[derive(Default)]
        #[repr(align(128))]
        struct Nothing;
        check::<u8>(1);
        check::<[u32; 3]>(16);
        check::<[u64; 5]>(64);
        check::<[u64; 8]>(64);
        check::<[u64; 9]>(128);
        check::<Wide>(128);
        check::<()>(1);
        check::<Nothing>(128);
        _ = Wide::default().0;
    }

    #[test]
    fn values_are_dropped_once() {
        let counted = Rc::new(());
        let lines = Lines::new(4, |_| Rc::clone(&counted)).unwrap();
        assert_eq!(Rc::strong_count(&counted), 5);
        drop(lines);
        assert_eq!(Rc::strong_count(&counted), 1);
    }

    #[test]
    fn more_than_there_are_addresses_is_an_error() {
        for len in [usize::MAX, usize::MAX / 2, 1 << (usize::BITS - 2)] {
            assert_eq!(Lines::new(len, |_| 0_u64).err(), Some(CacheError::TooLarge));
        }
    }
}
