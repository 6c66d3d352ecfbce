//! The entry of a key that has no value: an owned key, or a borrowed one that is made an owned one
//! if it is inserted.

use alloc::borrow::ToOwned;
use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::TrashMap;
use super::insert::TryInsertError;
use super::occupied::OccupiedEntry;
use crate::hash::Query;
use crate::memory::{Allocator, Global};
use crate::table::Room;
use crate::table::error::TryReserveError;

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
pub struct VacantEntry<'a, K, V, S, A: Allocator + Clone = Global, P = OwnedKey<K>> {
    pub(super) map: &'a mut TrashMap<K, V, S, A>,
    /// The hash of the key in the map's table.
    pub(super) hash: u64,
    pub(super) key: P,
}

/// The entry of a borrowed key that has no value.
pub type VacantEntryRef<'a, K, Q, V, S, A = Global> = VacantEntry<'a, K, V, S, A, BorrowedKey<Q>>;

/// The key of a vacant entry that owns it.
pub struct OwnedKey<K>(pub(super) K);

/// The key of a vacant entry that borrows it: a [`Query`].
pub struct BorrowedKey<Q>(pub(super) Q);

/// The key of a vacant entry, for a map with keys of type `K`.
pub trait VacantKey<K> {
    /// The key, or its borrowed form.
    type Key: Hash + Equivalent<K> + ?Sized;

    /// Returns the key.
    fn key(&self) -> &Self::Key;
}

/// The key of a vacant entry that can be inserted.
pub trait IntoKey<K>: VacantKey<K> {
    /// Returns the key that is inserted.
    fn into_key(self) -> K;

    /// Returns the same form of a key of the map.
    fn of_own(own: &K) -> &Self::Key;
}

impl<K: Eq + Hash> VacantKey<K> for OwnedKey<K> {
    type Key = K;

    fn key(&self) -> &K {
        &self.0
    }
}

impl<K: Eq + Hash> IntoKey<K> for OwnedKey<K> {
    fn into_key(self) -> K {
        self.0
    }

    fn of_own(own: &K) -> &K {
        own
    }
}

impl<K, Q: Query<K>> VacantKey<K> for BorrowedKey<Q> {
    type Key = Q::Key;

    fn key(&self) -> &Q::Key {
        self.0.key()
    }
}

impl<K: Borrow<Q::Key>, Q: Query<K, Key: ToOwned<Owned = K>>> IntoKey<K> for BorrowedKey<Q> {
    fn into_key(self) -> K {
        self.0.key().to_owned()
    }

    fn of_own(own: &K) -> &Q::Key {
        own.borrow()
    }
}

impl<'a, K, V, S, A, P> VacantEntry<'a, K, V, S, A, P>
where
    A: Allocator + Clone,
    P: VacantKey<K>,
{
    /// Returns the key that the entry was created with.
    #[must_use]
    pub fn key(&self) -> &P::Key {
        self.key.key()
    }

    /// Inserts `key`, the owned form of the key of the entry, and returns a reference to its value.
    ///
    /// # Panics
    ///
    /// If `key` is not equivalent to the key of the entry.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{TrashMap, trash::EntryRef};
    ///
    /// let mut names: TrashMap<String, u32> = TrashMap::new();
    /// let EntryRef::Vacant(entry) = names.entry_ref("a") else { panic!("the map is empty") };
    /// let owned = String::from(entry.key()); // or from a pool
    /// *entry.insert_with_key(owned, 1) += 1;
    /// assert_eq!(names["a"], 2);
    ///
    /// let EntryRef::Vacant(entry) = names.entry_ref("b") else { panic!("there is no b") };
    /// assert_eq!(entry.insert_entry_with_key("b".into(), 5).key(), "b");
    /// let EntryRef::Vacant(entry) = names.entry_ref("c") else { panic!("there is no c") };
    /// assert_eq!(*entry.insert_with_key_unchecked("c".into(), 6), 6); // it is equivalent
    /// let EntryRef::Vacant(entry) = names.entry_ref("d") else { panic!("there is no d") };
    /// assert_eq!(entry.insert_entry_with_key_unchecked("d".into(), 7).get(), &7);
    /// ```
    pub fn insert_with_key(self, key: K, value: V) -> &'a mut V
    where
        K: Eq + Hash,
        S: BuildHasher,
    {
        self.insert_entry_with_key(key, value).into_mut()
    }

    /// Inserts `key`, the owned form of the key of the entry, and returns the entry, which is
    /// occupied then.
    ///
    /// # Panics
    ///
    /// If `key` is not equivalent to the key of the entry.
    pub fn insert_entry_with_key(self, key: K, value: V) -> OccupiedEntry<'a, K, V, S, A>
    where
        K: Eq + Hash,
        S: BuildHasher,
    {
        assert!(self.key().equivalent(&key), "the key is not equivalent");
        self.insert_entry_with_key_unchecked(key, value)
    }
}

impl<'a, K, V, S, A, P> VacantEntry<'a, K, V, S, A, P>
where
    K: Eq + Hash,
    S: BuildHasher,
    A: Allocator + Clone,
{
    /// Inserts `key`, which the caller has compared with the key of the entry: see
    /// [`insert_with_key`](Self::insert_with_key). A key that is not equivalent may not be found
    /// afterwards.
    pub fn insert_with_key_unchecked(self, key: K, value: V) -> &'a mut V {
        let room = self.map.room_for(self.hash).unwrap_or_else(|error| error.raise());
        &mut room.insert((key, value)).1
    }

    /// Inserts `key` like [`insert_with_key_unchecked`](Self::insert_with_key_unchecked), and
    /// returns the entry, which is occupied then.
    pub fn insert_entry_with_key_unchecked(
        self,
        key: K,
        value: V,
    ) -> OccupiedEntry<'a, K, V, S, A> {
        let Self { map, hash, .. } = self;
        let room = map.room_for(hash).unwrap_or_else(|error| error.raise());
        let (_, at) = room.insert_at((key, value));
        OccupiedEntry { map, at }
    }
}

impl<'a, K, V, S, A, P> VacantEntry<'a, K, V, S, A, P>
where
    K: Eq + Hash,
    S: BuildHasher,
    A: Allocator + Clone,
    P: IntoKey<K>,
{
    /// Returns the key that the entry was created with, as an owned one.
    #[must_use]
    pub fn into_key(self) -> K {
        self.key.into_key()
    }

    /// Gives the key a value, and returns a reference to it.
    pub fn insert(self, value: V) -> &'a mut V {
        let Self { map, hash, key } = self;
        VacantEntry { map, hash, key: () }.insert_with_key_unchecked(key.into_key(), value)
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
        VacantEntry { map, hash, key: () }.insert_entry_with_key_unchecked(key.into_key(), value)
    }

    /// Gives the key a value, or returns both if there is no memory.
    ///
    /// # Errors
    ///
    /// If memory is needed and cannot be allocated; the map is as it was.
    pub fn try_insert(self, value: V) -> Result<&'a mut V, TryInsertError<(K, V)>> {
        let Self { map, hash, key } = self;
        let key = key.into_key();
        match map.room_for(hash) {
            Ok(room) => Ok(&mut room.insert((key, value)).1),
            Err(reason) => Err(TryInsertError { refused: (key, value), reason }),
        }
    }
}

impl<K: Eq + Hash, V, S: BuildHasher, A: Allocator + Clone> TrashMap<K, V, S, A> {
    /// Room in the current table for an entry of this hash.
    pub(super) fn room_for(&mut self, hash: u64) -> Result<Room<'_, (K, V), A>, TryReserveError> {
        let (table, hasher) = self.current_mut();
        table.make_room(hash, &hasher)
    }
}

impl<K, V, S, A, P> fmt::Debug for VacantEntry<'_, K, V, S, A, P>
where
    A: Allocator + Clone,
    P: VacantKey<K, Key: fmt::Debug>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VacantEntry").field("key", &self.key()).finish_non_exhaustive()
    }
}
