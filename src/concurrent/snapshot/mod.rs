//! Concurrent longest-prefix match: wait-free readers, and writers that do not block on readers.
//!
//! ```text
//!     readers                    ┌──────────── active = 0
//!     pin() ─ 1 lookup ─────────→│ copy 0 │    read only: every visible route
//!     pin() ─ 2 lookups ────────→│        │
//!                                 ╲      ╱     ← swapped by one store
//!     writer, under a lock        ╱      ╲
//!     insert() ── echo, queue ──→│ copy 1 │    the spare: no readers, or soon none
//! ```
//!
//! There are two [`RouteTable`]s, and a word selects the active one, for the readers. A writer
//! brings the spare one up to date with the updates that it has missed (the *echo*), applies new
//! ones (the *queue*), and swaps. Later readers access the new table. Earlier readers still access
//! the old one, so it must not be changed yet. Each of them has pinned its thread in the collector;
//! a closure that is deferred to the collector runs when the last of them has ended, and marks the
//! copy as free.
//!
//! The next update helps the collector for some microseconds if the copy is not free yet, and does
//! not wait any longer: it is queued, and the next update that finds the copy free makes it
//! visible. So a reader that sleeps during a lookup delays the visibility of updates, and blocks no
//! thread.
//!
//! # Guarantees
//!
//! - **R1, old or new.** A lookup answers from the routes before or after an update, never from a
//!   state in between: no route is temporarily missing or duplicated.
//! - **R2, a pin is a snapshot.** All answers of a [`PinnedSnapshot`] are from one state of the
//!   table, until it is [repinned](PinnedSnapshot::repin). Updates that were
//!   [applied](SnapshotRoutes::apply) together become visible together.
//! - **R3, order of visibility.** Every pin that begins after a call has returned
//!   [`Publication::Visible`] observes that update and all earlier ones, in the order in which they
//!   were made. Pins of a thread are monotonic. A [`Publication::Pending`] update becomes visible
//!   with the first later call of any thread that returns `Visible`; updates are never reordered.
//! - **R4, bounded.** Updates that are kept for the spare copy or for both never take more bytes
//!   than the limit and the updates of one call, and no more than twice as many are allocated for
//!   them. Above, an update is refused and returned, and nothing has changed. A call that no reader
//!   delays is never refused, whatever the number of its updates.
//! - **R5, progress.** A lookup takes no lock, never waits and never retries. A writer waits for
//!   other writers, none of which waits for a reader while it holds the lock; it yields to readers
//!   a bounded number of times, and only to publish or if the queue is full. A thread that holds a
//!   pin and writes gets `Pending`, and never hangs.
//! - **R6, code of the caller.** Values are cloned before the lock is taken and dropped after it is
//!   released. If a clone panics, nothing has changed. If a drop does, the update has been made.
//!   Under the lock only methods of addresses run. If one panics, so does the call; readers have
//!   observed nothing; updates that were not visible are dropped, and the spare copy is replaced by
//!   a clone of the active one before its next use.
//!
//! # Cost
//!
//! Twice the memory; each update is applied twice, and its value cloned once. A lookup takes as
//! many steps as in a [`RouteTable`], and a pin some ten nanoseconds, so hold one for a burst.
//! Values that are expensive to clone go into an [`Arc`](std::sync::Arc). Replaced values live on
//! in the spare copy until the next update or [`publish`](SnapshotRoutes::publish).
//!
//! After each swap readers access a copy that is not in their caches. With the routes of the
//! Internet and ten thousand swaps a second, single lookups take about 2.3 times as long, and
//! bursts 1.5 times; if 32 updates are [applied](SnapshotRoutes::apply) at once, 1.9 and 1.2
//! times. So batch updates.
//!
//! The collector is shared by all structures of this crate in a process. A pin of any of them that
//! is held for long delays all of them, and one that is leaked delays them for ever.
//!
//! # Alternatives
//!
//! *[`ConcurrentRoutes`](super::ConcurrentRoutes)*: one copy, which stays in the caches of readers
//! beside updates. Lookups of IPv6 take longer, and a pin is no snapshot.
//!
//! *A table that is replaced as a whole*, for example in an `ArcSwap`: as simple for readers, but
//! each update copies all routes, which takes milliseconds and more for those of the Internet.
//! Suitable for updates once a minute, or for batches.
//!
//! *A reader-writer lock*: one table only, but readers write to a shared word, and wait for
//! writers.
//!
//! *The crate `left-right`*, the origin of the two copies: its writer waits until the last reader
//! has ended, without bound, and its log grows until it is published.
//!
//! # Papers
//!
//! Ramalhete and Correia, *Left-Right: a concurrency control technique with wait-free population
//! oblivious reads* (2015), where readers announce their arrival and departure; Fraser, *Practical
//! lock-freedom* (2004), for the epochs that replace these announcements here.

mod copies;
mod log;
#[cfg(all(test, crossbeam_loom))]
mod loom_models;
mod pinned;
mod traits;
mod write;

use alloc::vec::Vec;

use super::error::WouldExceed;
use super::guard::{Guard, pin};
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::memory::{Allocator, Global};
use crate::routes::RouteTable;
use copies::Copies;
use log::{Log, Update};

pub use pinned::PinnedSnapshot;
pub use write::Publication;

/// The default limit on kept updates, in bytes: some seconds at a hundred thousand updates of the
/// Internet's routes a second.
const LIMIT: usize = 16 << 20;

/// The default patience: how often a writer yields if the queue is full.
const PATIENCE: usize = 16;

/// A concurrent route table in two copies: a pin is a snapshot of all routes.
///
/// Lookups are wait-free; updates are made by one thread at a time.
///
/// | method | cost |
/// |---|---|
/// | [`pin`](Self::pin) | a fence; then the lookups of a [`RouteTable`], at its speed |
/// | [`insert`](Self::insert), [`remove`](Self::remove) | two updates and a swap |
/// | [`apply`](Self::apply) | the sum of its updates, with one swap |
/// | [`From`] a [`RouteTable`] | O(routes), once |
///
/// The former value of a prefix is not returned: readers may still access it. Callers that need it
/// look it up with a pin.
///
/// # Panics
///
/// A thread holds one lock of a concurrent structure at a time. So all methods that take this one,
/// which are those that write, [`pending`](Self::pending) and
/// [`allocation_size`](Self::allocation_size), panic if a method of an address calls them during an
/// update; or the drop of a value, during an update in which such a method panics.
///
/// # Example
///
/// ```
/// use flowtable::concurrent::{SnapshotRoutes, Publication};
/// use std::net::Ipv4Addr;
///
/// let routes = SnapshotRoutes::<Ipv4Addr, &str>::new();
/// routes.insert("10.0.0.0/8".parse()?, "core").unwrap();
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         let pinned = routes.pin();
///         let found = pinned.lookup(&Ipv4Addr::new(10, 1, 2, 3)).map(|(_, &via)| via);
///         assert!(found == Some("core") || found == Some("lab"));
///     });
///     routes.insert("10.1.0.0/16".parse().unwrap(), "lab").unwrap();
/// });
/// // No reader is left, so the last update becomes visible, if it was not at once.
/// assert_eq!(routes.publish(), Publication::Visible);
/// assert_eq!(routes.pin().lookup(&Ipv4Addr::new(10, 1, 2, 3)).unwrap().1, &"lab");
/// # Ok::<(), flowtable::PrefixError>(())
/// ```
#[doc(alias("fib", "lpm", "rcu"))]
pub struct SnapshotRoutes<A, V, M: Allocator + Clone = Global> {
    copies: Copies<RouteTable<A, V, M>, Log<A, V>>,
    limit: usize,
    patience: usize,
}

impl<A: Address, V> SnapshotRoutes<A, V> {
    /// Creates a table without routes.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::concurrent::SnapshotRoutes;
    ///
    /// let routes = SnapshotRoutes::<u32, char>::new();
    /// assert!(routes.is_empty());
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::new_in(Global)
    }
}

impl<A: Address, V, M: Allocator + Clone> SnapshotRoutes<A, V, M> {
    /// Creates a table without routes in the memory of an allocator, of which each copy has a
    /// clone. Threads can share the table if they can share the allocator. Updates are kept
    /// in the memory of the program, which ends when a copy needs memory that the allocator does
    /// not have.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::SnapshotRoutes};
    ///
    /// let arena = bumpalo::Bump::new();
    /// let routes = SnapshotRoutes::<u16, char, _>::new_in(&arena);
    /// routes.insert(Prefix::new(0, 6)?, 'a').unwrap();
    /// assert_eq!(routes.pin().lookup(&80), Some((Prefix::new(0, 6)?, &'a')));
    /// assert!(arena.allocated_bytes() > 0);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[must_use]
    pub fn new_in(memory: M) -> Self {
        Self::of(RouteTable::new_in(memory.clone()), RouteTable::new_in(memory))
    }

    /// Creates a structure from two tables with equal routes.
    fn of(active: RouteTable<A, V, M>, spare: RouteTable<A, V, M>) -> Self {
        Self { copies: Copies::new(active, spare, Log::new()), limit: LIMIT, patience: PATIENCE }
    }

    /// Sets the limits: kept updates take at most `bytes`, without what values own; and a writer
    /// that finds the queue full, or [publishes](Self::publish), yields to readers `patience`
    /// times.
    ///
    /// An update takes the size of a prefix, and of two values while it is pending and of one until
    /// the next update. If no reader delays them, updates are made at once, whatever their number.
    /// By default there are 16 MiB, and 16 times.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::SnapshotRoutes};
    ///
    /// let routes = SnapshotRoutes::<u8, char>::new().with_limit(10, 0);
    /// let reader = routes.pin();
    /// routes.insert(Prefix::new(0x40, 2)?, 'a').unwrap();
    /// // The reader delays the next one, and the limit is too low for any delayed update.
    /// let refused = routes.insert(Prefix::new(0x40, 2)?, 'b').unwrap_err();
    /// assert_eq!(refused.refused, (Prefix::new(0x40, 2)?, 'b'));
    /// assert!(reader.is_empty());
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[must_use]
    pub fn with_limit(self, bytes: usize, patience: usize) -> Self {
        Self { limit: bytes, patience, ..self }
    }

    /// Pins the visible routes: returns a snapshot, until it is dropped or repinned.
    ///
    /// A pin delays writers: while there is one, no more than one update becomes visible. Three
    /// repins are worth its end: the collector needs three steps, and each repin allows one.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable, concurrent::SnapshotRoutes};
    ///
    /// let table = RouteTable::from([(Prefix::new(0x40_u8, 2)?, 'a')]);
    /// let routes = SnapshotRoutes::from(table);
    /// let (pinned, mut found) = (routes.pin(), [None; 2]);
    /// pinned.lookup_batch(&[0x41, 0x80], &mut found);
    /// assert_eq!(found.map(|route| route.map(|(_, &value)| value)), [Some('a'), None]);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn pin(&self) -> PinnedSnapshot<'_, A, V, Guard, M> {
        PinnedSnapshot::new(self, pin())
    }

    /// Returns a snapshot of the visible routes, under a guard of the thread that other structures
    /// share: see [`concurrent::pin`](super::pin).
    ///
    /// It is the present state, not that of the beginning of the guard: two snapshots of one guard
    /// may differ.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::{SnapshotRoutes, pin}};
    ///
    /// let here: SnapshotRoutes<u8, char> = [(Prefix::host(7), 'a')].into_iter().collect();
    /// let there: SnapshotRoutes<u16, char> = [(Prefix::host(9), 'b')].into_iter().collect();
    /// let guard = pin();
    /// assert_eq!(here.pinned(&guard).lookup(&7).unwrap().1, &'a');
    /// assert_eq!(there.pinned(&guard).lookup(&9).unwrap().1, &'b');
    /// ```
    #[inline]
    #[must_use]
    pub fn pinned<'r, 'g>(&'r self, guard: &'g Guard) -> PinnedSnapshot<'r, A, V, &'g Guard, M> {
        PinnedSnapshot::new(self, guard)
    }

    /// Returns the number of visible routes.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::SnapshotRoutes};
    ///
    /// let routes: SnapshotRoutes<u8, ()> = [(Prefix::host(7), ())].into_iter().collect();
    /// assert_eq!(routes.len(), 1);
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.pin().len()
    }

    /// Returns whether no route is visible.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::SnapshotRoutes};
    ///
    /// let routes: SnapshotRoutes<u8, ()> = [(Prefix::host(7), ())].into_iter().collect();
    /// assert!(!routes.is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of updates that are not visible yet. Waits for a writer. O(1).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::SnapshotRoutes};
    ///
    /// let routes = SnapshotRoutes::<u8, ()>::new();
    /// let pinned = routes.pin(); // delays updates
    /// for host in 0..5 {
    ///     routes.insert(Prefix::host(host), ()).unwrap();
    /// }
    /// assert!(routes.pending() >= 4);
    /// # drop(pinned);
    /// ```
    #[must_use]
    pub fn pending(&self) -> usize {
        self.copies.lock().log().pending()
    }

    /// Returns the bytes allocated for both copies and the updates between them, free ones
    /// included; without what values own. Waits for a writer. One step for each chunk of memory.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable, concurrent::SnapshotRoutes};
    ///
    /// let table = RouteTable::from([(Prefix::new(0x40_u8, 2)?, 'a')]);
    /// let one = table.clone().allocation_size();
    /// assert_eq!(SnapshotRoutes::from(table).allocation_size(), 2 * one);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        let active = self.pin().allocation_size();
        let bytes = |spare: &RouteTable<A, V, M>, log: &Log<A, V>| {
            spare.allocation_size() + log.allocation_size()
        };
        active + self.copies.lock().with_spare(bytes)
    }
}

impl<A: Address, V: Clone, M: Allocator + Clone> SnapshotRoutes<A, V, M> {
    /// Announces a route, or replaces its value.
    ///
    /// # Errors
    ///
    /// If readers have delayed updates for so long that their bytes reach the limit. Nothing has
    /// changed. A thread that receives this error and holds a pin should repin it.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::{SnapshotRoutes, Publication}};
    ///
    /// let routes = SnapshotRoutes::<u8, char>::new();
    /// assert_eq!(routes.insert(Prefix::new(0x40, 2)?, 'a'), Ok(Publication::Visible));
    /// assert_eq!(routes.pin().get(&Prefix::new(0x40, 2)?), Some(&'a'));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn insert(
        &self,
        prefix: Prefix<A>,
        value: V,
    ) -> Result<Publication, WouldExceed<(Prefix<A>, V)>> {
        let values = Some([value.clone(), value]);
        self.write([Update { prefix, values }])
            .map_err(|refused| refused.map(|[update]| update.into_route()))
    }

    /// Withdraws a route, if it exists.
    ///
    /// # Errors
    ///
    /// As for [`insert`](Self::insert).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable, concurrent::SnapshotRoutes};
    ///
    /// let prefix = Prefix::new(0x40_u8, 2)?;
    /// let routes = SnapshotRoutes::from(RouteTable::from([(prefix, 'a')]));
    /// let before = routes.pin();
    /// routes.remove(&prefix).unwrap();
    /// assert_eq!((before.get(&prefix), routes.pin().get(&prefix)), (Some(&'a'), None));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn remove(&self, prefix: &Prefix<A>) -> Result<Publication, WouldExceed<Prefix<A>>> {
        self.write([Update { prefix: *prefix, values: None }])
            .map_err(|refused| refused.map(|[update]| update.prefix))
    }

    /// Announces and withdraws (no value) several routes, which become visible together.
    ///
    /// # Errors
    ///
    /// As for [`insert`](Self::insert), with all updates in their order. A batch that takes more
    /// bytes than the limit is refused while readers delay it.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable, concurrent::SnapshotRoutes};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let routes = SnapshotRoutes::from(RouteTable::from([(long, 'a')]));
    /// routes.apply([(long, None), (short, Some('b'))]).unwrap();
    /// assert!(routes.pin().iter().eq([(short, &'b')]));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[expect(clippy::type_complexity, reason = "what is refused is a list of what came in")]
    pub fn apply(
        &self,
        updates: impl IntoIterator<Item = (Prefix<A>, Option<V>)>,
    ) -> Result<Publication, WouldExceed<Vec<(Prefix<A>, Option<V>)>>> {
        let twice = |(prefix, value): (_, Option<V>)| Update {
            prefix,
            values: value.map(|value| [value.clone(), value]),
        };
        let updates: Vec<_> = updates.into_iter().map(twice).collect();
        self.write(updates).map_err(|refused| {
            refused.map(|updates| updates.into_iter().map(Update::into_pair).collect())
        })
    }

    /// Withdraws the visible routes for which `keep` returns false; all of them disappear together.
    ///
    /// `keep` runs without a lock, for the routes of one snapshot, in order. A route that is
    /// announced meanwhile stays; one that is replaced meanwhile is withdrawn.
    ///
    /// # Errors
    ///
    /// If readers delay it, and the withdrawals take more bytes than the limit. Nothing has
    /// changed.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::SnapshotRoutes};
    ///
    /// let routes: SnapshotRoutes<u8, u8> =
    ///     (0..9).map(|at| (Prefix::host(at), at % 3)).collect();
    /// // The routes of a peer.
    /// routes.retain(|_, &peer| peer != 2).unwrap();
    /// assert_eq!(routes.len(), 6);
    /// ```
    pub fn retain(
        &self,
        mut keep: impl FnMut(Prefix<A>, &V) -> bool,
    ) -> Result<Publication, WouldExceed<()>> {
        let withdrawn = |(prefix, value): (Prefix<A>, &V)| {
            (!keep(prefix, value)).then_some(Update { prefix, values: None })
        };
        // The pin ends here: it would delay the update.
        let updates: Vec<_> = self.pin().iter().filter_map(withdrawn).collect();
        self.write(updates).map_err(|refused| refused.map(drop))
    }

    /// Withdraws all routes, pending ones included. Visible at once: see
    /// [`replace`](Self::replace).
    ///
    /// # Errors
    ///
    /// If readers delay it. Nothing has changed.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::SnapshotRoutes};
    ///
    /// let routes: SnapshotRoutes<u8, ()> = [(Prefix::host(7), ())].into_iter().collect();
    /// routes.clear().unwrap();
    /// assert!(routes.is_empty());
    /// ```
    pub fn clear(&self) -> Result<(), WouldExceed<()>> {
        // The pin ends here: it would delay the change.
        let memory = self.pin().allocator().clone();
        self.swap_in(RouteTable::new_in(memory)).map_err(|refused| refused.map(drop))
    }

    /// Replaces all routes, pending ones included, by those of a table: a lookup answers from the
    /// former ones or from these. O(1); but the next update clones the table, once readers have
    /// ended, and drops the former routes.
    ///
    /// # Errors
    ///
    /// If readers delay it: the error has the table. Nothing has changed.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable, concurrent::SnapshotRoutes};
    ///
    /// let routes: SnapshotRoutes<u8, char> = [(Prefix::host(7), 'a')].into_iter().collect();
    /// let before = routes.pin();
    /// routes.replace(RouteTable::from([(Prefix::host(8), 'b')])).unwrap();
    /// assert!(before.values().eq(&['a']) && routes.pin().values().eq(&['b']));
    /// ```
    #[expect(clippy::result_large_err, reason = "what is refused is what came in")]
    pub fn replace(
        &self,
        table: RouteTable<A, V, M>,
    ) -> Result<(), WouldExceed<RouteTable<A, V, M>>> {
        self.swap_in(table)
    }

    /// Publishes pending updates, and brings the spare copy up to date, which drops replaced
    /// values; as far as readers permit. Returns `Visible` if no update is pending any more.
    ///
    /// The readers are all pins of all structures of this module. So a thread that polls this
    /// method, and holds several guards, has to repin *each* of them before the next call: those of
    /// other structures as well.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::{SnapshotRoutes, Publication}};
    ///
    /// let routes = SnapshotRoutes::<u8, ()>::new();
    /// let pinned = routes.pin();
    /// for host in 0..5 {
    ///     routes.insert(Prefix::host(host), ()).unwrap();
    /// }
    /// assert!(pinned.is_empty() && routes.publish() == Publication::Pending);
    /// drop(pinned);
    /// assert_eq!((routes.publish(), routes.len()), (Publication::Visible, 5));
    /// ```
    pub fn publish(&self) -> Publication {
        // The second call applies the updates of the first one to the other copy.
        [(); 2].map(|()| self.write([]).unwrap_or(Publication::Pending))[1]
    }
}
