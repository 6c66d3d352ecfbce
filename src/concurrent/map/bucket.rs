//! Buckets: half a cache line with the tags and the ids of six entries.
//!
//! ```text
//!     ┌──┬──┬──┬──┬──┬──┬──┬────────┬────┬────┬───┬────┐
//!     │t0│t1│t2│t3│t4│t5│  │overflow│ id │ id │ … │ id │
//!     └──┴──┴──┴──┴──┴──┴──┴────────┴────┴────┴───┴────┘
//!      header: one word              six times four bytes
//! ```
//!
//! Only the lock holder stores. A slot whose tag is not zero has the id of an entry. A reader that
//! has loaded the tag may find the id of a later entry of the slot: so a key is always compared.

use core::array;

use crate::concurrent::sync::{AtomicU32, AtomicU64, Ordering};
use crate::raw::tags::{self, HIGHEST, SlotMask};

/// Slots of a bucket.
pub(super) const SLOTS: usize = 6;

/// The tags of a header.
const TAGS: u64 = u64::MAX >> (64 - 8 * SLOTS);

/// The position of the overflow count in a header.
const OVERFLOW: u32 = 56;

#[repr(C, align(32))]
pub(super) struct Bucket {
    header: AtomicU64,
    ids: [AtomicU32; SLOTS],
}

impl Bucket {
    /// Creates a bucket with free slots.
    pub(super) fn new() -> Self {
        Self { header: AtomicU64::new(0), ids: array::from_fn(|_| AtomicU32::new(0)) }
    }

    /// Loads the header.
    #[inline]
    pub(super) fn header(&self) -> Header<'_> {
        // Acquire: pairs with the Release in `set`: a reader that observes a tag observes the id
        // and the entry, and one that observes an overflow count observes the overflowed entry.
        Header { header: self.header.load(Ordering::Acquire), bucket: self }
    }

    /// Writes an entry to a free slot.
    pub(super) fn write(&self, slot: usize, tags: u64, id: u32) {
        let header = self.header();
        debug_assert!(header.free().contains(slot));
        // Release: pairs with the Acquire in `Entries`, for readers that loaded the tag of a former
        // entry.
        self.ids[slot].store(id, Ordering::Release);
        self.set(tags::with(header.header, slot, tags));
    }

    /// Replaces an entry by another one with the same key.
    pub(super) fn replace(&self, slot: usize, id: u32) {
        // Release: pairs with the Acquire in `Entries`.
        self.ids[slot].store(id, Ordering::Release);
    }

    /// Frees a slot. The id stays, for readers that have loaded the tag.
    pub(super) fn free(&self, slot: usize) {
        self.set(tags::without(self.header().header, slot));
    }

    /// Increments the overflow count.
    pub(super) fn increment_overflow(&self) {
        let overflow = self.header().overflow();
        self.set_overflow(overflow.saturating_add(1));
    }

    /// Decrements the overflow count.
    pub(super) fn decrement_overflow(&self) {
        // A count of zero here is the result of inconsistent hashes of a key.
        if let overflow @ 1..=254 = self.header().overflow() {
            self.set_overflow(overflow - 1);
        }
    }

    fn set_overflow(&self, overflow: u8) {
        self.set(self.header().header & (u64::MAX >> 8) | u64::from(overflow) << OVERFLOW);
    }

    fn set(&self, header: u64) {
        // Release: pairs with the Acquire in `look`.
        self.header.store(header, Ordering::Release);
    }

    /// Returns the header of the extra bucket, which counts the entries of a segment: see
    /// `segment.rs`.
    pub(super) fn count(&self) -> usize {
        // Relaxed: for the lock holder.
        self.header.load(Ordering::Relaxed) as usize
    }

    /// Sets [`Self::count`].
    pub(super) fn set_count(&self, count: usize) {
        // Relaxed: for the lock holder.
        self.header.store(count as u64, Ordering::Relaxed);
    }
}

/// A header that was loaded, with its bucket.
pub(super) struct Header<'p> {
    header: u64,
    bucket: &'p Bucket,
}

impl<'p> Header<'p> {
    /// Iterates over the candidates for these tags.
    #[inline]
    pub(super) fn matches(&self, tags: u64) -> Entries<'p> {
        self.entries(tags::matches(self.header & TAGS, tags))
    }

    /// Iterates over all entries.
    #[inline]
    pub(super) fn full(&self) -> Entries<'p> {
        self.entries(SlotMask::of(self.header & TAGS))
    }

    /// Returns the free slots.
    #[inline]
    pub(super) fn free(&self) -> SlotMask {
        SlotMask::of((self.header ^ HIGHEST) & TAGS)
    }

    /// Returns the overflow count: the number of entries whose home is this bucket or an earlier
    /// one, and that are in a later one. It saturates at 255, which means "unknown".
    #[inline]
    pub(super) fn overflow(&self) -> u8 {
        (self.header >> OVERFLOW) as u8
    }

    #[inline]
    fn entries(&self, slots: SlotMask) -> Entries<'p> {
        Entries { slots, bucket: self.bucket }
    }
}

/// An iterator over entries of a bucket whose tags have been loaded: slot and id of each.
pub(super) struct Entries<'p> {
    slots: SlotMask,
    bucket: &'p Bucket,
}

impl Iterator for Entries<'_> {
    type Item = (usize, u32);

    #[inline]
    fn next(&mut self) -> Option<(usize, u32)> {
        let slot = self.slots.next()?;
        // Acquire: pairs with the Release in `replace`, which publishes an entry under an old tag,
        // and with that in `write` if the slot was reused.
        Some((slot, self.bucket.ids[slot].load(Ordering::Acquire)))
    }
}
