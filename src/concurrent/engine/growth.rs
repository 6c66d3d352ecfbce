//! Growth and shrinking of a shard: one segment at a time, concurrent with readers.
//!
//! ```text
//!     directory   [ A  A  B  C ]   ──→   [ A0 A1 B  C ]      A is split: two stores
//!                                  ──→   [ A' A' B  C ]      A is copied, without dead slots
//! ```
//!
//! Readers access the old segment or the new one, and find their keys in both: see `segment.rs`.
//! All memory is allocated and all keys are hashed before anything changes. While it is held, there
//! has to be memory for the collector, too: see [`test_memory`]. Replaced memory is [`Retired`].
#![allow(unsafe_code)]

use core::marker::PhantomData;

use crossbeam_epoch::Guard;

use super::directory::{Directory, DirectoryBox, DirectoryPtr};
use super::plan::{MOST, Plan, size_for};
use super::segment::{Segment, SegmentBox, SegmentPtr, Slot};
use super::shard::Writer;
use super::storage::{Bits, Storage};
use crate::concurrent::collector::{Garbage, OVERHEAD, test_memory};
use crate::concurrent::error::Refused;
use crate::concurrent::policy::{DEEPEST, SHARD_BITS, bit_below, roots_of, seed};
use crate::table::error::TryReserveError;

/// The hashes of the entries of a segment, in the order of its slots.
struct Hashes {
    hashes: [u64; MOST],
    len: usize,
}

impl Hashes {
    fn of<C: Storage>(
        segment: Segment<'_, C>,
        bits: Bits,
        hash_of: impl Fn(Slot<'_, C>, Bits) -> u64,
    ) -> Self {
        let mut all = Self { hashes: [0; MOST], len: 0 };
        for slot in segment.entries() {
            all.hashes[all.len] = hash_of(slot, bits);
            all.len += 1;
        }
        all
    }

    fn iter(&self) -> impl Iterator<Item = u64> {
        self.hashes[..self.len].iter().copied()
    }

    /// Copies the entries of a segment whose mixed hashes have all of these bits, or none of them.
    fn copy<C: Storage>(&self, from: Segment<'_, C>, to: &SegmentBox<C>, bits: u64, set: bool) {
        for (hash, slot) in self.iter().zip(from.entries()) {
            if (C::mix(hash) & bits != 0) == set {
                to.segment().copy(hash, slot);
            }
        }
    }
}

impl<C: Storage> Writer<'_, C> {
    /// Allocates a segment that replaces another one.
    fn allocate(
        &self,
        size: u32,
        mixed: u64,
        depth: u32,
    ) -> Result<SegmentBox<C>, TryReserveError> {
        SegmentBox::new(size, depth, seed(mixed, depth))
    }

    /// Publishes a segment for the entries of a mixed hash.
    fn set(&self, mixed: u64, depth: u32, segment: SegmentBox<C>) {
        let segment = segment.into_ptr();
        self.shard().add_to_bytes(segment.allocation_size::<C>(), 0);
        self.directory().set(mixed, depth, segment);
    }

    /// Publishes the directory of a shard whose segments have at least `depth` bits: this one, or
    /// one into which it is split.
    fn publish(&self, nth: usize, depth: u32, directory: DirectoryBox) {
        let directory = directory.into_ptr();
        self.engine.shards[nth].add_to_bytes(directory.allocation_size(), 0);
        roots_of(nth as u64, depth).for_each(|root| self.engine.roots[root].publish(directory));
    }

    /// Replaces the directory. Returns the former one.
    fn replace(&self, depth: u32, directory: DirectoryBox) -> DirectoryPtr {
        let old = self.directory().ptr();
        self.publish(self.nth, depth, directory);
        self.shard().add_to_bytes(0, old.allocation_size());
        old
    }

    /// Halves the directory as often as possible.
    pub(super) fn fit_directory(&self) -> Option<Retired<C>> {
        let directory: Directory<'_, C> = self.directory();
        let deepest = directory.segments().map(Segment::depth).max().unwrap_or(0);
        let depth = deepest.saturating_sub(SHARD_BITS).max(1);
        if depth == directory.depth() {
            return None;
        }
        let fitted = directory.resized(depth).ok()?;
        test_memory().ok()?;
        Some(Retired::NOTHING.with(self.replace(SHARD_BITS, fitted)))
    }

    /// Makes the segment of a mixed hash large enough for its share of `entries` entries, by one
    /// step of growth. Returns the replaced memory, or `None` if the segment is large enough.
    pub(super) fn reserve(
        &self,
        mixed: u64,
        entries: usize,
        hash_of: impl Fn(Slot<'_, C>, Bits) -> u64,
    ) -> Result<Option<Retired<C>>, TryReserveError> {
        let segment = self.segment(mixed);
        let plan = segment.load().reserved(entries.div_ceil(1 << segment.depth()));
        plan.filter(|plan| *plan != Plan::Split || segment.depth() < DEEPEST)
            .map(|plan| match plan {
                Plan::Copy(size) => self.copy(segment, mixed, size, hash_of),
                Plan::Split => self.split(segment, mixed, hash_of),
            })
            .transpose()
    }

    /// Makes room in the segment of a mixed hash, if it is still `full`.
    pub(super) fn grow(
        &self,
        mixed: u64,
        full: SegmentPtr,
        hash_of: impl Fn(Slot<'_, C>, Bits) -> u64,
    ) -> Result<Retired<C>, Refused> {
        let segment = self.segment(mixed);
        if segment.ptr() != full {
            return Ok(Retired::NOTHING);
        }
        match segment.load().growth(self.may_split(segment)) {
            None => Err(Refused::Collisions),
            Some(Plan::Copy(size)) => Ok(self.copy(segment, mixed, size, hash_of)?),
            Some(Plan::Split) => Ok(self.split(segment, mixed, hash_of)?),
        }
    }

    /// Replaces a segment by a copy.
    fn copy(
        &self,
        segment: Segment<'_, C>,
        mixed: u64,
        size: u32,
        hash_of: impl Fn(Slot<'_, C>, Bits) -> u64,
    ) -> Result<Retired<C>, TryReserveError> {
        let (depth, old) = (segment.depth(), segment.ptr());
        let hashes = Hashes::of(segment, Bits::Known, &hash_of);
        let new = self.allocate(size, mixed, depth)?;
        test_memory()?;
        hashes.copy(segment, &new, 0, false);
        self.set(mixed, depth, new);
        self.shard().add_to_bytes(0, old.allocation_size::<C>());
        Ok(Retired::of(old, None))
    }

    /// Splits a segment in two, and its shard, if that has several roots.
    pub(super) fn split(
        &self,
        segment: Segment<'_, C>,
        mixed: u64,
        hash_of: impl Fn(Slot<'_, C>, Bits) -> u64,
    ) -> Result<Retired<C>, TryReserveError> {
        let (depth, old) = (segment.depth(), segment.ptr());
        let (bit, is_shard) = (bit_below(depth), depth < SHARD_BITS);
        let bits = if is_shard { Bits::All } else { Bits::Known };
        let hashes = Hashes::of(segment, bits, &hash_of);
        let high = hashes.iter().filter(|&hash| C::mix(hash) & bit != 0).count();
        let size = |entries| size_for(C::SIZES, entries, C::SLOTS);
        let low = self.allocate(size(hashes.len - high), mixed & !bit, depth + 1)?;
        let high = self.allocate(size(high), mixed | bit, depth + 1)?;
        let directory = self.directory();
        let is_deepest = depth == SHARD_BITS + directory.depth();
        let own = match depth {
            _ if is_shard => Some(DirectoryBox::of(&low)?),
            _ if is_deepest => Some(directory.resized(directory.depth() + 1)?),
            _ => None,
        };
        let other = is_shard.then(|| DirectoryBox::of(&high)).transpose()?;
        test_memory()?;
        hashes.copy(segment, &low, bit, false);
        hashes.copy(segment, &high, bit, true);
        let mut retired = Retired::of(old, None);
        if let Some(own) = own {
            retired = retired.with(self.replace(depth + 1, own));
        }
        self.set(mixed & !bit, depth + 1, low);
        self.shard().add_to_bytes(0, old.allocation_size::<C>());
        match other {
            None => self.set(mixed | bit, depth + 1, high),
            Some(other) => {
                let nth = self.nth | bit as usize;
                let bytes = high.into_ptr().allocation_size::<C>();
                self.engine.shards[nth].add_to_bytes(bytes, 0);
                self.publish(nth, depth + 1, other);
                self.open(nth, depth + 1);
            }
        }
        Ok(retired)
    }

    /// Makes the segment of a mixed hash smaller, or merges it with its sibling. Returns the
    /// replaced memory: none if there is nothing to do, or if an allocation fails. With `smallest`,
    /// the segment is as small as possible afterwards.
    pub(super) fn shrink(
        &self,
        mixed: u64,
        smallest: bool,
        hash_of: impl Fn(Slot<'_, C>, Bits) -> u64,
    ) -> Option<Retired<C>> {
        let segment = self.segment(mixed);
        let merged = self.merge(segment, mixed, &hash_of);
        if merged.is_some() {
            return merged;
        }
        let size = segment.load().smaller(smallest)?;
        let bytes = SegmentPtr::bytes::<C>;
        let less = bytes(segment.load().size as usize) - bytes(size as usize);
        if !self.may_shrink_by(less) {
            return None;
        }
        self.copy(segment, mixed, size, hash_of).ok()
    }

    /// Merges a segment with its sibling, if that is not split, and both have few entries.
    fn merge(
        &self,
        segment: Segment<'_, C>,
        mixed: u64,
        hash_of: impl Fn(Slot<'_, C>, Bits) -> u64,
    ) -> Option<Retired<C>> {
        // Shards are not merged.
        let depth = segment.depth().checked_sub(1).filter(|&depth| depth >= SHARD_BITS)?;
        let sibling = self.segment(mixed ^ bit_below(depth));
        if sibling.depth() != depth + 1 {
            return None;
        }
        let size = segment.load().merged(sibling.load())?;
        let old = [segment.ptr(), sibling.ptr()];
        let before: usize = old.map(SegmentPtr::allocation_size::<C>).iter().sum();
        if !self.may_shrink_by(before.saturating_sub(SegmentPtr::bytes::<C>(size as usize))) {
            return None;
        }
        let [hashes, others] = [segment, sibling].map(|own| Hashes::of(own, Bits::Known, &hash_of));
        let new = self.allocate(size, mixed, depth).ok()?;
        test_memory().ok()?;
        hashes.copy(segment, &new, 0, false);
        others.copy(sibling, &new, 0, false);
        self.set(mixed, depth, new);
        self.shard().add_to_bytes(0, before);
        Some(Retired::of(old[0], Some(old[1])))
    }
}

/// The segments and the directory that a step of growth has replaced.
#[must_use]
pub(super) struct Retired<C> {
    segments: [Option<SegmentPtr>; 2],
    directory: Option<DirectoryPtr>,
    types: PhantomData<C>,
}

impl<C: Storage> Retired<C> {
    pub(super) const NOTHING: Self =
        Self { segments: [None; 2], directory: None, types: PhantomData };

    pub(super) const fn of(first: SegmentPtr, second: Option<SegmentPtr>) -> Self {
        Self { segments: [Some(first), second], ..Self::NOTHING }
    }

    /// Adds a directory.
    pub(super) const fn with(mut self, directory: DirectoryPtr) -> Self {
        self.directory = Some(directory);
        self
    }

    /// Defers everything to the collector. Without a lock: it runs destructors of others.
    ///
    /// # Safety
    ///
    /// It was replaced under this pin, or under an earlier one.
    pub(super) unsafe fn defer(self, garbage: &Garbage, pin: &Guard) {
        for segment in self.segments.into_iter().flatten() {
            let bytes = segment.allocation_size::<C>() + OVERHEAD;
            // SAFETY: the collector calls this when no pin exists any more that may have loaded the
            // pointer; it is retired once.
            let free = move || unsafe { segment.free::<C>() };
            // SAFETY: the memory is of no thread, and holds no value that is dropped.
            unsafe { garbage.defer(bytes, pin, free) };
        }
        if let Some(directory) = self.directory {
            let bytes = directory.allocation_size() + OVERHEAD;
            // SAFETY: as for a segment.
            let free = move || unsafe { directory.free() };
            // SAFETY: as for a segment.
            unsafe { garbage.defer(bytes, pin, free) };
        }
    }
}
