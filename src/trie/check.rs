//! Validation of the trie's invariants.

use alloc::{format, vec};

use super::node::{Child, Node, NodeId};
use super::suffix::suffix_within_slot;
use super::{Suffixes, Trie};
use crate::invariant::{InvariantError, ensure};
use crate::key::bits::BitString;

impl<K: BitString, V, S: Suffixes<V>> Trie<K, V, S> {
    /// Checks all invariants. O(slots).
    pub(crate) fn validate(&self) -> Result<(), InvariantError> {
        let (mut leaves, mut nodes, mut slot_bytes) = (0, 0, 0);
        let mut stack = vec![(self.root, 0, None)];
        while let Some((child, tested, parent)) = stack.pop() {
            match child {
                Child::Empty => {}
                Child::Leaf(_) => leaves += 1,
                Child::Node(id) => {
                    let node = &self.nodes[id.0];
                    self.validate_node(node, tested, parent)
                        .map_err(|error| error.within(format_args!("node at bit {}", node.pos)))?;
                    nodes += 1;
                    slot_bytes += node.slots.allocation_size();
                    stack.extend(node.slots.used().map(|child| (child, node.end(), Some(id))));
                }
            }
        }
        let (all_leaves, all_nodes) = (self.leaves.len(), self.nodes.len());
        ensure((leaves, nodes) == (all_leaves, all_nodes), || {
            format!("{leaves} of {all_leaves} leaves and {nodes} of {all_nodes} nodes are linked")
        })?;
        ensure(slot_bytes == self.slot_bytes, || {
            format!("{slot_bytes} bytes of slots are accounted as {}", self.slot_bytes)
        })
    }

    /// Checks a node against its parent, and its children against the node. Deeper levels follow by
    /// induction: a child's key represents all keys below the child.
    fn validate_node(
        &self,
        node: &Node<K, S>,
        tested: u32,
        parent: Option<NodeId>,
    ) -> Result<(), InvariantError> {
        ensure(node.pos >= tested, || "it begins before the end of its parent")?;
        ensure(node.end() <= K::BITS, || "it ends past the end of the key")?;
        ensure(
            node.bits() > 0 && node.slots.len().is_power_of_two(),
            || "its number of slots is not a power of two above one",
        )?;
        ensure(node.parent == parent, || "its parent link is wrong")?;
        let (mut used, mut full, mut slen) = (0, 0, suffix_within_slot::<K>(node.end()));
        for (slot, child) in node.slots.iter().enumerate() {
            if child == Child::Empty {
                continue;
            }
            used += 1;
            full += u32::from(self.is_full(child, node.end()));
            slen = slen.max(self.slen_of(child));
            let key = self.key_of(child);
            let agrees = key.first_difference(&node.key, 0).is_none_or(|bit| bit >= node.pos);
            ensure(agrees, || format!("the key in slot {slot} differs in a bit before the node"))?;
            ensure(node.slot_of(key) == slot, || {
                format!("the key in slot {slot} belongs in slot {}", node.slot_of(key))
            })?;
        }
        ensure(used >= 2, || "it has fewer than two children")?;
        ensure((used, full) == (node.used, node.full), || {
            let counted = (node.used, node.full);
            format!("{used} used and {full} full slots are counted as {counted:?}")
        })?;
        ensure(node.slen == S::new(slen), || {
            format!("its longest suffix is {slen}, not {}", node.slen.get())
        })
    }
}
