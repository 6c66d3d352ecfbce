//! Traits of collections.

use core::fmt;

use super::ConcurrentRoutes;
use super::write::Unshared;
use crate::concurrent::pinned::Pinned;
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::memory::Allocator;
use crate::routes::RouteTable;

impl<A: Address, V> Default for ConcurrentRoutes<A, V> {
    fn default() -> Self {
        Self::new()
    }
}

/// Formats the routes, in order, as a map.
impl<A: Address + fmt::Debug, V: fmt::Debug> fmt::Debug for ConcurrentRoutes<A, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.pin().iter()).finish()
    }
}

/// Omits the routes: to list them takes a lock.
impl<A, V, G> fmt::Debug for Pinned<'_, ConcurrentRoutes<A, V>, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pinned").finish_non_exhaustive()
    }
}

/// Converts a table: O(routes).
impl<A, V, M> From<RouteTable<A, V, M>> for ConcurrentRoutes<A, V>
where
    A: Address,
    V: Clone + Send + 'static,
    M: Allocator + Clone,
{
    fn from(table: RouteTable<A, V, M>) -> Self {
        table.into_iter().collect()
    }
}

impl<A: Address, V: Clone + Send + 'static> FromIterator<(Prefix<A>, V)>
    for ConcurrentRoutes<A, V>
{
    fn from_iter<I: IntoIterator<Item = (Prefix<A>, V)>>(routes: I) -> Self {
        Unshared::of(routes).share()
    }
}
