//! The first entry from a bound on.
#![allow(unsafe_code)]

use alloc::vec::Vec;
use core::ops::Bound;
use core::slice;

use super::node::{Child, Kind, Leaf, Node, Slot};
use crate::key::bits::BitString;

/// The slots of a node that follow the one that was visited last.
type Rest<'t, K, V> = slice::Iter<'t, Slot<K, V>>;

/// Returns the first leaf below a child within a bound. Does not recur: keys, and so the depth, may
/// be of any length.
///
/// # Safety
///
/// The child was linked under a pin that lasts for `'t`.
pub(super) unsafe fn first_from<'t, K: BitString, V>(
    mut child: Child<K, V>,
    from: &Bound<K>,
) -> Option<&'t Leaf<K, V>> {
    let mut open: Vec<Rest<'t, K, V>> = Vec::new();
    loop {
        // SAFETY: by the contract; children of a node are linked under the same pin.
        match unsafe { child.kind() } {
            Kind::Empty => {}
            Kind::Leaf(leaf) if is_within(&leaf.key, from) => return Some(leaf),
            Kind::Leaf(_) => {}
            Kind::Node(node) => open.push(slots_from(node, from)),
        }
        child = loop {
            match open.last_mut()?.next() {
                Some(slot) => break slot.load(),
                None => drop(open.pop()),
            }
        };
    }
}

fn is_within<K: BitString>(key: &K, from: &Bound<K>) -> bool {
    match from {
        Bound::Included(from) => key >= from,
        Bound::Excluded(from) => key > from,
        Bound::Unbounded => true,
    }
}

/// Returns the slots of a node that may have keys within a bound.
fn slots_from<'t, K: BitString, V>(node: &'t Node<K, V>, from: &Bound<K>) -> Rest<'t, K, V> {
    let (Bound::Included(key) | Bound::Excluded(key)) = from else { return node.slots.iter() };
    let first = match node.key.first_difference(key, 0).filter(|&bit| bit < node.pos) {
        // All keys below are less, or greater.
        Some(bit) if node.key.slice(bit, 1) == 0 => node.slots.len(),
        Some(_) => 0,
        None => node.slot_of(key),
    };
    node.slots.get(first..).unwrap_or(&[]).iter()
}
