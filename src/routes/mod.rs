//! Longest-prefix match on a trie of bitmaps with direct tables.
//!
//! ```text
//!     bits  0      6             18     24     30
//!           │ 001010 │ 000001 000000 │ 000010 │ ····
//!           └──┬───┘ └──────┬──────┘ └──┬───┘
//!            table        slot         slot of the node
//!                           │           │
//!           direct  ┌───────┴───────┐   │
//!           table   │ /16 ◂ │ node ─┼─→ node  routes   ▕·1··1111▏··1·1···
//!                   └───────────────┘         values   ▕/20 /22│/24 /24 …▏
//!                                             children ▕·······▏·1·······  ──→ node at bit 24
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
//! (`change.rs`). *Level compression*: where a part of the trie is dense, its upper levels are one
//! table of 4096 slots, and a slot has the result of these levels (`direct.rs`). Routes are pushed
//! to the slots, as in flat tables; but only those of 7 to 18 bits, so that an update changes 4096
//! slots at most, and a default route none.
//!
//! # Invariants
//!
//! 1. A node at bit `pos` holds the routes of `pos + 1` to `pos + 6` bits that begin with its
//!    prefix; the root holds the one of length 0, too.
//! 2. Each route has its node, and no node has neither routes nor children.
//! 3. From bit 18 on, consecutive nodes with one child and no routes are a path, of up to ten
//!    strides.
//! 4. A slot of a direct table agrees with the nodes at bits 0, 6 and 12.
//! 5. S1 to S3 of `store.rs`.
//!
//! `check.rs` reports the first violation.
//!
//! # Cost
//!
//! | | IPv4 | IPv6 |
//! |---|---|---|
//! | cache misses of a lookup, in series | slot, node, value | slot, 4.3 nodes (2 in L2), value |
//! | insert or remove | a node; up to 126 values and 63 nodes move | as IPv4 |
//! | of 13 to 18 bits, or the first one below 18 bits | and 64 slots | as IPv4 |
//! | of 7 to 12 bits | and 4096 slots | as IPv4 |
//! | bytes per route, small values | 9.4 | 20.4 |
//!
//! Misses and bytes are those of the Internet's routes. A table of chunks lies between a slot and a
//! node, and between a node and a value; it is small enough for L1. A table without routes has
//! allocated nothing, one with a few routes and small values a few kilobytes.
//!
//! # Two families
//!
//! IPv4 and IPv6 have a table each; a `match` selects one:
//!
//! ```
//! use flowtable::{Prefix, RouteTable};
//! use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
//!
//! #[derive(Default)]
//! struct Routes {
//!     v4: RouteTable<Ipv4Addr, u32>,
//!     v6: RouteTable<Ipv6Addr, u32>,
//! }
//!
//! impl Routes {
//!     fn next_hop(&self, address: IpAddr) -> Option<u32> {
//!         match address.to_canonical() {
//!             IpAddr::V4(address) => self.v4.lookup(&address).map(|(_, &hop)| hop),
//!             IpAddr::V6(address) => self.v6.lookup(&address).map(|(_, &hop)| hop),
//!         }
//!     }
//! }
//!
//! let mut routes = Routes::default();
//! routes.v4.insert("192.0.2.0/24".parse()?, 7);
//! assert_eq!(routes.next_hop("::ffff:192.0.2.1".parse().unwrap()), Some(7)); // v4-mapped
//! # Ok::<(), flowtable::PrefixError>(())
//! ```
//!
//! # Papers
//!
//! Nilsson and Tikkanen's level and path compression, as in the papers on TRASH, with other means
//! for longest-prefix match: the bitmaps of Degermark and others, *Small forwarding tables for fast
//! routing lookups* (1997); the routes as a bitmap of a heap of Eatherton and others, *Tree bitmap*
//! (2004); the stride of a word and the direct table of Asai and Ohara, *Poptrie* (2015).
//! [`LcRouteTable`](crate::LcRouteTable) is the trie of the papers itself.

mod change;
mod check;
mod direct;
mod iter;
mod lookup;
mod node;
mod pool;
mod shape;
mod store;
mod stride;
mod traits;
mod walk;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::mem;

use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use direct::Direct;
use store::Store;
use stride::{PrefixIndex, STRIDE, node_pos};

pub use iter::{Covering, IntoIter, Iter};
pub use shape::RouteShape;

/// A routing table: values by prefix, with longest-prefix match of addresses.
///
/// | method | cost |
/// |---|---|
/// | `lookup`, `lookup_mut` | a slot, a node for each further six bits that matter, a value |
/// | `lookup_batch` | as `lookup`, with the cache misses of 32 addresses overlapped |
/// | `insert`, `remove` | the path to the node, up to 126 values; for some, 64 or 4096 slots |
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
pub struct RouteTable<A, V> {
    store: Store<V>,
    /// Allocated with the first route of more than six bits.
    direct: Option<Box<Direct>>,
    len: usize,
    addresses: PhantomData<A>,
}

impl<A: Address, V> RouteTable<A, V> {
    /// Creates an empty table, which allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { store: Store::new(), direct: None, len: 0, addresses: PhantomData }
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

    /// Removes all routes and releases the memory. O(memory), and O(nodes) if values have to be
    /// dropped.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let mut routes = RouteTable::from([(Prefix::new(0x40_u8, 2)?, ())]);
    /// routes.clear();
    /// assert!(routes.is_empty());
    /// assert_eq!(routes.allocation_size(), 0);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// Inserts a route. Returns the previous value of the prefix.
    ///
    /// # Panics
    ///
    /// If there are nearly 2^27 nodes or 2^32 values, which is at some hundred million routes; even
    /// if the prefix has a route already.
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
        self.store.assert_capacity();
        let index = PrefixIndex::of(&prefix, node_pos(prefix.len()));
        let start = self.start(&prefix);
        let (node, trace) = self.store.ensure_path(&prefix, start.node);
        if let Some(old) = self.store.value_mut(node, index) {
            return Some(mem::replace(old, value));
        }
        self.store.insert_route(node, index, value);
        self.len += 1;
        self.rebuild(prefix.len(), trace);
        if prefix.len() > STRIDE {
            let direct = self.direct.get_or_insert_with(|| Box::new(Direct::new()));
            direct.add_route(&self.store, start.first);
        }
        None
    }

    /// Removes a route. Returns its value, if it existed.
    ///
    /// The removal of the last route releases all memory, which takes some time if the table was
    /// large.
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
        let index = PrefixIndex::of(prefix, node_pos(prefix.len()));
        let start = self.start(prefix);
        let (node, trace) = self.store.find_node(prefix, start.node)?;
        let value = self.store.remove_route(node, index)?;
        self.len -= 1;
        if self.len == 0 {
            self.clear();
            return Some(value);
        }
        self.rebuild(prefix.len(), trace);
        if let Some(direct) = self.direct.as_mut().filter(|_| prefix.len() > STRIDE) {
            direct.remove_route(start.first);
        }
        if self.store.is_redundant(node) {
            let trace = self.store.remove_path(prefix);
            self.rebuild_after_branch(trace);
        }
        Some(value)
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
        let (node, _) = self.store.find_node(prefix, self.start(prefix).node)?;
        self.store.value(node, PrefixIndex::of(prefix, node_pos(prefix.len())))
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
        let (node, _) = self.store.find_node(prefix, self.start(prefix).node)?;
        self.store.value_mut(node, PrefixIndex::of(prefix, node_pos(prefix.len())))
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
    #[inline]
    #[must_use]
    pub fn lookup(&self, address: &A) -> Option<(Prefix<A>, &V)> {
        Some(self.route(address, self.longest(address)?))
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
        let found = self.longest(address)?;
        Some(self.route_mut(address, found))
    }

    /// Looks up a batch of addresses: writes the longest route that contains each address to
    /// `found`.
    ///
    /// This takes a fraction of the time of single lookups: the cache misses of 32 addresses
    /// overlap.
    ///
    /// # Panics
    ///
    /// If the slices have different lengths.
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
        assert_eq!(addresses.len(), found.len(), "slices of equal lengths");
        self.batch(addresses, found);
    }

    /// Returns an iterator over the routes that contain `address`, the shortest first.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let prefixes = [(0x00, 0), (0x40, 2), (0x48, 5)].map(|(at, len)| Prefix::new(at, len));
    /// let routes: RouteTable<u8, ()> =
    ///     prefixes.into_iter().flatten().map(|at| (at, ())).collect();
    /// assert!(routes.matches(&0x49).map(|(at, ())| at.len()).eq([0, 2, 5]));
    /// assert!(routes.matches(&0x50).map(|(at, ())| at.len()).eq([0, 2]));
    /// ```
    pub fn matches(&self, address: &A) -> Covering<'_, A, V> {
        Covering::along(&self.store, *address, A::BITS)
    }

    /// Returns an iterator over the routes that cover `prefix`, the shortest first; the last one
    /// may be of `prefix` itself.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let routes = RouteTable::from([(long, 'a'), (short, 'b')]);
    /// assert!(routes.covering(&long).map(|(at, _)| at).eq([short, long]));
    /// assert!(routes.covering(&Prefix::new(0x48, 4)?).map(|(at, _)| at).eq([short]));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn covering(&self, prefix: &Prefix<A>) -> Covering<'_, A, V> {
        Covering::along(&self.store, prefix.address(), prefix.len())
    }

    /// Returns an iterator over the routes that `prefix` covers, in order; the first one may be of
    /// `prefix` itself.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let prefixes = [(0x00, 0), (0x40, 2), (0x48, 5)].map(|(at, len)| Prefix::new(at, len));
    /// let routes: RouteTable<u8, ()> =
    ///     prefixes.into_iter().flatten().map(|at| (at, ())).collect();
    /// assert!(routes.covered(&Prefix::new(0x40, 2)?).map(|(at, ())| at.len()).eq([2, 5]));
    /// assert!(routes.covered(&Prefix::new(0x40, 3)?).map(|(at, ())| at.len()).eq([5]));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn covered(&self, prefix: &Prefix<A>) -> Iter<'_, A, V> {
        let all = prefix.is_default_route().then_some(self.len);
        Iter::below(&self.store, prefix, all)
    }

    /// Returns whether a route has an address in common with `prefix`: it covers `prefix`, or
    /// `prefix` covers it. Takes the path, once.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let routes = RouteTable::from([(long, 'a'), (short, 'b')]);
    /// assert!(routes.overlaps(&Prefix::host(0x49)) && routes.overlaps(&Prefix::default_route()));
    /// assert!(!routes.overlaps(&Prefix::host(0x80)));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[must_use]
    pub fn overlaps(&self, prefix: &Prefix<A>) -> bool {
        self.covering(prefix).next().is_some() || walk::has_covered(&self.store.nodes, prefix)
    }

    /// Returns an iterator over all routes in order: by address, and for equal addresses the
    /// shorter first.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let routes = RouteTable::from([(long, 'a'), (short, 'b')]);
    /// assert!(routes.iter().eq([(short, &'b'), (long, &'a')]));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[must_use]
    pub fn iter(&self) -> Iter<'_, A, V> {
        self.covered(&Prefix::default_route())
    }

    /// Returns an iterator over the prefixes of all routes in order. O(routes) in all.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let routes = RouteTable::from([(long, 'a'), (short, 'b')]);
    /// assert!(routes.prefixes().eq([short, long]));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn prefixes(&self) -> impl Iterator<Item = Prefix<A>> {
        self.iter().map(|(prefix, _)| prefix)
    }

    /// Returns an iterator over the values of all routes in the order of their prefixes. O(routes)
    /// in all.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let routes = RouteTable::from([(long, 'a'), (short, 'b')]);
    /// assert!(routes.values().eq(&['b', 'a']));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// Retains the routes for which `keep` returns true; `keep` may change their values. It is
    /// called in order; if it panics, all routes remain. O(routes).
    ///
    /// # Example
    ///
    /// A peer goes down:
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let routes = [(0x40_u8, 2, "a"), (0x48, 5, "b"), (0x80, 1, "a")];
    /// let routes = routes.map(|(at, len, peer)| (Prefix::new(at, len).unwrap(), peer));
    /// let mut routes = RouteTable::from(routes);
    /// routes.retain(|_, peer| *peer != "a");
    /// assert!(routes.values().eq(&["b"]));
    /// ```
    pub fn retain(&mut self, keep: impl FnMut(Prefix<A>, &mut V) -> bool) {
        self.retain_covered(&Prefix::default_route(), keep);
    }

    /// Retains those of the routes that `prefix` covers for which `keep` returns true; all other
    /// routes remain. O(routes that it covers).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let (long, short) = (Prefix::new(0x48_u8, 5)?, Prefix::new(0x40_u8, 2)?);
    /// let mut routes = RouteTable::from([(long, 'a'), (short, 'b')]);
    /// routes.retain_covered(&Prefix::new(0x48, 3)?, |_, _| false);
    /// assert!(routes.prefixes().eq([short]));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn retain_covered(
        &mut self,
        prefix: &Prefix<A>,
        mut keep: impl FnMut(Prefix<A>, &mut V) -> bool,
    ) {
        let mut rejected = Vec::new();
        iter::visit(&mut self.store, prefix, |prefix, value| {
            if !keep(prefix, value) {
                rejected.push(prefix);
            }
        });
        rejected.iter().for_each(|prefix| drop(self.remove(prefix)));
    }

    /// Compacts the memory, without the free blocks that removed and moved routes have left.
    /// O(routes); needs the memory of both tables for a while.
    ///
    /// # Example
    ///
    /// ```
    /// let mut routes: flowtable::RouteTable<u32, u32> = flowtable::RouteTable::new();
    /// for net in 0..1000_u32 {
    ///     routes.insert(flowtable::Prefix::new(net << 12, 24)?, net);
    /// }
    /// routes.retain(|prefix, _| prefix.address() >> 12 < 10);
    /// let before = routes.allocation_size();
    /// routes.shrink_to_fit();
    /// assert!(routes.allocation_size() < before && routes.len() == 10);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn shrink_to_fit(&mut self) {
        // Detached while its slots refer to blocks that move.
        let direct = self.direct.take();
        self.store.compact();
        self.direct = direct.map(|mut direct| {
            direct.rebuild_all(&self.store);
            direct
        });
    }

    /// Returns the bytes that the table has allocated, free ones included; without what values own.
    /// O(chunks of memory).
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        let direct =
            self.direct.as_ref().map(|tables| tables.allocation_size() + size_of::<Direct>());
        let (nodes, values) = self.store.allocation_size();
        nodes + values + direct.unwrap_or(0)
    }
}
