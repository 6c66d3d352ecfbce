//! Traversals of the routes: in order, and along one address.
//!
//! A walk visits the slots of a node in order: for each slot the routes that begin there, the
//! shortest first, and then the child. That is the order of prefixes. It keeps the current node
//! with the bits that lead to it, and composes addresses from these; and the nodes above that have
//! more slots to visit.

use core::ops::Bound;

use super::node::{Branch, Form};
use super::store::{Nodes, ROOT};
use super::stride::{PrefixIndex, STRIDE, node_pos, slot_of};
use crate::key::bits::{Address, with_bits};
use crate::key::prefix::Prefix;
use crate::memory::{Allocator, Vec};

/// The current node of a walk.
#[derive(Clone, Debug)]
struct Frame<A> {
    branch: Branch,
    id: u32,
    pos: u32,
    /// The prefix of the node.
    address: A,
    /// Slots with routes or children that have not been visited.
    slots: u64,
    /// The next level in the first of these slots.
    level: u32,
}

impl<A: Address> Frame<A> {
    /// Returns the frame of a node, or of the node at the end of the paths that begin there.
    fn of<M: Allocator + Clone>(
        nodes: &Nodes<M>,
        (mut id, mut pos): (u32, u32),
        mut address: A,
    ) -> Self {
        while let Some(path) = nodes.get(id).as_path() {
            address = with_bits(&address, pos, path.bits);
            (id, pos) = (path.child, pos + path.len());
        }
        let branch = *nodes.get(id).branch();
        Self { branch, id, pos, address, slots: branch.starts(), level: 0 }
    }
}

/// A walk over routes in order, valid until the table changes. Allocates nothing, but for addresses
/// of more than 128 bits.
///
/// It returns the index of each value once, also if the address type is inconsistent or panics: so
/// nodes and slots are never computed from addresses, and a step changes the walk when all
/// addresses have been computed.
#[derive(Clone, Debug)]
pub(super) struct Walk<A, M: Allocator + Clone> {
    frame: Frame<A>,
    ancestors: Ancestors<M>,
}

impl<A: Address, M: Allocator + Clone> Walk<A, M> {
    /// Creates a walk over the routes that `prefix` covers.
    pub(super) fn below(nodes: &Nodes<M>, prefix: &Prefix<A>) -> Self {
        let ancestors = Ancestors::new_in(nodes.memory().clone());
        let Some((id, pos)) = top_of(nodes, prefix) else {
            let (branch, address) = (Branch::EMPTY, prefix.address());
            return Self {
                frame: Frame { branch, id: ROOT, pos: 0, address, slots: 0, level: 0 },
                ancestors,
            };
        };
        let mut frame = Frame::of(nodes, (id, pos), prefix.address().truncated(pos));
        if frame.pos == pos {
            let top = PrefixIndex::of(prefix, pos);
            (frame.slots, frame.level) = (frame.slots & top.slots(), top.level());
        }
        Self { frame, ancestors }
    }

    /// Creates a walk over the routes that `prefix` covers, without those up to `last`, which it
    /// covers, too.
    pub(super) fn after(nodes: &Nodes<M>, prefix: &Prefix<A>, last: Option<&Prefix<A>>) -> Self {
        match last {
            Some(last) => Self::below_from(nodes, prefix, last, false),
            None => Self::below(nodes, prefix),
        }
    }

    /// Creates a walk over all routes from a bound on.
    pub(super) fn from(nodes: &Nodes<M>, bound: Bound<Prefix<A>>) -> Self {
        let all = Prefix::default_route();
        match bound {
            Bound::Included(first) => Self::below_from(nodes, &all, &first, true),
            Bound::Excluded(last) => Self::below_from(nodes, &all, &last, false),
            Bound::Unbounded => Self::below(nodes, &all),
        }
    }

    /// Creates a walk over the routes that `prefix` covers, from one of them on, which is included
    /// or not.
    fn below_from(
        nodes: &Nodes<M>,
        prefix: &Prefix<A>,
        from: &Prefix<A>,
        is_included: bool,
    ) -> Self {
        let (mut walk, len) = (Self::below(nodes, prefix), from.len());
        loop {
            let frame = &mut walk.frame;
            let pos = frame.pos;
            let order = frame.address.cmp(&from.address().truncated(pos));
            if pos == node_pos(len) && order.is_eq() {
                let index = PrefixIndex::of(from, pos);
                let (first, level) = (index.first_slot(), index.level() + u32::from(!is_included));
                frame.slots &= u64::MAX << first;
                frame.level = if frame.slots >> first & 1 == 0 { 0 } else { level };
                return walk;
            }
            if order.is_gt() || order.is_eq() && pos >= len {
                return walk;
            }
            if order.is_lt() {
                frame.slots = 0;
                return walk;
            }
            let slot = slot_of(&from.address(), pos);
            // Those that begin there and are in this node cover `from`.
            (frame.slots, frame.level) = (frame.slots & (u64::MAX << slot << 1), 0);
            let Some(child) = frame.branch.child(slot) else { return walk };
            walk.descend(nodes, slot, child);
        }
    }

    /// Allocates the ancestors that any walk needs: a prefix has at most 65,535 bits.
    pub(super) fn reserve(&mut self) {
        self.ancestors.reserve(A::BITS.min(u16::MAX.into()));
    }

    /// Returns the next route and the index of its value.
    pub(super) fn next(&mut self, nodes: &Nodes<M>) -> Option<(Prefix<A>, u32)> {
        loop {
            let frame = &mut self.frame;
            if frame.slots == 0 {
                let Ancestor { id, pos, slots } = self.ancestors.pop()?;
                let address = frame.address.truncated(pos);
                *frame =
                    Frame { branch: *nodes.get(id).branch(), id, pos, address, slots, level: 0 };
            }
            let (pos, slot) = (frame.pos, frame.slots.trailing_zeros());
            let levels = frame.level.max(PrefixIndex::first_level(slot))..=STRIDE;
            let mut indices = levels.map(|level| PrefixIndex::covering(slot, level));
            if let Some(index) = indices.find(|&index| frame.branch.has(index)) {
                frame.level = index.level() + 1;
                let address = with_bits(&frame.address, pos, index.bits());
                return Some((
                    Prefix::of(&address, pos + index.level()),
                    frame.branch.value(index),
                ));
            }
            frame.slots &= frame.slots - 1;
            frame.level = 0;
            if let Some(child) = frame.branch.child(slot) {
                self.descend(nodes, slot, child);
            }
        }
    }

    /// Continues at the child in a slot, which is not among those to be visited any more.
    fn descend(&mut self, nodes: &Nodes<M>, slot: u32, child: u32) {
        let Frame { id, pos, slots, .. } = self.frame;
        let bits = PrefixIndex::covering(slot, STRIDE).bits();
        let address = with_bits(&self.frame.address, pos, bits);
        let frame = Frame::of(nodes, (child, pos + STRIDE), address);
        if slots != 0 {
            self.ancestors.push(Ancestor { slots, id, pos });
        }
        self.frame = frame;
    }
}

/// The nodes above any other, in a trie of addresses of up to 128 bits.
const INLINE: usize = (node_pos(128) / STRIDE) as usize;

/// A node with more slots to visit.
#[derive(Clone, Copy, Debug)]
struct Ancestor {
    slots: u64,
    id: u32,
    pos: u32,
}

/// A stack of nodes, without memory of its own unless there are more than addresses of 128 bits
/// have.
#[derive(Clone, Debug)]
struct Ancestors<M: Allocator + Clone> {
    inline: [Ancestor; INLINE],
    /// The number of those inline.
    len: usize,
    /// Those after them.
    rest: Vec<Ancestor, M>,
}

impl<M: Allocator + Clone> Ancestors<M> {
    fn new_in(memory: M) -> Self {
        let empty = Ancestor { slots: 0, id: ROOT, pos: 0 };
        Self { inline: [empty; INLINE], len: 0, rest: Vec::new_in(memory) }
    }

    /// Allocates the ancestors that addresses of `bits` bits need.
    fn reserve(&mut self, bits: u32) {
        self.rest.reserve_exact(((node_pos(bits) / STRIDE) as usize).saturating_sub(INLINE));
    }

    fn push(&mut self, ancestor: Ancestor) {
        match self.inline.get_mut(self.len) {
            Some(place) => {
                *place = ancestor;
                self.len += 1;
            }
            None => self.rest.push(ancestor),
        }
    }

    fn pop(&mut self) -> Option<Ancestor> {
        self.rest.pop().or_else(|| {
            self.len = self.len.checked_sub(1)?;
            Some(self.inline[self.len])
        })
    }
}

/// Returns the top node of all routes that `prefix` covers, and its position: the node for routes
/// of `prefix`, or a path that extends the bits of `prefix`.
fn top_of<A: Address, M: Allocator + Clone>(
    nodes: &Nodes<M>,
    prefix: &Prefix<A>,
) -> Option<(u32, u32)> {
    let (mut id, mut pos, end) = (ROOT, 0, node_pos(prefix.len()));
    if nodes.is_empty() {
        return None;
    }
    loop {
        match nodes.get(id).form() {
            Form::Path(path) => {
                let bits = path.len().min(prefix.len() - pos);
                if (path.bits ^ prefix.address().window(pos)) >> (u64::BITS - bits) != 0 {
                    return None;
                }
                if pos + path.len() > end {
                    return Some((id, pos));
                }
                (id, pos) = (path.child, pos + path.len());
            }
            Form::Branch(_) if pos == end => return Some((id, pos)),
            Form::Branch(branch) => {
                (id, pos) = (branch.child(slot_of(&prefix.address(), pos))?, pos + STRIDE);
            }
        }
    }
}

/// Returns whether `prefix` covers a route.
pub(super) fn has_covered<A: Address, M: Allocator + Clone>(
    nodes: &Nodes<M>,
    prefix: &Prefix<A>,
) -> bool {
    top_of(nodes, prefix).is_some_and(|(id, pos)| match nodes.get(id).form() {
        // Below a path there is always a route.
        Form::Path(_) => true,
        Form::Branch(branch) => branch.has_covered(PrefixIndex::of(prefix, pos)),
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
    pub(super) fn along<M: Allocator + Clone>(nodes: &Nodes<M>, address: A, longest: u32) -> Self {
        let at = (!nodes.is_empty()).then_some((ROOT, 0));
        Self { address, longest, at, level: 0 }
    }

    /// Returns the next route and the index of its value.
    pub(super) fn next<M: Allocator + Clone>(
        &mut self,
        nodes: &Nodes<M>,
    ) -> Option<(Prefix<A>, u32)> {
        loop {
            let (id, pos) = self.at?;
            let branch = match nodes.get(id).form() {
                Form::Branch(branch) => branch,
                Form::Path(path) => {
                    let agrees = path.common_strides(self.address.window(pos)) == path.strides;
                    self.at = agrees.then_some((path.child, pos + path.len()));
                    continue;
                }
            };
            let slot = slot_of(&self.address, pos);
            while self.level <= STRIDE {
                let (len, index) = (pos + self.level, PrefixIndex::covering(slot, self.level));
                if len > self.longest {
                    self.at = None;
                    return None;
                }
                self.level += 1;
                if branch.has(index) {
                    return Some((Prefix::of(&self.address, len), branch.value(index)));
                }
            }
            self.at = branch.child(slot).map(|child| (child, pos + STRIDE));
            self.level = 1;
        }
    }
}
