//! Traversals of the routes: in order, and along one address.
//!
//! A walk visits the slots of a node in order: for each slot the routes that begin there, the
//! shortest first, and then the child. That is the order of prefixes. It keeps the nodes of the
//! current path with the bits that lead to them, and composes addresses from these.

use super::node::Node;
use super::pool::Pool;
use super::store::ROOT;
use super::stride::{PrefixIndex, STRIDE, node_pos, slot_of};
use crate::key::bits::{Address, with_bits};
use crate::key::prefix::Prefix;
use crate::memory::{Allocator, Vec};

/// A node on the current path of a walk.
#[derive(Clone, Debug)]
struct Frame<A> {
    node: Node,
    pos: u32,
    /// The prefix of the node.
    address: A,
    /// Slots with routes or children that have not been visited.
    slots: u64,
    /// The next level in the first of these slots.
    level: u32,
}

/// A walk over routes in order, valid until the table changes.
#[derive(Clone, Debug)]
pub(super) struct Walk<A, M: Allocator + Clone> {
    frames: Vec<Frame<A>, M>,
}

impl<A: Address, M: Allocator + Clone> Walk<A, M> {
    /// Creates a walk over the routes that `prefix` covers.
    pub(super) fn below(nodes: &Pool<Node, M>, prefix: &Prefix<A>) -> Self {
        let mut walk = Self { frames: Vec::new_in(nodes.memory().clone()) };
        if let Some((id, pos)) = top_of(nodes, prefix) {
            let address = prefix.address().truncated(pos);
            let node = *nodes.get(id);
            if node.is_path() {
                walk.enter(nodes, id, address, pos);
            } else {
                let top = PrefixIndex::of(prefix, pos);
                let slots = node.starts() & top.slots();
                walk.frames.push(Frame { node, pos, address, slots, level: top.level() });
            }
        }
        walk
    }

    /// Allocates what any walk needs.
    pub(super) fn reserve(&mut self) {
        self.frames.reserve_exact((A::BITS / STRIDE + 1) as usize);
    }

    /// Returns the next route and the index of its value.
    pub(super) fn next(&mut self, nodes: &Pool<Node, M>) -> Option<(Prefix<A>, u32)> {
        loop {
            let frame = self.frames.last_mut()?;
            if frame.slots == 0 {
                self.frames.pop();
                continue;
            }
            let (node, pos, slot) = (frame.node, frame.pos, frame.slots.trailing_zeros());
            let levels = frame.level.max(PrefixIndex::first_level(slot))..=STRIDE;
            let mut indices = levels.map(|level| PrefixIndex::covering(slot, level));
            if let Some(index) = indices.find(|&index| node.has(index)) {
                frame.level = index.level() + 1;
                let address = with_bits(&frame.address, pos, index.bits());
                return Some((Prefix::of(&address, pos + index.level()), node.value(index)));
            }
            frame.slots &= frame.slots - 1;
            frame.level = 0;
            if let Some(child) = node.child(slot) {
                let address =
                    with_bits(&frame.address, pos, PrefixIndex::covering(slot, STRIDE).bits());
                self.enter(nodes, child, address, pos + STRIDE);
            }
        }
    }

    /// Enters a node, or the node at the end of the paths that begin there.
    fn enter(&mut self, nodes: &Pool<Node, M>, mut id: u32, mut address: A, mut pos: u32) {
        while let Some(path) = nodes.get(id).as_path() {
            address = with_bits(&address, pos, path.bits);
            (id, pos) = (path.child, pos + path.len());
        }
        let node = *nodes.get(id);
        self.frames.push(Frame { node, pos, address, slots: node.starts(), level: 0 });
    }
}

/// Returns the top node of all routes that `prefix` covers, and its position: the node for routes
/// of `prefix`, or a path that extends the bits of `prefix`.
fn top_of<A: Address, M: Allocator + Clone>(
    nodes: &Pool<Node, M>,
    prefix: &Prefix<A>,
) -> Option<(u32, u32)> {
    let (mut id, mut pos, end) = (ROOT, 0, node_pos(prefix.len()));
    if nodes.is_empty() {
        return None;
    }
    loop {
        let node = nodes.get(id);
        if let Some(path) = node.as_path() {
            let bits = path.len().min(prefix.len() - pos);
            if (path.bits ^ prefix.address().window(pos)) >> (u64::BITS - bits) != 0 {
                return None;
            }
            if pos + path.len() > end {
                return Some((id, pos));
            }
            (id, pos) = (path.child, pos + path.len());
        } else if pos == end {
            return Some((id, pos));
        } else {
            (id, pos) = (node.child(slot_of(&prefix.address(), pos))?, pos + STRIDE);
        }
    }
}

/// Returns whether `prefix` covers a route.
pub(super) fn has_covered<A: Address, M: Allocator + Clone>(
    nodes: &Pool<Node, M>,
    prefix: &Prefix<A>,
) -> bool {
    top_of(nodes, prefix).is_some_and(|(id, pos)| {
        let node = nodes.get(id);
        // Below a path there is always a route.
        node.is_path() || node.has_covered(PrefixIndex::of(prefix, pos))
    })
}

/// A descent along an address, over the routes that contain it.
#[derive(Clone, Debug)]
pub(super) struct Descent<A> {
    address: A,
    /// The maximum length of a route.
    longest: u32,
    /// The current node, and its position.
    at: Option<(u32, u32)>,
    /// The next level in the node.
    level: u32,
}

impl<A: Address> Descent<A> {
    /// Creates a descent over the routes of up to `longest` bits that contain `address`.
    pub(super) fn along<M: Allocator + Clone>(
        nodes: &Pool<Node, M>,
        address: A,
        longest: u32,
    ) -> Self {
        let at = (!nodes.is_empty()).then_some((ROOT, 0));
        Self { address, longest, at, level: 0 }
    }

    /// Returns the next route and the index of its value.
    pub(super) fn next<M: Allocator + Clone>(
        &mut self,
        nodes: &Pool<Node, M>,
    ) -> Option<(Prefix<A>, u32)> {
        loop {
            let (id, pos) = self.at?;
            let node = nodes.get(id);
            if let Some(path) = node.as_path() {
                let strides = path.common_strides(self.address.window(pos));
                let agrees = strides == path.strides;
                self.at = agrees.then_some((path.child, pos + path.len()));
                continue;
            }
            let slot = slot_of(&self.address, pos);
            while self.level <= STRIDE {
                let (len, index) = (pos + self.level, PrefixIndex::covering(slot, self.level));
                if len > self.longest {
                    self.at = None;
                    return None;
                }
                self.level += 1;
                if node.has(index) {
                    return Some((Prefix::of(&self.address, len), node.value(index)));
                }
            }
            self.at = node.child(slot).map(|child| (child, pos + STRIDE));
            self.level = 1;
        }
    }
}
