//! The longest suffix below each node: what lets a longest match know where to look again.
//!
//! A route of `length` bits has a *suffix* of `K::BITS - length` bits, whose values it does not care
//! about. Its leaf is at its first address, where all of them are zero.
//!
//! ```text
//!     n.pos = 4, n.bits = 3: a slot holds the suffixes of one bit, and K::BITS is 8
//!
//!           000   001   010   011   100   101   110   111
//!         ┌─────┬─────┬─────┬─────┬─────┬─────┬─────┬─────┐
//!       n │  a  │     │  b  │  c  │     │  d  │     │     │      n.slen = 3
//!         └─────┴─────┴─────┴─────┴─────┴─────┴─────┴─────┘
//!            └───────── 3 bits ─────┘                            a reaches over four slots
//!                        └ 2 bits ─┘                             b reaches over two
//!                                       └ 1 bit                  d stays in its own
//! ```
//!
//! A key whose way goes through slot 001 may be matched by `a`; one that goes through 111 only by what
//! is above `n`. So each node keeps the longest suffix below it, [`slen`](super::node::Node::slen), and a
//! look-up turns back at a node only if that is longer than what fits into one slot.
//!
//! # Invariant
//!
//! `n.slen` is the maximum of `K::BITS - n.end` and of what its children have. The former is what stays
//! within a slot: below it `slen` does not sink, so that a leaf that reaches over no other slot comes
//! and goes without a word to the nodes above. What a node adds to the maximum is less than what its
//! parent adds, so for the parent only leaves count, however the nodes between are resized.
//!
//! # Price
//!
//! A new leaf *pushes* its suffix up, as far as the nodes have shorter ones. A leaf that goes *pulls*:
//! the nodes which had it from there look for their second longest, and that is a scan of the slots.
//! A suffix that is `s` bits longer than a slot lies in a slot whose number is a multiple of `2^s`, so
//! the scan takes longer steps the more it has found. At worst it looks into half of the slots, those
//! of the root, too; a leaf that is not the longest of its node needs no scan at all.
//!
//! After: Linux, `net/ipv4/fib_trie.c`, `node_push_suffix` and `node_pull_suffix`. What differs: the
//! kernel pulls while the leaf that goes still hangs in its slot, finds it again, and leaves `slen` as
//! it was; here it is exact at all times.

use super::Trie;
use super::node::{Child, NodeId};
use crate::key::bits::BitString;

/// What the nodes of a trie keep of the suffixes of values `V`: a number, or nothing.
pub(crate) trait Suffixes<V>: Copy + Eq {
    /// Keeps the length of a suffix.
    fn new(slen: u32) -> Self;

    /// The length that was kept; 0 where nothing is.
    fn get(self) -> u32;

    /// The longest suffix of a leaf with this value.
    fn of(value: &V) -> u32;

    /// Whether anything is kept. If not, no leaf is ever asked.
    const KEPT: bool;
}

/// Values without suffixes.
impl<V> Suffixes<V> for () {
    const KEPT: bool = false;

    fn new(_: u32) -> Self {}

    fn get(self) -> u32 {
        0
    }

    fn of(_: &V) -> u32 {
        0
    }
}

/// The longest suffix that stays within one slot of a node that ends at `end`.
pub(super) fn within_slot<K: BitString>(end: u32) -> u32 {
    K::BITS.saturating_sub(end)
}

impl<K: BitString, V, S: Suffixes<V>> Trie<K, V, S> {
    /// The longest suffix at or below a child, as far as it concerns the node above.
    pub(super) fn slen_of(&self, child: Child) -> u32 {
        match child {
            Child::Leaf(id) if S::KEPT => S::of(&self.leaves[id.0].value),
            Child::Node(id) if S::KEPT => self.nodes[id.0].slen.get(),
            _ => 0,
        }
    }

    /// Whether a suffix below a node reaches over more than one of its slots.
    pub(super) fn reaches_over(&self, id: NodeId) -> bool {
        let node = &self.nodes[id.0];
        node.slen.get() > within_slot::<K>(node.end())
    }

    /// Tells `from` and the nodes above it of a suffix below them.
    pub(super) fn push(&mut self, from: Option<NodeId>, slen: u32) {
        let mut next = from.filter(|_| S::KEPT);
        while let Some(id) = next {
            let node = &mut self.nodes[id.0];
            if node.slen.get() >= slen {
                return;
            }
            node.slen = S::new(slen);
            next = node.parent;
        }
    }

    /// Tells `from` and the nodes above it that there is one suffix less of this length below them.
    pub(super) fn pull(&mut self, from: Option<NodeId>, slen: u32) {
        let mut next = from.filter(|_| S::KEPT);
        while let Some(id) = next {
            if !self.reaches_over(id) || self.nodes[id.0].slen.get() > slen {
                return;
            }
            let longest = self.longest_below(id);
            let node = &mut self.nodes[id.0];
            if node.slen.get() == longest {
                return;
            }
            node.slen = S::new(longest);
            next = node.parent;
        }
    }

    /// What `slen` of a node must be.
    fn longest_below(&self, id: NodeId) -> u32 {
        let node = &self.nodes[id.0];
        let within_slot = within_slot::<K>(node.end());
        let (mut longest, mut index) = (within_slot, 0);
        while index < node.slots.len() {
            longest = longest.max(self.slen_of(node.slots.get(index)));
            // Longer ones lie in slots whose number ends in more zeros than this one's length.
            let zeros = longest - within_slot + 1;
            if zeros >= node.bits() {
                break;
            }
            index = ((index >> zeros) + 1) << zeros;
        }
        longest
    }
}
