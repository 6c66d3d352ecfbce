//! Going through the routes: in order, and along one address.
//!
//! In a node, slot by slot: the routes that begin there, the shortest first, and then the child. That is
//! the order of prefixes. A walk keeps the nodes that it is in, with the
//! bits that lead there; addresses are put together from these.

use alloc::vec::Vec;

use super::node::Node;
use super::pool::Pool;
use super::store::ROOT;
use super::stride::{STRIDE, Spot, home, slot_of};
use crate::key::bits::{Address, with_bits};
use crate::key::prefix::Prefix;

/// A node that a walk is in.
#[derive(Clone, Debug)]
struct Frame<A> {
    node: Node,
    pos: u32,
    /// The prefix that the node stands for.
    address: A,
    /// Slots where something begins, and that are still to come.
    slots: u64,
    /// The level that comes next in the first of them.
    level: u32,
}

/// A walk over routes in order. Good until the table changes.
#[derive(Clone, Debug)]
pub(super) struct Walk<A> {
    frames: Vec<Frame<A>>,
}

impl<A: Address> Walk<A> {
    /// A walk over the routes that `prefix` covers.
    pub(super) fn below(nodes: &Pool<Node>, prefix: &Prefix<A>) -> Self {
        let mut walk = Self { frames: Vec::new() };
        if let Some((id, pos)) = top_of(nodes, prefix) {
            let address = prefix.address().truncated(pos);
            let node = *nodes.get(id);
            if node.is_path() {
                walk.enter(nodes, id, address, pos);
            } else {
                let top = Spot::of(prefix, pos);
                let slots = node.beginnings() & top.slots();
                walk.frames.push(Frame { node, pos, address, slots, level: top.level() });
            }
        }
        walk
    }

    /// The next route, and where its value is.
    pub(super) fn next(&mut self, nodes: &Pool<Node>) -> Option<(Prefix<A>, u32)> {
        loop {
            let frame = self.frames.last_mut()?;
            if frame.slots == 0 {
                self.frames.pop();
                continue;
            }
            let (node, pos, slot) = (frame.node, frame.pos, frame.slots.trailing_zeros());
            let levels = frame.level.max(Spot::first_level(slot))..=STRIDE;
            let mut spots = levels.map(|level| Spot::above(slot, level));
            if let Some(spot) = spots.find(|&spot| node.has(spot)) {
                frame.level = spot.level() + 1;
                let address = with_bits(&frame.address, pos, spot.bits());
                return Some((Prefix::of(&address, pos + spot.level()), node.value(spot)));
            }
            frame.slots &= frame.slots - 1;
            frame.level = 0;
            if let Some(child) = node.child(slot) {
                let address = with_bits(&frame.address, pos, Spot::above(slot, STRIDE).bits());
                self.enter(nodes, child, address, pos + STRIDE);
            }
        }
    }

    /// Goes into a node, or to the end of the paths that begin there.
    fn enter(&mut self, nodes: &Pool<Node>, mut id: u32, mut address: A, mut pos: u32) {
        while let Some(path) = nodes.get(id).as_path() {
            address = with_bits(&address, pos, path.bits);
            (id, pos) = (path.child, pos + path.len());
        }
        let node = *nodes.get(id);
        self.frames.push(Frame { node, pos, address, slots: node.beginnings(), level: 0 });
    }
}

/// Where all routes are that `prefix` covers, and its position: in its home, or behind a path that
/// goes on from the bits of `prefix`.
fn top_of<A: Address>(nodes: &Pool<Node>, prefix: &Prefix<A>) -> Option<(u32, u32)> {
    let (mut id, mut pos, end) = (ROOT, 0, home(prefix.len()));
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

/// Whether `prefix` covers a route.
pub(super) fn has_below<A: Address>(nodes: &Pool<Node>, prefix: &Prefix<A>) -> bool {
    top_of(nodes, prefix).is_some_and(|(id, pos)| {
        let node = nodes.get(id);
        // Behind a path there is a route in any case.
        node.is_path() || node.has_below(Spot::of(prefix, pos))
    })
}

/// A walk along an address, over the routes that contain it.
#[derive(Clone, Debug)]
pub(super) struct Ascent<A> {
    address: A,
    /// No route longer than this.
    longest: u32,
    /// The node that it is at, and its position.
    at: Option<(u32, u32)>,
    /// The level in the node that comes next.
    level: u32,
}

impl<A: Address> Ascent<A> {
    /// A walk over the routes of up to `longest` bits that contain `address`.
    pub(super) fn along(nodes: &Pool<Node>, address: A, longest: u32) -> Self {
        let at = (!nodes.is_empty()).then_some((ROOT, 0));
        Self { address, longest, at, level: 0 }
    }

    /// The next route, and where its value is.
    pub(super) fn next(&mut self, nodes: &Pool<Node>) -> Option<(Prefix<A>, u32)> {
        loop {
            let (id, pos) = self.at?;
            let node = nodes.get(id);
            if let Some(path) = node.as_path() {
                let strides = path.agreement(self.address.window(pos));
                let agrees = strides == path.strides;
                self.at = agrees.then_some((path.child, pos + path.len()));
                continue;
            }
            let slot = slot_of(&self.address, pos);
            while self.level <= STRIDE {
                let (len, spot) = (pos + self.level, Spot::above(slot, self.level));
                if len > self.longest {
                    self.at = None;
                    return None;
                }
                self.level += 1;
                if node.has(spot) {
                    return Some((Prefix::of(&self.address, len), node.value(spot)));
                }
            }
            self.at = node.child(slot).map(|child| (child, pos + STRIDE));
            self.level = 1;
        }
    }
}
