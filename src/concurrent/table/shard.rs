//! Shards: the writers' part of a table, each with a lock.
#![allow(unsafe_code)]

use core::hash::{BuildHasher, Hash};
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use bytemuck::NoUninit;

use super::ConcurrentTable;
use super::directory::Directory;
use super::group::Shape;
use super::plain::is_same;
use super::retired::Retired;
use super::segment::{Segment, SegmentPtr, SlotId};
use crate::concurrent::garbage::forget_panic;
use crate::concurrent::lock::{Lock, LockGuard};
use crate::concurrent::policy::{may_split, mix, shard_of};
use crate::concurrent::sync::{AtomicUsize, Ordering};

/// The writers' part of a shard. Apart from the roots, so that readers do not share its cache
/// lines; aligned to two of them, as CPUs prefetch them in pairs.
#[repr(align(128))]
pub(super) struct Shard {
    lock: Lock<()>,
    /// Number of entries. Written under the lock.
    len: AtomicUsize,
    /// Allocated bytes. Written under the lock.
    bytes: AtomicUsize,
}

impl Shard {
    pub(super) fn new(bytes: usize) -> Self {
        Self { lock: Lock::new(()), len: AtomicUsize::new(0), bytes: AtomicUsize::new(bytes) }
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        // Relaxed: a statistic that publishes nothing.
        self.len.load(Ordering::Relaxed)
    }

    /// Returns the allocated bytes.
    pub(super) fn allocation_size(&self) -> usize {
        // Relaxed: a statistic that publishes nothing.
        self.bytes.load(Ordering::Relaxed)
    }
}

/// The precondition of a write.
#[derive(Clone, Copy)]
pub(super) enum Expected<V> {
    Anything,
    /// The key must be absent.
    Nothing,
    /// The key must be present.
    Something,
    /// The key must have this value.
    Value(V),
}

impl<V: NoUninit> Expected<V> {
    fn is(self, found: Option<&V>) -> bool {
        match (self, found) {
            (Self::Anything, _) | (Self::Nothing, None) | (Self::Something, Some(_)) => true,
            (Self::Value(expected), Some(found)) => is_same(&expected, found),
            _ => false,
        }
    }
}

/// The result of a write.
pub(super) enum Outcome<V> {
    /// It was made; the former value.
    Done(Option<V>),
    /// The precondition was false; the present value.
    Unexpected(Option<V>),
    /// There is no room in this segment: it has to grow first.
    Full(SegmentPtr),
}

/// A locked shard.
pub(super) struct Writer<'t, K, V, S> {
    pub(super) table: &'t ConcurrentTable<K, V, S>,
    pub(super) nth: usize,
    _lock: LockGuard<'t, ()>,
}

impl<'t, K, V, S> Writer<'t, K, V, S> {
    /// Locks a shard.
    pub(super) fn new(table: &'t ConcurrentTable<K, V, S>, nth: usize) -> Self {
        Self { table, nth, _lock: table.shards[nth].lock.lock() }
    }

    pub(super) fn shard(&self) -> &'t Shard {
        &self.table.shards[self.nth]
    }

    pub(super) fn directory(&self) -> Directory<'_, K, V> {
        // SAFETY: this thread has the lock.
        unsafe { self.table.roots[self.nth].directory() }
    }

    /// Returns the segment of a mixed hash.
    pub(super) fn segment(&self, mixed: u64) -> Segment<'_, K, V> {
        debug_assert_eq!(shard_of(mixed), self.nth);
        self.directory().segment(mixed)
    }

    pub(super) fn add_to_len(&self, difference: isize) {
        let shard = self.shard();
        // Relaxed: a statistic that publishes nothing.
        shard.len.store(shard.len().wrapping_add_signed(difference), Ordering::Relaxed);
    }

    /// Adjusts the count of bytes.
    pub(super) fn add_to_bytes(&self, added: usize, removed: usize) {
        let shard = self.shard();
        let bytes = shard.allocation_size() + added - removed;
        // Relaxed: a statistic that publishes nothing.
        shard.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Returns whether a segment of this shard may split.
    pub(super) fn may_split(&self, segment: Segment<'_, K, V>) -> bool {
        let slots = super::plan::SPLIT as usize * Shape::<K, V>::SLOTS;
        may_split(segment.depth(), self.shard().len(), slots)
    }

    /// Returns the distance at which an entry would be inserted, from `from` on.
    fn room(&self, segment: Segment<'_, K, V>, mixed: u64, from: usize) -> Option<usize> {
        let distance = segment.distance_to_free(mixed, from)?;
        let load = segment.load();
        let is_last = || load.growth(self.may_split(segment)).is_none();
        (load.has_room(distance) || is_last()).then_some(distance)
    }
}

impl<K: NoUninit, V: NoUninit, S> Writer<'_, K, V, S> {
    fn find(&self, hash: u64, key: &K) -> (Segment<'_, K, V>, Option<(SlotId, V)>) {
        let mixed = mix(hash);
        let segment = self.segment(mixed);
        let found = segment.locate(hash, mixed, key);
        (segment, found.map(|slot_id| (slot_id, segment.value(slot_id))))
    }

    /// Inserts an entry if the present one is as expected, or replaces its value.
    pub(super) fn insert(
        &self,
        hash: u64,
        key: &K,
        value: &V,
        expected: Expected<V>,
    ) -> Outcome<V> {
        let (segment, found) = self.find(hash, key);
        let old = found.map(|(_, old)| old);
        if !expected.is(old.as_ref()) {
            return Outcome::Unexpected(old);
        }
        let Some((slot_id, _)) = found else {
            let Some(distance) = self.room(segment, mix(hash), 0) else {
                return Outcome::Full(segment.ptr());
            };
            segment.insert(hash, mix(hash), distance, key, value);
            self.add_to_len(1);
            return Outcome::Done(None);
        };
        if Shape::<K, V>::VALUE <= 1 {
            segment.replace(slot_id, value);
        } else {
            let Some(distance) = self.room(segment, mix(hash), slot_id.distance) else {
                return Outcome::Full(segment.ptr());
            };
            segment.exchange(hash, slot_id, distance, key, value);
        }
        Outcome::Done(old)
    }

    /// Replaces a value of at most one word by the result of `change`, which is of this crate.
    /// Returns the former value.
    pub(super) fn change(&self, hash: u64, key: &K, change: impl FnOnce(V) -> V) -> Option<V> {
        let (segment, found) = self.find(hash, key);
        let (slot_id, old) = found?;
        segment.replace(slot_id, &change(old));
        Some(old)
    }
}

impl<K: NoUninit + Hash, V: NoUninit, S: BuildHasher> Writer<'_, K, V, S> {
    /// Removes a key if its value is as expected. Shrinks its segment if the load is low and
    /// `may_shrink` is set.
    pub(super) fn remove(
        &self,
        hash: u64,
        key: &K,
        expected: Expected<V>,
        may_shrink: bool,
    ) -> (Outcome<V>, Retired<K, V>) {
        let (segment, found) = self.find(hash, key);
        let old = found.map(|(_, old)| old);
        let Some((slot_id, _)) = found.filter(|_| expected.is(old.as_ref())) else {
            return (Outcome::Unexpected(old), Retired::NOTHING);
        };
        segment.remove(slot_id);
        self.add_to_len(-1);
        if !may_shrink || !segment.load().is_low() {
            return (Outcome::Done(old), Retired::NOTHING);
        }
        // The entry is removed. If a hash panics, the segment keeps its size.
        let shrunk = catch_unwind(AssertUnwindSafe(|| self.shrink(mix(hash), false)));
        let retired = shrunk.unwrap_or_else(|panic| {
            forget_panic(Err(panic));
            None
        });
        (Outcome::Done(old), retired.unwrap_or(Retired::NOTHING))
    }
}
