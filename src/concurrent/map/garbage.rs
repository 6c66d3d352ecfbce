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

use super::directory::Address;
use super::index::Index;
use super::segment::SegmentPtr;
use super::store::Store;
use crate::concurrent::garbage::{Dropped, Garbage, first_panic, forget_panic};
use crate::concurrent::policy::SHARDS;
use crate::concurrent::sync::Arc;

/// Entries of a full batch.
const FULL: usize = 64;

/// Bytes of a full batch.
const FULL_BYTES: usize = 4096;

/// The cost of a batch itself, most of it in the collector: 64 functions of 32 bytes, one of them
/// used.
const OVERHEAD: usize = 2304;

/// Retired memory of the index.
enum Block {
    /// A segment without its entries, which are in another one.
    Segment(SegmentPtr),
    /// A segment with its entries.
    Whole(SegmentPtr),
    Directory(Address),
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

    /// Retires a segment without its entries, which are in another one.
    pub(super) fn segment(&mut self, segment_ptr: SegmentPtr) {
        self.bytes += segment_ptr.allocation_size();
        self.blocks.push(Block::Segment(segment_ptr));
    }

    /// Creates a batch of a segment and its entries, of `entries` bytes. It is not added to another
    /// batch, so that the thread that frees it is delayed little.
    pub(super) fn whole(segment_ptr: SegmentPtr, entries: usize) -> Self {
        let bytes = segment_ptr.allocation_size() + entries;
        Self { ids: Vec::new(), blocks: [Block::Whole(segment_ptr)].into(), bytes }
    }

    pub(super) fn directory(&mut self, address: Address) {
        self.bytes += address.allocation_size();
        self.blocks.push(Block::Directory(address));
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
        indices: &Arc<[Index<T>; SHARDS]>,
        shard: usize,
        pin: &Guard,
    ) {
        let bytes = self.bytes + OVERHEAD;
        indices[shard].store.add_retired(bytes);
        let indices = Arc::clone(indices);
        let free = move || {
            let store = &indices[shard].store;
            // SAFETY: the collector calls this when all pins have ended that may have observed the
            // contents.
            unsafe { self.free(store) };
            store.subtract_retired(bytes);
        };
        // SAFETY: by the contract.
        unsafe { garbage.defer(bytes, pin, free) };
    }

    /// Drops the entries and frees the memory. A panic of a destructor is caught: the panic hook
    /// has reported it, and there is no caller to resume it.
    ///
    /// # Safety
    ///
    /// The batch is of the shard of this store, and no thread can access its contents any more.
    pub(super) unsafe fn free<T>(&mut self, store: &Store<T>) {
        let mut ids = mem::take(&mut self.ids);
        for &id in &ids {
            // SAFETY: it was removed from a bucket; by the contract.
            forget_panic(unsafe { store.drop_entry(id) });
        }
        for block in self.blocks.drain(..) {
            match block {
                // SAFETY: by the contract.
                Block::Segment(segment_ptr) => unsafe { segment_ptr.free() },
                // SAFETY: by the contract.
                Block::Directory(address) => unsafe { address.free() },
                Block::Whole(segment_ptr) => {
                    // SAFETY: by the contract.
                    ids.extend(unsafe { segment_ptr.segment() }.ids());
                    // SAFETY: by the contract.
                    forget_panic(unsafe { free_whole(segment_ptr, store) });
                }
            }
        }
        store.release(&mut ids);
        self.bytes = 0;
    }
}

/// Frees a segment and drops its entries. Returns the first panic after all are dropped.
///
/// # Safety
///
/// The segment is of the shard of this store, and no thread can access it any more.
unsafe fn free_whole<T>(segment_ptr: SegmentPtr, store: &Store<T>) -> Dropped {
    let mut result = Ok(());
    // SAFETY: by the contract; it is freed below.
    for id in unsafe { segment_ptr.segment() }.ids() {
        // SAFETY: by the contract; each entry is in one slot.
        let dropped = unsafe { store.drop_entry(id) };
        result = first_panic(result, dropped);
    }
    // SAFETY: by the contract.
    unsafe { segment_ptr.free() };
    result
}

/// Frees a directory and its segments, and drops their entries. Returns the first panic after all
/// are dropped.
///
/// # Safety
///
/// The directory is of the shard of this store, and no thread can access it any more.
pub(super) unsafe fn free_all<T>(address: Address, store: &Store<T>) -> Dropped {
    let mut result = Ok(());
    // SAFETY: by the contract; it is freed below.
    let directory = unsafe { address.directory() };
    for first in directory.firsts() {
        // SAFETY: by the contract; each segment once.
        let dropped = unsafe { free_whole(directory.segments()[first], store) };
        result = first_panic(result, dropped);
    }
    // SAFETY: by the contract.
    unsafe { address.free() };
    result
}
