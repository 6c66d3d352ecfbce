//! Allocation of the blocks of an arena, and their release after a grace period.
//!
//! ```text
//!     alloc ──→ in a published word ──→ replaced ──→ in a batch ──→ deferred ──→ free list
//!                                          └ of the writer  └ to the collector, whose closure
//!                                                             sets a flag, which the writer reads
//! ```
//!
//! A free block is reused for the same number of units. There are few sizes: most blocks have two
//! or three units.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::arena::{Arena, ID_BITS, Unit, bounds};
use crate::concurrent::sync::{Arc, AtomicBool, IS_CHECKED, Ordering};

/// A block: its number and units.
pub(super) type Block = (u32, u32);

/// Replaced blocks that are deferred together: the collector takes some hundred nanoseconds for a
/// closure.
const BATCH: usize = if IS_CHECKED { 1 } else { 64 };

/// Blocks that are deferred to the collector.
struct Batch {
    blocks: Vec<Block>,
    /// Set when no reader is left that may access them.
    is_free: Arc<AtomicBool>,
}

/// The free and the retired blocks of an arena.
pub(super) struct Space {
    /// The unit after the last block, the first unit of a chunk or in the last one that exists.
    end: u64,
    /// The chunk of the next block.
    chunk: usize,
    /// Numbers of free blocks, by units.
    free: Vec<Vec<u32>>,
    /// Blocks that have been replaced since the last batch.
    replaced: Vec<Block>,
    batches: VecDeque<Batch>,
    /// Units in use by readers.
    used: u64,
}

/// What is to be deferred to the collector: bytes, and the flag of their batch.
pub(super) struct Deferred {
    pub(super) bytes: usize,
    pub(super) is_free: Arc<AtomicBool>,
}

impl Space {
    pub(super) fn new() -> Self {
        // Unit 0 is no block.
        Self {
            end: 1,
            chunk: 0,
            free: Vec::new(),
            replaced: Vec::new(),
            batches: VecDeque::new(),
            used: 0,
        }
    }

    /// Allocates a block, whose contents are unspecified.
    ///
    /// # Panics
    ///
    /// If there are 2^29 units.
    pub(super) fn alloc(&mut self, arena: &Arena, units: u32) -> u32 {
        self.used += u64::from(units);
        self.reclaim();
        if let Some(id) = self.free.get_mut(units as usize).and_then(Vec::pop) {
            return id;
        }
        loop {
            let (_, chunk_end) = bounds(self.chunk);
            if self.end + u64::from(units) <= chunk_end {
                break;
            }
            let left = (chunk_end - self.end) as u32;
            if left > 0 && arena.has_chunk(self.chunk) {
                self.set_free((self.end as u32, left));
            }
            self.end = chunk_end;
            self.chunk += 1;
        }
        assert!(self.end < 1 << ID_BITS, "an arena has at most 2^29 units");
        arena.make_chunk(self.chunk);
        let id = self.end as u32;
        self.end += u64::from(units);
        id
    }

    fn set_free(&mut self, (id, units): Block) {
        if self.free.len() <= units as usize {
            self.free.resize_with(units as usize + 1, Vec::new);
        }
        self.free[units as usize].push(id);
    }

    /// Notes a block that readers do not find any more.
    pub(super) fn retire(&mut self, block: Block) {
        self.used -= u64::from(block.1);
        self.replaced.push(block);
    }

    /// Frees the blocks of batches without readers.
    fn reclaim(&mut self) {
        // Acquire: pairs with the Release of the closure; all reads have happened before.
        let is_free = |batch: &Batch| batch.is_free.load(Ordering::Acquire);
        while self.batches.front().is_some_and(is_free) {
            let batch = self.batches.pop_front();
            batch.into_iter().flat_map(|batch| batch.blocks).for_each(|block| self.set_free(block));
        }
    }

    /// Returns what is to be deferred, if there are enough replaced blocks.
    pub(super) fn take_batch(&mut self) -> Option<Deferred> {
        if self.replaced.len() < BATCH { None } else { self.take_all() }
    }

    /// Returns all that is to be deferred.
    pub(super) fn take_all(&mut self) -> Option<Deferred> {
        if self.replaced.is_empty() {
            return None;
        }
        let is_free = Arc::new(AtomicBool::new(false));
        let blocks = core::mem::take(&mut self.replaced);
        let units: usize = blocks.iter().map(|block| block.1 as usize).sum();
        self.batches.push_back(Batch { blocks, is_free: Arc::clone(&is_free) });
        Some(Deferred { bytes: units * size_of::<Unit>(), is_free })
    }

    /// Returns the units in use by readers.
    pub(super) const fn used(&self) -> u64 {
        self.used
    }

    /// Returns the bytes allocated for lists.
    pub(super) fn allocation_size(&self) -> usize {
        let free: usize = self.free.iter().map(|list| list.capacity() * size_of::<u32>()).sum();
        let batches = self.batches.iter().map(|batch| &batch.blocks).chain([&self.replaced]);
        free + batches.map(|blocks| blocks.capacity() * size_of::<Block>()).sum::<usize>()
    }
}
