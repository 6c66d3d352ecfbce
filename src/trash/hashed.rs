//! Forms of the methods that take the hash of a key, besides those in `mod.rs`.

use core::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::TrashMap;
use super::entry::{Entry, OccupiedEntry, VacantEntry};
use super::error::TryInsertError;
use crate::memory::Allocator;
use crate::table::Position;
use crate::table::error::TryReserveError;

impl<K: Eq + Hash, V, S: BuildHasher, A: Allocator + Clone> TrashMap<K, V, S, A> {
    /// Returns whether `key` has a value, given its hash: see [`get_hashed`](Self::get_hashed).
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::TrashMap::from([(443_u16, "https")]);
    /// let hash = map.hash_of(&443);
    /// assert!(map.contains_key_hashed(hash, &443));
    /// assert_eq!(map.get_key_value_hashed(hash, &443), Some((&443, &"https")));
    /// ```
    #[inline]
    #[must_use]
    pub fn contains_key_hashed<Q: Hash + Equivalent<K> + ?Sized>(
        &self,
        hash: u64,
        key: &Q,
    ) -> bool {
        self.find(hash, key).is_some()
    }

    /// Returns the key of the map and the value for `key`, given its hash: see
    /// [`get_hashed`](Self::get_hashed).
    #[inline]
    #[must_use]
    pub fn get_key_value_hashed<Q: Hash + Equivalent<K> + ?Sized>(
        &self,
        hash: u64,
        key: &Q,
    ) -> Option<(&K, &V)> {
        self.find(hash, key).map(|(key, value)| (key, value))
    }

    /// Returns the entry of `key`, given its hash: see [`get_hashed`](Self::get_hashed).
    ///
    /// # Example
    ///
    /// ```
    /// let mut packets = flowtable::TrashMap::new();
    /// let hash = packets.hash_of(&443);
    /// *packets.entry_hashed(hash, 443).or_insert(0) += 1;
    /// assert_eq!(packets[&443], 1);
    /// ```
    pub fn entry_hashed(&mut self, hash: u64, key: K) -> Entry<'_, K, V, S, A> {
        self.try_entry_hashed(hash, key).unwrap_or_else(|failed| failed.error.raise())
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
        self.try_entry_hashed(self.hash_of(&key), key)
    }

    /// Returns the entry of `key`, given its hash, or the key: see
    /// [`try_entry`](Self::try_entry).
    ///
    /// # Errors
    ///
    /// As [`try_entry`](Self::try_entry).
    ///
    /// # Example
    ///
    /// ```
    /// let mut packets = flowtable::TrashMap::new();
    /// let hash = packets.hash_of(&443);
    /// if let Ok(entry) = packets.try_entry_hashed(hash, 443) {
    ///     *entry.or_insert(0) += 1;
    /// }
    /// assert_eq!(packets[&443], 1);
    /// ```
    pub fn try_entry_hashed(
        &mut self,
        hash: u64,
        key: K,
    ) -> Result<Entry<'_, K, V, S, A>, TryInsertError<K>> {
        match self.locate_prepared(hash, &key) {
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
