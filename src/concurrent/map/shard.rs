//! Shards: the writers' part of the map, each with a lock.
#![allow(unsafe_code)]

use alloc::vec::Vec;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use crossbeam_epoch::Guard;

use super::garbage::Batch;
use super::index::{EMPTY_DIRECTORY_BYTES, Entry, Index, Segments};
use super::segment::{Item, Segment};
use super::store::IdAllocator;
use crate::concurrent::garbage::forget_panic;
use crate::concurrent::lock::{Lock, LockGuard};
use crate::concurrent::policy::shard_of;
use crate::concurrent::sync::{AtomicUsize, Ordering};

/// The writers' part of a shard. Apart from the index, so that readers do not share its cache
/// lines; aligned to two of them, as CPUs prefetch them in pairs.
#[repr(align(128))]
pub(super) struct Shard {
    state: Lock<State>,
    /// Number of entries. Written under the lock.
    len: AtomicUsize,
    /// Allocated bytes. Written under the lock.
    bytes: AtomicUsize,
}

pub(super) struct State {
    pub(super) batch: Batch,
    pub(super) ids: IdAllocator,
    /// Slots of all segments, without those of further links.
    pub(super) slots: usize,
    /// The reserved capacity, in slots, below which the shard does not shrink.
    pub(super) reserved: usize,
}

/// The panic message of a bug in this crate.
const NOTHING: &str = "there is an entry to insert";

/// The precondition of an insertion or a removal.
#[derive(Clone, Copy)]
pub(super) enum Expected {
    Anything,
    /// The key must be absent.
    Nothing,
    /// The key must have the entry with this id, which was loaded under the pin of the writer.
    Entry(u32),
}

impl Expected {
    fn is(self, there: Option<u32>) -> bool {
        match (self, there) {
            (Self::Anything, _) | (Self::Nothing, None) => true,
            (Self::Entry(expected), Some(there)) => expected == there,
            _ => false,
        }
    }
}

/// The result of an insertion.
pub(super) enum Insertion<'p, T> {
    /// The entry was inserted, or has replaced another one.
    Done { old: Option<Entry<'p, T>>, new: Entry<'p, T> },
    /// The precondition was false: this is the present entry.
    Unexpected(Option<Entry<'p, T>>),
    /// The map has the maximum number of entries.
    Full,
}

impl Shard {
    /// Creates a shard without a segment.
    pub(super) fn new(shard: usize) -> Self {
        let (batch, ids) = (Batch::new(), IdAllocator::new(shard));
        let state = State { batch, ids, slots: 0, reserved: 0 };
        let (len, bytes) = (AtomicUsize::new(0), AtomicUsize::new(EMPTY_DIRECTORY_BYTES));
        Self { state: Lock::new(state), len, bytes }
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        // Relaxed: a statistic that publishes nothing.
        self.len.load(Ordering::Relaxed)
    }

    /// Returns the allocated bytes of segments and of the directory.
    pub(super) fn allocation_size(&self) -> usize {
        // Relaxed: a statistic that publishes nothing.
        self.bytes.load(Ordering::Relaxed)
    }

    /// Runs `work` under the lock. Returns the garbage if the batch is full: it is deferred without
    /// the lock, as that runs destructors.
    pub(super) fn write<'p, T, R>(
        &'p self,
        nth: usize,
        index: &'p Index<T>,
        pin: &'p Guard,
        work: impl FnOnce(&mut Writer<'p, T>) -> R,
    ) -> (R, Option<Batch>) {
        let mut writer = Writer { shard: self, nth, state: self.state.lock(), index, pin };
        let result = work(&mut writer);
        let batch = &mut writer.state.batch;
        (result, batch.is_full().then(|| batch.take()))
    }

    /// Returns the garbage of the shard.
    pub(super) fn batch(&self) -> Batch {
        self.state.lock().batch.take()
    }

    /// Returns a mutable reference to the contents of the lock.
    pub(super) fn state(&mut self) -> &mut State {
        self.state.get_mut()
    }
}

/// A locked shard.
pub(super) struct Writer<'p, T> {
    pub(super) shard: &'p Shard,
    pub(super) nth: usize,
    pub(super) state: LockGuard<'p, State>,
    pub(super) index: &'p Index<T>,
    pub(super) pin: &'p Guard,
}

impl<'p, T> Writer<'p, T> {
    pub(super) fn directory(&self) -> Segments<'p> {
        self.index.directory(self.nth, self.pin)
    }

    /// Returns the segment of a mixed hash.
    pub(super) fn segment(&self, mixed: u64) -> &'p Segment {
        debug_assert_eq!(shard_of(mixed), self.nth);
        self.index.segment(mixed, self.pin)
    }

    /// Inserts an entry if the present one is as expected; takes it from `entry` then.
    ///
    /// Methods of keys run before anything changes: `is` compares the key of an entry with the new
    /// one, and `hasher` hashes entries of a segment that is split.
    pub(super) fn insert(
        &mut self,
        mixed: u64,
        entry: &mut Option<T>,
        expected: Expected,
        is: impl Fn(&T, &T) -> bool,
        hasher: impl Fn(&T) -> u64,
    ) -> Insertion<'p, T> {
        let new = entry.as_ref().expect(NOTHING);
        let segment = self.segment(mixed);
        let found = self.index.locate(segment, mixed, |own| is(new, own), self.pin);
        let there = found.map(|(_, entry)| entry);
        if !expected.is(there.map(|entry| entry.id)) {
            return Insertion::Unexpected(there);
        }
        if found.is_none() && !segment.has_room(mixed) {
            self.make_room(mixed, hasher);
        }
        let Some(id) = self.state.ids.allocate(&self.index.store) else { return Insertion::Full };
        let entry = entry.take().expect(NOTHING);
        // SAFETY: it has just been allocated.
        unsafe { self.index.store.write(id, entry) };
        if let Some((slot_id, old)) = found {
            slot_id.replace(id);
            self.state.batch.entry(old.id, size_of::<T>());
        } else {
            let segment = self.segment(mixed);
            let added = segment.insert(&Item::new(mixed, segment.depth(), id));
            self.add_to_bytes(added, 0);
            self.add_to_len(1);
        }
        // SAFETY: inserted under this pin just now.
        Insertion::Done { old: there, new: unsafe { self.index.entry(id, self.pin) } }
    }

    /// Removes the entry with this hash for which `is` returns true, if it is as expected. Shrinks
    /// the segment with `hasher` if its load is low and `may_shrink` is set.
    pub(super) fn remove(
        &mut self,
        mixed: u64,
        expected: Expected,
        is: impl Fn(&T) -> bool,
        may_shrink: bool,
        hasher: impl Fn(&T) -> u64,
    ) -> Option<Entry<'p, T>> {
        let segment = self.segment(mixed);
        let (slot_id, entry) = self.index.locate(segment, mixed, is, self.pin)?;
        if !expected.is(Some(entry.id)) {
            return None;
        }
        segment.remove(slot_id);
        self.add_to_len(-1);
        self.state.batch.entry(entry.id, size_of::<T>());
        if may_shrink && segment.count() <= Segment::LOW {
            // The entry is removed. If a hash panics, the segment keeps its size.
            forget_panic(catch_unwind(AssertUnwindSafe(|| self.shrink(mixed, hasher))));
        }
        Some(entry)
    }

    /// Removes all entries. Returns them, in a batch for each segment.
    pub(super) fn clear(&mut self) -> Vec<Batch> {
        if self.state.slots == 0 {
            return Vec::new();
        }
        let directory = self.directory();
        let whole = |(at, segment): (_, &Segment)| {
            let entries = segment.count() * size_of::<T>();
            Batch::whole(at, segment.allocation_size() + entries)
        };
        let segments = Index::<T>::segments(directory).map(whole).collect();
        let empty = self.index.empty_directory();
        // Relaxed: a statistic that publishes nothing.
        self.shard.bytes.store(EMPTY_DIRECTORY_BYTES, Ordering::Relaxed);
        self.index.root(self.nth).publish(empty);
        self.state.batch.directory(directory.ptr());
        (self.state.slots, self.state.reserved) = (0, 0);
        // Relaxed: a statistic that publishes nothing.
        self.shard.len.store(0, Ordering::Relaxed);
        segments
    }

    /// Adjusts the count of bytes.
    pub(super) fn add_to_bytes(&self, added: usize, removed: usize) {
        let bytes = self.shard.allocation_size() + added - removed;
        // Relaxed: a statistic that publishes nothing.
        self.shard.bytes.store(bytes, Ordering::Relaxed);
    }

    fn add_to_len(&self, difference: isize) {
        let len = self.shard.len().wrapping_add_signed(difference);
        // Relaxed: a statistic that publishes nothing.
        self.shard.len.store(len, Ordering::Relaxed);
    }
}
