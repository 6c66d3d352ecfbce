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

/// The direction of a step: in the order of the keys.
pub(crate) const FORWARD: bool = false;

/// The direction of a step: against the order of the keys.
pub(crate) const BACK: bool = true;

/// A double-ended walk over leaves. Valid until the trie is modified.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk {
    /// The first and the last remaining leaf, which may be the same.
    ends: Option<(Link, Link)>,
    /// Upper bound of the remaining leaves. It ends the walk even if the order of the keys is
    /// inconsistent.
    pub(crate) remaining: usize,
}

impl<K: BitString, V, S: Suffixes<V>> Trie<K, V, S> {
    /// Starts a walk over all leaves.
    pub(crate) fn walk(&self) -> Walk {
        self.walk_range(Bound::Unbounded, Bound::Unbounded)
    }

    /// Starts a walk over the leaves whose keys are within bounds; it is empty if `from` is above
    /// `to`.
    pub(crate) fn walk_range(&self, from: Bound<&K>, to: Bound<&K>) -> Walk {
        let (first, last) = (self.first_from::<FORWARD>(from), self.first_from::<BACK>(to));
        let in_order = |(first, last): &(Link, Link)| {
            self.key_of(self.child(*first)) <= self.key_of(self.child(*last))
        };
        Walk { ends: first.zip(last).filter(in_order), remaining: self.len() }
    }

    /// Returns the first remaining leaf, or the last one if `BACK`.
    pub(crate) fn next_leaf<const BACK: bool>(&self, walk: &mut Walk) -> Option<LeafId> {
        let (first, last) = walk.ends?;
        walk.remaining -= 1;
        let leaf = if BACK { last } else { first };
        let continues = first != last && walk.remaining > 0;
        let next = if continues { self.leaf_after::<BACK>(leaf) } else { None };
        walk.ends = next.map(|next| if BACK { (first, next) } else { (next, last) });
        self.leaf_at(leaf)
    }

    /// Returns the link of the first leaf after `key`, or of the first leaf of all if there is none
    /// or no key.
    pub(crate) fn leaf_in_circle_after(&self, key: Option<&K>) -> Option<Link> {
        key.and_then(|key| self.first_from::<FORWARD>(Bound::Excluded(key)))
            .or_else(|| self.first_below::<FORWARD>(Link::Root))
    }

    /// Writes the leaves from `next` on in the order of the trie, the first one again after the
    /// last, and moves `next` behind them; `next` is the link of a leaf.
    ///
    /// A step reads nodes only, so the caller's reads of the leaves do not wait for each other.
    pub(crate) fn take_in_circle(&self, next: &mut Link, leaves: &mut [LeafId]) {
        for leaf in leaves {
            let Some(id) = self.leaf_at(*next) else { return };
            *leaf = id;
            let after = self.leaf_after::<FORWARD>(*next);
            *next = after.or_else(|| self.first_below::<FORWARD>(Link::Root)).unwrap_or(*next);
        }
    }

    /// Returns the position of the first leaf, or of the last one if `BACK`.
    pub(crate) fn first_position<const BACK: bool>(&self) -> Option<LeafPosition> {
        let link = self.first_below::<BACK>(Link::Root)?;
        Some(LeafPosition { leaf: self.leaf_at(link)?, link })
    }

    fn leaf_at(&self, link: Link) -> Option<LeafId> {
        match self.child(link) {
            Child::Leaf(id) => Some(id),
            Child::Empty | Child::Node(_) => unreachable!("a walk links leaves only"),
        }
    }

    /// Returns the link of the first leaf within a lower bound, or of the last one within an upper
    /// bound if `BACK`.
    fn first_from<const BACK: bool>(&self, bound: Bound<&K>) -> Option<Link> {
        let (key, is_included) = match bound {
            Bound::Unbounded => return self.first_below::<BACK>(Link::Root),
            Bound::Included(key) => (key, true),
            Bound::Excluded(key) => (key, false),
        };
        match self.locate(key) {
            SearchResult::Found(position) if is_included => Some(position.link),
            SearchResult::Found(position) => self.leaf_after::<BACK>(position.link),
            // All keys below the link differ from `key` in this bit.
            SearchResult::Vacant(InsertionPoint::Fork(link, bit))
                if (key.slice(bit, 1) == 1) == BACK =>
            {
                self.first_below::<BACK>(link)
            }
            SearchResult::Vacant(InsertionPoint::Fork(link, _) | InsertionPoint::Empty(link)) => {
                self.leaf_after::<BACK>(link)
            }
        }
    }

    /// Returns the link of the first leaf at or below `link`, or of the last one if `BACK`.
    fn first_below<const BACK: bool>(&self, mut link: Link) -> Option<Link> {
        loop {
            match self.child(link) {
                Child::Empty => return None,
                Child::Leaf(_) => return Some(link),
                Child::Node(id) => {
                    let slots = &self.nodes[id.0].slots;
                    // A node has at least two children.
                    let index =
                        if BACK { slots.last_used(slots.len())? } else { slots.next_used(0)? };
                    link = Link::Slot(id, index);
                }
            }
        }
    }

    /// Returns the link of the first leaf after those at or below `link`, or of the last one before
    /// them if `BACK`.
    fn leaf_after<const BACK: bool>(&self, mut link: Link) -> Option<Link> {
        loop {
            let Link::Slot(id, index) = link else { return None };
            let slots = &self.nodes[id.0].slots;
            let next = if BACK { slots.last_used(index) } else { slots.next_used(index + 1) };
            match next {
                Some(next) => return self.first_below::<BACK>(Link::Slot(id, next)),
                None => link = self.link_of(id),
            }
        }
    }
}
