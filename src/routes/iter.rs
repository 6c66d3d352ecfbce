//! Iterators over routes.
#![allow(unsafe_code)]

use core::fmt;
use core::iter::FusedIterator;
use core::marker::PhantomData;

use super::node::Node;
use super::pool::Pool;
use super::store::{Store, Values};
use super::walk::{Descent, Walk};
use crate::key::bits::Address;
use crate::key::prefix::Prefix;

/// An iterator over routes in order: each before those that it covers.
///
/// Created by [`RouteTable::iter`](super::RouteTable::iter) and
/// [`covered`](super::RouteTable::covered).
pub struct Iter<'t, A, V> {
    store: &'t Store<V>,
    walk: Walk<A>,
    /// The number of remaining routes, if known.
    left: Option<usize>,
}

impl<'t, A: Address, V> Iter<'t, A, V> {
    pub(super) fn below(store: &'t Store<V>, prefix: &Prefix<A>, left: Option<usize>) -> Self {
        Self { store, walk: Walk::below(&store.nodes, prefix), left }
    }
}

impl<'t, A: Address, V> Iterator for Iter<'t, A, V> {
    type Item = (Prefix<A>, &'t V);

    fn next(&mut self) -> Option<Self::Item> {
        let (prefix, value) = self.walk.next(&self.store.nodes)?;
        self.left = self.left.map(|left| left.saturating_sub(1));
        // SAFETY: a walk returns the indices of routes.
        Some((prefix, unsafe { self.store.values.get(value) }))
    }

    /// Returns exact bounds for an iterator over all routes.
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left.unwrap_or(0), self.left)
    }
}

impl<A: Address, V> FusedIterator for Iter<'_, A, V> {}

impl<A: Clone, V> Clone for Iter<'_, A, V> {
    fn clone(&self) -> Self {
        Self { store: self.store, walk: self.walk.clone(), left: self.left }
    }
}

impl<A: Address + fmt::Debug, V: fmt::Debug> fmt::Debug for Iter<'_, A, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

/// An iterator over the routes that contain an address, or cover a prefix, the shortest first.
///
/// Created by [`RouteTable::matches`](super::RouteTable::matches) and
/// [`covering`](super::RouteTable::covering).
pub struct Covering<'t, A, V> {
    store: &'t Store<V>,
    descent: Descent<A>,
}

impl<'t, A: Address, V> Covering<'t, A, V> {
    pub(super) fn along(store: &'t Store<V>, address: A, longest: u32) -> Self {
        Self { store, descent: Descent::along(&store.nodes, address, longest) }
    }
}

impl<'t, A: Address, V> Iterator for Covering<'t, A, V> {
    type Item = (Prefix<A>, &'t V);

    fn next(&mut self) -> Option<Self::Item> {
        let (prefix, value) = self.descent.next(&self.store.nodes)?;
        // SAFETY: a walk returns the indices of routes.
        Some((prefix, unsafe { self.store.values.get(value) }))
    }
}

impl<A: Address, V> FusedIterator for Covering<'_, A, V> {}

impl<A: Clone, V> Clone for Covering<'_, A, V> {
    fn clone(&self) -> Self {
        Self { store: self.store, descent: self.descent.clone() }
    }
}

impl<A: Address + fmt::Debug, V: fmt::Debug> fmt::Debug for Covering<'_, A, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

/// An iterator over routes in order, with mutable references to their values.
///
/// Created by [`RouteTable::iter_mut`](super::RouteTable::iter_mut).
pub struct IterMut<'t, A, V> {
    nodes: &'t Pool<Node>,
    values: &'t Values<V>,
    walk: Walk<A>,
    /// The number of remaining routes, if known.
    left: Option<usize>,
    borrow: PhantomData<&'t mut V>,
}

impl<'t, A: Address, V> IterMut<'t, A, V> {
    pub(super) fn below(store: &'t mut Store<V>, prefix: &Prefix<A>, left: Option<usize>) -> Self {
        let (nodes, values) = (&store.nodes, &store.values);
        Self { nodes, values, walk: Walk::below(nodes, prefix), left, borrow: PhantomData }
    }
}

impl<'t, A: Address, V> Iterator for IterMut<'t, A, V> {
    type Item = (Prefix<A>, &'t mut V);

    fn next(&mut self) -> Option<Self::Item> {
        let (prefix, value) = self.walk.next(self.nodes)?;
        self.left = self.left.map(|left| left.saturating_sub(1));
        // SAFETY: a walk returns the index of each route once, and the store is borrowed mutably.
        Some((prefix, unsafe { &mut *self.values.as_ptr(value) }))
    }

    /// Returns exact bounds for an iterator over all routes.
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left.unwrap_or(0), self.left)
    }
}

impl<A: Address, V> FusedIterator for IterMut<'_, A, V> {}

impl<A, V> fmt::Debug for IterMut<'_, A, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IterMut").field("left", &self.left).finish_non_exhaustive()
    }
}

/// An owning iterator over the routes of a table in order. Created by its `into_iter`.
pub struct IntoIter<A: Address, V> {
    nodes: Pool<Node>,
    /// Values of the routes that the walk has not reached yet are initialised.
    values: Values<V>,
    walk: Walk<A>,
    left: usize,
}

impl<A: Address, V> IntoIter<A, V> {
    /// Creates an iterator over the contents of a store with `routes` routes, and leaves it empty.
    pub(super) fn of(store: &mut Store<V>, routes: usize) -> Self {
        let (nodes, values) = store.take_all();
        let walk = Walk::below(&nodes, &Prefix::default_route());
        Self { nodes, values, walk, left: routes }
    }
}

impl<A: Address, V> Iterator for IntoIter<A, V> {
    type Item = (Prefix<A>, V);

    fn next(&mut self) -> Option<Self::Item> {
        let (prefix, value) = self.walk.next(&self.nodes)?;
        self.left -= 1;
        // SAFETY: a walk returns the index of each route once, and the values are not read
        // elsewhere.
        Some((prefix, unsafe { self.values.read(value) }))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<A: Address, V> ExactSizeIterator for IntoIter<A, V> {}

impl<A: Address, V> FusedIterator for IntoIter<A, V> {}

impl<A: Address, V> Drop for IntoIter<A, V> {
    fn drop(&mut self) {
        if core::mem::needs_drop::<V>() {
            self.for_each(drop);
        }
    }
}

impl<A: Address, V> fmt::Debug for IntoIter<A, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntoIter").field("left", &self.left).finish_non_exhaustive()
    }
}
