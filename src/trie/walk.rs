//! Walking the leaves in the order of their keys, from either end.
//!
//! Slots are in the order of the bits, so a walk goes through the slots of a node upwards, down into
//! each child node, and back up by the parent's link. It needs no stack and no memory.
//!
//! Price: a step scans the empty slots between two leaves, 2 to 4 per leaf on average; starting at
//! a key costs a descent.

use core::cmp::Ordering;
use core::ops::Bound;

use super::Trie;
use super::node::{Child, LeafId, Link};
use crate::bits::BitString;

/// A walk: the first and the last leaf still to come, which may be the same. Good until the trie
/// changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk(Option<(Link, Link)>);

impl<K: BitString, V> Trie<K, V> {
    /// A walk over all leaves.
    pub(crate) fn walk(&self) -> Walk {
        Walk(self.first_below(Link::Root).zip(self.last_below(Link::Root)))
    }

    /// A walk over the leaves whose keys are within bounds; over none if the first bound is behind
    /// the last.
    pub(crate) fn walk_within(&self, from: Bound<&K>, to: Bound<&K>) -> Walk {
        let first = match from {
            Bound::Unbounded => self.first_below(Link::Root),
            Bound::Included(key) => self.first_from(key, true),
            Bound::Excluded(key) => self.first_from(key, false),
        };
        let last = match to {
            Bound::Unbounded => self.last_below(Link::Root),
            Bound::Included(key) => self.last_to(key, true),
            Bound::Excluded(key) => self.last_to(key, false),
        };
        let in_order = |(first, last): &(Link, Link)| {
            self.key_of(self.child(*first)) <= self.key_of(self.child(*last))
        };
        Walk(first.zip(last).filter(in_order))
    }

    /// The first leaf still to come.
    pub(crate) fn step(&self, walk: &mut Walk) -> Option<LeafId> {
        let (first, last) = walk.0?;
        walk.0 = if first == last { None } else { self.behind(first).map(|next| (next, last)) };
        self.leaf_at(first)
    }

    /// The last leaf still to come.
    pub(crate) fn step_back(&self, walk: &mut Walk) -> Option<LeafId> {
        let (first, last) = walk.0?;
        walk.0 = if first == last { None } else { self.before(last).map(|next| (first, next)) };
        self.leaf_at(last)
    }

    fn leaf_at(&self, link: Link) -> Option<LeafId> {
        match self.child(link) {
            Child::Leaf(id) => Some(id),
            Child::Empty | Child::Node(_) => unreachable!("a walk is at a leaf"),
        }
    }

    /// The first leaf whose key is above `key`, or the one of `key` if that is included.
    fn first_from(&self, key: &K, included: bool) -> Option<Link> {
        match self.descend(key) {
            (link, Some(Ordering::Greater)) => self.first_below(link),
            (link, Some(Ordering::Equal)) if included => Some(link),
            (link, _) => self.behind(link),
        }
    }

    /// The last leaf whose key is below `key`, or the one of `key` if that is included.
    fn last_to(&self, key: &K, included: bool) -> Option<Link> {
        match self.descend(key) {
            (link, Some(Ordering::Less)) => self.last_below(link),
            (link, Some(Ordering::Equal)) if included => Some(link),
            (link, _) => self.before(link),
        }
    }

    /// The link where the way to `key` ends, and how all that hangs there compares with it; `None`
    /// if nothing does.
    fn descend(&self, key: &K) -> (Link, Option<Ordering>) {
        let mut link = Link::Root;
        let mut tested = 0;
        loop {
            match self.child(link) {
                Child::Node(id) => {
                    let node = &self.nodes[id.0];
                    if node.skipped_difference(key, tested).is_some() {
                        return (link, Some(node.key.cmp(key)));
                    }
                    tested = node.end();
                    link = Link::Slot(id, node.slot_of(key));
                }
                Child::Leaf(id) => return (link, Some(self.leaves[id.0].key.cmp(key))),
                Child::Empty => return (link, None),
            }
        }
    }

    /// The link of the first leaf at or below `link`.
    fn first_below(&self, mut link: Link) -> Option<Link> {
        loop {
            match self.child(link) {
                Child::Empty => return None,
                Child::Leaf(_) => return Some(link),
                // A node has at least two children.
                Child::Node(id) => link = Link::Slot(id, self.nodes[id.0].slots.next_used(0)?),
            }
        }
    }

    /// The link of the last leaf at or below `link`.
    fn last_below(&self, mut link: Link) -> Option<Link> {
        loop {
            match self.child(link) {
                Child::Empty => return None,
                Child::Leaf(_) => return Some(link),
                Child::Node(id) => {
                    let slots = &self.nodes[id.0].slots;
                    link = Link::Slot(id, slots.last_used(slots.len())?);
                }
            }
        }
    }

    /// The link of the first leaf behind all that is at or below `link`.
    fn behind(&self, mut link: Link) -> Option<Link> {
        loop {
            let Link::Slot(id, index) = link else { return None };
            match self.nodes[id.0].slots.next_used(index + 1) {
                Some(next) => return self.first_below(Link::Slot(id, next)),
                None => link = self.link_of(id),
            }
        }
    }

    /// The link of the last leaf before all that is at or below `link`.
    fn before(&self, mut link: Link) -> Option<Link> {
        loop {
            let Link::Slot(id, index) = link else { return None };
            match self.nodes[id.0].slots.last_used(index) {
                Some(next) => return self.last_below(Link::Slot(id, next)),
                None => link = self.link_of(id),
            }
        }
    }
}
