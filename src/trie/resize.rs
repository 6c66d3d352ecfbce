//! *How* a node is resized: inflate, halve, collapse. Whether is in `policy.rs`.
//!
//! ```text
//!      inflate: one bit more                      halve: one bit less
//!
//!      ┌───┬───┐                                  ┌───┬───┬───┬───┐
//!      │ a │ n │   n is full: it skips nothing    │ a │   │ b │ c │
//!      └───┴─┬─┘                                  └───┴───┴───┴───┘
//!          ┌─┴─┬───┐                                ┌───┬───┐
//!          │ b │ c │                                │ a │ m │   m is made for the pair b, c
//!          └───┴───┘                                └───┴─┬─┘
//!      ┌───┬───┬───┬───┐                                ┌─┴─┬───┐
//!      │ a │   │ b │ c │   n has dissolved              │ b │ c │
//!      └───┴───┴───┴───┘                                └───┴───┘
//! ```
//!
//! A full child of more than one bit does not dissolve but is split into two of one bit less. A
//! node keeps its index and its `pos` in either case, so neither its parent nor its other children
//! notice. The new slots are allocated before the first one is filled.

use core::mem;

use super::node::{Child, Link, Node, NodeId, Slots};
use super::policy::Tuning;
use super::suffix::within_slot;
use super::{Suffixes, Trie};
use crate::key::bits::BitString;

/// One call doubles or halves a node at most so often; the next change goes on from there. A
/// doubling that is due ten times in a row means 2^10 slots for one insertion.
const MAX_WORK: u32 = 10;

/// Halves of a split node are resized in their turn, down to this many levels, to bound the stack.
/// Random keys do not come near; one key for each bit of a wide string goes on for a third of them.
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

    /// Doubles or halves a node as often as the policy says; removes it if it has fewer than two
    /// children.
    fn resize(&mut self, id: NodeId, cascade: u32) {
        let mut work = 0;
        while work < MAX_WORK && self.should_inflate(id) {
            self.inflate(id, cascade);
            work += 1;
        }
        work = 0;
        while work < MAX_WORK && self.should_halve(id) {
            self.halve(id, cascade);
            work += 1;
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

    fn inflate(&mut self, id: NodeId, cascade: u32) {
        let new_bit = self.nodes[id.0].end();
        let old = self.replace_slots(id, self.nodes[id.0].bits() + 1);
        for (i, child) in old.iter().enumerate() {
            let halves = match child {
                Child::Empty => continue,
                Child::Node(child) if self.nodes[child.0].pos == new_bit => self.split(child),
                // A leaf, or a node that skips the new bit: it goes to one side whole.
                child => match self.key_of(child).slice(new_bit, 1) {
                    0 => [child, Child::Empty],
                    _ => [Child::Empty, child],
                },
            };
            for (half, child) in halves.into_iter().enumerate() {
                self.put(Link::Slot(id, 2 * i + half), child);
                self.resize_part(child, new_bit + 1, cascade);
            }
        }
    }

    fn halve(&mut self, id: NodeId, cascade: u32) {
        let old = self.replace_slots(id, self.nodes[id.0].bits() - 1);
        let end = self.nodes[id.0].end();
        for i in 0..old.len() / 2 {
            let child = self.gather(end, 1, [old.get(2 * i), old.get(2 * i + 1)].into_iter());
            self.put(Link::Slot(id, i), child);
            self.resize_part(child, end, cascade);
        }
    }

    /// Resizes a child that inflating or halving may just have made: a node that skips nothing. One
    /// that was there before comes by too, and is found to need nothing.
    fn resize_part(&mut self, child: Child, end: u32, cascade: u32) {
        if let Child::Node(id) = child {
            if self.nodes[id.0].pos == end && cascade < MAX_CASCADE {
                self.resize(id, cascade + 1);
            }
        }
    }

    /// Removes a node with one child or none: the child takes its place.
    fn collapse(&mut self, id: NodeId) {
        let link = self.link_of(id);
        // The parent counts the node out while it still is there.
        self.put(link, Child::Empty);
        let slots = self.free_node(id);
        if let Some(only) = slots.used().next() {
            self.put(link, only);
        }
    }

    /// Takes a node apart, into the halves of its slots.
    fn split(&mut self, id: NodeId) -> [Child; 2] {
        let (pos, bits) = (self.nodes[id.0].pos + 1, self.nodes[id.0].bits() - 1);
        let slots = self.free_node(id);
        let left = self.gather(pos, bits, slots.iter().take(slots.len() / 2));
        let right = self.gather(pos, bits, slots.iter().skip(slots.len() / 2));
        [left, right]
    }

    /// What holds these `2^bits` children: nothing, the only one, or a new node at `pos`.
    fn gather(
        &mut self,
        pos: u32,
        bits: u32,
        children: impl Iterator<Item = Child> + Clone,
    ) -> Child {
        let mut used = children.clone().filter(|&child| child != Child::Empty);
        match (used.next(), used.next()) {
            (None, _) => Child::Empty,
            (Some(only), None) => only,
            (Some(first), Some(_)) => Child::Node(self.branch(pos, bits, first, children)),
        }
    }

    /// A new node at `pos` with these `2^bits` children, one of which is `first`.
    ///
    /// Not inlined: a copy of a key, which can be wide, has no place in the frames of a cascade.
    #[inline(never)]
    pub(super) fn branch(
        &mut self,
        pos: u32,
        bits: u32,
        first: Child,
        children: impl Iterator<Item = Child>,
    ) -> NodeId {
        let key = *self.key_of(first);
        let slots = Slots::new(bits);
        self.slot_bytes += slots.allocation_size();
        let slen = S::new(within_slot::<K>(pos + bits));
        let node = Node { slots, pos, slen, used: 0, full: 0, parent: None, key };
        let id = NodeId(self.nodes.insert(node));
        for (i, child) in children.enumerate() {
            self.put(Link::Slot(id, i), child);
        }
        id
    }

    /// Frees a node, whose key is not moved, and returns its slots.
    fn free_node(&mut self, id: NodeId) -> Slots {
        let slots = mem::replace(&mut self.nodes[id.0].slots, Slots::new(1));
        self.slot_bytes -= slots.allocation_size();
        self.nodes.free(id.0);
        slots
    }

    /// Gives a node `2^bits` empty slots, and the counters of such, and returns the old ones.
    fn replace_slots(&mut self, id: NodeId, bits: u32) -> Slots {
        let slots = Slots::new(bits);
        let node = &mut self.nodes[id.0];
        self.slot_bytes += slots.allocation_size();
        self.slot_bytes -= node.slots.allocation_size();
        node.used = 0;
        node.full = 0;
        node.slen = S::new(within_slot::<K>(node.pos + bits));
        mem::replace(&mut node.slots, slots)
    }
}
