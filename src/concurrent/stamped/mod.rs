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

// First, so that the documentation of the type begins with its methods.
mod methods;

mod cells;
#[cfg(all(test, crossbeam_loom))]
mod loom_models;
mod pinned;
mod update;
mod write;

use super::routes::ConcurrentRoutes;
use super::sync::{AtomicU64, Mutex};
use crate::routes::generations::{CellNumbers, Stamped};
use cells::Cells;

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
