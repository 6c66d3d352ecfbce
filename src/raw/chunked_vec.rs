//! A vector that grows by chunks and never moves its elements.
//!
//! ```text
//!     outer    │ · │ · │ · │ – │        doubles: 24 bytes for each chunk
//!                │   │   └─────────────────────────┐
//!                │   └──────────┐                  ▾
//!                ▾              ▾
//!     chunks   │ 1024 of T │  │ 1024 of T │  │ 1024 of T, the last one not full │
//!
//!     element 2051 = 2 · 1024 + 3: offset 3 of chunk 2
//! ```
//!
//! A full `Vec` copies all of its elements into twice the memory: tens of milliseconds for millions
//! of elements. Here a push beyond the capacity allocates one more chunk. Only the outer vector
//! doubles, which copies 24 bytes for each 1024 elements.
//!
//! Invariants: each chunk has the capacity 1024 from its creation and is never reallocated; all
//! chunks but the last one are full; no chunk is empty.
//!
//! Cost: an access is a shift, a mask and two loads, the first one of a chunk header that is in the
//! CPU's cache (24 kB for a million elements); a `Vec` needs one load. Up to 1023 elements of
//! capacity are unused.

use alloc::vec::Vec;
use core::fmt;
use core::ops::{Index, IndexMut};

/// log2 of the number of elements of a chunk.
const BITS: u32 = 10;

/// The number of elements of a chunk.
const CHUNK: usize = 1 << BITS;

/// The bits of an index that are the element's offset in its chunk.
const MASK: u32 = CHUNK as u32 - 1;

/// The first capacity of the outer vector, in chunks.
const FIRST_OUTER: usize = 4;

/// A vector of `T` in chunks, indexed by `u32`.
pub(crate) struct ChunkedVec<T> {
    /// All have the capacity [`CHUNK`]; all but the last one are full; none is empty.
    chunks: Vec<Vec<T>>,
    /// The number of elements in all chunks.
    len: u32,
}

impl<T> ChunkedVec<T> {
    /// Bytes of a chunk.
    pub(crate) const GROWTH: usize = CHUNK * size_of::<T>();

    /// The number of elements of a chunk.
    pub(crate) const CHUNK: usize = CHUNK;

    /// Creates an empty vector, without allocating.
    pub(crate) const fn new() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }

    /// Returns the number of elements.
    #[inline]
    pub(crate) const fn len(&self) -> u32 {
        self.len
    }

    /// Appends an element and returns its index. One push of 1024 allocates, exactly the bytes that
    /// [`growth`](Self::growth) returned before.
    ///
    /// # Panics
    ///
    /// If the vector has 2^32 - 1024 elements already.
    #[inline]
    pub(crate) fn push(&mut self, element: T) -> u32 {
        let index = self.len;
        if index & MASK == 0 {
            self.add_chunk();
        }
        self.chunks[(index >> BITS) as usize].push(element);
        self.len += 1;
        index
    }

    /// Extends the vector with copies of `filler` until it has an element at `index`.
    #[inline]
    pub(crate) fn cover(&mut self, index: u32, filler: T)
    where
        T: Copy,
    {
        while self.len <= index {
            self.push(filler);
        }
    }

    /// Appends an empty chunk.
    #[cold]
    fn add_chunk(&mut self) {
        assert!(self.len < !MASK, "more than 2^32 - 1024 elements");
        self.chunks.reserve_exact(self.outer_growth());
        self.chunks.push(Vec::with_capacity(CHUNK));
    }

    /// Returns by how many chunk headers the outer vector grows with the next chunk.
    fn outer_growth(&self) -> usize {
        let is_full = self.chunks.len() == self.chunks.capacity();
        if is_full { self.chunks.capacity().max(FIRST_OUTER) } else { 0 }
    }

    /// Returns the bytes by which the next push increases
    /// [`allocation_size`](Self::allocation_size).
    #[inline]
    pub(crate) fn growth(&self) -> usize {
        match self.len & MASK {
            0 => Self::GROWTH + self.outer_growth() * size_of::<Vec<T>>(),
            _ => 0,
        }
    }

    /// Returns a reference to the element at `index`.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        self.chunks.get((index >> BITS) as usize)?.get((index & MASK) as usize)
    }

    /// Returns a mutable reference to the element at `index`.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.chunks.get_mut((index >> BITS) as usize)?.get_mut((index & MASK) as usize)
    }

    /// Iterates over the elements in ascending order of the index.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten()
    }

    /// Drops all elements and frees the memory.
    pub(crate) fn clear(&mut self) {
        *self = Self::new();
    }

    /// Returns the bytes allocated.
    #[inline]
    pub(crate) fn allocation_size(&self) -> usize {
        self.chunks.len() * Self::GROWTH + self.chunks.capacity() * size_of::<Vec<T>>()
    }
}

impl<T> Index<u32> for ChunkedVec<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: u32) -> &T {
        &self.chunks[(index >> BITS) as usize][(index & MASK) as usize]
    }
}

impl<T> IndexMut<u32> for ChunkedVec<T> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.chunks[(index >> BITS) as usize][(index & MASK) as usize]
    }
}

impl<T> Default for ChunkedVec<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Not derived, because a clone of a `Vec` has no spare capacity.
impl<T: Clone> Clone for ChunkedVec<T> {
    fn clone(&self) -> Self {
        let mut clone = Self::new();
        for element in self.iter() {
            clone.push(element.clone());
        }
        clone
    }
}

impl<T: fmt::Debug> fmt::Debug for ChunkedVec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;
    use alloc::format;

    use super::*;

    fn counted(len: u32) -> ChunkedVec<u32> {
        let mut chunks = ChunkedVec::new();
        for element in 0..len {
            assert_eq!(chunks.push(element), element, "indices count up from 0");
        }
        chunks
    }

    #[test]
    fn elements_keep_their_order_and_index() {
        let mut chunks = counted(3 * CHUNK as u32 + 5);
        assert_eq!(chunks.len(), 3077);
        assert!(chunks.iter().copied().eq(0..3077));
        for index in [0, 1023, 1024, 2051, 3076] {
            assert_eq!((chunks[index], chunks.get(index)), (index, Some(&index)));
        }
        for beyond in [3077, 4096, u32::MAX] {
            assert_eq!(chunks.get(beyond), None);
            assert_eq!(chunks.get_mut(beyond), None);
        }
        chunks[1024] = 7;
        *chunks.get_mut(1025).unwrap() = 8;
        assert_eq!([chunks[1023], chunks[1024], chunks[1025]], [1023, 7, 8]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow, and without unsafe code")]
    fn elements_never_move() {
        let mut chunks = ChunkedVec::new();
        let first = chunks.push(0);
        let address = &raw const chunks[first];
        for element in 1..20_000 {
            chunks.push(element);
        }
        assert_eq!(&raw const chunks[first], address);
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow, and without unsafe code")]
    fn growth_predicts_the_next_allocation_exactly() {
        let mut chunks = ChunkedVec::new();
        for element in 0..20_000_u64 {
            let (allocated, growth) = (chunks.allocation_size(), chunks.growth());
            chunks.push(element);
            assert_eq!(chunks.allocation_size(), allocated + growth, "at {element}");
            let outer = chunks.chunks.capacity() * size_of::<Vec<u64>>();
            let inner: usize = chunks.chunks.iter().map(|chunk| chunk.capacity() * 8).sum();
            assert_eq!(chunks.allocation_size(), outer + inner);
            assert!([0, ChunkedVec::<u64>::GROWTH].contains(&growth) || growth > 8192);
        }
    }

    #[test]
    fn clearing_frees_the_memory() {
        let mut chunks = counted(5000);
        chunks.clear();
        assert_eq!((chunks.len(), chunks.allocation_size(), chunks.get(0)), (0, 0, None));
        assert_eq!(chunks.push(3), 0);
    }

    #[test]
    fn a_clone_grows_like_its_original() {
        let chunks = counted(1500);
        let mut clone = chunks.clone();
        assert_eq!(clone.allocation_size(), chunks.allocation_size());
        assert_eq!((clone.push(1), chunks.len(), clone.growth()), (1500, 1500, 0));
        assert_eq!(format!("{:?}", counted(3)), "[0, 1, 2]");
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow, and without unsafe code")]
    fn elements_are_dropped_and_may_be_zero_sized() {
        let mut boxes = ChunkedVec::default();
        (0..3000).for_each(|element| _ = boxes.push(Box::new(element)));
        assert_eq!(*boxes[2999], 2999);
        let mut units = ChunkedVec::new();
        (0..3000).for_each(|_| _ = units.push(()));
        assert_eq!((units.len(), units.iter().count()), (3000, 3000));
    }
}
