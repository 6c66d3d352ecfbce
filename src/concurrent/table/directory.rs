//! The directories of a table: those of `concurrent/directory.rs`, with segments for types of keys
//! and values.
#![allow(unsafe_code)]

use core::marker::PhantomData;

use super::segment::{Segment, SegmentBox, SegmentPtr};
use crate::concurrent::directory::{self, DirectoryBox};
use crate::concurrent::sync::{AtomicPtr, AtomicU64};
use crate::table::error::TryReserveError;

/// A pointer to a directory.
pub(super) type DirectoryPtr = directory::DirectoryPtr<AtomicU64>;

/// The root of a shard: an atomic pointer to its directory. Invariant in `K` and `V`, as entries
/// are inserted through shared references.
///
/// ```compile_fail,E0308
/// type Table<F> = flowtable::ConcurrentTable<u8, F>;
/// fn narrow(table: &Table<for<'a> fn(&'a str)>) -> &Table<fn(&'static str)> {
///     table
/// }
/// ```
pub(super) struct Root<K, V>(directory::Root<AtomicU64>, PhantomData<AtomicPtr<(K, V)>>);

impl<K, V> Root<K, V> {
    /// Bytes of a directory with one empty segment.
    pub(super) const EMPTY_BYTES: usize = directory::bytes(1) + SegmentPtr::bytes::<K, V>(1);

    /// Creates a directory with one empty segment.
    pub(super) fn new() -> Result<Self, TryReserveError> {
        let segment = SegmentBox::<K, V>::new(1, 0, 0)?;
        let at = segment.segment().ptr();
        let directory = DirectoryBox::new(1, |_| at.0)?;
        segment.into_ptr();
        Ok(Self(directory::Root::new(directory), PhantomData))
    }

    /// Returns the directory.
    ///
    /// # Safety
    ///
    /// During `'p` the calling thread is pinned, or has the lock of the shard.
    #[inline(always)]
    pub(super) unsafe fn directory<'p>(&self) -> Directory<'p, K, V> {
        // SAFETY: by the contract.
        Directory { of: unsafe { self.0.directory() }, types: PhantomData }
    }

    /// Publishes a directory of a depth, for the lock holder. Entries are those of `directory`,
    /// which has to be retired.
    pub(super) fn resize(
        &self,
        directory: Directory<'_, K, V>,
        depth: u32,
    ) -> Result<(), TryReserveError> {
        self.0.publish(directory.of.resized(depth)?);
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

/// A directory that is not freed during `'p`, like its segments.
pub(super) struct Directory<'p, K, V> {
    of: directory::Directory<'p, AtomicU64>,
    types: PhantomData<(K, V)>,
}

impl<K, V> Clone for Directory<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for Directory<'_, K, V> {}

impl<'p, K, V> Directory<'p, K, V> {
    pub(super) fn ptr(self) -> DirectoryPtr {
        self.of.ptr()
    }

    /// Returns the number of bits of a mixed hash that select an entry.
    pub(super) fn depth(self) -> u32 {
        self.of.depth()
    }

    /// Returns the segment of a mixed hash.
    #[inline(always)]
    pub(super) fn segment(self, mixed: u64) -> Segment<'p, K, V> {
        // SAFETY: a segment is retired after its entries are replaced, and freed when all earlier
        // pins have ended; without a pin, the lock holder alone retires.
        unsafe { SegmentPtr(self.of.segment(mixed)).segment() }
    }

    /// Iterates over the segments in the order of their prefixes.
    pub(super) fn segments(self) -> impl Iterator<Item = Segment<'p, K, V>> {
        // SAFETY: as in `segment`.
        let segment = |at| unsafe { SegmentPtr(at).segment::<K, V>() };
        self.of.segments(move |at| segment(at).depth()).map(segment)
    }

    /// Returns the pointers of all entries.
    pub(super) fn entries(self) -> impl Iterator<Item = SegmentPtr> {
        (0..self.of.len()).map(move |index| SegmentPtr(self.of.at(index)))
    }

    /// Publishes a segment in all entries with the prefix of a mixed hash, of `depth` bits.
    pub(super) fn set(self, mixed: u64, depth: u32, segment: SegmentPtr) {
        self.of.set(mixed, depth, segment.0);
    }
}
