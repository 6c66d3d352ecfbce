//! How a shard grows and shrinks: one segment at a time, beside the readers.
//!
//! A segment that is three quarters full gets 1.33 or 1.5 times as many buckets, and splits in two when
//! it is large enough: one segment for an insertion at most, of 576 or 864 entries, and no other one knows of it. One that is less
//! than a third full gets smaller, or is merged with its sibling.
//!
//! ```text
//!     buckets     128        192         2 × 128
//!     load        ·5 → ·75   ·5 → ·75    ·56 → ·75
//! ```
//!
//! Readers are in the old segment or in the new one, and find what they look for in both: see
//! `segment.rs`. The hashes of the keys are asked for before anything is changed.
#![allow(unsafe_code)]

use alloc::vec::Vec;

use super::directory::{DEEPEST, Directory, Span, path};
use super::segment::{Place, Segment, Size};
use super::shard::Writer;
use crate::concurrent::sync::IS_CHECKED;

/// Lines of a segment that has just been split: 4 KiB, some 430 entries. Larger ones take longer to
/// grow, smaller ones need a larger directory.
const SPLIT: Size = Size::power(if IS_CHECKED { 0 } else { 6 });

/// A segment grows when it would have more entries than this, in 64ths of its slots.
const GROW_ABOVE: usize = 48;

/// It shrinks when it has fewer than this, in 64ths.
const SHRINK_BELOW: usize = 20;

/// Two segments are merged if the new one then has no more than this, in 64ths.
const MERGE_BELOW: usize = 32;

/// An entry that would be further from home than this makes its segment grow, if that is half full.
const REACH: usize = 8;

/// How much deeper than others a segment may be: keys whose hashes agree would make a directory double for
/// each few of them.
const DEEPER: u32 = 3;

/// How far a rehash asks ahead for entries: about as many misses as a machine overlaps.
const AHEAD: usize = 16;

/// Whether so many entries are more than so many 64ths of so many slots.
const fn is_above(entries: usize, slots: usize, load: usize) -> bool {
    entries * 64 > slots * load
}

/// An entry's hash and its number.
type Hashed = (u64, u32);

/// A new segment with these entries, of this size or as much larger as it must be.
fn segment_of(mut size: Size, entries: &[Hashed]) -> Place {
    while is_above(entries.len(), size.slots(), GROW_ABOVE) {
        let Some(larger) = size.larger() else { break };
        size = larger;
    }
    Place::filled(size, entries.iter().map(|&(hash, number)| (hash, path(hash), number)))
}

impl<'p, T> Writer<'p, T> {
    /// The entries of a segment of the shard with their hashes.
    fn hashed(&self, segment: Segment<'p>, hasher: &impl Fn(&T) -> u64) -> Vec<Hashed> {
        let numbers: Vec<u32> = segment.numbers().collect();
        let hash = |(nth, &number): (usize, &u32)| {
            if let Some(&ahead) = numbers.get(nth + AHEAD) {
                // SAFETY: the number is in a bucket of this shard, under the pin of the writer.
                unsafe { self.index.store.prefetch(ahead) };
            }
            // SAFETY: the same.
            let entry = unsafe { self.index.entry(number, self.pin) };
            (hasher(entry.get()), number)
        };
        numbers.iter().enumerate().map(hash).collect()
    }

    /// Makes the segment of a path large enough for one entry more.
    pub(super) fn make_room(&mut self, path: u64, hasher: impl Fn(&T) -> u64) {
        let directory = self.directory();
        let segment = directory.at(directory.index(path));
        let slots = segment.size().slots();
        let is_full = is_above(segment.count() + 1, slots, GROW_ABOVE);
        let is_far = || segment.distance_to_free(path).is_none_or(|distance| distance > REACH);
        if is_full || is_above(segment.count(), slots, MERGE_BELOW) && is_far() {
            self.grow(directory, directory.index(path), &hasher);
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
        // One bit of the path more than the segment's own tells the halves apart.
        let bit = directory.bit_below(span);
        let (high, low): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|&(hash, _)| path(hash) & bit != 0);
        self.exchange(directory, span, &[segment_of(SPLIT, &low), segment_of(SPLIT, &high)]);
    }

    /// Whether the segment at these places is not much deeper than the shard's entries ask for.
    fn may_split(&self, directory: Directory<'p>, span: Span) -> bool {
        let depth = directory.depth_of(span);
        let usual = (self.shard.len() / SPLIT.slots() + 1).ilog2() + 1;
        depth < DEEPEST.min(usual + DEEPER)
    }

    /// Makes the segment of a path smaller, if it has become too large for what is in it.
    pub(super) fn tidy(&mut self, path: u64, hasher: impl Fn(&T) -> u64) {
        let directory = self.directory();
        let segment = directory.at(directory.index(path));
        if is_above(segment.count(), segment.size().slots(), SHRINK_BELOW) {
            return;
        }
        let span = directory.span(directory.index(path));
        let Some(smaller) = segment.size().smaller() else { return };
        if segment.size() > SPLIT || span.len == directory.places().len() {
            let freed = segment.size().slots() - smaller.slots();
            if self.state.slots - freed >= self.state.kept {
                let entries = self.hashed(segment, &hasher);
                self.exchange(directory, span, &[segment_of(smaller, &entries)]);
            }
            return;
        }
        self.merge(directory, span, &hasher);
    }

    /// Makes one segment of one and its sibling, if that is not too large, and if they are one together.
    fn merge(&mut self, directory: Directory<'p>, span: Span, hasher: &impl Fn(&T) -> u64) {
        let [low, high] = [span, span.sibling()].map(|span| directory.at(span.first));
        let size = SPLIT.larger().unwrap_or(SPLIT);
        let freed = (low.size().slots() + high.size().slots()).saturating_sub(size.slots());
        let is_large = is_above(low.count() + high.count(), size.slots(), MERGE_BELOW);
        let is_split = directory.span(span.sibling().first).len != span.len;
        if is_large || is_split || self.state.slots - freed < self.state.kept {
            return;
        }
        let mut entries = self.hashed(low, hasher);
        entries.append(&mut self.hashed(high, hasher));
        let both = Span { first: span.first.min(span.sibling().first), len: 2 * span.len };
        self.exchange(directory, both, &[segment_of(size, &entries)]);
    }

    /// Makes room for so many entries in a shard that has none, and keeps it.
    pub(super) fn reserve(&mut self, entries: usize) {
        // Some more than on average, as chance spreads them.
        let spread = 8 + 4 * entries.isqrt();
        let wanted = entries.saturating_add(spread).saturating_mul(64).div_ceil(GROW_ABOVE) as u64;
        let (mut size, mut depth) = (Size::ONE, 0);
        while (size.slots() as u64) << depth < wanted && depth < DEEPEST {
            match size.larger() {
                Some(larger) if size <= SPLIT => size = larger,
                _ => (size, depth) = (SPLIT, depth + 1),
            }
        }
        let empty = self.directory().places()[0];
        match depth {
            0 => self.publish(&[Place::new(size); 2]),
            _ => self.publish(&(0..1 << depth).map(|_| Place::new(size)).collect::<Vec<_>>()),
        }
        self.state.batch.segment(empty);
        self.state.kept = self.state.slots;
    }

    /// Puts segments where others were.
    fn exchange(&mut self, directory: Directory<'p>, span: Span, with: &[Place]) {
        let gone: Vec<usize> = directory.firsts_in(span).collect();
        self.publish(&directory.replaced(span, with));
        for first in gone {
            self.state.batch.segment(directory.places()[first]);
        }
    }

    /// Publishes a directory of these places, and retires the one from before.
    pub(super) fn publish(&mut self, places: &[Place]) {
        let old = self.index.root.publish(places);
        self.state.batch.directory(old);
        let directory = self.directory();
        let (mut slots, mut bytes) = (0, self.index.root.load().allocation_size());
        for first in directory.firsts() {
            let place = directory.places()[first];
            slots += place.size().slots();
            bytes += place.allocation_size();
        }
        (self.state.slots, self.state.index_bytes) = (slots, bytes);
    }
}
