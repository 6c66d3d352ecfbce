//! Directories: a word per shard refers to the directory, and its entries to the segments.
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

use super::memory::{ALIGN, allocate, free};
use super::segment::{Segment, SegmentBox, SegmentPtr};
use crate::concurrent::sync::{AtomicPtr, AtomicU64, Ordering};
use crate::table::error::TryReserveError;

/// An entry of a directory.
type Entry = AtomicPtr<AtomicU64>;

/// The root of a shard: an atomic pointer to its directory. Invariant in `K` and `V`, as entries
/// are inserted through shared references.
///
/// ```compile_fail,E0308
/// type Table<F> = flowtable::ConcurrentTable<u8, F>;
/// fn narrow(table: &Table<for<'a> fn(&'a str)>) -> &Table<fn(&'static str)> {
///     table
/// }
/// ```
pub(super) struct Root<K, V>(AtomicPtr<Entry>, PhantomData<AtomicPtr<(K, V)>>);

/// A tagged pointer to a directory: the low six bits are the shift of a mixed hash that yields the
/// index of its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DirectoryPtr(*mut Entry);

/// A directory that is not published yet. Frees it, and not its segments.
struct DirectoryBox(DirectoryPtr);

impl Drop for DirectoryBox {
    fn drop(&mut self) {
        // SAFETY: allocated in `DirectoryPtr::allocate`, and not published.
        unsafe { self.0.free() };
    }
}

impl DirectoryPtr {
    /// The bits of the pointer that store the shift.
    const SHIFT: usize = 63;

    /// Allocates a directory of a depth, whose entries are the results of `segment`.
    fn allocate(
        depth: u32,
        segment: impl Fn(usize) -> SegmentPtr,
    ) -> Result<DirectoryBox, TryReserveError> {
        const { assert!(ALIGN > Self::SHIFT) };
        let first = allocate(1 << depth, |index| AtomicPtr::new(segment(index).0))?.as_ptr();
        let shift = 64 - depth as usize;
        Ok(DirectoryBox(Self(first.map_addr(|address| address | shift))))
    }

    /// Returns the index of the entry of a mixed hash.
    #[inline(always)]
    fn index(self, mixed: u64) -> usize {
        // The remaining bits of the address are ignored: the shift is taken modulo 64.
        mixed.wrapping_shr(self.0.addr() as u32) as usize
    }

    #[inline(always)]
    fn first(self) -> *mut Entry {
        self.0.map_addr(|address| address & !Self::SHIFT)
    }

    fn depth(self) -> u32 {
        64 - (self.0.addr() & Self::SHIFT) as u32
    }

    /// Returns the allocated bytes.
    pub(super) fn allocation_size(self) -> usize {
        size_of::<usize>() << self.depth()
    }

    /// Frees the directory without its segments.
    ///
    /// # Safety
    ///
    /// It is not used any more, and is freed once.
    pub(super) unsafe fn free(self) {
        // SAFETY: by the contract; allocated in `allocate` with this length.
        unsafe { free(self.first(), 1 << self.depth()) };
    }
}

impl<K, V> Root<K, V> {
    /// Bytes of a directory with one empty segment.
    pub(super) const EMPTY_BYTES: usize = 2 * size_of::<usize>() + SegmentPtr::bytes::<K, V>(1);

    /// Creates a directory with one empty segment.
    pub(super) fn new() -> Result<Self, TryReserveError> {
        let segment = SegmentBox::<K, V>::new(1, 0, 0)?;
        let at = segment.segment().ptr();
        let directory = DirectoryPtr::allocate(1, |_| at)?;
        segment.into_ptr();
        Ok(Self(AtomicPtr::new(core::mem::ManuallyDrop::new(directory).0.0), PhantomData))
    }

    /// Loads the pointer to the directory.
    #[inline(always)]
    fn load(&self) -> DirectoryPtr {
        // Acquire: pairs with the Release in `publish`: the entries of the directory are visible.
        DirectoryPtr(self.0.load(Ordering::Acquire))
    }

    /// Returns the directory.
    ///
    /// # Safety
    ///
    /// During `'p` the calling thread is pinned, or has the lock of the shard.
    #[inline(always)]
    pub(super) unsafe fn directory<'p>(&self) -> Directory<'p, K, V> {
        Directory { at: self.load(), types: PhantomData }
    }
}

/// A directory that is not freed during `'p`, like its segments.
pub(super) struct Directory<'p, K, V> {
    at: DirectoryPtr,
    types: PhantomData<(&'p AtomicU64, K, V)>,
}

impl<K, V> Clone for Directory<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for Directory<'_, K, V> {}

impl<'p, K, V> Directory<'p, K, V> {
    pub(super) fn ptr(self) -> DirectoryPtr {
        self.at
    }

    /// Returns the number of bits of a mixed hash that select an entry.
    pub(super) fn depth(self) -> u32 {
        self.at.depth()
    }

    #[inline(always)]
    fn entry(self, index: usize) -> &'p Entry {
        debug_assert!(index < 1 << self.depth());
        // SAFETY: the index has as many bits as the directory has, so it is in bounds.
        let entry = unsafe { self.at.first().add(index) };
        // SAFETY: the directory is not freed during 'p.
        unsafe { &*entry }
    }

    fn at(self, index: usize) -> SegmentPtr {
        // Acquire: pairs with the Release in `set`: the segment is visible.
        SegmentPtr(self.entry(index).load(Ordering::Acquire))
    }

    /// Returns the segment of a mixed hash.
    #[inline(always)]
    pub(super) fn segment(self, mixed: u64) -> Segment<'p, K, V> {
        // SAFETY: a segment is retired after its entries are replaced, and freed when all earlier
        // pins have ended; without a pin, the lock holder alone retires.
        unsafe { self.at(self.at.index(mixed)).segment() }
    }

    /// Iterates over the segments in the order of their prefixes.
    pub(super) fn segments(self) -> impl Iterator<Item = Segment<'p, K, V>> {
        let mut next = 0;
        core::iter::from_fn(move || {
            (next < 1 << self.depth()).then(|| {
                // SAFETY: as in `segment`.
                let segment = unsafe { self.at(next).segment::<K, V>() };
                next += 1 << (self.depth() - segment.depth());
                segment
            })
        })
    }

    /// Returns the pointers of all entries.
    pub(super) fn entries(self) -> impl Iterator<Item = SegmentPtr> {
        (0..1 << self.depth()).map(move |index| self.at(index))
    }

    /// Publishes a segment in all entries with the prefix of a mixed hash, of `depth` bits.
    pub(super) fn set(self, mixed: u64, depth: u32, segment: SegmentPtr) {
        let count = 1 << (self.depth() - depth);
        let first = self.at.index(mixed) & !(count - 1);
        for index in first..first + count {
            // Release: pairs with the Acquire in `at`.
            self.entry(index).store(segment.0, Ordering::Release);
        }
    }
}

impl<K, V> Root<K, V> {
    /// Publishes a directory of a depth, for the lock holder. Entries are those of `directory`,
    /// which has to be retired.
    pub(super) fn resize(
        &self,
        directory: Directory<'_, K, V>,
        depth: u32,
    ) -> Result<(), TryReserveError> {
        let source = |index: usize| match depth.checked_sub(directory.depth()) {
            Some(more) => index >> more,
            None => index << (directory.depth() - depth),
        };
        let new = DirectoryPtr::allocate(depth, |index| directory.at(source(index)))?;
        // Release: pairs with the Acquire in `load`.
        self.0.store(core::mem::ManuallyDrop::new(new).0.0, Ordering::Release);
        Ok(())
    }

    /// Frees the directory and its segments.
    ///
    /// # Safety
    ///
    /// No thread uses them any more, and the root is not used again.
    pub(super) unsafe fn free(&self) {
        // SAFETY: by the contract.
        let directory: Directory<'_, K, V> = unsafe { self.directory() };
        for segment in directory.segments() {
            // SAFETY: by the contract; the iterator has read its depth before.
            unsafe { segment.ptr().free::<K, V>() };
        }
        // SAFETY: by the contract.
        unsafe { directory.ptr().free() };
    }
}
