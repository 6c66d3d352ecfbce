//! The release of the last chunks of a pool of which little is in use.

use super::{KEEP_ALL, Pool, Unit, block_size, size_class};
use crate::memory::{Allocator, Vec};

/// The result of [`Pool::release_chunk`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Released {
    /// There is none to be released.
    Done,
    /// One was released; there may be more.
    One,
    /// The last chunk has blocks.
    Blocked,
}

/// The release of chunks.
impl<T: Unit, M: Allocator + Clone> Pool<T, M> {
    /// Returns whether less than a quarter of the units is in use, in several chunks.
    #[inline]
    pub(in super::super) const fn is_sparse(&self) -> bool {
        self.used < self.sparse_below
    }

    /// Sets the number of units in use below which the pool is sparse, after a change of the number
    /// of chunks.
    pub(super) fn set_sparse(&mut self) {
        let chunks = self.chunks.len();
        self.sparse_below = if chunks > 1 { chunks * Self::UNITS / 4 } else { 0 };
    }

    /// Returns whether chunks are to be released.
    pub(in super::super) const fn is_releasing(&self) -> bool {
        self.limit != KEEP_ALL
    }

    /// Begins to release all chunks but those for twice the units in use, if the pool is sparse.
    pub(in super::super) fn begin_release(&mut self) {
        if self.is_sparse() {
            let kept = (2 * self.used).div_ceil(Self::UNITS).max(1);
            self.limit = (kept << Self::SHIFT) as u32;
        }
    }

    /// Allocates in all chunks again, until a quarter of the blocks has been freed.
    #[inline]
    pub(super) fn cancel_release(&mut self) {
        if self.is_releasing() {
            self.limit = KEEP_ALL;
            self.sparse_below = self.sparse_below.min(self.used - self.used / 4);
        }
    }

    /// Returns the number of chunks in which blocks are allocated, or more.
    pub(super) const fn kept_chunks(&self) -> usize {
        self.limit as usize >> Self::SHIFT
    }

    /// Moves a block with `len` units in use out of the chunks that are to be released. Returns the
    /// new block; `None` if it stays.
    pub(in super::super) fn relocate(&mut self, block: u32, len: u32) -> Option<u32> {
        if len == 0 || block < self.limit {
            return None;
        }
        let to = self.alloc_class(size_class(len)).ok()?;
        self.copy(block, to, len);
        self.clear(block, len);
        self.free_class(block, block_size(len));
        Some(to)
    }

    /// Releases the last chunk, if it is to be released and has no blocks.
    pub(in super::super) fn release_chunk(&mut self) -> Released {
        let start = self.chunks.len().saturating_sub(1) << Self::SHIFT;
        if !self.is_releasing() || start < self.limit as usize {
            if self.is_releasing() {
                self.finish_release();
            }
            return Released::Done;
        }
        let free = self.free_maps.last().map_or(0, |map| map.free);
        if free != self.end as usize - start {
            return Released::Blocked;
        }
        self.free_maps.pop();
        if let Some(chunk) = self.chunks.pop() {
            self.free_chunk(chunk, Self::UNITS);
        }
        self.free -= free;
        self.end = start as u32;
        Released::One
    }

    /// Releases what the lists of free blocks and of chunks have allocated for more chunks. A scan
    /// lists the free blocks again.
    fn finish_release(&mut self) {
        self.limit = KEEP_ALL;
        self.set_sparse();
        for list in &mut self.free_lists {
            *list = Vec::new_in(list.allocator().clone());
        }
        self.listed = 0;
        shrink(&mut self.chunks);
        shrink(&mut self.free_maps);
    }
}

/// Moves the elements of a vector to a smaller one, if there is memory.
fn shrink<T, M: Allocator + Clone>(vec: &mut Vec<T, M>) {
    let mut smaller = Vec::new_in(vec.allocator().clone());
    if smaller.try_reserve_exact(vec.len()).is_ok() {
        smaller.append(vec);
        *vec = smaller;
    }
}
