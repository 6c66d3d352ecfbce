//! Iterators over the entries of a segment.
#![allow(unsafe_code)]

use core::marker::PhantomData;

use super::bucket::SlotMask;
use super::segment::Segment;
use super::slot::SlotId;

/// The occupied slots of a segment, in their order.
pub(super) struct SlotIds<'a, T> {
    pub(super) segment: &'a Segment<T>,
    /// The next bucket.
    bucket: usize,
    /// The rest of the previous bucket.
    slots: SlotMask,
}

impl<'a, T> SlotIds<'a, T> {
    pub(super) fn new(segment: &'a Segment<T>) -> Self {
        Self { segment, bucket: 0, slots: SlotMask::NONE }
    }
}

impl<T> Clone for SlotIds<'_, T> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<T> Iterator for SlotIds<'_, T> {
    type Item = SlotId;

    #[inline]
    fn next(&mut self) -> Option<SlotId> {
        loop {
            if let Some(slot) = self.slots.next() {
                return Some(SlotId::new(self.bucket - 1, slot, 0));
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
pub(super) struct Iter<'a, T>(SlotIds<'a, T>);

impl<'a, T> IntoIterator for &'a Segment<T> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        Iter(SlotIds::new(self))
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

impl<T> Segment<T> {
    /// Mutable references to all entries.
    pub(super) fn iter_mut(&mut self) -> IterMut<'_, T> {
        IterMut { slots: SlotIds::new(self), entries: PhantomData }
    }
}

/// Mutable references to all entries of a segment.
pub(super) struct IterMut<'a, T> {
    slots: SlotIds<'a, T>,
    entries: PhantomData<&'a mut T>,
}

// SAFETY: it is the only way to the entries while it lives, as a mutable reference would be.
unsafe impl<T: Send> Send for IterMut<'_, T> {}

impl<'a, T> Iterator for IterMut<'a, T> {
    type Item = &'a mut T;

    #[inline]
    fn next(&mut self) -> Option<&'a mut T> {
        let slot = self.slots.next()?;
        // SAFETY: these are full slots.
        let entry = unsafe { self.slots.segment.entry(slot.bucket(), slot.slot()) };
        // SAFETY: M2; the segment is borrowed alone for 'a, and no slot comes twice.
        Some(unsafe { &mut *entry })
    }
}
