//! [`StaticArea`], checked: blocks are aligned, apart, and keep their bytes.
#![allow(unsafe_code)]

use core::alloc::Layout;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use std::collections::BTreeMap;

use flowtable::memory::{Allocator, StaticArea};

/// A block in use.
#[derive(Debug)]
struct Block {
    start: NonNull<u8>,
    layout: Layout,
    /// The value of all of its bytes.
    fill: u8,
}

/// An area and its blocks.
#[derive(Debug)]
pub struct CheckedArea<'m> {
    area: StaticArea<'m>,
    /// The address of the first granule.
    base: usize,
    /// By offset in granules.
    blocks: BTreeMap<usize, Block>,
    allocations: usize,
}

impl<'m> CheckedArea<'m> {
    /// An area in this memory.
    pub fn new(memory: &'m mut [MaybeUninit<u8>]) -> Self {
        let base = memory.as_ptr().addr().next_multiple_of(16);
        let area = StaticArea::new(memory);
        Self { area, base, blocks: BTreeMap::new(), allocations: 0 }
    }

    /// Whether no block is in use.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Allocates a block. It may fail only if no free block is twice as large. Returns whether it
    /// has been allocated.
    pub fn allocate(&mut self, size: usize, align: usize) -> bool {
        let layout = Layout::from_size_align(size, align).expect("a size and an alignment");
        let Ok(block) = self.area.allocate(layout) else {
            let gap = self.largest_gap();
            assert!(gap < 2 * (size + align), "{layout:?} does not fit into {gap} bytes");
            return false;
        };
        assert_eq!((block.len(), block.cast::<u8>().addr().get() % align), (size, 0));
        if size > 0 {
            self.allocations += 1;
            let (start, fill) = (block.cast::<u8>(), self.allocations as u8);
            // SAFETY: the block has that size.
            unsafe { start.write_bytes(fill, size) };
            let granule = (start.addr().get() - self.base) / 16;
            let replaced = self.blocks.insert(granule, Block { start, layout, fill });
            assert!(replaced.is_none(), "two blocks at one address");
        }
        true
    }

    /// Frees one of the blocks.
    pub fn free(&mut self, index: usize) {
        let Some(&granule) = self.blocks.keys().nth(index % self.blocks.len().max(1)) else {
            return;
        };
        let Some(Block { start, layout, fill }) = self.blocks.remove(&granule) else { return };
        for at in 0..layout.size() {
            // SAFETY: the block has that size.
            let place = unsafe { start.add(at) };
            // SAFETY: it has been written.
            let byte = unsafe { place.read() };
            assert_eq!(byte, fill, "byte {at} of {layout:?} has changed");
        }
        // SAFETY: allocated with this layout, and removed from the blocks.
        unsafe { self.area.deallocate(start, layout) };
    }

    /// Checks the area, and the bytes that it counts.
    pub fn check(&self) {
        assert_eq!(self.area.validate(), Ok(()));
        let sizes = self.blocks.values().map(|block| block.layout.size().next_multiple_of(16));
        assert_eq!(self.area.allocated_bytes(), sizes.sum::<usize>());
        assert!(self.area.allocated_bytes() <= self.area.capacity());
    }

    /// Bytes of the largest free block.
    fn largest_gap(&self) -> usize {
        let (mut end, mut largest) = (0, 0);
        for (&granule, block) in &self.blocks {
            largest = largest.max(granule - end);
            end = granule + block.layout.size().div_ceil(16);
        }
        16 * largest.max(self.area.capacity() / 16 - end)
    }
}
