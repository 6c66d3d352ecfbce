//! Pinned routes, for readers.

use core::borrow::Borrow;
use core::fmt;

use super::ConcurrentRoutes;
use crate::concurrent::guard::Guard;
use crate::key::bits::Address;
use crate::key::prefix::Prefix;

/// A pinned [`ConcurrentRoutes`], with the lookups of a route table.
///
/// References to values are valid as long as it exists, and is not repinned. It is no snapshot:
/// each lookup answers from the routes of its time.
///
/// It owns its guard, or borrows one of type `G = &Guard` that it shares with other structures: see
/// [`pinned`](ConcurrentRoutes::pinned).
///
/// It is bound to its thread:
///
/// ```compile_fail
/// use flowtable::concurrent::{ConcurrentRoutes, PinnedRoutes};
///
/// fn is_send<T: Send>(_: T) {}
/// let routes = ConcurrentRoutes::<u8, ()>::new();
/// is_send::<PinnedRoutes<'_, u8, ()>>(routes.pin());
/// ```
///
/// A value that was found must not be used after a repin:
///
/// ```compile_fail,E0502
/// use flowtable::concurrent::ConcurrentRoutes;
///
/// let routes = ConcurrentRoutes::<u8, char>::new();
/// let mut pinned = routes.pin();
/// let found = pinned.lookup(&7);
/// pinned.repin();
/// assert_eq!(found, None);
/// ```
pub struct PinnedRoutes<'r, A, V, G = Guard> {
    pub(super) routes: &'r ConcurrentRoutes<A, V>,
    pub(super) guard: G,
}

impl<A: Address, V, G: Borrow<Guard>> PinnedRoutes<'_, A, V, G> {
    /// Returns the longest route that contains an address, and its value.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentRoutes};
    ///
    /// let at = Prefix::new(0x40_u8, 2)?;
    /// let routes: ConcurrentRoutes<u8, char> = [(at, 'a')].into_iter().collect();
    /// let pinned = routes.pin();
    /// assert_eq!(pinned.lookup(&0x41), Some((Prefix::new(0x40, 2)?, &'a')));
    /// assert_eq!(pinned.lookup(&0x80), None);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn lookup(&self, address: &A) -> Option<(Prefix<A>, &V)> {
        self.longest(address)
    }

    /// Calls `found` with the index of each address, and the longest route that contains it with
    /// its value. The results are the same as from [`lookup`](Self::lookup), but the cache misses
    /// of 32 addresses overlap.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentRoutes};
    ///
    /// let at = Prefix::new(0x40_u8, 2)?;
    /// let routes: ConcurrentRoutes<u8, char> = [(at, 'a')].into_iter().collect();
    /// let (pinned, mut found) = (routes.pin(), [None; 2]);
    /// pinned.lookup_batch(&[0x41, 0x80], |i, route| found[i] = route);
    /// assert_eq!(found, [Some((Prefix::new(0x40, 2)?, &'a')), None]);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[inline]
    pub fn lookup_batch<'p>(
        &'p self,
        addresses: &[A],
        mut found: impl FnMut(usize, Option<(Prefix<A>, &'p V)>),
    ) {
        self.bursts::<true>(addresses, |nth, address, route| {
            found(nth, route.map(|(len, value)| (Prefix::of(address, len), value)));
        });
    }

    /// Calls `found` with the index of each address and the value of the longest route that
    /// contains it, like [`lookup_batch`](Self::lookup_batch) without the prefixes.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentRoutes};
    ///
    /// let at = Prefix::new(0x40_u8, 2)?;
    /// let routes: ConcurrentRoutes<u8, char> = [(at, 'a')].into_iter().collect();
    /// let (pinned, mut found) = (routes.pin(), [None; 2]);
    /// pinned.lookup_batch_values(&[0x41, 0x80], |i, value| found[i] = value);
    /// assert_eq!(found, [Some(&'a'), None]);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[inline]
    pub fn lookup_batch_values<'p>(
        &'p self,
        addresses: &[A],
        mut found: impl FnMut(usize, Option<&'p V>),
    ) {
        self.bursts::<false>(addresses, |nth, _, route| found(nth, route.map(|(_, value)| value)));
    }
}

impl<A: Address, V> PinnedRoutes<'_, A, V> {
    /// Ends the pin and begins a new pin, at a lower cost. Call it between two bursts of lookups:
    /// it lets garbage be freed. Other pins of the thread stay as they are.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentRoutes};
    ///
    /// let routes = ConcurrentRoutes::<u8, u32>::new();
    /// let mut pinned = routes.pin();
    /// for round in 0..3 {
    ///     routes.insert(Prefix::host(1), round).unwrap();
    ///     assert_eq!(pinned.lookup(&1).unwrap().1, &round);
    ///     pinned.repin();
    /// }
    /// ```
    #[inline]
    pub fn repin(&mut self) {
        self.guard.repin();
    }
}

impl<A, V, G> fmt::Debug for PinnedRoutes<'_, A, V, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedRoutes").finish_non_exhaustive()
    }
}
