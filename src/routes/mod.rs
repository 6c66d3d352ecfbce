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
//! only routes of 7 to 18 bits, so that an update changes 4096 slots at most, and a default route
//! none. *Levels by hash*: nodes of wide addresses at bits 24, 30, 36 and 42 are copied to a hash
//! table, and the last three are read at the same time (`levels.rs`).
//!
//! Lookups use the copies, most other methods the trie. An update finds its node by the copy, too,
//! which has the index of the node: a slot has the index of the node at bit 18. The index in an
//! entry may be stale, and is verified by the routes. Copies are made when there are some hundred
//! routes (`update.rs`).
//!
//! Nodes and copies do not depend on the type of the values: their functions are methods of `Nodes`
//! and `Shortcuts`, which are compiled once for all types of values (`store.rs`, `update.rs`).
//!
//! # Invariants
//!
//! 1. A node at bit `pos` holds the routes of `pos + 1` to `pos + 6` bits that begin with its
//!    prefix; the root holds the one of length 0, too.
//! 2. Each route has its node, and no node has neither routes nor children.
//! 3. From bit 18 on, consecutive nodes with one child and no routes are a path, of up to ten
//!    strides.
//! 4. A slot of a direct table agrees with the nodes at bits 6, 12 and 18, and levels with
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
//! Misses and bytes are for the Internet's routes. A table of chunks lies between an index and its
//! value, and a directory before a level; both are small enough for L2. A table without routes has
//! allocated nothing, one with a few routes and small values two kilobytes.
//!
//! Up to 4096 routes with the same first six bits have no direct table, which would take more
//! memory than they do. There a lookup reads a node for each six bits: with up to 4096 routes on
//! the whole, it takes two thirds of the instructions of one in prefix-trie, in IPv6 half of them,
//! and bursts gain nothing.
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
//! [`LcRouteTable`](crate::trie::routes::LcRouteTable) is the trie of the papers itself.

// First, so that the documentation of the type begins with its methods.
mod table;

mod aggregate;
mod build;
mod change;
mod direct;
mod dual_stack;
mod entry;
pub(crate) mod generations;
mod iter;
mod key;
mod levels;
mod lookup;
mod node;
mod operations;
mod pool;
pub(crate) mod search;
mod segment;
mod set;
mod shape;
pub mod stamped;
mod store;
pub(crate) mod stride;
mod traversal;
mod update;

use core::marker::PhantomData;

use crate::memory::{Allocator, Global};
use search::Changed;
use store::Store;
use update::Shortcuts;

pub use dual_stack::{Both, Routes};
pub use entry::{Entry, OccupiedEntry, VacantEntry};
pub use generations::{Refreshed, RouteStamp};
pub use iter::{Covering, IntoIter, Iter, IterMut, MatchesMut};
pub use set::{AnyPrefixSet, PrefixSet};
pub use shape::RouteShape;
pub use stamped::StampedRoutes;
pub use store::NoMemory;

/// A routing table: values by prefix, with longest-prefix match of addresses.
///
/// | method | cost |
/// |---|---|
/// | `lookup`, `lookup_mut` | a slot or entries of three levels, a value; else the trie |
/// | `lookup_batch`, `lookup_batch_values` | with the cache misses of 32 addresses overlapped |
/// | `insert`, `try_insert`, `remove` | the path to the node, up to 126 values; for some, 64 or 4096 slots |
/// | `get`, `get_mut`, `contains`, `lookup_prefix` | the path to the node |
/// | `matches`, `matches_mut`, `covering` | the path, once |
/// | `covered`, `covered_mut`, `iter`, `iter_from` | the path, and all routes below, or from it on |
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

/// The change by an insertion into the store.
enum Inserted<V> {
    /// The value, whose old one this is.
    Replaced(V),
    /// The routes of a node, one of which is new.
    New(Changed),
}
