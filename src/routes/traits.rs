//! Implementations of the traits of collections for route tables.

use core::fmt;
use core::marker::PhantomData;

use super::{IntoIter, Iter, IterMut, RouteTable};
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::memory::Allocator;

impl<A: Address, V> Default for RouteTable<A, V> {
    fn default() -> Self {
        Self::new()
    }
}

/// Formats the routes in order, as a map.
impl<A: Address + fmt::Debug, V: fmt::Debug, M: Allocator + Clone> fmt::Debug
    for RouteTable<A, V, M>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

/// Returns a compact copy of the table.
impl<A: Address, V: Clone, M: Allocator + Clone> Clone for RouteTable<A, V, M> {
    fn clone(&self) -> Self {
        let store = self.store.clone();
        let shortcuts = self.shortcuts.computed(&store.nodes, self.len);
        Self { store, shortcuts, len: self.len, addresses: PhantomData }
    }
}

impl<A: Address, V: PartialEq, M: Allocator + Clone> PartialEq for RouteTable<A, V, M> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other)
    }
}

impl<A: Address, V: Eq, M: Allocator + Clone> Eq for RouteTable<A, V, M> {}

impl<A: Address, V, M: Allocator + Clone> Extend<(Prefix<A>, V)> for RouteTable<A, V, M> {
    fn extend<I: IntoIterator<Item = (Prefix<A>, V)>>(&mut self, routes: I) {
        routes.into_iter().for_each(|(prefix, value)| drop(self.insert(prefix, value)));
    }
}

/// Sorts the routes first, in memory of their own, and creates each node once, with all its routes.
/// So this takes half to two thirds of the time of insertions in random order. Routes of more than
/// 64 bits are inserted one by one.
impl<A: Address, V> FromIterator<(Prefix<A>, V)> for RouteTable<A, V> {
    fn from_iter<I: IntoIterator<Item = (Prefix<A>, V)>>(routes: I) -> Self {
        Self::built(routes.into_iter().map(Some).collect())
    }
}

impl<A: Address, V, const N: usize> From<[(Prefix<A>, V); N]> for RouteTable<A, V> {
    fn from(routes: [(Prefix<A>, V); N]) -> Self {
        routes.into_iter().collect()
    }
}

impl<A: Address, V, M: Allocator + Clone> IntoIterator for RouteTable<A, V, M> {
    type Item = (Prefix<A>, V);
    type IntoIter = IntoIter<A, V, M>;

    fn into_iter(mut self) -> IntoIter<A, V, M> {
        IntoIter::of(&mut self.store, self.len)
    }
}

impl<'t, A: Address, V, M: Allocator + Clone> IntoIterator for &'t RouteTable<A, V, M> {
    type Item = (Prefix<A>, &'t V);
    type IntoIter = Iter<'t, A, V, M>;

    fn into_iter(self) -> Iter<'t, A, V, M> {
        self.iter()
    }
}

impl<'t, A: Address, V, M: Allocator + Clone> IntoIterator for &'t mut RouteTable<A, V, M> {
    type Item = (Prefix<A>, &'t mut V);
    type IntoIter = IterMut<'t, A, V, M>;

    fn into_iter(self) -> IterMut<'t, A, V, M> {
        self.iter_mut()
    }
}
