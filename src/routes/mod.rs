//! Longest-prefix match on a trie of bitmaps with direct tables.
//!
//! ```text
//!     bits  0      6             18     24     30     36     42     48
//!           │ 001010 │ 000001 000000 │ 000010 │      │      │      │ ····
//!           └──┬───┘ └──────┬──────┘ └──┬───┘
//!            table        slot          │
//!           direct  ┌───────┴───────┐   │
//!           table   │ a copy of the ├───┴─ IPv4 ──────────────────→ value
//!                   │ node at bit 18│
//!                   └───────────────┘    ┌─── IPv6 ─────────────┐
//!           levels     by hashes:        │ node   node    node  │─→ value
//!                                        └ at 30  at 36   at 42 ┘
//!           trie    root ─→ node ─→ node ─→ node      routes   ▕·1··1111▏··1·1···
//!                                                     values   ▕/20 /22│/24 /24 …▏
//!                                                     children ▕·······▏·1·······  ─→ node
//! ```
//!
//! The strides of the trie have six bits, because the children of six bits fit into a word: a
//! bitmap has a one for each child, and the position of a child is the number of ones before its
//! own. A node holds the routes that end in its stride, in two more bitmaps and one block of
//! values; the longest one that covers a slot is found by a mask (`stride.rs`, `node.rs`). So each
//! route is stored exactly once, and nothing is copied into the nodes below: an announcement or a
//! withdrawal changes one node. Nodes and values lie in blocks of two pools (`pool.rs`).
//!
//! *Path compression*: strides in which all prefixes below agree, up to ten of them, are one node
//! (`change.rs`). *Level compression*: where a part of the trie is dense, its first three levels
//! are one table of 4096 slots. A slot is a copy of the routes of the node at bit 18, with the
//! longest route above it (`direct.rs`). Routes are pushed to the slots, as in flat tables; but
//! only those of 7 to 18 bits, so that an update changes 4096 slots at most, and a default route
//! none. *Levels by hash*: nodes of wide addresses at bits 24, 30, 36 and 42 are copied to a hash
//! table, and the last three are read at the same time (`levels.rs`).
//!
//! Lookups use the copies, most other methods the trie. An update finds its node by the copy, too,
//! which has its index: a slot has that of the node at bit 18. The index in an entry may be stale,
//! and is verified by the routes. When most routes have been removed, memory is released in steps
//! (`release.rs`). Copies are made when there are some hundred routes, and computed
//! in steps (`update.rs`).
//!
//! # Invariants
//!
//! 1. A node at bit `pos` holds the routes of `pos + 1` to `pos + 6` bits that begin with its
//!    prefix; the root holds the one of length 0, too.
//! 2. Each route has its node, and no node has neither routes nor children.
//! 3. From bit 18 on, consecutive nodes with one child and no routes are a path, of up to ten
//!    strides.
//! 4. A computed slot of a direct table agrees with the nodes at bits 6, 12 and 18, and levels with
//!    all nodes at their bits.
//! 5. S1 to S3 of `store.rs`.
//!
//! `check.rs` reports the first violation.
//!
//! # Cost
//!
//! | | IPv4 | IPv6 |
//! |---|---|---|
//! | cache misses of a lookup, in series | slot, value | entries of three levels at once, value |
//! | insert or remove | a node, its copy; up to 126 values and 63 nodes move | as IPv4 |
//! | of 13 to 18 bits | and up to 64 slots | as IPv4 |
//! | of 7 to 12 bits | and up to 4096 slots | as IPv4 |
//! | bytes per route, small values | 15.6 | 40.4 |
//!
//! Misses and bytes are those of the Internet's routes. A table of chunks lies between an index and
//! its value, and a directory before a level; both are small enough for L2. A table without routes
//! has allocated nothing, one with a few routes and small values two kilobytes.
//!
//! # Two families
//!
//! [`Routes`] has a table of IPv4 and one of IPv6, and prefixes of either family:
//!
//! ```
//! use flowtable::routes::Routes;
//! use std::net::IpAddr;
//!
//! let mut routes = Routes::new();
//! routes.insert("192.0.2.0/24".parse()?, 7);
//! let mapped: IpAddr = "::ffff:192.0.2.1".parse().unwrap();
//! assert_eq!(routes.lookup(mapped.to_canonical()).unwrap().1, &7);
//! # Ok::<(), flowtable::PrefixError>(())
//! ```
//!
//! # Papers
//!
//! Nilsson and Tikkanen's level and path compression, as in the papers on TRASH, with other means
//! for longest-prefix match: the bitmaps of Degermark and others, *Small forwarding tables for fast
//! routing lookups* (1997); levels by hash of Waldvogel and others, *Scalable high speed IP routing
//! lookups* (1997); the routes as a bitmap of a heap of Eatherton and others, *Tree bitmap*
//! (2004); the stride of a word and the direct table of Asai and Ohara, *Poptrie* (2015).
//! [`LcRouteTable`](crate::LcRouteTable) is the trie of the papers itself.

mod aggregate;
mod any_entry;
mod both;
mod bulk;
mod change;
mod check;
mod direct;
mod entry;
mod error;
mod extract;
mod iter;
mod key;
mod levels;
mod lookup;
mod node;
mod order;
mod pool;
mod release;
pub(crate) mod search;
mod segment;
mod set;
mod sets;
mod shape;
mod slot;
mod slot_table;
pub mod stamped;
mod steps;
mod store;
pub(crate) mod stride;
mod traits;
mod update;
mod view;
mod walk;

use core::marker::PhantomData;
use core::mem;

use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::memory::{Allocator, Global};
use crate::raw::results::results_for;
use change::FROM_ROOT;
use key::Key;
use node::{Changed, Position, RouteBits};
use pool::Exhausted;
use store::{Store, exhausted};
use stride::{PrefixIndex, node_pos};
use update::Shortcuts;

pub use any_entry::AnyEntry;
pub use both::{Both, Routes};
pub use entry::{Entry, OccupiedEntry, VacantEntry};
pub use error::NoMemory;
pub use extract::ExtractIf;
pub use iter::{Covering, IntoIter, Iter, IterMut};
pub use set::PrefixSet;
pub use shape::RouteShape;
pub use stamped::{Refreshed, RouteStamp, StampedRoutes};

/// A routing table: values by prefix, with longest-prefix match of addresses.
///
/// | method | cost |
/// |---|---|
/// | `lookup`, `lookup_mut` | a slot or entries of three levels, a value; else the trie |
/// | `lookup_batch`, `lookup_batch_values` | with the cache misses of 32 addresses overlapped |
/// | `insert`, `try_insert`, `remove` | the path to the node, up to 126 values; for some, 64 or 4096 slots |
/// | `get`, `get_mut`, `contains` | the path to the node |
/// | `matches`, `covering` | the path, once |
/// | `covered`, `iter` | the path, and all routes below |
///
/// Two tables are equal if they have the same routes and values.
///
/// # Example
///
/// ```
/// use flowtable::RouteTable;
/// use std::net::Ipv4Addr;
///
/// let mut routes = RouteTable::<Ipv4Addr, &str>::new();
/// routes.insert("0.0.0.0/0".parse()?, "provider");
/// routes.insert("10.0.0.0/8".parse()?, "core");
/// routes.insert("10.1.0.0/16".parse()?, "lab");
///
/// let (prefix, &via) = routes.lookup(&Ipv4Addr::new(10, 1, 2, 3)).unwrap();
/// assert_eq!((prefix.to_string().as_str(), via), ("10.1.0.0/16", "lab"));
///
/// routes.remove(&"10.1.0.0/16".parse()?);
/// assert_eq!(routes.lookup(&Ipv4Addr::new(10, 1, 2, 3)).unwrap().1, &"core");
/// assert_eq!(routes.lookup(&Ipv4Addr::new(192, 0, 2, 1)).unwrap().1, &"provider");
/// # Ok::<(), flowtable::PrefixError>(())
/// ```
#[doc(alias("fib", "lpm", "rib"))]
pub struct RouteTable<A, V, M: Allocator + Clone = Global> {
    store: Store<V, M>,
    shortcuts: Shortcuts<M>,
    len: usize,
    addresses: PhantomData<A>,
}

/// What an insertion into the store has changed.
enum Inserted<V> {
    /// The value, whose old one this is.
    Replaced(V),
    /// The routes of a node, one of which is new.
    New(Changed),
}

impl<A: Address, V> RouteTable<A, V> {
    /// Creates an empty table, which allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { store: Store::new(), shortcuts: Shortcuts::EMPTY, len: 0, addresses: PhantomData }
    }
}

impl<A: Address, V, M: Allocator + Clone> RouteTable<A, V, M> {
    /// Creates an empty table whose memory is from `memory`. Allocates nothing.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let arena = bumpalo::Bump::new();
    /// let mut ports = RouteTable::<u16, char, _>::new_in(&arena);
    /// ports.try_insert(Prefix::new(0, 6)?, 'a').unwrap();
    /// assert_eq!(ports.lookup(&80), Some((Prefix::new(0, 6)?, &'a')));
    /// assert!(ports.allocator().allocated_bytes() >= ports.allocation_size());
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[must_use]
    pub fn new_in(memory: M) -> Self {
        let (store, shortcuts) = (Store::new_in(memory), Shortcuts::EMPTY);
        Self { store, shortcuts, len: 0, addresses: PhantomData }
    }

    /// Returns the allocator that the table was created with.
    #[must_use]
    pub fn allocator(&self) -> &M {
        self.store.memory()
    }

    /// Returns the number of routes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the table has no routes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Inserts a route. Returns the previous value of the prefix.
    ///
    /// Aborts like other collections if there is no memory: see [`try_insert`](Self::try_insert).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let mut ports = RouteTable::<u16, char>::new();
    /// assert_eq!(ports.insert(Prefix::new(0, 6)?, 'a'), None); // 0 to 1023
    /// assert_eq!(ports.insert(Prefix::new(0, 6)?, 'b'), Some('a'));
    /// assert_eq!(ports.lookup(&1023).unwrap().1, &'b');
    /// assert_eq!(ports.lookup(&1024), None);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn insert(&mut self, prefix: Prefix<A>, value: V) -> Option<V> {
        self.try_insert(prefix, value).unwrap_or_else(|_| exhausted())
    }

    /// Inserts a route, if there is memory. Returns the previous value of the prefix.
    ///
    /// # Errors
    ///
    /// If there is no memory for a new route, or if there are nearly 2^32 nodes or values. The
    /// routes remain as they were, and the error has the value.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let mut ports = RouteTable::<u16, char>::new();
    /// assert_eq!(ports.try_insert(Prefix::new(0, 6)?, 'a').unwrap(), None);
    /// assert_eq!(ports.try_insert(Prefix::new(0, 6)?, 'b').unwrap(), Some('a'));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn try_insert(&mut self, prefix: Prefix<A>, value: V) -> Result<Option<V>, NoMemory<V>> {
        let inserted = self.insert_at(&Key::from(&prefix), prefix.len(), value);
        inserted.map(|(_, _, old)| old)
    }

    /// Inserts the route of `len` bits of `key`. Returns its node, its index in the node, and the
    /// previous value.
    fn insert_at(
        &mut self,
        key: &Key<A>,
        len: u32,
        value: V,
    ) -> Result<(u32, PrefixIndex, Option<V>), NoMemory<V>> {
        if self.store.cursor.is_some() {
            self.release_step();
        }
        // Before anything changes, since an address may panic.
        let index = key.index(node_pos(len), len);
        let by_copy = self.node_by_copy(key, len);
        let Ok(node) = by_copy.map_or_else(|| self.make_node(key, len), Ok) else {
            self.undo_path(key, len);
            return Err(NoMemory { refused: value });
        };
        let old = match self.insert_in_node((key, len), index, node, value)? {
            Inserted::Replaced(old) => Some(old),
            Inserted::New(changed) => {
                self.after_insert((key, len), node.0, changed, by_copy.is_some());
                None
            }
        };
        Ok((node.0, index, old))
    }

    /// Inserts the route of `len` bits of `key` into its node, which has these routes, but does not
    /// update the shortcuts. `index` is that of the route.
    #[inline(always)]
    fn insert_in_node(
        &mut self,
        (key, len): (&Key<A>, u32),
        index: PrefixIndex,
        (node, bits): (u32, RouteBits),
        value: V,
    ) -> Result<Inserted<V>, NoMemory<V>> {
        let position = bits.position(index);
        if position.exists {
            return Ok(Inserted::Replaced(mem::replace(self.store.value_at(&position), value)));
        }
        match self.store.insert_route((node, bits), &position, value) {
            Ok(changed) => {
                self.len += 1;
                Ok(Inserted::New(changed))
            }
            Err(refused) => {
                self.undo_path(key, len);
                Err(NoMemory { refused })
            }
        }
    }

    /// Returns the node for routes of `len` bits of `key` and its routes; creates it if necessary.
    fn make_node(&mut self, key: &Key<A>, len: u32) -> Result<(u32, RouteBits), Exhausted> {
        let id = self.store.ensure_path(self.start(key, len), key, len)?;
        Ok((id, self.store.nodes.get(id).bits()))
    }

    /// Removes nodes without routes that an insertion has left that failed.
    #[cold]
    fn undo_path(&mut self, key: &Key<A>, len: u32) {
        if self.len == 0 {
            self.clear();
        } else {
            self.store.remove_path(FROM_ROOT, key, len);
            self.after_undo(key, len);
        }
    }

    /// Removes a route. Returns its value, if it existed.
    ///
    /// When most routes have been removed, the memory is released in steps: less than a quarter of
    /// it is in use only while there are a few kilobytes, or some further updates are due.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let mut routes = RouteTable::from([(long, 'a'), (short, 'b')]);
    /// assert_eq!(routes.remove(&long), Some('a'));
    /// assert_eq!(routes.remove(&long), None);
    /// assert_eq!(routes.lookup(&0x49), Some((short, &'b')));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn remove(&mut self, prefix: &Prefix<A>) -> Option<V> {
        let (key, len) = (Key::from(prefix), prefix.len());
        let (node, bits) = self.find_node(&key, len)?;
        let position = bits.position(key.index(node_pos(len), len));
        position.exists.then(|| self.remove_from(&key, len, (node, bits), &position))
    }

    /// Removes the route of `len` bits of `key` from the node with these routes. Returns its value.
    #[inline(always)]
    fn remove_from(
        &mut self,
        key: &Key<A>,
        len: u32,
        (node, bits): (u32, RouteBits),
        position: &Position,
    ) -> V {
        let (value, changed) = self.store.remove_route((node, bits), position);
        self.len -= 1;
        if self.len == 0 {
            self.clear();
            return value;
        }
        self.after_remove((key, len), node, changed);
        if changed.bits.is_empty() && self.store.is_redundant(node) {
            let changed = self.store.remove_path(self.start(key, len), key, len);
            self.after_remove_path(key, len, changed);
        }
        self.release_step();
        value
    }

    /// Returns the value of the route of exactly this prefix.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let routes = RouteTable::from([(long, 'a'), (short, 'b')]);
    /// assert_eq!(routes.get(&long), Some(&'a'));
    /// assert_eq!(routes.get(&Prefix::new(0x48, 4)?), None); // covered, but not a route
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[must_use]
    pub fn get(&self, prefix: &Prefix<A>) -> Option<&V> {
        let (key, len) = (Key::from(prefix), prefix.len());
        let (node, _) = self.find_node(&key, len)?;
        self.store.value(node, key.index(node_pos(len), len))
    }

    /// Returns a mutable reference to the value of the route of exactly this prefix.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let mut routes = RouteTable::from([(long, 'a'), (short, 'b')]);
    /// *routes.get_mut(&long).unwrap() = 'c';
    /// assert_eq!(routes.lookup(&0x49), Some((long, &'c')));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn get_mut(&mut self, prefix: &Prefix<A>) -> Option<&mut V> {
        let (key, len) = (Key::from(prefix), prefix.len());
        let (_, bits) = self.find_node(&key, len)?;
        let position = bits.position(key.index(node_pos(len), len));
        position.exists.then(|| self.store.value_at(&position))
    }

    /// Returns whether there is a route of exactly this prefix.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let routes = RouteTable::from([(long, 'a'), (short, 'b')]);
    /// assert!(routes.contains(&long) && !routes.contains(&Prefix::host(0x48)));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[must_use]
    pub fn contains(&self, prefix: &Prefix<A>) -> bool {
        self.get(prefix).is_some()
    }

    /// Returns the longest route that contains `address`.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let routes = RouteTable::from([(long, 'a'), (short, 'b')]);
    /// assert_eq!(routes.lookup(&0x49), Some((long, &'a')));
    /// assert_eq!(routes.lookup(&0x50), Some((short, &'b')));
    /// assert_eq!(routes.lookup(&0x80), None);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[inline(always)] // Not a call: fewer lookups would overlap.
    #[must_use]
    pub fn lookup(&self, address: &A) -> Option<(Prefix<A>, &V)> {
        Some(self.route(address, self.longest(address).exists()?))
    }

    /// Returns the longest route that contains `address`, with a mutable reference to its value.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let mut routes = RouteTable::from([(long, 'a'), (short, 'b')]);
    /// *routes.lookup_mut(&0x50).unwrap().1 = 'c';
    /// assert_eq!(routes.get(&short), Some(&'c'));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn lookup_mut(&mut self, address: &A) -> Option<(Prefix<A>, &mut V)> {
        let found = self.longest(address).exists()?;
        Some(self.route_mut(address, found))
    }

    /// Looks up a batch of addresses: writes the longest route that contains each address to
    /// `found`. What that has beyond the addresses is set to `None`.
    ///
    /// This takes a fraction of the time of single lookups: the cache misses of 32 addresses
    /// overlap.
    ///
    /// # Panics
    ///
    /// If `found` is shorter than `addresses`.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let routes = RouteTable::from([(Prefix::new(0x0A00_0000_u32, 8)?, "ten")]);
    /// let mut found = [None; 2];
    /// routes.lookup_batch(&[0x0A01_0203, 0x0B00_0000], &mut found);
    /// assert_eq!(found.map(|route| route.map(|(_, via)| *via)), [Some("ten"), None]);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn lookup_batch<'t>(&'t self, addresses: &[A], found: &mut [Option<(Prefix<A>, &'t V)>]) {
        self.batch(addresses, results_for(addresses.len(), found));
    }

    /// Looks up a batch of addresses: writes the value of the longest route that contains each
    /// address to `found`.
    ///
    /// This takes less time than [`lookup_batch`](Self::lookup_batch), which computes the prefixes,
    /// too.
    ///
    /// # Panics
    ///
    /// If `found` is shorter than `addresses`.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let routes = RouteTable::from([(Prefix::new(0x0A00_0000_u32, 8)?, "ten")]);
    /// let mut found = [None; 2];
    /// routes.lookup_batch_values(&[0x0A01_0203, 0x0B00_0000], &mut found);
    /// assert_eq!(found, [Some(&"ten"), None]);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn lookup_batch_values<'t>(&'t self, addresses: &[A], found: &mut [Option<&'t V>]) {
        self.batch_values(addresses, results_for(addresses.len(), found));
    }
}
