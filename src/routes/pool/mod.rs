//! A size-class allocator: blocks of contiguous units in chunks.
//!
//! ```text
//!     chunk 0  ▕aaa▏bbbbbbb▏··▏ccc▏d▏····▏eeee▏      chunk 1  ▕ffffff▏·········
//!     free      000 0000000 11 000 0 1111 0000                       └ end
//!     lists    2: [10]   4: [14]   …                 free blocks by size class
//! ```
//!
//! A block is some contiguous units, identified by the index of the first. The owner of a block
//! stores how many units are in use; the size of the block follows from that and is one of
//! [`BLOCK_SIZES`]. A freed block is put on the free list of its size class for the next
//! allocation; if that list is empty, a block is cut from the end. With the Internet's table,
//! inserted in random order, five sixths of the units are in use.
//!
//! Where all blocks grow together, free blocks of smaller classes are never reused. Therefore a
//! bitmap has the free units, too, in which adjacent free blocks coalesce without work; when a
//! quarter of all units is free, chunks are scanned for free stretches of any length before the end
//! is extended. The free lists may be stale then: a block from a list is checked against the
//! bitmap.
//!
//! Chunks never move, except for the first one while it is small. So the cost of an allocation does
//! not depend on the number of blocks: it scans two chunks at most. An allocation may fail; the
//! release of a block does not. A chunk whose units are all free is released, if as many units are
//! free in others; its indices are used again when the pool grows.
//!
//! The pool of `concurrent::ConcurrentRoutes` is another one, on purpose: its blocks have any size
//! in bytes, are found by pointers, and are freed by any thread, so each is on a stack of freed
//! blocks before it is free. Here the length of a block determines its size, an index of 32 bits
//! is half a pointer, and blocks grow and shrink in place.
#![allow(unsafe_code)]

mod chunks;
mod size;

use core::array;
use core::mem;
use core::ptr::{self, NonNull};

use crate::memory::{Allocator, Global, Vec};
use crate::raw::prefetch::prefetch;
use chunks::FreeMap;
pub(super) use size::block_size;
use size::{BLOCK_SIZES, MAX_BLOCK, size_class};

/// A unit whose bytes may all be zero, and which needs no drop. A unit is moved by copying its
/// bytes; the bytes of a unit that is not in use have no meaning, unless they are cleared.
///
/// # Safety
///
/// Zeros are a valid value.
pub(super) unsafe trait Unit {
    /// Whether units that are not in use are zeros.
    const IS_CLEARED: bool;
}

/// There is no memory, or the pool is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exhausted;

/// Limit of the number of units in a pool: indices are below it.
const MAX_UNITS: u64 = 1 << 32;

/// Stale entries of a free list that one allocation skips at most.
const MAX_STALE: usize = 16;

/// Chunks that one allocation scans at most.
const MAX_SCANNED: usize = 2;

/// Chunks that one allocation considers for a scan at most.
const MAX_EXAMINED: usize = 16;

/// Limit of the length of a free list, so that no update has to reallocate a long list.
const MAX_LISTED: usize = 1 << 12;

/// The units of the first chunk at first.
const FIRST_UNITS: usize = MAX_BLOCK / 4;

/// Free lists by size class.
type FreeLists<M> = [Vec<u32, M>; BLOCK_SIZES.len()];

/// An allocator of blocks of units of type `T`, in chunks from `M`.
#[derive(Debug)]
pub(super) struct Pool<T, M: Allocator + Clone = Global> {
    /// The chunks; `None` where one was released, which the first one never is.
    chunks: Vec<Option<NonNull<T>>, M>,
    /// Number of released chunks.
    released: usize,
    /// Units of the first chunk.
    first_units: usize,
    free_maps: Vec<FreeMap<M>, M>,
    /// Free lists, possibly stale, and their total length.
    free_lists: FreeLists<M>,
    listed: usize,
    /// The chunk after which the next scan begins.
    next_scan: usize,
    /// The first unit that has never been allocated.
    end: u32,
    /// Free units, and units in allocated blocks.
    free: usize,
    used: usize,
}

// SAFETY: a pool has its chunks alone.
unsafe impl<T: Send, M: Allocator + Clone + Send> Send for Pool<T, M> {}

// SAFETY: shared references to a pool only read.
unsafe impl<T: Sync, M: Allocator + Clone + Sync> Sync for Pool<T, M> {}

impl<T> Pool<T> {
    /// Creates a pool without chunks, in memory of the program.
    pub(super) const fn new() -> Self {
        let free_lists = [const { Vec::new_in(Global) }; BLOCK_SIZES.len()];
        Self::of(Vec::new_in(Global), Vec::new_in(Global), free_lists)
    }
}

impl<T, M: Allocator + Clone> Pool<T, M> {
    /// Bits of the index of a unit in its chunk: a chunk of units of up to 64 bytes has up to 32
    /// KiB. Fewer in fuzzing, so that small tables have several.
    const SHIFT: u32 = match mem::size_of::<T>() {
        _ if cfg!(fuzzing) => MAX_BLOCK.ilog2(),
        0..=8 => 12,
        9..=16 => 11,
        17..=32 => 10,
        33..=64 => 9,
        65.. => 8,
    };

    /// Units of a chunk; of the first one, after it has grown.
    const UNITS: usize = 1 << Self::SHIFT;

    /// Creates a pool without chunks, whose memory will be from `memory`.
    pub(super) fn new_in(memory: M) -> Self {
        let free_lists = array::from_fn(|_| Vec::new_in(memory.clone()));
        Self::of(Vec::new_in(memory.clone()), Vec::new_in(memory), free_lists)
    }

    /// Creates a pool of empty vectors.
    const fn of(
        chunks: Vec<Option<NonNull<T>>, M>,
        free_maps: Vec<FreeMap<M>, M>,
        free_lists: FreeLists<M>,
    ) -> Self {
        Self {
            chunks,
            released: 0,
            first_units: 0,
            free_maps,
            free_lists,
            listed: 0,
            next_scan: 0,
            end: 0,
            free: 0,
            used: 0,
        }
    }

    /// Returns a pointer to the unit at `index`, if its chunk exists.
    #[inline(always)]
    fn checked(&self, index: u32) -> Option<*mut T> {
        if index >= self.end {
            return None;
        }
        // SAFETY: the index is less than the end, and so its chunk has a place in the list.
        let chunk = unsafe { *self.chunks.get_unchecked((index >> Self::SHIFT) as usize) };
        Some(chunk?.as_ptr().wrapping_add(index as usize % Self::UNITS))
    }

    /// Returns a pointer to the unit at `index`, whose chunk exists.
    #[inline(always)]
    fn at(&self, index: u32) -> *mut T {
        self.checked(index).expect("an index of a pool is less than its end, and of a chunk")
    }

    /// Returns a pointer to the unit at `index`.
    ///
    /// # Safety
    ///
    /// `index` is of a unit of an allocated block.
    #[inline(always)]
    unsafe fn at_unchecked(&self, index: u32) -> *mut T {
        // SAFETY: the index is less than the end, and so its chunk has a place in the list.
        let chunk = unsafe { self.chunks.get_unchecked((index >> Self::SHIFT) as usize) };
        // SAFETY: a chunk with a block is not released.
        let chunk = unsafe { chunk.unwrap_unchecked() };
        // SAFETY: a block does not extend beyond its chunk.
        unsafe { chunk.as_ptr().add(index as usize % Self::UNITS) }
    }

    /// Prefetches the unit at `index`, if it exists.
    #[inline]
    pub(super) fn prefetch(&self, index: u32) {
        if let Some(unit) = self.checked(index) {
            prefetch(unit);
        }
    }

    /// Returns a pointer to the unit at `index`.
    pub(super) fn as_ptr(&self, index: u32) -> *mut T {
        self.at(index)
    }

    #[inline]
    pub(super) fn get(&self, index: u32) -> &T {
        // SAFETY: units are initialised, with zeros at first; the pool is borrowed.
        unsafe { &*self.at(index) }
    }

    /// Returns the unit at `index`, if its chunk exists.
    #[inline]
    pub(super) fn find(&self, index: u32) -> Option<&T> {
        // SAFETY: units are initialised, with zeros at first; the pool is borrowed.
        self.checked(index).map(|unit| unsafe { &*unit })
    }

    /// Returns the unit at `index` without bounds checks.
    ///
    /// # Safety
    ///
    /// `index` is of a unit of an allocated block.
    #[inline(always)]
    pub(super) unsafe fn get_unchecked(&self, index: u32) -> &T {
        // SAFETY: by the contract of this function.
        let unit = unsafe { self.at_unchecked(index) };
        // SAFETY: units are initialised, with zeros at first; the pool is borrowed.
        unsafe { &*unit }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, index: u32) -> &mut T {
        // SAFETY: units are initialised, with zeros at first; the pool is borrowed.
        unsafe { &mut *self.at(index) }
    }
}

impl<T: Unit, M: Allocator + Clone> Pool<T, M> {
    /// Allocates a block of one unit.
    pub(super) fn alloc_one(&mut self, unit: T) -> Result<u32, Exhausted> {
        let block = self.alloc_class(size_class(1))?;
        *self.get_mut(block) = unit;
        Ok(block)
    }

    /// Makes place for a unit before unit `at` of a block with `len` units in use. Returns the
    /// index of the block, which may have moved, and the place.
    #[inline]
    pub(super) fn insert(
        &mut self,
        block: u32,
        len: u32,
        at: u32,
    ) -> Result<(u32, &mut T), Exhausted> {
        debug_assert!(at <= len);
        let size = block_size(len);
        if size == len {
            let to = self.insert_and_move(block, len, at)?;
            return Ok((to, self.get_mut(to + at)));
        }
        let place = self.at(block).wrapping_add(at as usize);
        if at < len {
            // SAFETY: the units are in a block. The block has room for one unit more, and does not
            // extend beyond its chunk.
            unsafe { ptr::copy(place, place.wrapping_add(1), (len - at) as usize) };
        }
        // SAFETY: as above; units are initialised, and the pool is borrowed.
        Ok((block, unsafe { &mut *place }))
    }

    /// [`insert`](Self::insert) into a full block, which moves to a larger one.
    #[inline(never)]
    fn insert_and_move(&mut self, block: u32, len: u32, at: u32) -> Result<u32, Exhausted> {
        let to = self.alloc_class(size_class(len + 1))?;
        if len > 0 {
            self.copy(block, to, at);
            self.copy(block + at, to + at + 1, len - at);
            self.clear(block, len);
            self.free_class(block, len);
        }
        Ok(to)
    }

    /// Removes unit `at` of a block with `len` units in use. Returns the unit and the index of the
    /// block, which may have moved.
    #[inline]
    pub(super) fn remove(&mut self, block: u32, len: u32, at: u32) -> (T, u32) {
        debug_assert!(at < len);
        let place = self.at(block).wrapping_add(at as usize);
        // SAFETY: the units are in a block, which does not extend beyond its chunk. This one is
        // initialised; its place is overwritten, or not in use from now on.
        let unit = unsafe { ptr::read(place) };
        if block_size(len - 1) < block_size(len) {
            return (unit, self.remove_and_move(block, len, at));
        }
        if at + 1 < len {
            // SAFETY: as above.
            unsafe { ptr::copy(place.wrapping_add(1), place, (len - 1 - at) as usize) };
        }
        self.clear(block + len - 1, 1);
        (unit, block)
    }

    /// [`remove`](Self::remove) from a block that is too large for the rest, which moves to a
    /// smaller one.
    #[inline(never)]
    fn remove_and_move(&mut self, block: u32, len: u32, at: u32) -> u32 {
        let (size, new_size) = (block_size(len), block_size(len - 1));
        let to = match new_size {
            0 => block,
            // Without memory, the block stays, and its end is freed.
            _ => self.alloc_class(size_class(len - 1)).unwrap_or(block),
        };
        self.copy(block + at + 1, to + at, len - 1 - at);
        if to != block {
            self.copy(block, to, at);
            self.clear(block, len);
            self.free_class(block, size);
        } else {
            self.clear(block + len - 1, 1);
            self.free_class(block + new_size, size - new_size);
        }
        to
    }

    /// Allocates a block of `len` units, whose contents are unspecified.
    pub(super) fn alloc(&mut self, len: u32) -> Result<u32, Exhausted> {
        if len == 0 { Ok(0) } else { self.alloc_class(size_class(len)) }
    }

    /// Returns the allocated bytes.
    pub(super) fn allocation_size(&self) -> usize {
        let listed: usize = self.free_lists.iter().map(Vec::capacity).sum();
        (self.units() - self.released * Self::UNITS) * mem::size_of::<T>()
            + (self.free_maps.len() - self.released) * (Self::UNITS / 8)
            + listed * mem::size_of::<u32>()
            + self.chunks.capacity() * mem::size_of::<Option<NonNull<T>>>()
            + self.free_maps.capacity() * mem::size_of::<FreeMap<M>>()
    }

    /// Returns whether no block has ever been allocated.
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.end == 0
    }

    /// Returns the units of all allocated blocks.
    pub(super) const fn used(&self) -> usize {
        self.used
    }

    /// Copies units of a block to another, or within it.
    fn copy(&mut self, from: u32, to: u32, len: u32) {
        if len > 0 {
            let (from, to) = (self.at(from), self.at(to));
            // SAFETY: the units are in blocks, which do not extend beyond their chunks.
            unsafe { ptr::copy(from, to, len as usize) };
        }
    }

    /// Clears units that are not in use any more.
    fn clear(&mut self, from: u32, len: u32) {
        if T::IS_CLEARED {
            let from = self.at(from);
            // SAFETY: the units are in a block, which does not extend beyond its chunk; zeros are
            // valid.
            unsafe { ptr::write_bytes(from, 0, len as usize) };
        }
    }

    /// Frees a block, or the end of one, which has the size of a block, too.
    #[inline]
    fn free_class(&mut self, block: u32, size: u32) {
        self.used -= size as usize;
        self.set_free(block, size as usize);
        self.push_free(size_class(size), block);
        let chunk = (block >> Self::SHIFT) as usize;
        if self.free_maps[chunk].free == Self::UNITS {
            self.release_chunk(chunk);
        }
    }

    /// Allocates a block of a size class.
    #[inline]
    fn alloc_class(&mut self, class: usize) -> Result<u32, Exhausted> {
        let size = usize::from(BLOCK_SIZES[class]);
        let block = match self.pop_free(class) {
            Some(free) => free,
            None => self.alloc_unlisted(class)?,
        };
        self.used += size;
        Ok(block)
    }

    /// Allocates a block of a size class whose list is empty.
    #[inline(never)]
    fn alloc_unlisted(&mut self, class: usize) -> Result<u32, Exhausted> {
        if let Some(free) = self.find_free(class) {
            return Ok(free);
        }
        if self.released > 0 {
            self.restore_chunk()?;
            return self.split_larger(class).ok_or(Exhausted);
        }
        self.alloc_at_end(BLOCK_SIZES[class].into())
    }

    /// Scans for a free block, if a quarter of all units is free.
    fn find_free(&mut self, class: usize) -> Option<u32> {
        if self.free <= (self.free + self.used) / 4 {
            return None;
        }
        self.scan();
        self.split_larger(class)
    }

    /// Allocates a block from a free block of the same or any larger size class.
    fn split_larger(&mut self, class: usize) -> Option<u32> {
        (class..BLOCK_SIZES.len()).find_map(|larger| self.split_free(larger, class))
    }

    /// Pops a block from a free list; skips stale entries.
    #[inline]
    fn pop_free(&mut self, class: usize) -> Option<u32> {
        for _ in 0..MAX_STALE {
            let free = self.free_lists[class].pop()?;
            self.listed -= 1;
            let (at, size) = (free as usize % Self::UNITS, usize::from(BLOCK_SIZES[class]));
            if free >= self.end {
                continue;
            }
            if self.free_maps[(free >> Self::SHIFT) as usize].take(at, size) {
                self.free -= size;
                return Some(free);
            }
        }
        None
    }

    /// Allocates a block from a free block of the same or a larger size class.
    fn split_free(&mut self, larger: usize, class: usize) -> Option<u32> {
        let free = self.pop_free(larger)?;
        let rest = usize::from(BLOCK_SIZES[larger] - BLOCK_SIZES[class]);
        if rest > 0 {
            self.free_block(free + u32::from(BLOCK_SIZES[class]), rest);
        }
        Some(free)
    }

    /// Scans the next chunks with many free units, and lists their free stretches at full length.
    fn scan(&mut self) {
        if self.listed > self.free {
            // More list entries than free units: most are stale.
            self.free_lists.iter_mut().for_each(Vec::clear);
            self.listed = 0;
        }
        let (mut scanned, chunks) = (0, self.free_maps.len());
        for _ in 0..MAX_EXAMINED.min(chunks) {
            self.next_scan = (self.next_scan + 1) % chunks;
            if self.free_maps[self.next_scan].free < Self::UNITS / 8 {
                continue;
            }
            let (mut at, first) = (0, (self.next_scan << Self::SHIFT) as u32);
            while let Some((free, length)) = self.free_maps[self.next_scan].next_free(at) {
                self.list_free(first + free as u32, length);
                at = free + length;
            }
            scanned += 1;
            if scanned == MAX_SCANNED {
                return;
            }
        }
    }

    /// Puts a free stretch on the free lists, in parts that are as large as possible.
    fn list_free(&mut self, mut from: u32, mut length: usize) {
        while length > 0 {
            let mut class = size_class(length.min(MAX_BLOCK) as u32);
            if usize::from(BLOCK_SIZES[class]) > length {
                class -= 1;
            }
            self.push_free(class, from);
            from += u32::from(BLOCK_SIZES[class]);
            length -= usize::from(BLOCK_SIZES[class]);
        }
    }

    /// Puts a free block on the free list of its size class.
    #[inline]
    fn push_free(&mut self, class: usize, block: u32) {
        let list = &mut self.free_lists[class];
        // Without memory for the list, a scan finds the block.
        if list.len() < MAX_LISTED && (list.len() < list.capacity() || list.try_reserve(1).is_ok())
        {
            list.push(block);
            self.listed += 1;
        }
    }

    /// Marks contiguous units as free.
    #[inline]
    fn set_free(&mut self, from: u32, length: usize) {
        let map = &mut self.free_maps[(from >> Self::SHIFT) as usize];
        map.set(from as usize % Self::UNITS, length, true);
        self.free += length;
    }

    /// Frees some contiguous units.
    fn free_block(&mut self, from: u32, length: usize) {
        self.set_free(from, length);
        self.list_free(from, length);
    }

    /// Allocates `size` units at the end.
    fn alloc_at_end(&mut self, size: usize) -> Result<u32, Exhausted> {
        let mut left = self.units() - self.end as usize;
        while left < size {
            if self.first_units < Self::UNITS {
                self.grow_first()?;
            } else {
                self.add_chunk()?;
                if left > 0 {
                    let end = self.end;
                    self.end += left as u32;
                    self.free_block(end, left);
                }
            }
            left = self.units() - self.end as usize;
        }
        let block = self.end;
        self.end += size as u32;
        Ok(block)
    }

    /// Returns one past the index of the last unit.
    fn units(&self) -> usize {
        match self.chunks.len() {
            0 | 1 => self.first_units,
            more => more << Self::SHIFT,
        }
    }
}
