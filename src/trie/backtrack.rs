//! Longest-prefix match: a descent to the key, then backtracking.
//!
//! ```text
//!     key 1 0 1 1 0 1 1 0         routes a = 1010/4, b = 10/2, c = 1001/4, d = 0100/4
//!
//!              0     1
//!           ┌─────┬─────┐
//!           │  d  │  ▾  │                     slen = 7: no route spans both slots
//!           └─────┴──┬──┘
//!              ┌─────┼─────┬─────┬─────┐
//!              │  b  │  c  │  a  │     │      slen = 6: backtrack in this node
//!              └─────┴─────┴─────┴─────┘
//!                00    01    10    11
//!
//!     descend  1 0 1 1   the slot is empty
//!     climb    1 0 1 0   last 1 bit cleared: finds a, which does not match
//!     climb    1 0 0 0   next 1 bit cleared: finds b, which matches
//! ```
//!
//! The address of a matching route is the key with its tail cleared. So only routes at these
//! addresses can match: the key, the key without its last 1 bit, without its last two, and so on,
//! the longer prefix always first. [`descend`](Trie::descend) searches for the key itself.
//! [`climb`](Trie::climb) finds the slot with one 1 bit less: in the current node if the index of
//! the last slot has a 1 bit, otherwise in the nearest node above whose slot index has one. All
//! further bits of that address are zero: the descent takes slot 0 of each node, down to a leaf or
//! to a skipped bit that is 1.
//!
//! Two rules keep the search short. A node below which no route spans several slots is skipped,
//! both on the climb and on the descent along zeros: [`slen`](super::node::Node::slen) records
//! this. And the 1 bits of the key that a node skips are not cleared one by one, because no key
//! below that node lacks them.
//!
//! # Cost
//!
//! The descent to the key, and at most one more for each of its 1 bits, from the node that has the
//! bit: with `b` 1 bits and a depth of `d`, at most `(b + 1) * d` nodes. Real tables stay far
//! below.
//!
//! After Linux, `net/ipv4/fib_trie.c`, `fib_table_lookup`. Difference: once it backtracks, the
//! kernel reads the slots of every node above, whether a route there spans several slots or not.

use super::node::{Child, LeafId, Link};
use super::{Suffixes, Trie};
use crate::key::bits::BitString;
use crate::probes::Observer;

impl<K: BitString, V, S: Suffixes<V>> Trie<K, V, S> {
    /// Calls `matching` with candidate leaves until it returns a match. The candidates are in the
    /// order of the longest match; `matching` also receives the number of bits common to leaf and
    /// key.
    pub(crate) fn lookup<'t, R>(
        &'t self,
        key: &K,
        matching: impl Fn(&'t K, &'t V, u32) -> Option<R>,
        observer: &mut impl Observer,
    ) -> Option<R> {
        let (mut candidate, mut link) = self.descend(key, observer);
        loop {
            if let Some(id) = candidate {
                observer.entry();
                let leaf = &self.leaves[id.0];
                let common = leaf.key.first_difference(key, 0).unwrap_or(K::BITS);
                if let Some(matched) = matching(&leaf.key, &leaf.value, common) {
                    return Some(matched);
                }
            }
            link = self.climb(link)?;
            observer.node();
            candidate = self.descend_zeros(self.child(link), self.end_of_slot(link), observer);
        }
    }

    /// Follows the bits of `key`. Returns the leaf, if there is one, and the last slot on the path.
    fn descend(&self, key: &K, observer: &mut impl Observer) -> (Option<LeafId>, Link) {
        let (mut child, mut tested, mut link) = (self.root, 0, Link::Root);
        while let Child::Node(id) = child {
            let node = &self.nodes[id.0];
            if let Some(bit) = node.skipped_difference(key, tested) {
                return (self.descend_zeros(child, bit, observer), link);
            }
            observer.node();
            link = Link::Slot(id, node.slot_of(key));
            (child, tested) = (self.child(link), node.end());
        }
        (child.leaf(), link)
    }

    /// Returns the next slot to backtrack to: the one whose index has the last 1 bit cleared, in
    /// the lowest node on the path with such an index and with a route that spans several slots.
    fn climb(&self, mut link: Link) -> Option<Link> {
        while let Link::Slot(id, index) = link {
            if index > 0 && self.spans_slots(id) {
                return Some(Link::Slot(id, index & (index - 1)));
            }
            link = self.link_of(id);
        }
        None
    }

    /// Returns the leaf at or below `child` whose key is zero from bit `from` on. If there is none,
    /// the result may be another leaf, whose routes do not match.
    fn descend_zeros(
        &self,
        mut child: Child,
        mut from: u32,
        observer: &mut impl Observer,
    ) -> Option<LeafId> {
        while let Child::Node(id) = child {
            let node = &self.nodes[id.0];
            if !self.spans_slots(id) || has_set_bits(&node.key, from, node.pos) {
                return None;
            }
            observer.node();
            (child, from) = (node.slots.get(0), node.end());
        }
        child.leaf()
    }

    /// The end of the node that has this slot; 0 at the root of the trie.
    fn end_of_slot(&self, link: Link) -> u32 {
        link.node().map_or(0, |id| self.nodes[id.0].end())
    }
}

/// Whether one of the bits `from .. to` is 1.
fn has_set_bits(key: &impl BitString, from: u32, to: u32) -> bool {
    (from..to).step_by(64).any(|pos| key.slice(pos, (to - pos).min(64)) != 0)
}
