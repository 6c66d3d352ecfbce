//! A concurrent dynamic LC-trie: wait-free readers under read-copy-update, one writer at a time.
//!
//! ```text
//!     root ──→ ▕   │ ▪ │   │ ▪ ▏ node        a slot is one word, atomic: nothing, a leaf or a node
//!                    │       └──→ leaf
//!                    └──→ ▕ ▪ │ ▪ ▏          an insertion stores a leaf, or a node above a leaf
//!                           │   └──→ leaf    a node that is resized is copied, with other slots,
//!                           └──→ leaf        and replaced by one store in its parent
//! ```
//!
//! This is the trie of the TRASH paper as it is used there: its lookups "inherit the efficient RCU
//! locking" of the route tables of Linux. Policy and shapes are the same as in the sequential
//! [`LcTrieMap`](crate::LcTrieMap), whose module explains level and path compression. Nodes and
//! leaves that a writer has replaced are *retired*, and freed when all earlier pins have ended.
//!
//! Keys are in the order of their bits, so entries can be read in order. For state by key alone,
//! [`ConcurrentMap`](super::ConcurrentMap) is faster.
//!
//! # Guarantees
//!
//! - **T1, reads.** A lookup that begins after an insertion, replacement or removal has returned
//!   observes it, or a later one of the same key. It returns an entry whole or not at all.
//! - **T2, linearizability.** The result of a lookup was true at a moment between its begin and its
//!   end: no resize makes an entry temporarily invisible. Lookups of a key are monotonic.
//! - **T3, order.** An iteration yields keys in ascending order, each at most once: all that exist
//!   during the whole iteration, and possibly keys that are inserted or removed during it. An
//!   iteration is no snapshot.
//! - **T4, references.** They are valid until the pin is dropped or
//!   [repinned](super::Pinned::repin), also when the entry has been removed. Entries do not move.
//! - **T5, bounded garbage.** Garbage, retired and not freed yet, takes no more bytes than the
//!   limit and the garbage of one insertion of each thread. Above, insertions are refused, and
//!   nothing has changed. Removals are not refused: above the limit, each adds its leaf, the nodes
//!   that it replaces, and 2.3 KB, which 64 removals of `retain` share.
//! - **T6, progress.** A lookup takes no lock, never waits and never retries. A writer waits for
//!   other writers, none of which waits for a reader.
//! - **T7, code of the caller.** Under the lock only methods of keys run. If one panics, so does
//!   the call: lookups go on, the entry may have been inserted or removed or not, which
//!   [`len`](ConcurrentLcTrie::len) agrees with. Values are dropped without the lock, by any
//!   thread. If a destructor panics while the trie is dropped, all entries are dropped
//!   nevertheless.
//!
//! # Cost
//!
//! A lookup visits 1.3 to 2 nodes for random keys, two dependent cache misses for each, and the
//! leaf. A resize copies the slots of a node; a resize of the root of a million keys takes tens of
//! milliseconds, in which other writers wait and readers do not.
//!
//! # Papers
//!
//! Olsson and Nilsson, *TRASH: a dynamic LC-trie and hash data structure* (2006); McKenney and
//! others, *Read-copy update* (2001); Nilsson and Tikkanen, *An experimental study of compression
//! methods for dynamic tries* (2002).

mod check;
#[cfg(all(test, crossbeam_loom))]
mod loom_models;
mod node;
mod pinned;
mod write;

use core::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::collector::{Garbage, LIMIT, first_panic};
use super::pinned::{Guard, Pinned};
use super::sync::{AtomicUsize, Lock, Ordering};
use crate::key::bits::BitString;
use crate::trie::Tuning;
use node::{Child, Kind, Slot};

pub use pinned::TrieIter;

/// A concurrent ordered map of bit strings: the dynamic LC-trie under read-copy-update.
///
/// All reads and writes are methods of a [pin](Self::pin). The [module](self) has the guarantees.
///
/// | method of a pin | cost |
/// |---|---|
/// | `get`, `find`, `contains_key` | 1.3 to 2 nodes for random keys, two cache misses each, and the leaf |
/// | `insert`, `remove` | the lock of all writers, a lookup, and the nodes that are resized; a resize of the root copies O(keys) slots |
/// | `after`, `iter_from` | a lookup |
/// | `iter`, `retain`, `clear` | O(keys) |
/// | `len`, `garbage`, `repin` | O(1) |
///
/// # Example
///
/// ```
/// use flowtable::concurrent::ConcurrentLcTrie;
///
/// let trie = ConcurrentLcTrie::<u32, &str>::new();
/// trie.pin().insert(80, "http")?;
/// std::thread::scope(|scope| {
///     scope.spawn(|| assert_eq!(trie.pin().get(&80), Some(&"http")));
///     trie.pin().insert(53, "dns").unwrap();
/// });
/// assert!(trie.pin().iter().eq([(53, &"dns"), (80, &"http")]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("ordered map", "rcu", "skip list"))]
pub struct ConcurrentLcTrie<K, V> {
    root: Slot<K, V>,
    lock: Lock<()>,
    len: AtomicUsize,
    tuning: Tuning,
    garbage: Garbage,
}

#[allow(unsafe_code)]
// SAFETY: entries are dropped by any thread.
unsafe impl<K: Send, V: Send> Send for ConcurrentLcTrie<K, V> {}

#[allow(unsafe_code)]
// SAFETY: readers of all threads have shared references to entries, which any thread drops.
unsafe impl<K: Send + Sync, V: Send + Sync> Sync for ConcurrentLcTrie<K, V> {}

impl<K, V> Drop for ConcurrentLcTrie<K, V> {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        let (mut open, mut panic) = (alloc::vec![self.root.load()], Ok(()));
        while let Some(child) = open.pop() {
            // SAFETY: the trie is dropped: there are no readers, and each child is linked once.
            if let Kind::Node(node) = unsafe { child.kind() } {
                open.extend(node.slots.iter().map(Slot::load));
            }
            // SAFETY: as above.
            let owned = unsafe { child.free() };
            let dropped = catch_unwind(AssertUnwindSafe(|| drop(owned)));
            panic = first_panic(panic, dropped);
        }
        self.garbage.reduce_at_drop();
        panic.unwrap_or_else(|panic| resume_unwind(panic));
    }
}

impl<K: BitString, V> ConcurrentLcTrie<K, V> {
    /// The default limit on garbage, in bytes.
    pub const GARBAGE_LIMIT: usize = LIMIT;

    /// Creates an empty trie.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::concurrent::ConcurrentLcTrie;
    ///
    /// assert!(ConcurrentLcTrie::<u32, ()>::new().is_empty());
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::with_tuning(Tuning::default())
    }

    /// Creates an empty trie with other thresholds.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::concurrent::ConcurrentLcTrie;
    /// use flowtable::trie::Tuning;
    ///
    /// let trie = ConcurrentLcTrie::<u32, ()>::with_tuning(Tuning::TRASH_2006);
    /// assert!(trie.is_empty());
    /// ```
    #[must_use]
    pub fn with_tuning(tuning: Tuning) -> Self {
        Self {
            root: Slot::new(Child::EMPTY),
            lock: Lock::new(()),
            len: AtomicUsize::new(0),
            tuning,
            garbage: Garbage::new(),
        }
    }

    /// Sets the limit on garbage in bytes: above it, an insertion helps the collector, yields to
    /// readers `patience` times, and is then refused.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::concurrent::Refused;
    ///
    /// use flowtable::concurrent::ConcurrentLcTrie;
    ///
    /// let trie = ConcurrentLcTrie::<u8, u64>::new().with_garbage_limit(5000, 0);
    /// let reader = trie.pin();
    /// let refused = (0..).find_map(|now| trie.pin().insert(1, now).err()).unwrap();
    /// assert!(matches!(refused.reason, Refused::Garbage { limit: 5000, .. }));
    /// assert_eq!(reader.get(&1), Some(&(refused.refused.1 - 1)));
    /// ```
    #[must_use]
    pub fn with_garbage_limit(mut self, bytes: usize, patience: u32) -> Self {
        (self.garbage.limit, self.garbage.patience) = (bytes, patience);
        self
    }

    /// Returns the bytes that are retired and not freed yet.
    #[must_use]
    pub fn garbage(&self) -> usize {
        self.garbage.retired()
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        // Acquire: pairs with the Release of a writer.
        self.len.load(Ordering::Acquire)
    }

    /// Returns whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Pins the thread, for reads and writes.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::concurrent::ConcurrentLcTrie;
    ///
    /// let trie = ConcurrentLcTrie::<u32, char>::new();
    /// let pinned = trie.pin();
    /// assert_eq!(pinned.insert(7, 'a')?, None);
    /// assert_eq!(pinned.insert(7, 'b')?, Some(&'a'));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn pin(&self) -> Pinned<'_, Self> {
        Pinned::new(self)
    }

    /// Returns a view of the trie, under a guard of the thread that other structures share: see
    /// [`concurrent::pin`](crate::concurrent::pin).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::concurrent::ConcurrentLcTrie;
    /// use flowtable::concurrent::pin;
    ///
    /// let (here, there) = (ConcurrentLcTrie::new(), ConcurrentLcTrie::new());
    /// let guard = pin();
    /// here.pinned(&guard).insert(7_u8, 9_u16)?;
    /// there.pinned(&guard).insert(9_u16, 'b')?;
    /// let (here, there) = (here.pinned(&guard), there.pinned(&guard));
    /// assert_eq!(here.get(&7).and_then(|at| there.get(at)), Some(&'b'));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn pinned<'t, 'g>(&'t self, guard: &'g Guard) -> Pinned<'t, Self, &'g Guard> {
        Pinned::of(self, guard)
    }
}

impl<K: BitString, V> Default for ConcurrentLcTrie<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V> Extend<(K, V)> for &ConcurrentLcTrie<K, V>
where
    K: BitString + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    /// Inserts all entries.
    ///
    /// # Panics
    ///
    /// If an insertion is refused: see `insert` of its [pin](ConcurrentLcTrie::pin).
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        self.pin().insert_all(entries, |pin, (key, value)| pin.insert(key, value).map(drop));
    }
}

impl<K, V> Extend<(K, V)> for ConcurrentLcTrie<K, V>
where
    K: BitString + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    /// Inserts all entries.
    ///
    /// # Panics
    ///
    /// If an insertion is refused: see `insert` of its [pin](ConcurrentLcTrie::pin).
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        (&*self).extend(entries);
    }
}

impl<K, V> FromIterator<(K, V)> for ConcurrentLcTrie<K, V>
where
    K: BitString + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        // Other pins may delay the collector while the trie is built.
        let mut trie = Self::new().with_garbage_limit(usize::MAX, 0);
        trie.extend(entries);
        trie.with_garbage_limit(LIMIT, 0)
    }
}

/// Formats the entries in order, as a map.
impl<K: BitString + fmt::Debug, V: fmt::Debug> fmt::Debug for ConcurrentLcTrie<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.pin().iter()).finish()
    }
}

impl<K, V, G: fmt::Debug> fmt::Debug for Pinned<'_, ConcurrentLcTrie<K, V>, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pinned").field("guard", &self.guard).finish_non_exhaustive()
    }
}
