//! Pinned routes, for readers.

use core::borrow::Borrow;
use core::fmt;

use super::ConcurrentRoutes;
use crate::concurrent::guard::Guard;
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::raw::results::results_for;

/// A pin of the routes, for lookups. They see each update that has been made: it is no snapshot.
///
/// It owns its guard, or borrows one of type `G = &Guard` that it shares with other structures: see
/// [`pinned`](ConcurrentRoutes::pinned).
///
/// It is bound to its thread:
///
/// ```compile_fail,E0277
/// use flowtable::concurrent::{ConcurrentRoutes, PinnedRoutes};
///
/// fn is_send<T: Send>(_: T) {}
/// let routes = ConcurrentRoutes::<u8, ()>::new();
/// is_send::<PinnedRoutes<'_, u8, ()>>(routes.pin());
/// ```
///
/// A value that was found must not be used after [`repin`](Self::repin):
///
/// ```compile_fail,E0502
/// use flowtable::{ConcurrentRoutes, Prefix};
///
/// let routes = ConcurrentRoutes::from_iter([(Prefix::host(7_u8), 'a')]);
/// let mut pinned = routes.pin();
/// let (_, value) = pinned.lookup(&7).unwrap();
/// pinned.repin();
/// assert_eq!(value, &'a');
/// ```
///
/// # Example
///
/// ```
/// use flowtable::{ConcurrentRoutes, Prefix};
///
/// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
/// let routes = ConcurrentRoutes::from_iter([(long, 'a'), (short, 'b')]);
/// let pinned = routes.pin();
/// assert_eq!(pinned.lookup(&0x49), Some((long, &'a')));
/// routes.remove(&long)?;
/// assert_eq!(pinned.lookup(&0x49), Some((short, &'b')));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PinnedRoutes<'r, A, V, G = Guard> {
    guard: G,
    routes: &'r ConcurrentRoutes<A, V>,
}

impl<'r, A: Address, V: Copy, G: Borrow<Guard>> PinnedRoutes<'r, A, V, G> {
    #[inline]
    pub(super) fn new(routes: &'r ConcurrentRoutes<A, V>, guard: G) -> Self {
        Self { guard, routes }
    }

    /// Returns the table.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ConcurrentRoutes, Prefix};
    ///
    /// let routes = ConcurrentRoutes::<u8, ()>::new();
    /// let pinned = routes.pin();
    /// pinned.routes().insert(Prefix::host(1), ()).unwrap();
    /// assert!(pinned.lookup(&1).is_some());
    /// ```
    #[must_use]
    pub fn routes(&self) -> &'r ConcurrentRoutes<A, V> {
        self.routes
    }

    /// Returns the longest route that contains `address`.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ConcurrentRoutes, Prefix};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let routes = ConcurrentRoutes::from_iter([(long, 'a'), (short, 'b')]);
    /// let pinned = routes.pin();
    /// assert_eq!(pinned.lookup(&0x49), Some((long, &'a')));
    /// assert_eq!(pinned.lookup(&0x50), Some((short, &'b')));
    /// assert_eq!(pinned.lookup(&0x80), None);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[inline(always)] // Not a call: fewer lookups would overlap.
    #[must_use]
    pub fn lookup(&self, address: &A) -> Option<(Prefix<A>, &V)> {
        let (len, value) = self.routes.fib().longest(address)?;
        Some((Prefix::of(address, len), value))
    }

    /// Looks up a batch of addresses: writes the longest route that contains each address to
    /// `found`. What that has beyond the addresses is set to `None`.
    ///
    /// This takes a fraction of the time of single lookups: the cache misses of 32 addresses
    /// overlap.
    ///
    /// # Panics
    ///
    /// If `found` is shorter than `addresses`.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ConcurrentRoutes, Prefix};
    ///
    /// let routes = ConcurrentRoutes::from_iter([(Prefix::new(0x0A00_0000_u32, 8)?, "ten")]);
    /// let (pinned, mut found) = (routes.pin(), [None; 2]);
    /// pinned.lookup_batch(&[0x0A01_0203, 0x0B00_0000], &mut found);
    /// assert_eq!(found.map(|route| route.map(|(_, via)| *via)), [Some("ten"), None]);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn lookup_batch<'p>(&'p self, addresses: &[A], found: &mut [Option<(Prefix<A>, &'p V)>]) {
        let found = results_for(addresses.len(), found);
        self.routes.fib().bursts(addresses, found, |address, route| {
            route.map(|(len, value)| (Prefix::of(address, len), value))
        });
    }

    /// Looks up a batch of addresses: writes the value of the longest route that contains each
    /// address to `found`.
    ///
    /// # Panics
    ///
    /// If `found` is shorter than `addresses`.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ConcurrentRoutes, Prefix};
    ///
    /// let routes = ConcurrentRoutes::from_iter([(Prefix::new(0x0A00_0000_u32, 8)?, "ten")]);
    /// let (pinned, mut found) = (routes.pin(), [None; 2]);
    /// pinned.lookup_batch_values(&[0x0A01_0203, 0x0B00_0000], &mut found);
    /// assert_eq!(found, [Some(&"ten"), None]);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn lookup_batch_values<'p>(&'p self, addresses: &[A], found: &mut [Option<&'p V>]) {
        let found = results_for(addresses.len(), found);
        let value = |_: &A, route: Option<(u32, &'p V)>| route.map(|(_, value)| value);
        self.routes.fib().bursts(addresses, found, value);
    }
}

impl<A: Address, V: Copy> PinnedRoutes<'_, A, V> {
    /// Ends the pin and begins another one, which allows the collector to proceed. Call it between
    /// two bursts of lookups. Other pins of the thread stay as they are.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ConcurrentRoutes, Prefix};
    ///
    /// let routes = ConcurrentRoutes::<u8, u8>::new();
    /// let mut pinned = routes.pin();
    /// for now in 0..3 {
    ///     routes.insert(Prefix::host(1), now).unwrap();
    ///     assert_eq!(pinned.lookup(&1).unwrap().1, &now);
    ///     pinned.repin();
    /// }
    /// ```
    #[inline]
    pub fn repin(&mut self) {
        self.guard.repin();
    }
}

impl<A, V, G: Borrow<Guard>> fmt::Debug for PinnedRoutes<'_, A, V, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedRoutes").field("guard", self.guard.borrow()).finish_non_exhaustive()
    }
}
