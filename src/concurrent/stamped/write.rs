//! Updates, and traits of collections.

use alloc::vec::Vec;
use core::fmt;

use super::cells::Cells;
use super::update::Update;
use super::{ConcurrentStampedRoutes, Writers};
use crate::concurrent::error::Refusal;
use crate::concurrent::pinned::Pinned;
use crate::concurrent::routes::remove_each;
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::routes::RouteTable;
use crate::routes::generations::{CellNumbers, Stamped};

impl<A: Address, V: Clone + Send + 'static> ConcurrentStampedRoutes<A, V> {
    /// Announces a route, or replaces its value. Returns whether it is new.
    ///
    /// # Errors
    ///
    /// As for [`ConcurrentRoutes::insert`](super::super::ConcurrentRoutes::insert): nothing has
    /// changed.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentStampedRoutes};
    ///
    /// let ports = ConcurrentStampedRoutes::<u16, char>::new();
    /// assert_eq!(ports.insert(Prefix::new(0, 6)?, 'a'), Ok(true)); // 0 to 1023
    /// let (stamp, _) = ports.pin().resolve(&80);
    /// assert_eq!(ports.insert(Prefix::new(0, 6)?, 'b'), Ok(false));
    /// assert!(!ports.is_current(&stamp));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn insert(&self, prefix: Prefix<A>, value: V) -> Result<bool, Refusal<(Prefix<A>, V)>> {
        if let Some(refusal) = self.routes.admit() {
            return Err(refusal.map(|()| (prefix, value)));
        }
        let mut update = Update::new(self);
        let changed = self.routes.change_with(&prefix, |covering| {
            Some(Stamped { created: update.insert(covering), value })
        });
        update.finish(None);
        Ok(!changed.finish(&self.routes))
    }

    /// Withdraws a route. Returns whether it existed.
    ///
    /// # Errors
    ///
    /// As for [`insert`](Self::insert).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentStampedRoutes, routes::Refreshed};
    ///
    /// let ports = ConcurrentStampedRoutes::from_iter([(Prefix::new(0_u16, 6)?, 'a')]);
    /// let pinned = ports.pin();
    /// let (mut stamp, _) = pinned.resolve(&80);
    /// assert_eq!(ports.remove(&Prefix::new(0, 6)?), Ok(true));
    /// assert_eq!(pinned.refresh(&80, &mut stamp), Refreshed::Changed(None));
    /// // No route is what the stamp is of from now on.
    /// assert!(ports.is_current(&stamp));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn remove(&self, prefix: &Prefix<A>) -> Result<bool, Refusal<Prefix<A>>> {
        if let Some(refusal) = self.routes.admit() {
            return Err(refusal.map(|()| *prefix));
        }
        let (mut update, mut removed) = (Update::new(self), None);
        let changed = self.routes.change_with(prefix, |covering| {
            removed = update.remove(covering);
            None
        });
        update.finish(removed);
        Ok(changed.finish(&self.routes))
    }

    /// Withdraws the routes for which `keep` returns false, one after the other. Returns their
    /// number.
    ///
    /// `keep` runs without a lock, for the routes of one state, in order. A route that is announced
    /// during the call stays. If another thread replaces a rejected route before its withdrawal,
    /// the new route is withdrawn.
    ///
    /// # Errors
    ///
    /// As for [`insert`](Self::insert). Some routes are withdrawn then; repeat the call for the
    /// others.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentStampedRoutes};
    ///
    /// let routes = [(Prefix::new(0_u16, 6)?, 'a'), (Prefix::new(1024, 6)?, 'b')];
    /// let ports = ConcurrentStampedRoutes::from_iter(routes);
    /// assert_eq!(ports.retain(|_, value| *value == 'b'), Ok(1));
    /// assert_eq!(ports.pin().lookup(&80), None);
    /// ports.clear().unwrap();
    /// assert!(ports.is_empty());
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn retain(
        &self,
        mut keep: impl FnMut(Prefix<A>, &V) -> bool,
    ) -> Result<usize, Refusal<()>> {
        let withdrawn = |(prefix, value): (Prefix<A>, &V)| (!keep(prefix, value)).then_some(prefix);
        // The pin ends here: it would delay the collector.
        let withdrawn: Vec<_> = self.pin().iter().filter_map(withdrawn).collect();
        remove_each(withdrawn, |prefix| self.remove(prefix))
    }

    /// Withdraws the routes of one state, one after the other: see [`retain`](Self::retain).
    ///
    /// # Errors
    ///
    /// As for [`insert`](Self::insert).
    pub fn clear(&self) -> Result<(), Refusal<()>> {
        self.retain(|_, _| false).map(drop)
    }
}

impl<A: Address, V> Default for ConcurrentStampedRoutes<A, V> {
    fn default() -> Self {
        Self::new()
    }
}

/// Formats the routes, in order, as a map.
impl<A: Address + fmt::Debug, V: fmt::Debug> fmt::Debug for ConcurrentStampedRoutes<A, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.pin().iter()).finish()
    }
}

/// Omits the routes: to list them takes a lock.
impl<A, V, G> fmt::Debug for Pinned<'_, ConcurrentStampedRoutes<A, V>, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pinned").finish_non_exhaustive()
    }
}

impl<A: Address, V: Clone + Send + 'static> FromIterator<(Prefix<A>, V)>
    for ConcurrentStampedRoutes<A, V>
{
    fn from_iter<I: IntoIterator<Item = (Prefix<A>, V)>>(routes: I) -> Self {
        let (cells, mut numbers) = (Cells::new(), CellNumbers::new());
        let mut begin = |(prefix, value)| {
            let created = numbers.allocate(&mut &cells).expect("there are less than 2^32 routes");
            (prefix, Stamped { created, value })
        };
        // Of routes with one prefix, the last one counts.
        let last: RouteTable<A, V> = routes.into_iter().collect();
        let routes = last.into_iter().map(&mut begin).collect();
        Self { routes, cells, writers: Writers::new(numbers) }
    }
}
