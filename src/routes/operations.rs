//! Operations on many routes, on two tables, and on the memory of a table.

use core::cmp::Ordering;
use core::{iter, mem};

use super::traversal::Walk;
use super::update::Shortcuts;
use super::{IterMut, RouteTable};
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::memory::Allocator;

/// Routes that are removed at once when others are retained: so their prefixes need no memory.
const REJECTED: usize = 64;

impl<A: Address, V, M: Allocator + Clone> RouteTable<A, V, M> {
    /// Removes all routes and releases the memory. O(memory), and O(nodes) if values have to be
    /// dropped. If the drop of one panics, the table is empty, and the others are dropped.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let mut routes = RouteTable::from([(Prefix::new(0x40_u8, 2)?, ())]);
    /// routes.clear();
    /// assert!(routes.is_empty());
    /// assert_eq!(routes.allocation_size(), 0);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn clear(&mut self) {
        *self = Self::new_in(self.allocator().clone());
    }

    /// Retains the routes for which `keep` returns true; `keep` may change their values. It is
    /// called in order. The others are removed in groups: if it panics, or the drop of a value,
    /// some that it has rejected may remain. O(routes). Allocates nothing, unless addresses have
    /// more than 128 bits.
    ///
    /// # Example
    ///
    /// A peer goes down:
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let routes = [(0x40_u8, 2, "a"), (0x48, 5, "b"), (0x80, 1, "a")];
    /// let routes = routes.map(|(at, len, peer)| (Prefix::new(at, len).unwrap(), peer));
    /// let mut routes = RouteTable::from(routes);
    /// routes.retain(|_, peer| *peer != "a");
    /// assert!(routes.values().eq(&["b"]));
    /// ```
    pub fn retain(&mut self, keep: impl FnMut(Prefix<A>, &mut V) -> bool) {
        self.retain_covered(&Prefix::default_route(), keep);
    }

    /// Removes the routes that `prefix` covers and for which `keep` returns false; all other routes
    /// remain. O(routes that it covers).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let mut routes = RouteTable::from([(long, 'a'), (short, 'b')]);
    /// routes.retain_covered(&Prefix::new(0x48, 3)?, |_, _| false);
    /// assert!(routes.prefixes().eq([short]));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn retain_covered(
        &mut self,
        prefix: &Prefix<A>,
        mut keep: impl FnMut(Prefix<A>, &mut V) -> bool,
    ) {
        let (mut rejected, mut last) = ([*prefix; REJECTED], None);
        // At most that many calls: an inconsistent address does not go on forever.
        let mut left = self.len;
        loop {
            let walk = Walk::after(&self.store.nodes, prefix, last.as_ref());
            let mut count = 0;
            for (prefix, value) in IterMut::along(&mut self.store, walk).take(left) {
                left -= 1;
                if !keep(prefix, value) {
                    rejected[count] = prefix;
                    count += 1;
                    if count == REJECTED {
                        break;
                    }
                }
            }
            rejected[..count].iter().for_each(|prefix| drop(self.remove(prefix)));
            if count < REJECTED {
                return;
            }
            last = Some(rejected[count - 1]);
        }
    }

    /// Removes the routes that `prefix` covers, itself included. Returns their number.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let mut routes = RouteTable::from([(long, 'a'), (short, 'b')]);
    /// assert_eq!(routes.remove_covered(&Prefix::new(0x48, 3)?), 1);
    /// assert!(routes.prefixes().eq([short]));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[doc(alias("remove_children", "more specific"))]
    pub fn remove_covered(&mut self, prefix: &Prefix<A>) -> usize {
        let before = self.len();
        self.retain_covered(prefix, |_, _| false);
        before - self.len()
    }

    /// Compacts the memory, without the free blocks that removed and moved routes have left.
    /// O(routes); needs the memory of both tables for a while. If there is not so much, the routes
    /// remain where they are.
    ///
    /// # Example
    ///
    /// ```
    /// let mut routes: flowtable::RouteTable<u32, u32> = flowtable::RouteTable::new();
    /// for net in 0..1000_u32 {
    ///     routes.insert(flowtable::Prefix::new(net << 12, 24)?, net);
    /// }
    /// routes.retain(|prefix, _| prefix.address() >> 12 < 10);
    /// let before = routes.allocation_size();
    /// routes.shrink_to_fit();
    /// assert!(routes.allocation_size() < before && routes.len() == 10);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn shrink_to_fit(&mut self) {
        // Detached while indices refer to blocks that move.
        let counts = mem::replace(&mut self.shortcuts, Shortcuts::EMPTY).counts;
        self.store.compact();
        self.shortcuts = Shortcuts::without(counts).computed(&self.store.nodes, self.len);
    }

    /// Returns the bytes that the table has allocated, free units included; without memory that
    /// values own. O(chunks of memory).
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        let (nodes, values) = self.store.allocation_size();
        let (direct, levels) = self.shortcuts.allocation_size();
        nodes + values + direct + levels
    }
}

/// A route of one of two tables, or of both.
type Either<'t, A, V, W> = (Prefix<A>, Option<&'t V>, Option<&'t W>);

impl<A: Address, V, M: Allocator + Clone> RouteTable<A, V, M> {
    /// Returns the routes of two tables in order.
    fn merge<'t, W, N: Allocator + Clone>(
        &'t self,
        other: &'t RouteTable<A, W, N>,
    ) -> impl Iterator<Item = Either<'t, A, V, W>> {
        let (mut ours, mut theirs) = (self.iter().peekable(), other.iter().peekable());
        iter::from_fn(move || {
            let order = match (ours.peek(), theirs.peek()) {
                (Some((one, _)), Some((other, _))) => one.cmp(other),
                (Some(_), None) => Ordering::Less,
                (None, _) => Ordering::Greater,
            };
            let one = if order.is_le() { ours.next() } else { None };
            let other = if order.is_ge() { theirs.next() } else { None };
            let prefix = one.as_ref().map(|(prefix, _)| *prefix);
            let prefix = prefix.or(other.as_ref().map(|(prefix, _)| *prefix))?;
            Some((prefix, one.map(|(_, value)| value), other.map(|(_, value)| value)))
        })
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
