//! Construction, lookups, removals and checks of `TrashMap`.

use core::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::reseed::{self, Old, Reseeded};
use super::{IntoIter, TableShape, Tables, TrashMap};
use crate::hash::{DefaultHashBuilder, Query};
use crate::invariant::InvariantError;
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

    /// Returns the bytes that the map has allocated, free slots included. Memory that keys and
    /// values own does not count. O(1).
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
    /// use core::hash::{BuildHasherDefault, Hasher};
    /// use flowtable::TrashMap;
    ///
    /// /// All hashes are equal.
    /// #[derive(Default)]
    /// struct Constant;
    ///
    /// impl Hasher for Constant {
    ///     fn write(&mut self, _: &[u8]) {}
    ///     fn finish(&self) -> u64 {
    ///         7
    ///     }
    /// }
    ///
    /// type Weak = BuildHasherDefault<Constant>;
    /// let map: TrashMap<u32, (), Weak> = (0..1000).map(|key| (key, ())).collect();
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

    /// Removes all entries and frees their memory. The map hashes with its hasher again, after a
    /// reseed too. If the drop of an entry panics, the map is empty, and the others are dropped.
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
    /// Returns the hash of `key` by the map's hasher, for a [`Prehashed`](crate::Prehashed).
    #[inline]
    pub fn hash_of<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        self.hasher.hash_one(key)
    }

    /// Returns the value of `key`.
    ///
    /// With a hash at hand, pass a [`Prehashed`](crate::Prehashed), here and to all methods that
    /// take a [`Query`]. Hashes that others can choose are no protection by themselves: after a
    /// flood the map hashes keys on its own.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prehashed, TrashMap};
    ///
    /// let mut map = TrashMap::from([("a".to_string(), 1)]);
    /// assert_eq!(map.get("a"), Some(&1));
    /// let key = Prehashed { hash: map.hash_of("a"), key: "a" }; // once for all that follows
    /// *map.get_mut(key).unwrap() += 1;
    /// assert_eq!(map.get_key_value(key), Some((&"a".to_string(), &2)));
    /// assert_eq!((map.remove(key), map.contains_key(key)), (Some(2), false));
    /// ```
    #[inline]
    #[must_use]
    pub fn get<Q: Query<K>>(&self, key: Q) -> Option<&V> {
        self.find(key.hash_with(&self.hasher), key.key()).map(|(_, value)| value)
    }

    /// Returns the key of the map and the value of `key`.
    #[inline]
    #[must_use]
    pub fn get_key_value<Q: Query<K>>(&self, key: Q) -> Option<(&K, &V)> {
        let found = self.find(key.hash_with(&self.hasher), key.key());
        found.map(|(key, value)| (key, value))
    }

    /// Returns whether `key` has a value.
    #[inline]
    #[must_use]
    pub fn contains_key<Q: Query<K>>(&self, key: Q) -> bool {
        self.find(key.hash_with(&self.hasher), key.key()).is_some()
    }

    /// Returns the value of `key`, and counts the groups (as nodes) and entries that the lookup
    /// touches.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::probes::Probes;
    /// use flowtable::TrashMap;
    ///
    /// let map = TrashMap::from([(7_u16, 'x')]);
    /// let mut probes = Probes::default();
    /// assert_eq!(map.get_observed(&7, &mut probes), Some(&'x'));
    /// assert_eq!(probes, Probes { nodes: 1, entries: 1 });
    /// ```
    #[inline]
    pub fn get_observed<Q: Query<K>>(&self, key: Q, observer: &mut impl Observer) -> Option<&V> {
        self.find_observed(key.hash_with(&self.hasher), key.key(), observer)
    }

    /// [`get_observed`](Self::get_observed), given the hash.
    #[inline]
    pub(super) fn find_observed<Q: Hash + Equivalent<K> + ?Sized>(
        &self,
        hash: u64,
        key: &Q,
        observer: &mut impl Observer,
    ) -> Option<&V> {
        let eq = |(own, _): &(K, V)| key.equivalent(own);
        let found = self.table.find_observed(hash, eq, observer);
        found.or_else(|| self.find_reseeded(hash, key, observer)).map(|(_, value)| value)
    }

    /// Returns a mutable reference to the value of `key`.
    #[inline]
    #[must_use]
    pub fn get_mut<Q: Query<K>>(&mut self, key: Q) -> Option<&mut V> {
        self.find_mut(key.hash_with(&self.hasher), key.key()).map(|(_, value)| value)
    }

    /// Returns the key of the map and a mutable reference to the value of `key`.
    #[inline]
    #[must_use]
    pub fn get_key_value_mut<Q: Query<K>>(&mut self, key: Q) -> Option<(&K, &mut V)> {
        let found = self.find_mut(key.hash_with(&self.hasher), key.key());
        found.map(|(key, value)| (&*key, value))
    }

    /// Returns a mutable reference to the entry of `key`, given its hash.
    #[inline]
    pub(super) fn find_mut<Q: Hash + Equivalent<K> + ?Sized>(
        &mut self,
        hash: u64,
        key: &Q,
    ) -> Option<&mut (K, V)> {
        if self.is_unusual() {
            return self.find_reseeded_mut(hash, key);
        }
        self.table.find_mut_in_segments(hash, |(own, _)| key.equivalent(own))
    }

    /// [`get_mut`](Self::get_mut), and returns the number of entries examined.
    #[inline]
    pub(crate) fn get_mut_counted<Q: Query<K>>(&mut self, key: Q) -> (Option<&mut V>, u32) {
        let (hash, key) = (key.hash_with(&self.hasher), key.key());
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
        stashed.or_else(|| self.find_reseeded(hash, key, &mut ()))
    }

    /// Removes the entry at a position of the current table.
    #[inline]
    pub(super) fn take(&mut self, at: Position) -> Option<(K, V)> {
        let (table, hasher) = self.current_mut();
        let entry = table.take(at, &hasher)?;
        table.shrink_around(at.hash(), &hasher);
        Some(entry)
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
    pub fn remove<Q: Query<K>>(&mut self, key: Q) -> Option<V> {
        self.remove_entry(key).map(|(_, value)| value)
    }

    /// Removes `key` and returns the key of the map with its value.
    ///
    /// # Example
    ///
    /// ```
    /// let mut ports: flowtable::TrashMap<_, _> = [(443, "https")].into_iter().collect();
    /// assert_eq!(ports.remove_entry(&443), Some((443, "https")));
    /// ```
    #[inline]
    pub fn remove_entry<Q: Query<K>>(&mut self, key: Q) -> Option<(K, V)> {
        let (hash, key) = (key.hash_with(&self.hasher), key.key());
        if self.is_unusual() {
            return self.remove_reseeded(hash, key);
        }
        let Self { table, hasher, .. } = self;
        table.remove(hash, |(own, _)| key.equivalent(own), &reseed::entry_hasher(&*hasher, None))
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
    /// memory and frees it. Unlike the `Drain` of `std`, it does not borrow the map.
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

impl<K: Eq + Hash, V, S: BuildHasher, A: Allocator + Clone> TrashMap<K, V, S, A> {
    /// Checks every invariant, for tests. O(slots).
    ///
    /// # Errors
    ///
    /// The invariant that does not hold: a bug in this crate, or a key type that breaks the
    /// contract of [`Hash`] and [`Eq`].
    ///
    /// # Example
    ///
    /// ```
    /// let mut map: flowtable::TrashMap<u32, u32> = (0..1000).map(|key| (key, key)).collect();
    /// map.retain(|key, _| key % 7 == 0);
    /// assert_eq!(map.validate(), Ok(()));
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), InvariantError> {
        if let Some(Old { table, seed, .. }) = self.reseeded.as_ref().and_then(|r| r.old.as_ref()) {
            table.validate(&reseed::entry_hasher(&self.hasher, seed.as_ref()))?;
        }
        self.current().validate(&self.current_hasher())
    }
}
