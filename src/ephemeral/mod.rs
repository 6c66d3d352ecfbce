//! Ephemeral state: bindings of tags to values, each of which lives for one lifetime at most.
//!
//! A packet stores a value under a tag of its choice, and later packets look it up. One lifetime
//! after its creation the binding expires, whatever was done with it, unless it is
//! [removed](EphemeralStore::remove) before. No user needs to free a binding, and no user can
//! extend its life: state is reclaimed as fast as it is created, so a router can let untrusted
//! senders create it.
//!
//! ```text
//!     index lines                   bindings, in the order of expiry
//!     ┌──────────┬─────────┐        ╭──────┬──────┬──────┬──────┬──────╮
//!     │ 3a ·· 07 │ 4 ··· 0 │        │ tag  │ tag  │ tag  │ tag  │ tag  │
//!     ├──────────┼─────────┤  ┌────▶│ value│      │      │      │      │ ◂─ new ones
//!     │ ·· 9c ·· │ · 1 ··· ───┘     ╰──────┴──────┴──────┴──────┴──────╯
//!     └──────────┴─────────┘         expired │ live: lookups find these only
//!      12 tags    12 slots
//! ```
//!
//! As all bindings live equally long, they expire in the order of their creation: they are in a
//! list, reclaimed at its front, and appended at its end. The list is a circle, so a new binding
//! takes the place of an expired one as it is. A removal takes a binding out of the list, and its
//! slot is free at once.
//!
//! The index has lines of twelve tags of eight bits, which are compared at once, and twelve
//! slots: see `table/lines` in the sources, which the caches and [`FlowCache`](crate::FlowCache)
//! use, too. A binding stores its hash. So reclaiming one computes no hash and compares no tag: it
//! frees a slot of the index. Until then, lookups skip an expired binding by its time.
//!
//! # Invariants
//!
//! - The list has all bindings, in the order of their expiry; the expired ones are at its front.
//! - The index has each binding once, where a lookup with the hash of its tag finds it.
//! - A tag has at most one live binding.
//! - No binding is found one lifetime after its creation or later, whether it is reclaimed or not.
//!   None expires earlier.
//!
//! # Cost
//!
//! A tag and a value of eight bytes each take 40 bytes, and the index takes eleven. A lookup reads
//! a line of the index, and the binding. In a full store, one or two of a hundred bindings are not
//! in their home line, and another binding has the same eight bits in two or three of a hundred
//! lookups. A creation writes its binding in place of the one that has just expired, which is next
//! to the newest one in the list. In a hash table with a queue a creation has four cache misses,
//! and takes 1.4 to 2.8 times as long. A removal costs as much as a lookup, and writes the two
//! neighbours in the list.
//!
//! A single lookup takes 41 instructions. With a million bindings it takes 1.2 times as long as in
//! a Swiss table with a queue of expiry times: the line of the index is a cache miss, as eleven
//! bytes a binding do not fit a cache that one or two bytes of tags fit, and half of the bindings
//! of 40 bytes are in two lines. The lookups of a batch overlap these misses.
//!
//! Tags whose hashes are equal fill lines one after the other: a lookup compares all of them. If a
//! thousand tags or more have equal hashes, their creation allocates memory, and without memory it
//! fails as that of a full store.
//!
//! Each creation reclaims up to two expired bindings: there is no cleaner thread, no pause, and no
//! capacity is lost to expired bindings. Values are dropped when they are reclaimed, so a store
//! without creations keeps expired values until [`clean`](EphemeralStore::clean) is called or the
//! store is dropped.
//!
//! # Many threads
//!
//! A store is for one thread: each packet may create a binding, so there is nothing that readers
//! could share without a lock. If the network card sends all packets of a tag to one core (RSS by
//! the bytes of the tag), *one store for each core* needs no lock at all:
//!
//! ```
//! use flowtable::{EphemeralStore, Timestamp};
//! use std::time::Duration;
//!
//! // The hash of the card has chosen the queue of a packet, and so its core.
//! let queues: [Vec<u64>; 4] = [0, 1, 2, 3].map(|queue| (0..100).map(|n| 4 * n + queue).collect());
//! let created: usize = std::thread::scope(|scope| {
//!     let cores = queues.map(|tags| {
//!         scope.spawn(move || {
//!             let mut store: EphemeralStore<u64, u32> =
//!                 EphemeralStore::new(1000, Duration::from_secs(10)).unwrap();
//!             for tag in tags {
//!                 *store.get_or_insert_with(&tag, Timestamp::ZERO, || 0).unwrap() += 1;
//!             }
//!             store.len()
//!         })
//!     });
//!     cores.map(|core| core.join().unwrap()).iter().sum()
//! });
//! assert_eq!(created, 400);
//! ```
//!
//! Where any thread may have a packet of any tag, *64 stores with a lock each* are few enough lines
//! to be the program's own. Up to a dozen threads rarely wait for each other there:
//!
//! ```
//! use flowtable::{DefaultHashBuilder, EphemeralStore, Timestamp};
//! use std::hash::BuildHasher;
//! use std::sync::{Mutex, PoisonError};
//! use std::time::Duration;
//!
//! type Store = EphemeralStore<u64, u32>;
//!
//! struct SharedStore {
//!     hasher: DefaultHashBuilder,
//!     shards: Vec<Mutex<Store>>,
//! }
//!
//! impl SharedStore {
//!     fn new(capacity: usize, lifetime: Duration) -> Self {
//!         // A sixteenth more than a 64th of the capacity: shards differ in their bindings.
//!         let store = || Store::new(capacity / 60, lifetime).unwrap();
//!         let shards = (0..64).map(|_| Mutex::new(store())).collect();
//!         Self { hasher: DefaultHashBuilder::new(), shards }
//!     }
//!
//!     fn with<R>(&self, tag: u64, act: impl FnOnce(&mut Store) -> R) -> R {
//!         let shard = &self.shards[(self.hasher.hash_one(tag) >> 58) as usize];
//!         act(&mut shard.lock().unwrap_or_else(PoisonError::into_inner))
//!     }
//! }
//!
//! let store = SharedStore::new(100_000, Duration::from_secs(10));
//! let count = |tag| {
//!     store.with(tag, |store| {
//!         *store.get_or_insert_with(&tag, Timestamp::ZERO, || 0).unwrap() += 1;
//!     });
//! };
//! std::thread::scope(|scope| {
//!     for _ in 0..4 {
//!         scope.spawn(|| (0..1000).for_each(&count));
//!     }
//! });
//! let uses = |tag| store.with(tag, |store| store.get(&tag, Timestamp::ZERO).copied());
//! assert!((0..1000).all(|tag| uses(tag) == Some(4)));
//! assert_eq!(uses(1000), None);
//! ```
//!
//! # Paper
//!
//! Calvert, Griffioen and Wen, *Lightweight network support for scalable end-to-end services*
//! (2002), sections 6 and 8. Differences:
//!
//! - The paper has chains of entries, which its cleaner unlinks. Here tags are in an index with
//!   three slots for two bindings.
//! - Removal is ours; in the part of the paper that is available every binding lives for exactly
//!   one lifetime.
//! - The paper finds a binding first, and then reads and writes it. Here a lookup returns a
//!   reference to the value, which is read and written by it.
//! - The paper's cleaner is a thread that runs every tenth of a lifetime, and is late by that much.
//!   Here a lookup checks the expiry, and creation reclaims.

// In this order rustdoc lists the methods of the store.
mod store;

mod lookup;

use core::error::Error;
use core::fmt;

use crate::table::error::CapacityError;
pub use store::EphemeralStore;

/// The error of a creation in a full store: nothing was created.
///
/// The next creation succeeds when the oldest binding has expired, or any one was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the store is full of live bindings")
    }
}

impl Error for Full {}

/// The error of the constructors of [`EphemeralStore`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// The capacity is zero.
    NoCapacity,
    /// The lifetime is zero.
    NoLifetime,
    /// The capacity exceeds the range of slots or addresses.
    TooLarge,
    /// The allocation failed.
    NoMemory,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoCapacity => "the capacity of a store must be at least one binding",
            Self::NoLifetime => "the lifetime must be greater than zero",
            Self::TooLarge => "the capacity exceeds the maximum of a store",
            Self::NoMemory => "the memory allocation failed",
        })
    }
}

impl Error for StoreError {}

impl From<CapacityError> for StoreError {
    fn from(error: CapacityError) -> Self {
        match error {
            CapacityError::Zero => Self::NoCapacity,
            CapacityError::TooLarge => Self::TooLarge,
            CapacityError::NoMemory => Self::NoMemory,
        }
    }
}
