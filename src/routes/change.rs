//! Making the way to a prefix, and clearing it.
//!
//! ```text
//!     a route of 48 bits comes to a root without children:       another one, that differs in bit 25:
//!
//!     root ─ 6 ─ 12 ─ 18 ┄┄┄┄┄┄┄┄ path ┄┄┄┄┄┄┄┄ 42                root ─ 6 ─ 12 ─ 18 ┄ 24 ┄┄ path ┄┄ 42
//!     └─── nodes ───┘                           └ its home                             └┄┄┄ path ┄┄ 42
//! ```
//!
//! Nodes stand at every sixth bit. Above bit [`PATHS_FROM`] there is a node for each stride, since
//! direct tables look there; from there on two nodes in a row that have no routes and one child are a
//! path, and so are paths, if one word holds their bits. So a route costs a node, and one for each sixty
//! bits that lead to it alone. Removing the last route of a branch cuts the branch off at the last node
//! that has something else.

use super::RouteTable;
use super::direct::{BEHIND, Slot};
use super::node::{Node, Path};
use super::pool::Blank;
use super::store::{NOWHERE, ROOT, Store};
use super::stride::{STRIDE, home, slot_of};
use crate::key::bits::Address;
use crate::key::prefix::Prefix;

/// The first position of paths: direct tables look at each node before it.
pub(super) const PATHS_FROM: u32 = BEHIND;

/// A node on the way to a prefix, and what leads to it.
#[derive(Clone, Copy)]
struct Step {
    id: u32,
    pos: u32,
    /// The node before it, and its position.
    before: u32,
    before_pos: u32,
}

impl Step {
    const START: Self = Self { id: ROOT, pos: 0, before: ROOT, before_pos: 0 };
}

/// What a change has touched: the slots that were taken at bits 0 and 6, as far as there was a choice,
/// and the position of the first node that has got or lost a child.
///
/// These are the slots that were really taken. To ask the address again could give others, if its type
/// breaks the law, and then direct tables would keep what is no more.
#[derive(Clone, Copy, Default)]
pub(super) struct Trace {
    pub(super) first: u32,
    pub(super) second: u32,
    pub(super) changed: Option<u32>,
}

impl Trace {
    fn note(&mut self, pos: u32, slot: u32) {
        match pos {
            0 => self.first = slot,
            STRIDE => self.second = slot,
            _ => {}
        }
    }
}

/// The position of the homes whose routes only some slots see.
const HOME_12: u32 = 2 * STRIDE;

/// Where the way to a home begins.
pub(super) struct Start {
    /// The first six bits.
    pub(super) first: u32,
    /// A node, and its position.
    pub(super) node: (u32, u32),
}

impl<A: Address, V> RouteTable<A, V> {
    /// Where the way to the home of `prefix` may begin: at the root, or behind a direct table.
    pub(super) fn start(&self, prefix: &Prefix<A>) -> Start {
        let first = slot_of(&prefix.address(), 0);
        let slot = self.direct.as_ref().filter(|_| home(prefix.len()) >= BEHIND);
        let slot = slot.and_then(|direct| direct.slot(&prefix.address()));
        let node = slot.map_or(NOWHERE, Slot::node);
        Start { first, node: if node == NOWHERE { (ROOT, 0) } else { (node, BEHIND) } }
    }

    /// Makes those slots of direct tables anew that see the home of a route of `len` bits, whose
    /// values have moved, or its branches.
    pub(super) fn refresh(&mut self, len: u32, trace: Trace) {
        match (&mut self.direct, home(len)) {
            (Some(direct), STRIDE) => direct.refresh(&self.store, trace.first),
            (Some(direct), HOME_12) => {
                direct.refresh_group(&self.store, trace.first, trace.second);
            }
            _ => self.refresh_branches(trace),
        }
    }

    /// Makes those slots anew that see which nodes have got or lost a child.
    pub(super) fn refresh_branches(&mut self, trace: Trace) {
        let Some(direct) = &mut self.direct else { return };
        if trace.changed.is_some_and(|pos| pos < BEHIND) {
            direct.refresh_group(&self.store, trace.first, trace.second);
        }
    }
}

impl<V> Store<V> {
    /// The home of `prefix`, if there is one below the node `id` at `pos`.
    pub(super) fn home_of<A: Address>(
        &self,
        prefix: &Prefix<A>,
        (mut id, mut pos): (u32, u32),
    ) -> Option<(u32, Trace)> {
        let (end, mut trace) = (home(prefix.len()), Trace::default());
        if self.nodes.is_empty() {
            return None;
        }
        loop {
            let node = self.nodes.get(id);
            if let Some(path) = node.as_path() {
                let strides = path.agreement(prefix.address().window(pos));
                if strides < path.strides || pos + path.len() > end {
                    return None;
                }
                (id, pos) = (path.child, pos + path.len());
            } else if pos == end {
                return Some((id, trace));
            } else {
                let slot = slot_of(&prefix.address(), pos);
                trace.note(pos, slot);
                (id, pos) = (node.child(slot)?, pos + STRIDE);
            }
        }
    }

    /// The home of `prefix` below the node `id` at `pos`; it is made if there is none.
    pub(super) fn make_way<A: Address>(
        &mut self,
        prefix: &Prefix<A>,
        (mut id, mut pos): (u32, u32),
    ) -> (u32, Trace) {
        self.make_root();
        let (end, mut trace, mut before) = (home(prefix.len()), Trace::default(), None);
        loop {
            let node = *self.nodes.get(id);
            if let Some(path) = node.as_path() {
                let window = prefix.address().window(pos);
                let strides = path.agreement(window).min((end - pos) / STRIDE);
                let end_of_path = if strides == path.strides {
                    path.child
                } else {
                    let fork = self.split(id, path, strides);
                    // The path before may have room for the first strides now.
                    before.filter(|_| strides > 0).into_iter().for_each(|id| self.join(id));
                    fork
                };
                // If it has been joined with the one before it, what comes now is no path anyway.
                before = Some(id);
                (id, pos) = (end_of_path, pos + strides * STRIDE);
            } else if pos == end {
                return (id, trace);
            } else {
                let slot = slot_of(&prefix.address(), pos);
                trace.note(pos, slot);
                before = (pos >= PATHS_FROM).then_some(id);
                id = node.child(slot).unwrap_or_else(|| {
                    trace.changed = trace.changed.or(Some(pos));
                    let child = self.branch(prefix, pos + STRIDE);
                    self.add_child(id, slot, child)
                });
                pos += STRIDE;
            }
        }
    }

    /// Whether a node that has lost a route must not stay as it is.
    pub(super) fn is_useless(&self, id: u32) -> bool {
        let node = self.nodes.get(id);
        node.is_empty() || node.as_passage().is_some()
    }

    /// Clears the way to the home of `prefix` as far as it leads to nothing else.
    pub(super) fn clear_way<A: Address>(&mut self, prefix: &Prefix<A>) -> Trace {
        let (end, mut trace, mut at) = (home(prefix.len()), Trace::default(), Step::START);
        // The last node that stays if the branch to the home goes, and the slot of the branch.
        let mut keeper = (at, None);
        while at.pos < end {
            let node = self.nodes.get(at.id);
            let (id, pos) = if let Some(path) = node.as_path() {
                (path.child, at.pos + path.len())
            } else {
                let slot = slot_of(&prefix.address(), at.pos);
                trace.note(at.pos, slot);
                if at.id == ROOT || node.as_passage().is_none() {
                    keeper = (at, Some(slot));
                }
                let Some(child) = node.child(slot) else { return trace };
                (child, at.pos + STRIDE)
            };
            at = Step { id, pos, before: at.id, before_pos: at.pos };
        }
        if !self.nodes.get(at.id).is_empty() {
            self.shorten(at);
        } else if let (keeper, Some(slot)) = keeper {
            self.cut(keeper.id, slot);
            self.shorten(keeper);
            trace.changed = Some(keeper.pos);
        }
        trace
    }

    /// A node at `pos` that leads to the home of `prefix`: the home itself, or a path to it.
    fn branch<A: Address>(&mut self, prefix: &Prefix<A>, pos: u32) -> Node {
        let mut left = (home(prefix.len()) - pos) / STRIDE;
        if pos < PATHS_FROM || left == 0 {
            return Node::BLANK;
        }
        let mut node = Node::BLANK;
        while left > 0 {
            let strides = left.min(Path::LONGEST);
            left -= strides;
            let window = prefix.address().window(pos + left * STRIDE);
            let child = self.nodes.single(node);
            node = Node::passage(Path { bits: window, strides, child }.first(strides, child));
        }
        node
    }

    /// Gives a node a child in a slot that has none.
    fn add_child(&mut self, id: u32, slot: u32, child: Node) -> u32 {
        let node = *self.nodes.get(id);
        let (run, len) = node.children_run();
        let at = node.child_of(slot) - run;
        let run = self.nodes.insert(run, len, at, child);
        self.nodes.get_mut(id).flip_child(slot, run);
        run + at
    }

    /// Puts a node behind the first strides of a path, for what else comes there. Returns the node,
    /// whose child leads to where the path has led.
    fn split(&mut self, id: u32, path: Path, strides: u32) -> u32 {
        let rest = path.behind(strides + 1);
        let child = match rest.strides {
            0 => path.child,
            _ => {
                let rest = self.nodes.single(Node::passage(rest));
                self.join(rest);
                rest
            }
        };
        let fork = Node::passage(path.behind(strides).first(1, child));
        if strides == 0 {
            *self.nodes.get_mut(id) = fork;
            return id;
        }
        let fork = self.nodes.single(fork);
        *self.nodes.get_mut(id) = Node::passage(path.first(strides, fork));
        fork
    }

    /// Frees the child of a slot and all below it: no routes, and one child each.
    fn cut(&mut self, id: u32, slot: u32) {
        let node = *self.nodes.get(id);
        debug_assert!(node.has_child(slot));
        let (run, len) = node.children_run();
        let (mut below, run) = self.nodes.remove(run, len, node.child_of(slot) - run);
        self.nodes.get_mut(id).flip_child(slot, run);
        while let Some(child) = below.only_child() {
            below = self.nodes.remove(child, 1, 0).0;
        }
    }

    /// Makes a path of a node without routes and with one child, and of those before and behind it.
    fn shorten(&mut self, at: Step) {
        if at.pos < PATHS_FROM {
            return;
        }
        self.join(at.id);
        if at.before_pos >= PATHS_FROM {
            self.join(at.before);
        }
    }

    /// Makes one path of a node and its child, if both lead to one child and to nothing else, and one
    /// path can be that long.
    fn join(&mut self, id: u32) {
        let Some(path) = self.nodes.get(id).as_passage() else { return };
        let next = self.nodes.get(path.child).as_passage();
        if let Some(joined) = next.and_then(|next| path.joined(next)) {
            self.nodes.remove(path.child, 1, 0);
            *self.nodes.get_mut(id) = Node::passage(joined);
        }
    }
}
