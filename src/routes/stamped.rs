//! Routes with stamps: a load detects that the route of a decision has changed.
//!
//! A flow cache saves a lookup of the route for each packet, if the flow stores the decision for
//! its first packet. Then a change of a route has to reach the flows that have used it, without a
//! walk over all flows:
//!
//! ```text
//!     flow      value: next hop, stamp ──┐ cell, generation     a packet: is the generation of the
//!                                        ▼                      cell still that of the stamp?
//!     cells     │ 0: no route │ 10/8: 7, 3 │ 10.1/16: 9, 9 │ …  generation, created
//!                                   ▲
//!     routes    10/8 ── cell 1 ─────┘     10.1/16 ── cell 2
//! ```
//!
//! Each route has a cell, and there is one for addresses without a route. Its *generation* is new
//! when
//! - the route is replaced or withdrawn: all flows that have used it are stale;
//! - a route below it is announced, which has no route between: flows that have used the upper one
//!   may be stale, if their addresses are of the lower one. [`refresh`](StampedRoutes::refresh)
//!   looks the route up: it is still the same if it was created before the stamp.
//!
//! So exactly the flows are stale whose addresses have a different route now, or whose route has
//! been replaced; and each other flow of the upper route looks up once.
//!
//! `concurrent::ConcurrentStampedRoutes` is the counterpart for several threads. Cells, stamps and
//! the changes of an update are the same module (`generations.rs`); the two tables differ in the
//! structure that they wrap and in who writes. Neither replaces the other: this one needs neither
//! `std` nor clones of values, the other one is read while it changes.
//!
//! Cost: the check of a flow is one load of a cell, which all flows of a route share. An update
//! costs an update of a [`RouteTable`] and, for a new prefix, a lookup and a walk along the routes
//! that cover it. A route needs 20 bytes more. Cells are in blocks that double, so growth copies
//! nothing.

use alloc::vec::Vec;
use core::{fmt, mem};

use super::generations::{
    BLOCKS, CellNumbers, Generations, Refreshed, RouteStamp, Stamped, UNCHANGED, cells_of, place,
};
use super::store::exhausted;
use super::{NoMemory, RouteTable};
use crate::invariant::InvariantError;
use crate::key::bits::Address;
use crate::key::prefix::Prefix;

/// Blocks of cells.
#[derive(Clone, Debug)]
struct Cells([Vec<u64>; BLOCKS]);

impl Generations for Cells {
    #[inline]
    fn generation(&self, cell: u32) -> u64 {
        let (block, index) = place(cell);
        self.0[block].get(index).copied().unwrap_or(UNCHANGED)
    }

    fn set(&mut self, cell: u32, generation: u64) {
        let (block, index) = place(cell);
        match self.0[block].get_mut(index) {
            Some(changed) => *changed = generation,
            None => self.0[block].push(generation),
        }
    }

    fn add(&mut self, block: usize) -> Option<()> {
        let cells = &mut self.0[block];
        cells.try_reserve_exact(cells_of(block) - cells.len()).ok()
    }
}

/// A routing table that detects stale decisions by stamps.
///
/// The [module](crate::routes::stamped) defines which decisions are stale.
///
/// | method | cost |
/// |---|---|
/// | `is_current` | one load |
/// | `lookup`, `resolve`, `refresh` | as [`RouteTable::lookup`], and a cell |
/// | `insert`, `try_insert`, `remove` | as in a [`RouteTable`], and the path to the prefix |
/// | `lookup_batch` | as [`RouteTable::lookup_batch`] |
/// | `iter`, `retain`, `extract_if`, `clear`, `clone`, `==` | O(routes) |
/// | `len`, `is_empty` | O(1) |
///
/// # Example
///
/// ```
/// use flowtable::flow_cache::{Config, Packet};
/// use flowtable::routes::{Refreshed, RouteStamp, StampedRoutes};
/// use flowtable::{FiveTuple, FlowCache, Timestamp};
/// use std::net::Ipv4Addr;
///
/// /// What a router has decided for a flow.
/// #[derive(Default)]
/// struct Decision {
///     port: Option<u16>,
///     stamp: RouteStamp,
/// }
///
/// type Key = FiveTuple<Ipv4Addr>;
/// type Flows = FlowCache<Key, Decision>;
///
/// /// The port of a packet, and whether it was looked up.
/// fn forward(
///     flows: &mut Flows,
///     routes: &StampedRoutes<Ipv4Addr, u16>,
///     key: &Key,
/// ) -> (Option<u16>, bool) {
///     let seen = flows.observe(key, Packet::UDP, Timestamp::ZERO).expect("no flow is pinned");
///     let Decision { port, stamp } = seen.flow;
///     if routes.is_current(stamp) {
///         return (*port, false); // nearly always
///     }
///     match routes.refresh(&key.dst, stamp) {
///         Refreshed::Same => {}
///         Refreshed::Changed(route) => *port = route.map(|(_, port)| *port),
///     }
///     (*port, true)
/// }
///
/// let mut flows: Flows = FlowCache::new(Config::new(100)?);
/// let mut routes = StampedRoutes::from_iter([("10.0.0.0/8".parse()?, 1)]);
/// let key = |dst| FiveTuple { src: [1, 1, 1, 1].into(), dst, sport: 5, dport: 53, protocol: 17 };
/// let [near, far] = [[10, 1, 0, 1], [10, 2, 0, 1]].map(|dst| key(dst.into()));
/// for is_new in [true, false] {
///     assert_eq!(forward(&mut flows, &routes, &near), (Some(1), is_new));
///     assert_eq!(forward(&mut flows, &routes, &far), (Some(1), is_new));
/// }
/// // A route that is more specific: of the flows below the other one, one has another route.
/// routes.insert("10.1.0.0/16".parse()?, 2);
/// assert_eq!(forward(&mut flows, &routes, &near), (Some(2), true));
/// assert_eq!(forward(&mut flows, &routes, &far), (Some(1), true));
/// assert_eq!(forward(&mut flows, &routes, &far), (Some(1), false));
/// // Its end is that of its own flows only.
/// routes.remove(&"10.1.0.0/16".parse()?);
/// assert_eq!(forward(&mut flows, &routes, &far), (Some(1), false));
/// assert_eq!(forward(&mut flows, &routes, &near), (Some(1), true));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub struct StampedRoutes<A, V> {
    table: RouteTable<A, Stamped<V>>,
    cells: Cells,
    numbers: CellNumbers,
}

impl<A: Address, V> StampedRoutes<A, V> {
    /// Creates an empty table, which allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        let cells = Cells([const { Vec::new() }; BLOCKS]);
        Self { table: RouteTable::new(), cells, numbers: CellNumbers::new() }
    }

    /// Returns the number of routes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns whether the table has no routes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Inserts or replaces a route. Returns the previous value of the prefix.
    ///
    /// Aborts like other collections if there is no memory: see [`try_insert`](Self::try_insert).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, routes::StampedRoutes};
    ///
    /// let mut ports = StampedRoutes::<u16, char>::new();
    /// assert_eq!(ports.insert(Prefix::new(0, 6)?, 'a'), None); // 0 to 1023
    /// let (stamp, route) = ports.resolve(&80);
    /// assert_eq!(route, Some((Prefix::new(0, 6)?, &'a')));
    /// assert_eq!(ports.insert(Prefix::new(0, 6)?, 'b'), Some('a'));
    /// assert!(!ports.is_current(&stamp));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn insert(&mut self, prefix: Prefix<A>, value: V) -> Option<V> {
        match self.try_insert(prefix, value) {
            Ok(old) => old,
            Err(NoMemory { .. }) => exhausted(),
        }
    }

    /// Inserts or replaces a route, if there is memory. Returns the previous value of the prefix.
    ///
    /// # Errors
    ///
    /// If there is no memory for a new route. The routes remain as they were, and the error has the
    /// value.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, routes::StampedRoutes};
    ///
    /// let mut ports = StampedRoutes::<u16, char>::new();
    /// assert_eq!(ports.try_insert(Prefix::new(0, 6)?, 'a').ok(), Some(None));
    /// assert_eq!((ports.len(), ports.is_empty()), (1, false));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn try_insert(&mut self, prefix: Prefix<A>, value: V) -> Result<Option<V>, NoMemory<V>> {
        let Self { table, cells, numbers } = self;
        if let Some(route) = table.get_mut(&prefix) {
            let created = numbers.change(cells, route.created.cell());
            let old = mem::replace(route, Stamped { created, value });
            return Ok(Some(old.value));
        }
        let upper = table.covering(&prefix).last();
        let upper = upper.map_or(RouteStamp::NO_ROUTE, |(_, route)| route.created);
        let Some(created) = numbers.insert(cells, None, upper) else {
            return Err(NoMemory { refused: value });
        };
        match table.try_insert(prefix, Stamped { created, value }) {
            Ok(old) => Ok(old.map(|route| route.value)),
            Err(NoMemory { refused }) => {
                numbers.release(cells, created.cell());
                Err(NoMemory { refused: refused.value })
            }
        }
    }

    /// Removes a route. Returns its value, if it existed.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, routes::{Refreshed, StampedRoutes}};
    ///
    /// let mut ports = StampedRoutes::from_iter([(Prefix::new(0_u16, 6)?, 'a')]);
    /// let (mut stamp, _) = ports.resolve(&80);
    /// assert_eq!(ports.remove(&Prefix::new(0, 6)?), Some('a'));
    /// assert_eq!(ports.refresh(&80, &mut stamp), Refreshed::Changed(None));
    /// // No route is what the stamp is of from now on.
    /// assert!(ports.is_current(&stamp));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn remove(&mut self, prefix: &Prefix<A>) -> Option<V> {
        let Stamped { created, value } = self.table.remove(prefix)?;
        self.numbers.release(&mut self.cells, created.cell());
        Some(value)
    }

    /// Removes the routes for which `keep` returns false. O(routes).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, routes::StampedRoutes};
    ///
    /// let routes = [(Prefix::new(0_u16, 6)?, 'a'), (Prefix::new(1024, 6)?, 'b')];
    /// let mut ports = StampedRoutes::from_iter(routes);
    /// ports.retain(|_, value| *value == 'b');
    /// assert_eq!((ports.lookup(&80), ports.lookup(&1030).is_some()), (None, true));
    /// ports.clear();
    /// assert!(ports.is_empty());
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn retain(&mut self, mut keep: impl FnMut(Prefix<A>, &V) -> bool) {
        self.extract_if(|prefix, value| !keep(prefix, value)).for_each(drop);
    }

    /// Returns an iterator that removes the routes for which `predicate` returns true, in order.
    /// See [`RouteTable::extract_if`].
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, routes::StampedRoutes};
    ///
    /// let routes = [(Prefix::new(0_u16, 6)?, 'a'), (Prefix::new(1024, 6)?, 'b')];
    /// let mut ports = StampedRoutes::from_iter(routes);
    /// let (stamp, _) = ports.resolve(&80);
    /// assert!(ports.extract_if(|_, value| *value == 'a').eq([routes[0]]));
    /// assert!(!ports.is_current(&stamp) && ports == StampedRoutes::from_iter([routes[1]]));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn extract_if(
        &mut self,
        mut predicate: impl FnMut(Prefix<A>, &V) -> bool,
    ) -> impl Iterator<Item = (Prefix<A>, V)> {
        let Self { table, cells, numbers } = self;
        let routes = table.extract_if(move |prefix, route| predicate(prefix, &route.value));
        routes.map(|(prefix, Stamped { created, value })| {
            numbers.release(cells, created.cell());
            (prefix, value)
        })
    }

    /// Removes all routes. All decisions by these routes are stale. O(routes).
    pub fn clear(&mut self) {
        self.retain(|_, _| false);
    }

    /// Returns the value of a prefix. It is replaced by [`insert`](Self::insert) only.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, routes::StampedRoutes};
    ///
    /// let ports = StampedRoutes::from_iter([(Prefix::new(0_u16, 6)?, 'a')]);
    /// assert_eq!(ports.get(&Prefix::new(0, 6)?), Some(&'a'));
    /// assert!(ports.iter().map(|(prefix, value)| (prefix.len(), *value)).eq([(6, 'a')]));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[must_use]
    pub fn get(&self, prefix: &Prefix<A>) -> Option<&V> {
        self.table.get(prefix).map(|route| &route.value)
    }

    /// Returns the longest prefix that contains an address, and its value.
    #[inline]
    #[must_use]
    pub fn lookup(&self, address: &A) -> Option<(Prefix<A>, &V)> {
        self.table.lookup(address).map(|(prefix, route)| (prefix, &route.value))
    }

    /// Calls `found` with the index of each address, the longest prefix that contains it, and its
    /// value. The cache misses of 32 addresses overlap.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, routes::StampedRoutes};
    ///
    /// let ports = StampedRoutes::from_iter([(Prefix::new(0_u16, 6)?, 'a')]);
    /// let mut found = [None; 2];
    /// ports.lookup_batch(&[80, 8080], |i, route| found[i] = route);
    /// assert_eq!(found, [Some((Prefix::new(0, 6)?, &'a')), None]);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn lookup_batch<'t>(
        &'t self,
        addresses: &[A],
        mut found: impl FnMut(usize, Option<(Prefix<A>, &'t V)>),
    ) {
        self.table.lookup_batch(addresses, |i, route| {
            found(i, route.map(|(prefix, route)| (prefix, &route.value)));
        });
    }

    /// Returns the stamp of an address, and the longest prefix that contains it, if any does.
    #[inline]
    #[must_use]
    pub fn resolve(&self, address: &A) -> (RouteStamp, Option<(Prefix<A>, &V)>) {
        let found = self.table.lookup(address);
        (self.stamp(found), found.map(|(prefix, route)| (prefix, &route.value)))
    }

    /// Returns the stamp of a route, or of none.
    #[inline]
    fn stamp(&self, route: Option<(Prefix<A>, &Stamped<V>)>) -> RouteStamp {
        let cell = Stamped::created(route.map(|(_, route)| route)).cell();
        RouteStamp::new(cell, self.cells.generation(cell))
    }

    /// Returns whether the route of a stamp is known to be the same; if not,
    /// [`refresh`](Self::refresh) looks it up. One load.
    #[inline]
    #[must_use]
    pub fn is_current(&self, stamp: &RouteStamp) -> bool {
        self.cells.generation(stamp.cell()) == stamp.generation()
    }

    /// Looks the route of an address up, and returns whether the stamp belongs to this route: its
    /// prefix and its value have not changed since the stamp. Sets the stamp to the present one.
    #[must_use]
    pub fn refresh(&self, address: &A, stamp: &mut RouteStamp) -> Refreshed<'_, A, V> {
        let found = self.table.lookup(address);
        let before = mem::replace(stamp, self.stamp(found));
        Refreshed::of(before, found)
    }

    /// Iterates over all routes, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Prefix<A>, &V)> {
        self.table.iter().map(|(prefix, route)| (prefix, &route.value))
    }

    /// Returns the allocated bytes, without those owned by values.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::routes::StampedRoutes;
    ///
    /// assert_eq!(StampedRoutes::<u32, ()>::new().allocation_size(), 0);
    /// ```
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        let cells: usize = self.cells.0.iter().map(Vec::capacity).sum();
        self.table.allocation_size() + cells * size_of::<u64>()
    }

    /// Checks the invariants of the table, and that each route has a cell of its own. O(n): for
    /// tests.
    ///
    /// # Errors
    ///
    /// If an invariant is violated.
    ///
    /// # Example
    ///
    /// ```
    /// let routes = flowtable::routes::StampedRoutes::<u32, ()>::new();
    /// assert_eq!(routes.validate(), Ok(()));
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), InvariantError> {
        self.table.validate()?;
        self.numbers.check(&self.cells, self.table.values().map(|route| route.created))
    }
}

impl<A: Address, V: Clone> Clone for StampedRoutes<A, V> {
    fn clone(&self) -> Self {
        Self { table: self.table.clone(), cells: self.cells.clone(), numbers: self.numbers.clone() }
    }
}

/// Equal prefixes with equal values: stamps do not count.
impl<A: Address, V: PartialEq> PartialEq for StampedRoutes<A, V> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<A: Address, V: Eq> Eq for StampedRoutes<A, V> {}

impl<A: Address, V> Default for StampedRoutes<A, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A: Address, V> Extend<(Prefix<A>, V)> for StampedRoutes<A, V> {
    fn extend<I: IntoIterator<Item = (Prefix<A>, V)>>(&mut self, routes: I) {
        routes.into_iter().for_each(|(prefix, value)| _ = self.insert(prefix, value));
    }
}

impl<A: Address, V> FromIterator<(Prefix<A>, V)> for StampedRoutes<A, V> {
    fn from_iter<I: IntoIterator<Item = (Prefix<A>, V)>>(routes: I) -> Self {
        let mut table = Self::new();
        table.extend(routes);
        table
    }
}

impl<A: Address + fmt::Debug, V: fmt::Debug> fmt::Debug for StampedRoutes<A, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
