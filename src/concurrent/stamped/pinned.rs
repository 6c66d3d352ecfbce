//! Pinned routes, for readers.

use super::ConcurrentStampedRoutes;
use crate::concurrent::pinned::{Guard, Pinned, Protect};
use crate::concurrent::routes::ConcurrentRoutes;
use crate::concurrent::sync::Ordering;
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::routes::generations::Stamped;
use crate::routes::{Refreshed, RouteStamp};

/// A route that was found, and its stamp.
type Resolved<'p, A, V> = (RouteStamp, Option<(Prefix<A>, &'p Stamped<V>)>);

/// Returns a route without its stamp.
#[inline]
fn unstamped<A, V>((prefix, route): (Prefix<A>, &Stamped<V>)) -> (Prefix<A>, &V) {
    (prefix, &route.value)
}

impl<'t, A: Address, V, G> Pinned<'t, ConcurrentStampedRoutes<A, V>, G> {
    /// Returns the view of the routes.
    #[inline]
    fn routes<'p, 'r>(&'p self) -> Pinned<'r, ConcurrentRoutes<A, Stamped<V>>, &'r Guard>
    where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        self.of.routes.pinned(self.guard.protect())
    }

    /// Returns the longest prefix that contains an address, and its value.
    #[inline]
    #[must_use]
    pub fn lookup<'p, 'r>(&'p self, address: &A) -> Option<(Prefix<A>, &'r V)>
    where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        self.routes().lookup(address).map(unstamped)
    }

    /// Calls `found` with the index of each address, and the longest prefix that contains it with
    /// its value. The cache misses of 32 addresses overlap.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentStampedRoutes};
    ///
    /// let ports = ConcurrentStampedRoutes::from_iter([(Prefix::new(0_u16, 6)?, 'a')]);
    /// let mut found = vec![];
    /// ports.pin().lookup_batch(&[80, 9000], |_, route| found.push(route.map(|(_, port)| *port)));
    /// assert_eq!(found, [Some('a'), None]);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[inline]
    pub fn lookup_batch<'p, 'r>(
        &'p self,
        addresses: &[A],
        mut found: impl FnMut(usize, Option<(Prefix<A>, &'r V)>),
    ) where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        self.routes().lookup_batch(addresses, |index, route| found(index, route.map(unstamped)));
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
    pub fn resolve<'p, 'r>(&'p self, address: &A) -> (RouteStamp, Option<(Prefix<A>, &'r V)>)
    where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        let (stamp, found) = self.resolved(address);
        (stamp, found.map(unstamped))
    }

    #[inline]
    fn resolved<'p, 'r>(&'p self, address: &A) -> Resolved<'r, A, V>
    where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        // Acquire: pairs with the Release in `Update::drop`. The lookup below observes all updates
        // published up to this generation.
        let finished = self.of.writers.finished.load(Ordering::Acquire);
        let found = self.routes().lookup(address);
        let created = Stamped::created(found.map(|(_, route)| route));
        // After the lookup: a change that it has not observed is at most missed here, and found in
        // the cell later.
        let changed = self.of.cells.generation(created.cell());
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
    pub fn refresh<'p, 'r>(&'p self, address: &A, stamp: &mut RouteStamp) -> Refreshed<'r, A, V>
    where
        G: Protect<'p, 'r>,
        't: 'r,
    {
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
    pub fn get<'p, 'r>(&'p self, prefix: &Prefix<A>) -> Option<&'r V>
    where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        self.routes().get(prefix).map(|route| &route.value)
    }

    /// Returns all routes of one state, in order, as for [`ConcurrentRoutes`]: O(routes), under the
    /// lock of the writers.
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
    pub fn iter<'p, 'r>(&'p self) -> impl Iterator<Item = (Prefix<A>, &'r V)>
    where
        G: Protect<'p, 'r>,
        't: 'r,
        A: 'r,
    {
        self.routes().iter().map(unstamped)
    }
}
