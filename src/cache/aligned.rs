//! An array whose elements span as few cache lines as possible.
//!
//! ```text
//!     40 bytes each, in a slice:   │ 0     1 │  2    3│    4    │   every second one spans two
//!     64 bytes apart:              │ 0       │ 1      │ 2       │   each is in one
//! ```
//!
//! The stride is the next power of two for elements of up to 64 bytes, and a multiple of 64 for
//! larger ones. It depends on the element type, and no Rust type has such an alignment; hence the
//! unsafe code.
//!
//! Invariant: the length is a power of two, and all elements are initialized from the end of the
//! constructor to the drop. The allocation has a separate owner, so it is freed whatever panics.
#![allow(unsafe_code)]

use alloc::alloc::{alloc, dealloc, handle_alloc_error};
use core::alloc::Layout;
use core::marker::PhantomData;
use core::ptr::NonNull;

use super::CacheError;
use crate::raw::prefetch::prefetch;

/// Bytes of a cache line on most CPUs.
pub(super) const CACHE_LINE: usize = 64;

/// The maximum number of cache lines of an element to prefetch: more would evict each other from
/// L1.
const MAX_PREFETCHED: usize = 4;

/// An allocation, freed on drop.
struct Allocation {
    start: NonNull<u8>,
    layout: Layout,
}

impl Allocation {
    /// Allocates memory of a layout, whose size must not be zero.
    fn new(layout: Layout) -> Result<Self, CacheError> {
        assert_ne!(layout.size(), 0, "a stride is at least one byte");
        // SAFETY: the size is not zero.
        let start = unsafe { alloc(layout) };
        Ok(Self { start: NonNull::new(start).ok_or(CacheError::NoMemory)?, layout })
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// An array of a power of two of elements, aligned to cache lines. Indices wrap around.
pub(super) struct AlignedArray<T> {
    first: NonNull<T>,
    /// The length, less one.
    mask: usize,
    /// The number of initialized elements: all, except in the constructor.
    initialized: usize,
    /// The memory of the elements. It is dropped after them.
    _allocation: Allocation,
    elements: PhantomData<T>,
}

// SAFETY: it owns its elements, as a boxed slice does.
unsafe impl<T: Send> Send for AlignedArray<T> {}
// SAFETY: a shared reference to it gives shared references to its elements only.
unsafe impl<T: Sync> Sync for AlignedArray<T> {}

impl<T> AlignedArray<T> {
    /// Bytes from one element to the next: a multiple of the alignment, which is a power of two.
    pub(super) const STRIDE: usize = {
        let (size, align) = (size_of::<T>(), align_of::<T>());
        if size > CACHE_LINE {
            size.next_multiple_of(if align > CACHE_LINE { align } else { CACHE_LINE })
        } else if size == 0 {
            align
        } else {
            size.next_power_of_two()
        }
    };

    /// Creates `len` elements, rounded up to a power of two, each from its index.
    pub(super) fn new(len: usize, create: impl Fn(usize) -> T) -> Result<Self, CacheError> {
        let len = len.checked_next_power_of_two().ok_or(CacheError::TooLarge)?;
        let layout = Self::layout(len).ok_or(CacheError::TooLarge)?;
        let allocation = Allocation::new(layout)?;
        let mut array = Self {
            first: allocation.start.cast(),
            mask: len - 1,
            initialized: 0,
            _allocation: allocation,
            elements: PhantomData,
        };
        // If `create` panics, the elements created so far are dropped with `array`.
        while array.initialized < len {
            let (slot, element) = (array.slot(array.initialized), create(array.initialized));
            // SAFETY: the slot is within the allocation, aligned, and not initialized yet.
            unsafe { slot.write(element) };
            array.initialized += 1;
        }
        Ok(array)
    }

    /// Clones the array with `clone` for each element. Aborts like other failed allocations.
    pub(super) fn clone_with(&self, clone: impl Fn(&T) -> T) -> Self {
        let clones = Self::new(self.len(), |index| clone(self.get(index)));
        clones.unwrap_or_else(|_| match Self::layout(self.len()) {
            Some(layout) => handle_alloc_error(layout),
            None => unreachable!("an array of this length exists"),
        })
    }

    fn layout(len: usize) -> Option<Layout> {
        let align = Self::STRIDE.min(CACHE_LINE).max(align_of::<T>());
        Layout::from_size_align(Self::STRIDE.checked_mul(len)?, align).ok()
    }

    pub(super) const fn len(&self) -> usize {
        self.mask + 1
    }

    /// Returns the address of the element at `index` modulo the length.
    #[inline]
    fn slot(&self, index: usize) -> NonNull<T> {
        // SAFETY: the allocation has a slot for each index up to the mask; `STRIDE` keeps it
        // aligned.
        unsafe { self.first.byte_add((index & self.mask) * Self::STRIDE) }
    }

    /// Returns the element at `index` modulo the length.
    #[inline]
    pub(super) fn get(&self, index: usize) -> &T {
        // SAFETY: it is initialized, and not mutably borrowed while `self` is borrowed.
        unsafe { self.slot(index).as_ref() }
    }

    /// Returns a mutable reference to the element at `index` modulo the length.
    #[inline]
    pub(super) fn get_mut(&mut self, index: usize) -> &mut T {
        // SAFETY: it is initialized, and not borrowed otherwise while `self` is mutably borrowed.
        unsafe { self.slot(index).as_mut() }
    }

    /// Prefetches the first cache lines of the element at `index` modulo the length.
    #[inline]
    pub(super) fn prefetch(&self, index: usize) {
        let first = self.slot(index).as_ptr();
        let lines = (0..size_of::<T>()).step_by(CACHE_LINE).take(MAX_PREFETCHED);
        lines.for_each(|line| prefetch(first.wrapping_byte_add(line)));
    }

    /// Iterates over the elements in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Bytes allocated.
    pub(super) const fn allocation_size(&self) -> usize {
        self.len() * Self::STRIDE
    }
}

impl<T> Drop for AlignedArray<T> {
    fn drop(&mut self) {
        for index in 0..self.initialized {
            // SAFETY: it is initialized, and not used afterwards. If a drop panics, the rest is
            // leaked.
            unsafe { self.slot(index).drop_in_place() };
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::rc::Rc;

    use super::*;

    #[test]
    fn no_element_spans_more_cache_lines_than_necessary() {
        fn check<T: Default>(stride: usize) {
            let array = AlignedArray::<T>::new(5, |_| T::default()).unwrap();
            assert_eq!(
                (array.len(), AlignedArray::<T>::STRIDE, array.allocation_size()),
                (8, stride, 8 * stride)
            );
            for element in array.iter() {
                let address = (&raw const *element).addr();
                assert_eq!(address % align_of::<T>(), 0);
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
        check::<u8>(1);
        check::<[u32; 3]>(16);
        check::<[u64; 5]>(64);
        check::<[u64; 8]>(64);
        check::<[u64; 9]>(128);
        check::<Wide>(128);
        check::<()>(1);
        check::<Empty>(128);
        _ = Wide::default().0;
    }

    #[test]
    fn elements_are_dropped_once() {
        let counted = Rc::new(());
        let array = AlignedArray::new(4, |_| Rc::clone(&counted)).unwrap();
        assert_eq!(Rc::strong_count(&counted), 5);
        drop(array);
        assert_eq!(Rc::strong_count(&counted), 1);
    }

    #[test]
    fn more_elements_than_addresses_are_an_error() {
        for len in [usize::MAX, usize::MAX / 2, 1 << (usize::BITS - 2)] {
            assert_eq!(AlignedArray::new(len, |_| 0_u64).err(), Some(CacheError::TooLarge));
        }
    }
}
