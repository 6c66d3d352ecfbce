//! The flow cache of the TRASH paper: a level-compressed trie that collects its own garbage.
//!
//! ```text
//!     leaves in the order of the trie:  … a  b  c  d │ e  f  g  h │ i  j …
//!                                              rover ┘ └── ring ──┘
//!                                       one of e f g h leaves: the one with the lowest score
//! ```
//!
//! *Passive* collection happens when a new key comes and [`PassiveGc`]'s threshold is reached: of each
//! of the next `goal` rings of four leaves behind the rover, the one with the lowest score leaves. It
//! goes once around at most, so one leaf in four, rounded up, is the most that leaves at once. The
//! caller gives the score, usually the time of last use, and gets what left. Over `Headed` keys the
//! order of the trie is random, so four leaves in a row are a random sample.
//!
//! *Active* collection removes a TCP connection at its end, before it is garbage: [`FinWatch`] says
//! when. It halves what the cache holds under short connections, and more.
//!
//! Price: an insertion at the threshold looks at `4 * goal` leaves, or at all if they are fewer; the
//! paper's goal of 100 costs tens of microseconds at once. As many insertions as leaves that left
//! then collect nothing. Where all leaves are in use there is nothing to collect, and each insertion
//! looks in vain.
//!
//! Paper: Olsson and Nilsson, *TRASH*, section 4. What differs: the rover is a key, not a leaf, so
//! it cannot dangle; and a reset ends a connection, too.
//!
//! [`FinWatch`]: crate::flow_cache::FinWatch

use alloc::vec::Vec;
use core::fmt;
use core::ops::Bound;

pub use crate::eviction::{GcError, PassiveGc};
use crate::key::bits::BitString;
use crate::trie::Tuning;
use crate::trie::map::{IntoIter, Iter, LcTrieMap};

/// A map over bit strings that keeps itself at a threshold by evicting what scores lowest.
///
/// # Example
///
/// ```
/// use flowtable::DefaultHashBuilder;
/// use flowtable::key::bits::Headed;
/// use flowtable::eviction::PassiveGc;
/// use flowtable::trie::unicache::Unicache;
///
/// let hasher = DefaultHashBuilder::with_seed(1);
/// let mut cache = Unicache::new(PassiveGc::new(100, 1)?);
/// let mut evicted = 0;
/// for time in 0..1000_u64 {
///     let key = Headed::<u64>::new(time, &hasher);
///     cache.insert(key, time, |_, last_use| Some(*last_use), |_key, _time| evicted += 1);
/// }
/// assert_eq!((cache.len(), evicted), (100, 900));
/// # Ok::<(), flowtable::eviction::GcError>(())
/// ```
#[derive(Clone)]
pub struct Unicache<K, V> {
    trie: LcTrieMap<K, V>,
    gc: PassiveGc,
    /// The leaf looked at last; it may have left since.
    rover: Option<K>,
}

impl<K: BitString, V> Unicache<K, V> {
    /// An empty cache on a trie with the default tuning.
    #[must_use]
    pub const fn new(gc: PassiveGc) -> Self {
        Self::with_tuning(gc, Tuning::LINUX)
    }

    /// An empty cache on a trie with a tuning of its own.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::eviction::PassiveGc;
    /// use flowtable::trie::Tuning;
    /// use flowtable::trie::unicache::Unicache;
    ///
    /// // As the paper has it.
    /// let cache: Unicache<u32, ()> = Unicache::with_tuning(PassiveGc::TRASH_2006, Tuning::TRASH_2006);
    /// assert_eq!((cache.gc(), cache.trie().tuning()), (PassiveGc::TRASH_2006, Tuning::TRASH_2006));
    /// ```
    #[must_use]
    pub const fn with_tuning(gc: PassiveGc, tuning: Tuning) -> Self {
        Self { trie: LcTrieMap::with_tuning(tuning), gc, rover: None }
    }

    /// When it collects garbage.
    #[must_use]
    pub const fn gc(&self) -> PassiveGc {
        self.gc
    }

    /// The trie, to look at.
    #[must_use]
    pub const fn trie(&self) -> &LcTrieMap<K, V> {
        &self.trie
    }

    /// Number of entries.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.trie.len()
    }

    /// Whether there are no entries.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.trie.is_empty()
    }

    /// The value of `key`. Costs what it does in an [`LcTrieMap`].
    #[inline]
    #[must_use]
    pub fn get(&self, key: &K) -> Option<&V> {
        self.trie.get(key)
    }

    /// Whether `key` has a value. Costs what it does in an [`LcTrieMap`].
    #[inline]
    #[must_use]
    pub fn contains_key(&self, key: &K) -> bool {
        self.trie.contains_key(key)
    }

    /// The value of `key`, to change. Costs what it does in an [`LcTrieMap`].
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::eviction::PassiveGc;
    /// use flowtable::Timestamp;
    /// use flowtable::trie::unicache::Unicache;
    ///
    /// let mut seen: Unicache<u32, Timestamp> = Unicache::new(PassiveGc::TRASH_2006);
    /// for (id, seconds) in [(1, 0), (2, 1), (1, 2)] {
    ///     let now = Timestamp::from_secs(seconds);
    ///     match seen.get_mut(&id) {
    ///         Some(last_use) => *last_use = now,
    ///         None => _ = seen.insert(id, now, |_, last_use| Some(*last_use), |_, _| ()),
    ///     }
    /// }
    /// assert_eq!(seen.get(&1), Some(&Timestamp::from_secs(2)));
    /// ```
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.trie.get_mut(key)
    }

    /// Gives `key` a value and returns the one that it had. A new key collects garbage first, if
    /// the threshold is reached.
    ///
    /// The lower the `score` of an entry, the sooner it leaves; `None` is an entry in use, which
    /// never leaves. What leaves is handed to `evicted`. If all entries that a collection looks at
    /// are in use the cache grows past its threshold.
    ///
    /// # Panics
    ///
    /// If the cache has 2^31 - 1 keys already.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::eviction::PassiveGc;
    /// use flowtable::trie::unicache::Unicache;
    ///
    /// let mut cache = Unicache::new(PassiveGc::new(2, 1)?);
    /// let in_use = |key: &u32, _: &char| (*key != 1).then_some(*key);
    /// let mut left = vec![];
    /// for (key, value) in [(1, 'a'), (2, 'b'), (3, 'c')] {
    ///     cache.insert(key, value, in_use, |key, value| left.push((key, value)));
    /// }
    /// assert_eq!(left, [(2, 'b')]);
    /// # Ok::<(), flowtable::eviction::GcError>(())
    /// ```
    pub fn insert<S: Ord>(
        &mut self,
        key: K,
        value: V,
        score: impl FnMut(&K, &V) -> Option<S>,
        evicted: impl FnMut(K, V),
    ) -> Option<V> {
        if self.len() >= self.gc.threshold() && !self.trie.contains_key(&key) {
            self.collect(score, evicted);
        }
        self.trie.insert(key, value)
    }

    /// Takes `key` out and returns its value. Costs what it does in an [`LcTrieMap`].
    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.trie.remove(key)
    }

    /// Keeps the entries for which `keep` says so; asks in order of the keys. O(slots).
    ///
    /// # Example
    ///
    /// ```
    /// let mut cache = flowtable::trie::unicache::Unicache::new(flowtable::eviction::PassiveGc::TRASH_2006);
    /// for key in 0..10_u32 {
    ///     cache.insert(key, key % 3, |_, _| Some(0), |_, _| ());
    /// }
    /// cache.retain(|_, value| *value == 0);
    /// assert!(cache.iter().map(|(key, _)| *key).eq([0, 3, 6, 9]));
    /// assert_eq!((cache.remove(&3), cache.contains_key(&3)), (Some(0), false));
    /// cache.clear();
    /// assert!(cache.is_empty());
    /// ```
    pub fn retain(&mut self, keep: impl FnMut(&K, &mut V) -> bool) {
        self.trie.retain(keep);
    }

    /// Takes out every entry. O(entries).
    pub fn clear(&mut self) {
        self.trie.clear();
        self.rover = None;
    }

    /// Entries in the order of their keys.
    #[must_use]
    pub fn iter(&self) -> Iter<'_, K, V> {
        self.trie.iter()
    }

    /// One collection: the lowest of each of the next `goal` rings leaves.
    fn collect<S: Ord>(
        &mut self,
        score: impl FnMut(&K, &V) -> Option<S>,
        mut evicted: impl FnMut(K, V),
    ) {
        for key in self.lowest_of_rings(score) {
            if let Some((key, value)) = self.trie.remove_entry(&key) {
                evicted(key, value);
            }
        }
    }

    /// Moves the rover over the next `goal` rings of leaves, but once around at most. Returns the
    /// one with the lowest score in each, the later one of two equals; none where all are in use.
    fn lowest_of_rings<S: Ord>(&mut self, mut score: impl FnMut(&K, &V) -> Option<S>) -> Vec<K> {
        let behind = self.rover.map_or(Bound::Unbounded, Bound::Excluded);
        let wrapped = core::iter::once(&self.trie).flatten();
        let once_around = self.trie.range((behind, Bound::Unbounded)).chain(wrapped);
        let mut leaves = once_around.take(self.trie.len());
        let mut victims = Vec::new();
        for _ in 0..self.gc.goal().min(self.trie.len().div_ceil(PassiveGc::RING)) {
            let mut lowest: Option<(S, K)> = None;
            for (key, value) in leaves.by_ref().take(PassiveGc::RING) {
                self.rover = Some(*key);
                let Some(score) = score(key, value) else { continue };
                if lowest.as_ref().is_none_or(|(least, _)| score <= *least) {
                    lowest = Some((score, *key));
                }
            }
            victims.extend(lowest.map(|(_, key)| key));
        }
        victims
    }
}

impl<K: BitString + fmt::Debug, V: fmt::Debug> fmt::Debug for Unicache<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unicache")
            .field("gc", &self.gc)
            .field("entries", &self.trie)
            .finish_non_exhaustive()
    }
}

impl<K: BitString, V> IntoIterator for Unicache<K, V> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V>;

    fn into_iter(self) -> IntoIter<K, V> {
        self.trie.into_iter()
    }
}

impl<'a, K: BitString, V> IntoIterator for &'a Unicache<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Iter<'a, K, V> {
        self.iter()
    }
}
