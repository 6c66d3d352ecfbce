//! The error of an insertion without memory.

use core::error::Error;
use core::fmt;

/// There is no memory for a new route, or a table has the maximum number of nodes or values.
///
/// # Example
///
/// ```
/// use flowtable::{Prefix, RouteTable, routes::NoMemory};
///
/// let mut routes = RouteTable::<u8, &str>::new();
/// match routes.try_insert(Prefix::host(1), "lab") {
///     Ok(old) => assert_eq!(old, None),
///     Err(NoMemory { refused, .. }) => println!("no route to the {refused}"),
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NoMemory<V> {
    /// The value that has not been inserted; of a set, the prefix.
    pub refused: V,
}

impl<V> fmt::Debug for NoMemory<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NoMemory").finish_non_exhaustive()
    }
}

impl<V> fmt::Display for NoMemory<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no memory for a route")
    }
}

impl<V> Error for NoMemory<V> {}
