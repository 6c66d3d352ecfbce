//! `StaticArea`: an allocator in a slice of memory, for programs without a heap.
//!
//! ```text
//!     memory      │ granules of 16 bytes …                              │ a bit for each granule │
//!     blocks      │ segment   │ free     │ box │ free                   │
//!     bits        │ 0 0 0 0 0 │ 1 0 0 1  │ 0 0 │ 1 0 0 0 0 0 0 0 0 0 1  │
//!
//!     a free block   │ size, next, previous │ …  │ size │     first and last granule
//! ```
//!
//! It is a two-level segregated fit: free blocks are in lists by *class*, four classes for each
//! power of two, and a word has a bit for each class whose list is not empty. Blocks in use have no
//! header, since their size comes with the request that frees them. The bits of the first and the
//! last granule of each free block are set; all others are clear. So a block that is freed sees
//! whether its neighbours are free, and is merged with them.
//!
//! # Costs
//!
//! Both requests are O(1). An allocation examines at most eight blocks of each class that may be
//! too small for its size and alignment, and then takes the first block of the next class. So a
//! segment that has been freed is found again, whatever other sizes are there; but a request can
//! fail although a block of its class would fit, behind eight that do not.
//!
//! A block is rounded up to 16 bytes. The bits take a byte of 129.
//!
//! A small map that grows has its old and its new segment for a moment, and the place of the old
//! one is too small for the next: in a small area reserve its capacity first. Segments of 1024
//! slots split, and those that have merged fit the next ones.
//!
//! # Invariants
//!
//! - **S1** A granule is in one block: free, or in use. Free blocks are not adjacent.
//! - **S2** The bits that are set are those of the first and the last granule of each free block.
//!   These have its size, and the first one its neighbours in the list of its class.
//! - **S3** Only the words of free blocks, and the bits, are read or written here.
//!
//! Masmano, Ripoll, Crespo and Real, *TLSF: a new dynamic memory allocator for real-time systems*
//! (2004). There blocks have headers, and a request does not examine its own class.
#![allow(unsafe_code)]

use alloc::vec::Vec;
use core::alloc::Layout;
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use allocator_api2::alloc::{AllocError, Allocator};

use crate::invariant::{InvariantError, ensure};

/// Bytes of a granule: what a free block needs for its words.
const GRANULE: usize = 16;

/// Classes of sizes: four for each power of two.
const CLASSES: usize = 128;

/// Blocks of a class that an allocation examines.
const EXAMINED: usize = 8;

/// No block.
const NONE: u32 = u32::MAX;

/// Words of a free block: in its first granule, and the last one in its last granule.
const SIZE: usize = 0;
const NEXT: usize = 1;
const PREVIOUS: usize = 2;
const SIZE_AT_END: usize = 3;

/// An allocator whose memory is a slice of the caller: `&StaticArea` is passed to structures.
///
/// It is for one thread: it is not [`Sync`], so structures with a reference to it stay in the
/// thread that has created them. It may be moved to another thread while no structure uses it.
///
/// | method | cost |
/// |---|---|
/// | `allocate`, `deallocate` | O(1) |
/// | `new` | O(bytes): clears a bit for 16 bytes |
/// | `capacity`, `allocated_bytes` | O(1) |
///
/// # Example
///
/// ```
/// use core::mem::MaybeUninit;
/// use flowtable::memory::StaticArea;
/// use flowtable::{DefaultHashBuilder, TrashMap};
///
/// let mut memory = [MaybeUninit::uninit(); 8 << 10]; // in firmware a static
/// let area = StaticArea::new(&mut memory);
/// let hasher = DefaultHashBuilder::with_seed(7);
/// let mut flows = TrashMap::with_hasher_in(hasher, &area);
/// assert!(flows.try_reserve(400).is_ok());
/// let refused = (0..1000_u32).find(|flow| flows.try_insert(*flow, 0_u32).is_err());
/// assert!(refused.is_some_and(|entries| entries >= 400), "until the area is full");
/// assert_eq!(area.allocated_bytes(), flows.allocation_size().next_multiple_of(16));
/// drop(flows);
/// assert_eq!((area.allocated_bytes(), area.validate()), (0, Ok(())));
/// assert!(area.capacity() > 8000);
/// ```
pub struct StaticArea<'m> {
    /// The first granule.
    granules: NonNull<u8>,
    /// Number of granules. Their bits follow them.
    count: u32,
    /// The first free block of each class.
    heads: [Cell<u32>; CLASSES],
    /// A bit for each class that has a free block.
    classes: Cell<u128>,
    /// Granules in use.
    used: Cell<u32>,
    memory: PhantomData<&'m mut [MaybeUninit<u8>]>,
}

/// The class of a size in granules.
const fn class_of(size: u32) -> usize {
    if size < 4 {
        return size as usize;
    }
    let power = size.ilog2();
    4 * power as usize - 4 + (size >> (power - 2) & 3) as usize
}

/// Granules for that many bytes.
fn granules_for(bytes: usize) -> Option<u32> {
    u32::try_from(bytes.div_ceil(GRANULE)).ok()
}

impl<'m> StaticArea<'m> {
    /// Takes a slice as memory. Of more than 64 GiB the rest is not used.
    #[must_use]
    pub fn new(memory: &'m mut [MaybeUninit<u8>]) -> Self {
        let offset = memory.as_ptr().align_offset(GRANULE).min(memory.len());
        let aligned = &mut memory[offset..];
        // A granule and its bit have 129 eighths of a byte.
        let count = (aligned.len() / 129 * 8 + aligned.len() % 129 * 8 / 129) as u64;
        let count = u32::try_from(count).unwrap_or(NONE - 1);
        let bits = count as usize * GRANULE;
        aligned[bits..bits + (count as usize).div_ceil(8)].fill(MaybeUninit::new(0));
        let area = Self {
            granules: NonNull::from(aligned).cast(),
            count,
            heads: [const { Cell::new(NONE) }; CLASSES],
            classes: Cell::new(0),
            used: Cell::new(0),
            memory: PhantomData,
        };
        if count > 0 {
            area.insert_free(0, count);
        }
        area
    }

    /// Returns the bytes that can be allocated, if in one block.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.count as usize * GRANULE
    }

    /// Returns the bytes of all blocks in use, each rounded up to 16.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.used.get() as usize * GRANULE
    }

    /// Whether a block with this address is of this area.
    #[cfg(feature = "huge-pages")]
    pub(super) fn contains(&self, block: NonNull<u8>) -> bool {
        let offset = block.addr().get().wrapping_sub(self.granules.addr().get());
        offset < self.capacity()
    }

    /// The address of a word of a granule.
    fn word(&self, granule: u32, word: usize) -> NonNull<u32> {
        debug_assert!(granule < self.count && word < 4, "S1");
        // SAFETY: the granule is in the slice.
        unsafe { self.granules.add(granule as usize * GRANULE + word * 4) }.cast()
    }

    /// A word of a free block.
    fn read(&self, granule: u32, word: usize) -> u32 {
        // SAFETY: S2; it is aligned, as granules are.
        unsafe { self.word(granule, word).read() }
    }

    /// Writes a word of a free block.
    fn write(&self, granule: u32, word: usize, value: u32) {
        // SAFETY: S3; it is aligned, as granules are.
        unsafe { self.word(granule, word).write(value) };
    }

    /// The address of the byte with the bit of a granule.
    fn bits_of(&self, granule: u32) -> NonNull<u8> {
        debug_assert!(granule < self.count, "S1");
        // SAFETY: the bits follow the granules in the slice.
        unsafe { self.granules.add(self.capacity() + granule as usize / 8) }
    }

    /// Whether a granule is the first or the last one of a free block; not if it does not exist.
    fn is_end(&self, granule: u32) -> bool {
        if granule >= self.count {
            return false;
        }
        // SAFETY: all bits have been written by `new`.
        let bits = unsafe { self.bits_of(granule).read() };
        bits >> (granule % 8) & 1 == 1
    }

    /// Sets or clears the bit of a granule.
    fn mark(&self, granule: u32, is_end: bool) {
        let bits = self.bits_of(granule);
        // SAFETY: all bits have been written by `new`.
        let others = unsafe { bits.read() } & !(1 << (granule % 8));
        // SAFETY: the byte is in the slice, and S3.
        unsafe { bits.write(others | u8::from(is_end) << (granule % 8)) };
    }

    /// Makes granules a free block, the first one of its class.
    fn insert_free(&self, start: u32, size: u32) {
        let class = class_of(size);
        let next = self.heads[class].replace(start);
        if next != NONE {
            self.write(next, PREVIOUS, start);
        }
        self.write(start, SIZE, size);
        self.write(start, NEXT, next);
        self.write(start, PREVIOUS, NONE);
        self.write(start + size - 1, SIZE_AT_END, size);
        self.classes.set(self.classes.get() | 1 << class);
        self.mark(start, true);
        self.mark(start + size - 1, true);
    }

    /// Removes a free block from its class. Returns its size.
    fn remove_free(&self, start: u32) -> u32 {
        let size = self.read(start, SIZE);
        let (next, previous) = (self.read(start, NEXT), self.read(start, PREVIOUS));
        if next != NONE {
            self.write(next, PREVIOUS, previous);
        }
        if previous != NONE {
            self.write(previous, NEXT, next);
        } else {
            let class = class_of(size);
            self.heads[class].set(next);
            if next == NONE {
                self.classes.set(self.classes.get() & !(1 << class));
            }
        }
        self.mark(start, false);
        self.mark(start + size - 1, false);
        size
    }

    /// Granules of a block that begins at `start` before the first one that is aligned.
    fn padding(&self, start: u32, align: usize) -> Option<u32> {
        let address = self.granules.addr().get() + start as usize * GRANULE;
        granules_for(address.checked_next_multiple_of(align)? - address)
    }

    /// A free block for that many granules, and how many of it are to be skipped for the alignment.
    fn find(&self, size: u32, align: usize) -> Option<(u32, u32)> {
        let mut classes = self.classes.get() & u128::MAX << class_of(size);
        while classes > 0 {
            let mut block = self.heads[classes.trailing_zeros() as usize].get();
            for _ in 0..EXAMINED {
                if block == NONE {
                    break;
                }
                let padding = self.padding(block, align)?;
                if padding.checked_add(size).is_some_and(|all| all <= self.read(block, SIZE)) {
                    return Some((block, padding));
                }
                block = self.read(block, NEXT);
            }
            classes &= classes - 1;
        }
        None
    }

    /// Checks every invariant, for tests. O(blocks).
    ///
    /// # Errors
    ///
    /// The invariant that does not hold: a bug in this crate, or a block that has been freed with
    /// another size, or written to afterwards.
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), InvariantError> {
        let mut blocks = Vec::new();
        for (class, head) in self.heads.iter().enumerate() {
            let is_marked = self.classes.get() >> class & 1 == 1;
            ensure(is_marked == (head.get() != NONE), || "the bit of a class is wrong")?;
            let (mut block, mut previous) = (head.get(), NONE);
            while block != NONE {
                let size = self.read(block, SIZE);
                let is_listed = class_of(size) == class && self.read(block, PREVIOUS) == previous;
                ensure(is_listed, || "a free block is in a wrong list")?;
                let last = block + size - 1;
                let has_ends = self.read(last, SIZE_AT_END) == size;
                ensure(has_ends, || "a free block has another size at its end")?;
                blocks.push((block, last));
                (previous, block) = (block, self.read(block, NEXT));
            }
        }
        blocks.sort_unstable();
        let is_apart = |pair: &[(u32, u32)]| pair[0].1 + 1 < pair[1].0;
        ensure(blocks.windows(2).all(is_apart), || "free blocks are adjacent")?;
        let free: u32 = blocks.iter().map(|(first, last)| last - first + 1).sum();
        ensure(free + self.used.get() == self.count, || "granules are counted wrongly")?;
        let mut ends: Vec<u32> = blocks.iter().flat_map(|&(first, last)| [first, last]).collect();
        ends.dedup();
        let marked = (0..self.count).filter(|&granule| self.is_end(granule));
        ensure(marked.eq(ends), || "bits are not those of the ends of free blocks")
    }
}

// SAFETY: a block is in the slice, which is borrowed for longer than the area exists. By S1 no
// other block has its granules until it is freed. Moving the area does not move the slice.
unsafe impl Allocator for StaticArea<'_> {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        if layout.size() == 0 {
            let nowhere = core::ptr::without_provenance_mut(layout.align());
            let nowhere = NonNull::new(nowhere).ok_or(AllocError)?;
            return Ok(NonNull::slice_from_raw_parts(nowhere, 0));
        }
        let size = granules_for(layout.size()).ok_or(AllocError)?;
        let (start, padding) = self.find(size, layout.align()).ok_or(AllocError)?;
        let (first, all) = (start + padding, self.remove_free(start));
        if padding > 0 {
            self.insert_free(start, padding);
        }
        if all > padding + size {
            self.insert_free(first + size, all - padding - size);
        }
        self.used.set(self.used.get() + size);
        // SAFETY: the granule is in the slice.
        let block = unsafe { self.granules.add(first as usize * GRANULE) };
        Ok(NonNull::slice_from_raw_parts(block, layout.size()))
    }

    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        let Some(size) = granules_for(layout.size()).filter(|size| *size > 0) else { return };
        let offset = block.addr().get() - self.granules.addr().get();
        let (mut first, mut all) = ((offset / GRANULE) as u32, size);
        debug_assert!(first < self.count && !self.is_end(first), "S1: the block is in use");
        self.used.set(self.used.get() - size);
        if self.is_end(first + size) {
            all += self.remove_free(first + size);
        }
        if first > 0 && self.is_end(first - 1) {
            first -= self.read(first - 1, SIZE_AT_END);
            all += self.remove_free(first);
        }
        self.insert_free(first, all);
    }
}

// SAFETY: it owns its slice. Blocks that are in use belong to values that borrow the area, which
// cannot be moved then.
unsafe impl Send for StaticArea<'_> {}

impl fmt::Debug for StaticArea<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("StaticArea");
        fields.field("capacity", &self.capacity());
        fields.field("allocated_bytes", &self.allocated_bytes()).finish_non_exhaustive()
    }
}
