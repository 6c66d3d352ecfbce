//! The cells of one update.

use super::ConcurrentStampedRoutes;
use crate::concurrent::routes::CoveringValues;
use crate::concurrent::sync::Ordering;
use crate::key::bits::Address;
use crate::routes::RouteStamp;
use crate::routes::generations::Stamped;

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
