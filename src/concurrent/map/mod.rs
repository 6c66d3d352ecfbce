//! A concurrent hash table: TRASH with wait-free readers.
//!
//! ```text
//!     hash × c   ┌────────────┬─── … ──┬────────┬─── … ──┬────────┬─────────┐
//!                └─────┬──────┴─── … ──┴───┬────┴─── … ──┴───┬────┴────┬────┘
//!                      │ upper bits        │ 8 bits          │ 23 bits │ 6 bits
//!                      ▼                   │                 │         ▼
//!     directory ┌───┬───┬───┬───┐          │ tag             │  roots ┌───┬───┬───┬──
//!     of a shard│ ● │ ● │ ● │ ● │◄─────────┼─────────────────┼────────┤   │ ● │   │  …
//!               └───┴─┬─┴───┴───┘          │                 │        └───┴───┴───┴──
//!                     ▼ segment            ▼                 ▼
//!                ┌────────┬─ … ─┬────────────────────────────────┬─ … ─┬────────┐
//!                │ group  │     │  twelve tags      twelve ids   │     │ group  │
//!                └────────┴─ … ─┴─────────────────────┬──────────┴─ … ─┴────────┘
//!                                                     ▼
//!                                      store ┌───────┬───────┬───────┬──
//!                                            │ entry │ entry │ entry │ …    never moves
//!                                            └───────┴───────┴───────┴──
//! ```
//!
//! It is the trie of [`TrashMap`](crate::TrashMap), with shards for the writers as a top level, and
//! with entries stored apart from the index, so that a value never moves:
//!
//! - **A lookup** loads one word for the directory and one directory entry for the segment,
//!   compares the twelve tags of a group at once, and then the key of the entry. Two cache lines
//!   are not in L1 or L2; `get_batch` prefetches the lines of 32 keys at a time.
//! - **A write** takes the lock of one shard. It writes the entry to the store and then its id and
//!   its tag to a group: one store instruction publishes it. So does the replacement of a value.
//! - **Growth** copies one segment of up to 32 groups, of ids and not of entries. It hashes no key:
//!   each slot has a note of 16 bits of the hash, which only writers read. Readers of the former
//!   segment find its entries of that time.
//! - **Shards** are split as the map grows, with their segment, from one to 64 at some 16,000
//!   entries; and when a writer finds the lock of its shard taken. So a small map is traversed in a
//!   few steps, and writers that contend get locks of their own. These splits hash the keys, whose
//!   notes do not have the bits of the shard. Shards are not merged.
//! - **Removed entries** are retired in batches; an id is reused when all earlier pins have ended.
//!
//! # Guarantees
//!
//! They hold for a [`ConcurrentTable`](super::ConcurrentTable), too, except for clauses marked
//! *map*. *Read*: a lookup of one key. *Traversal*: `iter`, `keys`, `values`, `retain`. *Write*:
//! any change. Each guarantee has a test of its name in `tests/concurrent/`.
//!
//! Reads:
//!
//! - **A1** A read that begins after a write has returned observes that write, or a later one of
//!   the same key. *After* is the happens-before relation: the same thread, or one that has
//!   synchronised with it.
//! - **A2** A read observes a complete value, which one write has stored for its key, whatever the
//!   number of words of the value.
//! - **A3** A key that is present throughout a read is found, during growth, shrinking,
//!   replacements of its value, and removals of other keys.
//! - **A4** Reads of a key are monotonic: a thread never observes an older state after a newer one,
//!   nor does a thread that has synchronised with it. The order of writes to different keys is
//!   unspecified without synchronisation: two threads that each write one key and then read the
//!   other's may, on some CPUs, both miss the other's write.
//! - **A5** A burst is a number of reads: A1 to A3 hold for each of them, and A4 between bursts;
//!   together they are not a snapshot.
//! - **A6** (*map*) A reference from a pin is valid until the pin ends or is repinned, even if the
//!   entry is removed.
//!
//! Traversals:
//!
//! - **B1** An entry that exists from the beginning of a traversal to its end is visited exactly
//!   once.
//! - **B2** A key is visited at most once, with a value that it has when its segment is copied, or
//!   in a *table* later.
//!
//! Writes:
//!
//! - **C1** A write takes effect at one point between call and return. All threads observe the
//!   writes of a key in the same order.
//! - **C2** No write takes effect between the read and the write of `update` and `compute`; nor, in
//!   a *table*, of `fetch_add` and `compare_exchange`.
//! - **C3** A write that is refused, or in which a closure or a hasher panics, changes nothing;
//!   `retain` and `clear` have removed the entries that they had reached before. A removal is never
//!   refused; in a *table* the replacement of a value of up to eight bytes neither.
//!
//! Memory:
//!
//! - **D1** Removed or replaced memory is freed when all pins have ended that may have observed it:
//!   an entry of a *map* is dropped once, a segment is freed. All memory is freed with the
//!   structure, but for retired memory that other pins delay.
//! - **D2** A write is refused while more than the limit is retired, if it has to copy a segment,
//!   or if it adds an entry to a *map*; there also above an eighth of the limit in its shard, if
//!   there are eight. So garbage is at most the limit, two segments and a directory for each
//!   writer, and in a map the entries removed above the limit, and for each shard the last 4 KiB. A
//!   shard of a map has slots for its most entries, and an eighth of the limit. Memory that entries
//!   own is not counted.
//! - **D3** (*map*) A destructor that panics keeps no other from running. During reclamation the
//!   panic is caught, as it has no caller; when the map is dropped it is resumed after all others
//!   have run.
//! - **D4** Without memory, only insertions are refused. An entry that is removed then is retired
//!   by a later write or `flush`, or dropped with the map. But the collector aborts the program if
//!   it has no memory for the first pin of a thread or its end, or for one of its pins in 128.
//!
//! Progress:
//!
//! - **E1** Reads are wait-free: no lock, no store to shared memory, no repetition, and at most as
//!   many steps as the segment has groups, 96 (in a *map* 64); nearly all reads probe one.
//! - **E2** Writers wait for each other, a lock of a shard at a time; so do traversals, for the
//!   copy of one segment, in a *map* only beside a removal, a split or a merge. No code of a caller
//!   runs under it except [`Eq`] of keys of a *map*, and [`Hash`] of keys, which panic if they
//!   write themselves, and must not take a lock that a writer may hold: no deadlock is possible.
//!   They should not pin: a pin may run destructors, which panic if they write.
//! - **E3** No call waits for a reader without bound.
//! - **E4** An insertion copies or splits at most one segment, of up to 48 groups with 336 entries
//!   (in a *map* 32 with 330), and the directory of its shard when it doubles: 8 bytes a segment.
//!   An insertion that finds the lock taken splits one more. Colliding hashes may require several
//!   of these steps. One insertion in 1024 into a *map* allocates a chunk for entries, of 32 KiB at
//!   most, or of one entry, and may double the list of chunks.
//!
//! # Misuse that does not compile
//!
//! A reference that is used after `repin`, or after its pin; a pin that is sent to another thread;
//! values that borrow, or are not `Send`, as another thread may drop them at any later time:
//!
//! ```compile_fail,E0502
//! let map = flowtable::ConcurrentMap::from([(1, "one".to_string())]);
//! let mut pin = map.pin();
//! let value = pin.get(&1).unwrap();
//! pin.repin();
//! assert_eq!(value, "one");
//! ```
//!
//! ```compile_fail,E0505
//! let map = flowtable::ConcurrentMap::from([(1, "one".to_string())]);
//! let pin = map.pin();
//! let value = pin.get(&1).unwrap();
//! drop(pin);
//! assert_eq!(value, "one");
//! ```
//!
//! ```compile_fail,E0277
//! let map = flowtable::ConcurrentMap::from([(1, "one".to_string())]);
//! let pin = map.pin();
//! std::thread::scope(|scope| {
//!     scope.spawn(move || assert_eq!(pin.get(&1).unwrap(), "one"));
//! });
//! ```
//!
//! ```compile_fail,E0597
//! let map = flowtable::ConcurrentMap::new();
//! let name = "one".to_string();
//! map.pin().insert(1, name.as_str()).unwrap();
//! ```
//!
//! ```compile_fail,E0277
//! let map = flowtable::ConcurrentMap::new();
//! map.pin().insert(1, std::rc::Rc::new(1)).unwrap();
//! ```
//!
//! # Hostile keys
//!
//! The default hash is keyed with a seed for each map. With another hash, keys that collide are
//! compared one by one. When a segment of 64 groups is full of keys that 24 bits of their hashes,
//! and the 6 bits of the shard, do not separate, further ones are refused: some 700 keys of one
//! hash. Unlike [`TrashMap`](crate::TrashMap), the map does not reseed.
//!
//! # Cost
//!
//! 7.5 bytes of index for a slot, 1.2 to 2.6 slots for an entry, and the entry itself in a chunk of
//! up to 1024; 13 KiB for an empty map, and 25 more for the first hundred entries. For entries of
//! 24 bytes that is 35 to 41 bytes each, from 100,000 on. The slots of freed entries are reused by
//! their shard, but not released before the map is dropped. The index shrinks by removals, while
//! there is less garbage than the limit. Insertions above 2^31 slots are refused.
//!
//! A map that is dropped helps the collector to free its garbage. If other pins delay that, the
//! chunks of its entries are freed after these pins have ended and a thread pins again.
//!
//! A replaced value is a new entry: the old one, of 24 bytes in the example, is retired. A counter
//! that many packets increment should be an atomic: see
//! [values that packets change](super#values-that-packets-change).
//!
//! # Papers
//!
//! Olsson and Nilsson, *TRASH: a dynamic LC-trie and hash data structure* (2006), for the trie and
//! its readers under RCU. McKenney and Slingwine, *Read-copy update* (1998); Fraser, *Practical
//! lock-freedom* (2004), for epochs. Fagin et al., *Extendible hashing* (1979), for the directory
//! whose segments are split one by one. A cache line of tags and numbers of entries, which are
//! stored apart, is as in the hash library of DPDK.
//!
//! # Tried and dropped
//!
//! With 16-byte keys, 8-byte values and a million entries, medians in one process:
//!
//! - Buckets of six slots in half a cache line, in segments that grow by thirds and halves, with
//!   rehashed keys and a copied directory: single lookups took 1.2 to 1.5 times as long, bursts 1.3
//!   to 1.6 times, one insertion in a thousand 30 µs instead of 4; 4 bytes less for an entry.
//! - A box for each entry and its pointer in the line, seven to a cache line: single lookups took
//!   1.1 times as long, nine reads and a write 1.06 times; 4 bytes more for an entry, and the
//!   overhead of the allocator.
//! - Twenty tags and ids of two bytes in a line: single lookups took 1.7 times as long, as the tags
//!   of more other keys match.
//! - Writers without prefetches before they take the lock: half of the insertions took 310 ns
//!   instead of 220, most of it for the notes of the segment.
//! - Words with an id and 32 bits of the hash, seven to a cache line: single lookups took 1.1 times
//!   as long, bursts 1.2 times; 4 bytes more for an entry.
//! - Segments whose sizes grow by thirds: single lookups took 1.05 to 1.12 times as long, as a
//!   multiplication by the size is between two loads; 1.5 bytes less for an entry.
//! - Entries in the segment, moved when it is split: saves one cache line of two, and loses writes
//!   to a value that has moved under its reader. So it is another type, for plain data:
//!   [`ConcurrentTable`](crate::ConcurrentTable).

mod garbage;
mod iter;
mod pinned;
pub(super) mod storage;
mod store;
mod view;
mod write;

use core::hash::{BuildHasher, Hash};

use super::collector::{self, LIMIT};
use super::engine::storage::Bits;
use super::engine::{Engine, Slot};
use super::pinned::{Guard, Pinned};
use super::policy::mix;
use crate::hash::DefaultHashBuilder;
use crate::invariant::InvariantError;
use crate::table::error::TryReserveError;
use garbage::Batch;
use storage::{Ids, State, hash_of};
use store::{IdAllocator, MAX_ENTRIES, Store};
use view::Entry;

pub use iter::Iter;
pub use view::{Compute, Computed, TryInsert};

/// A concurrent hash map with wait-free readers.
///
/// It is used through a [`pin`](Self::pin), which has the methods of a map. The [module](self) has
/// the design and the guarantees.
///
/// | method of a pin | cost |
/// |---|---|
/// | `get`, `get_key_value`, `contains_key` | the cache line of the index and the cache lines of an entry; no store to shared memory |
/// | `get_batch` | the cache lines of `get`, with the misses of 32 keys overlapping |
/// | `insert`, `try_insert`, `get_or_insert`, `remove`, `update`, `compute` and their variants | the lock of one shard, the cache lines of `get`, and at most one copy of a segment of 330 entries |
/// | `iter`, `keys`, `values`, `retain`, `clear`, `reserve` | O(slots) |
/// | `len`, `is_empty` | a sum over the shards: 1 to 64 |
/// | `allocation_size` | a sum over 64 shards |
/// | `garbage`, `repin` | O(1) |
///
/// # Example
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use std::thread;
///
/// use flowtable::ConcurrentMap;
///
/// let packets: ConcurrentMap<&str, AtomicU64> = ConcurrentMap::new();
/// packets.pin().insert("dns", AtomicU64::new(0))?;
/// thread::scope(|scope| {
///     for _ in 0..2 {
///         scope.spawn(|| packets.pin().get("dns").unwrap().fetch_add(1, Ordering::Relaxed));
///     }
/// });
/// assert_eq!(packets.pin().get("dns").unwrap().load(Ordering::Relaxed), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("DashMap", "lock-free map", "rcu"))]
pub struct ConcurrentMap<K, V, S = DefaultHashBuilder> {
    /// The ids of entries by key.
    pub(super) engine: Engine<Ids>,
    store: Store<(K, V)>,
    hasher: S,
}

#[allow(unsafe_code)]
// SAFETY: it owns its entries, like a vector: pins borrow it. Retired entries may be dropped by any
// thread.
unsafe impl<K: Send, V: Send, S: Send> Send for ConcurrentMap<K, V, S> {}
#[allow(unsafe_code)]
// SAFETY: entries cross threads, by value when they are inserted or dropped, by reference when they
// are read; the hasher is used by reference only.
unsafe impl<K: Send + Sync, V: Send + Sync, S: Sync> Sync for ConcurrentMap<K, V, S> {}

impl<K, V> ConcurrentMap<K, V> {
    /// Creates an empty map.
    ///
    /// # Example
    ///
    /// ```
    /// assert!(flowtable::ConcurrentMap::<u32, ()>::new().is_empty());
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::with_hasher(DefaultHashBuilder::new())
    }

    /// Creates an empty map with capacity for at least `capacity` entries, below which it does not
    /// shrink. O(capacity).
    ///
    /// # Panics
    ///
    /// If `capacity` is greater than 2^31, the maximum number of entries.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::<u32, u32>::with_capacity(100_000);
    /// let before = map.allocation_size();
    /// map.pin().insert(1, 1).unwrap();
    /// assert!(map.allocation_size() < before + 1024);
    /// ```
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self::with_capacity_and_hasher(capacity, DefaultHashBuilder::new())
    }
}

impl<K, V, S> ConcurrentMap<K, V, S> {
    /// The default limit on garbage, in bytes.
    pub const GARBAGE_LIMIT: usize = LIMIT;

    /// Creates an empty map with a hasher.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ConcurrentMap, DefaultHashBuilder};
    ///
    /// let hasher = DefaultHashBuilder::with_seed(7);
    /// let map: ConcurrentMap<u32, ()> = ConcurrentMap::with_hasher(hasher);
    /// assert!(map.is_empty());
    /// ```
    #[must_use]
    pub fn with_hasher(hasher: S) -> Self {
        let state = |nth| State { batch: Batch::new(nth), ids: IdAllocator::new(nth) };
        Self { engine: Engine::new(state), store: Store::new(), hasher }
    }

    /// Creates an empty map with a hasher and capacity for at least `capacity` entries.
    /// O(capacity).
    ///
    /// # Panics
    ///
    /// If `capacity` is greater than 2^31, the maximum number of entries.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ConcurrentMap, DefaultHashBuilder};
    ///
    /// // Two maps with one hasher: a hash is computed once.
    /// let hasher = DefaultHashBuilder::new();
    /// let here: ConcurrentMap<u32, u32> = ConcurrentMap::with_capacity_and_hasher(1000, hasher);
    /// let there: ConcurrentMap<u32, ()> = ConcurrentMap::with_hasher(here.hasher().clone());
    /// assert_eq!(here.hash_of(&7), there.hash_of(&7));
    /// ```
    #[must_use]
    pub fn with_capacity_and_hasher(capacity: usize, hasher: S) -> Self {
        let map = Self::with_hasher(hasher);
        // There are no entries whose hash could lack bits.
        let hashes = |slot: Slot<'_, Ids>, _| hash_of(slot);
        if let Err(error) = map.reserve(capacity, hashes, &collector::pin()) {
            error.raise();
        }
        map
    }

    /// Reserves capacity for `additional` more entries, if there are some.
    fn reserve(
        &self,
        additional: usize,
        hashes: impl Fn(Slot<'_, Ids>, Bits) -> u64,
        pin: &crossbeam_epoch::Guard,
    ) -> Result<(), TryReserveError> {
        let entries = self.len().saturating_add(additional);
        if entries > MAX_ENTRIES {
            return Err(TryReserveError::OVERFLOW);
        }
        if additional == 0 {
            return Ok(());
        }
        self.store.reserve(entries)?;
        self.engine.reserve(entries, hashes, pin)
    }

    /// Sets the limit on garbage, which is retired and not freed yet, in bytes, and the patience.
    ///
    /// A writer that finds more than `bytes` helps the collector. If readers delay it, the writer
    /// yields and helps again, `patience` times; then it returns
    /// [`Refused::Garbage`](super::Refused::Garbage). With patience zero it returns at once. It
    /// never waits without bound: the reader that delays the collector may be the thread itself.
    ///
    /// Each shard may have its part of the limit, at least an eighth: writes to few keys of a large
    /// map are refused above that.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::new().with_garbage_limit(1 << 20, 10);
    /// map.pin().insert("key", 1).unwrap();
    /// ```
    #[must_use]
    pub fn with_garbage_limit(mut self, bytes: usize, patience: u32) -> Self {
        (self.engine.garbage.limit, self.engine.garbage.patience) = (bytes, patience);
        self
    }

    /// Returns the bytes that are retired and not freed yet, without memory that keys and values
    /// own. Garbage of a shard since its last full batch, at most 4 KiB and a segment, is not
    /// counted, nor are entries that were removed without memory.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::new();
    /// let pin = map.pin();
    /// for value in 0..1000 {
    ///     pin.insert("key", value).unwrap();
    /// }
    /// // Nothing that this pin may access is freed while it lasts.
    /// assert!(map.garbage() > 0);
    /// ```
    #[must_use]
    pub fn garbage(&self) -> usize {
        self.engine.garbage.retired()
    }

    /// Returns the hash of `key` under the hasher of the map, for [`Prehashed`](crate::Prehashed).
    #[inline]
    pub fn hash_of<Q: Hash + ?Sized>(&self, key: &Q) -> u64
    where
        S: BuildHasher,
    {
        self.hasher.hash_one(key)
    }

    /// Returns the hasher of the map.
    #[must_use]
    pub const fn hasher(&self) -> &S {
        &self.hasher
    }

    /// Returns the number of entries. During writes, the shards are counted one after the other.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([("a", 1), ("b", 2)]);
    /// assert_eq!(map.len(), 2);
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.engine.len()
    }

    /// Returns whether the map has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes allocated for entries and segments, without retired segments, and without
    /// memory that keys and values own.
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        self.engine.allocation_size() + self.store.allocation_size()
    }

    /// Returns the entry with an id that was loaded under this pin.
    #[inline]
    #[allow(unsafe_code)]
    fn entry<'p>(&'p self, id: u32, _pin: &'p crossbeam_epoch::Guard) -> Entry<'p, K, V> {
        // SAFETY: the pin lasts for 'p.
        Entry { id, entry: unsafe { self.store.get(id) } }
    }
}

impl<K: Hash, V, S: BuildHasher> ConcurrentMap<K, V, S> {
    /// Checks all invariants. O(slots): for tests.
    ///
    /// # Errors
    ///
    /// If an invariant is violated.
    ///
    /// # Example
    ///
    /// ```
    /// let mut map: flowtable::ConcurrentMap<u32, u32> = (0..1000).map(|key| (key, key)).collect();
    /// map.pin().retain(|key, _| key % 7 == 0);
    /// assert_eq!(map.validate(), Ok(()));
    /// ```
    #[doc(hidden)]
    pub fn validate(&mut self) -> Result<(), InvariantError> {
        let pin = collector::pin();
        self.engine.validate(|slot| {
            let mixed = mix(self.hasher.hash_one(self.entry(slot.value(), &pin).key()));
            let is_noted = (hash_of(slot) ^ mixed) >> 48 == 0;
            is_noted.then_some(mixed)
        })
    }
}

impl<K, V, S> ConcurrentMap<K, V, S>
where
    K: Eq + Hash + Send + 'static,
    V: Send + 'static,
    S: BuildHasher,
{
    /// Pins the map: returns a view with the methods of a map. Entries that are removed during the
    /// pin stay valid for the view.
    ///
    /// A pin costs about as much as a lookup that hits the cache: hold one for a burst of packets,
    /// and [`repin`](Pinned::repin) it before the next. A thread may hold several, each of which
    /// protects and advances on its own; for several structures, one guard that is
    /// [shared](Self::pinned) costs less.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([("key", 1)]);
    /// let pin = map.pin();
    /// assert_eq!(pin.get("key"), Some(&1));
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
    /// use flowtable::{ConcurrentMap, concurrent::pin};
    ///
    /// let (here, there) = (ConcurrentMap::from([(1, 'a')]), ConcurrentMap::from([('a', 2)]));
    /// let guard = pin();
    /// let key = here.pinned(&guard).get(&1).copied();
    /// assert_eq!(key.and_then(|key| there.pinned(&guard).get(&key).copied()), Some(2));
    /// ```
    #[inline]
    pub const fn pinned<'g>(&'g self, guard: &'g Guard) -> Pinned<'g, Self, &'g Guard> {
        Pinned::of(self, guard)
    }
}

#[cfg(all(test, not(any(crossbeam_loom, shuttle))))]
mod tests {
    use alloc::string::ToString;
    use std::thread::yield_now;

    use super::*;
    use crate::concurrent::Refused;

    #[test]
    fn a_full_map_refuses_insertions_until_slots_are_freed() {
        let map: ConcurrentMap<u64, u64> = (0..10_000).map(|key| (key, key)).collect();
        map.store.exhaust();
        let pin = map.pin();
        // Each shard finishes the run that it has begun.
        let full = (10_000..).find_map(|key| pin.insert(key, 1).err()).expect("the map is full");
        let (len, key) = (map.len(), full.refused.0);
        assert!(full.reason == Refused::Full && full.to_string().contains("2^31"), "{full:?}");
        assert!((10_000..10_000 + Store::<(u64, u64)>::BEGUN).contains(&len), "{len} entries");
        assert!(pin.get_or_insert(key, 2).is_err_and(|full| full.refused == (key, 2)));
        assert_eq!(pin.get_or_insert_with(&key, || 2), Err(Refused::Full));
        assert_eq!(pin.compute(&key, |_| Compute::Insert(2)), Err(Refused::Full));
        assert!(!pin.contains_key(&key) && map.len() == len);
        pin.clear();
        drop(pin);
        let mut tries = 0..1_000_000;
        assert!(tries.any(|_| {
            yield_now();
            map.pin().flush();
            map.pin().insert(key, 3).is_ok()
        }));
        assert_eq!(map.pin().get(&key), Some(&3));
    }
}
