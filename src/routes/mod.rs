//! Longest-prefix match: which route does an address take?
//!
//! ```text
//!     bits    0      6             18     24     30
//!             │ 001010 │ 000001 000000 │ 000010 │ ····
//!             └──┬───┘ └──────┬──────┘ └──┬───┘
//!              table of   slot of it    slot of a node
//!                             │            │
//!             direct   ┌──────┴────────┐   │
//!             table    │ /16 ◂ │ node ─┼─→ node   routes  ▕·1··1111▏ ··1·1···   values ▕/20 /22│/24 /24 …▏
//!                      └───────────────┘          children ▕·······▏·1·······    nodes ──→ at bit 24
//! ```
//!
//! A trie over strides of six bits, because the children of six bits are a word: which ones there are is
//! a bitmap, and where they lie is the number of ones before theirs. A node holds the routes that end in
//! its stride, in two more bitmaps and one run of values; the longest one that covers a slot is found by
//! a mask (`stride.rs`, `node.rs`). So each route is there exactly once, and nothing is copied into the
//! nodes below: to announce or withdraw a route changes one node. Nodes and values lie in runs of two
//! pools (`pool.rs`).
//!
//! *Path compression*: strides in which all that is below agrees, up to ten of them, are one node
//! (`change.rs`). *Level compression*: where a part of the trie is dense, its upper levels are one
//! table of 4096 slots, and a slot says what these levels say (`direct.rs`). In a slot the routes
//! are pushed to the leaves, which is what makes flat tables fast; but only those of 7 to 18 bits, so
//! that a change costs 4096 slots at the very most, and a default route none.
//!
//! # Invariants
//!
//! 1. A node at bit `pos` holds the routes of `pos + 1` to `pos + 6` bits that begin with its prefix; the
//!    root holds the one of no bits, too.
//! 2. There is a node for each route, and none that has neither routes nor children.
//! 3. From bit 18 on, nodes in a row that have no routes and one child are a path, as far as ten strides.
//! 4. A slot of a direct table is what the nodes at bits 0, 6 and 12 say.
//! 5. S1 to S3 of `store.rs`.
//!
//! `check.rs` names the first one that is broken.
//!
//! # Price
//!
//! | | IPv4 | IPv6 |
//! |---|---|---|
//! | lines that a look-up of the Internet's routes waits for, one after the other | slot, node, value | slot, 4.3 nodes (of which two are in a near cache), value |
//! | announce or withdraw | a node, and up to 126 values and 63 nodes that move | the same |
//! | the same for a route of 13 to 18 bits, or the first one below 18 bits | and 64 slots | the same |
//! | the same for a route of 7 to 12 bits | and 4096 slots | the same |
//! | bytes of a route of the Internet, small values | 9.4 | 20.4 |
//!
//! Between a slot and a node, and between a node and a value, there is a table of chunks, which is small
//! enough for the nearest cache. A table without routes has allocated nothing, one with a few routes and
//! small values a few kilobytes.
//!
//! # Two families
//!
//! IPv4 and IPv6 have a table each, and a `match` between them:
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
//! Nilsson and Tikkanen's level and path compression, as in the papers on TRASH, chosen anew for
//! longest-prefix match: from Degermark and others, *Small forwarding tables for fast routing lookups*
//! (1997), the bitmaps; from Eatherton and others, *Tree bitmap* (2004), the routes as a bitmap of a
//! heap; from Asai and Ohara, *Poptrie* (2015), the stride of a word and the direct table in front.
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
use stride::{STRIDE, Spot, home};

pub use check::Broken;
pub use iter::{Covering, IntoIter, Iter};
pub use shape::RouteShape;

/// Routes: values under prefixes, found by the longest one that contains an address.
///
/// | method | cost |
/// |---|---|
/// | [`lookup`](Self::lookup), [`lookup_mut`](Self::lookup_mut) | a slot, a node for each six bits behind it in which routes differ, a value |
/// | [`lookup_batch`](Self::lookup_batch) | the same, the cache misses of 32 addresses overlapped |
/// | [`insert`](Self::insert), [`remove`](Self::remove) | the way to the node and up to 126 values of it; for some lengths 64 or 4096 slots |
/// | [`get`](Self::get), [`get_mut`](Self::get_mut), [`contains`](Self::contains) | the way to the node |
/// | [`matches`](Self::matches), [`covering`](Self::covering) | the way, once |
/// | [`covered`](Self::covered), [`iter`](Self::iter) | the way, and then all that is below |
///
/// Two tables are equal if their routes are.
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
    /// There as soon as there has been a route of more than six bits.
    direct: Option<Box<Direct>>,
    len: usize,
    addresses: PhantomData<A>,
}

impl<A: Address, V> RouteTable<A, V> {
    /// A table without routes, and without memory.
    #[must_use]
    pub const fn new() -> Self {
        Self { store: Store::new(), direct: None, len: 0, addresses: PhantomData }
    }

    /// The number of routes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no routes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Removes all routes and gives back the memory. O(memory), and O(nodes) if values have to be dropped.
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

    /// Announces a route. Returns the value that the same prefix had before.
    ///
    /// # Panics
    ///
    /// If there are nearly 2^27 nodes or 2^32 values, which is at some hundred million routes; even if it
    /// would only change the value of a route.
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
        self.store.assert_room();
        let spot = Spot::of(&prefix, home(prefix.len()));
        let start = self.start(&prefix);
        let (node, trace) = self.store.make_way(&prefix, start.node);
        if let Some(old) = self.store.value_mut(node, spot) {
            return Some(mem::replace(old, value));
        }
        self.store.put(node, spot, value);
        self.len += 1;
        self.refresh(prefix.len(), trace);
        if prefix.len() > STRIDE {
            let direct = self.direct.get_or_insert_with(|| Box::new(Direct::new()));
            direct.count(&self.store, start.first);
        }
        None
    }

    /// Withdraws a route. Returns its value, if there was one.
    ///
    /// When the last route goes, all memory goes, which takes some time if the table was large.
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
        let spot = Spot::of(prefix, home(prefix.len()));
        let start = self.start(prefix);
        let (node, trace) = self.store.home_of(prefix, start.node)?;
        let value = self.store.take(node, spot)?;
        self.len -= 1;
        if self.len == 0 {
            self.clear();
            return Some(value);
        }
        self.refresh(prefix.len(), trace);
        if let Some(direct) = self.direct.as_mut().filter(|_| prefix.len() > STRIDE) {
            direct.discount(start.first);
        }
        if self.store.is_useless(node) {
            let trace = self.store.clear_way(prefix);
            self.refresh_branches(trace);
        }
        Some(value)
    }

    /// The value of exactly this route.
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
        let (node, _) = self.store.home_of(prefix, self.start(prefix).node)?;
        self.store.value(node, Spot::of(prefix, home(prefix.len())))
    }

    /// The value of exactly this route, to change.
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
        let (node, _) = self.store.home_of(prefix, self.start(prefix).node)?;
        self.store.value_mut(node, Spot::of(prefix, home(prefix.len())))
    }

    /// Whether there is exactly this route.
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

    /// The longest route that contains `address`.
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

    /// The longest route that contains `address`, its value to change.
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

    /// The longest route for each of the addresses, which takes a fraction of the time of looking them
    /// up one by one: the cache misses of 32 of them overlap.
    ///
    /// # Panics
    ///
    /// If there are not as many places in `found` as there are addresses.
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
        assert_eq!(addresses.len(), found.len(), "a place for each address");
        self.batch(addresses, found);
    }

    /// All routes that contain `address`, the shortest first.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let prefixes = [(0x00, 0), (0x40, 2), (0x48, 5)].map(|(at, len)| Prefix::new(at, len));
    /// let routes: RouteTable<u8, ()> = prefixes.into_iter().flatten().map(|at| (at, ())).collect();
    /// assert!(routes.matches(&0x49).map(|(at, ())| at.len()).eq([0, 2, 5]));
    /// assert!(routes.matches(&0x50).map(|(at, ())| at.len()).eq([0, 2]));
    /// ```
    pub fn matches(&self, address: &A) -> Covering<'_, A, V> {
        Covering::along(&self.store, *address, A::BITS)
    }

    /// All routes that cover `prefix`, the shortest first; the last one may be of `prefix` itself.
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

    /// All routes that `prefix` covers, in order; the first one may be of `prefix` itself.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, RouteTable};
    ///
    /// let prefixes = [(0x00, 0), (0x40, 2), (0x48, 5)].map(|(at, len)| Prefix::new(at, len));
    /// let routes: RouteTable<u8, ()> = prefixes.into_iter().flatten().map(|at| (at, ())).collect();
    /// assert!(routes.covered(&Prefix::new(0x40, 2)?).map(|(at, ())| at.len()).eq([2, 5]));
    /// assert!(routes.covered(&Prefix::new(0x40, 3)?).map(|(at, ())| at.len()).eq([5]));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn covered(&self, prefix: &Prefix<A>) -> Iter<'_, A, V> {
        let all = prefix.is_default_route().then_some(self.len);
        Iter::below(&self.store, prefix, all)
    }

    /// Whether there is a route with an address in common with `prefix`: one that covers it, or that it
    /// covers. The way, once.
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
        self.covering(prefix).next().is_some() || walk::has_below(&self.store.nodes, prefix)
    }

    /// All routes in order: by address, and of the same address the shorter first.
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

    /// The prefixes of all routes in order. O(routes) in all.
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

    /// The values of all routes in the order of their prefixes. O(routes) in all.
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

    /// Keeps the routes of which `keep` says so, and may change their values. It is asked in order; if
    /// `keep` panics, all routes stay. O(routes).
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

    /// [`retain`](Self::retain) among the routes that `prefix` covers; all others stay. O(routes that it
    /// covers).
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
        let mut going = Vec::new();
        iter::visit(&mut self.store, prefix, |prefix, value| {
            if !keep(prefix, value) {
                going.push(prefix);
            }
        });
        going.iter().for_each(|prefix| drop(self.remove(prefix)));
    }

    /// Closes the gaps that routes have left that are gone or have moved. O(routes); needs the memory
    /// of both tables for a while.
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
        // Apart, for as long as its slots are of what has moved.
        let direct = self.direct.take();
        self.store.compact();
        self.direct = direct.map(|mut direct| {
            direct.refresh_all(&self.store);
            direct
        });
    }

    /// Bytes that the table has allocated, free ones included; without what values own. A step for
    /// each chunk of memory.
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        let direct =
            self.direct.as_ref().map(|tables| tables.allocation_size() + size_of::<Direct>());
        let (nodes, values) = self.store.allocation_size();
        nodes + values + direct.unwrap_or(0)
    }
}
