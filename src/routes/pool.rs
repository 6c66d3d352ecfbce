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
//! inserted in random order, nine tenths of the units are in use.
//!
//! Where all blocks grow together, free blocks of smaller classes are never reused. Therefore a
//! bitmap has the free units, too, in which adjacent free blocks coalesce without work; when a
//! quarter of all units is free, chunks are scanned for free stretches of any length before the end
//! is extended. The free lists may be stale then: a block from a list is checked against the
//! bitmap.
//!
//! Chunks never move, except for the first one while it is small, and are released only with the
//! pool. So the cost of an allocation does not depend on the number of blocks: it scans two chunks
//! at most.
#![allow(unsafe_code)]

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::iter;
use core::mem;

/// A unit that has a value for being not in use.
pub(super) trait Empty {
    const EMPTY: Self;

    /// Limit of the number of units in a pool: indices are below it.
    const MAX_UNITS: u64;
}

/// The size classes, in units: a block grows by an eighth to a quarter when it moves.
const BLOCK_SIZES: [u8; 24] =
    [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128];

/// Units of the largest block.
const MAX_BLOCK: usize = BLOCK_SIZES[BLOCK_SIZES.len() - 1] as usize;

/// The size class of each length from 1 on: the first one that it fits into.
const CLASS_OF_LEN: [u8; MAX_BLOCK + 1] = {
    let mut classes = [0; MAX_BLOCK + 1];
    let mut len = 1;
    while len < classes.len() {
        let class = classes[len - 1];
        classes[len] = if len > BLOCK_SIZES[class as usize] as usize { class + 1 } else { class };
        len += 1;
    }
    classes
};

/// Stale entries of a free list that one allocation skips at most.
const MAX_STALE: usize = 16;

/// Chunks that one allocation scans at most.
const MAX_SCANNED: usize = 2;

/// Chunks that one allocation considers for a scan at most.
const MAX_EXAMINED: usize = 16;

/// Limit of the length of a free list, so that no update has to reallocate a long list.
const MAX_LISTED: usize = 1 << 12;

/// The insertion of one route allocates less than this number of chunks.
const RESERVED_CHUNKS: u64 = 64;

fn size_class(len: u32) -> usize {
    usize::from(CLASS_OF_LEN[len as usize])
}

/// Returns the units of a block for `len` units in use.
pub(super) fn block_size(len: u32) -> u32 {
    if len == 0 { 0 } else { u32::from(BLOCK_SIZES[size_class(len)]) }
}

/// The free units of a chunk.
#[derive(Debug)]
struct FreeMap {
    /// One bit for each unit: 1 is free.
    map: Box<[u64]>,
    free: usize,
}

/// An allocator of blocks of units of type `T`.
#[derive(Debug)]
pub(super) struct Pool<T> {
    chunks: Vec<Box<[T]>>,
    free_maps: Vec<FreeMap>,
    /// Free lists by size class, possibly stale, and their total length.
    free_lists: Vec<Vec<u32>>,
    listed: usize,
    /// The chunk after which the next scan begins.
    next_scan: usize,
    /// The first unit that has never been allocated.
    end: u32,
    /// Free units, and units in allocated blocks.
    free: usize,
    used: usize,
}

impl<T: Empty> Pool<T> {
    /// Bits of the index of a unit in its chunk: a chunk of units of up to 64 bytes has up to 32
    /// KiB.
    const SHIFT: u32 = match mem::size_of::<T>() {
        0..=8 => 12,
        9..=16 => 11,
        17..=32 => 10,
        33..=64 => 9,
        65.. => 8,
    };

    /// Units of a chunk; of the first one, after it has grown.
    const UNITS: usize = 1 << Self::SHIFT;

    pub(super) const fn new() -> Self {
        Self {
            chunks: Vec::new(),
            free_maps: Vec::new(),
            free_lists: Vec::new(),
            listed: 0,
            next_scan: 0,
            end: 0,
            free: 0,
            used: 0,
        }
    }

    #[inline]
    pub(super) fn get(&self, index: u32) -> &T {
        &self.chunks[(index >> Self::SHIFT) as usize][index as usize % Self::UNITS]
    }

    /// Returns the unit at `index` without bounds checks.
    ///
    /// # Safety
    ///
    /// `index` is of a unit of a block that is allocated, or was at some time.
    #[inline]
    pub(super) unsafe fn get_unchecked(&self, index: u32) -> &T {
        // SAFETY: the chunk of the block exists, since chunks are not released.
        let chunk = unsafe { self.chunks.get_unchecked((index >> Self::SHIFT) as usize) };
        // SAFETY: a block does not extend beyond its chunk.
        unsafe { chunk.get_unchecked(index as usize % Self::UNITS) }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, index: u32) -> &mut T {
        &mut self.chunks[(index >> Self::SHIFT) as usize][index as usize % Self::UNITS]
    }

    /// Allocates a block of one unit.
    pub(super) fn alloc_one(&mut self, unit: T) -> u32 {
        let block = self.alloc_class(size_class(1));
        *self.get_mut(block) = unit;
        block
    }

    /// Inserts a unit before unit `at` of a block with `len` units in use. Returns the index of the
    /// block, which may have moved.
    pub(super) fn insert(&mut self, block: u32, len: u32, at: u32, unit: T) -> u32 {
        let block = self.resize(block, len, len + 1);
        let units = &mut self.block_mut(block, len + 1)[at as usize..];
        units.rotate_right(1);
        units[0] = unit;
        block
    }

    /// Removes unit `at` of a block with `len` units in use. Returns the unit and the index of the
    /// block, which may have moved.
    pub(super) fn remove(&mut self, block: u32, len: u32, at: u32) -> (T, u32) {
        let units = &mut self.block_mut(block, len)[at as usize..];
        let unit = mem::replace(&mut units[0], T::EMPTY);
        units.rotate_left(1);
        (unit, self.resize(block, len, len - 1))
    }

    /// Allocates a block of `len` empty units.
    pub(super) fn alloc(&mut self, len: u32) -> u32 {
        if len == 0 { 0 } else { self.alloc_class(size_class(len)) }
    }

    /// Returns the allocated bytes.
    pub(super) fn allocation_size(&self) -> usize {
        let units: usize = self.chunks.iter().map(|chunk| chunk.len()).sum();
        let hints: usize = self.free_lists.iter().map(Vec::capacity).sum();
        units * mem::size_of::<T>()
            + self.free_maps.len() * (Self::UNITS / 8)
            + hints * mem::size_of::<u32>()
            + self.free_lists.capacity() * mem::size_of::<Vec<u32>>()
            + self.chunks.capacity() * mem::size_of::<Box<[T]>>()
            + self.free_maps.capacity() * mem::size_of::<FreeMap>()
    }

    /// Returns whether the pool has capacity for the blocks of one more route.
    #[inline]
    pub(super) fn has_capacity(&self) -> bool {
        ((self.chunks.len() as u64 + RESERVED_CHUNKS) << Self::SHIFT) <= T::MAX_UNITS
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

    fn block_mut(&mut self, block: u32, len: u32) -> &mut [T] {
        &mut self.chunks[(block >> Self::SHIFT) as usize][block as usize % Self::UNITS..]
            [..len as usize]
    }

    /// Reallocates a block for another number of units in use. The smaller number of them moves.
    fn resize(&mut self, block: u32, len: u32, new_len: u32) -> u32 {
        if block_size(len) == block_size(new_len) {
            return block;
        }
        let resized = if new_len > 0 { self.alloc_class(size_class(new_len)) } else { block };
        // The old block cannot be reallocated before its units have moved.
        if len > 0 {
            self.used -= block_size(len) as usize;
            self.free_block(block, block_size(len) as usize);
        }
        self.swap(block, resized, len.min(new_len) as usize);
        resized
    }

    /// Swaps the units of two disjoint blocks.
    fn swap(&mut self, one: u32, other: u32, len: usize) {
        let chunk_of = |block| (block >> Self::SHIFT) as usize;
        let (at, to) = (one as usize % Self::UNITS, other as usize % Self::UNITS);
        let mut chunk = mem::take(&mut self.chunks[chunk_of(one)]);
        if chunk_of(one) == chunk_of(other) {
            let (low, high) = chunk.split_at_mut(at.max(to));
            low[at.min(to)..][..len].swap_with_slice(&mut high[..len]);
        } else {
            let others = &mut self.chunks[chunk_of(other)][to..][..len];
            chunk[at..][..len].swap_with_slice(others);
        }
        self.chunks[chunk_of(one)] = chunk;
    }

    /// Allocates a block of a size class. The caller has checked
    /// [`has_capacity`](Self::has_capacity).
    fn alloc_class(&mut self, class: usize) -> u32 {
        self.used += usize::from(BLOCK_SIZES[class]);
        if let Some(free) = self.pop_free(class) {
            return free;
        }
        if self.free > (self.free + self.used) / 4 {
            self.scan();
            if let Some(free) =
                (class..BLOCK_SIZES.len()).find_map(|larger| self.split_free(larger, class))
            {
                return free;
            }
        }
        self.alloc_at_end(usize::from(BLOCK_SIZES[class]))
    }

    /// Pops a block from a free list; skips stale entries.
    fn pop_free(&mut self, class: usize) -> Option<u32> {
        for _ in 0..MAX_STALE {
            let free = self.free_lists.get_mut(class)?.pop()?;
            self.listed -= 1;
            let (at, size) = (free as usize % Self::UNITS, usize::from(BLOCK_SIZES[class]));
            let map = &mut self.free_maps[(free >> Self::SHIFT) as usize];
            if map.are_free(at, size) {
                map.set(at, size, false);
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
        let mut scanned = 0;
        for _ in 0..MAX_EXAMINED.min(self.free_maps.len()) {
            self.next_scan = (self.next_scan + 1) % self.free_maps.len();
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
            let class = BLOCK_SIZES.iter().rposition(|&size| usize::from(size) <= length);
            let class = class.expect("there is a class of one unit");
            if self.free_lists[class].len() < MAX_LISTED {
                self.free_lists[class].push(from);
                self.listed += 1;
            }
            from += u32::from(BLOCK_SIZES[class]);
            length -= usize::from(BLOCK_SIZES[class]);
        }
    }

    /// Frees some contiguous units.
    fn free_block(&mut self, from: u32, length: usize) {
        let map = &mut self.free_maps[(from >> Self::SHIFT) as usize];
        map.set(from as usize % Self::UNITS, length, true);
        self.free += length;
        self.list_free(from, length);
    }

    /// Allocates `size` units at the end.
    fn alloc_at_end(&mut self, size: usize) -> u32 {
        let mut left = self.units() - self.end as usize;
        while left < size {
            if !self.grow_first() {
                if left > 0 {
                    self.free_block(self.end, left);
                    self.end += left as u32;
                }
                self.chunks.push(empty_chunk(Self::UNITS));
                self.free_maps.push(FreeMap::new(Self::UNITS));
            }
            left = self.units() - self.end as usize;
        }
        let block = self.end;
        self.end += size as u32;
        block
    }

    /// Returns one past the index of the last unit.
    fn units(&self) -> usize {
        match self.chunks.as_slice() {
            [] => 0,
            [only] => only.len(),
            [..] => self.chunks.len() << Self::SHIFT,
        }
    }

    /// Allocates the first chunk, or doubles it while it is small. Returns whether it did.
    fn grow_first(&mut self) -> bool {
        if self.free_maps.is_empty() {
            self.free_maps.push(FreeMap::new(Self::UNITS));
            self.free_lists.resize(BLOCK_SIZES.len(), Vec::new());
        }
        let units = match self.chunks.as_slice() {
            [] => MAX_BLOCK / 4,
            [first] if first.len() < Self::UNITS => 2 * first.len(),
            [..] => return false,
        };
        let old = self.chunks.pop().unwrap_or_default().into_vec();
        let more = units - old.len();
        let grown = old.into_iter().chain(iter::repeat_with(|| T::EMPTY).take(more));
        self.chunks.push(grown.collect());
        true
    }
}

fn empty_chunk<T: Empty>(units: usize) -> Box<[T]> {
    iter::repeat_with(|| T::EMPTY).take(units).collect()
}

impl FreeMap {
    fn new(units: usize) -> Self {
        Self { map: iter::repeat_n(0, units / 64).collect(), free: 0 }
    }

    /// Marks units as free or allocated.
    fn set(&mut self, at: usize, count: usize, free: bool) {
        for (word, mask) in masks(at, count) {
            match free {
                true => self.map[word] |= mask,
                false => self.map[word] &= !mask,
            }
        }
        self.free = if free { self.free + count } else { self.free - count };
    }

    fn are_free(&self, at: usize, count: usize) -> bool {
        masks(at, count).all(|(word, mask)| self.map[word] & mask == mask)
    }

    /// Returns the first free stretch at or after `from`, and its length.
    fn next_free(&self, from: usize) -> Option<(usize, usize)> {
        let free = self.next_bit(from, 0)?;
        let end = self.next_bit(free, u64::MAX).unwrap_or(64 * self.map.len());
        Some((free, end - free))
    }

    /// Returns the first 1 at or after bit `from` in the map, after an exclusive or with `flip`.
    fn next_bit(&self, from: usize, flip: u64) -> Option<usize> {
        let words = self.map.get(from / 64..)?.iter().enumerate();
        let mut ones = words.map(|(nth, word)| (from / 64 * 64 + 64 * nth, word ^ flip));
        let (first, word) = ones.next()?;
        let rest = word >> (from % 64) << (from % 64);
        iter::once((first, rest))
            .chain(ones)
            .find(|&(_, word)| word != 0)
            .map(|(first, word)| first + word.trailing_zeros() as usize)
    }
}

/// Iterates over the words that contain the bits, each with the mask of these bits.
fn masks(at: usize, count: usize) -> impl Iterator<Item = (usize, u64)> {
    let end = at + count;
    (at / 64..end.div_ceil(64)).map(move |word| {
        let (from, to) = (at.max(64 * word) - 64 * word, end.min(64 * word + 64) - 64 * word);
        (word, u64::MAX >> (64 - (to - from)) << from)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_length_has_the_smallest_block_that_it_fits_in() {
        for len in 1..=MAX_BLOCK as u32 {
            let fits = |&&size: &&u8| u32::from(size) >= len;
            assert_eq!(
                BLOCK_SIZES.iter().find(fits).copied().map(u32::from),
                Some(block_size(len))
            );
        }
    }
}
