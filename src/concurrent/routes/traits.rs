//! What collections implement, as far as it makes sense for two copies.

use core::fmt;

use super::ConcurrentRoutes;
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::routes::RouteTable;

impl<A: Address, V> Default for ConcurrentRoutes<A, V> {
    fn default() -> Self {
        Self::new()
    }
}

/// The routes that are visible, in order, as a map.
impl<A: Address + fmt::Debug, V: fmt::Debug> fmt::Debug for ConcurrentRoutes<A, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pin().fmt(f)
    }
}

/// With a second copy of the table, in O(routes): the way to begin with many.
impl<A: Address, V: Clone> From<RouteTable<A, V>> for ConcurrentRoutes<A, V> {
    fn from(table: RouteTable<A, V>) -> Self {
        let spare = table.clone();
        Self::of(table, spare)
    }
}

impl<A: Address, V: Clone> FromIterator<(Prefix<A>, V)> for ConcurrentRoutes<A, V> {
    fn from_iter<I: IntoIterator<Item = (Prefix<A>, V)>>(routes: I) -> Self {
        routes.into_iter().collect::<RouteTable<A, V>>().into()
    }
}
