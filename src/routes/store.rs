//! The nodes and the values of a table: each value where the bits of a node say it is.
//!
//! # Invariants
//!
//! - **S1.** The runs of two nodes, of their values and of their children, have no unit in common.
//! - **S2.** In the pool of values a unit is initialised exactly if it belongs to a route: it lies in the
//!   run of a node, which has as many units as the node has routes.
//! - **S3.** Node 0 is blank, for slots that lead nowhere. Node 1 is the root. Both are there as soon as
//!   there has been a route.
//!
//! Only this file gives routes to nodes and takes them, bit and value together; that is what the unsafe
//! blocks of this module rest on.
#![allow(unsafe_code)]

use alloc::vec;
use alloc::vec::Vec;
use core::mem::{self, MaybeUninit};

use super::node::Node;
use super::pool::{Blank, Pool};
use super::stride::Spot;
use crate::raw::prefetch::prefetch;

/// The node that is always blank.
pub(super) const NOWHERE: u32 = 0;

/// The node at position 0.
pub(super) const ROOT: u32 = 1;

/// The values of routes, and units that are not initialised. Drops none of them.
#[derive(Debug)]
pub(super) struct Values<V>(Pool<MaybeUninit<V>>);

impl<V> Blank for MaybeUninit<V> {
    const BLANK: Self = Self::uninit();
    const MOST: u64 = 1 << 32;
}

impl<V> Values<V> {
    /// The value of a route.
    ///
    /// # Safety
    ///
    /// `index` is what a node says of a route that it has.
    #[inline]
    pub(super) unsafe fn get(&self, index: u32) -> &V {
        // SAFETY: the unit is in a run (S2).
        let unit = unsafe { self.0.get_unchecked(index) };
        // SAFETY: the unit belongs to a route, so it is initialised (S2).
        unsafe { unit.assume_init_ref() }
    }

    /// The value of a route, to change.
    ///
    /// # Safety
    ///
    /// As for [`get`](Self::get).
    pub(super) unsafe fn get_mut(&mut self, index: u32) -> &mut V {
        // SAFETY: the unit belongs to a route, so it is initialised (S2).
        unsafe { self.0.get_mut(index).assume_init_mut() }
    }

    /// Reads the value of a route, and leaves the unit as it is.
    ///
    /// # Safety
    ///
    /// As for [`get`](Self::get), and nobody reads or drops the value again.
    pub(super) unsafe fn read(&self, index: u32) -> V {
        // SAFETY: the unit belongs to a route, so it is initialised (S2).
        unsafe { self.0.get(index).assume_init_read() }
    }

    /// Asks the cache for the value of a route.
    ///
    /// # Safety
    ///
    /// As for [`get`](Self::get).
    #[inline]
    pub(super) unsafe fn prefetch(&self, index: u32) {
        // SAFETY: the unit is in a run (S2).
        prefetch(unsafe { self.0.get_unchecked(index) });
    }
}

#[derive(Debug)]
pub(super) struct Store<V> {
    pub(super) nodes: Pool<Node>,
    pub(super) values: Values<V>,
}

impl<V> Store<V> {
    pub(super) const fn new() -> Self {
        Self { nodes: Pool::new(), values: Values(Pool::new()) }
    }

    /// Sees to it that one more route, and the way to it, will not be refused half-way.
    ///
    /// # Panics
    ///
    /// If there is hardly room for more units in one of the pools.
    pub(super) fn assert_room(&self) {
        assert!(self.nodes.has_room() && self.values.0.has_room(), "the route table is full");
    }

    /// Makes the blank node and the root, if they are not there yet.
    pub(super) fn make_root(&mut self) {
        if self.nodes.is_empty() {
            self.nodes.single(Node::BLANK);
            self.nodes.single(Node::BLANK);
        }
    }

    /// The value of a node's route, if it has it.
    pub(super) fn value(&self, id: u32, spot: Spot) -> Option<&V> {
        let node = self.nodes.get(id);
        // SAFETY: the node has the route.
        node.has(spot).then(|| unsafe { self.values.get(node.value(spot)) })
    }

    /// The value of a node's route, if it has it, to change.
    pub(super) fn value_mut(&mut self, id: u32, spot: Spot) -> Option<&mut V> {
        let node = self.nodes.get(id);
        // SAFETY: the node has the route.
        node.has(spot).then(|| unsafe { self.values.get_mut(node.value(spot)) })
    }

    /// Gives a node a route that it does not have.
    pub(super) fn put(&mut self, id: u32, spot: Spot, value: V) {
        let node = self.nodes.get_mut(id);
        let (run, len) = node.values_run();
        let run = self.values.0.insert(run, len, node.place(spot), MaybeUninit::new(value));
        node.flip_route(spot, run);
    }

    /// Takes a route from a node, if it has it.
    pub(super) fn take(&mut self, id: u32, spot: Spot) -> Option<V> {
        let node = self.nodes.get_mut(id);
        if !node.has(spot) {
            return None;
        }
        let (run, len) = node.values_run();
        let (value, run) = self.values.0.remove(run, len, node.place(spot));
        node.flip_route(spot, run);
        // SAFETY: the node had the route, so the unit was initialised; now it is in no run (S2).
        Some(unsafe { value.assume_init() })
    }

    /// Takes everything out.
    pub(super) fn take_all(&mut self) -> (Pool<Node>, Values<V>) {
        let values = mem::replace(&mut self.values, Values(Pool::new()));
        (mem::replace(&mut self.nodes, Pool::new()), values)
    }

    /// Puts the runs of all nodes one behind the other, so that there are no gaps.
    pub(super) fn compact(&mut self) {
        let (nodes, values) = self.take_all();
        // SAFETY: it is asked once for the value of each route that a node has, and `values` drops none.
        *self = Self::copied(&nodes, |index| unsafe { values.read(index) });
    }

    /// The same nodes, one behind the other, with the values that are given for theirs.
    fn copied(nodes: &Pool<Node>, mut value: impl FnMut(u32) -> V) -> Self {
        let (mut store, mut row) = (Self::new(), Vec::new());
        if nodes.is_empty() {
            return store;
        }
        store.make_root();
        let mut open = vec![(ROOT, ROOT)];
        while let Some((from, to)) = open.pop() {
            let node = nodes.get(from);
            let (old_children, children) = match node.as_path() {
                Some(path) => (path.child, 1),
                None => node.children_run(),
            };
            let (old_values, routes) = if node.is_path() { (0, 0) } else { node.values_run() };
            let new_values = store.values.0.run(routes);
            let new_children = store.nodes.run(children);
            // All of a node before one of them is in the store, in case that one cannot be had.
            row.extend((0..routes).map(|nth| value(old_values + nth)));
            for (nth, value) in (0..).zip(row.drain(..)) {
                *store.values.0.get_mut(new_values + nth) = MaybeUninit::new(value);
            }
            *store.nodes.get_mut(to) = node.moved(new_values, new_children);
            open.extend((0..children).map(|nth| (old_children + nth, new_children + nth)));
        }
        store
    }

    /// Units of both pools that are in use: nodes, values.
    pub(super) fn used(&self) -> (usize, usize) {
        (self.nodes.used(), self.values.0.used())
    }

    /// Bytes that are allocated: for nodes, for values.
    pub(super) fn allocation_size(&self) -> (usize, usize) {
        (self.nodes.allocation_size(), self.values.0.allocation_size())
    }
}

impl<V: Clone> Clone for Store<V> {
    fn clone(&self) -> Self {
        // SAFETY: it is asked for the values of the routes that nodes have.
        Self::copied(&self.nodes, |index| unsafe { self.values.get(index) }.clone())
    }
}

impl<V> Drop for Store<V> {
    fn drop(&mut self) {
        if !mem::needs_drop::<V>() || self.nodes.is_empty() {
            return;
        }
        let mut open = vec![ROOT];
        while let Some(id) = open.pop() {
            let node = self.nodes.get(id);
            if let Some(path) = node.as_path() {
                open.push(path.child);
                continue;
            }
            let (children, count) = node.children_run();
            open.extend(children..children + count);
            let (run, len) = node.values_run();
            for index in run..run + len {
                // SAFETY: the unit belongs to a route, so it is initialised (S2); each node is in one
                // run of children (S1), so this comes once.
                unsafe { self.values.0.get_mut(index).assume_init_drop() };
            }
        }
    }
}
