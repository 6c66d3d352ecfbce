//! What has been taken out, and waits for the readers that may still see it.
//!
//! A writer puts what it takes out into the *batch* of its shard. A full batch is counted in the *ledger*
//! of the map and handed to crossbeam's collector, which calls back when all pins from before have ended;
//! then the batch is dropped and counted off. crossbeam does not bound what it keeps: the ledger does, as
//! writers ask it first.
//!
//! A batch is small, so that whoever has to drop some, which may be a reader that pins, is not held up for long:
//! eight batches at a time, of 64 entries or a segment.
#![allow(unsafe_code)]

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::Cell;
use core::mem;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use crossbeam_epoch::Guard;

use super::directory::{Address, SHARDS};
use super::index::Index;
use super::segment::Place;
use super::store::{Dropped, Store};
use crate::concurrent::sync::{Arc, AtomicUsize, IS_FREEING, Ordering};

/// A batch is full with so many entries,
const FULL: usize = 64;

/// or with so many bytes.
const FULL_BYTES: usize = 4096;

/// What a batch costs by itself, most of it in the collector: 64 functions of 32 bytes, of which ours is one.
const OVERHEAD: usize = 2304;

/// Memory of the index that is not used any more.
enum Block {
    /// A segment whose entries are in another one now.
    Segment(Place),
    /// A segment with its entries.
    Whole(Place),
    Directory(Address),
}

/// What has been taken out of a shard.
pub(super) struct Batch {
    /// Entries.
    numbers: Vec<u32>,
    blocks: Vec<Block>,
    bytes: usize,
}

impl Batch {
    pub(super) const fn new() -> Self {
        Self { numbers: Vec::new(), blocks: Vec::new(), bytes: 0 }
    }

    /// Retires an entry of so many bytes.
    pub(super) fn entry(&mut self, number: u32, bytes: usize) {
        if self.numbers.capacity() == 0 {
            self.numbers.reserve_exact(FULL);
        }
        self.bytes += bytes + size_of::<u32>();
        self.numbers.push(number);
    }

    /// Retires a segment whose entries are in another one now.
    pub(super) fn segment(&mut self, place: Place) {
        self.bytes += place.allocation_size();
        self.blocks.push(Block::Segment(place));
    }

    /// A segment and its entries, of so many bytes together. A batch of its own: whoever drops some is not held
    /// up for long.
    pub(super) fn whole(place: Place, entries: usize) -> Self {
        let bytes = place.allocation_size() + entries;
        Self { numbers: Vec::new(), blocks: [Block::Whole(place)].into(), bytes }
    }

    pub(super) fn directory(&mut self, address: Address) {
        self.bytes += address.allocation_size();
        self.blocks.push(Block::Directory(address));
    }

    pub(super) fn is_full(&self) -> bool {
        self.numbers.len() >= FULL || self.bytes >= FULL_BYTES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.numbers.is_empty() && self.blocks.is_empty()
    }

    /// What is in it.
    pub(super) fn take(&mut self) -> Self {
        mem::replace(self, Self::new())
    }

    /// Drops what is in it and gives the memory back. A panic of an entry ends here: the hook has spoken of it, and
    /// there is no caller that it belongs to.
    ///
    /// # Safety
    ///
    /// It is of the shard of this store, and nobody can see what is in it any more.
    pub(super) unsafe fn free<T>(&mut self, store: &Store<T>) {
        let mut numbers = mem::take(&mut self.numbers);
        for &number in &numbers {
            // SAFETY: it was taken out of a bucket; as asked for.
            forget_panic(unsafe { store.drop_entry(number) });
        }
        for block in self.blocks.drain(..) {
            match block {
                // SAFETY: as asked for.
                Block::Segment(place) => unsafe { place.free() },
                // SAFETY: as asked for.
                Block::Directory(address) => unsafe { address.free() },
                Block::Whole(place) => {
                    // SAFETY: as asked for.
                    numbers.extend(unsafe { place.segment() }.numbers());
                    // SAFETY: as asked for.
                    forget_panic(unsafe { free_whole(place, store) });
                }
            }
        }
        store.give_back(&mut numbers);
        self.bytes = 0;
    }
}

/// Drops what a panic carries. If that panics, so too with what that carries; what goes on like this is leaked.
pub(super) fn forget_panic(dropped: Dropped) {
    let mut panic = dropped.err();
    for _ in 0..4 {
        let Some(carried) = panic else { return };
        panic = catch_unwind(AssertUnwindSafe(|| drop(carried))).err();
    }
    mem::forget(panic);
}

/// The first of two panics. The other one is forgotten.
pub(super) fn first_panic(first: Dropped, second: Dropped) -> Dropped {
    if first.is_err() {
        forget_panic(second);
        return first;
    }
    second
}

/// Frees a segment and drops its entries. The first panic is returned when all is done.
///
/// # Safety
///
/// It is of the shard of this store, and nobody can see it any more.
unsafe fn free_whole<T>(place: Place, store: &Store<T>) -> Dropped {
    let mut result = Ok(());
    // SAFETY: as asked for; it is freed below.
    for number in unsafe { place.segment() }.numbers() {
        // SAFETY: as asked for; each entry is in one slot.
        let dropped = unsafe { store.drop_entry(number) };
        result = first_panic(result, dropped);
    }
    // SAFETY: as asked for.
    unsafe { place.free() };
    result
}

/// Frees a directory and its segments, and drops their entries. The first panic is returned when all is done.
///
/// # Safety
///
/// It is of the shard of this store, and nobody can see it any more.
pub(super) unsafe fn free_all<T>(address: Address, store: &Store<T>) -> Dropped {
    let mut result = Ok(());
    // SAFETY: as asked for; it is freed below.
    let directory = unsafe { address.directory() };
    for first in directory.firsts() {
        // SAFETY: as asked for; each segment once.
        let dropped = unsafe { free_whole(directory.places()[first], store) };
        result = first_panic(result, dropped);
    }
    // SAFETY: as asked for.
    unsafe { address.free() };
    result
}

/// How many bytes of full batches there are.
#[derive(Debug)]
pub(super) struct Ledger(AtomicUsize);

impl Ledger {
    pub(super) fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// Bytes that have been handed over, and not given back.
    pub(super) fn retired(&self) -> usize {
        // Acquire: pairs with the Release in `Counted`.
        self.0.load(Ordering::Acquire)
    }

    /// Hands a batch of a shard to the collector, and helps it with others. Code of users runs here: the
    /// destructors of what is given back.
    pub(super) fn hand_over<T>(
        self: &Arc<Self>,
        batch: Batch,
        indices: &Arc<[Index<T>; SHARDS]>,
        shard: usize,
        pin: &Guard,
    ) {
        let bytes = batch.bytes + OVERHEAD;
        // Relaxed: see `retired`. Counted before it can be counted off.
        self.0.fetch_add(bytes, Ordering::Relaxed);
        indices[shard].store.count_retired(bytes);
        let (ledger, indices) = (Arc::clone(self), Arc::clone(indices));
        let counted = Box::new(Counted { batch, bytes, ledger, indices, shard });
        // SAFETY: what is in it cannot be reached any more by who pins from now on, and all guards are of
        // the one collector. Keys and values may be dropped by another thread and at any later time:
        // writers ask that they be `Send` and 'static.
        unsafe { pin.defer_unchecked(move || drop(counted)) };
        help(pin);
    }
}

/// Helps the collector to give back what no pin holds on to any more. Not in a destructor that runs for that
/// reason: one that takes something out would have others run, and so on, until the stack is full.
pub(super) fn help(pin: &Guard) {
    if !IS_FREEING.try_with(Cell::get).unwrap_or(false) {
        pin.flush();
    }
}

/// Says whether this thread gives memory back, and returns whether it did. The flag is always there, but under a
/// checker, whose threads give memory back when theirs has gone.
fn set_freeing(freeing: bool) -> bool {
    IS_FREEING.try_with(|is_freeing| is_freeing.replace(freeing)).unwrap_or(false)
}

/// A batch that the ledger knows of.
struct Counted<T> {
    batch: Batch,
    /// As they have been counted.
    bytes: usize,
    ledger: Arc<Ledger>,
    indices: Arc<[Index<T>; SHARDS]>,
    shard: usize,
}

impl<T> Drop for Counted<T> {
    fn drop(&mut self) {
        let store = &self.indices[self.shard].store;
        let was_freeing = set_freeing(true);
        // SAFETY: the collector drops this when the pins have ended that may have seen what is in it.
        unsafe { self.batch.free(store) };
        set_freeing(was_freeing);
        store.count_off(self.bytes);
        // Release: pairs with the Acquire in `retired`: who sees the memory counted off sees what destructors
        // have done.
        self.ledger.0.fetch_sub(self.bytes, Ordering::Release);
    }
}
