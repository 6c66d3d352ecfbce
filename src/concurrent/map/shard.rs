//! A shard: what belongs together under one lock.
#![allow(unsafe_code)]

use alloc::vec::Vec;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use crossbeam_epoch::Guard;

use super::directory::{Directory, Root, path};
use super::garbage::{Batch, forget_panic};
use super::index::{Entry, Index};
use super::segment::{Place, Size};
use super::store::Numbers;
use crate::concurrent::lock::{Held, Lock};
use crate::concurrent::sync::{AtomicUsize, Ordering};

/// What writers have of a shard. Apart from the index, so that readers do not see it change; and two lines,
/// as machines fetch them in pairs.
#[repr(align(128))]
pub(super) struct Shard<T> {
    state: Lock<State<T>>,
    /// Entries. Written under the lock.
    len: AtomicUsize,
    /// Bytes allocated. Written under the lock.
    bytes: AtomicUsize,
}

pub(super) struct State<T> {
    pub(super) batch: Batch,
    pub(super) numbers: Numbers<T>,
    /// Slots of all segments.
    pub(super) slots: usize,
    /// It does not get smaller than that.
    pub(super) kept: usize,
    /// Bytes of segments and of the directory.
    pub(super) index_bytes: usize,
}

/// What would be a mistake of this crate.
const NOTHING: &str = "there is an entry to put in";

/// What has to be there for an entry to be put in, or taken out.
#[derive(Clone, Copy)]
pub(super) enum Expected {
    Anything,
    /// The key must not be there.
    Nothing,
    /// The key must have the entry of this number, which has been seen under the pin of the writer.
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

/// What has become of an entry that was to be put in.
pub(super) enum Put<'p, T> {
    /// It is in the map, in the place of another one perhaps.
    Done { old: Option<Entry<'p, T>>, new: Entry<'p, T> },
    /// It is not: this is there, and something else was expected.
    Not(Option<Entry<'p, T>>),
}

impl<T> Shard<T> {
    pub(super) fn new() -> Self {
        let (batch, numbers) = (Batch::new(), Numbers::new());
        let (slots, index_bytes) = (Size::ONE.slots(), Root::EMPTY_BYTES);
        let bytes = AtomicUsize::new(index_bytes + numbers.allocation_size());
        let state = State { batch, numbers, slots, kept: 0, index_bytes };
        Self { state: Lock::new(state), len: AtomicUsize::new(0), bytes }
    }

    /// Entries.
    pub(super) fn len(&self) -> usize {
        // Relaxed: a number that publishes nothing.
        self.len.load(Ordering::Relaxed)
    }

    /// Bytes allocated.
    pub(super) fn allocation_size(&self) -> usize {
        // Relaxed: a number that publishes nothing.
        self.bytes.load(Ordering::Relaxed)
    }

    /// Works on the shard. Returns what has been taken out, if it is time to hand it over: without the lock,
    /// as destructors may do as they please.
    pub(super) fn write<'p, R>(
        &'p self,
        index: &'p Index<T>,
        pin: &'p Guard,
        work: impl FnOnce(&mut Writer<'p, T>) -> R,
    ) -> (R, Option<Batch>) {
        let mut writer = Writer { shard: self, state: self.state.lock(), index, pin };
        let result = work(&mut writer);
        writer.count_bytes();
        let batch = &mut writer.state.batch;
        (result, batch.is_full().then(|| batch.take()))
    }

    /// All that has been taken out.
    pub(super) fn batch(&self) -> Batch {
        self.state.lock().batch.take()
    }

    /// What is under the lock, for who has the shard alone.
    pub(super) fn state(&mut self) -> &mut State<T> {
        self.state.get_mut()
    }
}

/// A shard, locked.
pub(super) struct Writer<'p, T> {
    pub(super) shard: &'p Shard<T>,
    pub(super) state: Held<'p, State<T>>,
    pub(super) index: &'p Index<T>,
    pub(super) pin: &'p Guard,
}

impl<'p, T> Writer<'p, T> {
    pub(super) fn directory(&self) -> Directory<'p> {
        self.index.root.directory(self.pin)
    }

    /// Puts in an entry if what is there is as expected; takes it from `entry` then.
    ///
    /// Code of the key's runs before anything changes: `is` says whether an entry has the key of the new
    /// one, and `hasher` is asked if a segment grows.
    pub(super) fn put(
        &mut self,
        hash: u64,
        entry: &mut Option<T>,
        expected: Expected,
        is: impl Fn(&T, &T) -> bool,
        hasher: impl Fn(&T) -> u64,
    ) -> Put<'p, T> {
        let path = path(hash);
        let new = entry.as_ref().expect(NOTHING);
        let found = self.index.locate(hash, path, |own| is(new, own), self.pin);
        let there = found.map(|(.., entry)| entry);
        if !expected.is(there.map(|entry| entry.number)) {
            return Put::Not(there);
        }
        if found.is_none() {
            self.make_room(path, hasher);
        }
        let number = self.state.numbers.take(&self.index.store);
        let entry = entry.take().expect(NOTHING);
        // SAFETY: it has just been taken.
        unsafe { self.state.numbers.put(&self.index.store, number, entry) };
        if let Some((segment, spot, old)) = found {
            segment.replace(spot, number);
            self.state.batch.entry(old.number, size_of::<T>());
        } else {
            self.index.root.segment(path, self.pin).put(hash, path, number);
            self.add_to_len(1);
        }
        // SAFETY: put in under this pin just now.
        Put::Done { old: there, new: unsafe { self.index.entry(number, self.pin) } }
    }

    /// Takes out the entry of this hash for which `is` says so, if it is as expected. Makes the segment
    /// smaller if it may, and should be: that asks `hasher`.
    pub(super) fn remove(
        &mut self,
        hash: u64,
        expected: Expected,
        is: impl Fn(&T) -> bool,
        may_shrink: bool,
        hasher: impl Fn(&T) -> u64,
    ) -> Option<Entry<'p, T>> {
        let path = path(hash);
        let (segment, spot, entry) = self.index.locate(hash, path, is, self.pin)?;
        if !expected.is(Some(entry.number)) {
            return None;
        }
        segment.take(spot);
        self.add_to_len(-1);
        self.state.batch.entry(entry.number, size_of::<T>());
        if may_shrink {
            // The entry has gone. If a hash panics, the segment just stays as large as it is.
            forget_panic(catch_unwind(AssertUnwindSafe(|| self.tidy(path, hasher))));
        }
        Some(entry)
    }

    /// Takes out everything. Returns it, in a batch for each segment.
    pub(super) fn clear(&mut self) -> Vec<Batch> {
        if self.shard.len() == 0 {
            return Vec::new();
        }
        let directory = self.directory();
        let whole = |first| {
            let entries = directory.at(first).count() * size_of::<T>();
            Batch::whole(directory.places()[first], entries)
        };
        let segments = directory.firsts().map(whole).collect();
        self.publish(&[Place::new(Size::ONE); 2]);
        self.state.kept = 0;
        // Relaxed: a number that publishes nothing.
        self.shard.len.store(0, Ordering::Relaxed);
        segments
    }

    fn count_bytes(&self) {
        let bytes = self.state.index_bytes + self.state.numbers.allocation_size();
        // Relaxed: a number that publishes nothing.
        self.shard.bytes.store(bytes, Ordering::Relaxed);
    }

    fn add_to_len(&self, difference: isize) {
        let len = self.shard.len().wrapping_add_signed(difference);
        // Relaxed: a number that publishes nothing.
        self.shard.len.store(len, Ordering::Relaxed);
    }
}
