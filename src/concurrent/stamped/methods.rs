//! The constructor, and the methods that read without a pin.

use alloc::vec::Vec;
use std::sync::PoisonError;

use super::cells::Cells;
use super::{ConcurrentStampedRoutes, Writers};
use crate::concurrent::guard::Guard;
use crate::concurrent::pinned::Pinned;
use crate::concurrent::routes::ConcurrentRoutes;
use crate::concurrent::sync::{AtomicU64, MutexGuard};
use crate::invariant::InvariantError;
use crate::key::bits::Address;
use crate::routes::RouteStamp;
use crate::routes::generations::CellNumbers;

impl<A: Address, V> ConcurrentStampedRoutes<A, V> {
    /// Creates a table without routes.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::concurrent::ConcurrentStampedRoutes;
    ///
    /// let routes = ConcurrentStampedRoutes::<u32, char>::new();
    /// assert_eq!((routes.len(), routes.is_empty()), (0, true));
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self {
            routes: ConcurrentRoutes::new(),
            cells: Cells::new(),
            writers: Writers::new(CellNumbers::new()),
        }
    }

    /// Sets the limit on garbage, which is retired and not freed yet, in bytes, and the patience:
    /// see [`ConcurrentRoutes::with_garbage_limit`].
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentStampedRoutes};
    ///
    /// let routes = ConcurrentStampedRoutes::<u8, u32>::new().with_garbage_limit(4096, 0);
    /// let reader = routes.pin();
    /// let insert = |value| routes.insert(Prefix::host(7), value);
    /// // While this reader holds its pin, nothing that it may access is freed.
    /// let refused = (0..).find_map(|value| insert(value).err()).unwrap();
    /// assert_eq!(reader.lookup(&7).unwrap().1, &(refused.refused.1 - 1));
    /// assert!(routes.garbage() > routes.garbage_limit());
    /// ```
    #[must_use]
    pub fn with_garbage_limit(mut self, bytes: usize, patience: u32) -> Self {
        self.routes = self.routes.with_garbage_limit(bytes, patience);
        self
    }

    /// Returns the limit on garbage, in bytes.
    #[must_use]
    pub const fn garbage_limit(&self) -> usize {
        self.routes.garbage_limit()
    }

    /// Returns the bytes of garbage.
    #[must_use]
    pub fn garbage(&self) -> usize {
        self.routes.garbage()
    }

    /// Returns whether the route of a stamp is known to be the same; if not,
    /// [`refresh`](Pinned::refresh) looks it up. One load, without a pin.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentStampedRoutes};
    ///
    /// let routes = ConcurrentStampedRoutes::from_iter([(Prefix::new(0_u16, 6)?, 'a')]);
    /// let (stamp, _) = routes.pin().resolve(&80);
    /// assert!(routes.is_current(&stamp));
    /// routes.insert(Prefix::new(0, 6)?, 'b').unwrap();
    /// assert!(!routes.is_current(&stamp));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn is_current(&self, stamp: &RouteStamp) -> bool {
        self.cells.generation(stamp.cell()) == stamp.generation()
    }

    /// Pins the table for lookups: see [`ConcurrentRoutes::pin`].
    #[inline]
    #[must_use]
    pub fn pin(&self) -> Pinned<'_, Self> {
        Pinned::new(self)
    }

    /// Returns the view of a pin under a guard of the thread that other structures share: see
    /// [`concurrent::pin`](crate::concurrent::pin()). Costs nothing.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::{ConcurrentStampedRoutes, pin}};
    ///
    /// let routes = ConcurrentStampedRoutes::from_iter([(Prefix::host(7_u8), 'a')]);
    /// let guard = pin();
    /// assert_eq!(routes.pinned(&guard).lookup(&7).unwrap().1, &'a');
    /// ```
    #[inline]
    #[must_use]
    pub const fn pinned<'g>(&'g self, guard: &'g Guard) -> Pinned<'g, Self, &'g Guard> {
        Pinned::of(self, guard)
    }

    /// Returns the number of routes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.routes.len()
    }

    /// Returns whether there is no route.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    /// Returns the bytes allocated, without garbage and memory that values own. Waits for a writer.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::concurrent::ConcurrentStampedRoutes;
    ///
    /// assert_eq!(ConcurrentStampedRoutes::<u32, ()>::new().allocation_size(), 0);
    /// ```
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        self.routes.allocation_size() + self.cells.capacity() * size_of::<AtomicU64>()
    }

    pub(super) fn numbers(&self) -> MutexGuard<'_, CellNumbers> {
        // Nothing panics while it is locked, except for lack of memory.
        self.writers.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks the invariants of the table, and that each route has a cell of its own. O(routes),
    /// for tests, without writers at the same time.
    ///
    /// # Errors
    ///
    /// If an invariant is violated.
    ///
    /// # Example
    ///
    /// ```
    /// let routes = flowtable::concurrent::ConcurrentStampedRoutes::<u32, ()>::new();
    /// assert_eq!(routes.validate(), Ok(()));
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), InvariantError> {
        self.routes.validate()?;
        let pinned = self.routes.pin();
        let created: Vec<_> = pinned.iter().map(|(_, route)| route.created).collect();
        self.numbers().check(&&self.cells, created.into_iter())
    }
}
