//! Traits of collections, as far as they apply.

use alloc::boxed::Box;
use core::fmt;

use super::writer::Writer;
use super::{ConcurrentRoutes, State};
use crate::concurrent::garbage::Garbage;
use crate::concurrent::lock::Lock;
use crate::concurrent::sync::{AtomicPtr, AtomicUsize};
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::routes::RouteTable;

impl<A: Address, V: Copy> Default for ConcurrentRoutes<A, V> {
    fn default() -> Self {
        Self::new()
    }
}

/// Formats the routes, of one moment, in order, as a map. Takes the lock of the writers.
impl<A: Address + fmt::Debug, V: Copy + fmt::Debug> fmt::Debug for ConcurrentRoutes<A, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the lock: it is code of the caller.
        self.to_table().fmt(f)
    }
}

/// Converts a table, which the writers keep. O(routes).
impl<A: Address, V: Copy> From<RouteTable<A, V>> for ConcurrentRoutes<A, V> {
    fn from(table: RouteTable<A, V>) -> Self {
        let len = table.len();
        let (writer, fib) = Writer::new(table);
        Self {
            fib: AtomicPtr::new(Box::into_raw(fib)),
            len: AtomicUsize::new(len),
            writer: Lock::new(State { writer, is_dirty: false }),
            garbage: Garbage::new(),
        }
    }
}

impl<A: Address, V: Copy> FromIterator<(Prefix<A>, V)> for ConcurrentRoutes<A, V> {
    fn from_iter<I: IntoIterator<Item = (Prefix<A>, V)>>(routes: I) -> Self {
        routes.into_iter().collect::<RouteTable<A, V>>().into()
    }
}
