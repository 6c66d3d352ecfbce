//! Concurrent routes with stamps: a load detects that the route of a decision has changed.
//!
//! [`StampedRoutes`](crate::routes::StampedRoutes) for several threads: writers change routes,
//! while each reader has flows of its own, which store the decisions for their first packets.
//!
//! ```text
//!     reader        flow: next hop, stamp    is_current:  load the cell
//!                         │                  resolve:     load `finished`, look up, load the cell
//!     cells         │ 0: no route │ 10/8: 7 │ 10.1/16: 9 │ …
//!                                         ▲
//!     routes        10/8: cell 1, from 3 ─┘    in blocks, which do not change: `ConcurrentRoutes`
//!     writer        lock, store the cells ─→ publish the blocks, unlock ─→ store `finished`
//! ```
//!
//! The [routes](super::routes) have the guarantees R1 to R8. The value of a route has the number of
//! its cell and the generation of its insertion. `routes/generations.rs` has the cells and the
//! algorithm; the module [`routes::stamped`](crate::routes::stamped) defines which cells an update
//! changes.
//!
//! # Guarantees
//!
//! Each has a test of its name in `tests/concurrent_routes/stamped.rs`. *Decision*: the result of a
//! lookup that has returned a stamp.
//!
//! - **G1, no stale decision.** When a call that changes a route returns, the stamps of all
//!   decisions that were made by the former route are stale, and they remain so: also decisions of
//!   lookups that run at the same time.
//! - **G2, observed updates are respected.** A thread that has observed an update, by the return of
//!   its call or by a lookup, does not find a stamp current whose decision is older. So a worker
//!   never goes back to a route after one of its flows has left that route.
//! - **G3, only those.** Stamps of other routes remain current. A lookup beside a change of its
//!   route may return a stamp that is stale already: then the next packet looks up again.
//! - **G4, progress.** To check a stamp is one load, without a pin, a lock or a retry. A lookup is
//!   a lookup of [`ConcurrentRoutes`], with two more loads.
//! - **G5, code of the caller.** As R8. If a clone of a value panics, the route is as before, and
//!   the decisions by it look up once.
//!
//! # Why a stamp is not current with an old value
//!
//! Generations are given under the lock, in ascending order. A writer
//!
//! 1. stores new generations in the cells of the update: the cell of the route if it is replaced or
//!    withdrawn, the cell of the route above if it is new;
//! 2. publishes the blocks, by Release stores;
//! 3. stores the last generation in `finished`, by a Release operation.
//!
//! A reader
//!
//! 1. loads `finished` by Acquire: it is *f*;
//! 2. looks up, by Acquire loads: the value was inserted at *b*;
//! 3. loads the cell of the route: it is *c*; and makes the stamp of the lesser one of *c* and
//!    max(*f*, *b*).
//!
//! *If c is greater*, the stamp differs from the cell, and from all later generations of that cell,
//! which are greater than *c*. The stamp is stale.
//!
//! *Otherwise* the lookup has observed all changes of the cell up to *c*: those up to *f* were
//! published before `finished` was stored, so by Release and Acquire the lookup has found them; and
//! a lookup that has found the value of *b* answers from the routes at one point in time (R1), at
//! which earlier updates were made. An update that it has not observed, and that gives the address
//! another route or value, gives the cell of its route a generation greater than *c*: the stamp is
//! stale from then on (G1).
//!
//! That generation is stored before the update is published. So if a thread has observed the
//! update, the store of the cell happens before its next load of it, and coherence excludes the
//! former generation: Relaxed suffices for cells (G2).
//!
//! Updates of two writers store `finished` in any order, as its maximum: each store follows the
//! publication of its own generation, and the publications of all lower generations, which the lock
//! has ordered before it.
//!
//! # Cost
//!
//! An update costs an update of [`ConcurrentRoutes`], and one walk to its prefix. A route needs 20
//! bytes more. Cells are in blocks that double and never move, until the table is dropped; the
//! writer that needs the first cell of a block initialises all of them.

#[cfg(all(test, crossbeam_loom))]
mod loom_models;
mod pinned;
mod write;

use alloc::vec::Vec;
use std::sync::PoisonError;

use super::pinned::{Guard, Pinned};
use super::routes::ConcurrentRoutes;
use super::sync::{AtomicU64, Mutex, MutexGuard};
use crate::invariant::InvariantError;
use crate::key::bits::Address;
use crate::routes::RouteStamp;
use crate::routes::generations::{CellNumbers, Stamped};
use write::Cells;

/// A concurrent routing table that detects stale decisions by stamps.
///
/// A stamp of a route is stored with a decision: it is current until the route of the address
/// changes. The [module](self) has the guarantees.
///
/// | method | cost |
/// |---|---|
/// | [`is_current`](Self::is_current) | one load |
/// | [`resolve`](super::Pinned::resolve), [`refresh`](super::Pinned::refresh) | as [`lookup`](super::Pinned::lookup), and two loads |
/// | [`insert`](Self::insert), [`remove`](Self::remove) | as in [`ConcurrentRoutes`], and the path to the prefix |
/// | [`iter`](super::Pinned::iter), [`retain`](Self::retain) | O(routes), for which writers wait |
///
/// # Example
///
/// Workers, each with a [`FlowCache`](crate::FlowCache) of its own, and a thread that changes
/// routes:
///
/// ```
/// use flowtable::concurrent::{ConcurrentStampedRoutes, Pinned};
/// use flowtable::flow_cache::{Config, Packet};
/// use flowtable::routes::{Refreshed, RouteStamp};
/// use flowtable::{FiveTuple, FlowCache, Timestamp};
/// use std::net::Ipv4Addr;
///
/// /// What a worker has decided for a flow.
/// #[derive(Default)]
/// struct Decision {
///     port: Option<u16>,
///     stamp: RouteStamp,
/// }
///
/// type Key = FiveTuple<Ipv4Addr>;
/// type Flows = FlowCache<Key, Decision>;
/// type Routes = ConcurrentStampedRoutes<Ipv4Addr, u16>;
///
/// /// The port of a packet.
/// fn forward(
///     flows: &mut Flows,
///     routes: &Pinned<'_, Routes>,
///     key: &Key,
/// ) -> Option<u16> {
///     let seen = flows.observe(key, Packet::UDP, Timestamp::ZERO).expect("no flow is pinned");
///     let Decision { port, stamp } = seen.flow;
///     if !routes.is_current(stamp) {
///         // The first packet of the flow, or a change of its route.
///         match routes.refresh(&key.dst, stamp) {
///             Refreshed::Same => {}
///             Refreshed::Changed(route) => *port = route.map(|(_, port)| *port),
///         }
///     }
///     *port
/// }
///
/// let routes: Routes = [("10.0.0.0/8".parse()?, 1)].into_iter().collect();
/// let key = |dst: [u8; 4]| {
///     FiveTuple { src: [1, 1, 1, 1].into(), dst: dst.into(), sport: 5, dport: 53, protocol: 17 }
/// };
/// let work = |name: u8| {
///     let mut flows: Flows = FlowCache::new(Config::new(100).expect("a capacity"));
///     let mut pinned = routes.pin();
///     for packet in 0..100 {
///         let port = forward(&mut flows, &pinned, &key([10, 1, name, packet % 4]));
///         assert!(port == Some(1) || port == Some(2));
///         pinned.repin(); // between two bursts
///     }
/// };
/// std::thread::scope(|scope| {
///     [0, 1].map(|name| scope.spawn(move || work(name)));
///     routes.insert("10.1.0.0/16".parse().unwrap(), 2).unwrap();
///     // The insertion has returned: no decision is current that was made without it.
///     let mut flows: Flows = FlowCache::new(Config::new(100).expect("a capacity"));
///     assert_eq!(forward(&mut flows, &routes.pin(), &key([10, 1, 0, 0])), Some(2));
/// });
/// # Ok::<(), flowtable::PrefixError>(())
/// ```
pub struct ConcurrentStampedRoutes<A, V> {
    routes: ConcurrentRoutes<A, Stamped<V>>,
    cells: Cells,
    writers: Writers,
}

/// The data of the writers, in cache lines of their own.
#[repr(align(128))]
struct Writers {
    /// No code of the caller runs while they are locked. They may be locked under the lock of the
    /// routes, not the other way round.
    numbers: Mutex<CellNumbers>,
    /// All updates up to this generation are published.
    finished: AtomicU64,
}

impl Writers {
    fn new(numbers: CellNumbers) -> Self {
        let finished = AtomicU64::new(numbers.generation());
        Self { numbers: Mutex::new(numbers), finished }
    }
}

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
    /// assert!(routes.garbage() > 4096);
    /// ```
    #[must_use]
    pub fn with_garbage_limit(mut self, bytes: usize, patience: u32) -> Self {
        self.routes = self.routes.with_garbage_limit(bytes, patience);
        self
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

    fn numbers(&self) -> MutexGuard<'_, CellNumbers> {
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
