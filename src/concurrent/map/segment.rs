//! A segment: some hundred entries, in buckets behind one pointer.
//!
//! ```text
//!     place   ──→ ┌────────┬────────┬────────┬────────┬─────┬───────┐
//!                 │ bucket │ bucket │ bucket │ bucket │  …  │ count │
//!                 └────────┴────────┴────────┴────────┴─────┴───────┘
//!                      a line            a line
//! ```
//!
//! An entry has a *home*: the bucket that its hash points to. It is there, or in the first bucket behind
//! that had a free slot, round the end if need be. Every bucket from its home to the one before its own
//! has counted it as *passed*, and a search goes on behind a bucket while that count is not zero.
//!
//! - **S1** An entry stays in its slot for as long as it is in the segment. So a search that goes from
//!   bucket to bucket cannot miss it.
//! - **S2** A segment that grows is copied, and the copy published; nobody stores to the old one any more. So
//!   who is still in it finds what was there at that moment.
//! - **S3** The entry is put where it belongs first, and then counted by those that it has passed; it is
//!   taken out first, and then counted down. So the count is never less than the entries behind.
#![allow(unsafe_code)]

use alloc::boxed::Box;
use core::marker::PhantomData;
use core::ptr;

use super::bucket::{Bucket, SLOTS};
use crate::raw::tags::tags;

/// Two buckets.
#[repr(C, align(64))]
pub(super) struct Line([Bucket; 2]);

impl Line {
    fn new() -> Self {
        Self([Bucket::new(), Bucket::new()])
    }
}

/// How many lines of buckets a segment has: 1, 2, 3, 4, 6, 8, 12 and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Size(u32);

impl Size {
    pub(super) const ONE: Self = Self(1);
    /// So many that the low half of a path tells their buckets apart.
    const LARGEST: Self = Self(1 << 29);

    /// Two to the power of `log` lines.
    pub(super) const fn power(log: u32) -> Self {
        Self(1 << log)
    }

    /// Bytes of a segment.
    pub(super) const fn bytes(self) -> usize {
        (self.0 as usize + 1) * size_of::<Line>()
    }

    fn buckets(self) -> usize {
        2 * self.0 as usize
    }

    pub(super) fn slots(self) -> usize {
        SLOTS * self.buckets()
    }

    /// The next size: 1.33 or 1.5 times this one, or twice if it is one line. None if there is none.
    pub(super) fn larger(self) -> Option<Self> {
        let Self(lines) = self;
        let larger =
            if lines.is_power_of_two() { lines + (lines / 2).max(1) } else { lines / 3 * 4 };
        (self < Self::LARGEST).then_some(Self(larger))
    }

    /// The size before, if there is one.
    pub(super) fn smaller(self) -> Option<Self> {
        let Self(lines) = self;
        let smaller = if lines.is_power_of_two() { lines / 4 * 3 } else { lines / 3 * 2 };
        (lines > 1).then_some(Self(smaller.max(1)))
    }
}

/// Where a segment is, and how large it is, as directories have it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    first: *mut Line,
    size: Size,
}

impl Place {
    /// No segment.
    pub(super) const NOWHERE: Self = Self { first: ptr::null_mut(), size: Size(0) };

    /// A segment without entries, which nobody else has seen yet.
    pub(super) fn new(size: Size) -> Self {
        let lines: Box<[Line]> = (0..=size.0).map(|_| Line::new()).collect();
        Self { first: Box::into_raw(lines).cast(), size }
    }

    /// A segment with these entries: hash, path, number.
    pub(super) fn filled(size: Size, entries: impl Iterator<Item = (u64, u64, u32)>) -> Self {
        let place = Self::new(size);
        // SAFETY: nobody frees it here.
        let segment = unsafe { place.segment() };
        entries.for_each(|(hash, path, number)| segment.put(hash, path, number));
        place
    }

    pub(super) fn size(self) -> Size {
        self.size
    }

    /// Bytes allocated for it.
    pub(super) fn allocation_size(self) -> usize {
        self.size.bytes()
    }

    /// The segment.
    ///
    /// # Safety
    ///
    /// There is one, and it is not freed as long as `'p` lasts.
    #[inline]
    pub(super) unsafe fn segment<'p>(self) -> Segment<'p> {
        Segment { first: self.first.cast(), len: self.size.buckets(), pin: PhantomData }
    }

    /// Frees the segment. Not its entries.
    ///
    /// # Safety
    ///
    /// There is one, nobody uses it any more, and it is freed once.
    pub(super) unsafe fn free(self) {
        let lines = ptr::slice_from_raw_parts_mut(self.first, self.size.0 as usize + 1);
        // SAFETY: made in `new` from a box of so many lines; nobody uses it any more.
        drop(unsafe { Box::from_raw(lines) });
    }
}

/// A segment under a pin.
#[derive(Clone, Copy)]
pub(super) struct Segment<'p> {
    /// The first of its buckets, and of one more whose header counts the entries.
    first: *const Bucket,
    /// Buckets.
    len: usize,
    pin: PhantomData<&'p Bucket>,
}

/// Where an entry is.
#[derive(Clone, Copy)]
pub(super) struct Spot {
    pub(super) number: u32,
    home: usize,
    /// Buckets behind its home.
    distance: usize,
    slot: usize,
}

impl<'p> Segment<'p> {
    pub(super) fn size(self) -> Size {
        Size((self.len / 2) as u32)
    }

    #[inline]
    pub(super) fn home(self, path: u64) -> usize {
        (((path & 0xffff_ffff) * self.len as u64) >> 32) as usize
    }

    /// The bucket in which a search of this path begins.
    #[inline]
    pub(super) fn home_bucket(self, path: u64) -> &'p Bucket {
        // Less than 2^32 times the number of buckets, divided by 2^32.
        self.bucket(self.home(path))
    }

    /// A bucket, or that with the count.
    #[inline]
    fn bucket(self, number: usize) -> &'p Bucket {
        debug_assert!(number <= self.len);
        // SAFETY: a segment has so many buckets, and one more.
        let bucket = unsafe { self.first.add(number) };
        // SAFETY: it is not freed as long as 'p lasts: see `Place::segment`.
        unsafe { &*bucket }
    }

    /// All buckets from a home on, round the end.
    fn around(self, home: usize) -> impl Iterator<Item = &'p Bucket> {
        let (before, from) = self.buckets().split_at(home);
        from.iter().chain(before)
    }

    /// The bucket so far behind a home.
    fn at(self, home: usize, distance: usize) -> &'p Bucket {
        self.bucket((home + distance) % self.len)
    }

    /// The first answer that `is` has for the number of an entry that may have this hash.
    #[inline]
    pub(super) fn find<R>(self, hash: u64, path: u64, is: impl Fn(u32) -> Option<R>) -> Option<R> {
        let home = self.home_bucket(path).look();
        let found = home.matches(tags(hash, path)).find_map(|(_, number)| is(number));
        if found.is_some() || home.passed() == 0 {
            return found;
        }
        self.find_behind(hash, path, is)
    }

    /// The same behind the home.
    #[cold]
    #[inline(never)]
    fn find_behind<R>(self, hash: u64, path: u64, is: impl Fn(u32) -> Option<R>) -> Option<R> {
        let tags = tags(hash, path);
        for bucket in self.around(self.home(path)).skip(1) {
            let look = bucket.look();
            let found = look.matches(tags).find_map(|(_, number)| is(number));
            if found.is_some() || look.passed() == 0 {
                return found;
            }
        }
        None
    }

    /// Where the entry of this hash is for which `is` says so.
    pub(super) fn locate(self, hash: u64, path: u64, is: impl Fn(u32) -> bool) -> Option<Spot> {
        let (tags, home) = (tags(hash, path), self.home(path));
        for (distance, bucket) in self.around(home).enumerate() {
            let look = bucket.look();
            if let Some((slot, number)) = look.matches(tags).find(|&(_, number)| is(number)) {
                return Some(Spot { number, home, slot, distance });
            }
            if look.passed() == 0 {
                return None;
            }
        }
        None
    }

    /// Entries, for who has the lock.
    pub(super) fn count(self) -> usize {
        self.bucket(self.len).count()
    }

    fn set_count(self, count: usize) {
        self.bucket(self.len).set_count(count);
    }

    /// How far behind its home an entry of this path would be put; nothing if all slots are full.
    pub(super) fn distance_to_free(self, path: u64) -> Option<usize> {
        self.around(self.home(path)).position(|bucket| bucket.look().free().count() > 0)
    }

    /// Puts in an entry. Whether it is there is not asked.
    ///
    /// # Panics
    ///
    /// If all slots are full, which would be a mistake of this crate.
    pub(super) fn put(self, hash: u64, path: u64, number: u32) {
        let home = self.home(path);
        let distance = self.distance_to_free(path).expect("a segment has room");
        let bucket = self.at(home, distance);
        let slot = bucket.look().free().next().expect("the bucket has a free slot");
        // S3.
        bucket.fill(slot, tags(hash, path), number);
        self.around(home).take(distance).for_each(Bucket::pass);
        self.set_count(self.count() + 1);
    }

    /// Puts an entry into the place of another one of the same key.
    pub(super) fn replace(self, spot: Spot, number: u32) {
        self.at(spot.home, spot.distance).replace(spot.slot, number);
    }

    /// Takes out an entry.
    pub(super) fn take(self, spot: Spot) {
        // S3.
        self.at(spot.home, spot.distance).free(spot.slot);
        self.around(spot.home).take(spot.distance).for_each(Bucket::unpass);
        self.set_count(self.count() - 1);
    }

    /// The numbers of all entries.
    pub(super) fn numbers(self) -> impl Iterator<Item = u32> {
        self.buckets().iter().flat_map(|bucket| bucket.look().full().map(|(_, number)| number))
    }

    /// The buckets.
    pub(super) fn buckets(self) -> &'p [Bucket] {
        // SAFETY: a segment has so many, which are not freed as long as 'p lasts: see `Place::segment`.
        unsafe { core::slice::from_raw_parts(self.first, self.len) }
    }
}
