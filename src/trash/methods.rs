//! Construction, lookups, insertions and removals of `TrashMap`.

use core::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::reseed::{self, Old, Reseeded};
use super::{Entry, IntoIter, TableShape, Tables, TrashMap, TryInsertError};
use crate::hash::DefaultHashBuilder;
use crate::memory::{Allocator, Box, Global};
use crate::probes::Observer;
use crate::table::{Position, Table};

impl<K, V> TrashMap<K, V> {
    /// Creates an empty map. Allocates nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::with_hasher(DefaultHashBuilder::new())
    }

    /// Creates an empty map with room for `capacity` entries: see [`reserve`](TrashMap::reserve).
    ///
    /// # Panics
    ///
    /// If the entries take more bytes than the address space has.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self
    where
        K: Eq + Hash,
    {
        Self::with_capacity_and_hasher(capacity, DefaultHashBuilder::new())
    }
}

impl<K, V, S> TrashMap<K, V, S> {
    /// Creates an empty map that hashes with `hasher`. Allocates nothing.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{DefaultHashBuilder, TrashMap};
    ///
    /// let map: TrashMap<u32, ()> = TrashMap::with_hasher(DefaultHashBuilder::with_seed(7));
    /// let hasher = map.hasher().clone();
    /// let other: TrashMap<u32, ()> = TrashMap::with_capacity_and_hasher(1000, hasher);
    /// assert_eq!(map.hash_of(&1), other.hash_of(&1));
    /// ```
    #[must_use]
    pub const fn with_hasher(hasher: S) -> Self {
        Self::with_hasher_in(hasher, Global)
    }
}

impl<K, V, S, A: Allocator + Clone> TrashMap<K, V, S, A> {
    /// Returns the hasher that the map was created with.
    #[must_use]
    pub const fn hasher(&self) -> &S {
        &self.hasher
    }

    /// Returns the number of entries.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.current().len() + self.old_table().map_or(0, Table::len)
    }

    /// Whether there are no entries.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of entries that the map can have before it takes another step of growth,
    /// if they are spread as evenly as chance does it.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.current().capacity().max(self.len())
    }

    /// Returns the bytes that the map has allocated, free slots included; without what keys and
    /// values own. O(1).
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        let reseeded = if self.reseeded.is_some() { size_of::<Reseeded<K, V, A>>() } else { 0 };
        let old = self.old_table().map_or(0, Table::allocation_size);
        self.current().allocation_size() + reseeded + old
    }

    /// Returns how often the map has drawn a seed because hashes were not random.
    ///
    /// # Example
    ///
    /// ```
    /// use core::hash::BuildHasherDefault;
    /// use flowtable::{TrashMap, hash::XorFold16};
    ///
    /// // Folded, a key of two equal halves is nothing but zeros.
    /// let keys = (0..1000_u32).map(|half| half << 16 | half);
    /// type Folded = BuildHasherDefault<XorFold16>;
    /// let map: TrashMap<u32, (), Folded> = keys.map(|key| (key, ())).collect();
    /// assert_eq!((map.len(), map.reseeds()), (1000, 1));
    /// ```
    #[must_use]
    pub fn reseeds(&self) -> usize {
        self.reseeded.as_ref().map_or(0, |reseeded| reseeded.count)
    }

    /// Takes the current table and the old one, and leaves an empty map.
    pub(super) fn take_tables(&mut self) -> Tables<K, V, A> {
        let table = self.table.replace_by_empty();
        match self.reseeded.take() {
            None => (table, None),
            Some(reseeded) => {
                let Reseeded { table, old, .. } = Box::into_inner(reseeded);
                (table, old.map(|old| old.table))
            }
        }
    }

    /// Removes all entries and frees their memory. Hashes are those of the hasher again. If the
    /// drop of an entry panics, the map is empty, and the others are dropped.
    pub fn clear(&mut self) {
        // The map is empty before an entry is dropped, which may panic.
        let reseeded = self.reseeded.take();
        drop((self.table.replace_by_empty(), reseeded));
    }
}

impl<K: Eq + Hash, V, S: BuildHasher> TrashMap<K, V, S> {
    /// Creates an empty map with room for `capacity` entries that hashes with `hasher`.
    ///
    /// # Panics
    ///
    /// If the entries take more bytes than the address space has.
    #[must_use]
    pub fn with_capacity_and_hasher(capacity: usize, hasher: S) -> Self {
        Self::with_capacity_and_hasher_in(capacity, hasher, Global)
    }
}

impl<K: Eq + Hash, V, S: BuildHasher, A: Allocator + Clone> TrashMap<K, V, S, A> {
    /// The hash of `key` under the map's hasher: what the methods that take a hash expect.
    #[inline]
    pub fn hash_of<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        self.hasher.hash_one(key)
    }

    /// Returns the value of `key`.
    #[inline]
    #[must_use]
    pub fn get<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<&V> {
        self.get_hashed(self.hash_of(key), key)
    }

    /// Returns the value of `key`, given its hash.
    ///
    /// A hash other than [`hash_of`](Self::hash_of) the key does not find it, and an insertion with
    /// it may have the key twice. All 64 bits count: see [the module](crate::trash#hashes). To use
    /// the hash that a network card delivers, give the map the hasher [`Rss`](crate::hash::Rss);
    /// for an index that a packet carries, one that returns it. Hashes that others can choose are
    /// no protection by themselves: after a flood the map hashes keys on its own.
    ///
    /// # Example
    ///
    /// ```
    /// let mut map = flowtable::TrashMap::new();
    /// let hash = map.hash_of("a"); // once for all that follows
    /// map.insert_hashed(hash, "a", 1);
    /// *map.get_mut_hashed(hash, "a").unwrap() += 1;
    /// assert_eq!(map.get_hashed(hash, "a"), Some(&2));
    /// assert_eq!(map.remove_hashed(hash, "a"), Some(2));
    /// ```
    #[inline]
    #[must_use]
    pub fn get_hashed<Q: Hash + Equivalent<K> + ?Sized>(&self, hash: u64, key: &Q) -> Option<&V> {
        self.find(hash, key).map(|(_, value)| value)
    }

    /// Returns the key of the map and the value of `key`.
    #[inline]
    #[must_use]
    pub fn get_key_value<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<(&K, &V)> {
        self.find(self.hash_of(key), key).map(|(key, value)| (key, value))
    }

    /// Whether `key` has a value.
    #[inline]
    #[must_use]
    pub fn contains_key<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> bool {
        self.find(self.hash_of(key), key).is_some()
    }

    /// Returns the value of `key`, and counts what the lookup touches: a group is a node.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::probes::Probes;
    /// use flowtable::TrashMap;
    ///
    /// let map = TrashMap::from([(7_u16, 'x')]);
    /// let mut probes = Probes::default();
    /// assert_eq!(map.get_observed_hashed(map.hash_of(&7), &7, &mut probes), Some(&'x'));
    /// assert_eq!(map.get_observed(&7, &mut probes), Some(&'x'));
    /// assert_eq!(probes, Probes { nodes: 2, entries: 2 });
    /// ```
    pub fn get_observed<Q: Hash + Equivalent<K> + ?Sized>(
        &self,
        key: &Q,
        observer: &mut impl Observer,
    ) -> Option<&V> {
        self.get_observed_hashed(self.hash_of(key), key, observer)
    }

    /// [`get_observed`](Self::get_observed) with the hash given: see
    /// [`get_hashed`](Self::get_hashed).
    #[inline]
    pub fn get_observed_hashed<Q: Hash + Equivalent<K> + ?Sized>(
        &self,
        hash: u64,
        key: &Q,
        observer: &mut impl Observer,
    ) -> Option<&V> {
        let eq = |(own, _): &(K, V)| key.equivalent(own);
        let found = self.table.find_observed(hash, eq, observer);
        found.or_else(|| self.find_reseeded(key, observer)).map(|(_, value)| value)
    }

    /// Returns a mutable reference to the value for `key`.
    #[inline]
    #[must_use]
    pub fn get_mut<Q: Hash + Equivalent<K> + ?Sized>(&mut self, key: &Q) -> Option<&mut V> {
        self.get_mut_hashed(self.hash_of(key), key)
    }

    /// Returns a mutable reference to the value for `key`, given its hash: see
    /// [`get_hashed`](Self::get_hashed).
    #[inline]
    #[must_use]
    pub fn get_mut_hashed<Q: Hash + Equivalent<K> + ?Sized>(
        &mut self,
        hash: u64,
        key: &Q,
    ) -> Option<&mut V> {
        if self.is_unusual() {
            return self.find_reseeded_mut(hash, key);
        }
        let eq = |(own, _): &(K, V)| key.equivalent(own);
        self.table.find_mut_in_segments(hash, eq).map(|(_, value)| value)
    }

    /// [`get_mut_hashed`](Self::get_mut_hashed), and returns the number of entries examined.
    #[inline]
    pub(crate) fn get_mut_counted_hashed<Q: Hash + Equivalent<K> + ?Sized>(
        &mut self,
        hash: u64,
        key: &Q,
    ) -> (Option<&mut V>, u32) {
        if self.is_unusual() {
            return self.get_mut_counted_reseeded(hash, key);
        }
        let mut examined = 0;
        let eq = |(own, _): &(K, V)| {
            examined += 1;
            key.equivalent(own)
        };
        let found = self.table.find_mut_in_segments(hash, eq).map(|(_, value)| value);
        (found, examined)
    }

    /// Returns the entry of `key`.
    #[inline]
    pub(super) fn find<Q: Hash + Equivalent<K> + ?Sized>(
        &self,
        hash: u64,
        key: &Q,
    ) -> Option<&(K, V)> {
        let miss = || if self.table.has_extras() { self.find_further(hash, key) } else { None };
        self.table.find_or(hash, |(own, _)| key.equivalent(own), Some, miss)
    }

    /// Returns the entry of `key`, which is in none of the segments of the map's own table.
    #[cold]
    #[inline(never)]
    pub(super) fn find_further<Q: Hash + Equivalent<K> + ?Sized>(
        &self,
        hash: u64,
        key: &Q,
    ) -> Option<&(K, V)> {
        let stashed = self.table.find(hash, |(own, _)| key.equivalent(own));
        stashed.or_else(|| self.find_reseeded(key, &mut ()))
    }

    /// Removes the entry at a position of the current table.
    #[inline]
    pub(super) fn take(&mut self, at: Position) -> Option<(K, V)> {
        let (table, hasher) = self.current_mut();
        let entry = table.take(at, &hasher)?;
        table.shrink_around(at.hash(), &hasher);
        Some(entry)
    }

    /// Gives `key` a value and returns the one that it had. The key that was there stays.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.insert_hashed(self.hash_of(&key), key, value)
    }

    /// [`insert`](Self::insert) with the hash given: see [`get_hashed`](Self::get_hashed).
    pub fn insert_hashed(&mut self, hash: u64, key: K, value: V) -> Option<V> {
        self.try_insert_hashed(hash, key, value).unwrap_or_else(|refusal| refusal.error.raise())
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
        self.try_insert_hashed(self.hash_of(&key), key, value)
    }

    /// [`try_insert`](Self::try_insert) with the hash given: see [`get_hashed`](Self::get_hashed).
    ///
    /// # Errors
    ///
    /// As [`try_insert`](Self::try_insert).
    pub fn try_insert_hashed(
        &mut self,
        hash: u64,
        key: K,
        value: V,
    ) -> Result<Option<V>, TryInsertError<(K, V)>> {
        if self.is_unusual() {
            return self.insert_reseeded(hash, key, value);
        }
        let Self { table, hasher, .. } = self;
        reseed::insert(table, hash, (key, value), &reseed::entry_hasher(&*hasher, None))
    }

    /// Removes `key` and returns its value.
    ///
    /// # Example
    ///
    /// ```
    /// let mut map = flowtable::TrashMap::from([(1, 'a')]);
    /// assert_eq!(map.get_key_value(&1), Some((&1, &'a')));
    /// assert_eq!(map.remove(&1), Some('a'));
    /// assert_eq!(map.remove(&1), None);
    /// ```
    pub fn remove<Q: Hash + Equivalent<K> + ?Sized>(&mut self, key: &Q) -> Option<V> {
        self.remove_hashed(self.hash_of(key), key)
    }

    /// [`remove`](Self::remove) with the hash given: see [`get_hashed`](Self::get_hashed).
    pub fn remove_hashed<Q: Hash + Equivalent<K> + ?Sized>(
        &mut self,
        hash: u64,
        key: &Q,
    ) -> Option<V> {
        self.remove_entry_hashed(hash, key).map(|(_, value)| value)
    }

    /// Removes `key` and returns the key of the map with its value.
    pub fn remove_entry<Q: Hash + Equivalent<K> + ?Sized>(&mut self, key: &Q) -> Option<(K, V)> {
        self.remove_entry_hashed(self.hash_of(key), key)
    }

    /// Removes `key` and returns the key of the map with its value, given the hash: see
    /// [`get_hashed`](Self::get_hashed).
    ///
    /// # Example
    ///
    /// ```
    /// let mut ports: flowtable::TrashMap<_, _> = [(443, "https")].into_iter().collect();
    /// let hash = ports.hash_of(&443);
    /// assert_eq!(ports.remove_entry_hashed(hash, &443), Some((443, "https")));
    /// ```
    #[inline]
    pub fn remove_entry_hashed<Q: Hash + Equivalent<K> + ?Sized>(
        &mut self,
        hash: u64,
        key: &Q,
    ) -> Option<(K, V)> {
        if self.is_unusual() {
            return self.remove_reseeded(hash, key);
        }
        let Self { table, hasher, .. } = self;
        table.remove(hash, |(own, _)| key.equivalent(own), &reseed::entry_hasher(&*hasher, None))
    }

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
        self.entry_hashed(self.hash_of(&key), key)
    }

    /// Keeps the entries for which `keep` returns true; they are visited in no order. O(slots). If
    /// `keep` or the drop of an entry panics, those that it has not visited stay.
    ///
    /// # Example
    ///
    /// ```
    /// let mut map: flowtable::TrashMap<u32, u32> = (0..10).map(|i| (i, i * i)).collect();
    /// map.retain(|key, _| key % 3 == 0);
    /// assert_eq!(map.len(), 4);
    /// ```
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        let mut keep = |(key, value): &mut (K, V)| keep(key, value);
        let Self { hasher, reseeded, .. } = self;
        if let Some(Reseeded { old: Some(Old { table, seed, .. }), .. }) = reseeded.as_deref_mut() {
            table.retain(&mut keep, &reseed::entry_hasher(&*hasher, seed.as_ref()));
        }
        let (table, hasher) = self.current_mut();
        table.retain(&mut keep, &hasher);
        table.shrink_all(&hasher);
    }

    /// Removes all entries and returns an iterator over them, which drops the rest. It owns the
    /// memory and frees it: unlike that of `std`, it does not borrow the map.
    pub fn drain(&mut self) -> IntoIter<K, V, A> {
        let (current, old) = self.take_tables();
        IntoIter::new(current, old)
    }

    /// Returns statistics of the table: segments, load, distances and memory. O(slots), and hashes
    /// every key.
    #[must_use]
    pub fn shape(&self) -> TableShape {
        let current = TableShape::of(self.current(), &self.current_hasher());
        let old = self.old_table().map_or(0, Table::len);
        TableShape { entries: self.len(), old, bytes: self.allocation_size(), ..current }
    }
}
