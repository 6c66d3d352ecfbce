//! Invariants of a concurrent trie.
#![allow(unsafe_code)]

use alloc::vec::Vec;

use super::ConcurrentLcTrie;
use super::node::{Child, Kind, Node};
use crate::invariant::{InvariantError, ensure};
use crate::key::bits::BitString;

impl<K: BitString, V> ConcurrentLcTrie<K, V> {
    /// Checks all invariants, for tests. O(slots).
    ///
    /// # Errors
    ///
    /// If an invariant is violated.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::concurrent::ConcurrentLcTrie;
    ///
    /// let trie = ConcurrentLcTrie::<u8, char>::new();
    /// assert_eq!(trie.validate(), Ok(()));
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), InvariantError> {
        let _lock = self.lock.lock();
        let leaves = check(self.root.load())?;
        ensure(leaves == self.len(), || "the number of entries")
    }

    /// Returns the depths of all entries: their number by the nodes above them. Takes the lock of
    /// the writers; O(slots).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::concurrent::ConcurrentLcTrie;
    ///
    /// let trie = ConcurrentLcTrie::<u32, ()>::new();
    /// (0..99).for_each(|key| assert!(trie.pin().insert(key, ()).is_ok()));
    /// assert_eq!(trie.depths().iter().sum::<usize>(), 99);
    /// ```
    #[must_use]
    pub fn depths(&self) -> Vec<usize> {
        let _lock = self.lock.lock();
        let mut depths = Vec::new();
        let mut open = alloc::vec![(self.root.load(), 0)];
        while let Some((child, depth)) = open.pop() {
            // SAFETY: it is linked, and the lock is held.
            match unsafe { child.kind() } {
                Kind::Empty => {}
                Kind::Leaf(_) => {
                    depths.resize(depths.len().max(depth + 1), 0);
                    depths[depth] += 1;
                }
                Kind::Node(node) => {
                    open.extend(node.slots.iter().map(|slot| (slot.load(), depth + 1)));
                }
            }
        }
        depths
    }
}

/// A child at bit `end`, and a key whose first bits all keys below share.
type Open<K, V> = (Child<K, V>, u32, Option<(K, u32)>);

/// Checks a child and all below it, and returns the number of leaves.
fn check<K: BitString, V>(root: Child<K, V>) -> Result<usize, InvariantError> {
    let (mut leaves, mut open) = (0, alloc::vec![(root, 0, None)]);
    while let Some((child, end, prefix)) = open.pop() {
        // SAFETY: it is linked, and the lock is held.
        match unsafe { child.kind() } {
            Kind::Empty => {}
            Kind::Leaf(leaf) => {
                let agrees =
                    prefix.is_none_or(|(key, bits): (K, u32)| agrees(&key, &leaf.key, bits));
                ensure(agrees, || "a leaf below a node with another prefix")?;
                leaves += 1;
            }
            Kind::Node(node) => {
                let agrees = prefix.is_none_or(|(key, bits)| agrees(&key, &node.key, bits));
                ensure(agrees && node.pos >= end, || "the prefix of a node, or its position")?;
                check_node(node, &mut open)?;
            }
        }
    }
    Ok(leaves)
}

/// Checks a node, and adds its children to `open`.
fn check_node<K: BitString, V>(
    node: &Node<K, V>,
    open: &mut Vec<Open<K, V>>,
) -> Result<(), InvariantError> {
    ensure(node.end() <= K::BITS, || "the position of a node")?;
    ensure(node.slots.len().is_power_of_two() && node.bits() >= 1, || "the slots of a node")?;
    let (mut used, mut full) = (0, 0);
    for (index, slot) in (0..).zip(&*node.slots) {
        let child = slot.load();
        // SAFETY: it is linked, and the lock is held.
        let key = unsafe { child.key() };
        let Some(key) = key else { continue };
        used += 1;
        // SAFETY: as above.
        let is_full = matches!(unsafe { child.kind() }, Kind::Node(at) if at.pos == node.end());
        full += u32::from(is_full);
        ensure(node.slot_of(&key) == index, || "a child in the slot of another")?;
        ensure(agrees(&node.key, &key, node.pos), || "a child with another prefix")?;
        open.push((child, node.end(), Some((key, node.end()))));
    }
    ensure(used >= 2 && used == node.used() && full == node.full(), || "the counters of a node")
}

fn agrees<K: BitString>(one: &K, other: &K, bits: u32) -> bool {
    one.first_difference(other, 0).is_none_or(|bit| bit >= bits)
}
