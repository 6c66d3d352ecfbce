//! Pinned routes, for readers.

use core::borrow::Borrow;
use core::fmt;
use core::ops::Deref;

use super::SnapshotRoutes;
use super::copies::Pinned;
use super::log::Log;
use crate::concurrent::guard::Guard;
use crate::key::bits::Address;
use crate::memory::{Allocator, Global};
use crate::routes::RouteTable;

/// A snapshot of a [`SnapshotRoutes`], with all reading methods of a [`RouteTable`].
///
/// It owns its guard, or borrows one of type `G = &Guard` that it shares with other structures: see
/// [`pinned`](SnapshotRoutes::pinned).
///
/// It is bound to its thread:
///
/// ```compile_fail
/// use flowtable::concurrent::{SnapshotRoutes, PinnedSnapshot};
///
/// fn is_send<T: Send>(_: T) {}
/// let routes = SnapshotRoutes::<u8, ()>::new();
/// is_send::<PinnedSnapshot<'_, u8, ()>>(routes.pin());
/// ```
///
/// # Example
///
/// ```
/// use flowtable::{Prefix, RouteTable, concurrent::SnapshotRoutes};
///
/// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
/// let routes = SnapshotRoutes::from(RouteTable::from([(long, 'a'), (short, 'b')]));
/// let pinned = routes.pin();
/// assert_eq!(pinned.lookup(&0x49), Some((long, &'a')));
/// assert!(pinned.matches(&0x49).map(|(at, _)| at).eq([short, long]));
/// assert!(pinned.covered(&short).map(|(_, value)| value).eq(&['b', 'a']));
/// # Ok::<(), flowtable::PrefixError>(())
/// ```
pub struct PinnedSnapshot<'r, A, V, G = Guard, M: Allocator + Clone = Global>(
    Pinned<'r, RouteTable<A, V, M>, Log<A, V>, G>,
);

impl<'r, A: Address, V, G: Borrow<Guard>, M: Allocator + Clone> PinnedSnapshot<'r, A, V, G, M> {
    #[inline]
    pub(super) fn new(routes: &'r SnapshotRoutes<A, V, M>, guard: G) -> Self {
        Self(routes.copies.read(guard))
    }
}

impl<A: Address, V, M: Allocator + Clone> PinnedSnapshot<'_, A, V, Guard, M> {
    /// Advances to the routes that are visible now, at a lower cost than a pin. Call it between two
    /// bursts of reads: it lets writers proceed. Other pins of the thread stay as they are.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::SnapshotRoutes};
    ///
    /// let routes = SnapshotRoutes::<u8, ()>::new();
    /// let mut pinned = routes.pin();
    /// routes.insert(Prefix::host(1), ()).unwrap();
    /// assert!(pinned.is_empty());
    /// pinned.repin();
    /// assert_eq!(pinned.len(), 1);
    /// ```
    #[inline]
    pub fn repin(&mut self) {
        self.0.repin();
    }
}

impl<A, V, G: Borrow<Guard>, M: Allocator + Clone> Deref for PinnedSnapshot<'_, A, V, G, M> {
    type Target = RouteTable<A, V, M>;

    #[inline]
    fn deref(&self) -> &RouteTable<A, V, M> {
        self.0.get()
    }
}

/// Formats the routes in order, as a map.
impl<A, V, G, M: Allocator + Clone> fmt::Debug for PinnedSnapshot<'_, A, V, G, M>
where
    A: Address + fmt::Debug,
    V: fmt::Debug,
    G: Borrow<Guard>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
