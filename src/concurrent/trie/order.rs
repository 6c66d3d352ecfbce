//! Entries in the order of their keys.
#![allow(unsafe_code)]

use core::borrow::Borrow;
use core::ops::Bound;

use super::node::{Child, Kind, Leaf, Slot};
use super::pinned::PinnedTrie;
use crate::concurrent::guard::Guard;
use crate::key::bits::BitString;

/// Returns the first leaf below a child within a bound.
///
/// # Safety
///
/// The child was linked under a pin that lasts for `'t`.
pub(super) unsafe fn first_from<'t, K: BitString, V>(
    child: Child<K, V>,
    from: &Bound<K>,
) -> Option<&'t Leaf<K, V>> {
    // SAFETY: by the contract.
    match unsafe { child.kind() } {
        Kind::Empty => None,
        Kind::Leaf(leaf) => {
            let is_within = match from {
                Bound::Included(from) => leaf.key >= *from,
                Bound::Excluded(from) => leaf.key > *from,
                Bound::Unbounded => true,
            };
            is_within.then_some(leaf)
        }
        Kind::Node(node) => {
            let (Bound::Included(key) | Bound::Excluded(key)) = from else {
                // SAFETY: children of a node are linked under the same pin.
                return node.slots.iter().find_map(|slot| unsafe { first_from(slot.load(), from) });
            };
            let differs = node.key.first_difference(key, 0).filter(|&bit| bit < node.pos);
            let first = match differs {
                // All keys below are less, or greater.
                Some(bit) if node.key.slice(bit, 1) == 0 => return None,
                Some(_) => 0,
                None => node.slot_of(key),
            };
            let later = node.slots.get(first..).unwrap_or(&[]).iter().map(Slot::load);
            // SAFETY: as above.
            later.into_iter().find_map(|child| unsafe { first_from(child, from) })
        }
    }
}

/// An iterator over the entries of a [`ConcurrentLcTrie`](super::ConcurrentLcTrie) in the order of
/// their keys. Each step descends from the root. Created by [`PinnedTrie::iter`].
pub struct TrieIter<'p, K, V, G = Guard> {
    pinned: &'p PinnedTrie<'p, K, V, G>,
    from: Bound<K>,
}

impl<'p, K: BitString, V, G: Borrow<Guard>> TrieIter<'p, K, V, G> {
    pub(super) const fn new(pinned: &'p PinnedTrie<'p, K, V, G>, from: Bound<K>) -> Self {
        Self { pinned, from }
    }
}

impl<'p, K: BitString, V, G: Borrow<Guard>> Iterator for TrieIter<'p, K, V, G> {
    type Item = (K, &'p V);

    fn next(&mut self) -> Option<Self::Item> {
        let (key, value) = self.pinned.first(self.from)?;
        self.from = Bound::Excluded(key);
        Some((key, value))
    }
}
