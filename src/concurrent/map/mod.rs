//! A hash table for many threads: TRASH with readers that never wait.
//!
//! ```text
//!     hash × c   ┌─────────┬───────────── … ────────┬─────────┐
//!                └────┬────┴───────────── … ──┬─────┴────┬────┘
//!                     │ upper bits            │          │ 6 bits
//!                     │                       │          ▼
//!                     │             lower half│   shards ┌───┬───┬───┬──
//!                     ▼                       │          │   │ ● │   │  …   one word each
//!     directory ┌───┬───┬───┬───┐◄────────────┼──────────┼───┴───┴───┴──
//!     of a shard│   │ ● │ ● │   │             │          │
//!               └───┴─┬─┴───┴───┘             │          │
//!                     ▼ segment               ▼          │
//!                ┌────────┬────────┬────────┬────────┬───┼
//!                │ bucket │ bucket │ bucket │ bucket │ … │  tags and numbers: half a line
//!                └────────┴────────┴────────┴──┬─────┴───┘
//!                                              ▼ number
//!                              store ┌───────┬───────┬───────┬──
//!                                    │ entry │ entry │ entry │ …    never moves
//!                                    └───────┴───────┴───────┴──
//! ```
//!
//! It is the trie of [`TrashMap`](crate::TrashMap), with a level on top whose slots are shards for the writers, and
//! with entries out of the line, so that a value keeps its address for life:
//!
//! - **A look-up** follows one word to the directory, one place to the segment, reads the six tags of a
//!   bucket at once, and compares the key of the entry. Two lines that are in no near cache; `get_batch`
//!   asks for those of 32 keys at a time. See `bucket.rs`, `segment.rs`.
//! - **A write** takes the lock of one shard of 64. It puts an entry into the store and then its number into a
//!   bucket: one store, from which on it is there. To replace a value is one store, too. See `shard.rs`.
//! - **Growth** copies one segment, of numbers and not of entries, and publishes the copy with a new
//!   directory. Readers in the old one find there what was there at that moment. See `growth.rs`.
//! - **What is taken out** is retired in batches; its number is free again when all pins from before have ended.
//!   See `garbage.rs`, `store.rs`.
//!
//! # Guarantees
//!
//! *Read*: a look-up of one key. *Traversal*: `iter`, `keys`, `values`, `retain`. *Write*: anything that changes
//! the map. Each has a test of its name in `tests/concurrent_letters/`.
//!
//! Reads:
//!
//! - **A1** A read that begins after a write has returned sees that write, or a later one of the same key. *After*
//!   is what happens-before says: the same thread, or one that has been told.
//! - **A2** A read sees a value that was written whole, and that of its key.
//! - **A3** A key that is in the map throughout a read is found, whatever grows, shrinks or is taken out
//!   beside it.
//! - **A4** What a thread has seen of a key, it does not unsee, and neither does anyone whom it tells. Nothing is
//!   said about the order of different keys for who has not been told of it: two threads that each write one
//!   key and then read the other's may both, on some machines, see neither write.
//! - **A5** A burst is as many reads: A1 to A4 hold of each by itself, together they are no snapshot.
//! - **A6** A reference from a pin is valid until the pin ends or is repinned, whatever happens to the entry.
//!
//! Traversals:
//!
//! - **B1** An entry that is there from the beginning of a traversal to its end is visited exactly once.
//! - **B2** One that comes or goes meanwhile is visited once or not at all; one whose value is replaced
//!   once, with the old value or the new one. A key that goes and comes again is two entries.
//!
//! Writes:
//!
//! - **C1** A write takes place at one moment between call and return. All threads see the writes of a key in
//!   the same order.
//! - **C2** No write comes between what `update` and `compute` have read and what they write.
//! - **C3** A write that is refused, or in which a closure panics, has changed nothing; `retain` has taken out what
//!   it was told to before.
//!
//! Memory:
//!
//! - **D1** An entry that is taken out is dropped once, when all pins have ended that may have seen it. What
//!   is in a map when it is dropped is dropped with it.
//! - **D2** A write that adds something is refused while more than the limit is retired, or more than an eighth of
//!   it in its shard. So what is retired is at most the limit, what was removed past it, and for each shard the
//!   last 4 KiB with a segment and a directory; and a shard has places for the most entries that it has had,
//!   and an eighth of the limit. What keys and values own is not counted.
//! - **D3** A destructor that panics keeps no other from running. When memory is given back the panic ends
//!   there, as it has no caller; when the map is dropped it goes on after all the others have run.
//!
//! Progress:
//!
//! - **E1** Reads are wait-free: no lock, no store to shared memory, and as many steps as the segment has
//!   buckets at the very most; nearly all look at one.
//! - **E2** A writer has one lock at a time. No code of a caller's runs under it but [`Hash`] and [`Eq`] of
//!   keys, which get a panic if they write to a map themselves, and must not take a lock that a writer may
//!   hold: nothing can wait for itself.
//! - **E3** No call waits for a reader without bound.
//! - **E4** An insertion makes one segment larger at most, or splits it: 576 or 864 entries; and copies the
//!   directory of its shard, a place for each segment or two. With hashes that collide a segment may be larger.
//!
//! # What is refused by the compiler
//!
//! A reference kept across `repin`, or longer than its pin; a pin sent to another thread; values that borrow,
//! or cannot be sent, as they may be dropped by another thread at any later time:
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
//! The default hash is keyed with a seed for each map. If the hash is not, keys that collide are found one
//! after the other: correct, and slow. Unlike [`TrashMap`](crate::TrashMap) it does not draw another hash.
//!
//! # Price
//!
//! Five and a half bytes of index for a slot, 1.3 to 2 slots for an entry, and the entry itself in a chunk of up to
//! 64; 35 KiB for an empty map. For entries of 24 bytes that is 32 to 35 bytes each, from 100,000 on. Places of
//! entries that have been given back are used again by their shard, but not returned before the map is
//! dropped. The index shrinks with what is in it, by removals that come while there is less garbage than the limit.
//!
//! A map that is dropped helps the collector to give back what it has retired. If other pins keep that, the
//! chunks of its entries stay until they have ended and somebody pins again.
//!
//! A segment that grows has the keys of its entries hashed again: three times for an entry until it is there
//! for good. A value that is replaced is another entry: 24 bytes or what it is, which wait for the readers.
//! A number that many packets count up should be an atomic one.
//!
//! # Papers
//!
//! Olsson and Nilsson, *TRASH: a dynamic LC-trie and hash data structure* (2006), for the trie and its
//! readers under RCU. McKenney and Slingwine, *Read-copy update* (1998); Fraser, *Practical lock-freedom*
//! (2004), for epochs. Growth by thirds and halves is partial expansion (Larson 1980), with the directory of
//! extendible hashing (Fagin et al. 1979).
//!
//! # What was tried
//!
//! With 16-byte keys, 8-byte values and a million entries, medians in one process:
//!
//! | layout | outcome |
//! |---|---|
//! | a box for each entry and its pointer in the bucket, seven to a line | look-ups one by one 1.1 times as long, bursts 1.2 times, filling 1.3 times, nine reads and a write 1.2 times; 5 bytes more for an entry, and what an allocator adds |
//! | the size of a segment and the depth of a directory as bits of their pointers | a tenth more instructions |
//! | entries in the segment, moved when it grows | would save one line of two, and lose what is written to a value that has moved under its reader |

mod bucket;
mod burst;
mod check;
mod directory;
mod garbage;
mod growth;
mod index;
mod iter;
#[cfg(all(test, crossbeam_loom))]
mod loom_models;
mod pinned;
mod segment;
mod shard;
mod store;
mod traits;
mod write;

use alloc::boxed::Box;
use core::hash::{BuildHasher, Hash};
use std::panic::resume_unwind;

use super::sync::Arc;
use crate::hash::DefaultHashBuilder;
use directory::SHARDS;
use garbage::{Ledger, first_panic, free_all, help};
use index::Index;
use shard::Shard;

pub use check::Broken;
pub use iter::Iter;
pub use pinned::Pinned;
pub use write::{Compute, Computed};

/// A map from keys to values for many threads, whose readers never wait.
///
/// It is used through a [`pin`](Self::pin), which has the methods of a map. How it works, what it promises
/// and what it costs: see the [module](self).
///
/// | method of a pin | cost |
/// |---|---|
/// | `get`, `get_key_value`, `contains_key` | the line of a bucket, that of the entry; no store to memory that is shared |
/// | `get_batch`, `get_many` | the same, with the misses of 32 keys overlapping |
/// | `insert`, `get_or_insert`, `get_or_insert_with`, `remove`, `remove_entry`, `update`, `compute` | the lock of one shard of 64, the same lines; and one segment of 864 entries at most |
/// | `iter`, `keys`, `values`, `retain`, `clear` | O(slots) |
/// | `len`, `is_empty`, `allocation_size` | a sum over 64 shards |
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
pub struct ConcurrentMap<K, V, S = DefaultHashBuilder> {
    /// What readers see of each shard.
    indices: Arc<[Index<(K, V)>; SHARDS]>,
    /// What writers have of each shard.
    shards: Box<[Shard<(K, V)>]>,
    hasher: S,
    garbage: Garbage,
}

/// How often a map that is dropped helps the collector, which drops eight batches at a time.
const LAST_HELP: usize = 16;

/// What is retired, and how much may be.
struct Garbage {
    ledger: Arc<Ledger>,
    limit: usize,
    patience: u32,
}

#[allow(unsafe_code)]
// SAFETY: it owns its entries, as a vector does of which nobody else has a part: pins borrow it. What is
// retired may be dropped by any thread.
unsafe impl<K: Send, V: Send, S: Send> Send for ConcurrentMap<K, V, S> {}
#[allow(unsafe_code)]
// SAFETY: entries go from thread to thread, by value when they are put in or dropped, by reference when they
// are read; the hasher is used by reference only.
unsafe impl<K: Send + Sync, V: Send + Sync, S: Sync> Sync for ConcurrentMap<K, V, S> {}

impl<K, V> ConcurrentMap<K, V> {
    /// An empty map.
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

    /// An empty map with room for so many entries, below which it does not shrink. O(capacity).
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
    /// As many bytes of garbage as a map may have, if nothing else is said.
    pub const GARBAGE_LIMIT: usize = 64 << 20;

    /// An empty map that hashes with `hasher`.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ConcurrentMap, DefaultHashBuilder};
    ///
    /// let map: ConcurrentMap<u32, ()> = ConcurrentMap::with_hasher(DefaultHashBuilder::with_seed(7));
    /// assert!(map.is_empty());
    /// ```
    #[must_use]
    pub fn with_hasher(hasher: S) -> Self {
        let garbage =
            Garbage { ledger: Arc::new(Ledger::new()), limit: Self::GARBAGE_LIMIT, patience: 0 };
        Self {
            indices: Arc::new(core::array::from_fn(|_| Index::new())),
            shards: (0..SHARDS).map(|_| Shard::new()).collect(),
            hasher,
            garbage,
        }
    }

    /// An empty map with room for so many entries that hashes with `hasher`. O(capacity).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ConcurrentMap, DefaultHashBuilder};
    ///
    /// // Two maps that hash alike: a hash is computed once.
    /// let here: ConcurrentMap<u32, u32> = ConcurrentMap::with_capacity_and_hasher(1000, DefaultHashBuilder::new());
    /// let there: ConcurrentMap<u32, ()> = ConcurrentMap::with_hasher(here.hasher().clone());
    /// assert_eq!(here.pin().hash_of(&7), there.pin().hash_of(&7));
    /// ```
    #[must_use]
    #[allow(unsafe_code)]
    pub fn with_capacity_and_hasher(capacity: usize, hasher: S) -> Self {
        let map = Self::with_hasher(hasher);
        let pin = crossbeam_epoch::pin();
        if capacity > 0 {
            for (shard, index) in map.shards.iter().zip(&*map.indices) {
                let entries = capacity.div_ceil(SHARDS);
                let ((), full) = shard.write(index, &pin, |writer| writer.reserve(entries));
                // Nobody has seen the map, so nobody sees this.
                full.into_iter().for_each(|mut batch| {
                    // SAFETY: it is of this shard, and no pin can have seen it.
                    unsafe { batch.free(&index.store) };
                });
            }
        }
        map
    }

    /// The map with another limit on what is retired and not yet given back, in bytes, and with patience.
    ///
    /// A writer that finds more than `bytes` helps to give them back. If readers hold on to them, it lets
    /// other threads run and helps again, `patience` times; then it gets [`WouldExceed`](super::WouldExceed).
    /// Without patience it does so at once. There is no waiting for ever: the reader that is waited for may
    /// be the thread itself.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::new().with_garbage_limit(1 << 20, 10);
    /// assert_eq!(map.garbage_limit(), 1 << 20);
    /// map.pin().insert("key", 1).unwrap();
    /// ```
    #[must_use]
    pub fn with_garbage_limit(mut self, bytes: usize, patience: u32) -> Self {
        (self.garbage.limit, self.garbage.patience) = (bytes, patience);
        self
    }

    /// The limit on what is retired, in bytes.
    #[must_use]
    pub fn garbage_limit(&self) -> usize {
        self.garbage.limit
    }

    /// Bytes that are retired and not yet given back, without what keys and values own. What a shard has
    /// retired since its last full batch, 4 KiB and a segment at most, is not counted.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::new();
    /// let pin = map.pin();
    /// for value in 0..1000 {
    ///     pin.insert("key", value).unwrap();
    /// }
    /// // Nothing that this pin might see is given back while it lasts.
    /// assert!(map.garbage() > 0);
    /// ```
    #[must_use]
    pub fn garbage(&self) -> usize {
        self.garbage.ledger.retired()
    }

    /// The hasher that the map was made with.
    #[must_use]
    pub const fn hasher(&self) -> &S {
        &self.hasher
    }

    /// Number of entries. While others write, it is one that was true of each shard, one after the other.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([("a", 1), ("b", 2)]);
    /// assert_eq!(map.len(), 2);
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.shards.iter().map(Shard::len).sum()
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shards.iter().all(|shard| shard.len() == 0)
    }

    /// Bytes that the map has allocated for entries and segments, without segments that are retired, and
    /// without what keys and values own.
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        let own = size_of_val(&*self.indices) + size_of_val(&*self.shards);
        own + self.shards.iter().map(Shard::allocation_size).sum::<usize>()
    }
}

impl<K, V, S> ConcurrentMap<K, V, S>
where
    K: Eq + Hash + Send + 'static,
    V: Send + 'static,
    S: BuildHasher,
{
    /// A view of the map, with a map's methods. What is taken out meanwhile stays valid for it.
    ///
    /// It costs about as much as a look-up of something that is in the cache: take one for a burst of
    /// packets, and [`repin`](Pinned::repin) it before the next. One thread may have several, of one map or
    /// of many.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([("key", 1)]);
    /// let pin = map.pin();
    /// assert_eq!(pin.get("key"), Some(&1));
    /// ```
    pub fn pin(&self) -> Pinned<'_, K, V, S> {
        Pinned::new(self)
    }
}

impl<K, V, S> Drop for ConcurrentMap<K, V, S> {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        let mut panic = Ok(());
        for (shard, index) in self.shards.iter_mut().zip(&*self.indices) {
            // SAFETY: nobody has a pin of the map any more.
            unsafe { shard.state().batch.free(&index.store) };
            // SAFETY: the same; the map is not used again.
            let dropped = unsafe { free_all(index.root.load(), &index.store) };
            panic = first_panic(panic, dropped);
        }
        // What is left is of batches that the collector has. Without this it would wait for the next one who pins.
        for _ in 0..LAST_HELP {
            if self.garbage() == 0 {
                break;
            }
            help(&crossbeam_epoch::pin());
        }
        panic.unwrap_or_else(|panic| resume_unwind(panic));
    }
}
