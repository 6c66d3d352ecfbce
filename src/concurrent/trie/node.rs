//! Nodes, leaves, and the atomic slots that refer to them; walks in the order of the keys.
#![allow(unsafe_code)]

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::ops::Bound;
use core::{ptr, slice};

use crate::concurrent::sync::{AtomicPtr, AtomicU32, Ordering};
use crate::key::bits::BitString;

/// A key and its value, which do not move.
#[repr(align(8))]
pub(super) struct Leaf<K, V> {
    pub(super) key: K,
    pub(super) value: V,
}

/// An inner node with `2^bits` slots. Readers use all but the counters.
#[repr(align(8))]
pub(super) struct Node<K, V> {
    pub(super) slots: Box<[Slot<K, V>]>,
    /// First bit that this node branches on. At least the parent's [`end`](Self::end).
    pub(super) pos: u32,
    /// Number of slots that are not empty. Only accessed under the lock.
    used: AtomicU32,
    /// Number of children that are nodes and skip no bits. Only accessed under the lock.
    full: AtomicU32,
    /// Agrees with every key below on the bits before `pos`.
    pub(super) key: K,
}

/// The child in a slot: nothing, a leaf, or a node, for which the lowest bit is set.
pub(super) struct Child<K, V> {
    tagged: *mut u8,
    types: PhantomData<(K, V)>,
}

impl<K, V> Clone for Child<K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for Child<K, V> {}

/// A child by its kind.
pub(super) enum Kind<'t, K, V> {
    Empty,
    Leaf(&'t Leaf<K, V>),
    Node(&'t Node<K, V>),
}

const NODE: usize = 1;

impl<K, V> Child<K, V> {
    pub(super) const EMPTY: Self = Self { tagged: ptr::null_mut(), types: PhantomData };

    /// Takes ownership of a leaf.
    pub(super) fn of_leaf(leaf: Box<Leaf<K, V>>) -> Self {
        Self { tagged: Box::into_raw(leaf).cast(), types: PhantomData }
    }

    /// Takes ownership of a node.
    pub(super) fn of_node(node: Box<Node<K, V>>) -> Self {
        let node: *mut u8 = Box::into_raw(node).cast();
        Self { tagged: node.map_addr(|address| address | NODE), types: PhantomData }
    }

    pub(super) const fn is_empty(self) -> bool {
        self.tagged.is_null()
    }

    #[inline]
    fn is_node(self) -> bool {
        self.tagged.addr() & NODE != 0
    }

    #[inline]
    fn node_ptr(self) -> *mut Node<K, V> {
        self.tagged.map_addr(|address| address & !NODE).cast()
    }

    /// Returns the node or the leaf to which the child refers.
    ///
    /// # Safety
    ///
    /// The node or the leaf is not freed during `'t`.
    #[inline]
    pub(super) unsafe fn kind<'t>(self) -> Kind<'t, K, V> {
        if self.is_node() {
            // SAFETY: by the tag it is a node, and by the contract not freed.
            Kind::Node(unsafe { &*self.node_ptr() })
        } else if self.is_empty() {
            Kind::Empty
        } else {
            // SAFETY: it is a leaf, and by the contract not freed.
            Kind::Leaf(unsafe { &*self.tagged.cast::<Leaf<K, V>>() })
        }
    }

    /// Frees a leaf with its key and value, or a node without its children. Returns the leaf.
    ///
    /// # Safety
    ///
    /// It is not used any more, and freed once.
    pub(super) unsafe fn free(self) -> Option<Box<Leaf<K, V>>> {
        if self.is_node() {
            // SAFETY: from a box, and by the contract.
            drop(unsafe { Box::from_raw(self.node_ptr()) });
            return None;
        }
        // SAFETY: as above.
        (!self.is_empty()).then(|| unsafe { Box::from_raw(self.tagged.cast()) })
    }
}

/// A reference to a child, which a writer replaces by one store.
///
/// Invariant in `K` and `V`, as entries are inserted through shared references: a trie of functions
/// that take any reference is not one of functions that take `'static` ones.
///
/// ```compile_fail,E0308
/// use flowtable::concurrent::ConcurrentLcTrie;
///
/// type Trie<F> = ConcurrentLcTrie<u8, F>;
/// fn narrow(trie: &Trie<for<'a> fn(&'a str)>) -> &Trie<fn(&'static str)> {
///     trie
/// }
/// ```
pub(super) struct Slot<K, V> {
    tagged: AtomicPtr<u8>,
    types: PhantomData<AtomicPtr<(K, V)>>,
}

impl<K, V> Slot<K, V> {
    pub(super) fn new(child: Child<K, V>) -> Self {
        Self { tagged: AtomicPtr::new(child.tagged), types: PhantomData }
    }

    /// Loads the child.
    #[inline]
    pub(super) fn load(&self) -> Child<K, V> {
        // Acquire: pairs with the Release in `store`; the leaf or node is complete.
        Child { tagged: self.tagged.load(Ordering::Acquire), types: PhantomData }
    }

    /// Publishes a child.
    pub(super) fn store(&self, child: Child<K, V>) {
        // Release: pairs with the Acquire in `load`; publishes the leaf or node.
        self.tagged.store(child.tagged, Ordering::Release);
    }
}

impl<K: BitString, V> Node<K, V> {
    /// Creates a node at `pos` with these `2^bits` children, whose keys agree with `key` before it.
    ///
    /// # Safety
    ///
    /// The children are not freed during the call.
    pub(super) unsafe fn new(pos: u32, key: K, children: &[Child<K, V>]) -> Box<Self> {
        debug_assert!(children.len().is_power_of_two());
        let end = pos + children.len().trailing_zeros();
        let used = children.iter().filter(|child| !child.is_empty()).count();
        // SAFETY: by the contract.
        let full = children.iter().filter(|child| unsafe { child.is_full(end) }).count();
        Box::new(Self {
            slots: children.iter().map(|&child| Slot::new(child)).collect(),
            pos,
            used: AtomicU32::new(used as u32),
            full: AtomicU32::new(full as u32),
            key,
        })
    }

    /// log2 of the number of children. At least 1.
    #[inline]
    pub(super) fn bits(&self) -> u32 {
        self.slots.len().trailing_zeros()
    }

    /// The first bit after those that this node branches on.
    #[inline]
    pub(super) fn end(&self) -> u32 {
        self.pos + self.bits()
    }

    /// Returns the slot of a key.
    #[inline]
    pub(super) fn slot_of(&self, key: &K) -> usize {
        key.slice(self.pos, self.bits()) as usize
    }

    pub(super) fn used(&self) -> u32 {
        self.used.load(Ordering::Relaxed)
    }

    pub(super) fn full(&self) -> u32 {
        self.full.load(Ordering::Relaxed)
    }

    /// Publishes a child in a slot, and counts it.
    ///
    /// # Safety
    ///
    /// The caller holds the lock; neither child is freed during the call.
    pub(super) unsafe fn set(&self, index: usize, new: Child<K, V>) {
        let slot = &self.slots[index];
        let old = slot.load();
        let count = |counter: &AtomicU32, was: bool, is: bool| {
            let now = counter.load(Ordering::Relaxed) + u32::from(is) - u32::from(was);
            counter.store(now, Ordering::Relaxed);
        };
        count(&self.used, !old.is_empty(), !new.is_empty());
        // SAFETY: by the contract.
        let was = unsafe { old.is_full(self.end()) };
        // SAFETY: by the contract.
        let is = unsafe { new.is_full(self.end()) };
        count(&self.full, was, is);
        slot.store(new);
    }

    /// Returns the bytes of the node and its slots.
    pub(super) fn allocation_size(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.slots)
    }
}

impl<K: BitString, V> Child<K, V> {
    /// Returns whether it is a node that skips no bits below a parent that ends at `end`.
    ///
    /// # Safety
    ///
    /// The child is not freed during the call.
    unsafe fn is_full(self, end: u32) -> bool {
        // SAFETY: by the contract.
        matches!(unsafe { self.kind() }, Kind::Node(node) if node.pos == end)
    }

    /// Returns a key that begins with the bits of all keys below; of an empty child none.
    ///
    /// # Safety
    ///
    /// The child is not freed during the call.
    pub(super) unsafe fn key(self) -> Option<K> {
        // SAFETY: by the contract.
        match unsafe { self.kind() } {
            Kind::Empty => None,
            Kind::Leaf(leaf) => Some(leaf.key),
            Kind::Node(node) => Some(node.key),
        }
    }
}

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
