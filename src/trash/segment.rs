//! A segment: some thousand entries in one block of memory. All unsafe code that touches entries is
//! here.
//!
//! ```text
//!   block                                            headers
//!     ▼                                                 ▼
//!     ┌───────────────┬─────┬─────────────┬─────────────┬────────┬────────┬─────┬──────────────┐
//!     │  entries of   │  …  │ entries of  │ entries of  │ header │ header │  …  │ passed: one  │
//!     │ bucket n − 1  │     │  bucket 1   │  bucket 0   │   0    │   1    │     │ byte for each│
//!     └───────────────┴─────┴─────────────┴─────────────┴────────┴────────┴─────┴──────────────┘
//!                                     8 entries               8 tags
//! ```
//!
//! One pointer finds both: headers upwards, entries downwards from it.
//!
//! An entry has a *home*: the bucket that its hash points to. It is there, or in the first bucket
//! behind that had a free slot, round the end of the segment if need be. Every bucket from its home
//! to the one before its own has counted it as *passed*, and a search goes on behind a bucket while
//! that count is not zero. A removal counts down on the same way: no tombstones. At 255 the count
//! stays until the segment is made anew, and means "perhaps".
//!
//! What holds, and what the safety arguments refer to:
//!
//! - **M1** `headers` points behind the entries of a block of `buckets` buckets that the segment owns,
//!   with headers and counts initialized; or `buckets` is 0 and it points to [`NOTHING`].
//! - **M2** A slot holds an initialized entry that the segment owns exactly if its tag is not zero.
//!
//! No safety hangs on hashes: a key type that breaks the law of [`Hash`](core::hash::Hash) makes
//! entries hard to find, nothing else.
#![allow(unsafe_code)]

use alloc::alloc::{alloc, dealloc};
use alloc::boxed::Box;
use core::alloc::Layout;
use core::marker::PhantomData;
use core::ptr::NonNull;

use super::bucket::{Header, SLOTS, path, tags};
use super::error::TryReserveError;
use super::shell::{Shell, empty_box, fill};
use super::slot::SlotId;
use crate::probes::Observer;
use crate::raw::prefetch::prefetch;

/// A larger entry is boxed, and its slot holds the pointer: else the free slots of a bucket would
/// weigh too much, and moving entries would take too long.
const INLINE: usize = 64;

/// Bytes of a cache line, to which a block is aligned: enough for every entry that is inline.
const LINE: usize = 64;

/// The header and the count of a segment without buckets.
static NOTHING: Header = Header::FREE;

pub(super) struct Segment<T> {
    headers: NonNull<Header>,
    buckets: u32,
    owns: PhantomData<T>,
}

// SAFETY: a segment owns its block and its entries, like a vector.
unsafe impl<T: Send> Send for Segment<T> {}
// SAFETY: nothing in a segment changes through a shared reference.
unsafe impl<T: Sync> Sync for Segment<T> {}

/// What a home says of a hash.
pub(super) enum Glance<'a, T> {
    /// There is an entry that is the right one, but for one in fifty.
    Perhaps(SlotId, &'a T),
    /// There is no such entry.
    Absent,
    /// If there is one, it is behind another bucket.
    Elsewhere,
}

impl<T> Segment<T> {
    const IS_INLINE: bool = size_of::<T>() <= INLINE && align_of::<T>() <= INLINE;
    /// Bytes of a slot.
    const SLOT: usize = if Self::IS_INLINE { size_of::<T>() } else { size_of::<Box<T>>() };
    /// Bytes of a bucket.
    pub(super) const BUCKET: usize = SLOTS * Self::SLOT + size_of::<Header>() + 1;
    /// Bytes that an entry takes elsewhere.
    pub(super) const BOX: usize = if Self::IS_INLINE { 0 } else { size_of::<T>() };

    /// A segment without buckets. Allocates nothing.
    pub(super) const fn new() -> Self {
        // SAFETY: the address of a static is not null.
        let headers = unsafe { NonNull::new_unchecked((&raw const NOTHING).cast_mut()) };
        Self { headers, buckets: 0, owns: PhantomData }
    }

    /// An empty segment.
    pub(super) fn with_buckets(buckets: usize) -> Result<Self, TryReserveError> {
        if buckets == 0 {
            return Ok(Self::new());
        }
        let count = u32::try_from(buckets).map_err(|_| TryReserveError::OVERFLOW)?;
        let layout = Self::layout(buckets)?;
        // SAFETY: the layout has a size: a bucket has a header.
        let block = unsafe { alloc(layout) };
        let block = NonNull::new(block).ok_or(TryReserveError::memory(layout))?;
        // SAFETY: the entries of the buckets are in the block.
        let headers = unsafe { block.add(buckets * SLOTS * Self::SLOT) };
        // SAFETY: headers and counts fill the block from here on.
        unsafe { headers.write_bytes(0, buckets * (size_of::<Header>() + 1)) };
        Ok(Self { headers: headers.cast(), buckets: count, owns: PhantomData })
    }

    fn layout(buckets: usize) -> Result<Layout, TryReserveError> {
        let bytes = buckets.checked_mul(Self::BUCKET).ok_or(TryReserveError::OVERFLOW)?;
        Layout::from_size_align(bytes, LINE).map_err(|_| TryReserveError::OVERFLOW)
    }

    /// Number of buckets.
    #[inline]
    pub(super) fn buckets(&self) -> usize {
        self.buckets as usize
    }

    /// Whether both are the same segment: one that the directory shows twice.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.headers == other.headers
    }

    /// Number of entries. O(buckets).
    pub(super) fn count(&self) -> usize {
        (0..self.buckets()).map(|bucket| self.header(bucket).full().count()).sum()
    }

    #[inline]
    pub(super) fn home(&self, path: u64) -> usize {
        (((path & 0xffff_ffff) * u64::from(self.buckets)) >> 32) as usize
    }

    /// How many buckets behind the home of this path a bucket is.
    pub(super) fn distance(&self, bucket: usize, path: u64) -> usize {
        (bucket + self.buckets() - self.home(path)) % self.buckets()
    }

    /// The bucket behind this one, round the end.
    #[inline]
    pub(super) fn behind(&self, bucket: usize) -> usize {
        if bucket + 1 == self.buckets() { 0 } else { bucket + 1 }
    }

    #[inline]
    fn header_at(&self, bucket: usize) -> *mut Header {
        self.headers.as_ptr().wrapping_add(bucket)
    }

    /// The address of a count: behind the headers.
    #[inline]
    fn passed_at(&self, bucket: usize) -> *mut u8 {
        self.header_at(self.buckets()).cast::<u8>().wrapping_add(bucket)
    }

    #[inline]
    pub(super) fn header(&self, bucket: usize) -> Header {
        debug_assert!(bucket < self.buckets().max(1));
        // SAFETY: M1; without buckets, bucket 0 is `NOTHING`.
        unsafe { self.header_at(bucket).read() }
    }

    #[inline]
    fn set_header(&mut self, bucket: usize, header: Header) {
        assert!(bucket < self.buckets());
        // SAFETY: M1, and the segment has this bucket.
        unsafe { self.header_at(bucket).write(header) };
    }

    #[inline]
    pub(super) fn passed(&self, bucket: usize) -> u8 {
        debug_assert!(bucket < self.buckets().max(1));
        // SAFETY: M1: the counts are behind the headers; without buckets, this is in `NOTHING`.
        unsafe { self.passed_at(bucket).read() }
    }

    fn set_passed(&mut self, bucket: usize, passed: u8) {
        assert!(bucket < self.buckets());
        // SAFETY: M1, and the segment has this bucket.
        unsafe { self.passed_at(bucket).write(passed) };
    }

    /// The address of a slot. It is below `headers` in the block, if the segment has the bucket.
    #[inline]
    fn slot(&self, bucket: usize, slot: usize) -> *mut u8 {
        let number = bucket * SLOTS + slot + 1;
        self.headers.as_ptr().cast::<u8>().wrapping_sub(number * Self::SLOT)
    }

    /// The address of an entry.
    ///
    /// # Safety
    ///
    /// The slot is full.
    #[inline]
    pub(super) unsafe fn entry(&self, bucket: usize, slot: usize) -> *mut T {
        let slot = self.slot(bucket, slot);
        if Self::IS_INLINE {
            slot.cast()
        } else {
            // SAFETY: M2; a slot of this type holds the pointer of a box.
            unsafe { slot.cast::<*mut T>().read() }
        }
    }

    /// The entry of this hash for which `is` says so, and where it is.
    #[inline]
    fn search(
        &self,
        hash: u64,
        path: u64,
        mut is: impl FnMut(&T) -> bool,
        observer: &mut impl Observer,
    ) -> Option<(SlotId, &T)> {
        let mut bucket = self.home(path);
        let mut distance = 0;
        loop {
            observer.node();
            for slot in self.header(bucket).matches(tags(hash)) {
                observer.entry();
                // SAFETY: only full slots match.
                let entry = unsafe { self.entry(bucket, slot) };
                // SAFETY: M2, and the reference lives as long as the one to the segment.
                let entry = unsafe { &*entry };
                if is(entry) {
                    return Some((SlotId::new(bucket, slot, distance), entry));
                }
            }
            distance += 1;
            if self.passed(bucket) == 0 || distance >= self.buckets() {
                return None;
            }
            bucket = self.behind(bucket);
        }
    }

    /// The entry of this hash for which `is` says so.
    pub(super) fn find(
        &self,
        hash: u64,
        path: u64,
        is: impl FnMut(&T) -> bool,
        observer: &mut impl Observer,
    ) -> Option<&T> {
        self.search(hash, path, is, observer).map(|(_, entry)| entry)
    }

    /// Where the entry of this hash is for which `is` says so.
    #[cold]
    #[inline(never)]
    pub(super) fn locate(
        &self,
        hash: u64,
        path: u64,
        is: impl FnMut(&T) -> bool,
    ) -> Option<SlotId> {
        self.search(hash, path, is, &mut ()).map(|(spot, _)| spot)
    }

    /// The bucket in which a search of this path begins, its header asked for.
    #[inline]
    pub(super) fn prefetch_home(&self, path: u64) -> usize {
        let home = self.home(path);
        prefetch(self.header_at(home));
        home
    }

    /// The first entry in a bucket that may have this hash.
    #[inline]
    fn first_match(&self, hash: u64, bucket: usize) -> Option<(usize, &T)> {
        let slot = self.header(bucket).matches(tags(hash)).next()?;
        // SAFETY: only full slots match.
        let entry = unsafe { self.entry(bucket, slot) };
        // SAFETY: M2, and the reference lives as long as the one to the segment.
        Some((slot, unsafe { &*entry }))
    }

    /// The same, all of its lines asked for. Nothing if entries are boxed: that would mean to wait.
    #[inline]
    pub(super) fn prefetch_match(&self, hash: u64, bucket: usize) -> Option<&T> {
        if !Self::IS_INLINE {
            let slot = self.header(bucket).matches(tags(hash)).next()?;
            prefetch(self.slot(bucket, slot));
            return None;
        }
        let (_, entry) = self.first_match(hash, bucket)?;
        prefetch(entry);
        if Self::SLOT > 1 && LINE % Self::SLOT != 0 {
            prefetch(core::ptr::from_ref(entry).wrapping_byte_add(Self::SLOT - 1));
        }
        Some(entry)
    }

    /// What the home of this path says of this hash without a look at any entry.
    #[inline]
    pub(super) fn glance(&self, hash: u64, path: u64) -> Glance<'_, T> {
        let home = self.home(path);
        match self.first_match(hash, home) {
            Some((slot, entry)) => Glance::Perhaps(SlotId::new(home, slot, 0), entry),
            None if self.passed(home) == 0 => Glance::Absent,
            None => Glance::Elsewhere,
        }
    }

    /// The first entry in the home of this path that may have this hash, to change.
    #[inline]
    pub(super) fn first_mut(&mut self, hash: u64, path: u64) -> Option<&mut T> {
        let home = self.home(path);
        let slot = self.header(home).matches(tags(hash)).next()?;
        // SAFETY: only full slots match.
        let entry = unsafe { self.entry(home, slot) };
        // SAFETY: M2, and the reference is the only one, as that to the segment is.
        Some(unsafe { &mut *entry })
    }

    /// Whether there is an entry at `spot`.
    #[inline]
    fn has(&self, spot: SlotId) -> bool {
        spot.bucket() < self.buckets() && self.header(spot.bucket()).full().contains(spot.slot())
    }

    /// The entry at `spot`.
    #[inline]
    pub(super) fn get(&self, spot: SlotId) -> Option<&T> {
        // SAFETY: the slot is full, as has just been asked.
        let entry = self.has(spot).then(|| unsafe { self.entry(spot.bucket(), spot.slot()) })?;
        // SAFETY: M2, and the reference lives as long as the one to the segment.
        Some(unsafe { &*entry })
    }

    /// The entry at `spot`, to change.
    #[inline]
    pub(super) fn get_mut(&mut self, spot: SlotId) -> Option<&mut T> {
        // SAFETY: the slot is full, as has just been asked.
        let entry = self.has(spot).then(|| unsafe { self.entry(spot.bucket(), spot.slot()) })?;
        // SAFETY: M2, and the reference is the only one, as that to the segment is.
        Some(unsafe { &mut *entry })
    }

    /// Takes out the entry at `spot`.
    #[inline]
    pub(super) fn take(&mut self, spot: SlotId) -> Option<T> {
        if !self.has(spot) {
            return None;
        }
        let (bucket, slot) = (spot.bucket(), spot.slot());
        if spot.distance() > 0 {
            let home = (bucket + self.buckets() - spot.distance()) % self.buckets();
            self.no_longer_passes(home, bucket);
        }
        // SAFETY: the slot is full, as has just been asked.
        let entry = unsafe { self.entry(bucket, slot) };
        self.set_header(bucket, self.header(bucket).without(slot));
        // SAFETY: the entry was initialized (M2), and with its tag gone it is nobody's but ours.
        Some(unsafe { Self::unbox(entry) })
    }

    /// Counts down in every bucket from one to the one before another.
    fn no_longer_passes(&mut self, from: usize, to: usize) {
        let mut bucket = from;
        while bucket != to {
            // A count of zero here is the work of a key type whose hashes change.
            if let passed @ 1..=254 = self.passed(bucket) {
                self.set_passed(bucket, passed - 1);
            }
            bucket = self.behind(bucket);
        }
    }

    /// Moves an entry of this hash to a bucket that it has passed, if there are both.
    pub(super) fn move_back(&mut self, from: SlotId, to: usize, hash: u64) {
        let free = self.header(to).free().next();
        let Some(slot) = free.filter(|_| self.has(from) && to != from.bucket()) else { return };
        let (source, target) = (self.slot(from.bucket(), from.slot()), self.slot(to, slot));
        // SAFETY: two slots of this segment, which are not the same: the one is full, the other free.
        // The tags say next that the entry is in the other (M2).
        unsafe { target.copy_from_nonoverlapping(source, Self::SLOT) };
        self.set_header(from.bucket(), self.header(from.bucket()).without(from.slot()));
        self.set_header(to, self.header(to).with(slot, tags(hash)));
        self.no_longer_passes(to, from.bucket());
    }

    /// The entry at an address where one was, which becomes free.
    ///
    /// # Safety
    ///
    /// `entry` is the address of an initialized entry, in a slot or in a box of its own, and is not
    /// used again.
    unsafe fn unbox(entry: *mut T) -> T {
        if Self::IS_INLINE {
            // SAFETY: initialized, and not used again.
            unsafe { entry.read() }
        } else {
            // SAFETY: boxed entries come from `Box::into_raw`.
            *unsafe { Box::from_raw(entry) }
        }
    }

    /// Whether the home of this path has a free slot.
    #[inline]
    pub(super) fn has_free(&self, path: u64) -> bool {
        // A segment without buckets looks as if it had one.
        self.buckets > 0 && self.header(self.home(path)).free().next().is_some()
    }

    /// Buckets from the home of this path to the first with a free slot; nothing if all are full.
    #[inline]
    pub(super) fn distance_to_free(&self, path: u64) -> Option<usize> {
        let mut bucket = self.home(path);
        for distance in 0..self.buckets() {
            if self.header(bucket).free().next().is_some() {
                return Some(distance);
            }
            bucket = self.behind(bucket);
        }
        None
    }

    /// The shell of an entry, if entries are boxed.
    pub(super) fn shell() -> Result<Shell<T>, TryReserveError> {
        if Self::IS_INLINE { Ok(None) } else { empty_box().map(Some) }
    }

    /// Puts in an entry, without asking whether it is there. The shell is for this entry.
    ///
    /// # Panics
    ///
    /// If the segment is full or there is no shell, which would be a mistake of this crate.
    #[inline]
    pub(super) fn insert(&mut self, hash: u64, path: u64, shell: Shell<T>, entry: T) -> SlotId {
        if Self::IS_INLINE {
            let (spot, slot) = self.occupy(hash, path);
            // SAFETY: the slot is one of this segment's, for this type, and was free.
            unsafe { slot.cast::<T>().write(entry) };
            spot
        } else {
            let entry = fill(shell.expect("a boxed entry has a shell"), entry);
            let (spot, slot) = self.occupy(hash, path);
            // SAFETY: the slot is one of this segment's, for a pointer, and was free.
            unsafe { slot.cast::<*mut T>().write(Box::into_raw(entry)) };
            spot
        }
    }

    /// Takes the first free slot from the home of this path on. Until the entry is written, M2 does not
    /// hold.
    #[inline]
    fn occupy(&mut self, hash: u64, path: u64) -> (SlotId, *mut u8) {
        let mut bucket = self.home(path);
        for distance in 0..self.buckets() {
            let header = self.header(bucket);
            if let Some(slot) = header.free().next() {
                self.set_header(bucket, header.with(slot, tags(hash)));
                return (SlotId::new(bucket, slot, distance), self.slot(bucket, slot));
            }
            self.set_passed(bucket, self.passed(bucket).saturating_add(1));
            bucket = self.behind(bucket);
        }
        unreachable!("the segment has a free slot");
    }

    /// Moves all entries into other segments: each into that whose number `choose` says of its path.
    /// `hashes` are those of the entries in the order of their slots.
    ///
    /// # Panics
    ///
    /// If there are fewer hashes than entries, or the segment chosen is full: both are mistakes of
    /// this crate. Entries are leaked then.
    pub(super) fn pour<const N: usize>(
        mut self,
        hashes: &[u64],
        to: [&mut Self; N],
        choose: impl Fn(u64) -> usize,
    ) {
        let mut hashes = hashes.iter();
        for bucket in 0..self.buckets() {
            let full = self.header(bucket).full();
            self.set_header(bucket, Header::FREE);
            for slot in full {
                let hash = *hashes.next().expect("every entry has a hash");
                let path = path(hash);
                let (_, free) = to[choose(path)].occupy(hash, path);
                // SAFETY: slots of one type, in two blocks, since both segments are borrowed. The
                // entry (M2) is no longer in this one, whose tags are gone, and in the other now.
                unsafe { free.copy_from_nonoverlapping(self.slot(bucket, slot), Self::SLOT) };
            }
        }
    }

    /// Where the first entry of a bucket is, as if it had passed nobody.
    pub(super) fn first_in(&self, bucket: usize) -> Option<SlotId> {
        assert!(bucket < self.buckets());
        let slot = self.header(bucket).full().next()?;
        Some(SlotId::new(bucket, slot, 0))
    }

    /// Takes out the next entry from a bucket on, which then is the one that it was in. Forgets whom
    /// it has passed.
    pub(super) fn pop(&mut self, bucket: &mut usize) -> Option<T> {
        while *bucket < self.buckets() {
            if let Some(spot) = self.first_in(*bucket) {
                return self.take(spot);
            }
            *bucket += 1;
        }
        None
    }

    /// A segment with clones of the entries in the same places.
    pub(super) fn try_clone(&self) -> Result<Self, TryReserveError>
    where
        T: Clone,
    {
        let mut clone = Self::with_buckets(self.buckets())?;
        for bucket in 0..self.buckets() {
            for slot in self.header(bucket).full() {
                // SAFETY: the slot is full.
                let entry = unsafe { self.entry(bucket, slot) };
                // SAFETY: M2. If `clone` panics, M2 holds of the clone, and it is dropped.
                let entry = unsafe { &*entry }.clone();
                let to = clone.slot(bucket, slot);
                if Self::IS_INLINE {
                    // SAFETY: a slot for this type, which is free.
                    unsafe { to.cast::<T>().write(entry) };
                } else {
                    // SAFETY: a slot for a pointer, which is free.
                    unsafe { to.cast::<*mut T>().write(Box::into_raw(Box::new(entry))) };
                }
                clone.set_header(bucket, self.header(bucket).up_to(slot));
            }
            clone.set_passed(bucket, self.passed(bucket));
        }
        Ok(clone)
    }

    /// Takes a bucket's entries out of the sight of the segment, and drops them.
    fn drop_entries(&mut self, from: usize) {
        /// Goes on with the next bucket when an entry panics on its way.
        struct Rest<'a, T>(&'a mut Segment<T>, usize);
        impl<T> Drop for Rest<'_, T> {
            fn drop(&mut self) {
                if self.1 < self.0.buckets() {
                    self.0.drop_entries(self.1);
                }
            }
        }
        let mut rest = Rest(self, from);
        while let Some(entry) = rest.0.pop(&mut rest.1) {
            drop(entry);
        }
    }
}

impl<T> Drop for Segment<T> {
    fn drop(&mut self) {
        /// Frees the block, even if an entry panics.
        struct Block(*mut u8, Layout);
        impl Drop for Block {
            fn drop(&mut self) {
                // SAFETY: allocated with this layout by `with_buckets`, and owned by the segment that
                // is being dropped.
                unsafe { dealloc(self.0, self.1) };
            }
        }
        if self.buckets == 0 {
            return;
        }
        let start = self.slot(self.buckets() - 1, SLOTS - 1);
        let layout = Self::layout(self.buckets()).expect("it was allocated with it");
        let _block = Block(start, layout);
        if core::mem::needs_drop::<T>() || !Self::IS_INLINE {
            self.drop_entries(0);
        }
    }
}
