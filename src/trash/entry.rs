//! The place of one key in a [`TrashMap`], filled or not.

use core::fmt;
use core::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::TrashMap;
use super::insert::TryInsertError;
use super::occupied::{OCCUPIED, OccupiedEntry};
use super::vacant::{BorrowedKey, IntoKey, OwnedKey, VacantEntry, VacantKey};
use crate::hash::Query;
use crate::memory::{Allocator, Global};
use crate::table::Position;
use crate::table::error::TryReserveError;

/// The entry of one key, occupied or vacant. Its methods do not search again.
///
/// Methods that insert or remove an entry cost as much as `insert` and `remove` of the map without
/// their lookup; the others are O(1). `P` is the key of a vacant entry: owned here, borrowed in an
/// [`EntryRef`].
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
pub enum Entry<'a, K, V, S, A: Allocator + Clone = Global, P = OwnedKey<K>> {
    /// The key has a value.
    Occupied(OccupiedEntry<'a, K, V, S, A>),
    /// The key has no value.
    Vacant(VacantEntry<'a, K, V, S, A, P>),
}

/// The entry of a borrowed key, which becomes an owned one when it is inserted. See
/// [`TrashMap::entry_ref`].
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
/// assert_eq!(names.entry_ref("long").or_insert_with_key(|name| name.len() as u32), &4);
/// let EntryRef::Vacant(vacant) = names.entry_ref("e") else { panic!("there is no e") };
/// assert_eq!(vacant.try_insert(9).map(|value| *value), Ok(9));
/// ```
pub type EntryRef<'a, K, Q, V, S, A = Global> = Entry<'a, K, V, S, A, BorrowedKey<Q>>;

impl<K: Eq + Hash, V, S: BuildHasher, A: Allocator + Clone> TrashMap<K, V, S, A> {
    /// Returns the entry of `key`, occupied or vacant, after one lookup.
    ///
    /// # Example
    ///
    /// ```
    /// let mut packets = flowtable::TrashMap::new();
    /// for port in [443_u16, 53, 443] {
    ///     *packets.entry(port).or_insert(0) += 1;
    /// }
    /// assert_eq!(packets, flowtable::TrashMap::from([(53, 1), (443, 2)]));
    /// ```
    pub fn entry(&mut self, key: K) -> Entry<'_, K, V, S, A> {
        self.try_entry(key).unwrap_or_else(|failed| failed.reason.raise())
    }

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
            Ok(found) => Ok(self.entry_at(found, OwnedKey(key))),
            Err(reason) => Err(TryInsertError { refused: key, reason }),
        }
    }

    /// Returns the entry of a borrowed key, which becomes an owned one only if it is inserted, as
    /// by [`ToOwned`](alloc::borrow::ToOwned). The owned key must be equivalent to the borrowed one
    /// and have the same hash.
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

    /// Returns the entry of a borrowed key, if there is memory: see
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
        let found = self.locate_prepared(key.hash_with(&self.hasher), key.key())?;
        Ok(self.entry_at(found, BorrowedKey(key)))
    }

    /// The entry of a key that has been located.
    fn entry_at<P>(
        &mut self,
        (hash, at): (u64, Option<Position>),
        key: P,
    ) -> Entry<'_, K, V, S, A, P> {
        match at {
            Some(at) => Entry::Occupied(OccupiedEntry { map: self, at }),
            None => Entry::Vacant(VacantEntry { map: self, hash, key }),
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
            self.prepare(hash, key)?;
            hash = self.current_hash(hash, key);
        }
        Ok((hash, self.current().locate(hash, |(own, _)| key.equivalent(own))))
    }
}

impl<'a, K, V, S, A, P> Entry<'a, K, V, S, A, P>
where
    K: Eq + Hash,
    S: BuildHasher,
    A: Allocator + Clone,
    P: IntoKey<K>,
{
    /// Returns the key: of the map if there is one, else the key that the entry was created with.
    #[must_use]
    pub fn key(&self) -> &P::Key {
        match self {
            Self::Occupied(entry) => P::of_own(entry.key()),
            Self::Vacant(entry) => entry.key(),
        }
    }

    /// Returns a mutable reference to the value, which is `default` if there was none.
    pub fn or_insert(self, default: V) -> &'a mut V {
        self.or_insert_with(|| default)
    }

    /// Returns a mutable reference to the value, which is the result of `default` if there was
    /// none.
    pub fn or_insert_with(self, default: impl FnOnce() -> V) -> &'a mut V {
        self.or_insert_with_key(|_| default())
    }

    /// Returns a mutable reference to the value, which is the result of `default` for the key if
    /// there was none.
    pub fn or_insert_with_key(self, default: impl FnOnce(&P::Key) -> V) -> &'a mut V {
        match self {
            Self::Occupied(entry) => entry.into_mut(),
            Self::Vacant(entry) => {
                let value = default(entry.key());
                entry.insert(value)
            }
        }
    }

    /// Returns a mutable reference to the value, which is the default of its type if there was
    /// none.
    pub fn or_default(self) -> &'a mut V
    where
        V: Default,
    {
        self.or_insert_with(V::default)
    }

    /// Returns the occupied entry, whose value is `default` if there was none.
    ///
    /// # Example
    ///
    /// ```
    /// let mut flows = flowtable::TrashMap::from([("a", 1)]);
    /// assert_eq!(flows.entry("a").or_insert_entry(5).remove(), 1);
    /// assert_eq!(flows.entry_ref(&"b").or_default_entry().insert(2), 0);
    /// assert_eq!(flows["b"], 2);
    /// ```
    pub fn or_insert_entry(self, default: V) -> OccupiedEntry<'a, K, V, S, A> {
        match self {
            Self::Occupied(entry) => entry,
            Self::Vacant(entry) => entry.insert_entry(default),
        }
    }

    /// Returns the occupied entry, whose value is the default of its type if there was none.
    pub fn or_default_entry(self) -> OccupiedEntry<'a, K, V, S, A>
    where
        V: Default,
    {
        match self {
            Self::Occupied(entry) => entry,
            Self::Vacant(entry) => entry.insert_entry(V::default()),
        }
    }

    /// Gives the key a value, whether or not it has one, and returns the occupied entry.
    pub fn insert_entry(self, value: V) -> OccupiedEntry<'a, K, V, S, A> {
        match self {
            Self::Occupied(mut entry) => {
                entry.insert(value);
                entry
            }
            Self::Vacant(entry) => entry.insert_entry(value),
        }
    }

    /// The name of [`insert_entry`](Self::insert_entry) in hashbrown.
    pub fn insert(self, value: V) -> OccupiedEntry<'a, K, V, S, A> {
        self.insert_entry(value)
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

impl<'a, K: Eq + Hash, V, S: BuildHasher, A: Allocator + Clone> OccupiedEntry<'a, K, V, S, A> {
    /// Replaces the value by the result of `replace`, or removes the key if that is `None`. Costs
    /// a removal and an insertion, without lookups. If `replace` panics, the key is removed.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{TrashMap, trash::Entry};
    ///
    /// /// A state with data that its successor takes over.
    /// enum Flow {
    ///     Opening(Vec<u8>),
    ///     Open(Vec<u8>),
    /// }
    ///
    /// let (a, b) = (Flow::Opening(vec![1, 2]), Flow::Open(vec![]));
    /// let mut flows = TrashMap::from([("a", a), ("b", b)]);
    /// for name in ["a", "b"] {
    ///     let Entry::Occupied(flow) = flows.entry(name) else { panic!("it has gone") };
    ///     let _ = flow.replace_entry_with(|_, flow| match flow {
    ///         Flow::Opening(data) => Some(Flow::Open(data)),
    ///         Flow::Open(_) => None,
    ///     });
    /// }
    /// assert!(matches!(&flows["a"], Flow::Open(data) if data == &[1, 2]) && flows.len() == 1);
    /// ```
    #[must_use]
    pub fn replace_entry_with(
        self,
        replace: impl FnOnce(&K, V) -> Option<V>,
    ) -> Entry<'a, K, V, S, A> {
        let Self { map, at } = self;
        let (key, value) = map.take(at).expect(OCCUPIED);
        let value = replace(&key, value);
        let vacant = VacantEntry { map, hash: at.hash(), key: OwnedKey(key) };
        match value {
            Some(value) => Entry::Occupied(vacant.insert_entry(value)),
            None => Entry::Vacant(vacant),
        }
    }
}

impl<K: Eq + Hash, V, S: BuildHasher, A: Allocator + Clone> Entry<'_, K, V, S, A> {
    /// Replaces the value, if there is one, by the result of `replace`, or removes the key if that
    /// is `None`: see [`OccupiedEntry::replace_entry_with`].
    ///
    /// # Example
    ///
    /// ```
    /// let mut left = flowtable::TrashMap::from([("a", 1), ("b", 2)]);
    /// for name in ["a", "b", "c"] {
    ///     let _ = left.entry(name).and_replace_entry_with(|_, count| match count {
    ///         1 => None,
    ///         _ => Some(count - 1),
    ///     });
    /// }
    /// assert_eq!(left, flowtable::TrashMap::from([("b", 1)]));
    /// ```
    #[must_use]
    pub fn and_replace_entry_with(self, replace: impl FnOnce(&K, V) -> Option<V>) -> Self {
        match self {
            Self::Occupied(entry) => entry.replace_entry_with(replace),
            Self::Vacant(_) => self,
        }
    }
}

impl<K, V, S, A, P> fmt::Debug for Entry<'_, K, V, S, A, P>
where
    K: Eq + Hash + fmt::Debug,
    V: fmt::Debug,
    S: BuildHasher,
    A: Allocator + Clone,
    P: VacantKey<K, Key: fmt::Debug>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Occupied(entry) => f.debug_tuple("Occupied").field(entry).finish(),
            Self::Vacant(entry) => f.debug_tuple("Vacant").field(entry).finish(),
        }
    }
}
