//! The dynamic level-compressed trie.
//!
//! ```text
//!     key     0 1 │ 1 0 1 │ 0 0 │ 1 1 0 …
//!             └┬┘   └─┬─┘   └┬┘
//!              │      │      └ picks a child of n              n.pos = 5, n.bits = 2
//!              │      └ skipped: the same for every key below n, so not tested on the way down
//!              └ picks a child of p                            p.pos = 0, p.bits = 2
//!
//!                  p ┌────┬────┬────┬────┐
//!                    │ a  │ ▾  │    │ b  │                     p.used = 3, p.full = 0: n skips
//!                    └────┴─┬──┴────┴────┘
//!                       n ┌─┴──┬────┬────┬────┐
//!                         │ c  │    │ d  │    │                n.used = 2
//!                         └────┴────┴────┴────┘
//! ```
//!
//! A binary trie over bit strings, made short in two ways. *Path compression* leaves out nodes with
//! one child: a node branches at `pos` and skips the bits between its parent and there. *Level
//! compression* replaces the upper levels of a subtree, where they are filled well enough, by one
//! node of `2^bits` children; `policy.rs` says when such a node is doubled or halved, `resize.rs`
//! does it. Each insertion and removal resizes the nodes on its path, lowest first, and so keeps
//! the trie in shape at all times.
//!
//! Leaves and nodes lie in two slabs and link each other by index; a node of more than two slots
//! has them in an allocation of their own. A leaf holds one key and its value. It compares the whole
//! key once, and that is where skipped bits are finally checked.
//!
//! The nodes of a routing table know one thing more of what is below them: `suffix.rs` says what, and
//! `backtrack.rs` finds the longest match with it. In all other tries that takes no byte and no time.
//!
//! # Invariants
//!
//! 1. All keys below a node agree with the node's key on the bits before `pos`.
//! 2. Child `i` of a node holds the keys whose bits `pos .. pos + bits` are `i`.
//! 3. `pos` is at least the end of the parent, and `pos + bits` at most the width of the key.
//! 4. A node has `2^bits` slots, `bits >= 1`, and at least two children.
//! 5. `used` counts the children, `full` those that are nodes and skip nothing.
//! 6. Every leaf and every node in the slabs hangs in the trie exactly once, its parent known to it.
//! 7. `slen` is the longest suffix below, or the longest that fits into one slot if that is longer.
//!
//! `check.rs` names the first one that is broken.
//!
//! # Price
//!
//! For n random keys a look-up passes Θ(log* n) nodes, 1.3 to 1.6 in practice and 6 at most for a
//! million keys. A node costs a cache line or two: itself, unless it is the root, and its slot, unless
//! it has only two. The leaf costs one or two. Keys that are not random give Θ(log log n) under mild
//! assumptions, and at worst the width of the key. There are 2 or 3 slots per key, 4 bytes each.
//!
//! An insertion or removal changes a node now and then: 4 to 6 slots are made per key on the way up
//! to any size. But a single doubling of the root goes through all its slots at once, and looks into
//! every leaf below it for the new bit: tens of milliseconds at a million keys. This is the readable
//! reference; a table that never pauses is another structure.
//!
//! # Papers
//!
//! Nilsson and Tikkanen, *An experimental study of compression methods for dynamic tries*, 2002;
//! Olsson and Nilsson, *TRASH: a dynamic LC-trie and hash data structure*, 2006. What differs here:
//! rebalancing starts at a node that an insertion has made, not at its parent; a root of any width
//! is possible; resized nodes stay in place; a cascade of resizing stops after some levels.

mod backtrack;
mod check;
pub mod map;
mod node;
mod policy;
mod resize;
pub mod routes;
mod shape;
mod suffix;
pub mod unicache;
mod walk;

use crate::key::bits::BitString;
use crate::probes::Observer;
use crate::raw::slab::Slab;

pub use check::Broken;
pub(crate) use node::LeafId;
use node::{Child, Leaf, Link, Node, NodeId};
pub use policy::{RebalanceFrom, Thresholds, Tuning, TuningError};
pub use shape::TrieShape;
pub(crate) use suffix::Suffixes;
pub(crate) use walk::Walk;

/// A level-compressed trie of leaves, whose nodes keep an `S` of the suffixes below them.
#[derive(Clone, Debug)]
pub(crate) struct Trie<K, V, S = ()> {
    root: Child,
    nodes: Slab<Node<K, S>>,
    leaves: Slab<Leaf<K, V>>,
    /// Bytes of all slots that are allocations of their own.
    slot_bytes: usize,
    tuning: Tuning,
}

/// Where a key is, or where it would go.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    Found(Seat),
    Vacant(Gap),
}

/// A leaf and where it hangs. Good until the trie changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seat {
    pub(crate) leaf: LeafId,
    link: Link,
}

/// Where a new leaf would go. Good until the trie changes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gap {
    /// Into an empty slot.
    Empty(Link),
    /// Between a link and the child there, which differs from the key in this bit.
    Fork(Link, u32),
}

/// Values that may be changed without the trie, because its nodes keep nothing of them.
impl<K: BitString, V> Trie<K, V> {
    pub(crate) fn leaf_mut(&mut self, id: LeafId) -> (&K, &mut V) {
        let leaf = &mut self.leaves[id.0];
        (&leaf.key, &mut leaf.value)
    }

    /// Every leaf in slab order, which is no order of keys.
    pub(crate) fn leaves_mut(&mut self) -> impl Iterator<Item = (LeafId, &K, &mut V)> {
        self.leaves.iter_mut().map(|(id, leaf)| (LeafId(id), &leaf.key, &mut leaf.value))
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

    /// The leaf of `key`. Skipped bits are not tested on the way down: the leaf tests all.
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

    /// The leaf of `key`, or the gap where it would go.
    pub(crate) fn locate(&self, key: &K) -> Place {
        let mut link = Link::Root;
        let mut tested = 0;
        loop {
            match self.child(link) {
                Child::Node(id) => {
                    let node = &self.nodes[id.0];
                    if let Some(bit) = node.skipped_difference(key, tested) {
                        return Place::Vacant(Gap::Fork(link, bit));
                    }
                    tested = node.end();
                    link = Link::Slot(id, node.slot_of(key));
                }
                Child::Leaf(id) => {
                    return match key.first_difference(&self.leaves[id.0].key, tested) {
                        None => Place::Found(Seat { leaf: id, link }),
                        Some(bit) => Place::Vacant(Gap::Fork(link, bit)),
                    };
                }
                Child::Empty => return Place::Vacant(Gap::Empty(link)),
            }
        }
    }

    /// Puts a new leaf into the gap that [`locate`](Self::locate) found for its key.
    pub(crate) fn fill(&mut self, gap: Gap, key: K, value: V) -> LeafId {
        let slen = S::of(&value);
        let id = LeafId(self.leaves.insert(Leaf { key, value }));
        let leaf = Child::Leaf(id);
        let (Gap::Empty(link) | Gap::Fork(link, _)) = gap;
        self.push(link.node(), slen);
        match gap {
            Gap::Empty(link) => {
                self.put(link, leaf);
                self.rebalance(link.node());
            }
            Gap::Fork(link, bit) => {
                let other = self.child(link);
                let is_first = self.key_of(leaf).slice(bit, 1) == 0;
                let pair = if is_first { [leaf, other] } else { [other, leaf] };
                let fork = self.branch(bit, 1, leaf, pair.into_iter());
                self.put(link, Child::Node(fork));
                self.rebalance(match self.tuning.rebalance_from {
                    RebalanceFrom::NewNode => Some(fork),
                    RebalanceFrom::Parent => link.node(),
                });
            }
        }
        id
    }

    /// Takes out the leaf of `key`.
    pub(crate) fn remove(&mut self, key: &K) -> Option<(K, V)> {
        let mut link = Link::Root;
        loop {
            match self.child(link) {
                Child::Node(id) => link = Link::Slot(id, self.nodes[id.0].slot_of(key)),
                Child::Leaf(leaf) if self.leaves[leaf.0].key == *key => {
                    return Some(self.vacate(Seat { leaf, link }));
                }
                Child::Leaf(_) | Child::Empty => return None,
            }
        }
    }

    /// Takes out the leaf in a seat that [`locate`](Self::locate) found.
    pub(crate) fn vacate(&mut self, seat: Seat) -> (K, V) {
        self.put(seat.link, Child::Empty);
        let entry = self.take_leaf(seat.leaf);
        self.pull(seat.link.node(), S::of(&entry.1));
        self.rebalance(seat.link.node());
        entry
    }

    /// Changes the value in a seat that [`locate`](Self::locate) found, and what nodes keep of it.
    pub(crate) fn change<R>(&mut self, seat: Seat, change: impl FnOnce(&mut V) -> R) -> R {
        let value = &mut self.leaves[seat.leaf.0].value;
        let before = S::of(value);
        let result = change(value);
        let after = S::of(value);
        if after > before {
            self.push(seat.link.node(), after);
        }
        if after < before {
            self.pull(seat.link.node(), before);
        }
        result
    }

    /// Takes a leaf out of the slab but not out of the trie, which from then on is good for walking
    /// on only.
    pub(crate) fn take_leaf(&mut self, id: LeafId) -> (K, V) {
        let leaf = self.leaves.remove(id.0);
        (leaf.key, leaf.value)
    }

    /// Gives back the memory that freed leaves and nodes have left behind. O(slots).
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

    /// Hangs `child` by `link`, and keeps the parent of `child` and what the node there counts. Its
    /// `slen` does not sink by what hung there before: that is for [`pull`](Self::pull).
    fn put(&mut self, link: Link, child: Child) {
        if let Child::Node(id) = child {
            self.nodes[id.0].parent = link.node();
        }
        let Link::Slot(id, index) = link else {
            self.root = child;
            return;
        };
        let end = self.nodes[id.0].end();
        let old = self.nodes[id.0].slots.get(index);
        let (gains, loses) = (self.is_full(child, end), self.is_full(old, end));
        let slen = self.slen_of(child);
        let node = &mut self.nodes[id.0];
        node.full = node.full + u32::from(gains) - u32::from(loses);
        node.used = node.used + u32::from(child != Child::Empty) - u32::from(old != Child::Empty);
        node.slots.set(index, child);
        if slen > node.slen.get() {
            node.slen = S::new(slen);
        }
    }

    /// Whether a child is full: a node that branches at `end`, skipping nothing.
    fn is_full(&self, child: Child, end: u32) -> bool {
        matches!(child, Child::Node(id) if self.nodes[id.0].pos == end)
    }

    /// Where a node hangs.
    fn link_of(&self, id: NodeId) -> Link {
        let node = &self.nodes[id.0];
        match node.parent {
            None => Link::Root,
            Some(parent) => Link::Slot(parent, self.nodes[parent.0].slot_of(&node.key)),
        }
    }

    /// A key that locates a child, which must not be empty.
    fn key_of(&self, child: Child) -> &K {
        match child {
            Child::Leaf(id) => &self.leaves[id.0].key,
            Child::Node(id) => &self.nodes[id.0].key,
            Child::Empty => unreachable!("an empty slot has no key"),
        }
    }
}
