//! A dynamic level-compressed trie (LC-trie).
//!
//! ```text
//!     key     0 1 │ 1 0 1 │ 0 0 │ 1 1 0 …
//!             └┬┘   └─┬─┘   └┬┘
//!              │      │      └ selects a child of n            n.pos = 5, n.bits = 2
//!              │      └ skipped: equal in all keys below n, so not tested on the descent
//!              └ selects a child of p                          p.pos = 0, p.bits = 2
//!
//!                  p ┌────┬────┬────┬────┐
//!                    │ a  │ ▾  │    │ b  │                     p.used = 3, p.full = 0: n skips
//!                    └────┴─┬──┴────┴────┘
//!                       n ┌─┴──┬────┬────┬────┐
//!                         │ c  │    │ d  │    │                n.used = 2
//!                         └────┴────┴────┴────┘
//! ```
//!
//! A binary trie over bit strings with two kinds of compression. *Path compression* removes nodes
//! with a single child: a node branches at `pos` and skips the bits between its parent and `pos`.
//! *Level compression* replaces the upper levels of a densely filled subtree by one node of
//! `2^bits` children; `policy.rs` decides when a node is doubled or halved, `resize.rs` does it.
//! Each insertion and removal resizes the nodes on its path, lowest first, so the trie never
//! needs to be rebuilt as a whole.
//!
//! Leaves and nodes are stored in two slabs and refer to each other by index. A node with more than
//! two slots has them in a separate allocation. A leaf holds one key and its value. It compares the
//! whole key once, which also checks the skipped bits.
//!
//! The nodes of a route table also store the length of the longest suffix below them: `suffix.rs`
//! maintains it, `backtrack.rs` uses it to find the longest match. In all other tries it takes no
//! memory and no time.
//!
//! # Invariants
//!
//! 1. All keys below a node agree with the node's key on the bits before `pos`.
//! 2. Child `i` of a node holds the keys whose bits `pos .. pos + bits` are `i`.
//! 3. `pos` is at least the end of the parent, and `pos + bits` at most the width of the key.
//! 4. A node has `2^bits` slots, `bits >= 1`, and at least two children.
//! 5. `used` counts the children, `full` the children that are nodes and skip no bits.
//! 6. Every leaf and every node of the slabs is linked exactly once, and nodes link their parents.
//! 7. `slen` is the longest suffix below a node, or the longest that fits into one slot if longer.
//!
//! `check.rs` reports the first one that does not hold.
//!
//! # Cost
//!
//! For n random keys a lookup visits Θ(log* n) nodes, 1.3 to 1.6 in practice and at most 6 for a
//! million keys. A node costs one or two cache lines: the node, unless it is the root, and its
//! slot, unless it has only two. The leaf costs one or two. Keys that are not random give
//! Θ(log log n) under mild assumptions, and the width of the key in the worst case. There are 2 or
//! 3 slots per key, 4 bytes each.
//!
//! A lookup takes 2 to 5 times as long as in a Swiss table.
//!
//! Insertions and removals resize nodes occasionally: growth to any size writes 4 to 6 slots per
//! key in total. But one doubling of the root copies all of its slots at once, and reads every
//! leaf below it for the new bit: tens of milliseconds at a million keys. This is the readable
//! reference; for a table without pauses, see [`TrashMap`](crate::TrashMap).
//!
//! # Papers
//!
//! Nilsson and Tikkanen, *An experimental study of compression methods for dynamic tries*, 2002;
//! Olsson and Nilsson, *TRASH: a dynamic LC-trie and hash data structure*, 2006. Differences:
//! rebalancing starts at the node that an insertion creates, not at its parent; the root may have
//! any width; a resized node keeps its index; a cascade of resizes is bounded.

mod backtrack;
pub mod map;
mod node;
mod policy;
mod resize;
pub mod routes;
mod shape;
mod suffix;
mod traversal;
pub mod unicache;

use crate::key::bits::BitString;
use crate::probes::Observer;
use crate::raw::slab::Slab;

use node::{Child, Leaf, Node, NodeId};
pub(crate) use node::{LeafId, Link};
pub use policy::{RebalanceFrom, Thresholds, Tuning, TuningError};
pub use shape::TrieShape;
pub(crate) use suffix::Suffixes;
pub(crate) use traversal::{BACK, FORWARD, Walk};

/// A level-compressed trie. Each node stores the longest suffix below it as an `S`.
#[derive(Clone, Debug)]
pub(crate) struct Trie<K, V, S = ()> {
    root: Child,
    nodes: Slab<Node<K, S>>,
    leaves: Slab<Leaf<K, V>>,
    /// Bytes of all slots outside of their nodes.
    slot_bytes: usize,
    tuning: Tuning,
}

/// The result of a search for a key with its position.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SearchResult {
    Found(LeafPosition),
    Vacant(InsertionPoint),
}

/// A leaf and the link to it. Valid until the trie is modified.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeafPosition {
    pub(crate) leaf: LeafId,
    link: Link,
}

/// The position of a new leaf. Valid until the trie is modified.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InsertionPoint {
    /// An empty slot.
    Empty(Link),
    /// Between a link and its child; the bit is the first in which the child's keys differ from the
    /// new one.
    Fork(Link, u32),
}

/// Values that can be modified without updating the nodes, which store no suffixes.
impl<K: BitString, V> Trie<K, V> {
    pub(crate) fn leaf_mut(&mut self, id: LeafId) -> (&K, &mut V) {
        let leaf = &mut self.leaves[id.0];
        (&leaf.key, &mut leaf.value)
    }

    /// The leaves with these numbers, which exist and ascend.
    pub(crate) fn leaves_mut(
        &mut self,
        ids: impl Iterator<Item = u32>,
    ) -> impl Iterator<Item = (&K, &mut V)> {
        self.leaves.get_ascending_mut(ids).map(|leaf| (&leaf.key, &mut leaf.value))
    }
}

impl<K: BitString, V, S: Suffixes<V>> Trie<K, V, S> {
    pub(crate) const fn new(tuning: Tuning) -> Self {
        Self { root: Child::Empty, nodes: Slab::new(), leaves: Slab::new(), slot_bytes: 0, tuning }
    }

    pub(crate) const fn len(&self) -> usize {
        self.leaves.len()
    }

    pub(crate) const fn tuning(&self) -> Tuning {
        self.tuning
    }

    pub(crate) fn leaf(&self, id: LeafId) -> (&K, &V) {
        let leaf = &self.leaves[id.0];
        (&leaf.key, &leaf.value)
    }

    /// Returns the leaf of `key`. The descent does not test skipped bits: the leaf compares all
    /// bits.
    #[inline]
    pub(crate) fn find(&self, key: &K, observer: &mut impl Observer) -> Option<LeafId> {
        let mut child = self.root;
        while let Child::Node(id) = child {
            observer.node();
            child = self.nodes[id.0].child_of(key);
        }
        let Child::Leaf(id) = child else { return None };
        observer.entry();
        (self.leaves[id.0].key == *key).then_some(id)
    }

    /// Returns the position of the leaf of `key`, or its insertion point.
    pub(crate) fn locate(&self, key: &K) -> SearchResult {
        let mut link = Link::Root;
        let mut tested = 0;
        loop {
            match self.child(link) {
                Child::Node(id) => {
                    let node = &self.nodes[id.0];
                    if let Some(bit) = node.skipped_difference(key, tested) {
                        return SearchResult::Vacant(InsertionPoint::Fork(link, bit));
                    }
                    tested = node.end();
                    link = Link::Slot(id, node.slot_of(key));
                }
                Child::Leaf(id) => {
                    return match key.first_difference(&self.leaves[id.0].key, tested) {
                        None => SearchResult::Found(LeafPosition { leaf: id, link }),
                        Some(bit) => SearchResult::Vacant(InsertionPoint::Fork(link, bit)),
                    };
                }
                Child::Empty => return SearchResult::Vacant(InsertionPoint::Empty(link)),
            }
        }
    }

    /// Inserts a new leaf at the insertion point that [`locate`](Self::locate) returned for its
    /// key.
    pub(crate) fn insert_at(&mut self, point: InsertionPoint, key: K, value: V) -> LeafId {
        let slen = S::longest_of(&value);
        let id = LeafId(self.leaves.insert(Leaf { key, value }));
        let leaf = Child::Leaf(id);
        let (InsertionPoint::Empty(link) | InsertionPoint::Fork(link, _)) = point;
        self.push_suffix(link.node(), slen);
        match point {
            InsertionPoint::Empty(link) => {
                self.set_child(link, leaf);
                self.rebalance(link.node());
            }
            InsertionPoint::Fork(link, bit) => {
                let other = self.child(link);
                let is_first = self.key_of(leaf).slice(bit, 1) == 0;
                let pair = if is_first { [leaf, other] } else { [other, leaf] };
                let fork = self.new_node(bit, 1, leaf, pair.into_iter());
                self.set_child(link, Child::Node(fork));
                self.rebalance(match self.tuning.rebalance_from {
                    RebalanceFrom::NewNode => Some(fork),
                    RebalanceFrom::Parent => link.node(),
                });
            }
        }
        id
    }

    /// Removes the leaf of `key`.
    pub(crate) fn remove(&mut self, key: &K) -> Option<(K, V)> {
        let position = self.position_on_path(key)?;
        (self.leaves[position.leaf.0].key == *key).then(|| self.remove_at(position))
    }

    /// Removes a leaf, if the path of its key leads to it: keys in an inconsistent order lead
    /// elsewhere.
    pub(crate) fn remove_leaf(&mut self, leaf: LeafId) -> Option<(K, V)> {
        let position = self.position_on_path(&self.leaves.get(leaf.0)?.key)?;
        (position.leaf == leaf).then(|| self.remove_at(position))
    }

    /// Returns the only leaf that may have `key`; its key is not compared.
    fn position_on_path(&self, key: &K) -> Option<LeafPosition> {
        let mut link = Link::Root;
        loop {
            match self.child(link) {
                Child::Node(id) => link = Link::Slot(id, self.nodes[id.0].slot_of(key)),
                Child::Leaf(leaf) => return Some(LeafPosition { leaf, link }),
                Child::Empty => return None,
            }
        }
    }

    /// Removes the leaf at a position that [`locate`](Self::locate) returned.
    pub(crate) fn remove_at(&mut self, position: LeafPosition) -> (K, V) {
        let parent = position.link.node();
        self.set_child(position.link, Child::Empty);
        let entry = self.free_leaf(position.leaf);
        self.pull_suffix(parent, S::longest_of(&entry.1));
        self.rebalance(parent);
        entry
    }

    /// Returns a leaf, with a mutable reference to its value, whose suffix lengths must not change.
    pub(crate) fn leaf_with_same_suffixes(&mut self, id: LeafId) -> (&K, &mut V) {
        let leaf = &mut self.leaves[id.0];
        (&leaf.key, &mut leaf.value)
    }

    /// Modifies the value at a position that [`locate`](Self::locate) returned, and updates the
    /// suffix lengths of the nodes above.
    pub(crate) fn update_at<R>(
        &mut self,
        position: LeafPosition,
        update: impl FnOnce(&mut V) -> R,
    ) -> R {
        let value = &mut self.leaves[position.leaf.0].value;
        let before = S::longest_of(value);
        let result = update(value);
        let after = S::longest_of(value);
        if after > before {
            self.push_suffix(position.link.node(), after);
        }
        if after < before {
            self.pull_suffix(position.link.node(), before);
        }
        result
    }

    /// Removes a leaf from the slab, but not its link from the trie, which from then on is only
    /// valid for walks that have passed the leaf.
    pub(crate) fn free_leaf(&mut self, id: LeafId) -> (K, V) {
        let leaf = self.leaves.remove(id.0);
        (leaf.key, leaf.value)
    }

    /// Frees the memory of removed leaves and nodes. O(slots).
    pub(crate) fn shrink_to_fit(&mut self) {
        let (leaves, nodes) = (self.leaves.compact(), self.nodes.compact());
        let renumbered = |child| match child {
            Child::Empty => Child::Empty,
            Child::Leaf(LeafId(id)) => Child::Leaf(LeafId(leaves[id as usize])),
            Child::Node(NodeId(id)) => Child::Node(NodeId(nodes[id as usize])),
        };
        for (_, node) in self.nodes.iter_mut() {
            node.slots.replace(renumbered);
            node.parent = node.parent.map(|NodeId(id)| NodeId(nodes[id as usize]));
        }
        self.root = renumbered(self.root);
    }

    fn child(&self, link: Link) -> Child {
        match link {
            Link::Root => self.root,
            Link::Slot(id, index) => self.nodes[id.0].slots.get(index),
        }
    }

    /// Replaces the child of `link`, and updates the parent of the new child and the counters of
    /// the node. Does not decrease `slen` for the old child: see
    /// [`pull_suffix`](Self::pull_suffix).
    fn set_child(&mut self, link: Link, child: Child) {
        if let Child::Node(id) = child {
            self.nodes[id.0].parent = link.node();
        }
        let Link::Slot(id, index) = link else {
            self.root = child;
            return;
        };
        let end = self.nodes[id.0].end();
        let old = self.nodes[id.0].slots.get(index);
        let (is_full, was_full) = (self.is_full(child, end), self.is_full(old, end));
        let slen = self.slen_of(child);
        let node = &mut self.nodes[id.0];
        node.full = node.full + u32::from(is_full) - u32::from(was_full);
        node.used = node.used + u32::from(child != Child::Empty) - u32::from(old != Child::Empty);
        node.slots.set(index, child);
        if slen > node.slen.get() {
            node.slen = S::new(slen);
        }
    }

    /// Whether a child is full: a node that branches at `end`, without skipped bits.
    fn is_full(&self, child: Child, end: u32) -> bool {
        matches!(child, Child::Node(id) if self.nodes[id.0].pos == end)
    }

    /// The link to a node.
    fn link_of(&self, id: NodeId) -> Link {
        let node = &self.nodes[id.0];
        match node.parent {
            None => Link::Root,
            Some(parent) => Link::Slot(parent, self.nodes[parent.0].slot_of(&node.key)),
        }
    }

    /// The key that locates a child, which must not be empty.
    fn key_of(&self, child: Child) -> &K {
        match child {
            Child::Leaf(id) => &self.leaves[id.0].key,
            Child::Node(id) => &self.nodes[id.0].key,
            Child::Empty => unreachable!("an empty slot has no key"),
        }
    }
}
