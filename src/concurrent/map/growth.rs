//! Growth and shrinking of a shard: one segment at a time, concurrent with readers.
//!
//! ```text
//!     directory   [ A  A  B  C ]   ──→   [ A0 A1 B  C ]      A is split: two stores
//! ```
//!
//! A segment of 192 slots whose load is above its own limit, between 70 and 84 percent, is split in
//! two by the next bit of the mixed hashes. No key is hashed, except at every twelfth level of a
//! directory: see `segment.rs`. A segment that is less than a third full is merged with its
//! sibling, if both fill half of one.
//!
//! - **G1** The entries of the upper half are stored before those of the lower one. So a traversal
//!   that loads the first entry of a segment loads, for the entries after it, those of a directory
//!   in which that segment was, or later ones.
//! - **G2** A merge publishes a copy of the directory: in a directory, a segment is only ever
//!   replaced by two for its own entries. So a traversal visits no entry twice.
//!
//! Readers access the old segment or the new ones, and find their keys in both. Keys that have to
//! be hashed are hashed before anything is changed.
#![allow(unsafe_code)]

use super::index::{Index, Segments};
use super::segment::{Segment, SegmentBox};
use super::shard::Writer;
use crate::concurrent::directory::DirectoryBox;
use crate::concurrent::policy::{DEEPEST, bit_below, limit, may_split, mix, seed};

/// The limit of segments for a reserved capacity.
const RESERVED: usize = Segment::SLOTS * 5 / 6;

impl<'p, T> Writer<'p, T> {
    fn allocate(&self, mixed: u64, depth: u32) -> SegmentBox {
        SegmentBox::new(depth, limit(Segment::SLOTS, seed(mixed, depth, self.nth)))
    }

    /// Returns a function that hashes the entry with an id.
    fn rehash(&self, hasher: impl Fn(&T) -> u64) -> impl Fn(u32) -> u64 {
        move |id| {
            // SAFETY: the id is in a line of this shard, under the pin of the writer.
            let entry = unsafe { self.index.entry(id, self.pin) };
            mix(hasher(entry.get()))
        }
    }

    /// Makes room in the segment of a mixed hash, if a split does.
    #[cold]
    #[inline(never)]
    pub(super) fn make_room(&mut self, mixed: u64, hasher: impl Fn(&T) -> u64) {
        let segment = self.segment(mixed);
        if segment.is_nothing() {
            let first = self.allocate(mixed, 0);
            self.set(mixed, first);
        } else if may_split(segment.depth(), self.shard.len(), Segment::SLOTS) {
            self.split(segment, mixed, hasher);
        }
    }

    /// Publishes a segment for the entries of a mixed hash.
    fn set(&mut self, mixed: u64, segment: SegmentBox) {
        self.state.slots += Segment::SLOTS;
        self.add_to_bytes(segment.segment().allocation_size(), 0);
        let depth = segment.segment().depth();
        self.directory().set(mixed, depth, segment.into_ptr());
    }

    /// Retires a segment, which is not in the directory any more.
    fn retire(&mut self, segment: *mut Segment, bytes: usize) {
        self.state.slots -= Segment::SLOTS;
        self.add_to_bytes(0, bytes);
        self.state.batch.segment(segment, bytes);
    }

    /// Publishes a directory, and retires the former one.
    fn publish(&mut self, directory: DirectoryBox<Segment>) {
        let old = self.directory().ptr();
        self.add_to_bytes(directory.allocation_size(), old.allocation_size());
        self.index.root(self.nth).publish(directory);
        self.state.batch.directory(old);
    }

    fn split(&mut self, segment: &'p Segment, mixed: u64, hasher: impl Fn(&T) -> u64) {
        let (directory, depth) = (self.directory(), segment.depth());
        // Loaded before it is replaced in this directory.
        let old = directory.segment(mixed);
        let bit = bit_below(depth);
        let (low, high) = (mixed & !bit, mixed | bit);
        let new = [low, high].map(|mixed| self.allocate(mixed, depth + 1));
        for item in segment.items(depth + 1, self.rehash(hasher)) {
            new[usize::from(item.is_high)].segment().insert(&item);
        }
        if depth == directory.depth() {
            self.publish(directory.resized(depth + 1).unwrap_or_else(|error| error.raise()));
        }
        let [for_low, for_high] = new;
        // G1.
        self.set(high, for_high);
        self.set(low, for_low);
        self.retire(old, segment.allocation_size());
    }

    /// Merges the segment of a mixed hash, whose load is low, with its sibling, if the result is
    /// not too large, and the sibling is not split. Or removes its further links.
    pub(super) fn shrink(&mut self, mixed: u64, hasher: impl Fn(&T) -> u64) {
        let (directory, segment) = (self.directory(), self.segment(mixed));
        if segment.next().is_some() {
            self.unlink(segment, mixed, hasher);
            return;
        }
        let Some(depth) = segment.depth().checked_sub(1) else { return };
        let other = mixed ^ bit_below(depth);
        let sibling = self.segment(other);
        let is_large = segment.count() + sibling.count() > Segment::MERGED;
        let is_split = sibling.depth() != segment.depth();
        if is_large || is_split || self.state.slots - Segment::SLOTS < self.state.reserved {
            return;
        }
        let merged = self.allocate(mixed, depth);
        let rehash = self.rehash(hasher);
        for item in segment.items(depth, &rehash).chain(sibling.items(depth, &rehash)) {
            merged.segment().insert(&item);
        }
        drop(rehash);
        // G2.
        let new = merged_directory(directory, mixed, &merged, Index::<T>::at);
        self.state.slots += Segment::SLOTS;
        self.add_to_bytes(merged.segment().allocation_size(), 0);
        merged.into_ptr();
        self.publish(new);
        self.retire(directory.segment(mixed), segment.allocation_size());
        self.retire(directory.segment(other), sibling.allocation_size());
    }

    /// Replaces a segment by a copy without further links.
    fn unlink(&mut self, segment: &'p Segment, mixed: u64, hasher: impl Fn(&T) -> u64) {
        let old = self.directory().segment(mixed);
        let copy = self.allocate(mixed, segment.depth());
        for item in segment.items(segment.depth(), self.rehash(hasher)) {
            copy.segment().insert(&item);
        }
        self.set(mixed, copy);
        self.retire(old, segment.allocation_size());
    }

    /// Reserves capacity for `entries` entries in an empty shard.
    pub(super) fn reserve(&mut self, entries: usize) {
        let mut depth = 0;
        // More than the average, as random hashes spread unevenly.
        let required = |depth| {
            let each = entries.div_ceil(1_usize << depth);
            each.saturating_add(1 + 4 * each.isqrt())
        };
        while required(depth) > RESERVED && depth < DEEPEST {
            depth += 1;
        }
        let directory = self.directory().resized(depth.max(1));
        self.publish(directory.unwrap_or_else(|error| error.raise()));
        for prefix in 0..1_u64 << depth {
            let mixed = prefix.checked_shl(64 - depth).unwrap_or(0);
            self.set(mixed, SegmentBox::new(depth, RESERVED));
        }
        self.state.reserved = self.state.slots;
    }
}

/// Returns a copy of a directory with a merged segment, of half its length if no segment has a
/// single entry then.
fn merged_directory<'p>(
    old: Segments<'p>,
    mixed: u64,
    merged: &SegmentBox,
    segment: impl Fn(Segments<'p>, usize) -> &'p Segment,
) -> DirectoryBox<Segment> {
    let span = old.span(mixed, merged.segment().depth());
    let is_deepest = |index| !span.contains(&index) && segment(old, index).depth() == old.depth();
    let may_halve = old.depth() > 1 && !(0..old.len()).any(is_deepest);
    let depth = old.depth() - u32::from(may_halve);
    let at = |index| {
        let source = old.source(index, depth);
        if span.contains(&source) { merged.ptr() } else { old.at(source) }
    };
    DirectoryBox::new(depth, at).unwrap_or_else(|error| error.raise())
}
