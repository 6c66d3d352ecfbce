//! An array of a fixed power of two of elements, aligned to cache lines.
//!
//! ```text
//!     40 bytes each, dense:        │ 0     1 │  2    3│    4    │   every second one spans two
//!     padded, one in a line:       │ 0       │ 1      │ 2       │   each is in one
//!     20 bytes each, padded:       │ 0  1  2 │ 3  4  5│ 6  7  8 │
//! ```
//!
//! Indices wrap around, so they are not checked. Padded, a line has as many elements as fit into
//! it, and larger elements start at a line. That depends on the element type, and no Rust type has
//! such an alignment; hence the unsafe code.
//!
//! Invariant: the length is a power of two, and all elements are initialized from the end of the
//! constructor to the drop. The allocation has a separate owner, so it is freed whatever panics.
#![allow(unsafe_code)]

use alloc::alloc::handle_alloc_error;
use core::alloc::Layout;
use core::marker::PhantomData;
use core::ops::Range;
use core::ptr::NonNull;

use super::{Allocator, Global};
use crate::raw::prefetch::prefetch;

/// Bytes of a cache line on most CPUs.
pub(crate) const CACHE_LINE: usize = 64;

/// The maximum number of cache lines of an element to prefetch: more would evict each other from
/// L1.
const MAX_PREFETCHED: usize = 4;

/// The error of an array that is not allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArrayError {
    /// There are more bytes than addresses.
    TooLarge,
    /// The allocation failed.
    NoMemory,
}

/// An allocation, freed on drop.
struct Allocation<A: Allocator> {
    start: NonNull<u8>,
    layout: Layout,
    memory: A,
}

impl<A: Allocator> Allocation<A> {
    fn new(layout: Layout, memory: A) -> Result<Self, ArrayError> {
        let start = memory.allocate(layout).map_err(|_| ArrayError::NoMemory)?.cast();
        Ok(Self { start, layout, memory })
    }
}

impl<A: Allocator> Drop for Allocation<A> {
    fn drop(&mut self) {
        // SAFETY: it was allocated by this allocator, with this layout.
        unsafe { self.memory.deallocate(self.start, self.layout) };
    }
}

/// An array of a power of two of elements. Indices wrap around.
pub(crate) struct Array<T, A: Allocator = Global, const PADDED: bool = false> {
    first: NonNull<T>,
    /// The length, less one.
    mask: usize,
    /// The number of initialized elements: all, except in the constructor.
    initialized: usize,
    /// The memory of the elements. It is dropped after them.
    allocation: Allocation<A>,
    elements: PhantomData<T>,
}

// SAFETY: it owns its elements, as a boxed slice does.
unsafe impl<T: Send, A: Allocator + Send, const PADDED: bool> Send for Array<T, A, PADDED> {}
// SAFETY: a shared reference to it gives shared references to its elements only.
unsafe impl<T: Sync, A: Allocator + Sync, const PADDED: bool> Sync for Array<T, A, PADDED> {}

impl<T, A: Allocator, const PADDED: bool> Array<T, A, PADDED> {
    /// Bytes from one element to the next in the same line: a multiple of the alignment, which is a
    /// power of two.
    const STRIDE: usize = {
        let (size, align) = (size_of::<T>(), align_of::<T>());
        if size == 0 {
            align
        } else if !PADDED {
            size
        } else if size > CACHE_LINE {
            size.next_multiple_of(if align > CACHE_LINE { align } else { CACHE_LINE })
        } else if (CACHE_LINE / size).is_power_of_two() {
            CACHE_LINE / (CACHE_LINE / size)
        } else {
            size
        }
    };

    /// The number of elements in a line, or one if they span more; and bytes beyond them.
    const LINE: (usize, usize) = match CACHE_LINE / Self::STRIDE {
        0 => (1, 0),
        _ if !PADDED => (1, 0),
        count => (count, CACHE_LINE % Self::STRIDE),
    };

    /// Returns the distance in bytes of an element from the first one.
    #[inline]
    const fn offset(index: usize) -> usize {
        index * Self::STRIDE + Self::rests(index + 1)
    }

    /// Returns the number of bytes before the last of `len` elements that are beyond the elements
    /// of their line.
    const fn rests(len: usize) -> usize {
        let (per_line, rest) = Self::LINE;
        (len - 1) / per_line * rest
    }

    /// Creates `len` elements, rounded up to a power of two, each from its index.
    pub(crate) fn new_in(
        len: usize,
        memory: A,
        create: impl Fn(usize) -> T,
    ) -> Result<Self, ArrayError> {
        let len = len.checked_next_power_of_two().ok_or(ArrayError::TooLarge)?;
        let layout = Self::layout(len).ok_or(ArrayError::TooLarge)?;
        let allocation = Allocation::new(layout, memory)?;
        let mut array = Self {
            first: allocation.start.cast(),
            mask: len - 1,
            initialized: 0,
            allocation,
            elements: PhantomData,
        };
        // If `create` panics, the elements created so far are dropped with `array`.
        while array.initialized < len {
            let (slot, element) = (array.pointer(array.initialized), create(array.initialized));
            // SAFETY: the slot is within the allocation, aligned, and not initialized yet.
            unsafe { slot.write(element) };
            array.initialized += 1;
        }
        Ok(array)
    }

    /// Clones the array with `clone` for each element. Aborts like other failed allocations.
    pub(crate) fn clone_with(&self, clone: impl Fn(&T) -> T) -> Self
    where
        A: Clone,
    {
        let memory = self.allocator().clone();
        let clones = Self::new_in(self.len(), memory, |index| clone(self.get(index)));
        clones.unwrap_or_else(|_| match Self::layout(self.len()) {
            Some(layout) => handle_alloc_error(layout),
            None => unreachable!("an array of this length exists"),
        })
    }

    fn layout(len: usize) -> Option<Layout> {
        let bytes = Self::STRIDE.checked_mul(len)?.checked_add(Self::rests(len))?;
        Layout::from_size_align(bytes, CACHE_LINE.max(align_of::<T>())).ok()
    }

    pub(crate) const fn len(&self) -> usize {
        self.mask + 1
    }

    /// Returns the allocator.
    pub(crate) const fn allocator(&self) -> &A {
        &self.allocation.memory
    }

    /// Returns the address of the element at `index` modulo the length.
    #[inline]
    pub(crate) fn pointer(&self, index: usize) -> NonNull<T> {
        // SAFETY: the allocation has a slot for each index up to the mask; `offset` keeps it
        // aligned.
        unsafe { self.first.byte_add(Self::offset(index & self.mask)) }
    }

    /// Returns the element at `index` modulo the length.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> &T {
        // SAFETY: it is initialized, and not mutably borrowed while `self` is borrowed.
        unsafe { self.pointer(index).as_ref() }
    }

    /// Returns a mutable reference to the element at `index` modulo the length.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: usize) -> &mut T {
        // SAFETY: it is initialized, and not borrowed otherwise while `self` is mutably borrowed.
        unsafe { self.pointer(index).as_mut() }
    }

    /// Prefetches the first cache lines of the element at `index` modulo the length.
    #[inline]
    pub(crate) fn prefetch(&self, index: usize) {
        let first = self.pointer(index).as_ptr();
        let lines = (0..size_of::<T>()).step_by(CACHE_LINE).take(MAX_PREFETCHED);
        lines.for_each(|line| prefetch(first.wrapping_byte_add(line)));
    }

    /// Iterates over the elements in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Iterates over the elements in order, with mutable references.
    pub(crate) fn iter_mut(&mut self) -> ArrayIterMut<'_, T, A, PADDED> {
        ArrayIterMut { indices: 0..self.len(), array: self }
    }

    /// Bytes allocated.
    pub(crate) const fn allocation_size(&self) -> usize {
        self.len() * Self::STRIDE + Self::rests(self.len())
    }
}

/// An iterator over the elements of an array, with mutable references.
pub(crate) struct ArrayIterMut<'a, T, A: Allocator, const PADDED: bool> {
    array: &'a mut Array<T, A, PADDED>,
    /// The elements that remain.
    indices: Range<usize>,
}

impl<'a, T, A: Allocator, const PADDED: bool> Iterator for ArrayIterMut<'a, T, A, PADDED> {
    type Item = &'a mut T;

    fn next(&mut self) -> Option<&'a mut T> {
        let index = self.indices.next()?;
        // SAFETY: it is initialized, and not borrowed otherwise while the array is mutably
        // borrowed, as each index below the length is returned once.
        Some(unsafe { self.array.pointer(index).as_mut() })
    }
}

impl<T, A: Allocator, const PADDED: bool> Drop for Array<T, A, PADDED> {
    fn drop(&mut self) {
        for index in 0..self.initialized {
            // SAFETY: it is initialized, and not used afterwards. If a drop panics, the rest is
            // leaked.
            unsafe { self.pointer(index).drop_in_place() };
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::rc::Rc;

    use super::*;

    type Padded<T> = Array<T, Global, true>;

    #[test]
    fn dense_elements_have_no_space_between_them() {
        let array = Array::<[u64; 3]>::new_in(3, Global, |index| [index as u64; 3]).unwrap();
        assert_eq!((array.len(), array.allocation_size()), (4, 4 * 24));
        assert_eq!(array.pointer(0).addr().get() % CACHE_LINE, 0);
        assert_eq!((array.get(2), array.get(7)), (&[2; 3], &[3; 3]));
    }

    #[test]
    fn iteration_by_mutable_reference_is_over_each_element_once() {
        let mut dense = Array::<u32>::new_in(5, Global, |index| index as u32).unwrap();
        let mut padded = Padded::<[u32; 5]>::new_in(5, Global, |index| [index as u32; 5]).unwrap();
        let all: alloc::vec::Vec<&mut u32> = dense.iter_mut().collect();
        all.into_iter().chain(padded.iter_mut().flatten()).for_each(|number| *number *= 10);
        assert!(dense.iter().copied().eq((0..8).map(|number| 10 * number)));
        assert!(padded.iter().copied().eq((0..8).map(|number| [10 * number; 5])));
        assert!(padded.iter_mut().nth(8).is_none());
    }

    #[test]
    fn no_element_spans_more_cache_lines_than_necessary() {
        fn check<T: Default>(size: usize) {
            let array = Padded::<T>::new_in(5, Global, |_| T::default()).unwrap();
            assert_eq!((array.len(), array.allocation_size()), (8, size));
            let mut next = array.first.addr().get();
            for element in array.iter() {
                let address = (&raw const *element).addr();
                assert_eq!(address % align_of::<T>(), 0);
                assert!(next <= address);
                next = address + size_of::<T>();
                let end = address + size_of::<T>().max(1) - 1;
                assert_eq!(
                    end / CACHE_LINE - address / CACHE_LINE,
                    size_of::<T>().saturating_sub(1) / CACHE_LINE
                );
            }
        }
        #[derive(Default)]
        #[repr(align(128))]
        struct Wide([u64; 3]);
        #[derive(Default)]
        #[repr(align(128))]
        struct Empty;
        check::<u8>(8);
        check::<[u32; 3]>(64 + 3 * 12);
        check::<[u32; 4]>(2 * 64);
        check::<[u32; 5]>(2 * 64 + 2 * 20);
        check::<[u32; 6]>(4 * 64);
        check::<[u64; 5]>(8 * 64);
        check::<[u64; 8]>(8 * 64);
        check::<[u64; 9]>(8 * 128);
        check::<Wide>(8 * 128);
        check::<()>(8);
        check::<Empty>(8 * 128);
        _ = Wide::default().0;
    }

    #[test]
    fn elements_are_dropped_once() {
        let counted = Rc::new(());
        let array = Array::<_>::new_in(4, Global, |_| Rc::clone(&counted)).unwrap();
        assert_eq!(Rc::strong_count(&counted), 5);
        drop(array);
        assert_eq!(Rc::strong_count(&counted), 1);
    }

    #[test]
    fn more_elements_than_addresses_are_an_error() {
        for len in [usize::MAX, usize::MAX / 2, 1 << (usize::BITS - 2)] {
            assert_eq!(
                Array::<_>::new_in(len, Global, |_| 0_u64).err(),
                Some(ArrayError::TooLarge)
            );
        }
    }
}
