//! Concurrent longest-prefix match on one copy of the routes, with wait-free readers.
//!
//! ```text
//!     bits   0      6             18     24     30
//!            │ 001010 │ 000001 000000 │ 000010 │      │ ····
//!            └───┬────┴──────┬────────┴───┬────┘
//!              part         slot ─→ block ┴→ block ─→ …       of six bits each
//!
//!     reader      load the slot ─→ read blocks
//!     writer      copy a block, and those above it ─→ store the slot ─→ retire the old ones
//! ```
//!
//! It is the trie of a [`RouteTable`], with strides of six bits. A node is a *block*: bitmaps of
//! its routes and children, and the values themselves (`block.rs`). A block never changes, but for
//! one word. An update copies the block that has the route, and those above it up to the *slot* of
//! the first 18 bits, and publishes the copies by one store, of the word of that slot (`edit.rs`).
//! So all that a lookup reads follows from one load of one word.
//!
//! A route of up to 18 bits is *inherited* by all slots for which it is the longest one, which are
//! published one by one. Slots without longer routes share the block that has its value; the block
//! of another slot has a word with the pointer to the value, and the length. That word changes in
//! place, as long as the slot refers to the block: then a load of the word observes the routes of
//! its time. In a replaced block the word stays as it was at the replacement, which is after the
//! lookup has begun. The slots are 64 parts, by the first six bits; a part without routes of more
//! than six bits is one word (`slots.rs`).
//!
//! Old blocks are retired, and freed when all earlier pins have ended: read-copy-update. Blocks of
//! one size lie side by side, in chunks of 16 KiB, and new ones take the place of freed ones
//! (`pool/`).
//!
//! # Guarantees
//!
//! *Update*: the insertion, replacement or removal of one route. Each guarantee has a test of its
//! name in `tests/concurrent_routes/`.
//!
//! - **R1, old or new.** A lookup answers from the routes at one point in time between its begin
//!   and its end: no update is observed in part, and none is missed that a later one depends on. If
//!   more specific routes are inserted before a shorter one is removed, or the other way round,
//!   each address has a route at any time.
//! - **R2, visible on return.** When a call returns, its updates are visible: each lookup that
//!   begins later observes them. There is nothing to publish, and nothing is pending.
//! - **R3, order.** Lookups of one address observe updates in their order, and are monotonic.
//! - **R4, no snapshot.** Two lookups, also of one burst or under one pin, may observe different
//!   states. An update of up to 18 bits reaches the slots one after the other: while it is being
//!   made, of two addresses that it covers one may observe it and the other one not yet. So do the
//!   updates of [`apply`](ConcurrentRoutes::apply), [`retain`](ConcurrentRoutes::retain),
//!   [`clear`](ConcurrentRoutes::clear) and [`replace`](ConcurrentRoutes::replace). Lookups that
//!   must agree need a [consistent view](self#consistent-views).
//! - **R5, references.** A reference to a value is valid until the pin ends or is repinned, also
//!   if the route is replaced or removed.
//! - **R6, bounded.** Garbage, which is retired and not freed yet, is no more than the limit and
//!   one update of each writer. Above, an update is refused and returned, and nothing has changed.
//!   Calls that withdraw many routes do so step by step: if one is refused, the earlier ones are
//!   made, and the call can be repeated.
//! - **R7, progress.** A lookup takes no lock, never waits and never retries. A writer waits for
//!   other writers only; it yields to readers a bounded number of times, and only above the limit.
//!   A thread that holds a pin and writes never hangs.
//! - **R8, code of the caller.** Clones of values and methods of addresses run under the lock. If
//!   one panics, so does the call, and the update is not made; the clones made before the panic are
//!   dropped under the lock. Other values are dropped after the lock is released, those that
//!   readers may access by a thread that helps the collector.
//!
//! # Cost
//!
//! | | IPv4 | IPv6 |
//! |---|---|---|
//! | cache misses of a lookup, in series | slot, block and value | slot, a block for each six bits |
//! | insert or remove | a block, for more than 24 bits up to three | up to six, to 48 bits |
//! | of up to 18 bits | a word of 2^(18 - length) slots or of their blocks | as IPv4 |
//!
//! A value is cloned with its block, with up to 125 others: values that are expensive to clone go
//! into an [`Arc`](alloc::sync::Arc). A part of the address space with routes of more than six bits
//! has 32 KiB of slots, so a table of few routes takes up to 2 MiB; and blocks of each size have
//! 16 KiB.
//!
//! Lookups of IPv4 take as many instructions as in a `RouteTable`, and as long where the memory is
//! in the CPU's caches and TLB. A block is one more cache line to read. The pool keeps the blocks
//! on few pages: the blocks of the Internet's routes are on a fifth fewer pages than in a heap,
//! also after millions of updates. So single lookups take up to 1.3 times as long, lookups in
//! bursts up to 1.2 times. Single lookups of IPv6 take two thirds of the instructions, but 1.3 to
//! 1.4 times as long: they read a block for each six bits, one after the other, where a
//! `RouteTable` reads three hashed levels at once. Bursts of IPv6 overlap their cache misses, and
//! their steps have no branches: 1.2 to 1.3 times.
//!
//! A lookup of the Internet's IPv6 routes reads 4.4 blocks in a mean. It reads 4.1 if blocks with
//! one child are left out, 3.9 if the last 16 routes of a subtree are in one block, and 3.6 with
//! 64. Slots of 30 bits, in groups below the slots, leave 2.4 blocks, and a lookup took as long:
//! the blocks above bit 30 are in the CPU's caches. In single lookups, steps without branches took
//! 5 to 12 % longer than branches. So there is no shortcut.
//!
//! An update of the default route reads the blocks of all slots, and changes a word for each: up to
//! 24 ms with the 900,000 IPv4 routes of the Internet, for which other writers wait, but no reader.
//!
//! # Consistent views
//!
//! Several lookups from one state of the routes, and updates that become visible together, need two
//! copies of all routes. A [`RouteTable`] in an `ArcSwap` is copied for each batch of updates,
//! which takes milliseconds and more for the routes of the Internet:
//!
//! ```
//! use arc_swap::ArcSwap;
//! use flowtable::RouteTable;
//! use std::net::Ipv4Addr;
//! use std::sync::Arc;
//!
//! let routes = RouteTable::<Ipv4Addr, u16>::from([("10.0.0.0/8".parse()?, 1)]);
//! let shared = ArcSwap::from_pointee(routes);
//! let view = shared.load();
//!
//! let mut next = RouteTable::clone(&view);
//! next.insert("10.1.0.0/16".parse()?, 2);
//! next.insert("10.2.0.0/16".parse()?, 2);
//! shared.store(Arc::new(next));
//!
//! let both = [Ipv4Addr::new(10, 1, 0, 1), Ipv4Addr::new(10, 2, 0, 1)];
//! let ports = |routes: &RouteTable<_, _>| both.map(|address| *routes.lookup(&address).unwrap().1);
//! assert_eq!((ports(&view), ports(&shared.load())), ([1, 1], [2, 2]));
//! # Ok::<(), flowtable::PrefixError>(())
//! ```
//!
//! The crate `left-right` applies each update to both copies instead. Its writer waits for the
//! readers of the copy that it changes:
//!
//! ```
//! use flowtable::{Prefix, RouteTable};
//! use left_right::Absorb;
//! use std::net::Ipv4Addr;
//!
//! /// A route table with the updates of `left-right`.
//! #[derive(Clone, Default)]
//! struct Routes(RouteTable<Ipv4Addr, u16>);
//!
//! /// A new value, or a withdrawal.
//! type Update = (Prefix<Ipv4Addr>, Option<u16>);
//!
//! impl Absorb<Update> for Routes {
//!     fn absorb_first(&mut self, (prefix, value): &mut Update, _: &Self) {
//!         match *value {
//!             Some(value) => self.0.insert(*prefix, value),
//!             None => self.0.remove(prefix),
//!         };
//!     }
//!
//!     fn sync_with(&mut self, first: &Self) {
//!         self.0 = first.0.clone();
//!     }
//! }
//!
//! let (mut writer, reader) = left_right::new_from_empty::<Routes, Update>(Routes::default());
//! writer.append(("10.0.0.0/8".parse()?, Some(1)));
//! writer.append(("10.1.0.0/16".parse()?, Some(2)));
//! assert_eq!(reader.enter().unwrap().0.len(), 0);
//! writer.publish(); // both become visible
//! let view = reader.enter().unwrap();
//! assert_eq!(view.0.lookup(&Ipv4Addr::new(10, 1, 0, 1)).unwrap().1, &2);
//! assert_eq!(view.0.lookup(&Ipv4Addr::new(10, 2, 0, 1)).unwrap().1, &1);
//! # Ok::<(), flowtable::PrefixError>(())
//! ```
//!
//! After each swap readers access a copy that is not in their caches.
//!
//! # Papers
//!
//! The bitmaps of Eatherton and others, *Tree bitmap* (2004), and of Asai and Ohara, *Poptrie*
//! (2015), which also publishes the copy of a subtree by one store; Fraser, *Practical
//! lock-freedom* (2004), for the epochs.

mod block;
mod check;
mod edit;
mod header;
mod list;
mod lookup;
#[cfg(all(test, crossbeam_loom))]
mod loom_models;
mod pool;
mod slots;
mod write;

use core::fmt;
use core::marker::PhantomData;

use super::collector::Garbage;
use super::pinned::{Guard, Pinned};
use super::sync::{AtomicUsize, Lock, Ordering};
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::memory::Allocator;
use crate::raw::bit_ops::BitOps;
use crate::routes::RouteTable;
use edit::State;
use slots::Slots;
use write::Unshared;

pub(super) use list::CoveringValues;
pub(super) use write::remove_each;

/// A concurrent route table: wait-free lookups beside updates by one thread at a time, in one copy.
///
/// | method | cost |
/// |---|---|
/// | [`pin`](Self::pin) | a fence; hold it for a burst |
/// | [`lookup`](super::Pinned::lookup) | a slot, and a block for each six bits below bit 18 |
/// | [`insert`](Self::insert), [`remove`](Self::remove) | copies of some blocks; or many slots |
/// | [`iter`](super::Pinned::iter), [`retain`](Self::retain) | O(routes), for which writers wait |
///
/// A pin is no snapshot: see [the guarantees](self). For lookups that must agree, and updates that
/// become visible together, see [consistent views](self#consistent-views).
///
/// # Panics
///
/// A thread holds one lock of a concurrent structure at a time. So methods that take this one,
/// which are those that write, and [`get`](super::Pinned::get), [`iter`](super::Pinned::iter) and
/// [`allocation_size`](Self::allocation_size), panic if the clone of a value or a method of an
/// address calls them during an update.
///
/// # Example
///
/// ```
/// use flowtable::concurrent::ConcurrentRoutes;
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
/// assert_eq!(routes.pin().lookup(&Ipv4Addr::new(10, 1, 2, 3)).unwrap().1, &"lab");
/// # Ok::<(), flowtable::PrefixError>(())
/// ```
#[doc(alias("fib", "lpm", "rcu"))]
pub struct ConcurrentRoutes<A, V> {
    slots: Slots<V>,
    state: Lock<State<V>>,
    /// The number of routes, for readers.
    len: AtomicUsize,
    garbage: Garbage,
    /// The operations on bits, if the CPU has instructions for them.
    fast: Option<BitOps<true>>,
    addresses: PhantomData<A>,
}

impl<A: Address, V> ConcurrentRoutes<A, V> {
    /// Creates a table without routes.
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
        Self::of(Slots::new(), State::new())
    }

    fn of(slots: Slots<V>, state: State<V>) -> Self {
        Self {
            len: AtomicUsize::new(state.len),
            slots,
            state: Lock::new(state),
            garbage: Garbage::new(),
            fast: BitOps::detected(),
            addresses: PhantomData,
        }
    }

    /// Sets the limit on garbage, which is retired and not freed yet, in bytes, and the patience.
    ///
    /// A writer that finds more than `bytes` helps the collector. If readers delay it, the writer
    /// yields and helps again, `patience` times; then it returns
    /// [`Refusal`](crate::concurrent::Refusal). It never waits without bound: the reader
    /// that delays the collector may be the thread itself. By default there are 64 MiB, and no
    /// patience.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentRoutes};
    ///
    /// let routes = ConcurrentRoutes::<u8, u32>::new().with_garbage_limit(4096, 0);
    /// let reader = routes.pin();
    /// let insert = |value| routes.insert(Prefix::host(7), value);
    /// // While this reader holds its pin, nothing that it may access is freed.
    /// let refused = (0..).find_map(|value| insert(value).err()).unwrap();
    /// assert_eq!(reader.lookup(&7).unwrap().1, &(refused.refused.1 - 1));
    /// ```
    #[must_use]
    pub fn with_garbage_limit(mut self, bytes: usize, patience: u32) -> Self {
        (self.garbage.limit, self.garbage.patience) = (bytes, patience);
        self
    }

    /// Returns the bytes of garbage: blocks that are retired and not freed yet, with the memory
    /// that the collector needs for them, and without memory that values own.
    pub fn garbage(&self) -> usize {
        self.garbage.retired()
    }

    /// Pins the table for lookups.
    ///
    /// Blocks that are retired during a pin are freed after it.
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
    /// assert_eq!(found.map(|route| route.map(|(_, &value)| value)), [Some('a'), None]);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
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
    /// use flowtable::{Prefix, concurrent::{ConcurrentRoutes, pin}};
    ///
    /// let here: ConcurrentRoutes<u8, char> = [(Prefix::host(7), 'a')].into_iter().collect();
    /// let there: ConcurrentRoutes<u16, char> = [(Prefix::host(9), 'b')].into_iter().collect();
    /// let guard = pin();
    /// assert_eq!(here.pinned(&guard).lookup(&7).unwrap().1, &'a');
    /// assert_eq!(there.pinned(&guard).lookup(&9).unwrap().1, &'b');
    /// ```
    #[inline]
    #[must_use]
    pub const fn pinned<'g>(&'g self, guard: &'g Guard) -> Pinned<'g, Self, &'g Guard> {
        Pinned::of(self, guard)
    }

    /// Returns the number of routes.
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
        // Acquire: pairs with the Release of writers: the updates it counts are visible.
        self.len.load(Ordering::Acquire)
    }

    /// Returns whether there is no route.
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

    /// Returns the bytes allocated, without garbage and memory that values own. Waits for a writer.
    /// O(1), and one step for each chunk of memory of the short routes, and for each block that was
    /// freed since the last update.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, concurrent::ConcurrentRoutes};
    ///
    /// let routes = ConcurrentRoutes::<u32, u32>::new();
    /// assert_eq!(routes.allocation_size(), 0);
    /// routes.insert(Prefix::host(7), 1).unwrap();
    /// assert!(routes.allocation_size() >= 4096 * 8); // the slots of the first six bits
    /// ```
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        let mut state = self.state.lock();
        state.pool.return_freed(usize::MAX);
        state.bytes + state.pool.unused_bytes() + state.short.allocation_size()
    }
}

impl<A: Address, V> Default for ConcurrentRoutes<A, V> {
    fn default() -> Self {
        Self::new()
    }
}

/// Formats the routes, in order, as a map.
impl<A: Address + fmt::Debug, V: fmt::Debug> fmt::Debug for ConcurrentRoutes<A, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.pin().iter()).finish()
    }
}

/// Omits the routes: to list them takes a lock.
impl<A, V, G> fmt::Debug for Pinned<'_, ConcurrentRoutes<A, V>, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pinned").finish_non_exhaustive()
    }
}

/// Converts a table: O(routes).
impl<A, V, M> From<RouteTable<A, V, M>> for ConcurrentRoutes<A, V>
where
    A: Address,
    V: Clone + Send + 'static,
    M: Allocator + Clone,
{
    fn from(table: RouteTable<A, V, M>) -> Self {
        table.into_iter().collect()
    }
}

impl<A: Address, V: Clone + Send + 'static> FromIterator<(Prefix<A>, V)>
    for ConcurrentRoutes<A, V>
{
    fn from_iter<I: IntoIterator<Item = (Prefix<A>, V)>>(routes: I) -> Self {
        Unshared::of(routes).share()
    }
}
