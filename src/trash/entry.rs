//! The place of one key in a [`TrashMap`], filled or not.

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::mem;

use equivalent::Equivalent;

use super::TrashMap;
use super::error::TryInsertError;
use crate::memory::{Allocator, Global};
use crate::table::Position;
use crate::table::error::TryReserveError;

/// The entry of one key, occupied or vacant. Its methods do not search again.
///
/// Methods that insert or remove an entry cost as much as `insert` and `remove` of the map without
/// their lookup; the others are O(1).
///
/// # Example
///
/// ```
/// use flowtable::TrashMap;
///
/// let mut names: TrashMap<u16, String> = TrashMap::new();
/// names.entry(443).or_insert_with(|| "https".into());
/// names.entry(8080).or_insert_with_key(|port| format!("port {port}"));
/// names.entry(443).and_modify(|name| name.push_str(", h2")).or_default();
/// assert_eq!((&*names[&443], &*names[&8080]), ("https, h2", "port 8080"));
/// ```
pub enum Entry<'a, K, V, S, A: Allocator + Clone = Global> {
    /// The key has a value.
    Occupied(OccupiedEntry<'a, K, V, S, A>),
    /// The key has no value.
    Vacant(VacantEntry<'a, K, V, S, A>),
}

/// The entry of a key that has a value.
///
/// # Example
///
/// ```
/// use flowtable::{TrashMap, trash::Entry};
///
/// // Two packets are left of each; with the last one the flow goes.
/// let mut left = TrashMap::from([("a", 2), ("b", 2)]);
/// for name in ["a", "b", "a"] {
///     let Entry::Occupied(mut flow) = left.entry(name) else { panic!("it has gone") };
///     *flow.get_mut() -= 1;
///     if *flow.get() == 0 {
///         assert_eq!(flow.remove_entry(), ("a", 0));
///     }
/// }
/// let Entry::Occupied(mut flow) = left.entry("b") else { panic!("it has gone") };
/// assert_eq!(flow.insert(5), 1);
/// *flow.into_mut() += 1;
/// assert_eq!(left, TrashMap::from([("b", 6)]));
/// ```
pub struct OccupiedEntry<'a, K, V, S, A: Allocator + Clone = Global> {
    pub(super) map: &'a mut TrashMap<K, V, S, A>,
    /// Of an entry of the map's table, which does not change but through this.
    pub(super) at: Position,
}

/// The entry of a key that has no value.
///
/// # Example
///
/// ```
/// use flowtable::{TrashMap, trash::Entry};
///
/// let mut flows = TrashMap::new();
/// let mut refused = vec![];
/// for (name, may_open) in [("a", true), ("b", false), ("a", false)] {
///     if let Entry::Vacant(place) = flows.entry(name) {
///         match may_open {
///             true => *place.insert(0) += 1,
///             false => refused.push(place.into_key()),
///         }
///     }
/// }
/// assert_eq!((flows.len(), refused), (1, vec!["b"]));
/// ```
pub struct VacantEntry<'a, K, V, S, A: Allocator + Clone = Global> {
    pub(super) map: &'a mut TrashMap<K, V, S, A>,
    /// The hash of the key in the map's table.
    pub(super) hash: u64,
    pub(super) key: K,
}

impl<K: Eq + Hash, V, S: BuildHasher, A: Allocator + Clone> TrashMap<K, V, S, A> {
    /// Returns the entry of `key`, or the key if a reseeding has to move its entry and there
    /// is no memory for it. See [`VacantEntry::try_insert`] for an insertion that does not end the
    /// program.
    ///
    /// # Errors
    ///
    /// If memory is needed and cannot be allocated; the map is as it was.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{TrashMap, trash::Entry};
    ///
    /// let mut flows = TrashMap::new();
    /// match flows.try_entry("a") {
    ///     Ok(Entry::Vacant(entry)) => assert_eq!(entry.try_insert(1).map(|value| *value), Ok(1)),
    ///     Ok(Entry::Occupied(_)) => unreachable!("the map was empty"),
    ///     Err(failed) => println!("no memory for {}: {failed}", failed.refused),
    /// }
    /// assert_eq!(flows["a"], 1);
    /// ```
    pub fn try_entry(&mut self, key: K) -> Result<Entry<'_, K, V, S, A>, TryInsertError<K>> {
        match self.locate_prepared(self.hash_of(&key), &key) {
            Ok((_, Some(at))) => Ok(Entry::Occupied(OccupiedEntry { map: self, at })),
            Ok((hash, None)) => Ok(Entry::Vacant(VacantEntry { map: self, hash, key })),
            Err(error) => Err(TryInsertError { refused: key, error }),
        }
    }

    /// The hash of `key` in the current table and the position of its entry there, moved from an
    /// old table if need be.
    #[inline]
    pub(super) fn locate_prepared<Q: Hash + Equivalent<K> + ?Sized>(
        &mut self,
        mut hash: u64,
        key: &Q,
    ) -> Result<(u64, Option<Position>), TryReserveError> {
        if self.is_unusual() {
            self.prepare(key)?;
            hash = self.current_hash(hash, key);
        }
        Ok((hash, self.current().locate(hash, |(own, _)| key.equivalent(own))))
    }
}

impl<'a, K: Eq + Hash, V, S: BuildHasher, A: Allocator + Clone> Entry<'a, K, V, S, A> {
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

    /// Gives the key a value, whether or not it has one, and returns the entry.
    pub fn insert_entry(self, value: V) -> OccupiedEntry<'a, K, V, S, A> {
        match self {
            Self::Occupied(mut entry) => {
                entry.insert(value);
                entry
            }
            Self::Vacant(entry) => entry.insert_entry(value),
        }
    }

    /// Changes the value if there is one.
    pub fn and_modify(mut self, change: impl FnOnce(&mut V)) -> Self {
        if let Self::Occupied(entry) = &mut self {
            change(entry.get_mut());
        }
        self
    }
}

/// Why an occupied entry has an entry.
const OCCUPIED: &str = "the map cannot change while its entry is looked at";

impl<'a, K: Eq + Hash, V, S: BuildHasher, A: Allocator + Clone> OccupiedEntry<'a, K, V, S, A> {
    /// The key in the map.
    #[must_use]
    pub fn key(&self) -> &K {
        &self.map.current().get(self.at).expect(OCCUPIED).0
    }

    /// The value.
    #[must_use]
    pub fn get(&self) -> &V {
        &self.map.current().get(self.at).expect(OCCUPIED).1
    }

    /// Returns a mutable reference to the value.
    pub fn get_mut(&mut self) -> &mut V {
        &mut self.map.current_table_mut().get_mut(self.at).expect(OCCUPIED).1
    }

    /// Converts the entry into a mutable reference to its value, for the lifetime of the map's
    /// borrow.
    #[must_use]
    pub fn into_mut(self) -> &'a mut V {
        &mut self.map.current_table_mut().get_mut(self.at).expect(OCCUPIED).1
    }

    /// Gives the key another value and returns the one that it had.
    pub fn insert(&mut self, value: V) -> V {
        mem::replace(self.get_mut(), value)
    }

    /// Removes the key and returns its value.
    pub fn remove(self) -> V {
        self.remove_entry().1
    }

    /// Removes the key and returns it with its value.
    pub fn remove_entry(self) -> (K, V) {
        self.map.take(self.at).expect(OCCUPIED)
    }
}

impl<'a, K: Eq + Hash, V, S: BuildHasher, A: Allocator + Clone> VacantEntry<'a, K, V, S, A> {
    /// The key.
    #[must_use]
    pub fn key(&self) -> &K {
        &self.key
    }

    /// Returns the key that the entry was created with.
    #[must_use]
    pub fn into_key(self) -> K {
        self.key
    }

    /// Gives the key a value and returns the entry, which is occupied then.
    ///
    /// # Example
    ///
    /// ```
    /// let mut flows = flowtable::TrashMap::new();
    /// let mut entry = flows.entry("a").insert_entry(1);
    /// *entry.get_mut() += 1;
    /// assert_eq!(entry.remove_entry(), ("a", 2));
    /// ```
    pub fn insert_entry(self, value: V) -> OccupiedEntry<'a, K, V, S, A> {
        let Self { map, hash, key } = self;
        let (table, hasher) = map.current_mut();
        let room = table.make_room(hash, &hasher).unwrap_or_else(|error| error.raise());
        let (_, at) = room.insert_at((key, value));
        OccupiedEntry { map, at }
    }

    /// Gives the key a value, or returns both if there is no memory.
    ///
    /// # Errors
    ///
    /// If memory is needed and cannot be allocated; the map is as it was.
    pub fn try_insert(self, value: V) -> Result<&'a mut V, TryInsertError<(K, V)>> {
        let Self { map, hash, key } = self;
        let (table, hasher) = map.current_mut();
        match table.make_room(hash, &hasher) {
            Ok(room) => Ok(&mut room.insert((key, value)).1),
            Err(error) => Err(TryInsertError { refused: (key, value), error }),
        }
    }

    /// Gives the key a value.
    pub fn insert(self, value: V) -> &'a mut V {
        let Self { map, hash, key } = self;
        let (table, hasher) = map.current_mut();
        let room = table.make_room(hash, &hasher).unwrap_or_else(|error| error.raise());
        &mut room.insert((key, value)).1
    }
}

impl<K: Eq + Hash + fmt::Debug, V: fmt::Debug, S: BuildHasher, A: Allocator + Clone> fmt::Debug
    for Entry<'_, K, V, S, A>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Occupied(entry) => f.debug_tuple("Occupied").field(entry).finish(),
            Self::Vacant(entry) => f.debug_tuple("Vacant").field(entry).finish(),
        }
    }
}

impl<K: Eq + Hash + fmt::Debug, V: fmt::Debug, S: BuildHasher, A: Allocator + Clone> fmt::Debug
    for OccupiedEntry<'_, K, V, S, A>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("OccupiedEntry");
        fields.field("key", self.key()).field("value", self.get()).finish_non_exhaustive()
    }
}

impl<K: fmt::Debug, V, S, A: Allocator + Clone> fmt::Debug for VacantEntry<'_, K, V, S, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VacantEntry").field("key", &self.key).finish_non_exhaustive()
    }
}
