//! The first entry from a bound on.
#![allow(unsafe_code)]

use core::ops::Bound;

use super::node::{Child, Kind, Leaf, Slot};
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
