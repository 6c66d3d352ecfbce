//! Construction, limits and pins of `ConcurrentLcTrie`.

use super::ConcurrentLcTrie;
use super::node::{Child, Slot};
use crate::concurrent::garbage::{self, Garbage};
use crate::concurrent::guard::Guard;
use crate::concurrent::lock::Lock;
use crate::concurrent::pinned::Pinned;
use crate::concurrent::sync::{AtomicUsize, Ordering};
use crate::key::bits::BitString;
use crate::trie::Tuning;

impl<K: BitString, V> ConcurrentLcTrie<K, V> {
    /// The default limit on garbage, in bytes.
    pub const GARBAGE_LIMIT: usize = garbage::LIMIT;

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
    /// assert_eq!(trie.tuning(), Tuning::TRASH_2006);
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

    /// Returns the thresholds.
    #[must_use]
    pub const fn tuning(&self) -> Tuning {
        self.tuning
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

    /// Returns the limit on garbage, in bytes.
    #[must_use]
    pub fn garbage_limit(&self) -> usize {
        self.garbage.limit
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
