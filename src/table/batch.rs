//! The stages of a burst: the cache misses of all its lookups overlap.
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
use crate::memory::Allocator;
use crate::raw::prefetch::BURST;

/// Hashes, and the first entry in the home group of each that has its tag.
pub(crate) struct Burst<'t, T> {
    pub(crate) hashes: [u64; BURST],
    pub(crate) candidates: [Option<&'t T>; BURST],
}

impl<T> Burst<'_, T> {
    /// A burst without hashes. It serves for any number of them, one after the other.
    #[inline(always)]
    pub(crate) const fn new() -> Self {
        Self { hashes: [0; BURST], candidates: [None; BURST] }
    }
}

impl<T, A: Allocator + Clone> Table<T, A> {
    /// Takes the first hashes, up to [`BURST`], through the first two stages, and returns their
    /// number; the caller compares.
    #[inline]
    pub(crate) fn find_candidates<'t>(
        &'t self,
        hashes: impl Iterator<Item = u64>,
        burst: &mut Burst<'t, T>,
    ) -> usize {
        let mut count = 0;
        for (own, hash) in burst.hashes.iter_mut().zip(hashes) {
            *own = hash;
            self.directory.segment(hash).prefetch_group(self.home(hash));
            count += 1;
        }
        for (&hash, candidate) in burst.hashes[..count].iter().zip(&mut burst.candidates) {
            let (segment, home) = (self.directory.segment(hash), self.home(hash));
            let matches = segment.group(home).matches_hash(hash);
            *candidate = if matches.is_empty() {
                None
            } else {
                let slot = home + matches.lowest();
                segment.prefetch_slot(slot);
                // A box would be read here: only its pointer has been prefetched.
                Segment::<T>::IS_INLINE.then(|| segment.get(slot))
            };
        }
        count
    }
}
