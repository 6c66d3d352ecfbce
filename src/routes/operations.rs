//! Union, intersection and difference of two tables.

use core::cmp::Ordering;
use core::iter::Peekable;

use super::{Iter, RouteTable};
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::memory::Allocator;

/// A route of one of two tables, or of both.
type Either<'t, A, V, W> = (Prefix<A>, Option<&'t V>, Option<&'t W>);

/// A merge of the routes of two tables in order.
struct Merge<'t, A: Address, V, W, M: Allocator + Clone, N: Allocator + Clone> {
    one: Peekable<Iter<'t, A, V, M>>,
    other: Peekable<Iter<'t, A, W, N>>,
}

impl<'t, A: Address, V, W, M, N> Iterator for Merge<'t, A, V, W, M, N>
where
    M: Allocator + Clone,
    N: Allocator + Clone,
{
    type Item = Either<'t, A, V, W>;

    fn next(&mut self) -> Option<Self::Item> {
        let order = match (self.one.peek(), self.other.peek()) {
            (Some((one, _)), Some((other, _))) => one.cmp(other),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        let one = if order.is_le() { self.one.next() } else { None };
        let other = if order.is_ge() { self.other.next() } else { None };
        let prefix = one.as_ref().map(|(prefix, _)| *prefix);
        let prefix = prefix.or(other.as_ref().map(|(prefix, _)| *prefix))?;
        Some((prefix, one.map(|(_, value)| value), other.map(|(_, value)| value)))
    }
}

impl<A: Address, V, M: Allocator + Clone> RouteTable<A, V, M> {
    fn merge<'t, W, N: Allocator + Clone>(
        &'t self,
        other: &'t RouteTable<A, W, N>,
    ) -> Merge<'t, A, V, W, M, N> {
        Merge { one: self.iter().peekable(), other: other.iter().peekable() }
    }

    /// Returns an iterator over the routes of either table in order; of a prefix that is in both,
    /// the route of this one. O(routes of both) in all.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let [a, b, c] = [(0x00_u8, 1), (0x40, 2), (0x80, 1)]
    ///     .map(|(address, len)| Prefix::new(address, len).unwrap());
    /// let (one, other) = (RouteTable::from([(a, 1), (b, 1)]), RouteTable::from([(b, 2), (c, 2)]));
    /// assert!(one.union(&other).eq([(a, &1), (b, &1), (c, &2)]));
    /// ```
    pub fn union<'t>(&'t self, other: &'t Self) -> impl Iterator<Item = (Prefix<A>, &'t V)> {
        self.merge(other).filter_map(|(prefix, one, other)| Some((prefix, one.or(other)?)))
    }

    /// Returns an iterator over the prefixes that both tables have, in order, with both values.
    /// O(routes of both) in all.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let [a, b, c] = [(0x00_u8, 1), (0x40, 2), (0x80, 1)]
    ///     .map(|(address, len)| Prefix::new(address, len).unwrap());
    /// let (one, other) = (RouteTable::from([(a, 1), (b, 1)]), RouteTable::from([(b, 2), (c, 2)]));
    /// assert!(one.intersection(&other).eq([(b, &1, &2)]));
    /// ```
    pub fn intersection<'t, W, N: Allocator + Clone>(
        &'t self,
        other: &'t RouteTable<A, W, N>,
    ) -> impl Iterator<Item = (Prefix<A>, &'t V, &'t W)> {
        self.merge(other).filter_map(|(prefix, one, other)| Some((prefix, one?, other?)))
    }

    /// Returns an iterator over the routes of this table whose prefixes the other one does not
    /// have, in order. O(routes of both) in all.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let [a, b, c] = [(0x00_u8, 1), (0x40, 2), (0x80, 1)]
    ///     .map(|(address, len)| Prefix::new(address, len).unwrap());
    /// let (one, other) = (RouteTable::from([(a, 1), (b, 1)]), RouteTable::from([(b, 2), (c, 2)]));
    /// assert!(one.difference(&other).eq([(a, &1)]));
    /// ```
    pub fn difference<'t, W, N: Allocator + Clone>(
        &'t self,
        other: &'t RouteTable<A, W, N>,
    ) -> impl Iterator<Item = (Prefix<A>, &'t V)> {
        let only = |(prefix, one, other): Either<'t, A, V, W>| {
            Some((prefix, one.filter(|_| other.is_none())?))
        };
        self.merge(other).filter_map(only)
    }
}
