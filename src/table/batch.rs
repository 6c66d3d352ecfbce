//! The stages of a burst: the misses of one lookup overlap with those of the others.
//!
//! ```text
//! hash 0    prefetch tags             match, prefetch entry           visit
//! hash 1      prefetch tags             match, prefetch entry           visit
//! …             …                         …                               …
//! hash 31         prefetch tags             match, prefetch entry           visit
//! ```
//!
//! A CPU fetches ten cache lines or more at a time; a lookup by itself waits for one after the
//! other. 32 go through the stages at a time, which keeps the CPU busy and their state in the L1
//! cache.

use super::Table;
use super::segment::Segment;
use super::tags::tag;
use crate::memory::Allocator;
use crate::raw::prefetch::BURST;

/// The first entry in the home group of each hash that has its tag.
pub(crate) type Candidates<'t, T> = [Option<&'t T>; BURST];

impl<T, A: Allocator + Clone> Table<T, A> {
    /// Takes up to [`BURST`] hashes through the first two stages; the caller compares.
    #[inline(always)]
    pub(crate) fn candidates(&self, hashes: &[u64]) -> Candidates<'_, T> {
        debug_assert!(hashes.len() <= BURST);
        let mut segments = [Segment::EMPTY; BURST];
        for (&hash, segment) in hashes.iter().zip(&mut segments) {
            *segment = self.directory.segment(hash);
            segment.prefetch_group(self.home(hash));
        }
        let mut candidates = [None; BURST];
        for ((&hash, &segment), candidate) in hashes.iter().zip(&segments).zip(&mut candidates) {
            let home = self.home(hash);
            let matches = segment.group(home).matches(tag(hash));
            if !matches.is_empty() {
                let slot = home + matches.lowest();
                segment.prefetch_slot(slot);
                // A box would be read here: only its pointer has been prefetched.
                if Segment::<T>::IS_INLINE {
                    *candidate = Some(segment.get(slot));
                }
            }
        }
        candidates
    }
}
