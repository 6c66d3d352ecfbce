//! Insertion and removal of the nodes on the path to a prefix.
//!
//! ```text
//!     insertion of a route of 48 bits into an empty table:
//!     root ─ 6 ─ 12 ─ 18 ┄┄┄┄┄┄┄┄ path ┄┄┄┄┄┄┄┄ 42
//!     └─── nodes ───┘                           └ node of the route
//!
//!     insertion of another one, which differs in bit 25:
//!     root ─ 6 ─ 12 ─ 18 ┄ 24 ┄┄ path ┄┄ 42
//!                           └┄┄┄ path ┄┄ 42
//! ```
//!
//! Nodes are at every sixth bit. Above bit [`PATHS_FROM`] there is a node for each stride, since
//! direct tables are computed from them. From there on, two consecutive nodes with one child and no
//! routes are compressed into a path, and so are paths, if one word holds their bits. So a route
//! costs a node, and one more for each sixty bits that only it uses. Removing the last route of a
//! branch detaches the branch at the last node that has another route or child.

use super::RouteTable;
use super::direct::{Slot, TABLE_END};
use super::node::{Node, Path};
use super::pool::Empty;
use super::store::{NO_NODE, ROOT, Store};
use super::stride::{STRIDE, node_pos, slot_of};
use crate::key::bits::Address;
use crate::key::prefix::Prefix;

/// The first position of paths: direct tables need each node before it.
pub(super) const PATHS_FROM: u32 = TABLE_END;

/// A node on the path to a prefix, and its parent.
#[derive(Clone, Copy)]
struct Step {
    id: u32,
    pos: u32,
    /// The parent, and its position.
    parent: u32,
    parent_pos: u32,
}

impl Step {
    const START: Self = Self { id: ROOT, pos: 0, parent: ROOT, parent_pos: 0 };
}

/// The nodes that an update has visited or changed: the slots at bits 0 and 6, if there are
/// several, and the position of the first node that gained or lost a child.
///
/// The slots are recorded on the way down. Computing them again from the address could give others
/// if its type violates the contract of `BitString`, and direct tables would become stale.
#[derive(Clone, Copy, Default)]
pub(super) struct Trace {
    pub(super) first: u32,
    pub(super) second: u32,
    pub(super) changed: Option<u32>,
}

impl Trace {
    fn record(&mut self, pos: u32, slot: u32) {
        match pos {
            0 => self.first = slot,
            STRIDE => self.second = slot,
            _ => {}
        }
    }
}

/// The position of nodes whose routes are visible in one group of slots only.
const POS_12: u32 = 2 * STRIDE;

/// The node from which a descent to a prefix begins.
pub(super) struct Start {
    /// The first six bits of the prefix.
    pub(super) first: u32,
    /// Index and position of the node.
    pub(super) node: (u32, u32),
}

impl<A: Address, V> RouteTable<A, V> {
    /// Returns where a descent to the node of `prefix` may begin: at the root, or after a direct
    /// table.
    pub(super) fn start(&self, prefix: &Prefix<A>) -> Start {
        let first = slot_of(&prefix.address(), 0);
        let slot = self.direct.as_ref().filter(|_| node_pos(prefix.len()) >= TABLE_END);
        let slot = slot.and_then(|direct| direct.slot(&prefix.address()));
        let node = slot.map_or(NO_NODE, Slot::node);
        Start { first, node: if node == NO_NODE { (ROOT, 0) } else { (node, TABLE_END) } }
    }

    /// Recomputes the slots of direct tables that depend on the node for routes of `len` bits,
    /// after its values have moved or its children have changed.
    pub(super) fn rebuild(&mut self, len: u32, trace: Trace) {
        match (&mut self.direct, node_pos(len)) {
            (Some(direct), STRIDE) => direct.rebuild(&self.store, trace.first),
            (Some(direct), POS_12) => {
                direct.rebuild_group(&self.store, trace.first, trace.second);
            }
            _ => self.rebuild_after_branch(trace),
        }
    }

    /// Recomputes the slots that depend on a node that gained or lost a child.
    pub(super) fn rebuild_after_branch(&mut self, trace: Trace) {
        let Some(direct) = &mut self.direct else { return };
        if trace.changed.is_some_and(|pos| pos < TABLE_END) {
            direct.rebuild_group(&self.store, trace.first, trace.second);
        }
    }
}

impl<V> Store<V> {
    /// Returns the node for routes of `prefix`, if it exists below the node `id` at `pos`.
    pub(super) fn find_node<A: Address>(
        &self,
        prefix: &Prefix<A>,
        (mut id, mut pos): (u32, u32),
    ) -> Option<(u32, Trace)> {
        let (end, mut trace) = (node_pos(prefix.len()), Trace::default());
        if self.nodes.is_empty() {
            return None;
        }
        loop {
            let node = self.nodes.get(id);
            if let Some(path) = node.as_path() {
                let strides = path.common_strides(prefix.address().window(pos));
                if strides < path.strides || pos + path.len() > end {
                    return None;
                }
                (id, pos) = (path.child, pos + path.len());
            } else if pos == end {
                return Some((id, trace));
            } else {
                let slot = slot_of(&prefix.address(), pos);
                trace.record(pos, slot);
                (id, pos) = (node.child(slot)?, pos + STRIDE);
            }
        }
    }

    /// Returns the node for routes of `prefix` below the node `id` at `pos`; creates it and the
    /// path to it if necessary.
    pub(super) fn ensure_path<A: Address>(
        &mut self,
        prefix: &Prefix<A>,
        (mut id, mut pos): (u32, u32),
    ) -> (u32, Trace) {
        self.make_root();
        let (end, mut trace, mut above) = (node_pos(prefix.len()), Trace::default(), None);
        loop {
            let node = *self.nodes.get(id);
            if let Some(path) = node.as_path() {
                let window = prefix.address().window(pos);
                let strides = path.common_strides(window).min((end - pos) / STRIDE);
                let end_of_path = if strides == path.strides {
                    path.child
                } else {
                    let fork = self.split(id, path, strides);
                    // The shortened path may fit into the path above it.
                    if let Some(above) = above.filter(|_| strides > 0) {
                        self.merge(above);
                    }
                    fork
                };
                // If the path was merged into the one above, the next node is not a path: `above`
                // is not used.
                above = Some(id);
                (id, pos) = (end_of_path, pos + strides * STRIDE);
            } else if pos == end {
                return (id, trace);
            } else {
                let slot = slot_of(&prefix.address(), pos);
                trace.record(pos, slot);
                above = (pos >= PATHS_FROM).then_some(id);
                id = node.child(slot).unwrap_or_else(|| {
                    trace.changed = trace.changed.or(Some(pos));
                    let child = self.new_branch(prefix, pos + STRIDE);
                    self.add_child(id, slot, child)
                });
                pos += STRIDE;
            }
        }
    }

    /// Returns whether a node that has lost a route must be removed or compressed.
    pub(super) fn is_redundant(&self, id: u32) -> bool {
        let node = self.nodes.get(id);
        node.is_empty() || node.as_chain().is_some()
    }

    /// Removes the nodes that lead to the node of `prefix` and to nothing else.
    pub(super) fn remove_path<A: Address>(&mut self, prefix: &Prefix<A>) -> Trace {
        let (end, mut trace, mut at) = (node_pos(prefix.len()), Trace::default(), Step::START);
        // The last node that has another route or child, and the slot of the branch to `prefix`.
        let mut last_branch = (at, None);
        while at.pos < end {
            let node = self.nodes.get(at.id);
            let (id, pos) = if let Some(path) = node.as_path() {
                (path.child, at.pos + path.len())
            } else {
                let slot = slot_of(&prefix.address(), at.pos);
                trace.record(at.pos, slot);
                if at.id == ROOT || node.as_chain().is_none() {
                    last_branch = (at, Some(slot));
                }
                let Some(child) = node.child(slot) else { return trace };
                (child, at.pos + STRIDE)
            };
            at = Step { id, pos, parent: at.id, parent_pos: at.pos };
        }
        if !self.nodes.get(at.id).is_empty() {
            self.merge_around(at);
        } else if let (last_branch, Some(slot)) = last_branch {
            self.detach(last_branch.id, slot);
            self.merge_around(last_branch);
            trace.changed = Some(last_branch.pos);
        }
        trace
    }

    /// Returns a node at `pos` that leads to the node of `prefix`: that node itself, or a path to
    /// it.
    fn new_branch<A: Address>(&mut self, prefix: &Prefix<A>, pos: u32) -> Node {
        let mut left = (node_pos(prefix.len()) - pos) / STRIDE;
        if pos < PATHS_FROM || left == 0 {
            return Node::EMPTY;
        }
        let mut node = Node::EMPTY;
        while left > 0 {
            let strides = left.min(Path::LONGEST);
            left -= strides;
            let window = prefix.address().window(pos + left * STRIDE);
            let child = self.nodes.alloc_one(node);
            node = Node::chain(Path { bits: window, strides, child }.first(strides, child));
        }
        node
    }

    /// Adds a child to a node in an empty slot. Returns the index of the child.
    fn add_child(&mut self, id: u32, slot: u32, child: Node) -> u32 {
        let node = *self.nodes.get(id);
        let (block, len) = node.children_block();
        let at = node.child_of(slot) - block;
        let block = self.nodes.insert(block, len, at, child);
        self.nodes.get_mut(id).flip_child(slot, block);
        block + at
    }

    /// Splits a path after its first strides, to add a branch there. Returns the new node, whose
    /// child is the rest of the path.
    fn split(&mut self, id: u32, path: Path, strides: u32) -> u32 {
        let rest = path.skip(strides + 1);
        let child = match rest.strides {
            0 => path.child,
            _ => {
                let rest = self.nodes.alloc_one(Node::chain(rest));
                self.merge(rest);
                rest
            }
        };
        let fork = Node::chain(path.skip(strides).first(1, child));
        if strides == 0 {
            *self.nodes.get_mut(id) = fork;
            return id;
        }
        let fork = self.nodes.alloc_one(fork);
        *self.nodes.get_mut(id) = Node::chain(path.first(strides, fork));
        fork
    }

    /// Removes the child in a slot and all nodes below it, which have no routes and one child each.
    fn detach(&mut self, id: u32, slot: u32) {
        let node = *self.nodes.get(id);
        debug_assert!(node.has_child(slot));
        let (block, len) = node.children_block();
        let (mut freed, block) = self.nodes.remove(block, len, node.child_of(slot) - block);
        self.nodes.get_mut(id).flip_child(slot, block);
        while let Some(child) = freed.only_child() {
            freed = self.nodes.remove(child, 1, 0).0;
        }
    }

    /// Merges a chain node with its child, and its parent with it, into paths where possible.
    fn merge_around(&mut self, at: Step) {
        if at.pos < PATHS_FROM {
            return;
        }
        self.merge(at.id);
        if at.parent_pos >= PATHS_FROM {
            self.merge(at.parent);
        }
    }

    /// Merges a node and its child into one path, if both are chain nodes and the path is not too
    /// long.
    fn merge(&mut self, id: u32) {
        let Some(path) = self.nodes.get(id).as_chain() else { return };
        let next = self.nodes.get(path.child).as_chain();
        if let Some(merged) = next.and_then(|next| path.merged(next)) {
            self.nodes.remove(path.child, 1, 0);
            *self.nodes.get_mut(id) = Node::chain(merged);
        }
    }
}
