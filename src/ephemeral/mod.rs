//! Ephemeral state: bindings of tags to values, each of which lives for one lifetime at most.
//!
//! A packet stores a value under a tag of its choice, and later packets look it up. One lifetime
//! after its creation the binding expires, whatever was done with it, unless it is
//! [removed](EphemeralStore::remove) before. No user needs to free a binding, and no user can
//! extend its life: state is reclaimed as fast as it is created, so a router can let untrusted
//! senders create it.
//!
//! ```text
//!     index                       ring, oldest first
//!     ┌──────────┬─────────┐      ╭──────┬──────┬──────┬──────┬──────┬──────┬──────┬──────────╮
//!     │ 3a ·· 07 │ 41 ·· 44│      │ 40   │ 41   │ 42   │ 43   │ 44   │ 45   │ 46   │ vacant   │
//!     ├──────────┼─────────┤      │ tag  │      │      │      │      │      │      │          │
//!     │ ·· 9c ·· │ ·· 43 ·· ──────────────────────────▶ tag  │      │      │      │          │
//!     ├──────────┼─────────┤      │      │      │ ◀─── where │      │      │      │          │
//!     │ c4 ·· ·· │ 45 ·· ··│      ╰──────┴──────┴──────┴──────┴──────┴──────┴──────┴──────────╯
//!     └──────────┴─────────┘        expired     │ live: `find` returns these only   ▲ next
//!      15 tags    15 numbers
//! ```
//!
//! Bindings have consecutive sequence numbers. As all live equally long, they expire in the order
//! of these numbers: they are removed at the front of the ring, and new ones are appended at its
//! end.
//!
//! The index is a hash table of sequence numbers. Tags of eight bits, which are compared 15 at
//! once, are in an array of their own, which is small: two bytes for a binding. So of a million
//! bindings, the tags are in the caches of the CPU, and the numbers mostly are.
//!
//! An entry of the ring stores its location in the index. So reclaiming a binding computes no hash
//! and compares no tag: it frees one slot of the index. Until then, lookups skip an expired
//! binding: its sequence number is outside of the live range, or its time has passed.
//!
//! # Removal
//!
//! A removal frees the slot of the index. In the ring remains a vacant slot with the expiry time,
//! which no index slot refers to. The next creation takes the slot, and its sequence number, for a
//! binding that expires later than those around it:
//!
//! ```text
//!     slot        40     41     42     43     44           expires one after the other:
//!     created at  10.0   10.1   10.2   10.3   10.4
//!     removed            │      vacant                     42: a handshake is complete
//!     created            │      10.45                      42: another one
//!     expires at  20.0   20.1   20.45  20.3   20.4         43 and 44 wait for 42
//! ```
//!
//! So an expired binding waits for an older slot: it is not found any more, but its slot is not
//! free. To bound that, a slot is reused for three sixteenths of a lifetime after it was appended
//! to the ring at most, and for one sixteenth at least. Expired bindings are found from the front
//! of the ring, by a binary search with that tolerance: the longest wait is six sixteenths. A
//! binding that is removed later leaves a slot that is vacant until its lifetime ends, or until the
//! slot is at the front. With `n` handshakes open at a time, each of which completes within a
//! sixteenth of a lifetime, and any number of them one after the other, the ring has up to about
//! `16 n` slots for them.
//!
//! # Invariants
//!
//! - Sequence numbers in the ring are consecutive.
//! - Along the ring, expiry times never decrease by more than three sixteenths of a lifetime, and
//!   not at all if no slot among the live ones is reused: the expired bindings are at its front,
//!   the live ones follow.
//! - The index has the sequence numbers of all bindings that are not reclaimed, each at the
//!   location that its entry stores, where a lookup with the hash of its tag finds it; and no
//!   others.
//! - A tag has at most one live binding.
//! - No binding is found one lifetime after its creation or later, whether it is reclaimed or not.
//!   None expires earlier, except for the granularity of time: 2⁻²⁸ of a lifetime that exceeds one
//!   second.
//! - A vacant slot is not in the index; it is in one list of slots to reuse, or in none.
//!
//! # Cost
//!
//! A tag and a value of eight bytes each take 24 bytes, and the index takes ten. Finding a tag
//! reads its group of the index, the number, and the entry. In a full store, two of a thousand
//! bindings are not in their home groups, and another entry has the same eight bits in three of a
//! hundred lookups. Creation writes the next slot of the ring, which the hardware prefetcher
//! expects, and a number: a hash table with a queue has four cache misses. A removal costs as much
//! as finding the tag.
//!
//! Tags whose hashes are equal fill groups one after the other: a lookup compares all of them.
//!
//! Each creation reclaims two expired bindings: there is no cleaner thread, no pause, and no
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
//!                 *store.get_or_insert_with(tag, Timestamp::ZERO, || 0).unwrap() += 1;
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
//!         *store.get_or_insert_with(tag, Timestamp::ZERO, || 0).unwrap() += 1;
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
//!   two slots for each binding.
//! - Removal is ours; in the part of the paper that is available every binding lives for exactly
//!   one lifetime.
//! - The paper's cleaner is a thread that runs every tenth of a lifetime, and is late by that much:
//!   see [`sweep`](EphemeralStore::sweep). Here a lookup checks the expiry, and creation reclaims.

// In this order rustdoc lists the methods of the store.
mod store;

mod find;

mod access;

mod remove;

mod burst;
mod check;
mod index;
mod lifetime;
mod ring;
mod vacancies;

use core::error::Error;
use core::fmt;

use crate::memory::ArrayError;
pub use find::Bound;
pub use store::{Binding, EphemeralStore};

/// The error of a creation in a full store: the tag. Nothing was created.
///
/// The next creation succeeds when the oldest binding has expired; after
/// [removals](self#removal), up to three sixteenths of a lifetime later. A binding that is created
/// and removed in one tick of the store leaves its slot to creations of later ticks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Full<T> {
    /// The tag, returned.
    pub refused: T,
}

/// Without the tag, so that `unwrap` and `?` need no `Debug` of it.
impl<T> fmt::Debug for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Full").finish_non_exhaustive()
    }
}

impl<T> fmt::Display for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the store is full of live bindings")
    }
}

impl<T> Error for Full<T> {}

/// The error of the constructors of [`EphemeralStore`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// The capacity is zero.
    NoCapacity,
    /// The lifetime is zero.
    NoLifetime,
    /// The capacity exceeds the range of sequence numbers or addresses.
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

impl From<ArrayError> for StoreError {
    fn from(error: ArrayError) -> Self {
        match error {
            ArrayError::TooLarge => Self::TooLarge,
            ArrayError::NoMemory => Self::NoMemory,
        }
    }
}
