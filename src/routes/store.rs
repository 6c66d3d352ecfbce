//! Nodes and values of a table: the bits of a node determine where its values are.
//!
//! # Invariants
//!
//! - **S1.** The blocks of two nodes, of their values and of their children, are disjoint.
//! - **S2.** In the pool of values a unit is initialised exactly if it belongs to a route: it lies
//!   in the block of a node, and the node has one unit in use for each of its routes.
//! - **S3.** Node 0 is empty: it is the next node of slots without one. Node 1 is the root. Both
//!   exist from the first insertion on.
//!
//! Only this file adds routes to nodes and removes them, bit and value together; the unsafe blocks
//! of this module rest on that.
#![allow(unsafe_code)]

use core::error::Error;
use core::fmt;
use core::mem::{self, MaybeUninit};
use core::ops::Range;

use super::node::{Form, Node, Path};
use super::pool::{Exhausted, Pool, Unit};
use super::search::{Changed, NodeRoutes, Position, RouteBits};
use super::stride::PrefixIndex;
use crate::memory::{Allocator, Global, Vec};

/// The node that is always empty.
pub(super) const NO_NODE: u32 = 0;

/// The node at position 0.
pub(super) const ROOT: u32 = 1;

/// The values of routes, and uninitialised units. Drops none of them.
#[derive(Debug)]
pub(super) struct Values<V, M: Allocator + Clone = Global>(Pool<MaybeUninit<V>, M>);

// SAFETY: it may have any bytes.
unsafe impl<V> Unit for MaybeUninit<V> {
    const IS_CLEARED: bool = false;
}

impl<V, M: Allocator + Clone> Values<V, M> {
    /// Returns the value of a route.
    ///
    /// # Safety
    ///
    /// `index` belongs to a route of a node.
    #[inline]
    pub(super) unsafe fn get(&self, index: u32) -> &V {
        // SAFETY: the unit is in a block (S2).
        let unit = unsafe { self.0.get_unchecked(index) };
        // SAFETY: the unit belongs to a route, so it is initialised (S2).
        unsafe { unit.assume_init_ref() }
    }

    /// Returns a mutable reference to the value of a route.
    ///
    /// # Safety
    ///
    /// As for [`get`](Self::get).
    pub(super) unsafe fn get_mut(&mut self, index: u32) -> &mut V {
        // SAFETY: the unit belongs to a route, so it is initialised (S2).
        unsafe { self.0.get_mut(index).assume_init_mut() }
    }

    /// Prefetches the value at `index`, if it exists.
    #[inline]
    pub(super) fn prefetch(&self, index: u32) {
        self.0.prefetch(index);
    }

    /// Returns a pointer to the value of a route, which exists.
    pub(super) fn as_ptr(&self, index: u32) -> *mut V {
        self.0.as_ptr(index).cast()
    }

    /// Moves the value of a route out; the unit keeps its bytes.
    ///
    /// # Safety
    ///
    /// As for [`get`](Self::get), and the value is neither read nor dropped again.
    pub(super) unsafe fn read(&self, index: u32) -> V {
        // SAFETY: the unit belongs to a route, so it is initialised (S2).
        unsafe { self.0.get(index).assume_init_read() }
    }
}

/// The nodes of a table. Their methods do not need the values, so they are compiled once for all
/// types of values.
pub(super) type Nodes<M> = Pool<Node, M>;

impl<M: Allocator + Clone> Nodes<M> {
    /// Creates the empty node and the root, if they do not exist.
    pub(super) fn make_root(&mut self) -> Result<(), Exhausted> {
        if self.is_empty() {
            // Both are in the first chunk: the second allocation does not fail.
            self.alloc_one(Node::EMPTY)?;
            self.alloc_one(Node::EMPTY)?;
        }
        Ok(())
    }

    /// Returns the root, or an empty node if it does not exist.
    #[inline]
    pub(super) fn root(&self) -> &Node {
        if self.is_empty() { &Node::EMPTY } else { self.get(ROOT) }
    }

    /// Returns the child of a branch node in a slot.
    #[inline]
    pub(super) fn child_of(&self, node: &Node, slot: u32) -> Option<&Node> {
        Some(self.get(node.branch().child(slot)?))
    }
}

#[derive(Debug)]
pub(super) struct Store<V, M: Allocator + Clone = Global> {
    pub(super) nodes: Nodes<M>,
    pub(super) values: Values<V, M>,
}

impl<V> Store<V> {
    pub(super) const fn new() -> Self {
        Self { nodes: Pool::new(), values: Values(Pool::new()) }
    }
}

impl<V, M: Allocator + Clone> Store<V, M> {
    pub(super) fn new_in(memory: M) -> Self {
        let values = Values(Pool::new_in(memory.clone()));
        Self { nodes: Pool::new_in(memory), values }
    }

    /// Returns the allocator.
    pub(super) fn memory(&self) -> &M {
        self.nodes.memory()
    }

    /// Returns the value of a route of a node, if it exists.
    pub(super) fn value(&self, id: u32, index: PrefixIndex) -> Option<&V> {
        let node = self.nodes.get(id).branch();
        // SAFETY: the node has the route.
        node.has(index).then(|| unsafe { self.values.get(node.value(index)) })
    }

    /// Returns a mutable reference to the value at the position of a route that exists.
    #[inline]
    pub(super) fn value_at(&mut self, position: &Position) -> &mut V {
        assert!(position.exists, "there is a value for each route that exists");
        // SAFETY: the node has the route.
        unsafe { self.values.get_mut(position.block + position.at) }
    }

    /// Returns a mutable reference to the value of a route of a node, if it exists.
    pub(super) fn value_mut(&mut self, id: u32, index: PrefixIndex) -> Option<&mut V> {
        let node = self.nodes.get(id).branch();
        // SAFETY: the node has the route.
        node.has(index).then(|| unsafe { self.values.get_mut(node.value(index)) })
    }

    /// Adds a route to the node with these routes, which does not have it. Returns the routes after
    /// that, or the value if there is no memory.
    #[inline(always)]
    pub(super) fn insert_route(
        &mut self,
        NodeRoutes { id, bits }: NodeRoutes,
        position: &Position,
        value: V,
    ) -> Result<Changed, V> {
        debug_assert!(self.nodes.get(id).bits() == bits && !position.exists);
        let Position { block, len, at, .. } = *position;
        let Ok((block, place)) = self.values.0.insert(block, len, at) else {
            return Err(value);
        };
        place.write(value);
        let changed = bits.flipped(position, block);
        self.nodes.get_mut(id).set_routes(changed.bits);
        Ok(changed)
    }

    /// Removes a route from the node with these routes, which has it. Returns its value and the
    /// routes after that.
    #[inline(always)]
    pub(super) fn remove_route(
        &mut self,
        NodeRoutes { id, bits }: NodeRoutes,
        position: &Position,
    ) -> (V, Changed) {
        debug_assert!(self.nodes.get(id).bits() == bits && position.exists);
        let Position { block, len, at, .. } = *position;
        let (value, block) = self.values.0.remove(block, len, at);
        let changed = bits.flipped(position, block);
        self.nodes.get_mut(id).set_routes(changed.bits);
        // SAFETY: the node had the route, so the unit was initialised; now it is in no block (S2).
        (unsafe { value.assume_init() }, changed)
    }

    /// Adds routes and empty children to a node that has none: `routes` has the index of each one,
    /// with which `value` returns its value. Returns the block of the children.
    pub(super) fn fill(
        &mut self,
        id: u32,
        routes: &[(PrefixIndex, u32)],
        branches: u64,
        value: &mut impl FnMut(u32) -> V,
    ) -> Result<u32, Exhausted> {
        debug_assert!(self.nodes.get(id).is_empty());
        let values = self.values.0.alloc(routes.len() as u32)?;
        let children = self.nodes.alloc(branches.count_ones())?;
        let node = Node::with(routes.iter().map(|(index, _)| *index), branches);
        let node = node.relocated(values, children);
        for &(index, at) in routes {
            self.values.0.get_mut(node.branch().value(index)).write(value(at));
        }
        // All units of its routes are initialised (S2). Nodes that were not in use are empty.
        *self.nodes.get_mut(id) = node;
        Ok(children)
    }

    /// Returns the contents, and leaves the store empty.
    pub(super) fn take_all(&mut self) -> (Nodes<M>, Values<V, M>) {
        let (nodes, values) =
            (Pool::new_in(self.memory().clone()), Values(Pool::new_in(self.memory().clone())));
        (mem::replace(&mut self.nodes, nodes), mem::replace(&mut self.values, values))
    }

    /// Moves the blocks of all nodes next to each other, without free blocks between them, if there
    /// is memory.
    pub(super) fn compact(&mut self) {
        let mut compact = Self::new_in(self.memory().clone());
        let (nodes, values) = (&self.nodes, &self.values);
        // SAFETY: each value is read once, and either the old or the new store drops it.
        let copied = compact.copy_from(nodes, |index| unsafe { values.read(index) });
        let mut old = match copied {
            Ok(()) => mem::replace(self, compact),
            Err(Exhausted) => compact,
        };
        // Without its nodes a store drops no values.
        old.take_all();
    }

    /// Copies nodes to this store, which is empty, without free blocks between them, with the
    /// values that `value` returns for the indices of theirs.
    fn copy_from(
        &mut self,
        nodes: &Nodes<M>,
        mut value: impl FnMut(u32) -> V,
    ) -> Result<(), Exhausted> {
        if nodes.is_empty() {
            return Ok(());
        }
        self.nodes.make_root()?;
        let memory = self.memory();
        let (mut open, mut row) = (Vec::new_in(memory.clone()), Vec::new_in(memory.clone()));
        open.try_reserve(1).map_err(|_| Exhausted)?;
        open.push((ROOT, ROOT));
        while let Some((from, to)) = open.pop() {
            let node = nodes.get(from);
            let ((old_children, children), (old_values, routes)) = match node.form() {
                Form::Path(path) => ((path.child, 1), (0, 0)),
                Form::Branch(branch) => (branch.children_block(), branch.values_block()),
            };
            let new_values = self.values.0.alloc(routes)?;
            let new_children = self.nodes.alloc(children)?;
            // Before a value is read.
            row.try_reserve(routes as usize).map_err(|_| Exhausted)?;
            open.try_reserve(children as usize).map_err(|_| Exhausted)?;
            // The children have no routes yet, in case `value` panics or there is no memory.
            for nth in 0..children {
                *self.nodes.get_mut(new_children + nth) = Node::EMPTY;
            }
            // So all values of a node are collected before one of them is stored.
            row.extend((0..routes).map(|nth| value(old_values + nth)));
            for (nth, value) in (0..).zip(row.drain(..)) {
                self.values.0.get_mut(new_values + nth).write(value);
            }
            *self.nodes.get_mut(to) = node.relocated(new_values, new_children);
            open.extend((0..children).map(|nth| (old_children + nth, new_children + nth)));
        }
        Ok(())
    }

    /// Returns the units in allocated blocks: of nodes, of values.
    pub(super) fn used(&self) -> (usize, usize) {
        (self.nodes.used(), self.values.0.used())
    }

    /// Returns the allocated bytes: of nodes, of values.
    pub(super) fn allocation_size(&self) -> (usize, usize) {
        (self.nodes.allocation_size(), self.values.0.allocation_size())
    }
}

impl<V: Clone, M: Allocator + Clone> Clone for Store<V, M> {
    fn clone(&self) -> Self {
        let mut copy = Self::new_in(self.memory().clone());
        // SAFETY: `copy_from` passes the indices of routes.
        let value = |index| unsafe { self.values.get(index) }.clone();
        copy.copy_from(&self.nodes, value).unwrap_or_else(|Exhausted| exhausted());
        copy
    }
}

/// There is no memory for a new route, or a table has the maximum number of nodes or values.
///
/// # Example
///
/// ```
/// use flowtable::{Prefix, RouteTable, routes::NoMemory};
///
/// let mut routes = RouteTable::<u8, &str>::new();
/// match routes.try_insert(Prefix::host(1), "lab") {
///     Ok(old) => assert_eq!(old, None),
///     Err(NoMemory { refused, .. }) => println!("no route to the {refused}"),
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NoMemory<V> {
    /// The value that has not been inserted; of a set, the prefix.
    pub refused: V,
}

impl<V> fmt::Debug for NoMemory<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NoMemory").finish_non_exhaustive()
    }
}

impl<V> fmt::Display for NoMemory<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no memory for a route")
    }
}

impl<V> Error for NoMemory<V> {}

/// Reports that there is no memory for a few more nodes or values.
#[cold]
pub(super) fn exhausted() -> ! {
    alloc::alloc::handle_alloc_error(core::alloc::Layout::new::<[Node; 1 << 10]>())
}

/// The walk that drops the values of all nodes. Each node has the index of its parent while its
/// children are visited: so this needs no memory.
struct Dropping<'s, V, M: Allocator + Clone> {
    store: &'s mut Store<V, M>,
    /// The node that is visited, or [`NO_NODE`] at the end.
    node: u32,
    /// Its units of routes that are left.
    values: Range<u32>,
}

impl<V, M: Allocator + Clone> Dropping<'_, V, M> {
    /// Visits a child, or the root. It refers to its parent, and has no routes, before its values
    /// are dropped.
    fn enter(&mut self, id: u32) {
        let nodes = &mut self.store.nodes;
        let node = *nodes.get(id);
        self.values = 0..0;
        match node.form() {
            Form::Path(path) => *nodes.get_mut(id) = Node::chain(Path { strides: 1, ..path }),
            Form::Branch(branch) => {
                let (block, len) = branch.values_block();
                self.values = block..block + len;
            }
        }
        nodes.get_mut(id).set_routes(RouteBits { values: self.node, ..RouteBits::NONE });
        self.node = id;
    }

    fn drop_values(&mut self) {
        while self.node != NO_NODE {
            for index in self.values.by_ref() {
                // SAFETY: the unit belongs to a route, so it is initialised (S2); each node is in
                // one block of children (S1) and the unit is left once, so this happens once.
                unsafe { self.store.values.0.get_mut(index).assume_init_drop() };
            }
            let node = self.store.nodes.get_mut(self.node);
            match node.take_child() {
                Some(child) => self.enter(child),
                None => self.node = node.bits().values,
            }
        }
    }
}

/// Goes on if the drop of a value has panicked.
impl<V, M: Allocator + Clone> Drop for Dropping<'_, V, M> {
    fn drop(&mut self) {
        self.drop_values();
    }
}

impl<V, M: Allocator + Clone> Drop for Store<V, M> {
    fn drop(&mut self) {
        if mem::needs_drop::<V>() && !self.nodes.is_empty() {
            let mut dropping = Dropping { store: self, node: NO_NODE, values: 0..0 };
            dropping.enter(ROOT);
            dropping.drop_values();
        }
    }
}
