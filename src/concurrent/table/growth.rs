//! Growth and shrinking of a shard: one segment at a time, concurrent with readers.
//!
//! ```text
//!     directory   [ A  A  B  C ]   ──→   [ A0 A1 B  C ]      A is split: two stores
//!                                  ──→   [ A' A' B  C ]      A is copied, without dead slots
//! ```
//!
//! Readers access the old segment or the new one, and find their keys in both: see `segment.rs`.
//! All memory is allocated and all keys are hashed before anything changes.

use core::hash::{BuildHasher, Hash};

use bytemuck::NoUninit;

use super::directory::{Directory, DirectoryPtr};
use super::error::Refused;
use super::group::Shape;
use super::plan::{LARGEST, Plan, size_for};
use super::retired::Retired;
use super::segment::{Segment, SegmentBox, SegmentPtr};
use super::shard::Writer;
use crate::concurrent::policy::{bit_below, mix, seed};
use crate::table::error::TryReserveError;

/// The greatest number of entries of a segment: seven to a group.
const MOST: usize = 7 * LARGEST as usize;

/// The hashes of the entries of a segment, in the order of its slots.
struct Hashes {
    hashes: [u64; MOST],
    len: usize,
}

impl Hashes {
    fn of<K: NoUninit, V: NoUninit>(
        segment: Segment<'_, K, V>,
        hash_of: impl Fn(&K) -> u64,
    ) -> Self {
        let mut all = Self { hashes: [0; MOST], len: 0 };
        for (group, slot) in segment.entries() {
            all.hashes[all.len] = hash_of(&group.key(slot));
            all.len += 1;
        }
        all
    }

    fn iter(&self) -> impl Iterator<Item = u64> {
        self.hashes[..self.len].iter().copied()
    }

    /// Copies the entries of a segment whose mixed hashes have all of these bits, or none of them.
    fn copy<K, V>(&self, from: Segment<'_, K, V>, to: &SegmentBox<K, V>, bits: u64, set: bool) {
        for (hash, (group, slot)) in self.iter().zip(from.entries()) {
            if (mix(hash) & bits != 0) == set {
                to.segment().copy(hash, group, slot);
            }
        }
    }
}

impl<K, V, S> Writer<'_, K, V, S> {
    fn allocate(
        &self,
        size: u32,
        mixed: u64,
        depth: u32,
    ) -> Result<SegmentBox<K, V>, TryReserveError> {
        SegmentBox::new(size, depth, seed(mixed, depth, self.nth))
    }

    /// Publishes a segment for the entries of a mixed hash.
    fn set(&self, mixed: u64, depth: u32, segment: SegmentBox<K, V>) {
        let segment = segment.into_ptr();
        self.add_to_bytes(segment.allocation_size::<K, V>(), 0);
        self.directory().set(mixed, depth, segment);
    }

    /// Publishes a directory of this depth. Returns the former one.
    fn resize(&self, depth: u32) -> Result<DirectoryPtr, TryReserveError> {
        let directory = self.directory();
        self.table.roots[self.nth].resize(directory, depth)?;
        let (new, old) = (self.directory().ptr(), directory.ptr());
        self.add_to_bytes(new.allocation_size(), old.allocation_size());
        Ok(old)
    }

    /// Halves the directory as often as possible.
    pub(super) fn fit_directory(&self) -> Option<Retired<K, V>> {
        let directory: Directory<'_, K, V> = self.directory();
        let deepest = directory.segments().map(Segment::depth).max().unwrap_or(0).max(1);
        if deepest == directory.depth() {
            return None;
        }
        let directory = self.resize(deepest).ok()?;
        Some(Retired::NOTHING.with(directory))
    }
}

impl<K: NoUninit + Hash, V: NoUninit, S: BuildHasher> Writer<'_, K, V, S> {
    fn hashes(&self, segment: Segment<'_, K, V>) -> Hashes {
        Hashes::of(segment, |key| self.table.hasher.hash_one(key))
    }

    /// Makes room in the segment of a mixed hash, if it is still `full`.
    pub(super) fn grow(&self, mixed: u64, full: SegmentPtr) -> Result<Retired<K, V>, Refused> {
        let segment = self.segment(mixed);
        if segment.ptr() != full {
            return Ok(Retired::NOTHING);
        }
        match segment.load().growth(self.may_split(segment)) {
            None => Err(Refused::Collisions),
            Some(Plan::Copy(size)) => Ok(self.copy(segment, mixed, size)?),
            Some(Plan::Split) => Ok(self.split(segment, mixed)?),
        }
    }

    /// Replaces a segment by a copy.
    fn copy(
        &self,
        segment: Segment<'_, K, V>,
        mixed: u64,
        size: u32,
    ) -> Result<Retired<K, V>, TryReserveError> {
        let (depth, old) = (segment.depth(), segment.ptr());
        let hashes = self.hashes(segment);
        let new = self.allocate(size, mixed, depth)?;
        hashes.copy(segment, &new, 0, false);
        self.set(mixed, depth, new);
        self.add_to_bytes(0, old.allocation_size::<K, V>());
        Ok(Retired::of(old, None))
    }

    /// Splits a segment in two.
    fn split(
        &self,
        segment: Segment<'_, K, V>,
        mixed: u64,
    ) -> Result<Retired<K, V>, TryReserveError> {
        let (depth, old) = (segment.depth(), segment.ptr());
        let hashes = self.hashes(segment);
        let bit = bit_below(depth);
        let high = hashes.iter().filter(|&hash| mix(hash) & bit != 0).count();
        let size = |entries| size_for(entries, Shape::<K, V>::SLOTS);
        let low = self.allocate(size(hashes.len - high), mixed & !bit, depth + 1)?;
        let high = self.allocate(size(high), mixed | bit, depth + 1)?;
        hashes.copy(segment, &low, bit, false);
        hashes.copy(segment, &high, bit, true);
        let mut retired = Retired::of(old, None);
        if depth == self.directory().depth() {
            retired = retired.with(self.resize(depth + 1)?);
        }
        self.set(mixed & !bit, depth + 1, low);
        self.set(mixed | bit, depth + 1, high);
        self.add_to_bytes(0, old.allocation_size::<K, V>());
        Ok(retired)
    }

    /// Makes the segment of a mixed hash smaller, or merges it with its sibling. Returns what is
    /// replaced; nothing if there is nothing to do, or no memory. With `smallest`, the segment is
    /// as small as possible afterwards.
    pub(super) fn shrink(&self, mixed: u64, smallest: bool) -> Option<Retired<K, V>> {
        let segment = self.segment(mixed);
        let merged = self.merge(segment, mixed);
        if merged.is_some() {
            return merged;
        }
        let size = segment.load().smaller(smallest)?;
        self.copy(segment, mixed, size).ok()
    }

    /// Merges a segment with its sibling, if that is not split, and both have few entries.
    fn merge(&self, segment: Segment<'_, K, V>, mixed: u64) -> Option<Retired<K, V>> {
        let depth = segment.depth().checked_sub(1)?;
        let sibling = self.segment(mixed ^ bit_below(depth));
        if sibling.depth() != depth + 1 {
            return None;
        }
        let size = segment.load().merged(sibling.load())?;
        let (hashes, others) = (self.hashes(segment), self.hashes(sibling));
        let new = self.allocate(size, mixed, depth).ok()?;
        hashes.copy(segment, &new, 0, false);
        others.copy(sibling, &new, 0, false);
        let old = [segment.ptr(), sibling.ptr()];
        self.set(mixed, depth, new);
        let bytes = old.map(SegmentPtr::allocation_size::<K, V>);
        self.add_to_bytes(0, bytes[0] + bytes[1]);
        Some(Retired::of(old[0], Some(old[1])))
    }
}
