//! The position of an entry in its segment.

/// The position of an entry in its segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotId {
    bucket: u32,
    slot: u32,
    /// Buckets after its home bucket.
    distance: u32,
}

impl SlotId {
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

    /// Whether both are the same slot, found at whatever distance.
    pub(super) fn is_same(self, other: Self) -> bool {
        (self.bucket, self.slot) == (other.bucket, other.slot)
    }
}
