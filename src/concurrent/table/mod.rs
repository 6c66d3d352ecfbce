//! A concurrent hash table of plain data: entries in the groups that a lookup reads.
//!
//! ```text
//!     hash × c   ┌─────────┬───────────── … ────────┬─────────┐
//!                └────┬────┴───────────── … ──┬─────┴────┬────┘
//!                     │ upper bits            │ 32 bits  │ 6 bits
//!                     │                       │          ▼
//!                     │                       │  roots  ┌───┬───┬───┬──
//!                     ▼                       │         │   │ ● │   │  …   one word each
//!     directory ┌───┬───┬───┬───┐◄────────────┼─────────┼───┴───┴───┴──
//!     of a shard│   │ ● │ ● │   │             │         │
//!               └───┴─┬─┴───┴───┘             ▼         │
//!                     ▼ segment                         │
//!                ┌───────────┬───────────┬───────────┬──┴─┬────────┐
//!                │   group   │   group   │   group   │  … │ counts │
//!                └───────────┴─────┬─────┴───────────┴────┴────────┘
//!                                  ▼                            128 bytes: two cache lines,
//!                ┌─────────┬───────┬───────┬───────┬───────┐    fetched together
//!                │ 5 tags  │ entry │ entry │ entry │ entry │ …  each 24 bytes: key and value
//!                └─────────┴───────┴───────┴───────┴───────┘
//! ```
//!
//! It is the trie of a [`ConcurrentMap`](super::ConcurrentMap), for keys and values that are plain
//! data: [`NoUninit`], that is `Copy`, without padding, pointers and interior mutability. So an
//! entry can be stored as atomic words, in the group itself, and read by copy:
//!
//! - **A lookup** loads one word for the directory and one of its entries, compares the tags of a
//!   group at once, and then the key beside them: one cache line that is not in L1 or L2, or two
//!   adjacent ones. `get_batch` prefetches the lines of 32 keys.
//! - **A write** takes the lock of one shard: one in the beginning, up to 64 as the table grows, or
//!   as writers find locks taken. It stores the words of an entry to a free slot, and publishes
//!   them by one store of the header; a value of up to eight bytes is replaced in place, by one
//!   store.
//! - **A removed slot** is dead: readers may still copy from it, so it is not reused. A segment
//!   whose dead slots are many is copied without them.
//! - **Growth** copies or splits one segment of up to 48 groups, hashes its keys, which are in the
//!   lines that it copies, and stores the directory entries in place.
//! - **Replaced segments and directories** are retired: freed when all earlier pins have ended.
//!
//! Keys are the same if their bytes are: types of plain data with a derived `Eq` agree with that.
//!
//! # Example
//!
//! ```
//! use flowtable::concurrent::{ConcurrentTable, NoUninit};
//!
//! /// What is stored of a connection: 16 bytes, without padding.
//! #[derive(Clone, Copy, Debug, PartialEq)]
//! #[repr(C)]
//! struct Connection {
//!     bytes: u64,
//!     packets: u32,
//!     backend: u32,
//! }
//!
//! // SAFETY: integers in an order without padding. The derive of bytemuck checks that, too.
//! unsafe impl NoUninit for Connection {}
//!
//! let connections: ConcurrentTable<[u64; 2], Connection> = ConcurrentTable::new();
//! let mut pin = connections.pin();
//! for burst in [[[1, 2], [3, 4]], [[1, 2], [1, 2]]] {
//!     for flow in burst {
//!         let count = |old: Connection| Connection {
//!             bytes: old.bytes + 1500,
//!             packets: old.packets + 1,
//!             ..old
//!         };
//!         if pin.update(&flow, count)?.is_none() {
//!             pin.insert(flow, Connection { bytes: 1500, packets: 1, backend: 7 })?;
//!         }
//!     }
//!     pin.repin();
//! }
//! let mut found = [None; 2];
//! pin.get_batch(&[[1, 2], [5, 6]], flowtable::write_to(&mut found));
//! assert_eq!(found, [Some(Connection { bytes: 4500, packets: 3, backend: 7 }), None]);
//! # Ok::<(), flowtable::concurrent::Refused>(())
//! ```
//!
//! # Guarantees
//!
//! A table gives these guarantees of a [`ConcurrentMap`](super::map#guarantees): A1 to A5, B1 and
//! B2, C1 to C3, D1, D2, D4, E1 to E4. Where map and table differ, the guarantee states both.
//!
//! An addition that ran on the word itself could be lost if a copy of the segment has passed it.
//! Under the lock of the shard none can; that costs two atomic operations on the line of the lock.
//!
//! # Misuse that does not compile
//!
//! Types with padding, pointers or destructors; a pin that is sent to another thread:
//!
//! ```compile_fail,E0277
//! flowtable::ConcurrentTable::new().pin().insert((1_u8, 1_u32), 1).unwrap();
//! ```
//!
//! ```compile_fail,E0277
//! flowtable::ConcurrentTable::new().pin().insert(1, "one".to_string()).unwrap();
//! ```
//!
//! ```compile_fail,E0277
//! let table = flowtable::ConcurrentTable::from([(1, 1)]);
//! let pin = table.pin();
//! std::thread::scope(|scope| {
//!     scope.spawn(move || assert_eq!(pin.get(&1), Some(1)));
//! });
//! ```
//!
//! # Hostile keys
//!
//! The default hash is keyed with a seed for each table. With another hash, keys that collide are
//! compared one by one; the hash is multiplied, so that weak ones spread. When a segment of 96
//! groups is full of keys that the bits of their hashes do not separate, further ones are refused:
//! some 300 to 600 keys of one hash.
//!
//! # Cost
//!
//! A group of 128 bytes has five entries of three words, or seven of two, three of four or five;
//! one of 64 bytes seven entries of a word; larger entries have larger groups, which are not
//! fetched in one go. Groups are filled to 65 percent on average: for entries of 24 bytes that is
//! 38 to 44 bytes each, from 100,000 on; 10 KiB for an empty table. Memory is given back by
//! removals, `clear` and `shrink_to_fit`.
//!
//! A removal leaves a dead slot, and so does a value of more than eight bytes that is replaced:
//! after some thirty of them in a segment it is copied, in a few microseconds.
//!
//! # Which one
//!
//! A [`ConcurrentMap`](super::ConcurrentMap) has keys and values of any type, references to values
//! that stay in place, and counters that are changed without a lock. A lookup in this table
//! takes 0.6 times as long, and counters have no cache line of their own.
//!
//! # Papers
//!
//! As for [`ConcurrentMap`](super::map#papers): TRASH with readers under RCU, epochs, partial
//! expansion, extendible hashing. Tags beside the entries come from Swiss tables (Abseil, 2017).
//!
//! # Tried and dropped
//!
//! - A version in each group, by which readers notice a slot that is reused: five instructions
//!   more, and repetitions.
//! - Hash bits in a line of their own for each slot, so that growth hashes no key: every insertion
//!   then misses one more cache line, which costs more than hashing keys that are copied anyway.
//! - Returning dead slots one by one when no reader can observe them: a cache miss for each, where
//!   the copy of a segment reads adjacent lines.

mod iter;
mod pinned;
pub(super) mod storage;
mod write;

use core::hash::{BuildHasher, Hash};

use super::collector::LIMIT;
use super::engine::Engine;
use super::pinned::{Guard, Pinned};
use crate::hash::DefaultHashBuilder;
use crate::invariant::InvariantError;
use storage::Inline;

pub use super::engine::storage::Integer;
pub use bytemuck::NoUninit;
pub use iter::TableIter;

/// A concurrent hash table of plain data, with wait-free readers.
///
/// It is used through a [`pin`](Self::pin), which has the methods of a map. The [module](self) has
/// the design and the guarantees.
///
/// | method of a pin | cost |
/// |---|---|
/// | `get`, `contains_key` | the two adjacent cache lines of a group; no store to shared memory |
/// | `get_batch` | the cache lines of `get`, with the misses of 32 keys overlapping |
/// | `insert`, `get_or_insert`, `replace`, `remove`, `update` | the lock of one shard, the cache lines of `get`, the cache line of the counts, and at most one segment |
/// | `fetch_add`, `compare_exchange` | the lock of one shard, and the cache lines of `get` |
/// | `iter`, `keys`, `values`, `retain`, `clear`, `shrink_to_fit` | O(slots) |
/// | `len`, `is_empty` | a sum over the shards: 1 to 64 |
/// | `allocation_size` | a sum over 64 shards |
/// | `garbage`, `repin` | O(1) |
///
/// # Example
///
/// ```
/// use std::net::Ipv4Addr;
/// use std::thread;
///
/// use flowtable::ConcurrentTable;
///
/// /// Addresses and ports in two words.
/// fn name(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16)) -> [u64; 2] {
///     [from, to].map(|(address, port)| u64::from(u32::from(address)) << 16 | u64::from(port))
/// }
///
/// let bytes: ConcurrentTable<[u64; 2], u64> = ConcurrentTable::new();
/// let flow = name(([10, 0, 0, 1].into(), 40_000), ([192, 0, 2, 7].into(), 443));
/// bytes.pin().insert(flow, 0)?;
/// thread::scope(|scope| {
///     for _ in 0..2 {
///         scope.spawn(|| bytes.pin().fetch_add(&flow, 1500));
///     }
/// });
/// assert_eq!(bytes.pin().get(&flow), Some(3000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("DashMap", "lock-free map", "atomic counters"))]
pub struct ConcurrentTable<K, V, S = DefaultHashBuilder> {
    pub(super) engine: Engine<Inline<K, V>>,
    hasher: S,
}

#[allow(unsafe_code)]
// SAFETY: it owns its entries, like a vector: pins borrow it. Retired memory has no owner, and
// nothing in it is dropped.
unsafe impl<K: Send, V: Send, S: Send> Send for ConcurrentTable<K, V, S> {}
#[allow(unsafe_code)]
// SAFETY: entries cross threads by value; the hasher is used by reference only.
unsafe impl<K: Send, V: Send, S: Sync> Sync for ConcurrentTable<K, V, S> {}

impl<K: NoUninit, V: NoUninit> ConcurrentTable<K, V> {
    /// Creates an empty table.
    ///
    /// # Example
    ///
    /// ```
    /// assert!(flowtable::ConcurrentTable::<u32, ()>::new().is_empty());
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::with_hasher(DefaultHashBuilder::new())
    }
}

impl<K: NoUninit, V: NoUninit, S> ConcurrentTable<K, V, S> {
    /// The default limit on garbage, in bytes.
    pub const GARBAGE_LIMIT: usize = LIMIT;

    /// Creates an empty table with a hasher.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ConcurrentTable, DefaultHashBuilder};
    ///
    /// let hasher = DefaultHashBuilder::with_seed(7);
    /// let table: ConcurrentTable<u32, ()> = ConcurrentTable::with_hasher(hasher);
    /// assert_eq!(table.hash_of(&7), table.hash_of(&7));
    /// assert!(table.is_empty() && table.hasher().clone().build_hasher().finish() > 0);
    /// # use std::hash::{BuildHasher, Hasher};
    /// ```
    #[must_use]
    pub fn with_hasher(hasher: S) -> Self {
        Self { engine: Engine::new(|_| ()), hasher }
    }

    /// Sets the limit on garbage, which is retired and not freed yet, in bytes, and the patience.
    ///
    /// A writer that has to copy a segment and finds more than `bytes` helps the collector. If
    /// readers delay it, the writer yields and helps again, `patience` times; then it returns
    /// [`Refused::Garbage`](super::Refused::Garbage). With patience zero it returns at once. It
    /// never waits without bound: the reader that delays the collector may be the thread itself.
    ///
    /// # Example
    ///
    /// ```
    /// let table = flowtable::ConcurrentTable::new().with_garbage_limit(1 << 20, 10);
    /// table.pin().insert(1_u32, 1_u32).unwrap();
    /// ```
    #[must_use]
    pub fn with_garbage_limit(mut self, bytes: usize, patience: u32) -> Self {
        (self.engine.garbage.limit, self.engine.garbage.patience) = (bytes, patience);
        self
    }
}

impl<K, V, S> ConcurrentTable<K, V, S> {
    /// Returns the bytes that are retired and not freed yet.
    #[must_use]
    pub fn garbage(&self) -> usize {
        self.engine.garbage.retired()
    }

    /// Returns the hash of `key` under the hasher of the table, for
    /// [`Prehashed`](crate::Prehashed).
    #[inline]
    pub fn hash_of(&self, key: &K) -> u64
    where
        K: Hash,
        S: BuildHasher,
    {
        self.hasher.hash_one(key)
    }

    /// Returns the hasher of the table.
    #[must_use]
    pub const fn hasher(&self) -> &S {
        &self.hasher
    }

    /// Returns the number of entries. During writes, the shards are counted one after the other.
    ///
    /// # Example
    ///
    /// ```
    /// assert_eq!(flowtable::ConcurrentTable::from([(1_u32, 10_u32), (2, 20)]).len(), 2);
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.engine.len()
    }

    /// Returns whether the table has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the allocated bytes, without those that are retired.
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        self.engine.allocation_size()
    }

    /// Pins the table: returns a view with the methods of a map.
    ///
    /// A pin costs about as much as a lookup that hits the cache: hold one for a burst of packets,
    /// and [`repin`](Pinned::repin) it before the next. A thread may hold several, each of
    /// which protects and advances on its own; for several structures, one guard that is
    /// [shared](Self::pinned) costs less.
    ///
    /// # Example
    ///
    /// ```
    /// let table = flowtable::ConcurrentTable::from([(1_u32, 10_u32)]);
    /// let pin = table.pin();
    /// assert_eq!((pin.get(&1), pin.len()), (Some(10), 1));
    /// ```
    #[inline]
    pub fn pin(&self) -> Pinned<'_, Self> {
        Pinned::new(self)
    }

    /// Returns a view with the methods of a map, under a guard of the thread that other structures
    /// share: see [`concurrent::pin`](super::pin). Costs nothing.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ConcurrentTable, concurrent::pin};
    ///
    /// let (here, there) = (ConcurrentTable::from([(1, 2)]), ConcurrentTable::from([(2, 3)]));
    /// let guard = pin();
    /// let key = here.pinned(&guard).get(&1);
    /// assert_eq!(key.and_then(|key| there.pinned(&guard).get(&key)), Some(3));
    /// ```
    #[inline]
    pub const fn pinned<'g>(&'g self, guard: &'g Guard) -> Pinned<'g, Self, &'g Guard> {
        Pinned::of(self, guard)
    }
}

impl<K: NoUninit + Hash, V: NoUninit, S: BuildHasher> ConcurrentTable<K, V, S> {
    /// Checks all invariants. O(slots): for tests.
    ///
    /// # Errors
    ///
    /// If an invariant is violated.
    ///
    /// # Example
    ///
    /// ```
    /// let mut table = flowtable::ConcurrentTable::from([(1_u32, 10_u32)]);
    /// assert_eq!(table.validate(), Ok(()));
    /// ```
    #[doc(hidden)]
    pub fn validate(&mut self) -> Result<(), InvariantError> {
        self.engine.validate(|slot| Some(self.hasher.hash_one(slot.key())))
    }
}
