//! Directories of extendible hashing: a word per shard refers to the directory, and its entries to
//! the segments, of any type `P`.
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
//! - **D1** A directory has a power of two of entries, at least two. A segment of depth `s` has the
//!   `2^(d − s)` entries whose index has its prefix.
//! - **D2** Entries are stored by the lock holder, in the directory that is published: so a reader
//!   that has loaded it before it was replaced finds the segments of that time.
#![allow(unsafe_code)]

use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ptr;

use super::memory::{ALIGN, allocate, free};
use super::sync::{AtomicPtr, Ordering};
use crate::table::error::TryReserveError;

/// The least number of entries that are allocated: so the address of a directory with a shift is
/// still within it, and leak detectors, which search for such addresses, find it.
const LEAST: usize = 64 / size_of::<usize>();

/// Returns the number of entries that are allocated for a directory of a depth.
const fn allocated(depth: u32) -> usize {
    if 1 << depth < LEAST { LEAST } else { 1 << depth }
}

/// Returns the allocated bytes of a directory of a depth.
pub(super) const fn bytes(depth: u32) -> usize {
    allocated(depth) * size_of::<usize>()
}

/// The root of a shard: an atomic pointer to its directory.
pub(super) struct Root<P>(AtomicPtr<AtomicPtr<P>>);

/// A tagged pointer to a directory: the low six bits are the shift of a mixed hash that yields the
/// index of its entry.
#[derive(Debug)]
pub(super) struct DirectoryPtr<P>(*mut AtomicPtr<P>);

impl<P> Clone for DirectoryPtr<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for DirectoryPtr<P> {}

/// A directory that is not published yet. Frees it, and not its segments.
pub(super) struct DirectoryBox<P>(DirectoryPtr<P>);

impl<P> Drop for DirectoryBox<P> {
    fn drop(&mut self) {
        // SAFETY: allocated in `new`, and not published.
        unsafe { self.0.free() };
    }
}

impl<P> DirectoryBox<P> {
    /// Allocates a directory of a depth, at least 1, whose entries are the results of `segment`.
    pub(super) fn new(
        depth: u32,
        segment: impl Fn(usize) -> *mut P,
    ) -> Result<Self, TryReserveError> {
        const { assert!(ALIGN > DirectoryPtr::<P>::SHIFT && bytes(1) > DirectoryPtr::<P>::SHIFT) };
        debug_assert!(depth > 0, "D1");
        let entry = |index| if index >> depth == 0 { segment(index) } else { ptr::null_mut() };
        let first = allocate(allocated(depth), |index| AtomicPtr::new(entry(index)))?.as_ptr();
        let shift = 64 - depth as usize;
        Ok(Self(DirectoryPtr(first.map_addr(|address| address | shift))))
    }

    /// Returns the allocated bytes.
    pub(super) fn allocation_size(&self) -> usize {
        self.0.allocation_size()
    }

    fn into_ptr(self) -> DirectoryPtr<P> {
        ManuallyDrop::new(self).0
    }
}

impl<P> DirectoryPtr<P> {
    /// The bits of the pointer that store the shift.
    const SHIFT: usize = 63;

    /// Returns the index of the entry of a mixed hash.
    #[inline(always)]
    fn index(self, mixed: u64) -> usize {
        // The remaining bits of the address are ignored: the shift is taken modulo 64.
        mixed.wrapping_shr(self.0.addr() as u32) as usize
    }

    #[inline(always)]
    fn first(self) -> *mut AtomicPtr<P> {
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

impl<P> Root<P> {
    /// Creates a root.
    pub(super) fn new(directory: DirectoryBox<P>) -> Self {
        Self(AtomicPtr::new(directory.into_ptr().0))
    }

    /// Returns the directory.
    ///
    /// # Safety
    ///
    /// During `'p` the calling thread is pinned, or has the lock of the shard.
    #[inline(always)]
    pub(super) unsafe fn directory<'p>(&self) -> Directory<'p, P> {
        // Acquire: pairs with the Release in `publish`: the entries of the directory are visible.
        Directory { at: DirectoryPtr(self.0.load(Ordering::Acquire)), pin: PhantomData }
    }

    /// Publishes a directory, for the lock holder. The former one has to be retired.
    pub(super) fn publish(&self, directory: DirectoryBox<P>) {
        // Release: pairs with the Acquire in `directory`.
        self.0.store(directory.into_ptr().0, Ordering::Release);
    }
}

/// A directory that is not freed during `'p`.
pub(super) struct Directory<'p, P> {
    at: DirectoryPtr<P>,
    pin: PhantomData<&'p AtomicPtr<P>>,
}

impl<P> Clone for Directory<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Directory<'_, P> {}

impl<'p, P> Directory<'p, P> {
    pub(super) fn ptr(self) -> DirectoryPtr<P> {
        self.at
    }

    /// Returns the number of bits of a mixed hash that select an entry.
    pub(super) fn depth(self) -> u32 {
        self.at.depth()
    }

    /// Returns the number of entries.
    pub(super) fn len(self) -> usize {
        1 << self.depth()
    }

    #[inline(always)]
    fn entry(self, index: usize) -> &'p AtomicPtr<P> {
        debug_assert!(index < self.len());
        // SAFETY: the index has as many bits as the directory has, so it is in bounds.
        let entry = unsafe { self.at.first().add(index) };
        // SAFETY: the directory is not freed during 'p.
        unsafe { &*entry }
    }

    /// Returns the pointer of an entry, whose index is less than the length.
    #[inline(always)]
    pub(super) fn at(self, index: usize) -> *mut P {
        // Acquire: pairs with the Release in `set`: the segment is visible.
        self.entry(index).load(Ordering::Acquire)
    }

    /// Returns the pointer for a mixed hash.
    #[inline(always)]
    pub(super) fn segment(self, mixed: u64) -> *mut P {
        self.at(self.at.index(mixed))
    }

    /// Iterates over the pointers to segments in the order of their prefixes; `depth` returns the
    /// depth of one.
    pub(super) fn segments(self, depth: impl Fn(*mut P) -> u32) -> impl Iterator<Item = *mut P> {
        let mut next = 0;
        core::iter::from_fn(move || {
            (next < self.len()).then(|| {
                let segment = self.at(next);
                next += 1 << (self.depth() - depth(segment));
                segment
            })
        })
    }

    /// Returns the indices of the entries with the prefix of a mixed hash, of `depth` bits.
    pub(super) fn span(self, mixed: u64, depth: u32) -> core::ops::Range<usize> {
        let count = 1 << (self.depth() - depth);
        let first = self.at.index(mixed) & !(count - 1);
        first..first + count
    }

    /// Publishes a segment in all entries with the prefix of a mixed hash, of `depth` bits.
    pub(super) fn set(self, mixed: u64, depth: u32, segment: *mut P) {
        for index in self.span(mixed, depth) {
            // Release: pairs with the Acquire in `at`.
            self.entry(index).store(segment, Ordering::Release);
        }
    }

    /// Allocates a copy of another depth, to which the segments are not deeper.
    pub(super) fn resized(self, depth: u32) -> Result<DirectoryBox<P>, TryReserveError> {
        DirectoryBox::new(depth, |index| self.at(self.source(index, depth)))
    }

    /// Returns the index of the entry from which one of a copy of a depth is copied.
    pub(super) fn source(self, index: usize, depth: u32) -> usize {
        match depth.checked_sub(self.depth()) {
            Some(more) => index >> more,
            None => index << (self.depth() - depth),
        }
    }
}
