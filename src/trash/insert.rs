//! Insertions into a `TrashMap`, and insertions that fail because an allocation fails.

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::mem;

use super::{TrashMap, reseed};
use crate::memory::Allocator;
use crate::table::Table;
use crate::table::error::TryReserveError;

impl<K: Eq + Hash, V, S: BuildHasher, A: Allocator + Clone> TrashMap<K, V, S, A> {
    /// Gives `key` a value and returns the one that it had. The key that was there stays.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.try_insert(key, value).unwrap_or_else(|refusal| refusal.reason.raise())
    }

    /// Gives `key` a value and returns the one that it had, or both of them if there is no memory.
    ///
    /// An entry of up to 64 bytes needs none while its segment has a free slot. (A key that is in
    /// the map is given the value, unlike by methods of the same name elsewhere.)
    ///
    /// # Errors
    ///
    /// If memory is needed and cannot be had; the map is as it was.
    ///
    /// # Example
    ///
    /// ```
    /// let mut map = flowtable::TrashMap::new();
    /// match map.try_insert("key", "value") {
    ///     Ok(replaced) => assert_eq!(replaced, None),
    ///     Err(error) => drop(error.refused), // to be stored elsewhere
    /// }
    /// ```
    pub fn try_insert(&mut self, key: K, value: V) -> Result<Option<V>, TryInsertError<(K, V)>> {
        self.try_insert_with_hash(self.hash_of(&key), key, value)
    }

    /// [`try_insert`](Self::try_insert), given the hash.
    pub(crate) fn try_insert_with_hash(
        &mut self,
        hash: u64,
        key: K,
        value: V,
    ) -> Result<Option<V>, TryInsertError<(K, V)>> {
        if self.is_unusual() {
            return self.insert_reseeded(hash, key, value);
        }
        let Self { table, hasher, .. } = self;
        insert_into(table, hash, (key, value), &reseed::entry_hasher(&*hasher, None))
    }

    /// Inserts a key that is not in the map, without a lookup, and returns references to it and its
    /// value. A key that is in the map is in it twice then: which of both is found or removed is
    /// not specified.
    ///
    /// # Example
    ///
    /// ```
    /// let mut ports = flowtable::TrashMap::with_capacity(1000);
    /// for port in 0..1000_u16 {
    ///     *ports.insert_unique_unchecked(port, 0).1 += port % 10;
    /// }
    /// assert_eq!((ports.len(), ports.get_key_value_mut(&443)), (1000, Some((&443, &mut 3))));
    /// ```
    pub fn insert_unique_unchecked(&mut self, key: K, value: V) -> (&K, &mut V) {
        let mut hash = self.hash_of(&key);
        if self.is_unusual() {
            self.prepare(hash, &key).unwrap_or_else(|error| error.raise());
            hash = self.current_hash(hash, &key);
        }
        let room = self.room_for(hash).unwrap_or_else(|error| error.raise());
        let (key, value) = room.insert((key, value));
        (key, value)
    }

    /// Inserts an entry into a map that has reseeded or is flooded.
    #[cold]
    #[inline(never)]
    fn insert_reseeded(
        &mut self,
        hash: u64,
        key: K,
        value: V,
    ) -> Result<Option<V>, TryInsertError<(K, V)>> {
        if let Err(reason) = self.prepare(hash, &key) {
            // There is no memory to move its entry.
            let at = self.locate_old(hash, &key);
            return match at.and_then(|at| self.old_table_mut()?.get_mut(at)) {
                Some((_, old)) => Ok(Some(mem::replace(old, value))),
                None => Err(TryInsertError { refused: (key, value), reason }),
            };
        }
        let hash = self.current_hash(hash, &key);
        let (table, hasher) = self.current_mut();
        insert_into(table, hash, (key, value), &hasher)
    }
}

/// Inserts an entry, or replaces the value of its key.
#[inline]
fn insert_into<K: Eq, V, A: Allocator + Clone>(
    table: &mut Table<(K, V), A>,
    hash: u64,
    entry: (K, V),
    hasher: &impl Fn(&(K, V)) -> u64,
) -> Result<Option<V>, TryInsertError<(K, V)>> {
    let eq = |own: &(K, V), new: &(K, V)| own.0 == new.0;
    let replace = |own: &mut (K, V), (_, value): (K, V)| mem::replace(&mut own.1, value);
    let inserted = table.insert(hash, entry, eq, replace, hasher);
    inserted.map_err(|(refused, reason)| TryInsertError { refused, reason })
}

/// The error of an insertion without memory: the refused entry, and the reason.
///
/// # Example
///
/// ```
/// let mut flows = flowtable::TrashMap::new();
/// let done = flows.try_insert("a", 1);
/// let done = done.map_err(|failed| (failed.refused, failed.reason));
/// assert_eq!(done, Ok(None));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct TryInsertError<T> {
    /// A key, which is not in the map, and its value; or a key alone, a value of a set, or an entry
    /// of a table.
    pub refused: T,
    /// The reason.
    pub reason: TryReserveError,
}

/// Omits the refused entry, so that `unwrap` and `?` need no `Debug` of it.
impl<T> fmt::Debug for TryInsertError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TryInsertError").field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for TryInsertError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no room: {}", self.reason)
    }
}

impl<T> core::error::Error for TryInsertError<T> {}
