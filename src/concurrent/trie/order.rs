//! Walks over the entries in the order of their keys.
#![allow(unsafe_code)]

use alloc::vec::Vec;
use core::ops::Bound;
use core::slice;

use super::node::{Child, Kind, Leaf, Node, Slot};
use crate::key::bits::BitString;

/// The slots of a node that follow the one that was visited last.
type Rest<'t, K, V> = slice::Iter<'t, Slot<K, V>>;

/// A walk over the leaves in order, from a bound on. Each child is loaded once. If a node is
/// replaced after the walk has entered it, the walk loads the children that the node had at its
/// replacement. Does not recur: keys, and so the depth, may be of any length.
pub(super) struct Walk<'t, K, V> {
    /// The root, until it is visited.
    root: Option<Child<K, V>>,
    /// The nodes above the next child.
    open: Vec<Rest<'t, K, V>>,
    /// The bound, until a leaf is within it: then all later ones are.
    from: Bound<K>,
}

impl<'t, K: BitString, V> Walk<'t, K, V> {
    /// Creates a walk over the leaves below a child.
    ///
    /// # Safety
    ///
    /// The child was linked under a pin that lasts for `'t`.
    pub(super) unsafe fn new(root: Child<K, V>, from: Bound<K>) -> Self {
        Self { root: Some(root), open: Vec::new(), from }
    }

    /// Returns the child that is visited next.
    fn next_child(&mut self) -> Option<Child<K, V>> {
        if let Some(root) = self.root.take() {
            return Some(root);
        }
        loop {
            match self.open.last_mut()?.next() {
                Some(slot) => return Some(slot.load()),
                None => drop(self.open.pop()),
            }
        }
    }

    /// Returns the next leaf.
    pub(super) fn next(&mut self) -> Option<&'t Leaf<K, V>> {
        loop {
            let child = self.next_child()?;
            // SAFETY: by the contract of `new`; children of a node are linked under the same pin,
            // also if the node has been replaced: they are retired no earlier than it.
            match unsafe { child.kind() } {
                Kind::Leaf(leaf) if is_within(&leaf.key, &self.from) => {
                    self.from = Bound::Unbounded;
                    return Some(leaf);
                }
                Kind::Empty | Kind::Leaf(_) => {}
                Kind::Node(node) => self.open.push(slots_from(node, &self.from)),
            }
        }
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
