//! Walking the leaves in the order of their keys.
//!
//! Slots are in the order of the bits, so a walk goes through the slots of a node upwards, down into
//! each child node, and back up by the parent's link. It needs no stack and no memory.
//!
//! Price: a step scans the empty slots between two leaves, 2 to 4 per leaf on average; starting at
//! a key costs a descent.

use super::Trie;
use super::node::{Child, LeafId, Link};
use crate::bits::BitString;

/// The next leaf of a walk, if there is one. Good until the trie changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk(Option<Link>);

impl<K: BitString, V> Trie<K, V> {
    /// A walk from the first leaf on.
    pub(crate) fn walk(&self) -> Walk {
        Walk(self.first_below(Link::Root))
    }

    /// A walk from the first leaf on whose key is not below `key`.
    pub(crate) fn walk_from(&self, key: &K) -> Walk {
        let mut link = Link::Root;
        let mut tested = 0;
        loop {
            match self.child(link) {
                Child::Node(id) => {
                    let node = &self.nodes[id.0];
                    if let Some(bit) = node.skipped_difference(key, tested) {
                        let key_is_below = key.slice(bit, 1) == 0;
                        return self.walk_from_or_behind(link, key_is_below);
                    }
                    tested = node.end();
                    link = Link::Slot(id, node.slot_of(key));
                }
                Child::Leaf(id) => {
                    return self.walk_from_or_behind(link, self.leaves[id.0].key >= *key);
                }
                Child::Empty => return Walk(self.behind(link)),
            }
        }
    }

    /// The leaf that the walk is at; the walk goes on to the one behind it.
    pub(crate) fn step(&self, walk: &mut Walk) -> Option<LeafId> {
        let link = walk.0?;
        walk.0 = self.behind(link);
        match self.child(link) {
            Child::Leaf(id) => Some(id),
            _ => unreachable!("a walk is at a leaf"),
        }
    }

    fn walk_from_or_behind(&self, link: Link, from: bool) -> Walk {
        Walk(if from { self.first_below(link) } else { self.behind(link) })
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
}
