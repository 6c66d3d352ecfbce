//! The table of slots for addresses with the same first six bits, or one slot for all of them.
//!
//! A lookup selects the slot by a mask instead of a branch: which of the 64 parts of the address
//! space have tables is unpredictable for addresses that are spread over all of it.
#![allow(unsafe_code)]

use core::alloc::Layout;
use core::ptr::{self, NonNull};

use super::slot::{Slot, TABLE_END};
use super::stride::STRIDE;
use crate::memory::Allocator;

/// Slots of a table.
pub(super) const WIDTH: usize = 1 << (2 * STRIDE);

/// The owner frees it.
///
/// # Invariant
///
/// If `mask` is 0, `slots` is a static slot, else an allocation of [`WIDTH`] slots that belongs to
/// this.
#[derive(Debug)]
pub(super) struct SlotTable {
    slots: NonNull<Slot>,
    mask: usize,
}

// SAFETY: the slots are plain data, and belong to this or are static.
unsafe impl Send for SlotTable {}

// SAFETY: shared references only read the slots.
unsafe impl Sync for SlotTable {}

impl SlotTable {
    const LAYOUT: Layout = Layout::new::<[Slot; WIDTH]>();

    /// Bytes of a table.
    pub(super) const BYTES: usize = Self::LAYOUT.size();

    /// One slot for all addresses.
    pub(super) const fn one(slot: &'static Slot) -> Self {
        // SAFETY: a reference is not null.
        let slots = unsafe { NonNull::new_unchecked(ptr::from_ref(slot).cast_mut()) };
        Self { slots, mask: 0 }
    }

    /// Allocates a table of empty slots, if there is memory. The pages of a large allocation of
    /// zeros are not touched here.
    pub(super) fn try_new_in(memory: &impl Allocator) -> Option<Self> {
        let slots = memory.allocate_zeroed(Self::LAYOUT).ok()?.cast();
        Some(Self { slots, mask: WIDTH - 1 })
    }

    /// Returns the slot of an address with these first bits.
    #[inline(always)]
    pub(super) fn slot(&self, word: u64) -> &Slot {
        // SAFETY: without a table the index is 0, else it is below the width of a table.
        let slot = unsafe { self.slots.add((word >> (64 - TABLE_END)) as usize & self.mask) };
        // SAFETY: slots are initialised; zeros are valid slots, `Slot::EMPTY`.
        unsafe { slot.as_ref() }
    }

    /// Frees the table, if there is one.
    ///
    /// # Safety
    ///
    /// It was allocated from `memory`.
    pub(super) unsafe fn free(self, memory: &impl Allocator) {
        if self.mask != 0 {
            // SAFETY: allocated with this layout; it belongs to this, which is not used any more.
            unsafe { memory.deallocate(self.slots.cast(), Self::LAYOUT) };
        }
    }

    /// Returns the slots of the table, if there is one.
    pub(super) fn slots(&self) -> Option<&[Slot; WIDTH]> {
        // SAFETY: with a mask there are as many slots, which are initialised.
        (self.mask != 0).then(|| unsafe { self.slots.cast().as_ref() })
    }

    /// Returns the slots of the table, if there is one.
    pub(super) fn slots_mut(&mut self) -> Option<&mut [Slot; WIDTH]> {
        // SAFETY: as in `slots`, and they belong to this.
        (self.mask != 0).then(|| unsafe { self.slots.cast().as_mut() })
    }
}

/// Returns the slot of these bits in its table.
#[inline(always)]
pub(super) fn slot_in_table(word: u64) -> usize {
    (word >> (64 - TABLE_END)) as usize % WIDTH
}
