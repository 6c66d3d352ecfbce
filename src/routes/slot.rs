//! A slot of a direct table: a copy of the routes of a node at bit 18, and the longest route above
//! it; and the table of slots for addresses with the same first six bits, or one slot for all of
//! them.
//!
//! A lookup selects the slot by a mask instead of a branch: which of the 64 parts of the address
//! space have tables is unpredictable for addresses that are spread over all of it.
#![allow(unsafe_code)]

use core::alloc::Layout;
use core::ptr::{self, NonNull};

use super::node::Node;
use super::route_bits::{NodeRoutes, RouteBits};
use super::search::{RouteMatch, search};
use super::store::{NO_NODE, Nodes};
use super::stride::{STRIDE, first_slot};
use crate::memory::Allocator;

/// The position of the nodes whose routes are in the slots.
pub(super) const TABLE_END: u32 = 3 * STRIDE;

/// The longest routes for 18 given bits and any six after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(32))]
pub(super) struct Slot {
    /// Routes of 19 to 23 bits, by prefix index, and one of two flags.
    inner: u64,
    /// Routes of 24 bits, by slot.
    outer: u64,
    /// One more than the `values` of the node, for the flag.
    values: u32,
    /// The node, if it exists.
    pub(super) node: u32,
    pub(super) inherited: RouteMatch,
}

/// The flag of a slot that is all that there is for its 18 bits.
const COMPLETE: u64 = 1;

/// The flag of a computed slot with a node or a path below it.
const DEEPER: u64 = 2;

impl Slot {
    /// A slot that has not been computed: all zeros.
    pub(super) const EMPTY: Self =
        Self { inner: 0, outer: 0, values: 0, node: NO_NODE, inherited: RouteMatch::ZERO };

    /// The slot of addresses without routes of more than six bits.
    pub(super) const NO_ROUTES: Self =
        Self { inner: COMPLETE, values: 1, inherited: RouteMatch::NONE, ..Self::EMPTY };

    /// Returns the slot of all addresses with the same first six bits that have no table, given the
    /// number of their routes of more than six bits.
    pub(super) const fn without_table(routes: u32) -> &'static Self {
        if routes == 0 { &Self::NO_ROUTES } else { &Self::EMPTY }
    }

    /// Copies the routes of the node at [`TABLE_END`].
    #[inline]
    pub(super) fn copy_node<M: Allocator + Clone>(&mut self, nodes: &Nodes<M>, id: Option<u32>) {
        let node = id.map_or(&Node::EMPTY, |id| nodes.get(id));
        let RouteBits { inner, outer, values } = node.routes();
        self.inner = inner | if node.only_child().is_some() { DEEPER } else { COMPLETE };
        self.outer = outer;
        // The flag precedes all routes.
        self.values = values + 1;
        self.node = id.unwrap_or(NO_NODE);
    }

    /// Returns the node and its routes, if the slot has been computed and the node has routes.
    #[inline]
    pub(super) fn node(&self) -> Option<NodeRoutes> {
        let inner = self.inner & !(COMPLETE | DEEPER);
        let bits = RouteBits { inner, outer: self.outer, values: self.values.wrapping_sub(1) };
        if bits.is_empty() { None } else { Some(NodeRoutes { id: self.node, bits }) }
    }

    /// Sets the routes of the node.
    #[inline]
    pub(super) fn set_routes(&mut self, bits: RouteBits) {
        self.inner = bits.inner | self.inner & (COMPLETE | DEEPER);
        (self.outer, self.values) = (bits.outer, bits.values + 1);
    }

    /// Returns whether the slot has the longest route of all its addresses.
    #[inline(always)]
    pub(super) const fn is_complete(&self) -> bool {
        self.inner & COMPLETE != 0
    }

    /// Returns whether the slot has been computed.
    #[inline(always)]
    pub(super) const fn is_computed(&self) -> bool {
        self.inner & (COMPLETE | DEEPER) != 0
    }

    /// Returns whether there is anything below the node, if the slot has been computed.
    pub(super) const fn is_above_nodes(&self) -> bool {
        self.inner & DEEPER != 0
    }

    /// Returns the longest match of 7 to 24 bits, which may not exist; its length only if `LEN`.
    /// The slot has been computed.
    ///
    /// # Safety
    ///
    /// If `FAST`, the CPU has the instructions of `bit_ops`.
    #[inline(always)]
    pub(super) unsafe fn longest<const FAST: bool, const LEN: bool>(
        &self,
        word: u64,
    ) -> RouteMatch {
        let bits = RouteBits { inner: self.inner, outer: self.outer, values: self.values };
        let slot = first_slot(word << TABLE_END);
        // SAFETY: by the contract of this function. One flag is set.
        unsafe { search::<FAST, LEN, TABLE_END>(bits, 1, 0, slot, Some(self.inherited)) }
    }
}

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
