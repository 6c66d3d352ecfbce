//! Iterators over routes, and the removal of those that a predicate picks.
#![allow(unsafe_code)]

use core::fmt;
use core::iter::FusedIterator;
use core::marker::PhantomData;
use core::ops::Bound;

use super::RouteTable;
use super::store::{Nodes, Store, Values};
use super::traversal::{Descent, Walk};
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::memory::{Allocator, Global};

/// An iterator over routes in order: each before those that it covers.
///
/// Created by [`RouteTable::iter`](super::RouteTable::iter),
/// [`iter_from`](super::RouteTable::iter_from) and [`covered`](super::RouteTable::covered).
pub struct Iter<'t, A, V, M: Allocator + Clone = Global> {
    store: &'t Store<V, M>,
    walk: Walk<A, M>,
    /// The number of remaining routes, if known.
    left: Option<usize>,
}

impl<'t, A: Address, V, M: Allocator + Clone> Iter<'t, A, V, M> {
    pub(super) fn below(store: &'t Store<V, M>, prefix: &Prefix<A>, left: Option<usize>) -> Self {
        Self { store, walk: Walk::below(&store.nodes, prefix), left }
    }

    pub(super) fn from(store: &'t Store<V, M>, bound: Bound<Prefix<A>>) -> Self {
        Self { store, walk: Walk::from(&store.nodes, bound), left: None }
    }
}

impl<'t, A: Address, V, M: Allocator + Clone> Iterator for Iter<'t, A, V, M> {
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

impl<A: Address, V, M: Allocator + Clone> FusedIterator for Iter<'_, A, V, M> {}

impl<A: Clone, V, M: Allocator + Clone> Clone for Iter<'_, A, V, M> {
    fn clone(&self) -> Self {
        Self { store: self.store, walk: self.walk.clone(), left: self.left }
    }
}

impl<A: Address + fmt::Debug, V: fmt::Debug, M: Allocator + Clone> fmt::Debug
    for Iter<'_, A, V, M>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

/// An iterator over the routes that contain an address, or cover a prefix, the shortest first.
///
/// Created by [`RouteTable::matches`](super::RouteTable::matches) and
/// [`covering`](super::RouteTable::covering).
pub struct Covering<'t, A, V, M: Allocator + Clone = Global> {
    store: &'t Store<V, M>,
    descent: Descent<A>,
}

impl<'t, A: Address, V, M: Allocator + Clone> Covering<'t, A, V, M> {
    pub(super) fn along(store: &'t Store<V, M>, address: A, longest: u32) -> Self {
        Self { store, descent: Descent::along(&store.nodes, address, longest) }
    }
}

impl<'t, A: Address, V, M: Allocator + Clone> Iterator for Covering<'t, A, V, M> {
    type Item = (Prefix<A>, &'t V);

    fn next(&mut self) -> Option<Self::Item> {
        let (prefix, value) = self.descent.next(&self.store.nodes)?;
        // SAFETY: a walk returns the indices of routes.
        Some((prefix, unsafe { self.store.values.get(value) }))
    }
}

impl<A: Address, V, M: Allocator + Clone> FusedIterator for Covering<'_, A, V, M> {}

impl<A: Clone, V, M: Allocator + Clone> Clone for Covering<'_, A, V, M> {
    fn clone(&self) -> Self {
        Self { store: self.store, descent: self.descent.clone() }
    }
}

impl<A: Address + fmt::Debug, V: fmt::Debug, M: Allocator + Clone> fmt::Debug
    for Covering<'_, A, V, M>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

/// An iterator over the routes that contain an address, the shortest first, with mutable references
/// to their values.
///
/// Created by [`RouteTable::matches_mut`](super::RouteTable::matches_mut).
pub struct MatchesMut<'t, A, V, M: Allocator + Clone = Global> {
    nodes: &'t Nodes<M>,
    values: &'t Values<V, M>,
    descent: Descent<A>,
    borrow: PhantomData<&'t mut V>,
}

impl<'t, A: Address, V, M: Allocator + Clone> MatchesMut<'t, A, V, M> {
    pub(super) fn along(store: &'t mut Store<V, M>, address: A) -> Self {
        let (nodes, values) = (&store.nodes, &store.values);
        let descent = Descent::along(nodes, address, A::BITS);
        Self { nodes, values, descent, borrow: PhantomData }
    }
}

impl<'t, A: Address, V, M: Allocator + Clone> Iterator for MatchesMut<'t, A, V, M> {
    type Item = (Prefix<A>, &'t mut V);

    fn next(&mut self) -> Option<Self::Item> {
        let (prefix, value) = self.descent.next(self.nodes)?;
        // SAFETY: a descent reads deeper nodes with each step, and each route of a node once; the
        // store is borrowed mutably.
        Some((prefix, unsafe { &mut *self.values.as_ptr(value) }))
    }
}

impl<A: Address, V, M: Allocator + Clone> FusedIterator for MatchesMut<'_, A, V, M> {}

impl<A, V, M: Allocator + Clone> fmt::Debug for MatchesMut<'_, A, V, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MatchesMut").finish_non_exhaustive()
    }
}

/// An iterator over routes in order, with mutable references to their values.
///
/// Created by [`RouteTable::iter_mut`](super::RouteTable::iter_mut) and
/// [`covered_mut`](super::RouteTable::covered_mut).
pub struct IterMut<'t, A, V, M: Allocator + Clone = Global> {
    nodes: &'t Nodes<M>,
    values: &'t Values<V, M>,
    walk: Walk<A, M>,
    /// The number of remaining routes, if known.
    left: Option<usize>,
    borrow: PhantomData<&'t mut V>,
}

impl<'t, A: Address, V, M: Allocator + Clone> IterMut<'t, A, V, M> {
    pub(super) fn all(store: &'t mut Store<V, M>, len: usize) -> Self {
        let walk = Walk::below(&store.nodes, &Prefix::default_route());
        Self { left: Some(len), ..Self::along(store, walk) }
    }

    /// Returns an iterator over the routes of a walk over this store.
    pub(super) fn along(store: &'t mut Store<V, M>, walk: Walk<A, M>) -> Self {
        let (nodes, values) = (&store.nodes, &store.values);
        Self { nodes, values, walk, left: None, borrow: PhantomData }
    }
}

impl<'t, A: Address, V, M: Allocator + Clone> Iterator for IterMut<'t, A, V, M> {
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

impl<A: Address, V, M: Allocator + Clone> FusedIterator for IterMut<'_, A, V, M> {}

impl<A, V, M: Allocator + Clone> fmt::Debug for IterMut<'_, A, V, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IterMut").field("left", &self.left).finish_non_exhaustive()
    }
}

/// An owning iterator over the routes of a table in order. Created by its `into_iter`.
pub struct IntoIter<A: Address, V, M: Allocator + Clone = Global> {
    nodes: Nodes<M>,
    /// Values of the routes that the walk has not reached yet are initialised.
    values: Values<V, M>,
    walk: Walk<A, M>,
    left: usize,
}

impl<A: Address, V, M: Allocator + Clone> IntoIter<A, V, M> {
    /// Creates an iterator over the contents of a store with `routes` routes, and leaves it empty.
    pub(super) fn of(store: &mut Store<V, M>, routes: usize) -> Self {
        let (nodes, values) = store.take_all();
        let mut walk = Walk::below(&nodes, &Prefix::default_route());
        // Not later: the drop must not need memory, for wide addresses either.
        walk.reserve();
        Self { nodes, values, walk, left: routes }
    }
}

impl<A: Address, V, M: Allocator + Clone> Iterator for IntoIter<A, V, M> {
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

impl<A: Address, V, M: Allocator + Clone> ExactSizeIterator for IntoIter<A, V, M> {}

impl<A: Address, V, M: Allocator + Clone> FusedIterator for IntoIter<A, V, M> {}

impl<A: Address, V, M: Allocator + Clone> Drop for IntoIter<A, V, M> {
    fn drop(&mut self) {
        /// Drops the values that are left after the drop of one has panicked.
        struct Rest<'i, A: Address, V, M: Allocator + Clone>(&'i mut IntoIter<A, V, M>);

        impl<A: Address, V, M: Allocator + Clone> Drop for Rest<'_, A, V, M> {
            fn drop(&mut self) {
                self.0.by_ref().for_each(drop);
            }
        }

        if core::mem::needs_drop::<V>() {
            Rest(self).0.by_ref().for_each(drop);
        }
    }
}

impl<A: Address, V, M: Allocator + Clone> fmt::Debug for IntoIter<A, V, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntoIter").field("left", &self.left).finish_non_exhaustive()
    }
}

/// Removes and returns the routes for which a predicate returns true. See
/// [`RouteTable::extract_if`].
pub struct ExtractIf<'t, A: Address, V, F, M: Allocator + Clone = Global> {
    table: &'t mut RouteTable<A, V, M>,
    predicate: F,
    /// The last route that was removed.
    last: Option<Prefix<A>>,
    /// The maximum number of routes to visit: an inconsistent address does not go on forever.
    left: usize,
}

impl<A: Address, V, M: Allocator + Clone> RouteTable<A, V, M> {
    /// Returns an iterator that removes the routes for which `predicate` returns true, in order;
    /// `predicate` may change their values. Routes that it has not visited when it is dropped stay.
    ///
    /// A removal costs as [`remove`](Self::remove), and a descent to the next route:
    /// [`retain`](Self::retain) costs less. Allocates nothing, unless addresses have more than 128
    /// bits.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let routes = [(0x40_u8, 2, "a"), (0x48, 5, "b"), (0x80, 1, "a")];
    /// let routes = routes.map(|(at, len, peer)| (Prefix::new(at, len).unwrap(), peer));
    /// let mut table = RouteTable::from(routes);
    /// assert!(table.extract_if(|_, peer| *peer == "a").eq([routes[0], routes[2]]));
    /// assert!(table.values().eq(&["b"]));
    /// ```
    pub fn extract_if<F: FnMut(Prefix<A>, &mut V) -> bool>(
        &mut self,
        predicate: F,
    ) -> ExtractIf<'_, A, V, F, M> {
        let left = self.len;
        ExtractIf { table: self, predicate, last: None, left }
    }
}

impl<A, V, F, M> Iterator for ExtractIf<'_, A, V, F, M>
where
    A: Address,
    F: FnMut(Prefix<A>, &mut V) -> bool,
    M: Allocator + Clone,
{
    type Item = (Prefix<A>, V);

    fn next(&mut self) -> Option<(Prefix<A>, V)> {
        let Self { table, predicate, last, left } = self;
        while *left > 0 {
            let (nodes, all) = (&table.store.nodes, Prefix::default_route());
            let walk = match last {
                None => Walk::below(nodes, &all),
                Some(last) => Walk::after(nodes, &all, last),
            };
            let mut routes = IterMut::along(&mut table.store, walk).take(*left);
            let picked = routes.find_map(|(prefix, value)| {
                *left -= 1;
                predicate(prefix, value).then_some(prefix)
            });
            let Some(prefix) = picked else {
                *left = 0;
                return None;
            };
            *last = Some(prefix);
            if let Some(value) = table.remove(&prefix) {
                return Some((prefix, value));
            }
        }
        None
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left))
    }
}

impl<A, V, F, M> FusedIterator for ExtractIf<'_, A, V, F, M>
where
    A: Address,
    F: FnMut(Prefix<A>, &mut V) -> bool,
    M: Allocator + Clone,
{
}

impl<A: Address, V, F, M: Allocator + Clone> fmt::Debug for ExtractIf<'_, A, V, F, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtractIf").finish_non_exhaustive()
    }
}
