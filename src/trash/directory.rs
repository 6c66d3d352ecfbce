//! The root of the trie: an array of segments, indexed by the upper bits of a path.
//!
//! Segments split one at a time, the array doubles at once. In between, a segment that has not split
//! yet is at both places of a pair:
//!
//! ```text
//!   double        A   B        A   A   B   B
//!   split A                    A0  A1  B   B
//!   split B                    A0  A1  B0  B1
//! ```
//!
//! So a look-up takes one index, and does not ask how far the splitting is. The doubled array is made
//! ahead of time, place by place (`prepare`), so that nobody has to wait for it.
//!
//! - **D1** The array is empty, or has a power of two of places, at least two.
//! - **D2** The segments at places 2i and 2i + 1 are different ones, or one of which both are bitwise
//!   copies. Nobody else owns these segments.
//! - **D3** `doubled` has the first so many places, each twice, as bitwise copies. It owns nothing, and
//!   there are no other copies.
//!
//! The unsafe code is about owning what is there twice; hence a segment is never handed out to be
//! changed, only what is in it.
#![allow(unsafe_code)]

use alloc::vec::{self, Vec};
use core::mem::{ManuallyDrop, replace};
use core::slice::{ChunksExact, ChunksExactMut};

use super::error::{TryReserveError, reserve};
use super::segment::Segment;
use super::segment_iter::IterMut;
use super::shell::Shell;
use super::slot::SlotId;

pub(super) struct Directory<T> {
    places: Vec<ManuallyDrop<Segment<T>>>,
    /// What the array will be when it is doubled, as far as it is made.
    doubled: Vec<ManuallyDrop<Segment<T>>>,
    /// A path is shifted by this to the right. 64 less the logarithm of the number of places.
    shift: u32,
}

impl<T> Directory<T> {
    /// A directory without segments.
    pub(super) const fn new() -> Self {
        Self { places: Vec::new(), doubled: Vec::new(), shift: 0 }
    }

    /// A directory of one segment, on both places of the only pair.
    pub(super) fn with(segment: Segment<T>) -> Result<Self, TryReserveError> {
        let mut directory = Self::new();
        reserve(&mut directory.places, 2)?;
        let segment = ManuallyDrop::new(segment);
        // SAFETY: D2: the one pair of this directory.
        directory.places.push(unsafe { copy(&segment) });
        directory.places.push(segment);
        directory.shift = 63;
        Ok(directory)
    }

    /// Number of places.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The place that a path leads to, if there are any.
    #[inline]
    pub(super) fn index(&self, path: u64) -> usize {
        (path >> self.shift) as usize
    }

    /// The segment at a place.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&Segment<T>> {
        self.places.get(index).map(|place| &**place)
    }

    /// Whether the segment at this place is at the other one of the pair, too.
    pub(super) fn is_twice(&self, index: usize) -> bool {
        self.places[index & !1].is(&self.places[index | 1])
    }

    /// Makes the doubled array up to so many places of the present one, or takes it back to there. All
    /// of it is allocated with the first place.
    pub(super) fn prepare(&mut self, places: usize) -> Result<(), TryReserveError> {
        debug_assert!(places <= self.len());
        if self.doubled.capacity() == 0 && places > 0 {
            let places = 2 * self.len();
            reserve(&mut self.doubled, places)?;
        }
        self.doubled.truncate(2 * places);
        if places == 0 {
            self.doubled = Vec::new();
        }
        for segment in &self.places[self.doubled.len() / 2..places] {
            for _ in 0..2 {
                // SAFETY: D3: a copy in a `ManuallyDrop` that owns nothing.
                self.doubled.push(unsafe { copy(segment) });
            }
        }
        Ok(())
    }

    /// Doubles the array: every segment is at both places of a pair. None may be so before.
    pub(super) fn double(&mut self) -> Result<(), TryReserveError> {
        debug_assert!((0..self.len()).all(|index| !self.is_twice(index)), "D2");
        self.prepare(self.len())?;
        // Copies become owners and owners copies: what is in a `ManuallyDrop` is just forgotten.
        self.places = core::mem::take(&mut self.doubled);
        self.shift -= 1;
        Ok(())
    }

    /// Halves the array. Every segment must be at both places of a pair, and more than one be there.
    pub(super) fn halve(&mut self) {
        debug_assert!((0..self.len()).all(|index| self.is_twice(index)) && self.len() > 2);
        let mut index = 0;
        // The second of each pair is forgotten: a copy in a `ManuallyDrop` is nobody's.
        self.places.retain(|_| {
            index += 1;
            index % 2 == 1
        });
        self.places.shrink_to_fit();
        self.doubled = Vec::new();
        self.shift += 1;
    }

    /// Puts a segment where one is, on both places if it is twice, and returns that.
    pub(super) fn replace(&mut self, index: usize, segment: Segment<T>) -> Segment<T> {
        let segment = ManuallyDrop::new(segment);
        for doubled in self.doubled.iter_mut().skip(2 * index).take(2) {
            // SAFETY: D3: a copy in a `ManuallyDrop` that owns nothing.
            *doubled = unsafe { copy(&segment) };
        }
        if self.is_twice(index) {
            // SAFETY: D2: the two are a pair, and there is no other copy.
            self.places[index ^ 1] = unsafe { copy(&segment) };
        }
        ManuallyDrop::into_inner(replace(&mut self.places[index], segment))
    }

    /// Puts two segments where one is twice, and returns that.
    pub(super) fn split(&mut self, pair: usize, [low, high]: [Segment<T>; 2]) -> Segment<T> {
        assert!(self.is_twice(2 * pair), "only what is twice can be split");
        self.doubled.clear();
        self.places[2 * pair + 1] = ManuallyDrop::new(high);
        ManuallyDrop::into_inner(replace(&mut self.places[2 * pair], ManuallyDrop::new(low)))
    }

    /// Puts one segment twice where two are, and returns those.
    pub(super) fn merge(&mut self, pair: usize, segment: Segment<T>) -> [Segment<T>; 2] {
        assert!(!self.is_twice(2 * pair), "only what is not twice can be merged");
        self.doubled.clear();
        let segment = ManuallyDrop::new(segment);
        // SAFETY: D2: the two are a pair, and there is no other copy.
        let second = unsafe { copy(&segment) };
        [(2 * pair, segment), (2 * pair + 1, second)]
            .map(|(index, segment)| replace(&mut self.places[index], segment))
            .map(ManuallyDrop::into_inner)
    }

    /// An entry, to change.
    #[inline]
    pub(super) fn get_mut(&mut self, index: usize, spot: SlotId) -> Option<&mut T> {
        self.places.get_mut(index)?.get_mut(spot)
    }

    /// The first entry in the home of this path that may have this hash, to change.
    #[inline]
    pub(super) fn first_mut(&mut self, hash: u64, path: u64) -> Option<&mut T> {
        let index = self.index(path);
        self.places.get_mut(index)?.first_mut(hash, path)
    }

    /// Takes out an entry.
    #[inline]
    pub(super) fn take(&mut self, index: usize, spot: SlotId) -> Option<T> {
        self.places.get_mut(index)?.take(spot)
    }

    /// Whether entries have passed the bucket of a spot.
    #[inline]
    pub(super) fn is_passed(&self, index: usize, spot: SlotId) -> bool {
        let bucket = spot.bucket();
        let passed =
            |place: &ManuallyDrop<Segment<T>>| bucket < place.buckets() && place.passed(bucket) > 0;
        self.places.get(index).is_some_and(passed)
    }

    /// Lets entries that have passed the bucket of a spot into its free slots.
    #[cold]
    #[inline(never)]
    pub(super) fn fill_hole(&mut self, index: usize, spot: SlotId, hasher: &impl Fn(&T) -> u64) {
        self.places[index].fill_hole(spot.bucket(), hasher);
    }

    /// Entries to change, several at once.
    ///
    /// # Panics
    ///
    /// If one is asked for twice.
    pub(super) fn get_many_mut<const N: usize>(
        &mut self,
        at: [Option<(usize, SlotId)>; N],
    ) -> [Option<&mut T>; N] {
        let mut entries = [const { None }; N];
        for (number, entry) in entries.iter_mut().enumerate() {
            let Some((index, spot)) = at[number] else { continue };
            let same = |&(other, at): &(usize, SlotId)| {
                at.is_same(spot) && self.places[other].is(&self.places[index])
            };
            assert!(!at[..number].iter().flatten().any(same), "a key is asked for twice");
            let found = self.places[index].get_mut(spot).map(core::ptr::from_mut);
            // SAFETY: no other reference handed out is to this entry, and all live as long as that
            // to the directory.
            *entry = found.map(|entry| unsafe { &mut *entry });
        }
        entries
    }

    /// Drops the entries for which `keep` does not say so, and counts `len` down with each. Leaves the
    /// holes.
    pub(super) fn retain(
        &mut self,
        len: &mut usize,
        mut keep: impl FnMut(&mut T) -> bool,
        hasher: &impl Fn(&T) -> u64,
    ) {
        self.each_segment(|segment| segment.retain(len, &mut keep, hasher));
    }

    /// Lets entries into free slots that they have passed.
    pub(super) fn fill_all_holes(&mut self, hasher: &impl Fn(&T) -> u64) {
        self.each_segment(|segment| segment.fill_all_holes(hasher));
    }

    /// Every segment once, to be changed in place.
    fn each_segment(&mut self, mut each: impl FnMut(&mut Segment<T>)) {
        for pair in self.places.chunks_exact_mut(2) {
            let twice = pair[0].is(&pair[1]);
            each(&mut pair[0]);
            if !twice {
                each(&mut pair[1]);
            }
        }
    }

    /// Puts in an entry where there is a free slot.
    #[inline]
    pub(super) fn insert(
        &mut self,
        index: usize,
        hash: u64,
        path: u64,
        shell: Shell<T>,
        entry: T,
    ) -> SlotId {
        self.places[index].insert(hash, path, shell, entry)
    }

    /// Bytes allocated for the places.
    pub(super) fn allocation_size(&self) -> usize {
        (self.places.capacity() + self.doubled.capacity()) * size_of::<Segment<T>>()
    }

    /// Every segment once.
    pub(super) fn segments(&self) -> Segments<'_, T> {
        Segments { pairs: self.places.chunks_exact(2), second: None }
    }

    /// Every segment once, as its entries, to change.
    pub(super) fn iter_mut(&mut self) -> SegmentsMut<'_, T> {
        SegmentsMut { pairs: self.places.chunks_exact_mut(2), second: None }
    }

    /// Every segment once.
    pub(super) fn into_segments(mut self) -> IntoSegments<T> {
        IntoSegments { places: core::mem::take(&mut self.places).into_iter(), second: None }
    }

    /// A directory with clones of the segments.
    pub(super) fn try_clone(&self) -> Result<Self, TryReserveError>
    where
        T: Clone,
    {
        let mut clone = Self::new();
        clone.shift = self.shift;
        reserve(&mut clone.places, self.len())?;
        for pair in self.places.chunks_exact(2) {
            let first = pair[0].try_clone()?;
            let second = if pair[0].is(&pair[1]) { None } else { Some(pair[1].try_clone()?) };
            let first = ManuallyDrop::new(first);
            // SAFETY: D2: the two are a pair, if there is no second one; else this is no copy.
            let second = second.map_or_else(|| unsafe { copy(&first) }, ManuallyDrop::new);
            clone.places.extend([first, second]);
        }
        Ok(clone)
    }
}

/// A bitwise copy.
///
/// # Safety
///
/// The original and the copy become a pair as in D2, or the copy is one of D3.
unsafe fn copy<T>(segment: &ManuallyDrop<Segment<T>>) -> ManuallyDrop<Segment<T>> {
    // SAFETY: a reference can be read from; that the value is there twice is what D2 is about.
    unsafe { core::ptr::read(segment) }
}

impl<T> Drop for Directory<T> {
    fn drop(&mut self) {
        let places = core::mem::take(&mut self.places);
        drop(IntoSegments { places: places.into_iter(), second: None });
    }
}

/// Every segment once.
pub(super) struct Segments<'a, T> {
    pairs: ChunksExact<'a, ManuallyDrop<Segment<T>>>,
    /// The second one of the pair before, if it is another one.
    second: Option<&'a Segment<T>>,
}

impl<T> Clone for Segments<'_, T> {
    fn clone(&self) -> Self {
        Self { pairs: self.pairs.clone(), second: self.second }
    }
}

impl<'a, T> Iterator for Segments<'a, T> {
    type Item = &'a Segment<T>;

    fn next(&mut self) -> Option<&'a Segment<T>> {
        if let Some(second) = self.second.take() {
            return Some(second);
        }
        let pair = self.pairs.next()?;
        self.second = (!pair[0].is(&pair[1])).then_some(&*pair[1]);
        Some(&pair[0])
    }
}

/// Every segment once, as its entries, to change.
pub(super) struct SegmentsMut<'a, T> {
    pairs: ChunksExactMut<'a, ManuallyDrop<Segment<T>>>,
    /// The second one of the pair before, if it is another one.
    second: Option<&'a mut Segment<T>>,
}

impl<'a, T> Iterator for SegmentsMut<'a, T> {
    type Item = IterMut<'a, T>;

    fn next(&mut self) -> Option<IterMut<'a, T>> {
        if let Some(second) = self.second.take() {
            return Some(second.iter_mut());
        }
        let (first, second) = self.pairs.next()?.split_at_mut(1);
        let (first, second) = (&mut first[0], &mut second[0]);
        self.second = (!first.is(second)).then_some(&mut **second);
        Some(first.iter_mut())
    }
}

/// Every segment once; drops what is not fetched.
pub(super) struct IntoSegments<T> {
    places: vec::IntoIter<ManuallyDrop<Segment<T>>>,
    /// The second one of the pair before, if it is another one.
    second: Option<Segment<T>>,
}

impl<T> Iterator for IntoSegments<T> {
    type Item = Segment<T>;

    fn next(&mut self) -> Option<Segment<T>> {
        if let Some(second) = self.second.take() {
            return Some(second);
        }
        let (first, second) = (self.places.next()?, self.places.next()?);
        if !first.is(&second) {
            self.second = Some(ManuallyDrop::into_inner(second));
        }
        Some(ManuallyDrop::into_inner(first))
    }
}

impl<T> Drop for IntoSegments<T> {
    fn drop(&mut self) {
        /// Goes on when an entry panics on its way.
        struct Rest<'a, T>(&'a mut IntoSegments<T>);
        impl<T> Drop for Rest<'_, T> {
            fn drop(&mut self) {
                self.0.for_each(drop);
            }
        }
        let rest = Rest(self);
        rest.0.for_each(drop);
    }
}
