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

// First, so that the documentation of the type begins with its methods.
mod methods;

mod check;
mod iter;
#[cfg(all(test, crossbeam_loom))]
mod loom_models;
mod node;
mod order;
mod pinned;
mod traits;
mod write;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::garbage::{Garbage, first_panic};
use super::lock::Lock;
use super::sync::AtomicUsize;
use crate::trie::Tuning;
use node::{Kind, Slot};

pub use iter::TrieIter;

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
