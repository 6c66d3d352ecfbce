//! Resizing of nodes: *how* they are inflated, halved and collapsed. `policy.rs` decides whether.
//!
//! ```text
//!      inflate: one more bit                      halve: one bit less
//!
//!      ┌───┬───┐                                  ┌───┬───┬───┬───┐
//!      │ a │ n │   n is full: it skips no bits    │ a │   │ b │ c │
//!      └───┴─┬─┘                                  └───┴───┴───┴───┘
//!          ┌─┴─┬───┐                                ┌───┬───┐
//!          │ b │ c │                                │ a │ m │   m is created for the pair b, c
//!          └───┴───┘                                └───┴─┬─┘
//!      ┌───┬───┬───┬───┐                                ┌─┴─┬───┐
//!      │ a │   │ b │ c │   n is dissolved               │ b │ c │
//!      └───┴───┴───┴───┘                                └───┴───┘
//! ```
//!
//! A full child of more than one bit is not dissolved, but split into two nodes of one bit less.
//! The resized node keeps its index and its `pos`, so its parent and its other children need no
//! update. The new slots are allocated before the first one is written.

use core::mem;

use super::node::{Child, Link, Node, NodeId, NodeSlots};
use super::policy::Tuning;
use super::suffix::suffix_within_slot;
use super::{Suffixes, Trie};
use crate::key::bits::BitString;

/// The maximum number of doublings, and of halvings, of a node in one call; the next modification
/// below the node continues. Ten doublings in a row are 2^10 slots for one insertion.
const MAX_STEPS: u32 = 10;

/// The maximum depth of the recursion that resizes the halves of split nodes, to bound the stack.
/// Random keys stay far below; one key for each bit of a wide string recurses for a third of its
/// bits.
const MAX_CASCADE: u32 = 24;

impl<K: BitString, V, S: Suffixes<V>> Trie<K, V, S> {
    /// Resizes `from` and the nodes above it, lowest first.
    pub(super) fn rebalance(&mut self, from: Option<NodeId>) {
        let mut next = from;
        while let Some(id) = next {
            next = self.nodes[id.0].parent;
            self.resize(id, 0);
        }
    }

    /// Doubles or halves a node until the policy is satisfied; collapses it if it has fewer than
    /// two children.
    fn resize(&mut self, id: NodeId, cascade: u32) {
        let mut steps = 0;
        while steps < MAX_STEPS && self.should_inflate(id) {
            self.inflate(id, cascade);
            steps += 1;
        }
        steps = 0;
        while steps < MAX_STEPS && self.should_halve(id) {
            self.halve(id, cascade);
            steps += 1;
        }
        if self.nodes[id.0].used < 2 {
            self.collapse(id);
        }
    }

    fn should_inflate(&self, id: NodeId) -> bool {
        let node = &self.nodes[id.0];
        let (bits, used, full) = (node.bits(), node.used, node.full);
        match node.parent {
            None => {
                bits < self.tuning.root_bits.min(Tuning::MAX_BITS)
                    && self.tuning.root.should_inflate(bits, used, full)
            }
            Some(_) => bits < Tuning::MAX_BITS && self.tuning.node.should_inflate(bits, used, full),
        }
    }

    fn should_halve(&self, id: NodeId) -> bool {
        let node = &self.nodes[id.0];
        match node.parent {
            None => self.tuning.root.should_halve(node.bits(), node.used),
            Some(_) => self.tuning.node.should_halve(node.bits(), node.used),
        }
    }

    /// Doubles the slots of a node.
    fn inflate(&mut self, id: NodeId, cascade: u32) {
        let new_bit = self.nodes[id.0].end();
        let old = self.replace_slots(id, self.nodes[id.0].bits() + 1);
        for (i, child) in old.iter().enumerate() {
            let halves = match child {
                Child::Empty => continue,
                Child::Node(child) if self.nodes[child.0].pos == new_bit => self.split(child),
                // A leaf, or a node that skips the new bit, moves to one side as a whole.
                child => match self.key_of(child).slice(new_bit, 1) {
                    0 => [child, Child::Empty],
                    _ => [Child::Empty, child],
                },
            };
            for (half, child) in halves.into_iter().enumerate() {
                self.set_child(Link::Slot(id, 2 * i + half), child);
                self.resize_child(child, new_bit + 1, cascade);
            }
        }
    }

    /// Halves the slots of a node.
    fn halve(&mut self, id: NodeId, cascade: u32) {
        let old = self.replace_slots(id, self.nodes[id.0].bits() - 1);
        let end = self.nodes[id.0].end();
        for i in 0..old.len() / 2 {
            let child = self.subtrie(end, 1, [old.get(2 * i), old.get(2 * i + 1)].into_iter());
            self.set_child(Link::Slot(id, i), child);
            self.resize_child(child, end, cascade);
        }
    }

    /// Resizes a child that inflating or halving may have created: a node that skips no bits. Older
    /// children pass the test too, and need no resizing.
    fn resize_child(&mut self, child: Child, end: u32, cascade: u32) {
        if let Child::Node(id) = child {
            if self.nodes[id.0].pos == end && cascade < MAX_CASCADE {
                self.resize(id, cascade + 1);
            }
        }
    }

    /// Replaces a node with one child by the child, or one without children by an empty slot.
    fn collapse(&mut self, id: NodeId) {
        let link = self.link_of(id);
        // The node must still exist while the parent's counters are updated.
        self.set_child(link, Child::Empty);
        let slots = self.free_node(id);
        if let Some(only) = slots.used().next() {
            self.set_child(link, only);
        }
    }

    /// Splits a node into the two halves of its slots.
    fn split(&mut self, id: NodeId) -> [Child; 2] {
        let (pos, bits) = (self.nodes[id.0].pos + 1, self.nodes[id.0].bits() - 1);
        let slots = self.free_node(id);
        let left = self.subtrie(pos, bits, slots.iter().take(slots.len() / 2));
        let right = self.subtrie(pos, bits, slots.iter().skip(slots.len() / 2));
        [left, right]
    }

    /// Returns a subtrie of these `2^bits` children: empty, the only child, or a new node at `pos`.
    fn subtrie(
        &mut self,
        pos: u32,
        bits: u32,
        children: impl Iterator<Item = Child> + Clone,
    ) -> Child {
        let mut used = children.clone().filter(|&child| child != Child::Empty);
        match (used.next(), used.next()) {
            (None, _) => Child::Empty,
            (Some(only), None) => only,
            (Some(first), Some(_)) => Child::Node(self.new_node(pos, bits, first, children)),
        }
    }

    /// Creates a node at `pos` with these `2^bits` children, one of which is `first`.
    ///
    /// Not inlined, to keep the copy of a key, which can be wide, out of the frames of a cascade.
    #[inline(never)]
    pub(super) fn new_node(
        &mut self,
        pos: u32,
        bits: u32,
        first: Child,
        children: impl Iterator<Item = Child>,
    ) -> NodeId {
        let key = *self.key_of(first);
        let slots = NodeSlots::new(bits);
        self.slot_bytes += slots.allocation_size();
        let slen = S::new(suffix_within_slot::<K>(pos + bits));
        let node = Node { slots, pos, slen, used: 0, full: 0, parent: None, key };
        let id = NodeId(self.nodes.insert(node));
        for (i, child) in children.enumerate() {
            self.set_child(Link::Slot(id, i), child);
        }
        id
    }

    /// Frees a node, without moving its key, and returns its slots.
    fn free_node(&mut self, id: NodeId) -> NodeSlots {
        let slots = mem::replace(&mut self.nodes[id.0].slots, NodeSlots::new(1));
        self.slot_bytes -= slots.allocation_size();
        self.nodes.free(id.0);
        slots
    }

    /// Replaces the slots of a node by `2^bits` empty ones, resets its counters, and returns the
    /// old slots.
    fn replace_slots(&mut self, id: NodeId, bits: u32) -> NodeSlots {
        let slots = NodeSlots::new(bits);
        let node = &mut self.nodes[id.0];
        self.slot_bytes += slots.allocation_size();
        self.slot_bytes -= node.slots.allocation_size();
        node.used = 0;
        node.full = 0;
        node.slen = S::new(suffix_within_slot::<K>(node.pos + bits));
        mem::replace(&mut node.slots, slots)
    }
}
