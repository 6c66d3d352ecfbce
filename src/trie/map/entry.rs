//! The entry API of an [`LcTrieMap`](crate::LcTrieMap).

use core::fmt;
use core::mem;

use crate::key::bits::BitString;
use crate::trie::{InsertionPoint, LeafPosition, Trie};

/// The entry of one key, occupied or vacant.
///
/// The key has been searched once, so methods are O(1), except that insertion and removal cost as
/// much as in the map without the search.
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

/// The entry of a key that has a value.
///
/// # Example
///
/// ```
/// use flowtable::LcTrieMap;
/// use flowtable::trie::map::Entry;
///
/// // Two packets remain of each flow. Its last packet removes the flow.
/// let mut remaining = LcTrieMap::from([(1_u32, 2), (2, 2)]);
/// for id in [1, 2, 1] {
///     let Entry::Occupied(mut flow) = remaining.entry(id) else { panic!("no such flow") };
///     *flow.get_mut() -= 1;
///     if *flow.get() == 0 {
///         assert_eq!(flow.remove_entry(), (1, 0));
///     }
/// }
/// let Entry::Occupied(mut flow) = remaining.entry(2) else { panic!("no such flow") };
/// assert_eq!(flow.insert(5), 1);
/// *flow.into_mut() += 1;
/// assert_eq!(remaining, LcTrieMap::from([(2, 6)]));
/// ```
pub struct OccupiedEntry<'a, K, V> {
    pub(in crate::trie) trie: &'a mut Trie<K, V>,
    pub(in crate::trie) position: LeafPosition,
}

/// The entry of a key that has no value.
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
///     if let Entry::Vacant(entry) = flows.entry(id) {
///         match may_open {
///             true => *entry.insert(0) += 1,
///             false => refused.push(entry.into_key()),
///         }
///     }
/// }
/// assert_eq!((flows.len(), refused), (1, vec![2]));
/// ```
pub struct VacantEntry<'a, K, V> {
    pub(super) trie: &'a mut Trie<K, V>,
    pub(super) insertion_point: InsertionPoint,
    pub(super) key: K,
}

impl<'a, K: BitString, V> Entry<'a, K, V> {
    /// Returns the key.
    #[must_use]
    pub fn key(&self) -> &K {
        match self {
            Self::Occupied(entry) => entry.key(),
            Self::Vacant(entry) => entry.key(),
        }
    }

    /// Inserts `default` if there is no value, and returns a mutable reference to the value.
    pub fn or_insert(self, default: V) -> &'a mut V {
        self.or_insert_with(|| default)
    }

    /// Inserts the result of `default` if there is no value, and returns a mutable reference to the
    /// value.
    pub fn or_insert_with(self, default: impl FnOnce() -> V) -> &'a mut V {
        self.or_insert_with_key(|_| default())
    }

    /// Inserts the result of `default`, called with the key, if there is no value, and returns a
    /// mutable reference to the value.
    pub fn or_insert_with_key(self, default: impl FnOnce(&K) -> V) -> &'a mut V {
        match self {
            Self::Occupied(entry) => entry.into_mut(),
            Self::Vacant(entry) => {
                let value = default(&entry.key);
                entry.insert(value)
            }
        }
    }

    /// Inserts the default of the type if there is no value, and returns a mutable reference to the
    /// value.
    pub fn or_default(self) -> &'a mut V
    where
        V: Default,
    {
        self.or_insert_with(V::default)
    }

    /// Modifies the value if there is one.
    pub fn and_modify(mut self, modify: impl FnOnce(&mut V)) -> Self {
        if let Self::Occupied(entry) = &mut self {
            modify(entry.get_mut());
        }
        self
    }
}

impl<'a, K: BitString, V> OccupiedEntry<'a, K, V> {
    /// Returns the key.
    #[must_use]
    pub fn key(&self) -> &K {
        self.trie.leaf(self.position.leaf).0
    }

    /// Returns the value.
    #[must_use]
    pub fn get(&self) -> &V {
        self.trie.leaf(self.position.leaf).1
    }

    /// Returns a mutable reference to the value.
    #[must_use]
    pub fn get_mut(&mut self) -> &mut V {
        self.trie.leaf_mut(self.position.leaf).1
    }

    /// Converts the entry into a mutable reference to the value with the lifetime of the map's
    /// borrow.
    #[must_use]
    pub fn into_mut(self) -> &'a mut V {
        self.trie.leaf_mut(self.position.leaf).1
    }

    /// Replaces the value and returns the previous one.
    pub fn insert(&mut self, value: V) -> V {
        mem::replace(self.get_mut(), value)
    }

    /// Removes the key and returns its value.
    pub fn remove(self) -> V {
        self.remove_entry().1
    }

    /// Removes the key and returns it with its value.
    pub fn remove_entry(self) -> (K, V) {
        self.trie.remove_at(self.position)
    }
}

impl<'a, K: BitString, V> VacantEntry<'a, K, V> {
    /// Returns the key.
    #[must_use]
    pub fn key(&self) -> &K {
        &self.key
    }

    /// Returns the key that was passed to [`LcTrieMap::entry`](super::LcTrieMap::entry).
    #[must_use]
    pub fn into_key(self) -> K {
        self.key
    }

    /// Inserts a value for the key and returns a mutable reference to it.
    ///
    /// # Panics
    ///
    /// If the map has 2^31 - 1 keys already.
    pub fn insert(self, value: V) -> &'a mut V {
        let leaf = self.trie.insert_at(self.insertion_point, self.key, value);
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
