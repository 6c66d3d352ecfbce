//! Removal of the routes that a predicate picks, one with each step of an iterator.

use core::fmt;
use core::iter::FusedIterator;

use super::walk::Walk;
use super::{IterMut, RouteTable};
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::memory::{Allocator, Global};

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
