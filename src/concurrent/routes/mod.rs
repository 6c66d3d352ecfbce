//! Longest-prefix match for many threads: readers never wait, and writers never for long.
//!
//! ```text
//!     readers                    ┌──────────── active = 0
//!     pin() ─ 1 look ───────────→│ copy 0 │    read only: every route that is visible
//!     pin() ─ 2 looks ──────────→│        │
//!                                 ╲      ╱     ← swapped by one store
//!     writer, under a lock        ╱      ╲
//!     insert() ── echo, queue ──→│ copy 1 │    the spare: nobody reads it, or nobody should for long
//! ```
//!
//! There are two [`RouteTable`]s, and a word says which of them is for the readers. A writer brings the
//! spare one up to date with the updates that it has missed (the *echo*), applies what is new (the
//! *queue*), and swaps. Readers that come from then on see the new table. Those that were there before
//! still look into the old one, so it must not be touched yet. Each of them has pinned its thread in
//! crossbeam's collector of garbage, and a closure that is deferred to that collector runs as soon as
//! the last one is gone: all it does is to say so.
//!
//! The next update helps the collector on for some microseconds if that has not happened yet, and then
//! does not wait any longer: it is queued, and the next one that finds the way free makes it visible. So
//! a reader that sleeps in the middle of a look-up keeps updates from becoming visible, and nobody from
//! running.
//!
//! # Guarantees
//!
//! - **R1, old or new.** A look-up answers from the routes before an update or from those behind it, never
//!   from anything between: no route is missing or there twice for a moment.
//! - **R2, a pin is a snapshot.** All answers that a [`PinnedRoutes`] gives are from one state of the table,
//!   until it is [repinned](PinnedRoutes::repin). Updates that were [applied](ConcurrentRoutes::apply)
//!   together are in it together.
//! - **R3, what is visible when.** Every pin that begins after a call has returned
//!   [`Publication::Visible`] has that update and all that were made before it, in the order in which
//!   they were made. Pins of a thread never go back. What is [`Publication::Pending`] becomes visible
//!   with the first later call of any thread that returns `Visible`; none is overtaken.
//! - **R4, bounded.** Updates that are kept for the spare copy or for both never take more bytes than the
//!   limit, and no more than twice as many are allocated for them. Above, an update is refused and handed
//!   back, and nothing has changed.
//! - **R5, progress.** To pin takes no lock, waits for nobody and never begins again. A writer waits for
//!   other writers, of which none waits for a reader while it has the lock; it gives way to readers a
//!   bounded number of times, and only to publish or if there is no room to be queued. A thread that holds a pin and writes gets `Pending`, and never hangs.
//! - **R6, code of others.** Values are cloned before the lock is taken and dropped after it is given back.
//!   If a clone panics, nothing has changed. If a drop does, the update has been made. Under the lock
//!   only methods of addresses run. If one panics, so does the call; readers have not seen anything; what
//!   was not visible is dropped, and the spare copy is cloned anew from the other before it is next used.
//!
//! # Price
//!
//! Twice the memory; each update is applied twice, and its value cloned once. A look-up takes the steps that
//! it takes in a [`RouteTable`], and a pin some ten nanoseconds, so take one for a burst. Values that are
//! dear go into an [`Arc`](std::sync::Arc). What has been replaced lives on in the spare copy until the
//! next update or [`publish`](ConcurrentRoutes::publish).
//!
//! With each swap readers come to a copy that is not in their caches. With the routes of the Internet and
//! ten thousand swaps a second, look-ups take about 2.3 times as long one by one, and 1.5 times in bursts;
//! if 32 updates are [applied](ConcurrentRoutes::apply) at once, 1.9 and 1.2 times. So swap seldom.
//!
//! The collector is the one that all structures of a process share. A pin of any of them that is held
//! for long holds up all of them, and one that is forgotten holds them up for good.
//!
//! # Others
//!
//! *A table that is replaced as a whole*, such as an `ArcSwap`: as simple for readers, but each update
//! copies all routes, which is milliseconds and more for those of the Internet. Right where updates
//! come by the minute, or all at once.
//!
//! *A lock for readers and writers*: one table only, but its readers write to a shared word, and wait
//! while a writer is at work.
//!
//! *The crate `left-right`*, from which the two copies are: its writer waits until the last reader is gone,
//! however long that takes, and its log grows until it is published.
//!
//! # Papers
//!
//! Ramalhete and Correia, *Left-Right: a concurrency control technique with wait-free population
//! oblivious reads* (2015), where readers count themselves in and out; Fraser, *Practical lock-freedom*
//! (2004), for the epochs that say here when they are gone.

mod copies;
mod log;
mod pinned;
mod traits;
mod write;

use alloc::vec::Vec;

use super::error::WouldExceed;
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::routes::RouteTable;
use copies::Copies;
use log::{Log, Update};

pub use pinned::PinnedRoutes;
pub use write::Publication;

/// Bytes of updates that are kept, if nothing else is said: of the Internet's, some seconds at a
/// hundred thousand a second.
const LIMIT: usize = 16 << 20;

/// How often a writer that has no room to wait yields the processor, if nothing else is said.
const PATIENCE: usize = 16;

/// Routes for many threads: look-ups never wait, updates are made by one thread at a time.
///
/// | method | cost |
/// |---|---|
/// | [`pin`](Self::pin) | a fence; then all that reads a [`RouteTable`], at its speed |
/// | [`insert`](Self::insert), [`remove`](Self::remove) | the same of a [`RouteTable`] twice, a swap, and a few rounds of the collector |
/// | [`apply`](Self::apply) | the same for many, with one swap |
/// | a clone of a [`RouteTable`] into it, [`From`] | O(routes), once |
///
/// The old value of a prefix is not handed out: it stays for the readers who still see it. Who wants it
/// asks a pin.
///
/// # Panics
///
/// A thread has one lock of a concurrent structure at a time. So whatever takes this one, which is all that
/// writes, [`pending`](Self::pending) and [`allocation_size`](Self::allocation_size), panics if a method of
/// an address calls it in an update; or the drop of a value, in an update in which such a method panics.
///
/// # Example
///
/// ```
/// use flowtable::concurrent::{ConcurrentRoutes, Publication};
/// use std::net::Ipv4Addr;
///
/// let routes = ConcurrentRoutes::<Ipv4Addr, &str>::new();
/// routes.insert("10.0.0.0/8".parse()?, "core").unwrap();
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         let pinned = routes.pin();
///         let found = pinned.lookup(&Ipv4Addr::new(10, 1, 2, 3)).map(|(_, &via)| via);
///         assert!(found == Some("core") || found == Some("lab"));
///     });
///     routes.insert("10.1.0.0/16".parse().unwrap(), "lab").unwrap();
/// });
/// // Nobody reads any more, so the last update is there, if it was not at once.
/// assert_eq!(routes.publish(), Publication::Visible);
/// assert_eq!(routes.pin().lookup(&Ipv4Addr::new(10, 1, 2, 3)).unwrap().1, &"lab");
/// # Ok::<(), flowtable::PrefixError>(())
/// ```
pub struct ConcurrentRoutes<A, V> {
    copies: Copies<RouteTable<A, V>, Log<A, V>>,
    limit: usize,
    patience: usize,
}

impl<A: Address, V> ConcurrentRoutes<A, V> {
    /// Without routes.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::concurrent::ConcurrentRoutes;
    ///
    /// let routes = ConcurrentRoutes::<u32, char>::new();
    /// assert!(routes.is_empty());
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::of(RouteTable::new(), RouteTable::new())
    }

    /// Two tables with the same routes.
    fn of(active: RouteTable<A, V>, spare: RouteTable<A, V>) -> Self {
        Self { copies: Copies::new(active, spare, Log::new()), limit: LIMIT, patience: PATIENCE }
    }

    /// With other bounds: updates that are kept take `bytes` at most, without what values own; and a
    /// writer that has no room to wait for readers, or [publishes](Self::publish), yields the processor to
    /// them `patience` times.
    ///
    /// An update of a prefix takes the size of the prefix, and of two values while it is pending and of
    /// one until the next update. So it is also the longest burst for [`apply`](Self::apply). By default
    /// there are 16 MiB, and 16 times.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentRoutes};
    ///
    /// let routes = ConcurrentRoutes::<u8, char>::new().with_limit(10, 0);
    /// let refused = routes.insert(Prefix::new(0x40, 2)?, 'a').unwrap_err();
    /// assert_eq!(refused.refused, (Prefix::new(0x40, 2)?, 'a')); // for so few bytes, each one is too long
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[must_use]
    pub fn with_limit(self, bytes: usize, patience: usize) -> Self {
        Self { limit: bytes, patience, ..self }
    }

    /// The routes as they are now, to read: a snapshot, until it is dropped or repinned.
    ///
    /// Dear to keep: as long as there is a pin, no more than one update becomes visible. To repin moves
    /// the collector on by one of three steps.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable, concurrent::ConcurrentRoutes};
    ///
    /// let table = RouteTable::from([(Prefix::new(0x40_u8, 2)?, 'a')]);
    /// let routes = ConcurrentRoutes::from(table);
    /// let (pinned, mut found) = (routes.pin(), [None; 2]);
    /// pinned.lookup_batch(&[0x41, 0x80], &mut found);
    /// assert_eq!(found.map(|route| route.map(|(_, &value)| value)), [Some('a'), None]);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn pin(&self) -> PinnedRoutes<'_, A, V> {
        PinnedRoutes::new(self)
    }

    /// The number of routes that are visible.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentRoutes};
    ///
    /// let routes: ConcurrentRoutes<u8, ()> = [(Prefix::host(7), ())].into_iter().collect();
    /// assert_eq!(routes.len(), 1);
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.pin().len()
    }

    /// Whether no route is visible.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentRoutes};
    ///
    /// let routes: ConcurrentRoutes<u8, ()> = [(Prefix::host(7), ())].into_iter().collect();
    /// assert!(!routes.is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of updates that are not visible yet. Waits for a writer. O(1).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentRoutes};
    ///
    /// let routes = ConcurrentRoutes::<u8, ()>::new();
    /// let pinned = routes.pin(); // in its own way
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

    /// Bytes that both copies and the updates between them have allocated, free ones included; without
    /// what values own. Waits for a writer. A step for each chunk of memory.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable, concurrent::ConcurrentRoutes};
    ///
    /// let table = RouteTable::from([(Prefix::new(0x40_u8, 2)?, 'a')]);
    /// let one = table.clone().allocation_size();
    /// assert_eq!(ConcurrentRoutes::from(table).allocation_size(), 2 * one);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        let active = self.pin().allocation_size();
        let bytes = |spare: &RouteTable<A, V>, log: &Log<A, V>| {
            spare.allocation_size() + log.allocation_size()
        };
        active + self.copies.lock().ask(bytes)
    }
}

impl<A: Address, V: Clone> ConcurrentRoutes<A, V> {
    /// Announces a route, or gives it another value.
    ///
    /// # Errors
    ///
    /// If readers have been in the way for so long that the updates that wait take as many bytes as they
    /// may. Nothing has changed. A thread that gets this and holds a pin repins it.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::{ConcurrentRoutes, Publication}};
    ///
    /// let routes = ConcurrentRoutes::<u8, char>::new();
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

    /// Withdraws a route, if there is one.
    ///
    /// # Errors
    ///
    /// As for [`insert`](Self::insert).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable, concurrent::ConcurrentRoutes};
    ///
    /// let prefix = Prefix::new(0x40_u8, 2)?;
    /// let routes = ConcurrentRoutes::from(RouteTable::from([(prefix, 'a')]));
    /// let before = routes.pin();
    /// routes.remove(&prefix).unwrap();
    /// assert_eq!((before.get(&prefix), routes.pin().get(&prefix)), (Some(&'a'), None));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn remove(&self, prefix: &Prefix<A>) -> Result<Publication, WouldExceed<Prefix<A>>> {
        self.write([Update { prefix: *prefix, values: None }])
            .map_err(|refused| refused.map(|[update]| update.prefix))
    }

    /// Announces and withdraws (no value) many routes: readers see all of them at once.
    ///
    /// # Errors
    ///
    /// As for [`insert`](Self::insert), with all updates in their order. A burst that takes more bytes than
    /// the limit is refused always.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable, concurrent::ConcurrentRoutes};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let routes = ConcurrentRoutes::from(RouteTable::from([(long, 'a')]));
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

    /// Makes visible what is pending, and brings the spare copy up to date, which drops what has been
    /// replaced; as far as no reader is in the way. `Visible` if nothing is pending any more.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::{ConcurrentRoutes, Publication}};
    ///
    /// let routes = ConcurrentRoutes::<u8, ()>::new();
    /// let pinned = routes.pin();
    /// for host in 0..5 {
    ///     routes.insert(Prefix::host(host), ()).unwrap();
    /// }
    /// assert!(pinned.is_empty() && routes.publish() == Publication::Pending);
    /// drop(pinned);
    /// assert_eq!((routes.publish(), routes.len()), (Publication::Visible, 5));
    /// ```
    pub fn publish(&self) -> Publication {
        // The second time the other copy gets what the first one has had.
        [(); 2].map(|()| self.write([]).unwrap_or(Publication::Pending))[1]
    }
}
