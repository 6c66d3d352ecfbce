//! Updates with their cells, and traits of collections.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use std::sync::OnceLock;

use super::{ConcurrentStampedRoutes, Writers};
use crate::concurrent::error::Refusal;
use crate::concurrent::pinned::Pinned;
use crate::concurrent::routes::{CoveringValues, remove_each};
use crate::concurrent::sync::{AtomicU64, Ordering};
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::routes::generations::{
    BLOCKS, CellNumbers, Generations, Stamped, UNCHANGED, cells_of, place,
};
use crate::routes::{RouteStamp, RouteTable};

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

/// The changes of cells by an update. When it is dropped, the update is published, or has panicked
/// and is not made.
pub(super) struct Update<'t, A: Address, V> {
    table: &'t ConcurrentStampedRoutes<A, V>,
    /// The last generation of the update, or 0.
    generation: u64,
    /// The cell that no route has when the update is dropped.
    unused: Option<RouteStamp>,
}

impl<'t, A: Address, V> Update<'t, A, V> {
    pub(super) const fn new(table: &'t ConcurrentStampedRoutes<A, V>) -> Self {
        Self { table, generation: 0, unused: None }
    }

    /// Begins an insertion or a replacement, under the lock of the routes. Returns the stamp of the
    /// new value.
    pub(super) fn insert(&mut self, covering: &CoveringValues<'_, Stamped<V>>) -> RouteStamp {
        let (mut cells, mut numbers) = (&self.table.cells, self.table.numbers());
        let (own, upper) = (covering.own.map(|route| route.created), covering.upper);
        let created = numbers.insert(&mut cells, own, Stamped::created(upper));
        let created = created.expect("there are less than 2^32 routes");
        self.unused = if own.is_none() { Some(created) } else { None };
        self.generation = numbers.generation();
        created
    }

    /// Begins a removal, under the lock of the routes. Returns the beginning of the removed route.
    pub(super) fn remove(
        &mut self,
        covering: &CoveringValues<'_, Stamped<V>>,
    ) -> Option<RouteStamp> {
        let created = covering.own?.created;
        let mut numbers = self.table.numbers();
        self.generation = numbers.change(&mut &self.table.cells, created.cell()).generation();
        Some(created)
    }

    /// Ends the update, when it is published.
    pub(super) fn finish(mut self, removed: Option<RouteStamp>) {
        self.unused = removed;
    }
}

impl<A: Address, V> Drop for Update<'_, A, V> {
    fn drop(&mut self) {
        if let Some(unused) = self.unused {
            self.table.numbers().release(&mut &self.table.cells, unused.cell());
        }
        // Release: pairs with the Acquire in `resolved`; follows the publication of all updates up
        // to this generation.
        self.table.writers.finished.fetch_max(self.generation, Ordering::Release);
    }
}

/// Blocks of cells, which are neither moved nor freed as long as the table exists.
pub(super) struct Cells([OnceLock<Box<[AtomicU64]>>; BLOCKS]);

impl Cells {
    pub(super) const fn new() -> Self {
        Self([const { OnceLock::new() }; BLOCKS])
    }

    /// Returns a cell, if its block exists.
    #[inline]
    fn get(&self, cell: u32) -> Option<&AtomicU64> {
        let (block, index) = place(cell);
        self.0[block].get()?.get(index)
    }

    /// Returns the generation of a cell: one load.
    #[inline]
    pub(super) fn generation(&self, cell: u32) -> u64 {
        // Relaxed: see the module documentation.
        self.get(cell).map_or(UNCHANGED, |changed| changed.load(Ordering::Relaxed))
    }

    /// Returns the number of cells for which there is memory.
    pub(super) fn capacity(&self) -> usize {
        self.0.iter().filter_map(OnceLock::get).map(|cells| cells.len()).sum()
    }
}

/// The cells for a writer, which has the numbers locked.
impl Generations for &Cells {
    fn generation(&self, cell: u32) -> u64 {
        Cells::generation(self, cell)
    }

    fn set(&mut self, cell: u32, generation: u64) {
        let Some(changed) = self.get(cell) else { return };
        // Relaxed: see the module documentation.
        changed.store(generation, Ordering::Relaxed);
    }

    fn add(&mut self, block: usize) -> Option<()> {
        let new = || (0..cells_of(block)).map(|_| AtomicU64::new(UNCHANGED)).collect();
        self.0[block].get_or_init(new);
        Some(())
    }
}
