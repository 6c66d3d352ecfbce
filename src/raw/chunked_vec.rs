//! A vector that grows by chunks and never moves its elements.
//!
//! ```text
//!     list     │ · │ · │ · │ – │        doubles: 8 bytes for each chunk
//!                │   │   └─────────────────────────┐
//!                │   └──────────┐                  ▾
//!                ▾              ▾
//!     chunks   │ 1024 of T │  │ 1024 of T │  │ 1024 of T, the last one not full │
//!
//!     element 2051 = 2 · 1024 + 3: offset 3 of chunk 2
//! ```
//!
//! A full `Vec` copies all of its elements into twice the memory: tens of milliseconds for millions
//! of elements. Here a push beyond the capacity allocates one more chunk. Only the list of chunks
//! doubles, which copies 8 bytes for each chunk. Chunks begin at a cache line, so that elements of
//! 64 bytes are one line each.
//!
//! A vector that is known to have fewer elements than a chunk has one chunk for them only.
//!
//! Cost: an access is a shift, a mask and two loads, the first one of a list that is in the CPU's
//! cache (8 kB for a million elements in chunks of 1024); a `Vec` needs one load. One chunk of
//! capacity at most is unused.
#![allow(unsafe_code)]

use alloc::alloc::handle_alloc_error;
use core::alloc::Layout;
use core::fmt;
use core::mem;
use core::ops::{Index, IndexMut};
use core::ptr::NonNull;

use allocator_api2::alloc::{AllocError, Allocator, Global};
use allocator_api2::vec::Vec;

use super::prefetch::prefetch;

/// The default of log2 of the number of elements of a chunk.
pub(crate) const DEFAULT_BITS: u32 = 10;

/// The alignment of chunks.
const CACHE_LINE: usize = 64;

/// The message of an index that is too high.
const NO_ELEMENT: &str = "there is an element at the index";

/// The first capacity of the list, in chunks.
const FIRST_LIST: usize = 4;

/// A vector of `T` in chunks of `1 << BITS`, indexed by `u32`.
pub(crate) struct ChunkedVec<T, const BITS: u32 = DEFAULT_BITS, A = Global>
where
    A: Allocator + Clone,
{
    /// **V1** Each points to its own block for `chunk` elements. If these are fewer than
    /// `1 << BITS`, there is one at most.
    chunks: Vec<NonNull<T>, A>,
    /// Elements of a chunk: `1 << BITS`, or fewer.
    chunk: u32,
    /// **V2** The first `len` elements are initialised, the others are not. There are chunks for
    /// them.
    len: u32,
}

// SAFETY: it owns its elements, as a `Vec` does.
unsafe impl<T: Send, const BITS: u32, A> Send for ChunkedVec<T, BITS, A> where
    A: Allocator + Clone + Send
{
}

// SAFETY: as for `Send`; a shared reference gives shared references to elements only.
unsafe impl<T: Sync, const BITS: u32, A> Sync for ChunkedVec<T, BITS, A> where
    A: Allocator + Clone + Sync
{
}

impl<T, const BITS: u32> ChunkedVec<T, BITS> {
    /// Creates an empty vector, without allocating.
    pub(crate) const fn new() -> Self {
        Self { chunks: Vec::new_in(Global), chunk: 1 << BITS, len: 0 }
    }
}

impl<T, const BITS: u32, A: Allocator + Clone> ChunkedVec<T, BITS, A> {
    /// Bytes of a chunk of [`Self::CHUNK`] elements.
    pub(crate) const GROWTH: usize = Self::CHUNK * size_of::<T>();

    /// Bytes of the list of chunks for a chunk, at most: the list grows by doubling.
    pub(crate) const HEADER: usize = 2 * size_of::<usize>();

    /// Bytes for an element, at most, with its part of the list of chunks.
    pub(crate) const BYTES_PER_ELEMENT: usize = (Self::GROWTH + Self::HEADER).div_ceil(Self::CHUNK);

    /// The number of elements of a chunk, unless fewer are enough.
    pub(crate) const CHUNK: usize = 1 << BITS;

    /// The bits of an index that are the offset in a chunk.
    const MASK: u32 = (1 << BITS) - 1;

    /// Creates an empty vector of at most `limit` elements, whose memory will be from `memory`,
    /// without allocating.
    pub(crate) fn new_in(limit: usize, memory: A) -> Self {
        Self { chunks: Vec::new_in(memory), chunk: limit.clamp(1, Self::CHUNK) as u32, len: 0 }
    }

    /// Returns the number of elements.
    #[inline]
    pub(crate) const fn len(&self) -> u32 {
        self.len
    }

    /// Returns the allocator.
    pub(crate) fn allocator(&self) -> &A {
        self.chunks.allocator()
    }

    /// Elements for which there are chunks.
    #[inline]
    fn capacity(&self) -> usize {
        self.chunks.len() * self.chunk as usize
    }

    fn layout(&self) -> Layout {
        Layout::array::<T>(self.chunk as usize)
            .and_then(|layout| layout.align_to(CACHE_LINE))
            .unwrap_or_else(|_| panic!("a chunk is larger than the address space"))
    }

    /// The offset of an element in its chunk.
    #[inline]
    const fn offset(index: u32) -> u32 {
        index & Self::MASK
    }

    /// The pointer to an element whose chunk exists.
    #[inline]
    fn pointer(&self, index: u32) -> NonNull<T> {
        // SAFETY: V1: the chunk exists, as the caller ensures.
        let chunk = unsafe { *self.chunks.get_unchecked((index >> BITS) as usize) };
        // SAFETY: V1: the offset is less than the elements of a chunk.
        unsafe { chunk.add(Self::offset(index) as usize) }
    }

    /// Appends an element and returns its index. The first push into a chunk allocates, exactly the
    /// bytes that [`growth`](Self::growth) returned before.
    ///
    /// # Panics
    ///
    /// If the vector has as many elements already as indices, or its limit, allow.
    #[inline]
    pub(crate) fn push(&mut self, element: T) -> u32 {
        let index = self.len;
        if index as usize >= self.capacity() {
            self.add_chunk().unwrap_or_else(|_| handle_alloc_error(self.layout()));
        }
        // SAFETY: V1: the chunk of this element exists by now; nothing is there yet, by V2.
        unsafe { self.pointer(index).write(element) };
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

    /// Allocates chunks for the elements up to `index`, so that pushes up to it do not allocate.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated. Some chunks may be.
    #[inline]
    pub(crate) fn try_reserve(&mut self, index: u32) -> Result<(), AllocError> {
        while self.capacity() <= index as usize {
            self.add_chunk()?;
        }
        Ok(())
    }

    /// Appends a chunk without elements.
    #[cold]
    fn add_chunk(&mut self) -> Result<(), AllocError> {
        assert!(self.capacity() < !Self::MASK as usize, "more elements than indices");
        assert!(self.chunks.is_empty() || self.chunk == 1 << BITS, "more elements than the limit");
        let (list, layout) = (self.list_growth(), self.layout());
        self.chunks.try_reserve_exact(list).map_err(|_| AllocError)?;
        let has_bytes = layout.size() > 0;
        let block = if has_bytes { Some(self.allocator().allocate(layout)?) } else { None };
        self.chunks.push(block.map_or(NonNull::dangling(), NonNull::cast));
        Ok(())
    }

    /// Returns by how many chunks the list grows with the next chunk.
    fn list_growth(&self) -> usize {
        let is_full = self.chunks.len() == self.chunks.capacity();
        let first = if self.chunk == 1 << BITS { FIRST_LIST } else { 1 };
        if is_full { self.chunks.capacity().max(first) } else { 0 }
    }

    /// Returns the bytes of a chunk.
    fn chunk_size(&self) -> usize {
        self.chunk as usize * size_of::<T>()
    }

    /// Returns the bytes by which the next push increases
    /// [`allocation_size`](Self::allocation_size).
    #[inline]
    pub(crate) fn growth(&self) -> usize {
        if (self.len as usize) < self.capacity() {
            return 0;
        }
        self.chunk_size() + self.list_growth() * size_of::<NonNull<T>>()
    }

    /// Returns the bytes that [`cover`](Self::cover) allocates for `index`, with all lists.
    pub(crate) fn growth_to(&self, index: u32) -> usize {
        let chunks = (index as usize + 1).div_ceil(1 << BITS);
        let more = chunks.saturating_sub(self.chunks.len());
        let list = if chunks > self.chunks.capacity() { 4 * chunks.max(FIRST_LIST) } else { 0 };
        more * self.chunk_size() + list * size_of::<NonNull<T>>()
    }

    /// Returns a reference to the element at `index`.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        // SAFETY: V2, and borrowed as `self` is.
        (index < self.len).then(|| unsafe { self.pointer(index).as_ref() })
    }

    /// Returns a mutable reference to the element at `index`.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        // SAFETY: V2, and borrowed as `self` is.
        (index < self.len).then(|| unsafe { self.pointer(index).as_mut() })
    }

    /// Returns a mutable reference to the element at `index`, without checking that there is one.
    ///
    /// # Safety
    ///
    /// `index` is less than [`len`](Self::len).
    #[inline(always)]
    pub(crate) unsafe fn get_unchecked_mut(&mut self, index: u32) -> &mut T {
        debug_assert!(index < self.len, "V2");
        // SAFETY: V2, as the caller promises, and borrowed as `self` is.
        unsafe { self.pointer(index).as_mut() }
    }

    /// Prefetches the element at `index`. Returns whether there is one.
    #[inline]
    pub(crate) fn prefetch(&self, index: u32) -> bool {
        if index >= self.len {
            return false;
        }
        let pointer = self.pointer(index).as_ptr();
        for offset in (0..size_of::<T>()).step_by(CACHE_LINE) {
            prefetch(pointer.wrapping_byte_add(offset));
        }
        let (size, rest) = (size_of::<T>().max(1), size_of::<T>() % CACHE_LINE);
        if rest != 0 && CACHE_LINE % size != 0 {
            // It may end in one line more.
            prefetch(pointer.wrapping_byte_add(size_of::<T>().saturating_sub(1)));
        }
        true
    }

    /// Iterates over the elements in ascending order of the index.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len).map(|index| &self[index])
    }

    /// Drops all elements and frees the memory.
    pub(crate) fn clear(&mut self) {
        *self = Self::new_in(self.chunk as usize, self.allocator().clone());
    }

    /// Returns the bytes allocated.
    #[inline]
    pub(crate) fn allocation_size(&self) -> usize {
        self.chunks.len() * self.chunk_size() + self.chunks.capacity() * size_of::<NonNull<T>>()
    }
}

/// Chunks whose elements are dropped one after another: if the destructor of one panics, the others
/// as well.
struct Dropping<T, A: Allocator> {
    chunks: Vec<NonNull<T>, A>,
    layout: Layout,
    /// Chunks whose elements have been dropped, or are being.
    done: usize,
    /// Elements in the other chunks.
    left: usize,
}

impl<T, A: Allocator> Dropping<T, A> {
    fn drop_elements(&mut self, size: usize) {
        while let Some(chunk) = self.chunks.get(self.done) {
            let elements = NonNull::slice_from_raw_parts(*chunk, self.left.min(size));
            self.done += 1;
            self.left -= elements.len();
            // SAFETY: V2: initialised, and dropped once, since the chunk is done by now.
            unsafe { elements.drop_in_place() };
        }
    }
}

impl<T, A: Allocator> Drop for Dropping<T, A> {
    fn drop(&mut self) {
        self.drop_elements(self.layout.size().checked_div(size_of::<T>()).unwrap_or(usize::MAX));
        let has_memory = self.layout.size() > 0;
        for chunk in self.chunks.iter().filter(|_| has_memory) {
            // SAFETY: V1: allocated with this layout, and its elements are not used any more.
            unsafe { self.chunks.allocator().deallocate(chunk.cast(), self.layout) };
        }
    }
}

impl<T, const BITS: u32, A: Allocator + Clone> Drop for ChunkedVec<T, BITS, A> {
    fn drop(&mut self) {
        let (layout, none) = (self.layout(), Vec::new_in(self.allocator().clone()));
        let (chunks, left) = (mem::replace(&mut self.chunks, none), self.len as usize);
        Dropping { chunks, layout, done: 0, left }.drop_elements(self.chunk as usize);
    }
}

impl<T, const BITS: u32, A: Allocator + Clone> Index<u32> for ChunkedVec<T, BITS, A> {
    type Output = T;

    #[inline]
    fn index(&self, index: u32) -> &T {
        self.get(index).expect(NO_ELEMENT)
    }
}

impl<T, const BITS: u32, A: Allocator + Clone> IndexMut<u32> for ChunkedVec<T, BITS, A> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut T {
        self.get_mut(index).expect(NO_ELEMENT)
    }
}

impl<T, const BITS: u32> Default for ChunkedVec<T, BITS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Clone, const BITS: u32, A: Allocator + Clone> Clone for ChunkedVec<T, BITS, A> {
    fn clone(&self) -> Self {
        let mut clone = Self::new_in(self.chunk as usize, self.allocator().clone());
        // With the same capacity: an operation that allocates in neither fails in neither.
        for _ in &self.chunks {
            clone.add_chunk().unwrap_or_else(|_| handle_alloc_error(self.layout()));
        }
        for element in self.iter() {
            clone.push(element.clone());
        }
        clone
    }
}

impl<T: fmt::Debug, const BITS: u32, A: Allocator + Clone> fmt::Debug for ChunkedVec<T, BITS, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;
    use alloc::format;

    use super::*;

    /// Short chunks under Miri, which is slow.
    const BITS: u32 = if cfg!(miri) { 4 } else { DEFAULT_BITS };
    const CHUNK: u32 = 1 << BITS;

    fn counted(len: u32) -> ChunkedVec<u32, BITS> {
        let mut chunks = ChunkedVec::new();
        for element in 0..len {
            assert_eq!(chunks.push(element), element, "indices count up from 0");
        }
        chunks
    }

    #[test]
    fn elements_keep_their_order_and_index() {
        let len = 3 * CHUNK + 5;
        let mut chunks = counted(len);
        assert_eq!(chunks.len(), len);
        assert!(chunks.iter().copied().eq(0..len));
        for index in [0, CHUNK - 1, CHUNK, 2 * CHUNK + 3, len - 1] {
            assert_eq!((chunks[index], chunks.get(index)), (index, Some(&index)));
        }
        for beyond in [len, 4 * CHUNK, u32::MAX] {
            assert_eq!(chunks.get(beyond), None);
            assert_eq!(chunks.get_mut(beyond), None);
        }
        chunks[CHUNK] = 7;
        *chunks.get_mut(CHUNK + 1).unwrap() = 8;
        assert_eq!([CHUNK - 1, CHUNK, CHUNK + 1].map(|at| chunks[at]), [CHUNK - 1, 7, 8]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow")]
    fn elements_never_move() {
        let mut chunks = ChunkedVec::<_>::new();
        let first = chunks.push(0);
        let address = &raw const chunks[first];
        for element in 1..20_000 {
            chunks.push(element);
        }
        assert_eq!(&raw const chunks[first], address);
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow")]
    fn growth_predicts_the_next_allocation_exactly() {
        let mut chunks = ChunkedVec::<_>::new();
        for element in 0..20_000_u64 {
            let (allocated, growth) = (chunks.allocation_size(), chunks.growth());
            chunks.push(element);
            assert_eq!(chunks.allocation_size(), allocated + growth, "at {element}");
            let list = chunks.chunks.capacity() * size_of::<usize>();
            assert_eq!(chunks.allocation_size(), list + chunks.chunks.len() * 8192);
            assert!([0, <ChunkedVec<u64>>::GROWTH].contains(&growth) || growth > 8192);
        }
    }

    #[test]
    fn chunks_of_another_size_begin_at_cache_lines() {
        let mut chunks = ChunkedVec::<u64, 3>::new();
        (0..100).for_each(|element| _ = chunks.push(element));
        assert!(chunks.iter().copied().eq(0..100));
        assert_eq!((&raw const chunks[8]).addr() % CACHE_LINE, 0);
        assert_eq!((chunks.clone().chunks.len(), chunks.chunks.len()), (13, 13));
        chunks.prefetch(99);
        chunks.prefetch(100);
    }

    #[test]
    fn all_elements_are_dropped_even_if_one_panics() {
        use alloc::rc::Rc;
        struct Panics {
            _count: Rc<()>,
            panics: bool,
        }
        impl Drop for Panics {
            fn drop(&mut self) {
                assert!(!self.panics, "as intended");
            }
        }
        extern crate std;
        let count = Rc::new(());
        let mut chunks = ChunkedVec::<_, 2>::new();
        (0..50).for_each(|element| {
            _ = chunks.push(Panics { _count: count.clone(), panics: element == 7 });
        });
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(chunks)));
        assert!(caught.is_err() && Rc::strong_count(&count) == 1);
    }

    #[test]
    fn clearing_frees_the_memory() {
        let mut chunks = counted(4 * CHUNK + 900 % CHUNK);
        chunks.clear();
        assert_eq!((chunks.len(), chunks.allocation_size(), chunks.get(0)), (0, 0, None));
        assert_eq!(chunks.push(3), 0);
    }

    #[test]
    fn a_clone_grows_like_its_original() {
        let len = CHUNK + CHUNK / 2;
        let chunks = counted(len);
        let mut clone = chunks.clone();
        assert_eq!(clone.allocation_size(), chunks.allocation_size());
        assert_eq!((clone.push(1), chunks.len(), clone.growth()), (len, len, 0));
        assert_eq!(format!("{:?}", counted(3)), "[0, 1, 2]");
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow")]
    fn elements_are_dropped_and_may_be_zero_sized() {
        let mut boxes = ChunkedVec::<_>::default();
        (0..3000).for_each(|element| _ = boxes.push(Box::new(element)));
        assert_eq!(*boxes[2999], 2999);
        let mut units = ChunkedVec::<_>::new();
        (0..3000).for_each(|_| _ = units.push(()));
        assert_eq!((units.len(), units.iter().count()), (3000, 3000));
    }
}
