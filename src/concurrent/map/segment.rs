//! Segments: arrays of buckets with some hundred entries.
//!
//! ```text
//!     segment ──→ ┌────────┬────────┬────────┬────────┬─────┬───────┐
//!                 │ bucket │ bucket │ bucket │ bucket │  …  │ count │
//!                 └────────┴────────┴────────┴────────┴─────┴───────┘
//!                     cache line        cache line
//! ```
//!
//! An entry has a *home*: the bucket that its mixed hash selects. It is there, or in the first
//! later bucket that had a free slot, modulo the number of buckets. Every bucket from its home to
//! the one before its own has counted it in its *overflow count*, and a search continues with the
//! next bucket while that count is not zero.
//!
//! - **S1** An entry stays in its slot while it is in the segment. So a probe of consecutive
//!   buckets cannot miss it.
//! - **S2** A segment that grows is copied, and the copy published; the old one is not written any
//!   more. So its readers find its entries of that time.
//! - **S3** An insertion writes the slot first and increments the overflow counts then; a removal
//!   clears the slot first and decrements then. So a count is never less than the number of
//!   overflowed entries.
#![allow(unsafe_code)]

use alloc::boxed::Box;
use core::marker::PhantomData;
use core::ptr;

use super::bucket::{Bucket, SLOTS};
use crate::concurrent::policy;
use crate::raw::tags::tags;

/// A cache line: two buckets.
#[repr(C, align(64))]
pub(super) struct CacheLine([Bucket; 2]);

impl CacheLine {
    fn new() -> Self {
        Self([Bucket::new(), Bucket::new()])
    }
}

/// The size of a segment in cache lines of buckets: 1, 2, 3, 4, 6, 8, 12 and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Size(u32);

impl Size {
    pub(super) const ONE: Self = Self(1);
    /// The greatest size whose buckets the low half of a mixed hash can distinguish.
    const LARGEST: Self = Self(1 << 29);

    /// Returns the size of `1 << log` cache lines.
    pub(super) const fn power(log: u32) -> Self {
        Self(1 << log)
    }

    /// Returns the bytes of a segment.
    pub(super) const fn bytes(self) -> usize {
        (self.0 as usize + 1) * size_of::<CacheLine>()
    }

    fn buckets(self) -> usize {
        2 * self.0 as usize
    }

    pub(super) fn slots(self) -> usize {
        SLOTS * self.buckets()
    }

    /// Returns the next size: 1.33 or 1.5 times this one, or twice if it is one cache line.
    pub(super) fn larger(self) -> Option<Self> {
        let Self(lines) = self;
        (self < Self::LARGEST).then(|| Self(policy::larger(lines)))
    }

    /// Returns the previous size, if there is one.
    pub(super) fn smaller(self) -> Option<Self> {
        let Self(lines) = self;
        (lines > 1).then(|| Self(policy::smaller(lines)))
    }
}

/// An owning pointer to a segment, with its size, as directories store it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentPtr {
    first: *mut CacheLine,
    size: Size,
}

impl SegmentPtr {
    /// A null pointer.
    pub(super) const NULL: Self = Self { first: ptr::null_mut(), size: Size(0) };

    /// Allocates a segment without entries, not published yet.
    pub(super) fn new(size: Size) -> Self {
        let lines: Box<[CacheLine]> = (0..=size.0).map(|_| CacheLine::new()).collect();
        Self { first: Box::into_raw(lines).cast(), size }
    }

    /// Allocates a segment with these entries: hash, mixed hash, id.
    pub(super) fn filled(size: Size, entries: impl Iterator<Item = (u64, u64, u32)>) -> Self {
        let segment_ptr = Self::new(size);
        // SAFETY: it is not freed here.
        let segment = unsafe { segment_ptr.segment() };
        entries.for_each(|(hash, mixed, id)| segment.insert(hash, mixed, id));
        segment_ptr
    }

    pub(super) fn size(self) -> Size {
        self.size
    }

    /// Returns the allocated bytes.
    pub(super) fn allocation_size(self) -> usize {
        self.size.bytes()
    }

    /// Returns the segment.
    ///
    /// # Safety
    ///
    /// The pointer is not null, and the segment is not freed during `'p`.
    #[inline]
    pub(super) unsafe fn segment<'p>(self) -> Segment<'p> {
        Segment { first: self.first.cast(), len: self.size.buckets(), pin: PhantomData }
    }

    /// Frees the segment without its entries.
    ///
    /// # Safety
    ///
    /// The pointer is not null, the segment is not used any more, and it is freed once.
    pub(super) unsafe fn free(self) {
        let lines = ptr::slice_from_raw_parts_mut(self.first, self.size.0 as usize + 1);
        // SAFETY: allocated in `new` as a box of this length; not used any more.
        drop(unsafe { Box::from_raw(lines) });
    }
}

/// A segment under a pin.
#[derive(Clone, Copy)]
pub(super) struct Segment<'p> {
    /// The first bucket. The header of an extra one after the last counts the entries.
    first: *const Bucket,
    /// Number of buckets.
    len: usize,
    pin: PhantomData<&'p Bucket>,
}

/// The position of an entry in a segment.
#[derive(Clone, Copy)]
pub(super) struct SlotId {
    pub(super) id: u32,
    home: usize,
    /// Number of buckets after its home.
    distance: usize,
    slot: usize,
}

impl<'p> Segment<'p> {
    pub(super) fn size(self) -> Size {
        Size((self.len / 2) as u32)
    }

    #[inline]
    pub(super) fn home(self, mixed: u64) -> usize {
        policy::home(mixed, self.len)
    }

    /// Returns the bucket in which a search for this mixed hash begins.
    #[inline]
    pub(super) fn home_bucket(self, mixed: u64) -> &'p Bucket {
        self.bucket(self.home(mixed))
    }

    /// Returns a bucket, or that with the count.
    #[inline]
    fn bucket(self, id: usize) -> &'p Bucket {
        debug_assert!(id <= self.len);
        // SAFETY: a segment has `len` buckets, and one more.
        let bucket = unsafe { self.first.add(id) };
        // SAFETY: it is not freed during 'p: see `SegmentPtr::segment`.
        unsafe { &*bucket }
    }

    /// Iterates over all buckets from a home on, cyclically.
    fn around(self, home: usize) -> impl Iterator<Item = &'p Bucket> {
        let (before, from) = self.buckets().split_at(home);
        from.iter().chain(before)
    }

    /// Returns the bucket at a distance from a home.
    fn at(self, home: usize, distance: usize) -> &'p Bucket {
        self.bucket((home + distance) % self.len)
    }

    /// Returns the first result of `is` for the ids of candidates for this hash.
    #[inline]
    pub(super) fn find<R>(self, hash: u64, mixed: u64, is: impl Fn(u32) -> Option<R>) -> Option<R> {
        let home = self.home_bucket(mixed).header();
        let found = home.matches(tags(hash, mixed)).find_map(|(_, id)| is(id));
        if found.is_some() || home.overflow() == 0 {
            return found;
        }
        self.find_overflowed(hash, mixed, is)
    }

    /// Searches the buckets after the home.
    #[cold]
    #[inline(never)]
    fn find_overflowed<R>(self, hash: u64, mixed: u64, is: impl Fn(u32) -> Option<R>) -> Option<R> {
        let tags = tags(hash, mixed);
        for bucket in self.around(self.home(mixed)).skip(1) {
            let header = bucket.header();
            let found = header.matches(tags).find_map(|(_, id)| is(id));
            if found.is_some() || header.overflow() == 0 {
                return found;
            }
        }
        None
    }

    /// Returns the slot of the candidate for which `is` returns true.
    pub(super) fn locate(self, hash: u64, mixed: u64, is: impl Fn(u32) -> bool) -> Option<SlotId> {
        let (tags, home) = (tags(hash, mixed), self.home(mixed));
        for (distance, bucket) in self.around(home).enumerate() {
            let header = bucket.header();
            if let Some((slot, id)) = header.matches(tags).find(|&(_, id)| is(id)) {
                return Some(SlotId { id, home, slot, distance });
            }
            if header.overflow() == 0 {
                return None;
            }
        }
        None
    }

    /// Returns the number of entries, for the lock holder.
    pub(super) fn count(self) -> usize {
        self.bucket(self.len).count()
    }

    fn set_count(self, count: usize) {
        self.bucket(self.len).set_count(count);
    }

    /// Returns the distance from its home at which an entry would be inserted, or `None` if the
    /// segment is full.
    pub(super) fn distance_to_free(self, mixed: u64) -> Option<usize> {
        self.around(self.home(mixed)).position(|bucket| bucket.header().free().count() > 0)
    }

    /// Inserts an entry, whose key must be absent.
    ///
    /// # Panics
    ///
    /// If all slots are occupied, which would be a bug in this crate.
    pub(super) fn insert(self, hash: u64, mixed: u64, id: u32) {
        let home = self.home(mixed);
        let distance = self.distance_to_free(mixed).expect("the segment has a free slot");
        let bucket = self.at(home, distance);
        let slot = bucket.header().free().next().expect("the bucket has a free slot");
        // S3.
        bucket.write(slot, tags(hash, mixed), id);
        self.around(home).take(distance).for_each(Bucket::increment_overflow);
        self.set_count(self.count() + 1);
    }

    /// Replaces an entry by another one with the same key.
    pub(super) fn replace(self, slot_id: SlotId, id: u32) {
        self.at(slot_id.home, slot_id.distance).replace(slot_id.slot, id);
    }

    /// Removes an entry.
    pub(super) fn remove(self, slot_id: SlotId) {
        // S3.
        self.at(slot_id.home, slot_id.distance).free(slot_id.slot);
        self.around(slot_id.home).take(slot_id.distance).for_each(Bucket::decrement_overflow);
        self.set_count(self.count() - 1);
    }

    /// Iterates over the ids of all entries.
    pub(super) fn ids(self) -> impl Iterator<Item = u32> {
        self.buckets().iter().flat_map(|bucket| bucket.header().full().map(|(_, id)| id))
    }

    /// Returns the buckets.
    pub(super) fn buckets(self) -> &'p [Bucket] {
        // SAFETY: a segment has `len` buckets, not freed during 'p: see `SegmentPtr::segment`.
        unsafe { core::slice::from_raw_parts(self.first, self.len) }
    }
}
