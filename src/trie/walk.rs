//! Walking the leaves in the order of their keys, from either end.
//!
//! Slots are in the order of the bits, so a walk goes through the slots of a node upwards, down into
//! each child node, and back up by the parent's link. It needs no stack and no memory.
//!
//! Price: a step scans the empty slots between two leaves, 1 or 2 on average; starting at a key costs
//! a descent. Where the keys crowd at one end of a wide root, finding the first one from the other
//! end scans the root.

use core::ops::Bound;

use super::node::{Child, LeafId, Link};
use super::{Gap, Place, Suffixes, Trie};
use crate::key::bits::BitString;

/// A walk over leaves. Good until the trie changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk {
    /// The first and the last leaf still to come, which may be the same.
    ends: Option<(Link, Link)>,
    /// No more leaves than these are to come, whatever the keys say of themselves.
    left: usize,
}

impl Walk {
    /// The most leaves that are still to come; exactly so many in a walk over all.
    pub(crate) const fn left(&self) -> usize {
        self.left
    }
}

impl<K: BitString, V, S: Suffixes<V>> Trie<K, V, S> {
    /// A walk over all leaves.
    pub(crate) fn walk(&self) -> Walk {
        self.walk_within(Bound::Unbounded, Bound::Unbounded)
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
        Walk { ends: first.zip(last).filter(in_order), left: self.len() }
    }

    /// The first leaf still to come.
    pub(crate) fn step(&self, walk: &mut Walk) -> Option<LeafId> {
        let (first, last) = walk.ends?;
        walk.left -= 1;
        let goes_on = first != last && walk.left > 0;
        walk.ends = if goes_on { self.behind(first).map(|next| (next, last)) } else { None };
        self.leaf_at(first)
    }

    /// The last leaf still to come.
    pub(crate) fn step_back(&self, walk: &mut Walk) -> Option<LeafId> {
        let (first, last) = walk.ends?;
        walk.left -= 1;
        let goes_on = first != last && walk.left > 0;
        walk.ends = if goes_on { self.before(last).map(|next| (first, next)) } else { None };
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
        match self.locate(key) {
            Place::Found(seat) if included => Some(seat.link),
            Place::Found(seat) => self.behind(seat.link),
            // All that hangs there differs from the key in this bit.
            Place::Vacant(Gap::Fork(link, bit)) if key.slice(bit, 1) == 0 => self.first_below(link),
            Place::Vacant(Gap::Fork(link, _) | Gap::Empty(link)) => self.behind(link),
        }
    }

    /// The last leaf whose key is below `key`, or the one of `key` if that is included.
    fn last_to(&self, key: &K, included: bool) -> Option<Link> {
        match self.locate(key) {
            Place::Found(seat) if included => Some(seat.link),
            Place::Found(seat) => self.before(seat.link),
            Place::Vacant(Gap::Fork(link, bit)) if key.slice(bit, 1) == 1 => self.last_below(link),
            Place::Vacant(Gap::Fork(link, _) | Gap::Empty(link)) => self.before(link),
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
