//! The longest suffix below each node, which directs the backtracking of a longest match.
//!
//! A route of `length` bits has a *suffix* of `K::BITS - length` bits, which may have any value.
//! Its leaf is at its first address, where all of them are zero.
//!
//! ```text
//!     n.pos = 4, n.bits = 3: a slot holds the suffixes of one bit, and K::BITS is 8
//!
//!           000   001   010   011   100   101   110   111
//!         ┌─────┬─────┬─────┬─────┬─────┬─────┬─────┬─────┐
//!       n │  a  │     │  b  │  c  │     │  d  │     │     │      n.slen = 3
//!         └─────┴─────┴─────┴─────┴─────┴─────┴─────┴─────┘
//!            └───────── 3 bits ─────┘                            a spans four slots
//!                        └ 2 bits ─┘                             b spans two
//!                                       └ 1 bit                  d stays within its slot
//! ```
//!
//! A key whose path takes slot 001 may match `a`; one that takes slot 111 only routes above `n`. So
//! each node stores the longest suffix below it, [`slen`](super::node::Node::slen), and a lookup
//! backtracks in a node only if `slen` is longer than the suffixes that fit into one slot.
//!
//! # Invariant
//!
//! `n.slen` is the maximum of `K::BITS - n.end` and of the longest suffixes of its children. The
//! former is the longest suffix that stays within a slot: `slen` never falls below it, so
//! insertions and removals of leaves that span one slot only do not update the nodes above. A node
//! has a smaller lower bound than its parent, so only leaves count for the parent, however the
//! nodes in between are resized.
//!
//! # Cost
//!
//! An insertion *pushes* its suffix up, as far as the nodes have shorter ones. A removal *pulls*:
//! each node that had its `slen` from the removed leaf scans its slots for the second longest. A
//! suffix that is `s` bits longer than a slot is in a slot whose index is a multiple of `2^s`, so
//! the stride of the scan grows with the longest suffix found. At worst it reads half of the slots,
//! also in the root; a leaf that is not the longest of its node needs no scan at all.
//!
//! After Linux, `net/ipv4/fib_trie.c`, `node_push_suffix` and `node_pull_suffix`. Difference: the
//! kernel pulls while the removed leaf is still in its slot, finds it again, and leaves `slen` as
//! it was; here `slen` is exact at all times.

use super::Trie;
use super::node::{Child, NodeId};
use crate::key::bits::BitString;

/// The longest suffix that each node of a trie stores for values `V`: a length, or `()`.
pub(crate) trait Suffixes<V>: Copy + Eq {
    /// Stores a length.
    fn new(slen: u32) -> Self;

    /// The stored length; 0 where suffixes are not tracked.
    fn get(self) -> u32;

    /// The longest suffix of a leaf with this value.
    fn longest_of(value: &V) -> u32;

    /// Whether nodes store suffixes. If not, no leaf is read for its suffix.
    const TRACKED: bool;
}

/// Values without suffixes.
impl<V> Suffixes<V> for () {
    const TRACKED: bool = false;

    fn new(_: u32) -> Self {}

    fn get(self) -> u32 {
        0
    }

    fn longest_of(_: &V) -> u32 {
        0
    }
}

/// The longest suffix that stays within one slot of a node that ends at `end`.
pub(super) fn suffix_within_slot<K: BitString>(end: u32) -> u32 {
    K::BITS.saturating_sub(end)
}

impl<K: BitString, V, S: Suffixes<V>> Trie<K, V, S> {
    /// Returns the longest suffix at or below a child, as far as it matters to the node above.
    pub(super) fn slen_of(&self, child: Child) -> u32 {
        match child {
            Child::Leaf(id) if S::TRACKED => S::longest_of(&self.leaves[id.0].value),
            Child::Node(id) if S::TRACKED => self.nodes[id.0].slen.get(),
            _ => 0,
        }
    }

    /// Whether a suffix below a node spans more than one of its slots.
    pub(super) fn spans_slots(&self, id: NodeId) -> bool {
        let node = &self.nodes[id.0];
        node.slen.get() > suffix_within_slot::<K>(node.end())
    }

    /// Raises `slen` of `from` and the nodes above it for an inserted suffix.
    pub(super) fn push_suffix(&mut self, from: Option<NodeId>, slen: u32) {
        let mut next = from.filter(|_| S::TRACKED);
        while let Some(id) = next {
            let node = &mut self.nodes[id.0];
            if node.slen.get() >= slen {
                return;
            }
            node.slen = S::new(slen);
            next = node.parent;
        }
    }

    /// Lowers `slen` of `from` and the nodes above it for a removed suffix.
    pub(super) fn pull_suffix(&mut self, from: Option<NodeId>, slen: u32) {
        let mut next = from.filter(|_| S::TRACKED);
        while let Some(id) = next {
            if !self.spans_slots(id) || self.nodes[id.0].slen.get() > slen {
                return;
            }
            let longest = self.compute_slen(id);
            let node = &mut self.nodes[id.0];
            if node.slen.get() == longest {
                return;
            }
            node.slen = S::new(longest);
            next = node.parent;
        }
    }

    /// Computes `slen` of a node from its children.
    fn compute_slen(&self, id: NodeId) -> u32 {
        let node = &self.nodes[id.0];
        let within_slot = suffix_within_slot::<K>(node.end());
        let (mut longest, mut index) = (within_slot, 0);
        while index < node.slots.len() {
            longest = longest.max(self.slen_of(node.slots.get(index)));
            // Longer suffixes are in slots whose index ends in more zeros than the length found so
            // far.
            let zeros = longest - within_slot + 1;
            if zeros >= node.bits() {
                break;
            }
            index = ((index >> zeros) + 1) << zeros;
        }
        longest
    }
}
