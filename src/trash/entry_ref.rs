//! The place of a key that is borrowed, and made an owned one if it is inserted.

use alloc::borrow::ToOwned;
use core::fmt;
use core::hash::{BuildHasher, Hash};

use super::TrashMap;
use super::entry::{OccupiedEntry, VacantEntry};
use super::error::TryInsertError;
use crate::hash::Query;
use crate::memory::{Allocator, Global};
use crate::table::error::TryReserveError;

/// The entry of a borrowed key. See [`TrashMap::entry_ref`].
///
/// # Example
///
/// ```
/// use flowtable::{TrashMap, trash::EntryRef};
///
/// let mut names: TrashMap<String, u32> = TrashMap::new();
/// for name in ["a", "b", "a", "a"] {
///     *names.entry_ref(name).and_modify(|count| *count += 1).or_insert(1) += 10;
/// }
/// *names.entry_ref("b").or_default() += 100;
/// assert_eq!((names["a"], names["b"]), (33, 111));
/// names.entry_ref("c").or_insert_with(|| 5);
/// assert_eq!(names.entry_ref("d").insert_entry(7).key(), "d");
/// let EntryRef::Vacant(vacant) = names.entry_ref("e") else { panic!("there is no e") };
/// assert_eq!(vacant.key(), "e");
/// assert_eq!(vacant.try_insert(9).map(|value| *value), Ok(9));
/// ```
pub enum EntryRef<'a, K, Q, V, S, A: Allocator + Clone = Global> {
    /// The key has a value.
    Occupied(OccupiedEntry<'a, K, V, S, A>),
    /// The key has no value.
    Vacant(VacantEntryRef<'a, K, Q, V, S, A>),
}

/// The entry of a borrowed key that has no value.
pub struct VacantEntryRef<'a, K, Q, V, S, A: Allocator + Clone = Global> {
    map: &'a mut TrashMap<K, V, S, A>,
    /// The hash of the key in the map's table.
    hash: u64,
    query: Q,
}

impl<K: Eq + Hash, V, S: BuildHasher, A: Allocator + Clone> TrashMap<K, V, S, A> {
    /// Returns the place of a borrowed key, which becomes an owned one only if it is inserted, as
    /// by [`ToOwned`]. The owned key must be equivalent to the borrowed one and have the same hash.
    ///
    /// For a key with its hash, too: see [`Prehashed`](crate::Prehashed).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{FlowKey, Prehashed, TrashMap};
    ///
    /// let mut packets: TrashMap<FlowKey, u32> = TrashMap::new();
    /// let key = FlowKey::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 5353, 53, 17).unwrap();
    /// let query = Prehashed { hash: packets.hash_of(&key), key: &key };
    /// *packets.entry_ref(query).or_insert(0) += 1;
    /// assert_eq!(packets[&key], 1);
    /// ```
    pub fn entry_ref<Q: Query<K>>(&mut self, key: Q) -> EntryRef<'_, K, Q, V, S, A> {
        self.try_entry_ref(key).unwrap_or_else(|error| error.raise())
    }

    /// Returns the place of a borrowed key, if there is memory: see
    /// [`try_entry`](Self::try_entry).
    ///
    /// # Errors
    ///
    /// If memory is needed and cannot be allocated; the map is as it was.
    ///
    /// # Example
    ///
    /// ```
    /// let mut names: flowtable::TrashMap<String, u32> = flowtable::TrashMap::new();
    /// assert_eq!(names.try_entry_ref("a").map(|entry| *entry.or_insert(1)), Ok(1));
    /// ```
    pub fn try_entry_ref<Q: Query<K>>(
        &mut self,
        key: Q,
    ) -> Result<EntryRef<'_, K, Q, V, S, A>, TryReserveError> {
        let (hash, at) = self.locate_prepared(key.hash_with(&self.hasher), key.key())?;
        Ok(match at {
            Some(at) => EntryRef::Occupied(OccupiedEntry { map: self, at }),
            None => EntryRef::Vacant(VacantEntryRef { map: self, hash, query: key }),
        })
    }
}

impl<'a, K, Q, V, S, A: Allocator + Clone> EntryRef<'a, K, Q, V, S, A>
where
    K: Eq + Hash,
    Q: Query<K, Key: ToOwned<Owned = K>>,
    S: BuildHasher,
{
    /// Returns the value, which is `default` if there was none.
    pub fn or_insert(self, default: V) -> &'a mut V {
        self.or_insert_with(|| default)
    }

    /// Returns the value, which is the result of `default` if there was none.
    pub fn or_insert_with(self, default: impl FnOnce() -> V) -> &'a mut V {
        match self {
            Self::Occupied(entry) => entry.into_mut(),
            Self::Vacant(entry) => entry.insert(default()),
        }
    }

    /// Returns the value, which is the default of its type if there was none.
    pub fn or_default(self) -> &'a mut V
    where
        V: Default,
    {
        self.or_insert_with(V::default)
    }

    /// Gives the key a value, whether or not it has one, and returns the entry.
    pub fn insert_entry(self, value: V) -> OccupiedEntry<'a, K, V, S, A> {
        match self {
            Self::Occupied(mut entry) => {
                entry.insert(value);
                entry
            }
            Self::Vacant(entry) => entry.into_owned().insert_entry(value),
        }
    }

    /// Changes the value if there is one.
    #[must_use]
    pub fn and_modify(mut self, change: impl FnOnce(&mut V)) -> Self {
        if let Self::Occupied(entry) = &mut self {
            change(entry.get_mut());
        }
        self
    }
}

impl<K, Q: Query<K>, V, S, A: Allocator + Clone> VacantEntryRef<'_, K, Q, V, S, A> {
    /// Returns the borrowed key.
    #[must_use]
    pub fn key(&self) -> &Q::Key {
        self.query.key()
    }
}

impl<'a, K, Q, V, S, A: Allocator + Clone> VacantEntryRef<'a, K, Q, V, S, A>
where
    K: Eq + Hash,
    Q: Query<K, Key: ToOwned<Owned = K>>,
    S: BuildHasher,
{
    /// The place of the owned key.
    fn into_owned(self) -> VacantEntry<'a, K, V, S, A> {
        VacantEntry { map: self.map, hash: self.hash, key: self.query.key().to_owned() }
    }

    /// Gives the key a value.
    pub fn insert(self, value: V) -> &'a mut V {
        self.into_owned().insert(value)
    }

    /// Gives the key a value, or returns both if there is no memory.
    ///
    /// # Errors
    ///
    /// If memory is needed and cannot be allocated; the map is as it was.
    pub fn try_insert(self, value: V) -> Result<&'a mut V, TryInsertError<(K, V)>> {
        self.into_owned().try_insert(value)
    }
}

impl<K, Q, V, S, A: Allocator + Clone> fmt::Debug for EntryRef<'_, K, Q, V, S, A>
where
    K: Eq + Hash + fmt::Debug,
    Q: Query<K, Key: fmt::Debug>,
    V: fmt::Debug,
    S: BuildHasher,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Occupied(entry) => f.debug_tuple("Occupied").field(entry).finish(),
            Self::Vacant(entry) => f.debug_tuple("Vacant").field(entry).finish(),
        }
    }
}

impl<K, Q, V, S, A: Allocator + Clone> fmt::Debug for VacantEntryRef<'_, K, Q, V, S, A>
where
    Q: Query<K, Key: fmt::Debug>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VacantEntryRef").field("key", &self.key()).finish_non_exhaustive()
    }
}
