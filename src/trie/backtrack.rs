//! The longest match: down to the key, and back up over what is almost the key.
//!
//! ```text
//!     key 1 0 1 1 0 1 1 0         routes a = 1010/4, b = 10/2, c = 1001/4, d = 0100/4
//!
//!              0     1
//!           ┌─────┬─────┐
//!           │  d  │  ▾  │                     slen = 7: no route reaches over both slots
//!           └─────┴──┬──┘
//!              ┌─────┼─────┬─────┬─────┐
//!              │  b  │  c  │  a  │     │      slen = 6: turn back here
//!              └─────┴─────┴─────┴─────┘
//!                00    01    10    11
//!
//!     descend  1 0 1 1   nothing is there
//!     climb    1 0 1 0   the last one cleared: a is there, and does not match
//!     climb    1 0 0 0   the next one cleared: b is there, and does
//! ```
//!
//! The address of a route that matches is the key with its tail cleared. So of all routes only those
//! come into question whose address is the key, or the key without its last one, or without its last
//! two, and so on; the longer is always the earlier one. [`descend`](Trie::descend) looks for the key
//! itself. [`climb`](Trie::climb) finds the slot with one bit less: in the node where the look-up has
//! been if the number of its slot has a one, and in the nearest node above whose slot has one if not.
//! From there on all bits of the address that is looked for are zero: the way down is slot 0 of each
//! node, up to a leaf or to a skipped bit that is one.
//!
//! Two things make the way short. A node below which no route reaches over a slot is never turned
//! back to and never looked into on the way along the zeros: that is what
//! [`slen`](super::node::Node::slen) is for. And ones of the key in bits that a node skips are not
//! cleared one by one, because below that node there is nothing without them.
//!
//! # Price
//!
//! The way to the key, and at most one more for each one in it, from the node that has the bit: with
//! `b` ones and a depth of `d`, `(b + 1) * d` nodes at most. On real tables it is far from that.
//!
//! After: Linux, `net/ipv4/fib_trie.c`, `fib_table_lookup`. What differs: once it has turned back, the
//! kernel looks into the slots of every node above, whether a route there reaches over or not.

use super::node::{Child, LeafId, Link};
use super::{Suffixes, Trie};
use crate::key::bits::BitString;
use crate::probes::Observer;

impl<K: BitString, V, S: Suffixes<V>> Trie<K, V, S> {
    /// What `pick` makes of the first leaf that it makes something of. The leaves come in the order of
    /// the longest match; `pick` is told how many bits the leaf and the key have in common.
    pub(crate) fn lookup<'t, R>(
        &'t self,
        key: &K,
        pick: impl Fn(&'t K, &'t V, u32) -> Option<R>,
        observer: &mut impl Observer,
    ) -> Option<R> {
        let (mut candidate, mut turn) = self.descend(key, observer);
        loop {
            if let Some(id) = candidate {
                observer.entry();
                let leaf = &self.leaves[id.0];
                let common = leaf.key.first_difference(key, 0).unwrap_or(K::BITS);
                if let Some(picked) = pick(&leaf.key, &leaf.value, common) {
                    return Some(picked);
                }
            }
            turn = self.climb(turn)?;
            observer.node();
            candidate = self.along_zeros(self.child(turn), self.end_of(turn), observer);
        }
    }

    /// The leaf to which the bits of `key` lead, and the last slot on the way.
    fn descend(&self, key: &K, observer: &mut impl Observer) -> (Option<LeafId>, Link) {
        let (mut child, mut tested, mut turn) = (self.root, 0, Link::Root);
        while let Child::Node(id) = child {
            let node = &self.nodes[id.0];
            if let Some(bit) = node.skipped_difference(key, tested) {
                return (self.along_zeros(child, bit, observer), turn);
            }
            observer.node();
            turn = Link::Slot(id, node.slot_of(key));
            (child, tested) = (self.child(turn), node.end());
        }
        (child.leaf(), turn)
    }

    /// The slot before this one, on the way up, whose number has one one less: the last. Nothing if
    /// there is none that a route could reach over from.
    fn climb(&self, mut turn: Link) -> Option<Link> {
        while let Link::Slot(id, index) = turn {
            if index > 0 && self.reaches_over(id) {
                return Some(Link::Slot(id, index & (index - 1)));
            }
            turn = self.link_of(id);
        }
        None
    }

    /// The leaf at or below `child` whose key is zero from bit `from` on. If there is none, it may be
    /// another one, with which no route of that key matches.
    fn along_zeros(
        &self,
        mut child: Child,
        mut from: u32,
        observer: &mut impl Observer,
    ) -> Option<LeafId> {
        while let Child::Node(id) = child {
            let node = &self.nodes[id.0];
            if !self.reaches_over(id) || has_ones(&node.key, from, node.pos) {
                return None;
            }
            observer.node();
            (child, from) = (node.slots.get(0), node.end());
        }
        child.leaf()
    }

    /// The first bit behind those that a slot stands for.
    fn end_of(&self, link: Link) -> u32 {
        link.node().map_or(0, |id| self.nodes[id.0].end())
    }
}

/// Whether one of the bits `from .. to` is a one.
fn has_ones(key: &impl BitString, from: u32, to: u32) -> bool {
    (from..to).step_by(64).any(|pos| key.slice(pos, (to - pos).min(64)) != 0)
}
