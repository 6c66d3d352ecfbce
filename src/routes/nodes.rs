//! Nodes of a table for a reader outside of this module, which copies them.
#![allow(unsafe_code)]

use super::RouteTable;
use super::node::Path;
use super::store::{ROOT, Store};
use crate::key::bits::Address;

/// A node of a table.
pub(crate) struct NodeRef<'t, V> {
    store: &'t Store<V>,
    id: u32,
}

impl<V> Clone for NodeRef<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for NodeRef<'_, V> {}

impl<A: Address, V> RouteTable<A, V> {
    /// Returns the node at position 0, if there have been routes.
    pub(crate) fn root(&self) -> Option<NodeRef<'_, V>> {
        (!self.store.nodes.is_empty()).then_some(NodeRef { store: &self.store, id: ROOT })
    }
}

impl<'t, V> NodeRef<'t, V> {
    /// Returns the bits, the number of strides and the end of a path; `None` for a branch.
    pub(crate) fn path(self) -> Option<(u64, u32, Self)> {
        let Path { bits, strides, child } = self.store.nodes.get(self.id).as_path()?;
        Some((bits, strides, Self { id: child, ..self }))
    }

    /// Returns the bitmaps of the routes of a branch, inner and outer ones.
    pub(crate) fn bits(self) -> (u64, u64) {
        let (inner, outer, _) = self.store.nodes.get(self.id).routes();
        (inner, outer)
    }

    /// Returns the values of the routes of a branch: the inner ones with descending prefix indices,
    /// then the outer ones with ascending ones.
    pub(crate) fn values(self) -> &'t [V] {
        let (block, len) = self.store.nodes.get(self.id).values_block();
        // SAFETY: it is the block of the values of a node.
        unsafe { self.store.values.block(block, len) }
    }

    /// Returns the bitmap of the slots of a branch that have children.
    pub(crate) fn branches(self) -> u64 {
        self.store.nodes.get(self.id).branches()
    }

    /// Returns the child of a branch in a slot.
    pub(crate) fn child(self, slot: u32) -> Option<Self> {
        let id = self.store.nodes.get(self.id).child(slot)?;
        Some(Self { id, ..self })
    }
}
