//! The flow cache of the TRASH paper: a level-compressed trie with garbage collection.
//!
//! ```text
//!     leaves in the order of the trie:  … a  b  c  d │ e  f  g  h │ i  j …
//!                                              rover ┘ └── ring ──┘
//!                                       evicts one of e f g h: the one with the lowest score
//! ```
//!
//! *Passive* collection runs when a new key is inserted at the threshold of [`PassiveGc`]: from
//! each of the next `goal` rings of four leaves after the rover, it evicts the one with the lowest
//! score. It covers each leaf at most once, so it evicts at most one leaf in four, rounded up. The
//! caller provides the score, usually the time of last use, and receives the evicted entries. Over
//! [`Headed`] keys the order of the trie is random, so four successive leaves are a random sample.
//!
//! *Active* collection removes both directions of a TCP connection at its end, before they are
//! garbage: [`Unicache::observe`], by the flags of its packets. With the short flows of the paper
//! it leaves 6,000 of 100,000 entries.
//!
//! Cost: an insertion at the threshold reads `4 * goal` leaves, or all if there are fewer; the
//! paper's goal of 100 costs tens of microseconds at once. The walk to the four leaves of a ring
//! reads nodes only; the reads of the leaves then overlap. A victim is removed by its number in the
//! slab, not by its key. Then as many insertions as leaves were evicted collect nothing. Where all
//! leaves are in use there is no garbage, and each insertion scans the leaves without effect.
//!
//! Paper: Olsson and Nilsson, *TRASH*, sections 4.4 to 4.6. Differences: the rover is a key,
//! not a leaf, so it cannot dangle; and a reset ends a connection, too.
//!
//! [`Headed`]: crate::key::bits::Headed

use alloc::vec::Vec;
use core::fmt;
use core::ops::Deref;

use crate::eviction::PassiveGc;
use crate::key::FinWatch;
use crate::key::bits::BitString;
use crate::key::flow::TcpFlags;
use crate::trie::map::{IntoIter, Iter, LcTrieMap, OccupiedEntry};
use crate::trie::{InsertionPoint, LeafId, SearchResult, Tuning};

/// A bounded map over bit strings that evicts the entries with the lowest scores.
///
/// | method | cost |
/// |---|---|
/// | `get`, `get_mut`, `contains_key`, `remove` | as in an [`LcTrieMap`] |
/// | `insert`, `entry` | as in an [`LcTrieMap`]; at the threshold also a ring of entries for each that is evicted |
/// | `observe` | a lookup; at the end of a connection two removals |
/// | `iter`, `retain`, `clear`, `clone` | O(entries) |
/// | `len`, `is_empty` | O(1) |
///
/// Paper: Olsson and Nilsson, *TRASH*, sections 3, 4.5 and 4.6.
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
    /// The key of the last leaf scanned, which may have been removed since.
    rover: Option<K>,
}

impl<K: BitString, V> Unicache<K, V> {
    /// Creates an empty cache on a trie with the default tuning.
    #[must_use]
    pub const fn new(gc: PassiveGc) -> Self {
        Self::with_tuning(gc, Tuning::LINUX)
    }

    /// Creates an empty cache on a trie with the given tuning.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::eviction::PassiveGc;
    /// use flowtable::trie::Tuning;
    /// use flowtable::trie::unicache::Unicache;
    ///
    /// // The parameters of the paper.
    /// let cache: Unicache<u32, ()> =
    ///     Unicache::with_tuning(PassiveGc::TRASH_2006, Tuning::TRASH_2006);
    /// assert_eq!(cache.tuning(), Tuning::TRASH_2006);
    /// ```
    #[must_use]
    pub const fn with_tuning(gc: PassiveGc, tuning: Tuning) -> Self {
        Self { trie: LcTrieMap::with_tuning(tuning), gc, rover: None }
    }

    /// Returns a mutable reference to the value of `key`. Cost: see [`LcTrieMap`].
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

    /// Inserts or replaces the value of `key` and returns the previous one. A new key collects
    /// garbage first, if the threshold is reached.
    ///
    /// Entries with a lower `score` are evicted first; `None` marks an entry in use, which is never
    /// evicted. Evicted entries are passed to `evicted`. If all entries that a collection scans are
    /// in use, the cache grows past its threshold.
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
    /// let mut evicted = vec![];
    /// for (key, value) in [(1, 'a'), (2, 'b'), (3, 'c')] {
    ///     cache.insert(key, value, in_use, |key, value| evicted.push((key, value)));
    /// }
    /// assert_eq!(evicted, [(2, 'b')]);
    /// # Ok::<(), flowtable::eviction::GcError>(())
    /// ```
    pub fn insert<S: Ord>(
        &mut self,
        key: K,
        value: V,
        score: impl FnMut(&K, &V) -> Option<S>,
        evicted: impl FnMut(K, V),
    ) -> Option<V> {
        match self.entry(key) {
            Entry::Occupied(mut entry) => Some(entry.insert(value)),
            Entry::Vacant(entry) => {
                entry.insert(value, score, evicted);
                None
            }
        }
    }

    /// Returns the entry of `key`: a packet costs one search, whether its flow is new or not.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::eviction::PassiveGc;
    /// use flowtable::trie::unicache::{Entry, Unicache};
    ///
    /// let mut last_uses = Unicache::new(PassiveGc::new(2, 1)?);
    /// for (now, flow) in [7_u32, 8, 7, 9].into_iter().enumerate() {
    ///     match last_uses.entry(flow) {
    ///         Entry::Occupied(mut entry) => *entry.get_mut() = now,
    ///         Entry::Vacant(entry) => {
    ///             entry.insert(now, |_, last_use| Some(*last_use), |flow, _| assert_eq!(flow, 8));
    ///         }
    ///     }
    /// }
    /// assert!(last_uses.iter().eq([(&7, &2), (&9, &3)]));
    /// # Ok::<(), flowtable::eviction::GcError>(())
    /// ```
    #[inline]
    pub fn entry(&mut self, key: K) -> Entry<'_, K, V> {
        match self.trie.trie.locate(&key) {
            SearchResult::Found(position) => {
                Entry::Occupied(OccupiedEntry { trie: &mut self.trie.trie, position })
            }
            SearchResult::Vacant(insertion_point) => {
                Entry::Vacant(VacantEntry { cache: self, insertion_point, key })
            }
        }
    }

    /// Active collection: processes the TCP flags of a packet of `key`. At the end of its
    /// connection, removes the entries of `key` and of the other direction, `reverse`, passes them
    /// to `removed`, and returns true. Cost: one lookup, and two removals at the end.
    ///
    /// Each entry contains a detector, which `watch` returns. Without an entry only a reset ends
    /// the connection, and a FIN marks nothing: insert a detector that has
    /// [observed](FinWatch::observe) the packet.
    ///
    /// Paper: Olsson and Nilsson, *TRASH*, section 4.6 and appendix B.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::TcpFlags;
    /// use flowtable::eviction::PassiveGc;
    /// use flowtable::key::FinWatch;
    /// use flowtable::trie::unicache::Unicache;
    ///
    /// let mut cache: Unicache<u32, FinWatch> = Unicache::new(PassiveGc::TRASH_2006);
    /// let [there, back] = [1, 2];
    /// for key in [there, back] {
    ///     cache.insert(key, FinWatch::default(), |_, _| Some(0), |_, _| ());
    /// }
    /// let fin = TcpFlags::FIN | TcpFlags::ACK;
    /// let packets = [(there, back, fin), (back, there, fin), (there, back, TcpFlags::ACK)];
    /// let mut removed = vec![];
    /// let ends = packets.map(|(key, reverse, flags)| {
    ///     cache.observe(&key, &reverse, flags, |watch| watch, |key, _| removed.push(key))
    /// });
    /// assert_eq!((ends, removed), ([false, false, true], vec![there, back]));
    /// assert!(cache.is_empty());
    /// ```
    pub fn observe(
        &mut self,
        key: &K,
        reverse: &K,
        flags: TcpFlags,
        watch: impl FnOnce(&mut V) -> &mut FinWatch,
        mut removed: impl FnMut(K, V),
    ) -> bool {
        let ends = match self.trie.get_mut(key) {
            Some(value) => watch(value).observe(flags),
            None => FinWatch::default().observe(flags),
        };
        if ends {
            let entries = [key, reverse].map(|key| self.trie.remove_entry(key));
            entries.into_iter().flatten().for_each(|(key, value)| removed(key, value));
        }
        ends
    }

    /// Removes `key` and returns its value. Cost: see [`LcTrieMap`].
    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.trie.remove(key)
    }

    /// Retains the entries for which `keep` returns true, in the order of the keys. O(slots).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::eviction::PassiveGc;
    /// use flowtable::trie::unicache::Unicache;
    ///
    /// let mut cache = Unicache::new(PassiveGc::TRASH_2006);
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

    /// Removes all entries. O(entries).
    pub fn clear(&mut self) {
        self.trie.clear();
        self.rover = None;
    }

    /// Runs one collection: evicts the lowest score of each of the next `goal` rings.
    fn collect<S: Ord>(
        &mut self,
        score: impl FnMut(&K, &V) -> Option<S>,
        mut evicted: impl FnMut(K, V),
    ) {
        for leaf in self.victims(score) {
            if let Some((key, value)) = self.trie.trie.remove_leaf(leaf) {
                evicted(key, value);
            }
        }
    }

    /// Advances the rover over the next `goal` rings of leaves, at most one full cycle. Returns the
    /// leaf with the lowest score of each, the last of equal ones; rings in use have no victim.
    fn victims<S: Ord>(&mut self, mut score: impl FnMut(&K, &V) -> Option<S>) -> Vec<LeafId> {
        let trie = &self.trie.trie;
        let mut victims = Vec::new();
        let Some(mut next) = trie.leaf_in_circle_after(self.rover.as_ref()) else { return victims };
        let mut unseen = trie.len();
        for _ in 0..self.gc.goal().min(unseen.div_ceil(PassiveGc::RING)) {
            let mut ring = [LeafId(0); PassiveGc::RING];
            let ring = &mut ring[..PassiveGc::RING.min(unseen)];
            unseen -= ring.len();
            trie.take_in_circle(&mut next, ring);
            let mut lowest: Option<(S, LeafId)> = None;
            for &mut leaf in ring {
                let (key, value) = trie.leaf(leaf);
                self.rover = Some(*key);
                let Some(score) = score(key, value) else { continue };
                if lowest.as_ref().is_none_or(|(least, _)| score <= *least) {
                    lowest = Some((score, leaf));
                }
            }
            victims.extend(lowest.map(|(_, leaf)| leaf));
        }
        victims
    }
}

/// The entry of one key in a [`Unicache`], occupied or vacant.
pub enum Entry<'a, K, V> {
    /// The key has a value.
    Occupied(OccupiedEntry<'a, K, V>),
    /// The key has no value.
    Vacant(VacantEntry<'a, K, V>),
}

/// The entry of a key that has no value.
pub struct VacantEntry<'a, K, V> {
    cache: &'a mut Unicache<K, V>,
    insertion_point: InsertionPoint,
    key: K,
}

impl<'a, K: BitString, V> VacantEntry<'a, K, V> {
    /// Inserts a value for the key, after a collection if the threshold is reached: see
    /// [`Unicache::insert`]. Returns a mutable reference to the value.
    ///
    /// # Panics
    ///
    /// If the cache has 2^31 - 1 keys already.
    pub fn insert<S: Ord>(
        self,
        value: V,
        score: impl FnMut(&K, &V) -> Option<S>,
        evicted: impl FnMut(K, V),
    ) -> &'a mut V {
        let Self { cache, mut insertion_point, key } = self;
        if cache.len() >= cache.gc.threshold() {
            cache.collect(score, evicted);
            // Removals move insertion points, but insert no keys.
            if let SearchResult::Vacant(moved) = cache.trie.trie.locate(&key) {
                insertion_point = moved;
            }
        }
        let leaf = cache.trie.trie.insert_at(insertion_point, key, value);
        cache.trie.trie.leaf_mut(leaf).1
    }
}

impl<K: fmt::Debug, V> fmt::Debug for VacantEntry<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("VacantEntry").field(&self.key).finish()
    }
}

impl<K: BitString + fmt::Debug, V: fmt::Debug> fmt::Debug for Entry<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Occupied(entry) => entry.fmt(f),
            Self::Vacant(entry) => entry.fmt(f),
        }
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

/// The trie, for lookups and iteration.
impl<K, V> Deref for Unicache<K, V> {
    type Target = LcTrieMap<K, V>;

    #[inline]
    fn deref(&self) -> &LcTrieMap<K, V> {
        &self.trie
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
