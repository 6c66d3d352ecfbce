//! Garbage: retired entries and index memory that readers may still access.
//!
//! A writer adds retired entries to the *batch* of its shard. A full batch is counted and deferred
//! to the collector: see [`Garbage`].
//!
//! Batches are small, so that a thread that frees some, which may be a reader that pins, is delayed
//! little: eight batches at a time, of 64 entries or a segment.
#![allow(unsafe_code)]

use alloc::vec::Vec;
use core::mem;

use crossbeam_epoch::Guard;

use super::index::Index;
use super::segment::{self, Segment};
use crate::concurrent::directory::DirectoryPtr;
use crate::concurrent::garbage::{Dropped, Garbage, OVERHEAD, first_panic, forget_panic};
use crate::concurrent::sync::Arc;

/// Entries of a full batch.
const FULL: usize = 64;

/// Bytes of a full batch.
const FULL_BYTES: usize = 4096;

/// Retired memory of the index.
enum Block {
    /// A segment without its entries, which are in another one.
    Segment(*mut Segment),
    /// A segment with its entries.
    Whole(*mut Segment),
    Directory(DirectoryPtr<Segment>),
}

/// The garbage of a shard.
pub(super) struct Batch {
    /// Retired entries.
    ids: Vec<u32>,
    blocks: Vec<Block>,
    bytes: usize,
}

impl Batch {
    pub(super) const fn new() -> Self {
        Self { ids: Vec::new(), blocks: Vec::new(), bytes: 0 }
    }

    /// Retires an entry of `bytes` bytes.
    pub(super) fn entry(&mut self, id: u32, bytes: usize) {
        if self.ids.capacity() == 0 {
            self.ids.reserve_exact(FULL);
        }
        self.bytes += bytes + size_of::<u32>();
        self.ids.push(id);
    }

    /// Retires a segment of `bytes` bytes without its entries, which are in others.
    pub(super) fn segment(&mut self, segment: *mut Segment, bytes: usize) {
        self.bytes += bytes;
        self.blocks.push(Block::Segment(segment));
    }

    /// Creates a batch of a segment and its entries, of `bytes` bytes. It is not added to another
    /// batch, so that the thread that frees it is delayed little.
    pub(super) fn whole(segment: *mut Segment, bytes: usize) -> Self {
        Self { ids: Vec::new(), blocks: [Block::Whole(segment)].into(), bytes }
    }

    pub(super) fn directory(&mut self, directory: DirectoryPtr<Segment>) {
        self.bytes += directory.allocation_size();
        self.blocks.push(Block::Directory(directory));
    }

    pub(super) fn is_full(&self) -> bool {
        self.ids.len() >= FULL || self.bytes >= FULL_BYTES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ids.is_empty() && self.blocks.is_empty()
    }

    /// Returns the contents, and leaves an empty batch.
    pub(super) fn take(&mut self) -> Self {
        mem::replace(self, Self::new())
    }

    /// Defers the batch to the collector.
    ///
    /// # Safety
    ///
    /// The batch is of this shard. Its contents cannot be reached by later pins, and may be dropped
    /// by another thread and at any later time.
    pub(super) unsafe fn defer<T>(
        mut self,
        garbage: &Garbage,
        index: &Arc<Index<T>>,
        shard: usize,
        pin: &Guard,
    ) {
        let bytes = self.bytes + OVERHEAD;
        index.store.add_retired(shard, bytes);
        let index = Arc::clone(index);
        let free = move || {
            // SAFETY: the collector calls this when all pins have ended that may have observed the
            // contents.
            unsafe { self.free(&index, shard) };
            index.store.subtract_retired(shard, bytes);
        };
        // SAFETY: by the contract.
        unsafe { garbage.defer(bytes, pin, free) };
    }

    /// Drops the entries and frees the memory. A panic of a destructor is caught: the panic hook
    /// has reported it, and there is no caller to resume it.
    ///
    /// # Safety
    ///
    /// The batch is of this shard of the map, and no thread can access its contents any more.
    pub(super) unsafe fn free<T>(&mut self, index: &Index<T>, shard: usize) {
        let mut ids = mem::take(&mut self.ids);
        for &id in &ids {
            // SAFETY: it was removed from a line; by the contract.
            forget_panic(unsafe { index.store.drop_entry(id) });
        }
        for block in self.blocks.drain(..) {
            match block {
                // SAFETY: by the contract.
                Block::Segment(segment) => unsafe { segment::free(segment) },
                // SAFETY: by the contract.
                Block::Directory(directory) => unsafe { directory.free() },
                Block::Whole(segment) => {
                    // SAFETY: by the contract.
                    forget_panic(unsafe { free_whole(segment, index, &mut ids) });
                }
            }
        }
        index.store.release(shard, &mut ids);
        self.bytes = 0;
    }
}

/// Frees a segment and drops its entries, whose ids it adds to `ids`. Returns the first panic after
/// all are dropped.
///
/// # Safety
///
/// The segment is of this map, and no thread can access it any more.
unsafe fn free_whole<T>(segment: *mut Segment, index: &Index<T>, ids: &mut Vec<u32>) -> Dropped {
    let mut result = Ok(());
    let first = ids.len();
    // SAFETY: by the contract; it is freed below.
    ids.extend(unsafe { &*segment }.ids());
    for &id in &ids[first..] {
        // SAFETY: by the contract; each entry is in one slot.
        let dropped = unsafe { index.store.drop_entry(id) };
        result = first_panic(result, dropped);
    }
    // SAFETY: by the contract.
    unsafe { segment::free(segment) };
    result
}

/// Frees the directory of a shard and its segments, and drops their entries. Returns the first
/// panic after all are dropped.
///
/// # Safety
///
/// No thread can access the shard any more.
pub(super) unsafe fn free_all<T>(index: &Index<T>, shard: usize) -> Dropped {
    let (mut result, mut ids) = (Ok(()), Vec::new());
    // SAFETY: by the contract; it is freed below.
    let directory = unsafe { index.root(shard).directory() };
    // The iterator reads the depth of a segment before it returns that.
    for (at, segment) in Index::<T>::segments(directory) {
        if !segment.is_nothing() {
            // SAFETY: by the contract; each segment once.
            let dropped = unsafe { free_whole(at, index, &mut ids) };
            result = first_panic(result, dropped);
            ids.clear();
        }
    }
    // SAFETY: by the contract.
    unsafe { directory.ptr().free() };
    result
}
