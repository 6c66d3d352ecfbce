//! Pinned routes: lookups.

use super::ConcurrentRoutes;
use crate::concurrent::pinned::{Pinned, Protect};
use crate::key::bits::Address;
use crate::key::prefix::Prefix;

impl<'t, A: Address, V, G> Pinned<'t, ConcurrentRoutes<A, V>, G> {
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
    pub fn lookup<'p, 'r>(&'p self, address: &A) -> Option<(Prefix<A>, &'r V)>
    where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        self.of.longest(address, self.guard.protect())
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
    pub fn lookup_batch<'p, 'r>(
        &'p self,
        addresses: &[A],
        mut found: impl FnMut(usize, Option<(Prefix<A>, &'r V)>),
    ) where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        self.of.bursts::<true>(addresses, self.guard.protect(), |nth, address, route| {
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
    pub fn lookup_batch_values<'p, 'r>(
        &'p self,
        addresses: &[A],
        mut found: impl FnMut(usize, Option<&'r V>),
    ) where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        self.of.bursts::<false>(addresses, self.guard.protect(), |nth, _, route| {
            found(nth, route.map(|(_, value)| value));
        });
    }
}
