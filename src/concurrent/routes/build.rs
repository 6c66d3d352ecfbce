//! Copies of nodes: the blocks of a word after a change of one route.
//!
//! ```text
//!     word ──→ ▢ ──→ ▢ ──→ ▢ changed          the nodes on the path to the route are copied,
//!              │ ╲    ╲                       from the table of the writer; all others are kept
//!              ▢  ▢    ▢  kept
//! ```
//!
//! A change may split a path, or merge nodes into one. So the former blocks are followed by a
//! [`Former`], which may be in the middle of a path; what is kept from there on is the rest of the
//! path.
#![allow(unsafe_code)]

use alloc::vec::Vec;

use super::arena::NONE;
use super::block::{BlockRef, Blocks, Header, Path};
use crate::key::bits::Address;
use crate::routes::nodes::NodeRef;
use crate::routes::{Key, STRIDE, first_slot};

/// A position in the former blocks: a block, and the strides of it that have been passed, if it is
/// a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Former {
    id: u32,
    skipped: u32,
}

impl Former {
    /// Returns the position of a block, if there is one.
    pub(super) fn of(id: u32) -> Option<Self> {
        (id != NONE).then_some(Self { id, skipped: 0 })
    }
}

/// A path or a node of a former block.
enum Shape {
    Path(Path),
    Node(Header),
}

/// Builds the blocks of a word.
pub(super) struct Builder<'b, 's, A> {
    pub(super) blocks: &'b mut Blocks<'s>,
    /// The prefix that has changed, and the position of its node.
    pub(super) key: &'b Key<A>,
    pub(super) end: u32,
    /// Former blocks that have been replaced.
    pub(super) opened: Vec<u32>,
    /// Former blocks that are part of the new ones.
    pub(super) kept: Vec<u32>,
}

impl<A: Address> Builder<'_, '_, A> {
    /// Returns a block for the node at `pos` on the path to the change.
    pub(super) fn changed<V: Copy>(
        &mut self,
        node: NodeRef<'_, V>,
        pos: u32,
        former: Option<Former>,
    ) -> u32 {
        let Some((bits, strides, end_node)) = node.path() else {
            return self.changed_node(node, pos, former);
        };
        let end = pos + strides * STRIDE;
        let mut path = Path { bits, strides, child: NONE };
        let at_end = self.along::<V>(former, path);
        let is_changed = end <= self.end && path.agrees(self.key.window(pos));
        path.child = match is_changed {
            true => self.changed(end_node, end, at_end),
            false => self.keep(end_node, at_end),
        };
        self.blocks.path(path)
    }

    fn changed_node<V: Copy>(
        &mut self,
        node: NodeRef<'_, V>,
        pos: u32,
        former: Option<Former>,
    ) -> u32 {
        let changed = (pos < self.end).then(|| self.key.slot(pos));
        let (inner, outer) = node.bits();
        let header = Header { inner, outer, branches: node.branches() };
        let mut children = [NONE; u64::BITS as usize];
        let mut count = 0;
        for slot in (0..u64::BITS).filter(|&slot| header.has_child(slot)) {
            let Some(child) = node.child(slot) else { continue };
            let below = self.below::<V>(former, slot);
            children[count] = match changed == Some(slot) {
                true => self.changed(child, pos + STRIDE, below),
                false => self.keep(child, below),
            };
            count += 1;
        }
        self.blocks.node(header, node.values(), &children[..count])
    }

    /// Returns a block for a node beside the path to the change.
    fn keep<V: Copy>(&mut self, node: NodeRef<'_, V>, former: Option<Former>) -> u32 {
        let Some(Former { id, skipped }) = former else { return self.blocks.copy_all(node) };
        match self.shape::<V>(id) {
            Shape::Path(path) if skipped > 0 => {
                self.kept.push(path.child);
                self.blocks.path(path.skip(skipped))
            }
            _ => {
                self.kept.push(id);
                id
            }
        }
    }

    fn shape<V>(&self, id: u32) -> Shape {
        // SAFETY: the former blocks are not freed yet.
        let block = unsafe { BlockRef::<V>::new(self.blocks.arena, id) };
        // SAFETY: a node or a path.
        let header = *unsafe { block.header() };
        if header.is_path() {
            // SAFETY: a path.
            Shape::Path(unsafe { block.path() })
        } else {
            Shape::Node(header)
        }
    }

    /// Returns the position of a child in a slot.
    fn below<V>(&mut self, former: Option<Former>, slot: u32) -> Option<Former> {
        let Former { id, skipped } = former?;
        if self.opened.last() != Some(&id) {
            self.opened.push(id);
        }
        match self.shape::<V>(id) {
            Shape::Path(path) => {
                let rest = path.skip(skipped);
                if first_slot(rest.bits) != slot {
                    None
                } else if rest.strides == 1 {
                    Former::of(path.child)
                } else {
                    Some(Former { id, skipped: skipped + 1 })
                }
            }
            Shape::Node(header) if header.has_child(slot) => {
                // SAFETY: the former blocks are not freed yet.
                let block = unsafe { BlockRef::<V>::new(self.blocks.arena, id) };
                // SAFETY: it has the child.
                Former::of(unsafe { block.child(slot) })
            }
            Shape::Node(_) => None,
        }
    }

    /// Returns the position at the end of a path.
    fn along<V>(&mut self, former: Option<Former>, path: Path) -> Option<Former> {
        (0..path.strides).fold(former, |former, nth| {
            self.below::<V>(former, first_slot(path.bits << (nth * STRIDE)))
        })
    }

    /// Retires the former blocks that the new ones replace: those that have been opened, and those
    /// on the path to the change, which may have been removed.
    pub(super) fn retire_former<V: Copy>(mut self, top: u32, mut pos: u32) {
        let mut id = top;
        while id != NONE && pos <= self.end && !self.kept.contains(&id) {
            self.opened.push(id);
            // Read once, as an inconsistent address type may return other bits the second time.
            let window = self.key.window(pos);
            let slot = first_slot(window);
            match self.shape::<V>(id) {
                Shape::Path(path) if path.agrees(window) => {
                    (id, pos) = (path.child, pos + path.strides * STRIDE);
                }
                Shape::Node(header) if header.has_child(slot) => {
                    // SAFETY: the former blocks are not freed yet.
                    let block = unsafe { BlockRef::<V>::new(self.blocks.arena, id) };
                    // SAFETY: it has the child.
                    id = unsafe { block.child(slot) };
                    pos += STRIDE;
                }
                _ => break,
            }
        }
        self.opened.sort_unstable();
        self.opened.dedup();
        self.opened.iter().for_each(|&id| self.blocks.retire_node::<V>(id));
    }
}

impl Blocks<'_> {
    /// Returns new blocks for a node and all below it.
    pub(super) fn copy_all<V: Copy>(&mut self, node: NodeRef<'_, V>) -> u32 {
        if let Some((bits, strides, end)) = node.path() {
            let child = self.copy_all(end);
            return self.path(Path { bits, strides, child });
        }
        let (inner, outer) = node.bits();
        let header = Header { inner, outer, branches: node.branches() };
        let mut children = [NONE; u64::BITS as usize];
        let mut count = 0;
        for child in (0..u64::BITS).filter_map(|slot| node.child(slot)) {
            children[count] = self.copy_all(child);
            count += 1;
        }
        self.node(header, node.values(), &children[..count])
    }
}
