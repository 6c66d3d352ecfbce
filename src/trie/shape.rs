//! Measurements of a trie: depths, node sizes, slots, bytes; and checks of its invariants.

use alloc::vec::Vec;
use alloc::{format, vec};
use core::fmt;

use super::node::{Child, Node, NodeId};
use super::suffix::suffix_within_slot;
use super::{Suffixes, Trie};
use crate::invariant::{InvariantError, ensure};
use crate::key::bits::BitString;

/// Depths, node sizes and memory of a level-compressed trie at one moment.
///
/// The depth of a key is the number of nodes on the path to its leaf: 0 for the only key of a trie,
/// 1 for a leaf directly below the root.
///
/// Paper: Olsson and Nilsson, *TRASH*, section 4.2: average and maximum depth.
///
/// # Example
///
/// ```
/// use flowtable::LcTrieMap;
///
/// let map: LcTrieMap<u32, ()> = (0..1024).map(|i| (i << 22, ())).collect();
/// let shape = map.shape();
/// assert_eq!((shape.root_bits, shape.max_depth()), (10, 1)); // one node, every slot filled
/// assert_eq!((shape.nodes(), shape.average_depth(), shape.slots_per_leaf()), (1, 1.0, 1.0));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct TrieShape {
    /// Number of keys.
    pub leaves: usize,
    /// Number of keys at each depth, from 0.
    pub leaves_by_depth: Vec<usize>,
    /// Number of nodes with 2^i slots, at index i.
    pub nodes_by_bits: Vec<usize>,
    /// Slots of all nodes together, empty ones included.
    pub slots: usize,
    /// log2 of the slots of the root; 0 if the root is a leaf or empty.
    pub root_bits: u32,
    /// Bytes allocated.
    pub bytes: usize,
}

impl TrieShape {
    /// Returns the number of nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.nodes_by_bits.iter().sum()
    }

    /// Returns the average depth of the keys; 0 if there are none. O(depths).
    #[must_use]
    pub fn average_depth(&self) -> f64 {
        let total: usize = self.leaves_by_depth.iter().enumerate().map(|(d, n)| d * n).sum();
        total as f64 / self.leaves.max(1) as f64
    }

    /// Returns the depth of the deepest key; 0 if there are no keys.
    #[must_use]
    pub fn max_depth(&self) -> usize {
        self.leaves_by_depth.len().saturating_sub(1)
    }

    /// Returns the number of slots per key; 0 if there are no keys.
    #[must_use]
    pub fn slots_per_leaf(&self) -> f64 {
        self.slots as f64 / self.leaves.max(1) as f64
    }
}

/// Formats three lines: the totals, the depths, the nodes by size.
impl fmt::Display for TrieShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} keys, depth {:.2} on average, {} at most; root of {} bits; {:.2} slots and {} \
             bytes per key",
            self.leaves,
            self.average_depth(),
            self.max_depth(),
            self.root_bits,
            self.slots_per_leaf(),
            self.bytes / self.leaves.max(1),
        )?;
        write!(f, "keys by depth:")?;
        write_counts(f, &self.leaves_by_depth)?;
        write!(f, "\nnodes by bits:")?;
        write_counts(f, &self.nodes_by_bits)
    }
}

/// Writes the counts that are not zero, each with its index.
fn write_counts(f: &mut fmt::Formatter<'_>, counts: &[usize]) -> fmt::Result {
    let filled = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    filled.into_iter().try_for_each(|(i, count)| write!(f, " {i}: {count}"))
}

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

    /// Measures the trie. O(slots).
    pub(crate) fn shape(&self) -> TrieShape {
        let mut shape = TrieShape {
            leaves: self.leaves.len(),
            bytes: self.allocation_size(),
            ..TrieShape::default()
        };
        if let Child::Node(id) = self.root {
            shape.root_bits = self.nodes[id.0].bits();
        }
        let mut stack = vec![(self.root, 0)];
        while let Some((child, depth)) = stack.pop() {
            match child {
                Child::Empty => {}
                Child::Leaf(_) => increment(&mut shape.leaves_by_depth, depth),
                Child::Node(id) => {
                    let node = &self.nodes[id.0];
                    increment(&mut shape.nodes_by_bits, node.bits() as usize);
                    shape.slots += node.slots.len();
                    stack.extend(node.slots.used().map(|child| (child, depth + 1)));
                }
            }
        }
        shape
    }

    /// Bytes allocated.
    pub(crate) fn allocation_size(&self) -> usize {
        self.leaves.allocation_size() + self.nodes.allocation_size() + self.slot_bytes
    }
}

/// Increments the count at `index`.
fn increment(counts: &mut Vec<usize>, index: usize) {
    if counts.len() <= index {
        counts.resize(index + 1, 0);
    }
    counts[index] += 1;
}
