//! Find the state that belongs to a packet.
//!
//! Userspace TCP and QUIC stacks, NAT and connection tracking, load balancers, flow meters and
//! software routers look up the state of a flow for each packet. This crate has the structures for
//! that, `no_std` with `alloc`.
//!
//! ```
//! use flowtable::flow_cache::{Config, Event, Packet, Timeouts};
//! use flowtable::{FlowCache, FlowKey, Timestamp};
//!
//! let config = Config::new(100_000)?.with_timeouts(Timeouts::METER);
//! let mut flows: FlowCache<FlowKey, u64> = FlowCache::new(config);
//! let query = FlowKey::new("10.0.0.1".parse()?, "10.0.0.2".parse()?, 40_000, 53, 17).unwrap();
//! for (milliseconds, key, length) in [(0, query, 60), (20, query.reversed(), 120)] {
//!     // One lookup; the answer belongs to the same flow. Time is an argument.
//!     let seen = flows.observe(&key, Packet::UDP, Timestamp::from_millis(milliseconds))?;
//!     *seen.flow += length;
//!     // From 100,000 flows on, a new flow evicts an old flow, which is returned here.
//!     assert!(seen.removed().is_none());
//! }
//! // A minute without packets ends a flow. One call does a bounded amount of work.
//! flows.advance(Timestamp::from_secs(61), 100, |event| match event {
//!     Event::Ended(flow) => assert_eq!((flow.key, flow.value), (query, 180)),
//!     Event::Active(_) => unreachable!("the active timeout is 300 seconds"),
//! });
//! assert!(flows.is_empty());
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! # Which structure for which job
//!
//! | job | structure | why |
//! |---|---|---|
//! | flows with timeouts, in a bounded table | [`FlowCache`] | both directions in one entry, TCP states, eviction by class, events |
//! | state by key | [`TrashMap`], [`TrashSet`], [`TrashTable`] | a hash table without pauses, with lookups in bursts |
//! | state by key, for many threads | [`ConcurrentMap`], [`ConcurrentSet`] | readers without locks |
//! | plain state by key, for many threads | [`ConcurrentTable`] | entries in one cache line, read by copy; atomic counters |
//! | the route of an address | [`RouteTable`], [`Routes`]; for many threads [`ConcurrentRoutes`] | longest-prefix match; an update changes one node |
//! | the socket of a packet | [`SocketTable`] | connections, listeners, the rules of `bind`, ephemeral ports |
//! | state that can be recomputed, by an index that the packet carries (RSS hash, flow label) | [`SourceHashCache`] | no hash is computed; a wrong index costs time only |
//! | state by keys that are random already (connection IDs that this host has drawn) | [`TrashMap`] with [`IdHasher`](hash::IdHasher) | the key is its hash |
//! | a bounded cache by key; duplicates of calls | [`BoundedCache`]; [`DuplicateFilter`](cache::DuplicateFilter) | an eviction policy; the last call of each sender |
//! | state that lives one lifetime: SYNs, requests, nonces | [`EphemeralStore`] | a list in the order of expiry: no search |
//! | keys in order, ranges of keys | [`LcTrieMap`] | a level-compressed trie is ordered and shallow |
//! | keys for these | [`FlowKey`], [`FiveTuple`], [`FourTuple`], [`Prefix`] | packed words with a reverse direction |
//!
//! Each module describes its structure, its invariants, its costs and its paper. Other structures
//! of the papers are in [`trie`], [`demux`], [`cache`] and [`eviction`], mechanisms that are no
//! tables in `papers`.
//!
//! # Conventions
//!
//! - `get` is exact, `lookup` is the longest match, `peek` has no side effect. `…_batch` overlaps
//!   the cache misses of several keys and passes each result to a closure, such as [`write_to`] a
//!   slice.
//! - Structures that hash, apart from [`demux`], accept a [`Prehashed`] key wherever they take a
//!   borrowed key.
//! - A structure with a bound needs its capacity, so it has no `Default`. It returns the entries
//!   that it evicts, and refuses the entries that it cannot store. An error that returns a value
//!   has it in the field `refused`, and the reason, if there are several, in the field `reason`.
//!   The message of an error contains its reason, so `source` does not return the reason.
//! - Structures that threads share are used through a pin, such as [`ConcurrentMap::pin`].
//! - Time and randomness are arguments: the crate reads no clock, and without the feature `std` it
//!   has no source of seeds ([`DefaultHashBuilder::with_seeds`]).
//!
//! # Features
//!
//! - `std` (default): random seeds from the operating system for [`DefaultHashBuilder`], and
//!   detection of the CPU's bit instructions. No type changes.
//! - `papers` (default): the module `papers`. No other module depends on it.
//! - `concurrent`: the concurrent structures. Implies `std`; needs atomics of 64 bits.
//! - `rayon`: parallel iterators over [`TrashMap`], [`TrashSet`] and [`TrashTable`]. Implies `std`.
//! - `serde`: `Serialize` and `Deserialize` for keys, maps, [images](flow_cache::Image) of flow
//!   caches and their [configuration](flow_cache::Config); `Serialize` for other parameters, shapes
//!   and metrics.
//! - `ipnet`: conversions between [`Prefix`], [`AnyPrefix`] and the types of the crate `ipnet`.
//!
//! # More
//!
//! [Limits and measurements](https://docs.rs/crate/flowtable/latest/source/README.md),
//! [recipes](https://docs.rs/crate/flowtable/latest/source/docs/RECIPES.md),
//! [design](https://docs.rs/crate/flowtable/latest/source/docs/DESIGN.md),
//! [security](https://docs.rs/crate/flowtable/latest/source/SECURITY.md).
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

pub mod cache;
mod clock;
#[cfg(feature = "concurrent")]
pub mod concurrent;
pub mod demux;
pub mod ephemeral;
pub mod eviction;
pub mod flow_cache;
pub mod hash;
#[doc(hidden)]
pub mod invariant;
pub mod key;
pub mod memory;
#[cfg(feature = "papers")]
pub mod papers;
pub mod probes;
mod raw;
pub mod routes;
#[cfg(feature = "serde")]
mod serde;
pub mod sockets;
mod table;
pub mod timestamp;
pub mod trash;
pub mod trie;

#[doc(inline)]
pub use cache::{BoundedCache, SourceHashCache};
#[cfg(feature = "concurrent")]
#[doc(inline)]
pub use concurrent::{ConcurrentMap, ConcurrentRoutes, ConcurrentSet, ConcurrentTable};
#[doc(inline)]
pub use ephemeral::EphemeralStore;
#[doc(inline)]
pub use flow_cache::FlowCache;
#[doc(inline)]
pub use hash::{DefaultHashBuilder, Prehashed};
#[doc(inline)]
pub use key::any_prefix::AnyPrefix;
#[doc(inline)]
pub use key::flow::{Direction, FiveTuple, FlowKey, FourTuple, TcpFlags};
#[doc(inline)]
pub use key::prefix::{Prefix, PrefixError};
#[doc(inline)]
pub use raw::burst::write_to;
#[doc(inline)]
pub use routes::{RouteTable, Routes};
#[doc(inline)]
pub use sockets::SocketTable;
#[doc(inline)]
pub use timestamp::Timestamp;
#[doc(inline)]
pub use trash::{TrashMap, TrashSet, TrashTable};
#[doc(inline)]
pub use trie::map::LcTrieMap;

/// The examples of the README are tests like all others; one of them needs the feature.
#[cfg(all(doctest, feature = "concurrent"))]
#[doc = include_str!("../README.md")]
struct Readme;

/// The recipes are tests, too.
#[cfg(all(doctest, feature = "concurrent"))]
#[doc = include_str!("../docs/RECIPES.md")]
struct Recipes;
