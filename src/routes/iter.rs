//! Ordered views of the routes, their iterators, and the removal of those that a predicate picks.
#![allow(unsafe_code)]

use core::fmt;
use core::iter::FusedIterator;
use core::marker::PhantomData;
use core::ops::Bound;

use super::RouteTable;
use super::store::{Nodes, Store, Values};
use super::traversal::{Descent, Walk, has_covered};
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::memory::{Allocator, Global};

impl<A: Address, V, M: Allocator + Clone> RouteTable<A, V, M> {
    /// Returns an iterator over the routes that contain `address`, the shortest first.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let prefixes = [(0x00, 0), (0x40, 2), (0x48, 5)].map(|(at, len)| Prefix::new(at, len));
    /// let routes: RouteTable<u8, ()> =
    ///     prefixes.into_iter().flatten().map(|at| (at, ())).collect();
    /// assert!(routes.matches(&0x49).map(|(at, ())| at.len()).eq([0, 2, 5]));
    /// assert!(routes.matches(&0x50).map(|(at, ())| at.len()).eq([0, 2]));
    /// ```
    #[doc(alias("less specific"))]
    pub fn matches(&self, address: &A) -> Covering<'_, A, V, M> {
        Covering::along(&self.store, *address, A::BITS)
    }

    /// Returns an iterator over the routes that cover `prefix`, the shortest first; the last one
    /// may be of `prefix` itself.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let routes = RouteTable::from([(long, 'a'), (short, 'b')]);
    /// assert!(routes.covering(&long).map(|(at, _)| at).eq([short, long]));
    /// assert!(routes.covering(&Prefix::new(0x48, 4)?).map(|(at, _)| at).eq([short]));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[doc(alias("less specific", "supernets"))]
    pub fn covering(&self, prefix: &Prefix<A>) -> Covering<'_, A, V, M> {
        Covering::along(&self.store, prefix.address(), prefix.len())
    }

    /// Returns an iterator over the routes that `prefix` covers, in order; the first one may be of
    /// `prefix` itself.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let prefixes = [(0x00, 0), (0x40, 2), (0x48, 5)].map(|(at, len)| Prefix::new(at, len));
    /// let routes: RouteTable<u8, ()> =
    ///     prefixes.into_iter().flatten().map(|at| (at, ())).collect();
    /// assert!(routes.covered(&Prefix::new(0x40, 2)?).map(|(at, ())| at.len()).eq([2, 5]));
    /// assert!(routes.covered(&Prefix::new(0x40, 3)?).map(|(at, ())| at.len()).eq([5]));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[doc(alias("more specific", "children", "subnets"))]
    pub fn covered(&self, prefix: &Prefix<A>) -> Iter<'_, A, V, M> {
        let all = (prefix.len() == 0).then_some(self.len);
        Iter::below(&self.store, prefix, all)
    }

    /// Returns an iterator over the routes that `prefix` covers, in order, with mutable references
    /// to their values. Takes the path, and all routes below.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let mut routes = RouteTable::from([(long, 1), (short, 2)]);
    /// routes.covered_mut(&Prefix::new(0x40, 3)?).for_each(|(_, value)| *value += 10);
    /// assert!(routes.values().eq(&[2, 11]));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[doc(alias("children_mut"))]
    pub fn covered_mut(&mut self, prefix: &Prefix<A>) -> IterMut<'_, A, V, M> {
        let walk = Walk::below(&self.store.nodes, prefix);
        IterMut::along(&mut self.store, walk)
    }

    /// Returns an iterator over the routes that contain `address`, the shortest first, with mutable
    /// references to their values. Takes the path, once.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let mut hits = RouteTable::from([(long, 0), (short, 0)]);
    /// hits.matches_mut(&0x49).for_each(|(_, hits)| *hits += 1);
    /// hits.matches_mut(&0x50).for_each(|(_, hits)| *hits += 1);
    /// assert!(hits.values().eq(&[2, 1]));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn matches_mut(&mut self, address: &A) -> MatchesMut<'_, A, V, M> {
        MatchesMut::along(&mut self.store, *address)
    }

    /// Returns an iterator over the routes from a bound on, in order: the next page of a list
    /// begins after the last prefix of this page. Takes the path, and the routes that are read.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    /// use std::ops::Bound;
    ///
    /// let routes: RouteTable<u8, ()> = (0..5).map(|at| (Prefix::host(at), ())).collect();
    /// let (mut pages, mut from) = (vec![], Bound::Unbounded);
    /// loop {
    ///     let page = routes.iter_from(from).take(2).map(|(at, ())| at.address());
    ///     let page: Vec<u8> = page.collect();
    ///     let Some(&last) = page.last() else { break };
    ///     from = Bound::Excluded(Prefix::host(last));
    ///     pages.push(page);
    /// }
    /// assert_eq!(pages, [vec![0, 1], vec![2, 3], vec![4]]);
    /// ```
    pub fn iter_from(&self, bound: Bound<Prefix<A>>) -> Iter<'_, A, V, M> {
        Iter::from(&self.store, bound)
    }

    /// Returns whether a route has an address in common with `prefix`: it covers `prefix`, or
    /// `prefix` covers it. Takes the path, once.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let routes = RouteTable::from([(long, 'a'), (short, 'b')]);
    /// assert!(routes.overlaps(&Prefix::host(0x49)) && routes.overlaps(&Prefix::default_route()));
    /// assert!(!routes.overlaps(&Prefix::host(0x80)));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[must_use]
    pub fn overlaps(&self, prefix: &Prefix<A>) -> bool {
        self.covering(prefix).next().is_some() || has_covered(&self.store.nodes, prefix)
    }

    /// Returns an iterator over all routes in order: by address, and for equal addresses the
    /// shorter first.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let routes = RouteTable::from([(long, 'a'), (short, 'b')]);
    /// assert!(routes.iter().eq([(short, &'b'), (long, &'a')]));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[must_use]
    pub fn iter(&self) -> Iter<'_, A, V, M> {
        self.covered(&Prefix::default_route())
    }

    /// Returns an iterator over all routes in order, with mutable references to their values.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let mut routes = RouteTable::from([(long, 1), (short, 2)]);
    /// routes.iter_mut().for_each(|(prefix, value)| *value += prefix.len());
    /// assert!(routes.values().eq(&[4, 6]));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn iter_mut(&mut self) -> IterMut<'_, A, V, M> {
        IterMut::all(&mut self.store, self.len)
    }

    /// Returns an iterator over the prefixes of all routes in order. O(routes) in all.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let routes = RouteTable::from([(long, 'a'), (short, 'b')]);
    /// assert!(routes.prefixes().eq([short, long]));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn prefixes(&self) -> impl Iterator<Item = Prefix<A>> {
        self.iter().map(|(prefix, _)| prefix)
    }

    /// Returns an iterator over the values of all routes in the order of their prefixes. O(routes)
    /// in all.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let routes = RouteTable::from([(long, 'a'), (short, 'b')]);
    /// assert!(routes.values().eq(&['b', 'a']));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// Returns an iterator over mutable references to the values of all routes in the order of
    /// their prefixes.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let mut routes = RouteTable::from([(Prefix::new(0x40_u8, 2)?, 1)]);
    /// routes.values_mut().for_each(|value| *value += 1);
    /// assert!(routes.values().eq(&[2]));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.iter_mut().map(|(_, value)| value)
    }

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
    pub fn extract_if(
        &mut self,
        mut predicate: impl FnMut(Prefix<A>, &mut V) -> bool,
    ) -> impl FusedIterator<Item = (Prefix<A>, V)> {
        // At most that many calls: an inconsistent address does not go on forever.
        let (mut last, mut left) = (None, self.len);
        let next = move || {
            while left > 0 {
                let nodes = &self.store.nodes;
                let walk = Walk::after(nodes, &Prefix::default_route(), last.as_ref());
                let mut routes = IterMut::along(&mut self.store, walk).take(left);
                let picked = routes.find_map(|(prefix, value)| {
                    left -= 1;
                    predicate(prefix, value).then_some(prefix)
                });
                last = Some(picked?);
                let removed = picked.and_then(|prefix| Some((prefix, self.remove(&prefix)?)));
                if removed.is_some() {
                    return removed;
                }
            }
            None
        };
        core::iter::from_fn(next).fuse()
    }
}

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
