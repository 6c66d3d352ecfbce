//! Writers: insertion, removal, and the resizing of nodes, which are replaced by others.
//!
//! ```text
//!     inflate   ▕ a │ n ▏            replaced by   ▕ a │   │ b │ c ▏
//!                     └─▕ b │ c ▏    retired: both, the node and n
//!
//!     halve     ▕ a │   │ b │ c ▏    replaced by   ▕ a │ m ▏
//!                                                        └─▕ b │ c ▏
//! ```
//!
//! The policy, [`Tuning`], and the shapes are the same as in the sequential trie. A node whose
//! number of slots changes is copied, with the children that are split or made; one store of the
//! slot of its parent publishes the copy.
#![allow(unsafe_code)]

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::ptr;

use super::ConcurrentLcTrie;
use super::node::{Child, Kind, Leaf, Node, Slot};
use crate::concurrent::sync::Ordering;
use crate::key::bits::BitString;
use crate::trie::{RebalanceFrom, Tuning};

/// The maximum number of doublings, and of halvings, of a node in one call.
const MAX_STEPS: u32 = 10;

/// The maximum depth of the recursion that resizes the children of resized nodes.
const MAX_CASCADE: u32 = 24;

/// A slot of the path to a key: the node that has it, `None` for the root, and its index.
type Link<'t, K, V> = (Option<&'t Node<K, V>>, usize);

/// The result of a descent to a key.
enum Descent<'t, K, V> {
    Leaf(&'t Leaf<K, V>),
    Empty,
    /// Above this child, at the first bit in which the keys differ.
    Fork(Child<K, V>, K, u32),
}

/// A writer, which holds the lock.
pub(super) struct Writer<'t, K, V> {
    trie: &'t ConcurrentLcTrie<K, V>,
    /// Replaced nodes and leaves.
    pub(super) retired: Vec<Child<K, V>>,
    pub(super) bytes: usize,
    /// Nodes that are not linked yet, to be freed if a method of a key panics.
    pub(super) unlinked: Vec<Child<K, V>>,
}

impl<'t, K: BitString, V> Writer<'t, K, V> {
    /// Creates a writer.
    ///
    /// # Safety
    ///
    /// The caller holds the lock of the trie as long as the writer is used, and defers the retired
    /// children until all pins have ended.
    pub(super) const unsafe fn new(trie: &'t ConcurrentLcTrie<K, V>) -> Self {
        Self { trie, retired: Vec::new(), bytes: 0, unlinked: Vec::new() }
    }

    /// Returns the node or the leaf to which a child refers.
    fn kind(&self, child: Child<K, V>) -> Kind<'t, K, V> {
        // SAFETY: a child that is linked is freed after it has been retired, by this writer or a
        // later one, and deferred when that does not use it any more.
        unsafe { child.kind() }
    }

    fn slot(&self, (node, index): Link<'t, K, V>) -> &'t Slot<K, V> {
        node.map_or(&self.trie.root, |node| &node.slots[index])
    }

    fn set(&self, (node, index): Link<'t, K, V>, child: Child<K, V>) {
        match node {
            // SAFETY: this writer holds the lock; both children are freed later.
            Some(node) => unsafe { node.set(index, child) },
            None => self.trie.root.store(child),
        }
    }

    /// Changes the number of entries. Called where a leaf is linked or unlinked, and before methods
    /// of keys, which may panic, are called again.
    fn add_to_len(&self, change: isize) {
        // Release: pairs with the Acquire in `len`.
        self.trie.len.store(self.trie.len().wrapping_add_signed(change), Ordering::Release);
    }

    fn retire(&mut self, child: Child<K, V>) {
        self.bytes += match self.kind(child) {
            Kind::Empty => return,
            Kind::Leaf(_) => size_of::<Leaf<K, V>>(),
            Kind::Node(node) => node.allocation_size(),
        };
        self.retired.push(child);
    }

    /// Descends to the place of a key, and returns the slots of the path, the root first.
    fn locate(&self, key: &K) -> (Vec<Link<'t, K, V>>, Descent<'t, K, V>) {
        let mut path: Vec<Link<'t, K, V>> = vec![(None, 0)];
        let (mut link, mut tested) = (path[0], 0);
        loop {
            let child = self.slot(link).load();
            match self.kind(child) {
                Kind::Empty => return (path, Descent::Empty),
                Kind::Leaf(leaf) => {
                    let place = match key.first_difference(&leaf.key, tested) {
                        None => Descent::Leaf(leaf),
                        Some(bit) => Descent::Fork(child, leaf.key, bit),
                    };
                    return (path, place);
                }
                Kind::Node(node) => {
                    let difference = if tested == node.pos {
                        None
                    } else {
                        node.key.first_difference(key, tested).filter(|&bit| bit < node.pos)
                    };
                    if let Some(bit) = difference {
                        return (path, Descent::Fork(child, node.key, bit));
                    }
                    tested = node.end();
                    link = (Some(node), node.slot_of(key));
                    path.push(link);
                }
            }
        }
    }

    /// Inserts an entry. Returns the former leaf of the key. The value is taken when no method of a
    /// key is called any more before it is linked: so it is never dropped under the lock.
    ///
    /// # Panics
    ///
    /// If there is no value.
    pub(super) fn insert(&mut self, key: K, value: &mut Option<V>) -> Option<&'t Leaf<K, V>> {
        let (path, place) = self.locate(&key);
        let link = path[path.len() - 1];
        let mut leaf = || {
            let value = value.take().expect("a value");
            Child::of_leaf(Box::new(Leaf { key, value }))
        };
        match place {
            Descent::Leaf(old) => {
                let former = self.slot(link).load();
                self.set(link, leaf());
                self.retire(former);
                return Some(old);
            }
            Descent::Empty => {
                self.set(link, leaf());
                self.add_to_len(1);
            }
            Descent::Fork(child, other, bit) => {
                let is_right = key.slice(bit, 1) == 1;
                let leaf = leaf();
                let children = if is_right { [child, leaf] } else { [leaf, child] };
                // SAFETY: the children are not freed before this writer has ended.
                let node = unsafe { Node::new(bit, other, &children) };
                self.set(link, Child::of_node(node));
                self.add_to_len(1);
                if self.trie.tuning.rebalance_from == RebalanceFrom::NewNode {
                    self.resize(link, 0);
                }
            }
        }
        self.rebalance(path);
        None
    }

    /// Removes an entry, and returns its leaf, which is retired.
    pub(super) fn remove(&mut self, key: &K) -> Option<&'t Leaf<K, V>> {
        self.remove_if(key, |_| true)
    }

    /// Removes a leaf, if its entry has not been removed or replaced. It may be retired, but is not
    /// freed yet, so no other leaf has its address.
    pub(super) fn remove_leaf(&mut self, expected: &Leaf<K, V>) {
        self.remove_if(&expected.key, |leaf| ptr::eq(leaf, expected));
    }

    /// Removes an entry for whose leaf `is_removed` returns true, and returns the leaf, which is
    /// retired.
    fn remove_if(
        &mut self,
        key: &K,
        is_removed: impl FnOnce(&Leaf<K, V>) -> bool,
    ) -> Option<&'t Leaf<K, V>> {
        let (path, Descent::Leaf(leaf)) = self.locate(key) else { return None };
        if !is_removed(leaf) {
            return None;
        }
        let link = path[path.len() - 1];
        let old = self.slot(link).load();
        self.set(link, Child::EMPTY);
        self.add_to_len(-1);
        self.retire(old);
        self.rebalance(path);
        Some(leaf)
    }

    /// Removes all entries.
    pub(super) fn clear(&mut self) {
        let mut open = vec![self.trie.root.load()];
        self.trie.root.store(Child::EMPTY);
        // Release: pairs with the Acquire in `len`.
        self.trie.len.store(0, Ordering::Release);
        while let Some(child) = open.pop() {
            if let Kind::Node(node) = self.kind(child) {
                open.extend(node.slots.iter().map(Slot::load));
            }
            self.retire(child);
        }
    }

    /// Resizes the nodes of a path, the lowest first: the node of each link but the last.
    fn rebalance(&mut self, mut path: Vec<Link<'t, K, V>>) {
        path.pop();
        while let Some(link) = path.pop() {
            self.resize(link, 0);
        }
    }

    /// Doubles or halves the node in a slot until the policy is satisfied; replaces it by its only
    /// child, if it has fewer than two.
    fn resize(&mut self, link: Link<'t, K, V>, cascade: u32) {
        let is_root = link.0.is_none();
        for is_inflation in [true, false] {
            for _ in 0..MAX_STEPS {
                let Kind::Node(node) = self.kind(self.slot(link).load()) else { return };
                let is_due = match is_inflation {
                    true => self.should_inflate(node, is_root),
                    false => self.should_halve(node, is_root),
                };
                if !is_due {
                    break;
                }
                self.replace(link, node, is_inflation, cascade);
            }
        }
        let old = self.slot(link).load();
        if let Kind::Node(node) = self.kind(old) {
            if node.used() < 2 {
                let mut children = node.slots.iter().map(Slot::load);
                let only = children.find(|child| !child.is_empty());
                self.set(link, only.unwrap_or(Child::EMPTY));
                self.retire(old);
            }
        }
    }

    fn should_inflate(&self, node: &Node<K, V>, is_root: bool) -> bool {
        let tuning = &self.trie.tuning;
        let (bits, used, full) = (node.bits(), node.used(), node.full());
        if is_root {
            let limit = tuning.root_bits.min(Tuning::MAX_BITS);
            bits < limit && tuning.root.should_inflate(bits, used, full)
        } else {
            bits < Tuning::MAX_BITS && tuning.node.should_inflate(bits, used, full)
        }
    }

    fn should_halve(&self, node: &Node<K, V>, is_root: bool) -> bool {
        let tuning = &self.trie.tuning;
        let thresholds = if is_root { tuning.root } else { tuning.node };
        thresholds.should_halve(node.bits(), node.used())
    }

    /// Replaces the node in a slot by one of twice or half as many slots, and resizes the children
    /// that skip no bits.
    fn replace(
        &mut self,
        link: Link<'t, K, V>,
        node: &'t Node<K, V>,
        is_inflation: bool,
        cascade: u32,
    ) {
        let mut split = Vec::new();
        let children = match is_inflation {
            true => self.inflated(node, &mut split),
            false => self.halved(node),
        };
        // SAFETY: the children are not freed before this writer has ended.
        let new = Child::of_node(unsafe { Node::new(node.pos, node.key, &children) });
        let old = self.slot(link).load();
        self.set(link, new);
        self.unlinked.clear();
        self.retire(old);
        split.into_iter().for_each(|child| self.retire(child));
        let Kind::Node(new) = self.kind(new) else { return };
        if cascade >= MAX_CASCADE {
            return;
        }
        for index in 0..new.slots.len() {
            match self.kind(new.slots[index].load()) {
                Kind::Node(child) if child.pos == new.end() => {
                    self.resize((Some(new), index), cascade + 1);
                }
                _ => {}
            }
        }
    }

    /// Returns the children of a node with one more bit, and those that have been split.
    fn inflated(&mut self, node: &Node<K, V>, split: &mut Vec<Child<K, V>>) -> Vec<Child<K, V>> {
        let new_bit = node.end();
        let mut children = Vec::with_capacity(2 * node.slots.len());
        for child in node.slots.iter().map(Slot::load) {
            let key = match self.kind(child) {
                Kind::Empty => {
                    children.extend([Child::EMPTY; 2]);
                    continue;
                }
                Kind::Node(full) if full.pos == new_bit => {
                    let slots: Vec<_> = full.slots.iter().map(Slot::load).collect();
                    let (left, right) = slots.split_at(slots.len() / 2);
                    children.extend([left, right].map(|half| self.subtrie(new_bit + 1, half)));
                    split.push(child);
                    continue;
                }
                // A leaf, or a node that skips the new bit, moves to one side as a whole.
                Kind::Leaf(leaf) => leaf.key,
                Kind::Node(node) => node.key,
            };
            match key.slice(new_bit, 1) {
                0 => children.extend([child, Child::EMPTY]),
                _ => children.extend([Child::EMPTY, child]),
            }
        }
        children
    }

    /// Returns the children of a node with one bit less.
    fn halved(&mut self, node: &Node<K, V>) -> Vec<Child<K, V>> {
        let slots: Vec<_> = node.slots.iter().map(Slot::load).collect();
        slots.chunks(2).map(|pair| self.subtrie(node.end() - 1, pair)).collect()
    }

    /// Returns a subtrie of these `2^bits` children: empty, the only child, or a new node at `pos`.
    fn subtrie(&mut self, pos: u32, children: &[Child<K, V>]) -> Child<K, V> {
        let mut used = children.iter().copied().filter(|child| !child.is_empty());
        let Some(first) = used.next() else { return Child::EMPTY };
        if used.next().is_none() {
            return first;
        }
        // SAFETY: the child is not freed before this writer has ended.
        let Some(key) = (unsafe { first.key() }) else { return Child::EMPTY };
        // SAFETY: as above.
        let node = Child::of_node(unsafe { Node::new(pos, key, children) });
        self.unlinked.push(node);
        node
    }
}
