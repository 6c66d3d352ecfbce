//! Concurrent longest-prefix match in one copy: wait-free readers, beside which routes change.
//!
//! ```text
//!     address   0      6             18     24    30
//!               │ region│    slot     │ stride│ …
//!     regions   ▕ ▪ ▪ … ▪ ▏ 64
//!                 │ └ narrow: one word at bit 6
//!                 └── wide: 4096 of them at bit 18       word  ▕ node │ route ▏ 64 bits, atomic
//!                                                                │      └ the longest route above
//!                                                                ▼
//!     blocks    ▕ inner │ outer │ branches ▏ values … ▏ children …      never changed
//! ```
//!
//! Readers access a *forwarding table*, writers have all routes in a [`RouteTable`], from which
//! they compute it. A word of the forwarding table has the numbers of two blocks: of the node for
//! the routes of the slot, and of the longest route above it. Blocks are as the nodes of a
//! [`RouteTable`], with the values in them, and never change. An update copies the blocks on the
//! path from a word to the route, and publishes the copy by a store of the word: read-copy-update.
//! The replaced blocks are *retired*, and reused when all earlier pins have ended.
//!
//! A route of up to six bits is in the words of all slots that it covers, and so is one of up to 18
//! bits in a wide region. A region becomes wide when it has two thousand routes.
//!
//! # Guarantees
//!
//! - **R1, old or new.** A lookup answers from the routes before or after an update, never from a
//!   state in between: for its address, no route is temporarily missing or duplicated. Its answer
//!   is that of one moment between its begin and its end.
//! - **R2, no snapshot.** Two lookups of one pin may be of different moments, also those of one
//!   batch. An update of a route of up to 18 bits becomes visible one slot of 18 bits after the
//!   other, each once. [`replace`](ConcurrentRoutes::replace) and
//!   [`clear`](ConcurrentRoutes::clear) are visible at once. References that a lookup has returned
//!   stay valid, and do not change, until the pin is dropped or
//!   [repinned](PinnedRoutes::repin).
//! - **R3, order of visibility.** When a call has returned, its update is visible to every lookup
//!   that begins later, in pins of any age. Updates of one address become visible in the order in
//!   which they were made, and lookups of one address are monotonic.
//! - **R4, bounded.** Replaced blocks that readers delay take no more bytes than the limit and
//!   those of one step of updates for each writing thread. Above, an update is refused and
//!   returned, and nothing has changed. No update is refused because of the number of updates
//!   before it, or in the same call.
//! - **R5, progress.** To pin and to look up take no lock, never wait and never retry. A writer
//!   waits for other writers, none of which waits for a reader. An update is visible without any
//!   later call.
//! - **R6, code of the caller.** Under the lock only methods of addresses run. If one panics, so
//!   does the call, and the update may have been made or not; the next writer recomputes
//!   the forwarding table. Values are [`Copy`], so they have no destructors.
//!
//! # Cost
//!
//! | | |
//! |---|---|
//! | lookup | two dependent cache misses with IPv4: a slot, a value; with IPv6 one for each node |
//! | update | a node and those above it up to the word are copied; a pin, a lock |
//! | of 7 to 18 bits in a wide region | up to 4096 words are stored |
//! | of up to 6 bits | all words that it covers: up to 2^18 |
//! | [`replace`](ConcurrentRoutes::replace), [`From`] a [`RouteTable`] | O(routes) |
//!
//! With the routes of the Internet, lookups of IPv4 take 1.3 times as long as in a [`RouteTable`]
//! that does not change, and bursts 1.2 times, also beside ten thousand updates a second. Those of
//! IPv6 follow the nodes, which a [`RouteTable`] finds by hashes: they take twice as long, and
//! bursts, which are not overlapped below the first node, four times.
//! [`SnapshotRoutes`](super::SnapshotRoutes) is faster for IPv6.
//!
//! Values are copied with their node, which has up to 126: so store indices or references rather
//! than large values. Memory is that of a [`RouteTable`], and for readers about as much again.
//! Memory of removed routes is reused for others;
//! [`shrink_to_fit`](ConcurrentRoutes::shrink_to_fit) releases it.
//!
//! # Alternatives
//!
//! [`SnapshotRoutes`](super::SnapshotRoutes): a pin is a snapshot of all routes, with all methods
//! of a [`RouteTable`], and values are of any type that is [`Clone`]. Its readers are slower beside
//! many updates, as each update moves them to another copy, and a reader that stays pinned delays
//! the visibility of updates.
//!
//! # Papers
//!
//! McKenney and others, *Read-copy update* (2001); Nilsson and Karlsson, *IP-address lookup using
//! LC-tries* (1999), whose trie in the Linux kernel is updated in this way; Asai and Ohara,
//! *Poptrie* (2015), for the direct table above nodes of bitmaps that are replaced atomically.

mod arena;
mod block;
mod build;
mod check;
mod fib;
#[cfg(all(test, crossbeam_loom))]
mod loom_models;
mod pinned;
mod space;
mod traits;
mod update;
mod writer;

use alloc::boxed::Box;

use super::garbage::{self, Garbage};
use super::guard::{Guard, pin};
use super::lock::Lock;
use super::sync::{AtomicPtr, AtomicUsize, Ordering};
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::routes::RouteTable;
use fib::Fib;
use writer::Writer;

pub use pinned::PinnedRoutes;

/// A concurrent route table in one copy: wait-free lookups, updates by one thread at a time.
///
/// | method | cost |
/// |---|---|
/// | [`pin`](Self::pin) | a fence; then lookups at the speed of a [`RouteTable`] |
/// | [`insert`](Self::insert), [`remove`](Self::remove) | a copy of the path to the node |
/// | [`apply`](Self::apply), [`retain`](Self::retain) | the sum of their updates, in steps |
/// | [`get`](Self::get), [`to_table`](Self::to_table) | the lock of the writers |
/// | [`From`] a [`RouteTable`], [`replace`](Self::replace) | O(routes) |
///
/// # Panics
///
/// A thread holds one lock of a concurrent structure at a time. So all methods that take this one,
/// which are all but [`pin`](Self::pin), [`pinned`](Self::pinned), [`len`](Self::len) and those of
/// the garbage, panic if a method of an address calls them during an update.
///
/// # Example
///
/// ```
/// use flowtable::ConcurrentRoutes;
/// use std::net::Ipv4Addr;
///
/// let routes = ConcurrentRoutes::<Ipv4Addr, &str>::new();
/// routes.insert("10.0.0.0/8".parse()?, "core")?;
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         let pinned = routes.pin();
///         let found = pinned.lookup(&Ipv4Addr::new(10, 1, 2, 3)).map(|(_, &via)| via);
///         assert!(found == Some("core") || found == Some("lab"));
///     });
///     routes.insert("10.1.0.0/16".parse().unwrap(), "lab").unwrap();
/// });
/// assert_eq!(routes.pin().lookup(&Ipv4Addr::new(10, 1, 2, 3)).unwrap().1, &"lab");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("fib", "lpm", "rcu"))]
pub struct ConcurrentRoutes<A, V> {
    /// From a box. Replaced under the lock; freed by the collector, or with `self`.
    fib: AtomicPtr<Fib<V>>,
    len: AtomicUsize,
    writer: Lock<State<A, V>>,
    garbage: Garbage,
}

/// What the lock protects.
struct State<A, V> {
    writer: Writer<A, V>,
    /// Whether an update has begun and not ended, as a method of an address has panicked.
    is_dirty: bool,
}

#[allow(unsafe_code)]
// SAFETY: the forwarding table is freed with it, and values are `Copy`, which any thread may free.
unsafe impl<A: Send, V: Send> Send for ConcurrentRoutes<A, V> {}

#[allow(unsafe_code)]
// SAFETY: readers of all threads have shared references to values; the lock holder receives
// addresses and values of other threads.
unsafe impl<A: Send, V: Send + Sync> Sync for ConcurrentRoutes<A, V> {}

impl<A: Address, V: Copy> ConcurrentRoutes<A, V> {
    /// The default limit on garbage, in bytes.
    pub const GARBAGE_LIMIT: usize = garbage::LIMIT;

    /// Creates a table without routes.
    ///
    /// # Example
    ///
    /// ```
    /// let routes = flowtable::ConcurrentRoutes::<u32, char>::new();
    /// assert!(routes.is_empty());
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::from(RouteTable::new())
    }

    /// Sets the limit on garbage in bytes: above it, a writer helps the collector, yields to
    /// readers `patience` times, and then refuses its update.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ConcurrentRoutes, Prefix};
    ///
    /// let routes = ConcurrentRoutes::<u8, u32>::new().with_garbage_limit(10_000, 0);
    /// let mut reader = routes.pin();
    /// // What the reader may access is not freed.
    /// let refused = (0..).find_map(|now| routes.insert(Prefix::host(1), now).err()).unwrap();
    /// assert!(refused.retired > 10_000 && refused.limit == 10_000);
    /// // The reader sees all updates that have been made, nevertheless.
    /// assert_eq!(reader.lookup(&1).unwrap().1 + 1, refused.refused.1);
    /// reader.repin();
    /// ```
    #[must_use]
    pub fn with_garbage_limit(mut self, bytes: usize, patience: u32) -> Self {
        (self.garbage.limit, self.garbage.patience) = (bytes, patience);
        self
    }

    /// Returns the limit on garbage, in bytes.
    #[must_use]
    pub fn garbage_limit(&self) -> usize {
        self.garbage.limit
    }

    /// Returns the bytes of replaced blocks that have been deferred to the collector, and are not
    /// free yet.
    #[must_use]
    pub fn garbage(&self) -> usize {
        self.garbage.retired()
    }

    /// Pins the thread, for lookups.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ConcurrentRoutes, Prefix};
    ///
    /// let routes = ConcurrentRoutes::from_iter([(Prefix::new(0x40_u8, 2)?, 'a')]);
    /// let (pinned, mut found) = (routes.pin(), [None; 2]);
    /// pinned.lookup_batch(&[0x41, 0x80], &mut found);
    /// assert_eq!(found.map(|route| route.map(|(_, &value)| value)), [Some('a'), None]);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn pin(&self) -> PinnedRoutes<'_, A, V> {
        PinnedRoutes::new(self, pin())
    }

    /// Returns a view for lookups, under a guard of the thread that other structures share: see
    /// [`concurrent::pin`](super::pin).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ConcurrentRoutes, Prefix, concurrent::pin};
    ///
    /// let here = ConcurrentRoutes::from_iter([(Prefix::host(7_u8), 'a')]);
    /// let there = ConcurrentRoutes::from_iter([(Prefix::host(9_u16), 'b')]);
    /// let guard = pin();
    /// assert_eq!(here.pinned(&guard).lookup(&7).unwrap().1, &'a');
    /// assert_eq!(there.pinned(&guard).lookup(&9).unwrap().1, &'b');
    /// ```
    #[inline]
    #[must_use]
    pub fn pinned<'r, 'g>(&'r self, guard: &'g Guard) -> PinnedRoutes<'r, A, V, &'g Guard> {
        PinnedRoutes::new(self, guard)
    }

    /// Returns the number of routes.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ConcurrentRoutes, Prefix};
    ///
    /// let routes = ConcurrentRoutes::from_iter([(Prefix::host(7_u8), ())]);
    /// assert!(routes.len() == 1 && !routes.is_empty());
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        // Acquire: pairs with the Release of a writer.
        self.len.load(Ordering::Acquire)
    }

    /// Returns whether there is no route.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value of the route of exactly this prefix. Takes the lock of the writers.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ConcurrentRoutes, Prefix};
    ///
    /// let routes = ConcurrentRoutes::from_iter([(Prefix::new(0x40_u8, 2)?, 'a')]);
    /// assert_eq!(routes.get(&Prefix::new(0x40, 2)?), Some('a'));
    /// assert_eq!(routes.get(&Prefix::new(0x40, 3)?), None); // covered, but not a route
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[must_use]
    pub fn get(&self, prefix: &Prefix<A>) -> Option<V> {
        self.writer.lock().writer.table.get(prefix).copied()
    }

    /// Returns a copy of all routes, of one moment. Takes the lock of the writers; O(routes).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ConcurrentRoutes, Prefix};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let routes = ConcurrentRoutes::from_iter([(long, 'a'), (short, 'b')]);
    /// assert!(routes.to_table().iter().eq([(short, &'b'), (long, &'a')]));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[must_use]
    pub fn to_table(&self) -> RouteTable<A, V> {
        self.writer.lock().writer.table.clone()
    }

    /// Returns the bytes allocated for the routes, of readers and writers, free and replaced blocks
    /// included. Takes the lock of the writers.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ConcurrentRoutes, Prefix};
    ///
    /// let routes = ConcurrentRoutes::<u32, u8>::new();
    /// let empty = routes.allocation_size();
    /// (0..99).for_each(|host| drop(routes.insert(Prefix::host(host), 7)));
    /// assert!(routes.allocation_size() > empty);
    /// ```
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        let state = self.writer.lock();
        self.fib().allocation_size() + state.writer.allocation_size()
    }

    /// Returns the forwarding table, which is not freed while the caller is pinned or holds the
    /// lock.
    #[inline(always)]
    #[allow(unsafe_code)]
    fn fib(&self) -> &Fib<V> {
        // Acquire: pairs with the Release of a writer; the table is complete.
        let fib = self.fib.load(Ordering::Acquire);
        // SAFETY: from a box, which is replaced under the lock, and freed after all pins.
        unsafe { &*fib }
    }
}

impl<A, V> Drop for ConcurrentRoutes<A, V> {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        let fib = self.fib.load(Ordering::Relaxed);
        // SAFETY: from a box; there are no readers any more, and it is freed once.
        drop(unsafe { Box::from_raw(fib) });
        self.garbage.reduce_at_drop();
    }
}
