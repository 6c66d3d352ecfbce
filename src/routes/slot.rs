//! A slot of a direct table: a copy of the routes of a node at bit 18, and the longest route above
//! it.
#![allow(unsafe_code)]

use super::node::{Node, RouteBits};
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
        let (inner, outer, values) = node.routes();
        self.inner = inner | if node.only_child().is_some() { DEEPER } else { COMPLETE };
        self.outer = outer;
        // The flag precedes all routes.
        self.values = values + 1;
        self.node = id.unwrap_or(NO_NODE);
    }

    /// Returns the node and its routes, if the slot has been computed and the node has routes.
    #[inline]
    pub(super) fn node(&self) -> Option<(u32, RouteBits)> {
        let inner = self.inner & !(COMPLETE | DEEPER);
        let bits = RouteBits { inner, outer: self.outer, values: self.values.wrapping_sub(1) };
        if bits.is_empty() { None } else { Some((self.node, bits)) }
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
        let node = (self.inner, self.outer, self.values);
        let slot = first_slot(word << TABLE_END);
        // SAFETY: by the contract of this function. One flag is set.
        unsafe { search::<FAST, LEN, TABLE_END>(node, 1, 0, slot, Some(self.inherited)) }
    }
}
