//! Pinned routes, for readers.

use core::borrow::Borrow;
use core::fmt;

use super::ConcurrentStampedRoutes;
use crate::concurrent::guard::Guard;
use crate::concurrent::routes::PinnedRoutes;
use crate::concurrent::sync::Ordering;
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::routes::stamps::Stamped;
use crate::routes::{Refreshed, RouteStamp};

/// A pinned [`ConcurrentStampedRoutes`], with the lookups of a route table.
///
/// References to values are valid as long as it exists, and is not repinned. It is no snapshot:
/// each lookup answers from the routes of its time. It owns its guard, or borrows one of type
/// `G = &Guard` that it shares with other structures.
pub struct PinnedStampedRoutes<'r, A, V, G = Guard> {
    pub(super) table: &'r ConcurrentStampedRoutes<A, V>,
    pub(super) routes: PinnedRoutes<'r, A, Stamped<V>, G>,
}

/// A route that was found, and its stamp.
type Resolved<'p, A, V> = (RouteStamp, Option<(Prefix<A>, &'p Stamped<V>)>);

impl<A: Address, V, G: Borrow<Guard>> PinnedStampedRoutes<'_, A, V, G> {
    /// Returns whether the route of a stamp is known to be the same: see
    /// [`ConcurrentStampedRoutes::is_current`].
    #[inline]
    #[must_use]
    pub fn is_current(&self, stamp: &RouteStamp) -> bool {
        self.table.is_current(stamp)
    }

    /// Returns the longest prefix that contains an address, and its value.
    #[inline]
    #[must_use]
    pub fn lookup(&self, address: &A) -> Option<(Prefix<A>, &V)> {
        self.routes.lookup(address).map(|(prefix, route)| (prefix, &route.value))
    }

    /// Returns the stamp of an address, and the longest prefix that contains it, if any does.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentStampedRoutes};
    ///
    /// let ports = ConcurrentStampedRoutes::from_iter([(Prefix::new(0_u16, 6)?, 'a')]);
    /// let pinned = ports.pin();
    /// let (stamp, route) = pinned.resolve(&80);
    /// assert_eq!(route, Some((Prefix::new(0, 6)?, &'a')));
    /// assert!(pinned.is_current(&stamp));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn resolve(&self, address: &A) -> (RouteStamp, Option<(Prefix<A>, &V)>) {
        let (stamp, found) = self.resolved(address);
        (stamp, found.map(|(prefix, route)| (prefix, &route.value)))
    }

    #[inline]
    fn resolved(&self, address: &A) -> Resolved<'_, A, V> {
        // Acquire: pairs with the Release in `Update::drop`. The lookup below observes all updates
        // published up to this generation.
        let finished = self.table.writers.finished.load(Ordering::Acquire);
        let found = self.routes.lookup(address);
        let created = Stamped::created(found.map(|(_, route)| route));
        // After the lookup: a change that it has not observed is at most missed here, and found in
        // the cell later.
        let changed = self.table.cells.generation(created.cell());
        let observed = finished.max(created.generation());
        (RouteStamp::new(created.cell(), changed.min(observed)), found)
    }

    /// Looks the route of an address up, and returns whether the stamp belongs to this route: its
    /// prefix and its value have not changed since the stamp. Sets the stamp to the stamp of the
    /// lookup.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentStampedRoutes, routes::Refreshed};
    ///
    /// let ports = ConcurrentStampedRoutes::from_iter([(Prefix::new(0_u16, 6)?, 'a')]);
    /// let pinned = ports.pin();
    /// let (mut stamp, _) = pinned.resolve(&80);
    /// // A more specific route, of other ports.
    /// ports.insert(Prefix::new(512, 7)?, 'b').unwrap();
    /// assert!(!pinned.is_current(&stamp));
    /// assert_eq!(pinned.refresh(&80, &mut stamp), Refreshed::Same);
    /// assert!(pinned.is_current(&stamp));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[must_use]
    pub fn refresh(&self, address: &A, stamp: &mut RouteStamp) -> Refreshed<'_, A, V> {
        let (now, found) = self.resolved(address);
        let before = core::mem::replace(stamp, now);
        Refreshed::of(before, found)
    }

    /// Returns the value of a prefix. Takes the lock of the writers for up to 18 bits.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentStampedRoutes};
    ///
    /// let ports = ConcurrentStampedRoutes::from_iter([(Prefix::new(0_u16, 6)?, 'a')]);
    /// assert_eq!(ports.pin().get(&Prefix::new(0, 6)?), Some(&'a'));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[must_use]
    pub fn get(&self, prefix: &Prefix<A>) -> Option<&V> {
        self.routes.get(prefix).map(|route| &route.value)
    }

    /// Returns all routes of one state, in order. Takes the lock of the writers, and lists the
    /// routes under it: O(routes).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentStampedRoutes};
    ///
    /// let ports = ConcurrentStampedRoutes::from_iter([(Prefix::new(0_u16, 6)?, 'a')]);
    /// assert!(ports.pin().iter().eq([(Prefix::new(0, 6)?, &'a')]));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (Prefix<A>, &V)> {
        self.routes.iter().map(|(prefix, route)| (prefix, &route.value))
    }
}

impl<A: Address, V> PinnedStampedRoutes<'_, A, V> {
    /// Ends the pin and begins a new pin, at a lower cost. Call it between two bursts of packets:
    /// it lets garbage be freed.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentStampedRoutes};
    ///
    /// let routes = ConcurrentStampedRoutes::<u8, u32>::new();
    /// let mut pinned = routes.pin();
    /// for round in 0..3 {
    ///     routes.insert(Prefix::host(1), round).unwrap();
    ///     assert_eq!(pinned.lookup(&1).unwrap().1, &round);
    ///     pinned.repin();
    /// }
    /// ```
    #[inline]
    pub fn repin(&mut self) {
        self.routes.repin();
    }
}

impl<A, V, G> fmt::Debug for PinnedStampedRoutes<'_, A, V, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedStampedRoutes").finish_non_exhaustive()
    }
}
