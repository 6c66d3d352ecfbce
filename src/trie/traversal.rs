//! In-order walks over the leaves, from both ends.
//!
//! Slots are in the order of the bits, so a walk visits the slots of a node in ascending order,
//! descends into each child node, and returns by the parent link. It needs no stack and no memory.
//!
//! Cost: a step scans the empty slots between two leaves, 1 or 2 on average; starting at a key
//! costs a descent. Where the keys are crowded at one end of a wide root, a search for the first
//! one from the other end scans the root.

use core::ops::Bound;

use super::node::{Child, LeafId, Link};
use super::{InsertionPoint, LeafPosition, SearchResult, Suffixes, Trie};
use crate::key::bits::BitString;

/// A double-ended walk over leaves. Valid until the trie is modified.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk {
    /// The first and the last remaining leaf, which may be the same.
    ends: Option<(Link, Link)>,
    /// Upper bound of the remaining leaves. It ends the walk even if the order of the keys is
    /// inconsistent.
    remaining: usize,
}

impl Walk {
    /// Returns an upper bound of the remaining leaves; it is exact in a walk over all leaves.
    pub(crate) const fn remaining(&self) -> usize {
        self.remaining
    }
}

impl<K: BitString, V, S: Suffixes<V>> Trie<K, V, S> {
    /// Starts a walk over all leaves.
    pub(crate) fn walk(&self) -> Walk {
        self.walk_range(Bound::Unbounded, Bound::Unbounded)
    }

    /// Starts a walk over the leaves whose keys are within bounds; it is empty if `from` is above
    /// `to`.
    pub(crate) fn walk_range(&self, from: Bound<&K>, to: Bound<&K>) -> Walk {
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
        Walk { ends: first.zip(last).filter(in_order), remaining: self.len() }
    }

    /// Returns the first remaining leaf.
    pub(crate) fn next_leaf(&self, walk: &mut Walk) -> Option<LeafId> {
        let (first, last) = walk.ends?;
        walk.remaining -= 1;
        let continues = first != last && walk.remaining > 0;
        walk.ends = if continues { self.leaf_after(first).map(|next| (next, last)) } else { None };
        self.leaf_at(first)
    }

    /// Returns the last remaining leaf.
    pub(crate) fn next_leaf_back(&self, walk: &mut Walk) -> Option<LeafId> {
        let (first, last) = walk.ends?;
        walk.remaining -= 1;
        let continues = first != last && walk.remaining > 0;
        walk.ends = if continues { self.leaf_before(last).map(|next| (first, next)) } else { None };
        self.leaf_at(last)
    }

    /// Returns the link of the first leaf after `key`, or of the first leaf of all if there is none
    /// or no key.
    pub(crate) fn leaf_in_circle_after(&self, key: Option<&K>) -> Option<Link> {
        key.and_then(|key| self.first_from(key, false)).or_else(|| self.first_below(Link::Root))
    }

    /// Writes the leaves from `next` on in the order of the trie, the first one again after the
    /// last, and moves `next` behind them; `next` is the link of a leaf.
    ///
    /// A step reads nodes only, so the caller's reads of the leaves do not wait for each other.
    pub(crate) fn take_in_circle(&self, next: &mut Link, leaves: &mut [LeafId]) {
        for leaf in leaves {
            let Some(id) = self.leaf_at(*next) else { return };
            *leaf = id;
            *next =
                self.leaf_after(*next).or_else(|| self.first_below(Link::Root)).unwrap_or(*next);
        }
    }

    /// Returns the position of the first leaf.
    pub(crate) fn first_position(&self) -> Option<LeafPosition> {
        let link = self.first_below(Link::Root)?;
        Some(LeafPosition { leaf: self.leaf_at(link)?, link })
    }

    /// Returns the position of the last leaf.
    pub(crate) fn last_position(&self) -> Option<LeafPosition> {
        let link = self.last_below(Link::Root)?;
        Some(LeafPosition { leaf: self.leaf_at(link)?, link })
    }

    fn leaf_at(&self, link: Link) -> Option<LeafId> {
        match self.child(link) {
            Child::Leaf(id) => Some(id),
            Child::Empty | Child::Node(_) => unreachable!("a walk links leaves only"),
        }
    }

    /// Returns the link of the first leaf whose key is above `key`, or equal to it if `included`.
    fn first_from(&self, key: &K, included: bool) -> Option<Link> {
        match self.locate(key) {
            SearchResult::Found(position) if included => Some(position.link),
            SearchResult::Found(position) => self.leaf_after(position.link),
            // All keys below the link differ from `key` in this bit.
            SearchResult::Vacant(InsertionPoint::Fork(link, bit)) if key.slice(bit, 1) == 0 => {
                self.first_below(link)
            }
            SearchResult::Vacant(InsertionPoint::Fork(link, _) | InsertionPoint::Empty(link)) => {
                self.leaf_after(link)
            }
        }
    }

    /// Returns the link of the last leaf whose key is below `key`, or equal to it if `included`.
    fn last_to(&self, key: &K, included: bool) -> Option<Link> {
        match self.locate(key) {
            SearchResult::Found(position) if included => Some(position.link),
            SearchResult::Found(position) => self.leaf_before(position.link),
            SearchResult::Vacant(InsertionPoint::Fork(link, bit)) if key.slice(bit, 1) == 1 => {
                self.last_below(link)
            }
            SearchResult::Vacant(InsertionPoint::Fork(link, _) | InsertionPoint::Empty(link)) => {
                self.leaf_before(link)
            }
        }
    }

    /// Returns the link of the first leaf at or below `link`.
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

    /// Returns the link of the last leaf at or below `link`.
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

    /// Returns the link of the first leaf after those at or below `link`.
    fn leaf_after(&self, mut link: Link) -> Option<Link> {
        loop {
            let Link::Slot(id, index) = link else { return None };
            match self.nodes[id.0].slots.next_used(index + 1) {
                Some(next) => return self.first_below(Link::Slot(id, next)),
                None => link = self.link_of(id),
            }
        }
    }

    /// Returns the link of the last leaf before those at or below `link`.
    fn leaf_before(&self, mut link: Link) -> Option<Link> {
        loop {
            let Link::Slot(id, index) = link else { return None };
            match self.nodes[id.0].slots.last_used(index) {
                Some(next) => return self.last_below(Link::Slot(id, next)),
                None => link = self.link_of(id),
            }
        }
    }
}
