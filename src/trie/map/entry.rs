//! The place of one key in an [`LcTrieMap`](crate::LcTrieMap), filled or not.

use core::fmt;
use core::mem;

use crate::key::bits::BitString;
use crate::trie::{Gap, Seat, Trie};

/// The place of one key, found once: so its methods are O(1), but for what `insert` and `remove` of the map cost
/// besides their look-up.
///
/// # Example
///
/// ```
/// use flowtable::LcTrieMap;
///
/// let mut names: LcTrieMap<u16, String> = LcTrieMap::new();
/// names.entry(443).or_insert_with(|| "https".into());
/// names.entry(8080).or_insert_with_key(|port| format!("port {port}"));
/// names.entry(443).and_modify(|name| name.push_str(", h2")).or_default();
/// assert!(names.values().eq(["https, h2", "port 8080"]));
/// ```
pub enum Entry<'a, K, V> {
    /// The key has a value.
    Occupied(OccupiedEntry<'a, K, V>),
    /// The key has no value.
    Vacant(VacantEntry<'a, K, V>),
}

/// The place of a key that has a value.
///
/// # Example
///
/// ```
/// use flowtable::LcTrieMap;
/// use flowtable::trie::map::Entry;
///
/// // Two packets are left of each; with the last one the flow goes.
/// let mut left = LcTrieMap::from([(1_u32, 2), (2, 2)]);
/// for id in [1, 2, 1] {
///     let Entry::Occupied(mut flow) = left.entry(id) else { panic!("it has gone") };
///     *flow.get_mut() -= 1;
///     if *flow.get() == 0 {
///         assert_eq!(flow.remove_entry(), (1, 0));
///     }
/// }
/// let Entry::Occupied(mut flow) = left.entry(2) else { panic!("it has gone") };
/// assert_eq!(flow.insert(5), 1);
/// *flow.into_mut() += 1;
/// assert_eq!(left, LcTrieMap::from([(2, 6)]));
/// ```
pub struct OccupiedEntry<'a, K, V> {
    pub(super) trie: &'a mut Trie<K, V>,
    pub(super) seat: Seat,
}

/// The place of a key that has no value.
///
/// # Example
///
/// ```
/// use flowtable::LcTrieMap;
/// use flowtable::trie::map::Entry;
///
/// let mut flows = LcTrieMap::new();
/// let mut refused = vec![];
/// for (id, may_open) in [(1_u32, true), (2, false), (1, false)] {
///     if let Entry::Vacant(place) = flows.entry(id) {
///         match may_open {
///             true => *place.insert(0) += 1,
///             false => refused.push(place.into_key()),
///         }
///     }
/// }
/// assert_eq!((flows.len(), refused), (1, vec![2]));
/// ```
pub struct VacantEntry<'a, K, V> {
    pub(super) trie: &'a mut Trie<K, V>,
    pub(super) gap: Gap,
    pub(super) key: K,
}

impl<'a, K: BitString, V> Entry<'a, K, V> {
    /// The key.
    #[must_use]
    pub fn key(&self) -> &K {
        match self {
            Self::Occupied(entry) => entry.key(),
            Self::Vacant(entry) => entry.key(),
        }
    }

    /// The value, `default` if there was none.
    pub fn or_insert(self, default: V) -> &'a mut V {
        self.or_insert_with(|| default)
    }

    /// The value, made by `default` if there was none.
    pub fn or_insert_with(self, default: impl FnOnce() -> V) -> &'a mut V {
        self.or_insert_with_key(|_| default())
    }

    /// The value, made from the key by `default` if there was none.
    pub fn or_insert_with_key(self, default: impl FnOnce(&K) -> V) -> &'a mut V {
        match self {
            Self::Occupied(entry) => entry.into_mut(),
            Self::Vacant(entry) => {
                let value = default(&entry.key);
                entry.insert(value)
            }
        }
    }

    /// The value, the default of its type if there was none.
    pub fn or_default(self) -> &'a mut V
    where
        V: Default,
    {
        self.or_insert_with(V::default)
    }

    /// Changes the value if there is one.
    pub fn and_modify(mut self, change: impl FnOnce(&mut V)) -> Self {
        if let Self::Occupied(entry) = &mut self {
            change(entry.get_mut());
        }
        self
    }
}

impl<'a, K: BitString, V> OccupiedEntry<'a, K, V> {
    /// The key.
    #[must_use]
    pub fn key(&self) -> &K {
        self.trie.leaf(self.seat.leaf).0
    }

    /// The value.
    #[must_use]
    pub fn get(&self) -> &V {
        self.trie.leaf(self.seat.leaf).1
    }

    /// The value, to change.
    #[must_use]
    pub fn get_mut(&mut self) -> &mut V {
        self.trie.leaf_mut(self.seat.leaf).1
    }

    /// The value, to change for as long as the map is borrowed.
    #[must_use]
    pub fn into_mut(self) -> &'a mut V {
        self.trie.leaf_mut(self.seat.leaf).1
    }

    /// Puts in another value and returns the one that was there.
    pub fn insert(&mut self, value: V) -> V {
        mem::replace(self.get_mut(), value)
    }

    /// Takes the key out and returns its value.
    pub fn remove(self) -> V {
        self.remove_entry().1
    }

    /// Takes the key out and returns it with its value.
    pub fn remove_entry(self) -> (K, V) {
        self.trie.vacate(self.seat)
    }
}

impl<'a, K: BitString, V> VacantEntry<'a, K, V> {
    /// The key.
    #[must_use]
    pub fn key(&self) -> &K {
        &self.key
    }

    /// The key, given back.
    #[must_use]
    pub fn into_key(self) -> K {
        self.key
    }

    /// Gives the key a value.
    ///
    /// # Panics
    ///
    /// If the map has 2^31 - 1 keys already.
    pub fn insert(self, value: V) -> &'a mut V {
        let leaf = self.trie.fill(self.gap, self.key, value);
        self.trie.leaf_mut(leaf).1
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

impl<K: BitString + fmt::Debug, V: fmt::Debug> fmt::Debug for OccupiedEntry<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OccupiedEntry")
            .field("key", self.key())
            .field("value", self.get())
            .finish_non_exhaustive()
    }
}

impl<K: fmt::Debug, V> fmt::Debug for VacantEntry<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("VacantEntry").field(&self.key).finish()
    }
}
