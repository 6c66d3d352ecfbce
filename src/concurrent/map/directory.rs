//! Directories: a word per shard refers to the directory, and its entries to the segments.
//!
//! ```text
//!     mixed hash  d bits              …          6 bits
//!                 directory entry                shard
//!
//!                 directory  [ A  A  B0 B1 C0 C1 D  D ]   d = 3
//! ```
//!
//! A directory is immutable. For a segment that grows or splits, a modified copy of the directory
//! is published: 512 entries for 16 million keys, little compared with the segment. So a reader of
//! a directory has consistent segments: each key belongs to exactly one of them.
//!
//! - **D1** A directory has a power of two of entries, at least two. A segment is shared by the
//!   entries whose index has its prefix: a power of two, adjacent.
#![allow(unsafe_code)]

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::array;
use core::ptr;

use crossbeam_epoch::Guard;

use super::segment::{Segment, SegmentPtr, Size};
use crate::concurrent::sync::{AtomicPtr, Ordering};

/// Directory entries of a cache line.
const ROW: usize = 64 / size_of::<SegmentPtr>();

/// Directory entries, aligned so that the low bits of the address can store a shift.
#[repr(C, align(64))]
struct Row([SegmentPtr; ROW]);

/// The root of a shard: an atomic pointer to its directory.
pub(super) struct Root(AtomicPtr<Row>);

/// A tagged pointer to a directory: the low bits are the shift of a mixed hash that yields the
/// index of its entry.
#[derive(Clone, Copy)]
pub(super) struct Address(*mut Row);

/// A directory under a pin.
#[derive(Clone, Copy)]
pub(super) struct Directory<'p> {
    segments: &'p [SegmentPtr],
}

impl Root {
    /// Bytes of one row, and of a segment of one cache line and its count.
    pub(super) const EMPTY_BYTES: usize = size_of::<Row>() + Size::ONE.bytes();

    /// Creates a directory with one empty segment.
    pub(super) fn new() -> Self {
        Self(AtomicPtr::new(Address::new(&[SegmentPtr::new(Size::ONE); 2]).0))
    }

    /// Loads the pointer to the directory.
    pub(super) fn load(&self) -> Address {
        // Acquire: pairs with the Release in `publish`; the directory and its segments are visible.
        Address(self.0.load(Ordering::Acquire))
    }

    /// Returns the directory.
    #[inline]
    pub(super) fn directory<'p>(&self, _pin: &'p Guard) -> Directory<'p> {
        // SAFETY: a directory is retired after it is unpublished, and freed when all earlier pins
        // have ended; this one lasts for 'p.
        unsafe { self.load().directory() }
    }

    /// Returns the segment of a mixed hash.
    #[inline]
    pub(super) fn segment<'p>(&self, mixed: u64, _pin: &'p Guard) -> Segment<'p> {
        // SAFETY: as for the directory.
        unsafe { self.load().segment(mixed) }
    }

    /// Publishes a directory with these entries, for the lock holder. Returns the former one, which
    /// has to be retired.
    pub(super) fn publish(&self, segments: &[SegmentPtr]) -> Address {
        let old = self.load();
        // Release: pairs with the Acquire in `load`.
        self.0.store(Address::new(segments).0, Ordering::Release);
        old
    }
}

impl Address {
    /// The bits of the pointer that store the shift.
    const SHIFT: usize = align_of::<Row>() - 1;

    /// Allocates a directory, not published yet.
    fn new(segments: &[SegmentPtr]) -> Self {
        debug_assert!(segments.len() > 1 && segments.len().is_power_of_two(), "D1");
        let row = |segments: &[SegmentPtr]| {
            Row(array::from_fn(|nth| segments.get(nth).copied().unwrap_or(SegmentPtr::NULL)))
        };
        let rows: Box<[Row]> = segments.chunks(ROW).map(row).collect();
        let shift = 64 - segments.len().ilog2() as usize;
        let first = Box::into_raw(rows).cast::<Row>();
        Self(first.map_addr(|address| address | shift))
    }

    /// Returns the index of the entry of a mixed hash.
    #[inline]
    fn index(self, mixed: u64) -> usize {
        // The remaining bits of the address are ignored: the shift is taken modulo 64.
        mixed.wrapping_shr(self.0.addr() as u32) as usize
    }

    #[inline]
    fn first(self) -> *mut Row {
        self.0.map_addr(|address| address & !Self::SHIFT)
    }

    fn len(self) -> usize {
        1 << (64 - (self.0.addr() & Self::SHIFT))
    }

    fn rows(self) -> usize {
        self.len().div_ceil(ROW)
    }

    /// Returns the allocated bytes.
    pub(super) fn allocation_size(self) -> usize {
        self.rows() * size_of::<Row>()
    }

    /// Returns the directory.
    ///
    /// # Safety
    ///
    /// The directory and its segments are not freed during `'p`.
    pub(super) unsafe fn directory<'p>(self) -> Directory<'p> {
        // SAFETY: allocated in `new` with this length, and not freed.
        let segments = unsafe { core::slice::from_raw_parts(self.first().cast(), self.len()) };
        Directory { segments }
    }

    /// Returns the segment of a mixed hash.
    ///
    /// # Safety
    ///
    /// As for [`directory`](Self::directory).
    #[inline]
    unsafe fn segment<'p>(self, mixed: u64) -> Segment<'p> {
        let segments = self.first().cast::<SegmentPtr>();
        // SAFETY: the index has as many bits as the directory has, so it is in bounds.
        let segment_ptr = unsafe { segments.add(self.index(mixed)) };
        // SAFETY: written in `new`, and not freed.
        let segment_ptr = unsafe { segment_ptr.read() };
        // SAFETY: the segments are not freed either.
        unsafe { segment_ptr.segment() }
    }

    /// Frees the directory without its segments.
    ///
    /// # Safety
    ///
    /// It is not used any more, and is freed once.
    pub(super) unsafe fn free(self) {
        let rows = ptr::slice_from_raw_parts_mut(self.first(), self.rows());
        // SAFETY: allocated in `new` as a box of this length; not used any more.
        drop(unsafe { Box::from_raw(rows) });
    }
}

/// The directory entries of a segment: `len` of them, from `first` on.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub(super) first: usize,
    pub(super) len: usize,
}

impl Span {
    /// Returns the entries of the sibling, with which the segment was split.
    pub(super) fn sibling(self) -> Self {
        Self { first: self.first ^ self.len, len: self.len }
    }
}

impl<'p> Directory<'p> {
    /// Returns the index of the entry of a mixed hash.
    pub(super) fn index(self, mixed: u64) -> usize {
        (mixed >> (64 - self.depth())) as usize
    }

    /// Returns the segment of an entry.
    pub(super) fn at(self, index: usize) -> Segment<'p> {
        // SAFETY: the segments of a live directory are not freed: see `Address::directory`.
        unsafe { self.segments[index].segment() }
    }

    pub(super) fn segments(self) -> &'p [SegmentPtr] {
        self.segments
    }

    /// Returns the number of bits of a mixed hash that select an entry.
    fn depth(self) -> u32 {
        self.segments.len().ilog2()
    }

    /// Returns the number of bits of a mixed hash that select the segment of these entries.
    pub(super) fn depth_of(self, span: Span) -> u32 {
        self.depth() - span.len.ilog2()
    }

    /// Returns the entries that share the segment of an entry.
    pub(super) fn span(self, index: usize) -> Span {
        let mut len = 1;
        while len < self.segments.len() {
            let first = index & !(2 * len - 1);
            // D1: if the first and the last entry are equal, so are all between them.
            if self.segments[first] != self.segments[first + 2 * len - 1] {
                break;
            }
            len *= 2;
        }
        Span { first: index & !(len - 1), len }
    }

    /// Iterates over the first entry of each segment.
    pub(super) fn firsts(self) -> impl Iterator<Item = usize> {
        let segments = self.segments;
        (0..segments.len())
            .filter(move |&index| index == 0 || segments[index] != segments[index - 1])
    }

    /// Iterates over the first entry of each segment among these entries.
    pub(super) fn firsts_in(self, span: Span) -> impl Iterator<Item = usize> {
        self.firsts().filter(move |first| (span.first..span.first + span.len).contains(first))
    }

    /// Returns the bit of a mixed hash that distinguishes the halves of the segment of these
    /// entries.
    pub(super) fn bit_below(self, span: Span) -> u64 {
        1 << (63 - self.depth_of(span))
    }

    /// Returns the entries with those of a segment replaced by `with`, in the order of their
    /// prefixes.
    pub(super) fn replaced(self, span: Span, with: &[SegmentPtr]) -> Vec<SegmentPtr> {
        // Two segments for one entry double the directory.
        let factor = with.len().div_ceil(span.len);
        let repeat = |segment_ptr: &SegmentPtr| core::iter::repeat_n(*segment_ptr, factor);
        let mut segments: Vec<SegmentPtr> = self.segments.iter().flat_map(repeat).collect();
        let (first, len) = (span.first * factor, span.len * factor);
        for (nth, segment_ptr) in segments[first..first + len].iter_mut().enumerate() {
            *segment_ptr = with[nth * with.len() / len];
        }
        halved(segments)
    }
}

/// Halves the directory while both entries of each pair are equal (D1).
fn halved(mut segments: Vec<SegmentPtr>) -> Vec<SegmentPtr> {
    while segments.len() > 2 && segments.chunks_exact(2).all(|pair| pair[0] == pair[1]) {
        segments = segments.chunks_exact(2).map(|pair| pair[0]).collect();
    }
    segments
}
