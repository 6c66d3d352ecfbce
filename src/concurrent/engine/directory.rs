//! Directories of extendible hashing: roots refer to the directory of their shard, and its entries
//! to the segments.
//!
//! ```text
//!     mixed hash  d bits              …          6 bits
//!                 directory entry                shard
//!
//!                 directory  [ A  A  B0 B1 C0 C1 D  D ]   d = 3
//! ```
//!
//! An entry is replaced in place. Only when a segment splits that has one entry, a directory of
//! twice the length is published; the old one is not written any more.
//!
//! - **D1** A directory has a power of two of entries, at least two. A segment of depth `6 + s` has
//!   the `2^(d − s)` entries whose index has its prefix. A segment of a depth below 6 has all
//!   entries of the directory of its shard, to which all roots refer that have its bits.
//! - **D2** Entries are stored by the lock holder, in the directory that is published: so a reader
//!   that has loaded it before it was replaced finds the segments of that time. A shard that is
//!   split leaves its directory as it is, and both halves have new ones.
#![allow(unsafe_code)]

use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ptr;

use super::segment::{Segment, SegmentBox, SegmentPtr};
use super::storage::Storage;
use crate::concurrent::memory::{ALIGN, allocate, free};
use crate::concurrent::policy::SHARD_BITS;
use crate::concurrent::sync::{AtomicPtr, Ordering};
use crate::table::error::TryReserveError;

/// An entry of a directory: a [`SegmentPtr`].
type Entry = AtomicPtr<u8>;

/// The least number of entries that are allocated: so the address of a directory with a shift is
/// still within it, and leak detectors, which search for such addresses, find it.
const LEAST: usize = 64 / size_of::<usize>();

/// Returns the number of entries that are allocated for a directory of a depth.
const fn allocated(depth: u32) -> usize {
    if 1 << depth < LEAST { LEAST } else { 1 << depth }
}

/// Returns the allocated bytes of a directory of a depth.
const fn bytes(depth: u32) -> usize {
    allocated(depth) * size_of::<Entry>()
}

/// A tagged pointer to a directory: the low six bits are the shift of a mixed hash that yields the
/// index of its entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct DirectoryPtr(*mut Entry);

impl DirectoryPtr {
    /// The bits of the pointer that store the shift.
    const SHIFT: usize = 63;

    /// Returns the index of the entry of a mixed hash.
    #[inline]
    fn index(self, mixed: u64) -> usize {
        // The remaining bits of the address are ignored: the shift is taken modulo 64.
        mixed.wrapping_shr(self.0.addr() as u32) as usize
    }

    #[inline]
    fn first(self) -> *mut Entry {
        self.0.map_addr(|address| address & !Self::SHIFT)
    }

    fn depth(self) -> u32 {
        64 - (self.0.addr() & Self::SHIFT) as u32
    }

    /// Returns the allocated bytes.
    pub(super) fn allocation_size(self) -> usize {
        bytes(self.depth())
    }

    /// Frees the directory without its segments.
    ///
    /// # Safety
    ///
    /// It is not used any more, and is freed once.
    pub(super) unsafe fn free(self) {
        // SAFETY: by the contract; allocated in `DirectoryBox::new` with this length.
        unsafe { free(self.first(), allocated(self.depth())) };
    }
}

/// A directory that is not published yet. Frees it, and not its segments.
pub(super) struct DirectoryBox(DirectoryPtr);

impl Drop for DirectoryBox {
    fn drop(&mut self) {
        // SAFETY: allocated in `new`, and not published.
        unsafe { self.0.free() };
    }
}

impl DirectoryBox {
    /// Allocates a directory of a depth, at least 1, whose entries are the results of `segment`.
    fn new(depth: u32, segment: impl Fn(usize) -> SegmentPtr) -> Result<Self, TryReserveError> {
        const { assert!(ALIGN > DirectoryPtr::SHIFT && bytes(1) > DirectoryPtr::SHIFT) };
        debug_assert!(depth > 0, "D1");
        let entry = |index| if index >> depth == 0 { segment(index).0 } else { ptr::null_mut() };
        let first = allocate(allocated(depth), |index| Entry::new(entry(index)))?.as_ptr();
        let shift = 64 - depth as usize;
        Ok(Self(DirectoryPtr(first.map_addr(|address| address | shift))))
    }

    /// Allocates the directory of a shard of one segment.
    pub(super) fn of<C: Storage>(segment: &SegmentBox<C>) -> Result<Self, TryReserveError> {
        Self::new(1, |_| segment.segment().ptr())
    }

    /// Returns the pointer, for publication.
    pub(super) fn into_ptr(self) -> DirectoryPtr {
        ManuallyDrop::new(self).0
    }
}

/// The root of a shard: an atomic pointer to its directory. Invariant in the storage, as entries
/// are inserted through shared references.
///
/// ```compile_fail,E0308
/// type Table<F> = flowtable::ConcurrentTable<u8, F>;
/// fn narrow(table: &Table<for<'a> fn(&'a str)>) -> &Table<fn(&'static str)> {
///     table
/// }
/// ```
pub(super) struct Root<C>(AtomicPtr<Entry>, PhantomData<AtomicPtr<C>>);

impl<C: Storage> Root<C> {
    pub(super) fn new(directory: DirectoryPtr) -> Self {
        Self(AtomicPtr::new(directory.0), PhantomData)
    }

    /// Returns the directory.
    ///
    /// # Safety
    ///
    /// During `'p` the calling thread is pinned, or has the lock of the shard, or an exclusive
    /// reference to the table.
    #[inline]
    pub(super) unsafe fn directory<'p>(&self) -> Directory<'p, C> {
        // Acquire: pairs with the Release in `publish`: the entries of the directory are visible.
        Directory { at: DirectoryPtr(self.0.load(Ordering::Acquire)), pin: PhantomData }
    }

    /// Publishes a directory, for the lock holder. The former one has to be retired, once all its
    /// roots are replaced.
    pub(super) fn publish(&self, directory: DirectoryPtr) {
        // Release: pairs with the Acquire in `directory`.
        self.0.store(directory.0, Ordering::Release);
    }

    /// Frees the directory and its segments.
    ///
    /// # Safety
    ///
    /// No thread uses them any more, they are freed once, and the root is not used again.
    pub(super) unsafe fn free(&self) {
        // SAFETY: by the contract.
        let directory = unsafe { self.directory() };
        for segment in directory.segments() {
            // SAFETY: by the contract; the iterator has read its depth before.
            unsafe { segment.ptr().free::<C>() };
        }
        // SAFETY: by the contract.
        unsafe { directory.at.free() };
    }
}

/// A directory that is not freed during `'p`, like its segments.
pub(super) struct Directory<'p, C> {
    at: DirectoryPtr,
    pin: PhantomData<(&'p Entry, C)>,
}

impl<C> Clone for Directory<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Directory<'_, C> {}

impl<'p, C: Storage> Directory<'p, C> {
    pub(super) fn ptr(self) -> DirectoryPtr {
        self.at
    }

    /// Returns the number of bits of a mixed hash that select an entry.
    pub(super) fn depth(self) -> u32 {
        self.at.depth()
    }

    #[inline]
    fn entry(self, index: usize) -> &'p Entry {
        debug_assert!(index >> self.depth() == 0);
        let entry = self.at.first().wrapping_add(index);
        // SAFETY: the index has as many bits as the directory has, so it is in bounds; the
        // directory is not freed during 'p.
        unsafe { &*entry }
    }

    /// Returns the segment of an entry, whose index is less than the length.
    #[inline]
    fn at(self, index: usize) -> Segment<'p, C> {
        // Acquire: pairs with the Release in `set`: the segment is visible.
        let segment = SegmentPtr(self.entry(index).load(Ordering::Acquire));
        // SAFETY: a segment is retired after its entries are replaced, and freed when all earlier
        // pins have ended; without a pin, the lock holder alone retires.
        unsafe { segment.segment() }
    }

    /// Returns the segment of a mixed hash.
    #[inline]
    pub(super) fn segment(self, mixed: u64) -> Segment<'p, C> {
        self.at(self.at.index(mixed))
    }

    /// Returns the pointers of all entries.
    pub(super) fn entries(self) -> impl Iterator<Item = SegmentPtr> {
        (0..1 << self.depth()).map(move |index| self.at(index).ptr())
    }

    /// Iterates over the segments in the order of their prefixes.
    pub(super) fn segments(self) -> impl Iterator<Item = Segment<'p, C>> {
        let mut next = 0;
        core::iter::from_fn(move || {
            (next >> self.depth() == 0).then(|| {
                let segment = self.at(next);
                next += self.span(segment.depth());
                segment
            })
        })
    }

    /// Returns the number of entries of a segment of a depth.
    pub(super) fn span(self, depth: u32) -> usize {
        1 << (self.depth() - depth.saturating_sub(SHARD_BITS))
    }

    /// Publishes a segment in all entries with the prefix of a mixed hash.
    pub(super) fn set(self, mixed: u64, depth: u32, segment: SegmentPtr) {
        let count = self.span(depth);
        let first = self.at.index(mixed) & !(count - 1);
        for index in first..first + count {
            // Release: pairs with the Acquire in `at`.
            self.entry(index).store(segment.0, Ordering::Release);
        }
    }

    /// Allocates a copy of another depth, to which the segments are not deeper.
    pub(super) fn resized(self, depth: u32) -> Result<DirectoryBox, TryReserveError> {
        let source = |index| match depth.checked_sub(self.depth()) {
            Some(more) => index >> more,
            None => index << (self.depth() - depth),
        };
        DirectoryBox::new(depth, |index| self.at(source(index)).ptr())
    }
}
