//! Invariants of a concurrent trie.
#![allow(unsafe_code)]

use super::ConcurrentLcTrie;
use super::node::{Child, Kind};
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
    /// let trie = flowtable::ConcurrentLcTrie::<u8, char>::new();
    /// assert_eq!(trie.validate(), Ok(()));
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), InvariantError> {
        let _lock = self.lock.lock();
        let leaves = check(self.root.load(), 0, None)?;
        ensure(leaves == self.len(), || "the number of entries")
    }

    /// Returns the depths of all entries: their number by the nodes above them. Takes the lock of
    /// the writers; O(slots).
    ///
    /// # Example
    ///
    /// ```
    /// let trie = flowtable::ConcurrentLcTrie::<u32, ()>::new();
    /// (0..99).for_each(|key| assert!(trie.pin().insert(key, ()).is_ok()));
    /// assert_eq!(trie.depths().iter().sum::<usize>(), 99);
    /// ```
    #[must_use]
    pub fn depths(&self) -> alloc::vec::Vec<usize> {
        let _lock = self.lock.lock();
        let mut depths = alloc::vec::Vec::new();
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

/// Checks a child at bit `end` and all below it, and returns the number of leaves.
fn check<K: BitString, V>(
    child: Child<K, V>,
    end: u32,
    prefix: Option<(K, u32)>,
) -> Result<usize, InvariantError> {
    // SAFETY: it is linked, and the lock is held.
    let node = match unsafe { child.kind() } {
        Kind::Empty => return Ok(0),
        Kind::Leaf(leaf) => {
            let agrees = prefix.is_none_or(|(key, bits)| agrees(&key, &leaf.key, bits));
            ensure(agrees, || "a leaf below a node with another prefix")?;
            return Ok(1);
        }
        Kind::Node(node) => node,
    };
    ensure(prefix.is_none_or(|(key, bits)| agrees(&key, &node.key, bits)), || "a node's prefix")?;
    ensure(node.pos >= end && node.end() <= K::BITS, || "the position of a node")?;
    ensure(node.slots.len().is_power_of_two() && node.bits() >= 1, || "the slots of a node")?;
    let (mut leaves, mut used, mut full) = (0, 0, 0);
    for (index, slot) in (0..).zip(&*node.slots) {
        let child = slot.load();
        // SAFETY: as above.
        let key = unsafe { child.key() };
        let Some(key) = key else { continue };
        used += 1;
        // SAFETY: as above.
        full +=
            u32::from(matches!(unsafe { child.kind() }, Kind::Node(at) if at.pos == node.end()));
        ensure(node.slot_of(&key) == index, || "a child in the slot of another")?;
        ensure(agrees(&node.key, &key, node.pos), || "a child with another prefix")?;
        leaves += check(child, node.end(), Some((key, node.end())))?;
    }
    ensure(used >= 2 && used == node.used() && full == node.full(), || "the counters of a node")?;
    Ok(leaves)
}

fn agrees<K: BitString>(one: &K, other: &K, bits: u32) -> bool {
    one.first_difference(other, 0).is_none_or(|bit| bit >= bits)
}
