//! Ordered views of the routes.

use core::ops::Bound;

use super::traversal::Walk;
use super::{Covering, Iter, IterMut, MatchesMut, RouteTable, traversal};
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::memory::Allocator;

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
        self.covering(prefix).next().is_some() || traversal::has_covered(&self.store.nodes, prefix)
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
}
