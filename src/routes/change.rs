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

use super::direct::TABLE_END;
use super::key::Key;
use super::node::{Form, Node, Path};
use super::pool::Exhausted;
use super::store::{Nodes, ROOT};
use super::stride::{STRIDE, first_slot, node_pos};
use crate::key::bits::Address;
use crate::memory::Allocator;

/// The first position of paths: direct tables need each node before it.
pub(super) const PATHS_FROM: u32 = TABLE_END;

/// A node on the path to a prefix, and its position. At [`PATHS_FROM`] or above.
pub(super) type Start = (u32, u32);

/// The start of each path.
pub(super) const FROM_ROOT: Start = (ROOT, 0);

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
    /// Returns a step without a parent, which is above all paths.
    const fn at((id, pos): Start) -> Self {
        Self { id, pos, parent: ROOT, parent_pos: 0 }
    }
}

impl<M: Allocator + Clone> Nodes<M> {
    /// Returns the node for the routes of `key`, if it exists.
    pub(super) fn find_node<A: Address>(
        &self,
        (mut id, mut pos): Start,
        key: &Key<A>,
    ) -> Option<u32> {
        let end = node_pos(key.len());
        if self.is_empty() {
            return None;
        }
        loop {
            match self.get(id).form() {
                Form::Path(path) => {
                    let strides = path.common_strides(key.window(pos));
                    if strides < path.strides || pos + path.len() > end {
                        return None;
                    }
                    (id, pos) = (path.child, pos + path.len());
                }
                Form::Branch(_) if pos == end => return Some(id),
                Form::Branch(branch) => {
                    (id, pos) = (branch.child(key.slot(pos))?, pos + STRIDE);
                }
            }
        }
    }

    /// Returns the node for the routes of `key`; creates it and the path to it if
    /// necessary. If there is no memory, [`remove_path`](Self::remove_path) undoes the changes.
    pub(super) fn ensure_path<A: Address>(
        &mut self,
        start: Start,
        key: &Key<A>,
    ) -> Result<u32, Exhausted> {
        self.make_root()?;
        self.ensure_path_from(start, key)
    }

    /// Returns the node at bit 12, if it exists.
    pub(super) fn node_at_12(&self, word: u64) -> Option<&Node> {
        let at_6 = self.child_of(self.root(), first_slot(word))?;
        self.child_of(at_6, first_slot(word << STRIDE))
    }

    /// Returns the node at bit 18, if it exists.
    pub(super) fn node_at_18(&self, word: u64) -> Option<u32> {
        self.node_at_12(word)?.branch().child(first_slot(word << (2 * STRIDE)))
    }

    /// Returns the node for the routes of `key`, from a node at a position before it.
    fn ensure_path_from<A: Address>(
        &mut self,
        (mut id, mut pos): Start,
        key: &Key<A>,
    ) -> Result<u32, Exhausted> {
        let (end, mut above) = (node_pos(key.len()), None);
        loop {
            let node = *self.get(id);
            if let Some(path) = node.as_path() {
                let strides = path.common_strides(key.window(pos)).min((end - pos) / STRIDE);
                let end_of_path = if strides == path.strides {
                    path.child
                } else {
                    let fork = self.split(id, path, strides)?;
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
                return Ok(id);
            } else {
                let slot = key.slot(pos);
                above = (pos >= PATHS_FROM).then_some(id);
                id = match node.branch().child(slot) {
                    Some(child) => child,
                    None => self.add_branch(id, slot, key, pos + STRIDE, end)?,
                };
                pos += STRIDE;
            }
        }
    }

    /// Returns whether a node that has lost a route must be removed or compressed.
    pub(super) fn is_redundant(&self, id: u32) -> bool {
        let node = self.get(id);
        node.is_empty() || node.as_chain().is_some()
    }

    /// Removes the nodes that lead to the node for the routes of `key` and to nothing
    /// else. Returns the position of the node that has lost a child, if one has.
    pub(super) fn remove_path<A: Address>(&mut self, start: Start, key: &Key<A>) -> Option<u32> {
        let (end, mut at) = (node_pos(key.len()), Step::at(start));
        // The last node that has another route or child, and the slot of the branch to the node.
        let mut last_branch = (at, None);
        while at.pos < end {
            let node = self.get(at.id);
            let (id, pos) = if let Some(path) = node.as_path() {
                (path.child, at.pos + path.len())
            } else {
                let slot = key.slot(at.pos);
                // Missing after a failed insertion.
                let Some(child) = node.branch().child(slot) else { break };
                if at.id == ROOT || node.as_chain().is_none() {
                    last_branch = (at, Some(slot));
                }
                (child, at.pos + STRIDE)
            };
            at = Step { id, pos, parent: at.id, parent_pos: at.pos };
        }
        if !self.get(at.id).is_empty() {
            self.merge_around(at);
            return None;
        }
        let (last_branch, slot) = last_branch;
        if slot.is_none() && start != FROM_ROOT {
            // Above the start.
            return self.remove_path(FROM_ROOT, key);
        }
        self.detach(last_branch.id, slot?);
        self.merge_around(last_branch);
        Some(last_branch.pos)
    }

    /// Adds a branch from `pos` to an empty node at `end` to a node in an empty slot. Returns the
    /// index of the child.
    fn add_branch<A: Address>(
        &mut self,
        id: u32,
        slot: u32,
        key: &Key<A>,
        pos: u32,
        end: u32,
    ) -> Result<u32, Exhausted> {
        let mut left = if pos < PATHS_FROM { 0 } else { (end - pos) / STRIDE };
        let mut node = Node::EMPTY;
        while left > 0 {
            let strides = left.min(Path::LONGEST);
            left -= strides;
            let window = key.window(pos + left * STRIDE);
            let Ok(child) = self.alloc_one(node) else {
                self.free_chain(node);
                return Err(Exhausted);
            };
            node = Node::chain(Path { bits: window, strides, child }.first(strides, child));
        }
        let child = self.add_child(id, slot, node);
        child.inspect_err(|_| self.free_chain(node))
    }

    /// Adds a child to a node in an empty slot. Returns the index of the child.
    fn add_child(&mut self, id: u32, slot: u32, child: Node) -> Result<u32, Exhausted> {
        let branch = *self.get(id).branch();
        let (block, len) = branch.children_block();
        let at = branch.child_of(slot) - block;
        let (block, place) = self.insert(block, len, at)?;
        *place = child;
        self.get_mut(id).flip_child(slot, block);
        Ok(block + at)
    }

    /// Frees the nodes below a node that is not in the trie. Each node has at most one child.
    fn free_chain(&mut self, mut node: Node) {
        while let Some(child) = node.only_child() {
            node = self.remove(child, 1, 0).0;
        }
    }

    /// Splits a path after its first strides, to add a branch there. Returns the new node, whose
    /// child is the rest of the path.
    fn split(&mut self, id: u32, path: Path, strides: u32) -> Result<u32, Exhausted> {
        let after = path.skip(strides + 1);
        // Both nodes are allocated before anything changes.
        let rest = match after.strides {
            0 => path.child,
            _ => self.alloc_one(Node::chain(after))?,
        };
        let fork = if strides == 0 { Ok(id) } else { self.alloc_one(Node::EMPTY) };
        let Ok(fork) = fork else {
            if after.strides > 0 {
                self.remove(rest, 1, 0);
            }
            return Err(Exhausted);
        };
        if after.strides > 0 {
            self.merge(rest);
        }
        if strides > 0 {
            *self.get_mut(id) = Node::chain(path.first(strides, fork));
        }
        *self.get_mut(fork) = Node::chain(path.skip(strides).first(1, rest));
        Ok(fork)
    }

    /// Removes the child in a slot and all nodes below it, which have no routes and one child each.
    fn detach(&mut self, id: u32, slot: u32) {
        let branch = *self.get(id).branch();
        debug_assert!(branch.has_child(slot));
        let (block, len) = branch.children_block();
        let (freed, block) = self.remove(block, len, branch.child_of(slot) - block);
        self.get_mut(id).flip_child(slot, block);
        self.free_chain(freed);
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
        let Some(path) = self.get(id).as_chain() else { return };
        let next = self.get(path.child).as_chain();
        if let Some(merged) = next.and_then(|next| path.merged(next)) {
            self.remove(path.child, 1, 0);
            *self.get_mut(id) = Node::chain(merged);
        }
    }
}
