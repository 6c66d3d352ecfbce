//! The directory: extendible hashing by the low bits of a hash.
//!
//! ```text
//!     low bits   000   001   010   011   100   101   110   111
//!     entries  │  A  │  B  │  C  │  B  │  A  │  B  │  D  │  B  │
//!
//!     A, C and D: a depth of 2 or 3 bits; B has 1 bit, so each entry whose lowest bit is 1 has it
//! ```
//!
//! The number of entries is a power of two. Because the *low* bits are the index, doubling appends
//! a copy of the directory. A segment of depth *d* is at every index with the same lowest *d* bits;
//! the lowest of them is its *number*.
#![allow(unsafe_code)]

use core::alloc::Layout;
use core::ptr::NonNull;

use super::error::TryReserveError;
use super::segment::Segment;
use crate::memory::Allocator;

/// Pointers to segments. It does not free its block: the table does, with its allocator.
pub(crate) struct Directory<T> {
    /// **D1** Points to `mask + 1` segments; to the one segment of [`NOWHERE`] if nothing is
    /// allocated.
    segments: NonNull<Segment<T>>,
    mask: usize,
}

/// A segment that threads share: nothing is written to it.
#[repr(transparent)]
struct Shared(Segment<()>);

// SAFETY: it is read only.
unsafe impl Sync for Shared {}

/// The directory of tables without memory.
static NOWHERE: Shared = Shared(Segment::EMPTY);

impl<T> Directory<T> {
    /// A directory of one entry, for [`Segment::EMPTY`]. Allocates nothing.
    pub(crate) const fn new() -> Self {
        Self { segments: Self::nowhere(), mask: 0 }
    }

    const fn nowhere() -> NonNull<Segment<T>> {
        // SAFETY: a static has an address. The segment is a pointer, for any entry type.
        unsafe { NonNull::new_unchecked((&raw const NOWHERE).cast_mut().cast()) }
    }

    /// The index of a hash.
    #[inline]
    pub(crate) fn index(&self, hash: u64) -> usize {
        hash as usize & self.mask
    }

    /// The segment of a hash.
    #[inline]
    pub(crate) fn segment(&self, hash: u64) -> Segment<T> {
        // SAFETY: D1; the index is masked.
        let place = unsafe { self.segments.add(self.index(hash)) };
        // SAFETY: D1.
        unsafe { place.read() }
    }

    /// Number of entries.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.mask + 1
    }

    /// log2 of the number of entries.
    pub(crate) fn depth(&self) -> u32 {
        self.len().trailing_zeros()
    }

    /// Whether there is a block for it.
    pub(crate) fn is_allocated(&self) -> bool {
        self.segments != Self::nowhere()
    }

    /// Bytes allocated.
    pub(crate) fn allocation_size(&self) -> usize {
        if self.is_allocated() { self.len() * size_of::<Segment<T>>() } else { 0 }
    }

    fn layout(len: usize) -> Result<Layout, TryReserveError> {
        Layout::array::<Segment<T>>(len).map_err(|_| TryReserveError::OVERFLOW)
    }

    /// A directory of `len` entries, a power of two, all of them for [`Segment::EMPTY`].
    pub(crate) fn allocate(len: usize, memory: &impl Allocator) -> Result<Self, TryReserveError> {
        let layout = Self::layout(len)?;
        let block = memory.allocate(layout).map_err(|_| TryReserveError::memory(layout))?;
        let segments: NonNull<Segment<T>> = block.cast();
        for index in 0..len {
            // SAFETY: the block has that number of entries.
            let place = unsafe { segments.add(index) };
            // SAFETY: as above.
            unsafe { place.write(Segment::EMPTY) };
        }
        Ok(Self { segments, mask: len - 1 })
    }

    /// Frees the block.
    pub(crate) fn free(self, memory: &impl Allocator) {
        let Ok(layout) = Self::layout(self.len()) else { return };
        if self.is_allocated() {
            // SAFETY: allocated with this layout, by the allocator of the table.
            unsafe { memory.deallocate(self.segments.cast(), layout) };
        }
    }

    /// Sets one entry.
    pub(crate) fn set(&mut self, index: usize, segment: Segment<T>) {
        assert!(self.is_allocated(), "D1");
        // SAFETY: D1; the index is masked.
        let place = unsafe { self.segments.add(index & self.mask) };
        // SAFETY: D1; it is allocated.
        unsafe { place.write(segment) };
    }

    /// Sets all entries of the segment with this number and depth.
    pub(crate) fn set_all(&mut self, number: usize, depth: u32, segment: Segment<T>) {
        (number..self.len()).step_by(1 << depth).for_each(|index| self.set(index, segment));
    }

    /// Doubles the number of entries: both halves are equal.
    pub(crate) fn double(&mut self, memory: &impl Allocator) -> Result<(), TryReserveError> {
        let len = self.len();
        let mut doubled = Self::allocate(2 * len, memory)?;
        (0..2 * len).for_each(|index| doubled.set(index, self.segment(index as u64)));
        core::mem::replace(self, doubled).free(memory);
        Ok(())
    }

    /// Halves the number of entries, while both halves are equal. Without memory it stays as it is.
    pub(crate) fn halve(&mut self, memory: &impl Allocator) {
        while self.len() > 1 && self.has_equal_halves() {
            let half = self.len() / 2;
            let Ok(mut halved) = Self::allocate(half, memory) else { return };
            (0..half).for_each(|index| halved.set(index, self.segment(index as u64)));
            core::mem::replace(self, halved).free(memory);
        }
    }

    fn has_equal_halves(&self) -> bool {
        let half = self.len() / 2;
        // From the end: segments that split last have high numbers.
        (0..half).rev().all(|at| self.segment(at as u64) == self.segment((at + half) as u64))
    }

    /// The segment whose number is `index` or a greater one, and its number, if that is below
    /// `end`; `index` is after it then.
    #[inline]
    pub(crate) fn next_from(
        &self,
        index: &mut usize,
        end: usize,
        mask: usize,
    ) -> Option<(usize, Segment<T>)> {
        while *index < end {
            let (number, segment) = (*index, self.segment(*index as u64));
            *index += 1;
            // The empty one has a mask of its own.
            if segment != Segment::EMPTY && number >> segment.header(mask).depth == 0 {
                return Some((number, segment));
            }
        }
        None
    }

    /// Every segment once, with its number.
    pub(crate) fn numbers(&self, mask: usize) -> impl Iterator<Item = (usize, Segment<T>)> {
        let mut index = 0;
        core::iter::from_fn(move || self.next_from(&mut index, self.len(), mask))
    }

    /// The last segment whose number is below `index`, which is its number then.
    pub(crate) fn last_before(&self, index: &mut usize, mask: usize) -> Option<Segment<T>> {
        while *index > 0 {
            *index -= 1;
            let segment = self.segment(*index as u64);
            if segment != Segment::EMPTY && *index >> segment.header(mask).depth == 0 {
                return Some(segment);
            }
        }
        None
    }
}
