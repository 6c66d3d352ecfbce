//! A bucket: half a cache line with the tags and the numbers of six entries.
//!
//! ```text
//!     ┌──┬──┬──┬──┬──┬──┬──┬──────┬────────┬────────┬───┬────────┐
//!     │t0│t1│t2│t3│t4│t5│  │passed│ number │ number │ … │ number │
//!     └──┴──┴──┴──┴──┴──┴──┴──────┴────────┴────────┴───┴────────┘
//!      header: one word             six times four bytes
//! ```
//!
//! Only the writer that has the lock stores. A slot whose tag is not zero has the number of an entry. Who has
//! seen the tag may find the number of another entry there, which has come to the slot in the meantime: so a
//! key is always compared.

use core::array;

use crate::concurrent::sync::{AtomicU32, AtomicU64, Ordering};
use crate::raw::tags::{self, HIGHEST, SlotMask};

/// Slots of a bucket.
pub(super) const SLOTS: usize = 6;

/// The bytes of a header that are tags.
const TAGS: u64 = u64::MAX >> (64 - 8 * SLOTS);

/// Where the count is in a header.
const PASSED: u32 = 56;

#[repr(C, align(32))]
pub(super) struct Bucket {
    header: AtomicU64,
    numbers: [AtomicU32; SLOTS],
}

impl Bucket {
    /// All slots are free.
    pub(super) fn new() -> Self {
        Self { header: AtomicU64::new(0), numbers: array::from_fn(|_| AtomicU32::new(0)) }
    }

    /// A look at the header.
    #[inline]
    pub(super) fn look(&self) -> Look<'_> {
        // Acquire: pairs with the Release in `set`, so that who sees a tag sees the number behind it and the
        // entry behind that, and who sees that an entry has passed sees where it went.
        Look { header: self.header.load(Ordering::Acquire), bucket: self }
    }

    /// Puts an entry into a slot that is free.
    pub(super) fn fill(&self, slot: usize, tags: u64, number: u32) {
        let look = self.look();
        debug_assert!(look.free().contains(slot));
        // Release: pairs with the Acquire in `Entries`, for who saw the tag of a former entry.
        self.numbers[slot].store(number, Ordering::Release);
        self.set(tags::with(look.header, slot, tags));
    }

    /// Puts an entry into the place of another one of the same key.
    pub(super) fn replace(&self, slot: usize, number: u32) {
        // Release: pairs with the Acquire in `Entries`.
        self.numbers[slot].store(number, Ordering::Release);
    }

    /// Makes a slot free. The number stays, for who has seen the tag.
    pub(super) fn free(&self, slot: usize) {
        self.set(tags::without(self.look().header, slot));
    }

    /// Counts an entry that is behind this bucket, and has just been put there.
    pub(super) fn pass(&self) {
        let passed = self.look().passed();
        self.set_passed(passed.saturating_add(1));
    }

    /// Counts an entry down that was behind this bucket.
    pub(super) fn unpass(&self) {
        // A count of zero here is the work of a key type whose hashes change.
        if let passed @ 1..=254 = self.look().passed() {
            self.set_passed(passed - 1);
        }
    }

    fn set_passed(&self, passed: u8) {
        self.set(self.look().header & (u64::MAX >> 8) | u64::from(passed) << PASSED);
    }

    fn set(&self, header: u64) {
        // Release: pairs with the Acquire in `look`.
        self.header.store(header, Ordering::Release);
    }

    /// The whole header as a number, for the line behind the buckets: see `segment.rs`.
    pub(super) fn count(&self) -> usize {
        // Relaxed: for who has the lock.
        self.header.load(Ordering::Relaxed) as usize
    }

    /// See [`Self::count`].
    pub(super) fn set_count(&self, count: usize) {
        // Relaxed: for who has the lock.
        self.header.store(count as u64, Ordering::Relaxed);
    }
}

/// What the header of a bucket said.
pub(super) struct Look<'p> {
    header: u64,
    bucket: &'p Bucket,
}

impl<'p> Look<'p> {
    /// The entries that may have the hash of these tags.
    #[inline]
    pub(super) fn matches(&self, tags: u64) -> Entries<'p> {
        self.entries(tags::matches(self.header & TAGS, tags))
    }

    /// All entries.
    #[inline]
    pub(super) fn full(&self) -> Entries<'p> {
        self.entries(SlotMask::of(self.header & TAGS))
    }

    /// The slots that hold none.
    #[inline]
    pub(super) fn free(&self) -> SlotMask {
        SlotMask::of((self.header ^ HIGHEST) & TAGS)
    }

    /// Entries whose home is this bucket or one before it, and that are behind it. At 255 it stays and means
    /// "perhaps".
    #[inline]
    pub(super) fn passed(&self) -> u8 {
        (self.header >> PASSED) as u8
    }

    #[inline]
    fn entries(&self, slots: SlotMask) -> Entries<'p> {
        Entries { slots, bucket: self.bucket }
    }
}

/// Some entries of a bucket whose tags have been seen: slot and number of each.
pub(super) struct Entries<'p> {
    slots: SlotMask,
    bucket: &'p Bucket,
}

impl Iterator for Entries<'_> {
    type Item = (usize, u32);

    #[inline]
    fn next(&mut self) -> Option<(usize, u32)> {
        let slot = self.slots.next()?;
        // Acquire: pairs with the Release in `replace`, which publishes an entry under an old tag; with
        // that in `fill`, too, if the slot has been used again.
        Some((slot, self.bucket.numbers[slot].load(Ordering::Acquire)))
    }
}
