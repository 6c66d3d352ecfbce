//! The spots of a segment, and the way through them.

use super::bucket::Slots;
use super::segment::Segment;

/// Where an entry is in its segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    bucket: u32,
    slot: u32,
    /// Buckets behind its home.
    distance: u32,
}

impl Spot {
    #[inline]
    pub(super) fn new(bucket: usize, slot: usize, distance: usize) -> Self {
        // A segment has less than 2^32 buckets.
        Self { bucket: bucket as u32, slot: slot as u32, distance: distance as u32 }
    }

    #[inline]
    pub(super) fn bucket(self) -> usize {
        self.bucket as usize
    }

    #[inline]
    pub(super) fn slot(self) -> usize {
        self.slot as usize
    }

    #[inline]
    pub(super) fn distance(self) -> usize {
        self.distance as usize
    }

    /// Whether two ways lead to the same slot.
    pub(super) fn is_same(self, other: Self) -> bool {
        (self.bucket, self.slot) == (other.bucket, other.slot)
    }
}

/// Where the entries of a segment are.
pub(super) struct Spots<'a, T> {
    pub(super) segment: &'a Segment<T>,
    /// The next bucket.
    bucket: usize,
    /// What is left of the one before.
    slots: Slots,
}

impl<'a, T> Spots<'a, T> {
    pub(super) fn new(segment: &'a Segment<T>) -> Self {
        Self { segment, bucket: 0, slots: Slots::NONE }
    }
}

impl<T> Clone for Spots<'_, T> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<T> Iterator for Spots<'_, T> {
    type Item = Spot;

    #[inline]
    fn next(&mut self) -> Option<Spot> {
        loop {
            if let Some(slot) = self.slots.next() {
                return Some(Spot::new(self.bucket - 1, slot, 0));
            }
            if self.bucket == self.segment.buckets() {
                return None;
            }
            self.slots = self.segment.header(self.bucket).full();
            self.bucket += 1;
        }
    }
}

/// All entries of a segment.
pub(super) struct Iter<'a, T>(Spots<'a, T>);

impl<'a, T> IntoIterator for &'a Segment<T> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        Iter(Spots::new(self))
    }
}

impl<T> Clone for Iter<'_, T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = &'a T;

    #[inline]
    fn next(&mut self) -> Option<&'a T> {
        self.0.segment.get(self.0.next()?)
    }
}

/// All entries of a segment, taken out; drops what is not fetched.
pub(super) struct IntoIter<T> {
    segment: Segment<T>,
    bucket: usize,
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.segment.pop(&mut self.bucket)
    }
}

impl<T> IntoIterator for Segment<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter { segment: self, bucket: 0 }
    }
}
