//! Checking the invariants: which one is broken, and where.

use alloc::vec;
use core::error::Error;
use core::fmt;

use super::node::{Child, Node, NodeId};
use super::suffix::within_slot;
use super::{Suffixes, Trie};
use crate::key::bits::BitString;

/// An invariant of the trie that does not hold. It never happens; tests ask after each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Broken {
    /// A node's `pos` is before the end of its parent, or its bits go past the end of the key.
    Position {
        /// First bit of the node.
        pos: u32,
    },
    /// The number of a node's slots is not a power of two, or there is one only.
    Slots {
        /// First bit of the node.
        pos: u32,
    },
    /// A node has fewer than two children.
    Lonely {
        /// First bit of the node.
        pos: u32,
    },
    /// `used` or `full` of a node is not what its children say.
    Counters {
        /// First bit of the node.
        pos: u32,
    },
    /// A child does not agree with its node on the bits before `pos`.
    Prefix {
        /// First bit of the node.
        pos: u32,
    },
    /// A child is in another slot than its key says.
    Misplaced {
        /// First bit of the node.
        pos: u32,
        /// The slot where the child is.
        slot: usize,
    },
    /// `slen` of a node is not what its children say.
    Suffix {
        /// First bit of the node.
        pos: u32,
    },
    /// The routes of a leaf are none, are not in order, or are not all that there are.
    Routes,
    /// A node does not know its parent.
    Parent {
        /// First bit of the node.
        pos: u32,
    },
    /// The leaves or nodes that hang in the trie are not all that there are.
    Reach {
        /// Leaves in the trie.
        leaves: usize,
        /// Nodes in the trie.
        nodes: usize,
    },
    /// The account of memory is wrong.
    Account,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broken invariant of the trie: {self:?}")
    }
}

impl Error for Broken {}

impl<K: BitString, V, S: Suffixes<V>> Trie<K, V, S> {
    /// Checks every invariant. O(slots).
    pub(crate) fn validate(&self) -> Result<(), Broken> {
        let (mut leaves, mut nodes, mut slot_bytes) = (0, 0, 0);
        let mut open = vec![(self.root, 0, None)];
        while let Some((child, tested, parent)) = open.pop() {
            match child {
                Child::Empty => {}
                Child::Leaf(_) => leaves += 1,
                Child::Node(id) => {
                    let node = &self.nodes[id.0];
                    self.validate_node(node, tested, parent)?;
                    nodes += 1;
                    slot_bytes += node.slots.allocation_size();
                    open.extend(node.slots.used().map(|child| (child, node.end(), Some(id))));
                }
            }
        }
        if (leaves, nodes) != (self.leaves.len(), self.nodes.len()) {
            return Err(Broken::Reach { leaves, nodes });
        }
        if slot_bytes != self.slot_bytes {
            return Err(Broken::Account);
        }
        Ok(())
    }

    /// Checks a node against its parent and its children against it. What lies deeper follows: a
    /// child's key is good for all that is below the child.
    fn validate_node(
        &self,
        node: &Node<K, S>,
        tested: u32,
        parent: Option<NodeId>,
    ) -> Result<(), Broken> {
        let pos = node.pos;
        if pos < tested || node.end() > K::BITS {
            return Err(Broken::Position { pos });
        }
        if node.bits() == 0 || !node.slots.len().is_power_of_two() {
            return Err(Broken::Slots { pos });
        }
        if node.parent != parent {
            return Err(Broken::Parent { pos });
        }
        let (mut used, mut full, mut slen) = (0, 0, within_slot::<K>(node.end()));
        for (slot, child) in node.slots.iter().enumerate() {
            if child == Child::Empty {
                continue;
            }
            used += 1;
            full += u32::from(self.is_full(child, node.end()));
            slen = slen.max(self.slen_of(child));
            let key = self.key_of(child);
            if key.first_difference(&node.key, 0).is_some_and(|bit| bit < pos) {
                return Err(Broken::Prefix { pos });
            }
            if node.slot_of(key) != slot {
                return Err(Broken::Misplaced { pos, slot });
            }
        }
        if used < 2 {
            return Err(Broken::Lonely { pos });
        }
        if (used, full) != (node.used, node.full) {
            return Err(Broken::Counters { pos });
        }
        if node.slen != S::new(slen) {
            return Err(Broken::Suffix { pos });
        }
        Ok(())
    }
}
