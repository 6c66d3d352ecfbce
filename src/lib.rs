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
//! | flows with timeouts, in a bounded table | [`FlowCache`] | TCP states, both directions in one entry, eviction by class, events |
//! | state by key | [`TrashMap`], [`TrashSet`] | a hash table without pauses, with lookups in bursts |
//! | entries that are their own keys, hashes of the caller | [`TrashTable`] | the same table, with hash and comparison given |
//! | state by key, for many threads | [`ConcurrentMap`] | readers without locks; feature `concurrent` |
//! | a set, for many threads | [`ConcurrentSet`] | readers without locks |
//! | plain state by key, for many threads | [`ConcurrentTable`] | entries in one cache line, read by copy; atomic counters |
//! | the route of an address | [`RouteTable`], [`Routes`] | longest-prefix match; an update changes one node |
//! | the route of an address, for many threads | [`ConcurrentRoutes`] | readers without locks, beside updates |
//! | the socket of a packet | [`SocketTable`] | connections, listeners, the rules of `bind`, ephemeral ports |
//! | state by keys that are random already: connection IDs that this host has drawn | [`TrashMap`] with [`IdHasher`](hash::IdHasher) | the key is its hash |
//! | state that can be recomputed, by an index that the packet carries: an RSS hash, a flow label | [`SourceHashCache`] | no hash is computed; a wrong index costs time only |
//! | a bounded cache by key | [`BoundedCache`] | an eviction policy; two cache lines for a lookup |
//! | duplicates of calls | [`DuplicateFilter`](cache::DuplicateFilter) | the last call of each sender, for the lifetime of a packet |
//! | state that lives one lifetime: SYNs, requests, nonces | [`EphemeralStore`] | a list in the order of expiry: no search |
//! | keys in order, ranges of keys | [`LcTrieMap`] | a level-compressed trie is ordered and shallow |
//! | keys for these | [`FlowKey`], [`FiveTuple`], [`FourTuple`], [`Prefix`] | packed words with a reverse direction |
//!
//! The papers' tables are [`trie`] (also with hashed keys: [`Headed`](key::bits::Headed), and as a
//! flow cache: [`Unicache`](trie::unicache::Unicache)), [`demux`], [`cache`], [`ephemeral`] and
//! [`eviction`]. The feature `papers` has their other mechanisms: scheduling, threaded indices,
//! data manipulation headers, packets that compute, and the classic hashes.
//!
//! Each module describes its structure, its invariants, its costs and its paper.
//!
//! # Conventions
//!
//! - One verb, one meaning: `get` is exact, `lookup` is the longest match, `peek` has no side
//!   effect, `…_batch` overlaps the cache misses of several keys and passes each result to a
//!   closure, such as [`write_to`] a slice.
//! - A [`Prehashed`] key, with a hash that is known already, is accepted wherever a structure that
//!   hashes takes a borrowed key.
//! - A structure with a bound needs its capacity, so it has no `Default`. It returns the entries
//!   that it evicts, and refuses the entries that it cannot store.
//! - Structures that threads share are used through a pin, such as [`ConcurrentMap::pin`].
//! - Errors implement [`core::error::Error`]. An error that returns a value has it in the field
//!   `refused`, and its cause in the field `reason`.
//!
//! # Trade-offs
//!
//! Measured by the bench `peers`; the section *Limits* of the README has more.
//!
//! - **A table without pauses has a directory.** A [`TrashMap`] loads a directory entry where a
//!   Swiss table has a mask: single lookups take up to 1.3 times as long with the same hash; bursts
//!   of 32 take less time in tables beyond the L2 cache.
//! - **Flow state costs time.** For ten thousand flows, a [`FlowCache`] takes up to 1.5 times as
//!   long for a packet as a hash table with an LRU list; from a hundred thousand on about as long,
//!   and in bursts half as long.
//! - **A trie follows pointers.** A lookup in an [`LcTrieMap`] takes 2 to 5 times as long as in a
//!   Swiss table. An insertion may double the root and then visits all keys: tens of milliseconds
//!   at a million keys.
//! - **A route table counts bits.** A [`RouteTable`] needs a fifth of the memory of a flat array of
//!   2^24 entries for the routes of the Internet, and lookups take up to 2.4 times as long.
//! - **Concurrent entries are indirect.** A [`ConcurrentMap`] stores entries apart from its index:
//!   lookups take twice as long as in a [`TrashMap`], in bursts 1.4 times. Lookups of IPv6 in a
//!   [`ConcurrentRoutes`] take about twice as long as in a [`RouteTable`].
//! - **Binding needs the ports in use.** A [`SocketTable`] takes 1.3 to 1.6 times as long as a map
//!   to open and close a connection; lookups take as long.
//! - **An index from the packet is a hint.** Flows with the same index in a [`SourceHashCache`]
//!   evict each other, and a flow with two indices has two entries: use it for state that can be
//!   recomputed.
//! - **Ephemeral state cannot be kept.** A full [`EphemeralStore`] refuses new bindings until old
//!   ones expire or are removed. Creation takes a third to two thirds of the time of a hash table
//!   with a queue; single lookups take longer.
//! - **Time and randomness are arguments.** The crate reads no clock, and without the feature `std`
//!   it has no source of seeds: see [`DefaultHashBuilder::with_seeds`].
//!
//! # Features
//!
//! - `std` (default): random seeds from the operating system for [`DefaultHashBuilder`], and
//!   detection of the CPU's bit instructions. No type changes.
//! - `papers` (default): the module `papers`. No other module depends on it.
//! - `serde`: `Serialize` and `Deserialize` for keys, maps and [images](flow_cache::Image) of flow
//!   caches and their [configuration](flow_cache::Config), `Serialize` for other parameters, shapes
//!   and metrics.
//! - `rayon`: parallel iterators over [`TrashMap`], [`TrashSet`] and [`TrashTable`]. Implies `std`.
//! - `ipnet`: conversions between [`Prefix`], [`AnyPrefix`] and the types of the crate `ipnet`.
//! - `concurrent`: [`ConcurrentMap`], [`ConcurrentSet`], [`ConcurrentTable`], [`ConcurrentRoutes`],
//!   [`ConcurrentStampedRoutes`](concurrent::ConcurrentStampedRoutes) and
//!   [`ConcurrentLcTrie`](concurrent::ConcurrentLcTrie). Implies `std`; needs atomics of 64 bits.
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
pub use raw::results::write_to;
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
