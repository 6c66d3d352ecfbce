//! Growth and shrinking of a shard: one segment at a time, concurrent with readers.
//!
//! A segment that is three quarters full gets 1.33 or 1.5 times as many buckets, and is split in
//! two when it is large enough: at most one segment per insertion, of 576 or 864 entries. A segment
//! that is less than a third full shrinks, or is merged with its sibling.
//!
//! ```text
//!     buckets     128        192         2 × 128
//!     load        ·5 → ·75   ·5 → ·75    ·56 → ·75
//! ```
//!
//! Readers access the old segment or the new one, and find their keys in both: see `segment.rs`.
//! The keys are hashed before anything is changed.
#![allow(unsafe_code)]

use alloc::vec::Vec;

use super::directory::{Directory, Span};
use super::segment::{Segment, SegmentPtr, Size};
use super::shard::Writer;
use crate::concurrent::policy::{DEEPEST, is_above, may_split, mix};
use crate::concurrent::sync::IS_CHECKED;

/// The size of a segment after a split: 4 KiB, some 430 entries. Larger ones take longer to grow,
/// smaller ones need a larger directory.
const SPLIT: Size = Size::power(if IS_CHECKED { 0 } else { 6 });

/// The load above which a segment grows, in 64ths of its slots.
const GROW_ABOVE: usize = 48;

/// The load below which a segment shrinks, in 64ths.
const SHRINK_BELOW: usize = 20;

/// The maximum load of a merged segment, in 64ths.
const MERGE_BELOW: usize = 32;

/// A greater distance of an entry from its home makes its segment grow, if that is half full.
const REACH: usize = 8;

/// The prefetch distance of a rehash, in entries: about as many misses as a CPU overlaps.
const AHEAD: usize = 16;

/// The hash of an entry and its id.
type Hashed = (u64, u32);

/// Allocates a segment with these entries, of this size or as much larger as necessary.
fn segment_of(mut size: Size, entries: &[Hashed]) -> SegmentPtr {
    while is_above(entries.len(), size.slots(), GROW_ABOVE) {
        let Some(larger) = size.larger() else { break };
        size = larger;
    }
    SegmentPtr::filled(size, entries.iter().map(|&(hash, id)| (hash, mix(hash), id)))
}

impl<'p, T> Writer<'p, T> {
    /// Hashes the entries of a segment of the shard.
    fn hashed(&self, segment: Segment<'p>, hasher: &impl Fn(&T) -> u64) -> Vec<Hashed> {
        let ids: Vec<u32> = segment.ids().collect();
        let hash = |(nth, &id): (usize, &u32)| {
            if let Some(&ahead) = ids.get(nth + AHEAD) {
                // SAFETY: the id is in a bucket of this shard, under the pin of the writer.
                unsafe { self.index.store.prefetch(ahead) };
            }
            // SAFETY: as above.
            let entry = unsafe { self.index.entry(id, self.pin) };
            (hasher(entry.get()), id)
        };
        ids.iter().enumerate().map(hash).collect()
    }

    /// Grows the segment of a mixed hash if it has no capacity for another entry.
    pub(super) fn make_room(&mut self, mixed: u64, hasher: impl Fn(&T) -> u64) {
        let directory = self.directory();
        let segment = directory.at(directory.index(mixed));
        let slots = segment.size().slots();
        let is_full = is_above(segment.count() + 1, slots, GROW_ABOVE);
        let is_far = || segment.distance_to_free(mixed).is_none_or(|distance| distance > REACH);
        if is_full || is_above(segment.count(), slots, MERGE_BELOW) && is_far() {
            self.grow(directory, directory.index(mixed), &hasher);
        }
    }

    fn grow(&mut self, directory: Directory<'p>, index: usize, hasher: &impl Fn(&T) -> u64) {
        let segment = directory.at(index);
        let span = directory.span(index);
        let entries = self.hashed(segment, hasher);
        let larger = segment.size().larger().unwrap_or(segment.size());
        if segment.size() < SPLIT.larger().unwrap_or(SPLIT) || !self.may_split(directory, span) {
            self.exchange(directory, span, &[segment_of(larger, &entries)]);
            return;
        }
        // The next bit of the mixed hash distinguishes the halves.
        let bit = directory.bit_below(span);
        let (high, low): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|&(hash, _)| mix(hash) & bit != 0);
        self.exchange(directory, span, &[segment_of(SPLIT, &low), segment_of(SPLIT, &high)]);
    }

    /// Returns whether the segment of these entries is not much deeper than the size of the shard
    /// requires.
    fn may_split(&self, directory: Directory<'p>, span: Span) -> bool {
        may_split(directory.depth_of(span), self.shard.len(), SPLIT.slots())
    }

    /// Shrinks the segment of a mixed hash, if its load is low.
    pub(super) fn shrink(&mut self, mixed: u64, hasher: impl Fn(&T) -> u64) {
        let directory = self.directory();
        let segment = directory.at(directory.index(mixed));
        if is_above(segment.count(), segment.size().slots(), SHRINK_BELOW) {
            return;
        }
        let span = directory.span(directory.index(mixed));
        let Some(smaller) = segment.size().smaller() else { return };
        if segment.size() > SPLIT || span.len == directory.segments().len() {
            let freed = segment.size().slots() - smaller.slots();
            if self.state.slots - freed >= self.state.reserved {
                let entries = self.hashed(segment, &hasher);
                self.exchange(directory, span, &[segment_of(smaller, &entries)]);
            }
            return;
        }
        self.merge(directory, span, &hasher);
    }

    /// Merges a segment with its sibling, if the result is not too large, and the sibling is not
    /// split.
    fn merge(&mut self, directory: Directory<'p>, span: Span, hasher: &impl Fn(&T) -> u64) {
        let [low, high] = [span, span.sibling()].map(|span| directory.at(span.first));
        let size = SPLIT.larger().unwrap_or(SPLIT);
        let freed = (low.size().slots() + high.size().slots()).saturating_sub(size.slots());
        let is_large = is_above(low.count() + high.count(), size.slots(), MERGE_BELOW);
        let is_split = directory.span(span.sibling().first).len != span.len;
        if is_large || is_split || self.state.slots - freed < self.state.reserved {
            return;
        }
        let mut entries = self.hashed(low, hasher);
        entries.append(&mut self.hashed(high, hasher));
        let both = Span { first: span.first.min(span.sibling().first), len: 2 * span.len };
        self.exchange(directory, both, &[segment_of(size, &entries)]);
    }

    /// Reserves capacity for `entries` entries in an empty shard.
    pub(super) fn reserve(&mut self, entries: usize) {
        // More than the average, as random hashes spread unevenly.
        let spread = 8 + 4 * entries.isqrt();
        let required =
            entries.saturating_add(spread).saturating_mul(64).div_ceil(GROW_ABOVE) as u64;
        let (mut size, mut depth) = (Size::ONE, 0);
        while (size.slots() as u64) << depth < required && depth < DEEPEST {
            match size.larger() {
                Some(larger) if size <= SPLIT => size = larger,
                _ => (size, depth) = (SPLIT, depth + 1),
            }
        }
        let empty = self.directory().segments()[0];
        match depth {
            0 => self.publish(&[SegmentPtr::new(size); 2]),
            _ => self.publish(&(0..1 << depth).map(|_| SegmentPtr::new(size)).collect::<Vec<_>>()),
        }
        self.state.batch.segment(empty);
        self.state.reserved = self.state.slots;
    }

    /// Replaces the segments of these entries.
    fn exchange(&mut self, directory: Directory<'p>, span: Span, with: &[SegmentPtr]) {
        let replaced: Vec<usize> = directory.firsts_in(span).collect();
        self.publish(&directory.replaced(span, with));
        for first in replaced {
            self.state.batch.segment(directory.segments()[first]);
        }
    }

    /// Publishes a directory, and retires the former one.
    pub(super) fn publish(&mut self, segments: &[SegmentPtr]) {
        let old = self.index.root.publish(segments);
        self.state.batch.directory(old);
        let directory = self.directory();
        let (mut slots, mut bytes) = (0, self.index.root.load().allocation_size());
        for first in directory.firsts() {
            let segment_ptr = directory.segments()[first];
            slots += segment_ptr.size().slots();
            bytes += segment_ptr.allocation_size();
        }
        (self.state.slots, self.state.index_bytes) = (slots, bytes);
    }
}
