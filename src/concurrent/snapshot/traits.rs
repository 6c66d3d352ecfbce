//! Traits of collections, as far as they apply to two copies.

use core::fmt;

use super::SnapshotRoutes;
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::memory::Allocator;
use crate::routes::RouteTable;

impl<A: Address, V> Default for SnapshotRoutes<A, V> {
    fn default() -> Self {
        Self::new()
    }
}

/// Formats the visible routes, in order, as a map.
impl<A: Address + fmt::Debug, V: fmt::Debug, M: Allocator + Clone> fmt::Debug
    for SnapshotRoutes<A, V, M>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pin().fmt(f)
    }
}

/// Converts a table, which is cloned once, in O(routes): for many initial routes.
impl<A: Address, V: Clone, M: Allocator + Clone> From<RouteTable<A, V, M>>
    for SnapshotRoutes<A, V, M>
{
    fn from(table: RouteTable<A, V, M>) -> Self {
        let spare = table.clone();
        Self::of(table, spare)
    }
}

impl<A: Address, V: Clone> FromIterator<(Prefix<A>, V)> for SnapshotRoutes<A, V> {
    fn from_iter<I: IntoIterator<Item = (Prefix<A>, V)>>(routes: I) -> Self {
        routes.into_iter().collect::<RouteTable<A, V>>().into()
    }
}
