//! Structures for several threads. Readers are wait-free.
//!
//! ```text
//!     reader   ──pin───────get────get────get────┐repin──get────get────┐drop
//!     writer        lock, insert, remove, retire ─┐
//!     collector                                   └ · · · waits for earlier pins · · ▼ free
//! ```
//!
//! | purpose | structure | method |
//! |---|---|---|
//! | state by key | [`ConcurrentMap`] | TRASH; growth copies segments; a writers' lock per shard |
//! | a set of keys | [`ConcurrentSet`] | the same |
//! | plain state by key | [`ConcurrentTable`] | the same trie, with entries in the index, read by copy |
//! | the route of an address | [`ConcurrentRoutes`] | a trie of blocks that are copied |
//! | decisions on routes | [`ConcurrentStampedRoutes`] | the same trie; a generation for each route |
//! | keys in order | [`ConcurrentLcTrie`] | the LC-trie: nodes are copied when they are resized |
//!
//! A reader holds a *pin* while it reads: no lock, no store to shared memory, no retry. A writer
//! publishes a replacement with one store, of a word that readers load. Removed entries are
//! *retired*, and freed when all earlier pins have ended: read-copy-update, which the TRASH paper
//! uses in the Linux kernel. Epochs (Fraser 2004), as `crossbeam-epoch` implements them, determine
//! that time. A pin costs a store and a fence, so hold one for a burst of packets.
//!
//! State that expires needs none of that: its values change with each packet, so threads share
//! [stores with a lock each](crate::ephemeral#many-threads), or better have one each.
//!
//! # One guard for a thread
//!
//! A structure's own `pin` is a guard for that structure. A thread that reads several of them needs
//! one guard only: [`pin`], with which each of them is read through its `pinned` method. One
//! [`repin`](Guard::repin) between two bursts moves all of them on. The loop of a router, with a
//! route table for each address family, and its flows:
//!
//! ```
//! use flowtable::concurrent::{ConcurrentMap, ConcurrentRoutes, pin};
//! use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
//!
//! let v4: ConcurrentRoutes<Ipv4Addr, &str> = ConcurrentRoutes::new();
//! let v6: ConcurrentRoutes<Ipv6Addr, &str> = ConcurrentRoutes::new();
//! let flows: ConcurrentMap<(IpAddr, u16), &str> = ConcurrentMap::new();
//!
//! v4.insert("10.0.0.0/8".parse()?, "core")?;
//! v6.insert("2001:db8::/32".parse()?, "lab")?;
//! let bursts = [
//!     [("10.1.2.3".parse()?, 53), ("2001:db8::1".parse()?, 443)],
//!     [("10.1.2.3".parse()?, 53), ("192.0.2.1".parse()?, 80)],
//! ];
//! let mut sent = [0, 0];
//! let mut guard = pin();
//! for burst in bursts {
//!     let (v4, v6, flows) = (v4.pinned(&guard), v6.pinned(&guard), flows.pinned(&guard));
//!     for flow in burst {
//!         let via = flows.get(&flow).copied().or_else(|| {
//!             let (_, &via) = match flow.0 {
//!                 IpAddr::V4(address) => v4.lookup(&address).map(|(to, via)| (to.len(), via))?,
//!                 IpAddr::V6(address) => v6.lookup(&address).map(|(to, via)| (to.len(), via))?,
//!             };
//!             // Refused above the limit on garbage: then the next packet looks up again.
//!             let _ = flows.insert(flow, via);
//!             Some(via)
//!         });
//!         sent[usize::from(via.is_some())] += 1;
//!     }
//!     guard.repin();
//! }
//! assert_eq!((sent, flows.len()), ([1, 3], 2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A thread may hold several pins, and repin them one after the other: each protects and advances
//! on its own.
//!
//! # Values that packets change
//!
//! A value is read through a shared reference, so data that packets change is stored in one of
//! these places:
//!
//! | changed data | place | cost of a change |
//! |---|---|---|
//! | counters, timestamps, flags | atomics in the value | one atomic operation |
//! | plain data of any size | [`ConcurrentTable`]: `fetch_add`, `update` | the lock of a shard |
//! | anything else | a `Mutex` in the value | its lock |
//! | rarely, and as a whole | `update`, `compute` | a new entry |
//!
//! A lock or an atomic outlives its entry: *a thread may change a value whose entry another thread
//! has already removed*. For counters that is a packet counted too late. A state that must not be
//! lost has a mark in the value, under its lock, which the thread that removes it sets first:
//!
//! ```
//! use std::sync::Mutex;
//! use flowtable::ConcurrentMap;
//!
//! #[derive(Default)]
//! struct Connection {
//!     bytes: u64,
//!     is_closed: bool,
//! }
//!
//! /// Counts a packet of a connection. Inserts the connection if it is absent.
//! fn packet(connections: &ConcurrentMap<u32, Mutex<Connection>>, id: u32, bytes: u64) {
//!     let pin = connections.pin();
//!     loop {
//!         let value = pin.get_or_insert_with(&id, Mutex::default).expect("there is room");
//!         let mut connection = value.lock().unwrap();
//!         if !connection.is_closed {
//!             connection.bytes += bytes;
//!             return;
//!         }
//!         // It is being removed: this removes it, too, and the next round inserts another one.
//!         drop(connection);
//!         pin.remove_if(&id, |_, found| std::ptr::eq(found, value));
//!     }
//! }
//!
//! /// Removes a connection and returns its final count.
//! fn close(connections: &ConcurrentMap<u32, Mutex<Connection>>, id: u32) -> Option<u64> {
//!     let pin = connections.pin();
//!     let value = pin.get(&id)?;
//!     let mut connection = value.lock().unwrap();
//!     if std::mem::replace(&mut connection.is_closed, true) {
//!         return None;
//!     }
//!     pin.remove_if(&id, |_, found| std::ptr::eq(found, value));
//!     Some(connection.bytes)
//! }
//!
//! let connections = ConcurrentMap::new();
//! let closed: u64 = std::thread::scope(|scope| {
//!     for _ in 0..2 {
//!         scope.spawn(|| (0..1000).for_each(|_| packet(&connections, 7, 60)));
//!     }
//!     (0..100).filter_map(|_| close(&connections, 7)).sum()
//! });
//! // No packet is lost.
//! assert_eq!(closed + close(&connections, 7).unwrap_or(0), 2 * 1000 * 60);
//! ```
//!
//! # The collector
//!
//! *The collector is shared by these structures in the whole process*: a pin of any of them delays
//! the reclamation of garbage of all of them. The pins of other users of `crossbeam-epoch` do not:
//! the collector is one of this crate. It does not bound garbage; these structures do: above a
//! limit, writers help the collector, and then return the data that they were to insert, with
//! [`Refusal`] or [`Refused`]. So the reason of such an error is a guard of this crate, or one that
//! has just ended: each call frees some of the garbage that it left.
//!
//! Lookups are wait-free. A pin is nearly always; now and then it helps the collector, and then
//! runs destructors of some of the garbage.
//!
//! Garbage is freed by any thread, and perhaps after the end of its structure. That is why
//! [`ConcurrentMap`], [`ConcurrentTable`] and [`ConcurrentLcTrie`] have no
//! [allocator parameter](crate::memory).

mod collector;
mod engine;
mod error;
pub mod map;
mod memory;
mod pinned;
mod policy;
pub mod routes;
mod set;
pub mod stamped;
mod sync;
pub mod table;
pub mod trie;

pub use error::{Refusal, Refused};
pub use map::{Compute, Computed, ConcurrentMap, Iter, TryInsert};
pub use pinned::{Guard, pin};
pub use pinned::{Pinned, Protect};
pub use routes::ConcurrentRoutes;
pub use set::{ConcurrentSet, SetIter};
pub use stamped::ConcurrentStampedRoutes;
pub use table::{ConcurrentTable, Integer, NoUninit, TableIter};
pub use trie::{ConcurrentLcTrie, TrieIter};
