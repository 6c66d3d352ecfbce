//! The way to a segment: a word says where the directory of a shard is, a place of it where the segment is.
//!
//! ```text
//!     path      d bits              …          6 bits
//!               place                          shard
//!
//!               directory  [ A  A  B0 B1 C0 C1 D  D ]   d = 3
//! ```
//!
//! A directory is never changed. A segment that grows or splits has a new directory published with it,
//! which is a copy: 512 places for 16 million entries, little beside the segment. So who has a directory has
//! segments that go together: each key belongs to exactly one of them.
//!
//! - **D1** A directory has a power of two of places, at least two. A segment is at as many places as its
//!   prefix has continuations: a power of two, side by side.
#![allow(unsafe_code)]

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::array;
use core::ptr;

use crossbeam_epoch::Guard;

use super::segment::{Place, Segment, Size};
use crate::concurrent::sync::{AtomicPtr, IS_CHECKED, Ordering};

/// Shards of a map.
pub(super) const SHARDS: usize = if IS_CHECKED { 2 } else { 64 };

/// As many bits as a directory may take: less than the upper half of a path.
pub(super) const DEEPEST: u32 = 24;

/// Mixes a hash into a path: its lowest bits lead to a shard, its upper ones to a segment, its lower half to a
/// bucket.
///
/// A multiplication, both halves of whose product count, so that even hashes that are numbers counted
/// upwards, or have all that differs in their upper bits, lead to different buckets.
#[inline]
pub(super) fn path(hash: u64) -> u64 {
    let product = u128::from(hash) * 0x9e37_79b9_7f4a_7c15;
    product as u64 ^ (product >> 64) as u64
}

/// The shard of a path.
#[inline]
pub(super) fn shard_of(path: u64) -> usize {
    path as usize % SHARDS
}

/// Places of a cache line.
const ROW: usize = 64 / size_of::<Place>();

/// Places, aligned so that the address of the first has room for a shift.
#[repr(C, align(64))]
struct Row([Place; ROW]);

/// Where the directory of a shard is.
pub(super) struct Root(AtomicPtr<Row>);

/// A pointer to a directory, and in what is zero of the address by how much a path is shifted to find a
/// place in it.
#[derive(Clone, Copy)]
pub(super) struct Address(*mut Row);

/// A directory under a pin.
#[derive(Clone, Copy)]
pub(super) struct Directory<'p> {
    places: &'p [Place],
}

impl Root {
    /// Bytes of one row and of a segment of two lines.
    pub(super) const EMPTY_BYTES: usize = size_of::<Row>() + Size::ONE.bytes();

    /// With one segment, which is empty.
    pub(super) fn new() -> Self {
        Self(AtomicPtr::new(Address::new(&[Place::new(Size::ONE); 2]).0))
    }

    /// Where the directory is.
    pub(super) fn load(&self) -> Address {
        // Acquire: pairs with the Release in `publish`, and so shows the directory and its segments.
        Address(self.0.load(Ordering::Acquire))
    }

    /// The directory.
    #[inline]
    pub(super) fn directory<'p>(&self, _pin: &'p Guard) -> Directory<'p> {
        // SAFETY: what is published is retired when it is published no more, and freed when all pins from
        // before have ended; this one lasts for 'p.
        unsafe { self.load().directory() }
    }

    /// The segment of a path.
    #[inline]
    pub(super) fn segment<'p>(&self, path: u64, _pin: &'p Guard) -> Segment<'p> {
        // SAFETY: as for the directory.
        unsafe { self.load().segment(path) }
    }

    /// Makes a directory of these places that of the shard. Only for who has the lock. The one from before
    /// has to be retired.
    pub(super) fn publish(&self, places: &[Place]) -> Address {
        let old = self.load();
        // Release: pairs with the Acquire in `load`.
        self.0.store(Address::new(places).0, Ordering::Release);
        old
    }
}

impl Address {
    /// The bits of an address that say the shift.
    const SHIFT: usize = align_of::<Row>() - 1;

    /// A new directory, which nobody else has seen yet.
    fn new(places: &[Place]) -> Self {
        debug_assert!(places.len() > 1 && places.len().is_power_of_two(), "D1");
        let row = |places: &[Place]| {
            Row(array::from_fn(|nth| places.get(nth).copied().unwrap_or(Place::NOWHERE)))
        };
        let rows: Box<[Row]> = places.chunks(ROW).map(row).collect();
        let shift = 64 - places.len().ilog2() as usize;
        let first = Box::into_raw(rows).cast::<Row>();
        Self(first.map_addr(|address| address | shift))
    }

    /// The place of a path.
    #[inline]
    fn index(self, path: u64) -> usize {
        // What is left of the address in the shift is shifted out, or taken modulo 64.
        path.wrapping_shr(self.0.addr() as u32) as usize
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

    /// Bytes allocated for it.
    pub(super) fn allocation_size(self) -> usize {
        self.rows() * size_of::<Row>()
    }

    /// The directory.
    ///
    /// # Safety
    ///
    /// It is not freed, and neither are its segments, as long as `'p` lasts.
    pub(super) unsafe fn directory<'p>(self) -> Directory<'p> {
        // SAFETY: made in `new` of so many places, and not freed.
        let places = unsafe { core::slice::from_raw_parts(self.first().cast(), self.len()) };
        Directory { places }
    }

    /// The segment of a path.
    ///
    /// # Safety
    ///
    /// As for [`directory`](Self::directory).
    #[inline]
    unsafe fn segment<'p>(self, path: u64) -> Segment<'p> {
        let places = self.first().cast::<Place>();
        // SAFETY: the first so many bits of a path are a place, as there are so many.
        let place = unsafe { places.add(self.index(path)) };
        // SAFETY: made in `new`, and not freed.
        let place = unsafe { place.read() };
        // SAFETY: the segments are not freed either.
        unsafe { place.segment() }
    }

    /// Frees the directory. Not its segments.
    ///
    /// # Safety
    ///
    /// Nobody uses it any more, and it is freed once.
    pub(super) unsafe fn free(self) {
        let rows = ptr::slice_from_raw_parts_mut(self.first(), self.rows());
        // SAFETY: made in `new` from a box of so many rows; nobody uses it any more.
        drop(unsafe { Box::from_raw(rows) });
    }
}

/// The places of a segment: those from `first` on.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub(super) first: usize,
    pub(super) len: usize,
}

impl Span {
    /// The places of the segment that this one has once been split from together with this one.
    pub(super) fn sibling(self) -> Self {
        Self { first: self.first ^ self.len, len: self.len }
    }
}

impl<'p> Directory<'p> {
    /// The place that a path leads to.
    pub(super) fn index(self, path: u64) -> usize {
        (path >> (64 - self.depth())) as usize
    }

    /// The segment at a place.
    pub(super) fn at(self, index: usize) -> Segment<'p> {
        // SAFETY: the segments of a directory that is not freed are not either: see `Address::directory`.
        unsafe { self.places[index].segment() }
    }

    pub(super) fn places(self) -> &'p [Place] {
        self.places
    }

    /// How many bits of a path it takes.
    fn depth(self) -> u32 {
        self.places.len().ilog2()
    }

    /// How many bits of a path the segment at these places takes.
    pub(super) fn depth_of(self, span: Span) -> u32 {
        self.depth() - span.len.ilog2()
    }

    /// The places of the segment at a place.
    pub(super) fn span(self, index: usize) -> Span {
        let mut len = 1;
        while len < self.places.len() {
            let first = index & !(2 * len - 1);
            // D1: what is at both ends is at all places between them.
            if self.places[first] != self.places[first + 2 * len - 1] {
                break;
            }
            len *= 2;
        }
        Span { first: index & !(len - 1), len }
    }

    /// The first place of each segment.
    pub(super) fn firsts(self) -> impl Iterator<Item = usize> {
        let places = self.places;
        (0..places.len()).filter(move |&index| index == 0 || places[index] != places[index - 1])
    }

    /// The first place of each segment at these places.
    pub(super) fn firsts_in(self, span: Span) -> impl Iterator<Item = usize> {
        self.firsts().filter(move |first| (span.first..span.first + span.len).contains(first))
    }

    /// The bit of a path that would tell two halves of the segment at these places apart.
    pub(super) fn bit_below(self, span: Span) -> u64 {
        1 << (63 - self.depth_of(span))
    }

    /// The places with others where a segment is: `with` says which, from the path of the first on.
    pub(super) fn replaced(self, span: Span, with: &[Place]) -> Vec<Place> {
        // Two segments for one place make all places two.
        let factor = with.len().div_ceil(span.len);
        let wide = |place: &Place| core::iter::repeat_n(*place, factor);
        let mut places: Vec<Place> = self.places.iter().flat_map(wide).collect();
        let (first, len) = (span.first * factor, span.len * factor);
        for (nth, place) in places[first..first + len].iter_mut().enumerate() {
            *place = with[nth * with.len() / len];
        }
        halved(places)
    }
}

/// The places without every second one, as long as both of each pair are the same (D1).
fn halved(mut places: Vec<Place>) -> Vec<Place> {
    while places.len() > 2 && places.chunks_exact(2).all(|pair| pair[0] == pair[1]) {
        places = places.chunks_exact(2).map(|pair| pair[0]).collect();
    }
    places
}
