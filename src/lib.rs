//! Find the state that belongs to a packet.
//!
//! Userspace TCP and QUIC stacks, NAT and connection tracking, load balancers, flow meters,
//! software routers: for each packet they look for the state of its flow. This crate has the
//! structures for that, `no_std` with `alloc`.
//!
//! ```
//! use flowtable::flow_cache::{Config, Event, Packet, Timeouts};
//! use flowtable::{FlowCache, FlowKey, Timestamp};
//!
//! let config = Config::new(100_000)?.with_timeouts(Timeouts::METER);
//! let mut flows: FlowCache<FlowKey, u64> = FlowCache::new(config);
//! let query = FlowKey::new("10.0.0.1".parse()?, "10.0.0.2".parse()?, 40_000, 53, 17).unwrap();
//! for (milliseconds, key, length) in [(0, query, 60), (20, query.reversed(), 120)] {
//!     // One look-up; the answer is a packet of the same flow. Time is what the caller says.
//!     let seen = flows.observe(&key, Packet::UDP, Timestamp::from_millis(milliseconds))?;
//!     *seen.flow += length;
//!     // At 100,000 flows another one had to leave, and is handed over.
//!     assert!(seen.departed.is_none());
//! }
//! // A minute of silence ends a flow. Never more work at once than the caller allows.
//! flows.advance(Timestamp::from_secs(61), 100, |event| match event {
//!     Event::Ended(flow) => assert_eq!((flow.key, flow.value), (query, 180)),
//!     Event::Active(_) => unreachable!("it would have lived for 300 seconds"),
//! });
//! assert!(flows.is_empty());
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! # Which structure for which job
//!
//! | you want | take | because |
//! |---|---|---|
//! | flows that begin, live and end; a bounded table of them | [`FlowCache`] | timeouts, TCP's states, two names for an entry, eviction by class, who left and why |
//! | state by key | [`TrashMap`] | a hash table that never pauses, with look-ups in bursts |
//! | the same for many threads | [`ConcurrentMap`], [`ConcurrentRoutes`] | readers that never wait; the feature `concurrent` |
//! | state by key, keys in order or ranges of keys | [`LcTrieMap`] | a level-compressed trie is ordered and shallow |
//! | the same, whatever the keys are | [`LcTrieMap`] over [`Headed`] keys | a hash in front makes any keys random: this is TRASH |
//! | the route of an address: the longest prefix | [`RouteTable`] | a few nodes for each look-up, nothing rebuilt by updates |
//! | the same on the trie of the papers, to see how it works | [`LcRouteTable`] | what Linux routes with; look-ups backtrack |
//! | the socket that a packet is for: connections, listeners, who may bind what | [`SocketTable`] | the best match wins; an array for a handful, a [`TrashMap`] for a hundred thousand |
//! | state by an index that the packet has brought: a hash of the network card, a flow label, a connection ID | [`SourceHashCache`] | no hash is computed, one set of entries is looked at; an index that is wrong costs time only |
//! | a bounded cache by key, with an eviction policy | [`ChainedCache`] | chains of bounded length; any hash |
//! | calls told from their duplicates | [`DuplicateFilter`] | the last call of each sender, for the life of a packet |
//! | state that strangers may make, a SYN, a request, a nonce, and that is gone a lifetime later | [`EphemeralStore`] | freed as fast as it is made, by taking it from a ring; nothing keeps it longer |
//! | packets that compute with such state on their way through routers | [`esp`] | five instructions, each of bounded work |
//! | labels that lead to the next router's row, handed out by routing | [`threaded`] | nothing is searched, nothing is hashed; generations catch stale labels |
//! | to copy and to sum the layers of a packet in one pass | [`dml`] | the data manipulation header names the bytes |
//! | to count what look-ups of PCBs cost | [`demux`] | BSD's list, move-to-front, Sequent's chains and others, with the paper's equations |
//! | whose turn it is on the CPU, when the flow is found | [`schedule`] | shares, batches as large as the overhead allows, queues that are bounded |
//! | the same for anything that has shares | [`share`] | WF2Q+ in integers, O(log n) |
//! | who leaves a full table of your own | [`evict`] | LRU, clocks, the paper's garbage collection, all O(1) over slot numbers |
//! | the flow cache of the TRASH paper, as it was | [`Unicache`] | a trie that evicts what scores lowest |
//! | a key made of a packet's header | [`FlowKey`], [`FiveTuple`], [`FourTuple`] | they are bit strings, hash in whole words, and know their reverse |
//! | a key of your own | [`BitString`], and [`Address`] for one that has prefixes | one method each |
//!
//! Each module says how its structure works, what it costs, and which paper it is from.
//!
//! # Trade-offs
//!
//! - **No pauses cost instructions.** A [`TrashMap`] asks a directory where a Swiss table has a mask:
//!   one by one, look-ups take about twice as long; bursts of 32 take less where tables outgrow the cache.
//! - **A flow has a life, and that costs time.** A [`FlowCache`] under churn takes up to twice as long for a packet as
//!   a hash table with a list in the order of use, and little longer than that if packets come in bursts.
//! - **A trie follows pointers.** A look-up in an [`LcTrieMap`] takes 2 to 5 times as long as in a
//!   Swiss table. Take it for order, for ranges, for its shape. An insertion may double its root and
//!   then looks into all keys at once: tens of milliseconds at a million keys.
//! - **A route table counts bits.** A [`RouteTable`] needs an eighth of the memory of a flat array for
//!   the same routes, and look-ups take two to six times as long.
//! - **Readers that never wait look twice.** A [`ConcurrentMap`] keeps entries where they are, behind a number:
//!   look-ups take twice as long as in a [`TrashMap`], in bursts 1.4 times. A [`ConcurrentRoutes`] takes twice the
//!   memory, and its readers change tables with each update.
//! - **Who binds what must be known.** A [`SocketTable`] takes twice as long as a map to open and close a
//!   connection; look-ups take as long.
//! - **An index from the packet is a hint.** A [`SourceHashCache`] finds nothing wrong by it, but flows of one index displace
//!   each other, and one that comes with two indices is there twice: take it for what can be found again.
//! - **Ephemeral state cannot be kept.** An [`EphemeralStore`] that is full of living bindings takes no more, whoever
//!   they are for. It creates in a third to two thirds of the time that a hash table with a queue takes, in bursts in
//!   less than a third; it finds more slowly, in bursts as fast where tables outgrow the processor's cache.
//! - **Time and randomness are arguments.** There is no clock in the crate, and without the feature
//!   `std` no source of seeds: see [`DefaultHashBuilder::with_seeds`].
//!
//! # Features
//!
//! - `std` (default): random seeds from the operating system for [`DefaultHashBuilder`], and asking the
//!   processor whether it counts bits.
//! - `serde`: `Serialize` and `Deserialize` for keys, maps and [images](Image) of flow caches, `Serialize` for
//!   parameters, shapes and metrics.
//! - `ipnet`: conversion of [`Prefix`] from and to the types of the crate `ipnet`.
//! - `concurrent`: [`ConcurrentMap`] and [`ConcurrentRoutes`], whose readers never wait. Brings `std`.
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

pub mod cache;
#[cfg(feature = "concurrent")]
pub mod concurrent;
pub mod demux;
pub mod dml;
pub mod ephemeral;
pub mod eviction;
pub mod flow_cache;
pub mod hash;
#[doc(hidden)]
pub mod invariant;
pub mod key;
pub mod probes;
mod raw;
pub mod routes;
pub mod schedule;
#[cfg(feature = "serde")]
mod serde;
pub mod sockets;
pub mod threaded;
pub mod timestamp;
pub mod trash;
pub mod trie;

pub use cache::{ChainedCache, DuplicateFilter, SourceHashCache};
#[cfg(feature = "concurrent")]
pub use concurrent::{ConcurrentMap, ConcurrentRoutes};
pub use ephemeral::EphemeralStore;
pub use flow_cache::FlowCache;
pub use hash::DefaultHashBuilder;
pub use key::flow::{Direction, FiveTuple, FlowKey, FourTuple, TcpFlags};
pub use key::prefix::{Prefix, PrefixError};
pub use routes::RouteTable;
pub use sockets::SocketTable;
pub use timestamp::Timestamp;
pub use trash::TrashMap;
pub use trie::map::LcTrieMap;
pub use trie::routes::LcRouteTable;

/// The examples of the README are tests like all others; one of them needs the feature.
#[cfg(all(doctest, feature = "concurrent"))]
#[doc = include_str!("../README.md")]
struct Readme;
