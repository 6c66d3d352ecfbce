//! The methods of `TrashSet` that refer to methods of `TrashMap`.

use core::hash::{BuildHasher, Hash};
use core::iter::FusedIterator;

use super::{Entry, OccupiedEntry, TrashSet, VacantEntry};
use crate::hash::{DefaultHashBuilder, Query};
use crate::invariant::InvariantError;
use crate::memory::{Allocator, Global};
use crate::table::error::TryReserveError;
use crate::trash as map;
use crate::trash::{IntoIter, IntoKeys, Keys, TableShape, TrashMap, TryInsertError};

impl<T> TrashSet<T> {
    /// Creates an empty set. Allocates nothing.
    #[must_use]
    pub fn new() -> Self {
        Self { map: TrashMap::new() }
    }

    /// Creates an empty set with room for `capacity` values.
    ///
    /// # Panics
    ///
    /// If the values take more bytes than the address space has.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self
    where
        T: Eq + Hash,
    {
        Self { map: TrashMap::with_capacity(capacity) }
    }
}

impl<T, S> TrashSet<T, S> {
    /// Creates an empty set that hashes with `hasher`. Allocates nothing.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{DefaultHashBuilder, Prehashed, TrashSet};
    ///
    /// let set: TrashSet<u32> = TrashSet::with_hasher(DefaultHashBuilder::with_seed(7));
    /// let hasher = set.hasher().clone();
    /// let mut other = TrashSet::with_capacity_and_hasher(100, hasher);
    /// assert!(other.capacity() >= 100 && other.insert(443));
    /// let https = Prehashed { hash: set.hash_of(&443), key: &443 }; // for both sets
    /// assert!(other.contains(https) && !set.contains(https));
    /// assert_eq!(other.get(https), Some(&443));
    /// assert_eq!(other.take(https), Some(443));
    /// ```
    #[must_use]
    pub const fn with_hasher(hasher: S) -> Self {
        Self::with_hasher_in(hasher, Global)
    }
}

impl<T, A: Allocator + Clone> TrashSet<T, DefaultHashBuilder, A> {
    /// Creates an empty set whose memory is from `memory`. Allocates nothing.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::TrashSet;
    ///
    /// let arena = bumpalo::Bump::new();
    /// let mut blocked = TrashSet::new_in(&arena);
    /// assert!(blocked.insert(443_u16) && arena.allocated_bytes() > 0);
    /// let other: TrashSet<u32, _, _> = TrashSet::with_capacity_in(100, blocked.allocator());
    /// assert!(other.capacity() >= 100);
    /// ```
    #[must_use]
    pub fn new_in(memory: A) -> Self {
        Self { map: TrashMap::new_in(memory) }
    }

    /// Creates an empty set with room for `capacity` values whose memory is from `memory`.
    ///
    /// # Panics
    ///
    /// If the values take more bytes than the address space has.
    #[must_use]
    pub fn with_capacity_in(capacity: usize, memory: A) -> Self
    where
        T: Eq + Hash,
    {
        Self { map: TrashMap::with_capacity_in(capacity, memory) }
    }
}

impl<T, S, A: Allocator + Clone> TrashSet<T, S, A> {
    /// Creates an empty set that hashes with `hasher` and whose memory is from `memory`. Allocates
    /// nothing.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{DefaultHashBuilder, TrashSet};
    ///
    /// let arena = bumpalo::Bump::new();
    /// let hasher = DefaultHashBuilder::with_seed(7);
    /// let mut set = TrashSet::with_hasher_in(hasher.clone(), &arena);
    /// let other = TrashSet::with_capacity_and_hasher_in(1000, hasher, &arena);
    /// assert!(set.insert("a") && other.is_disjoint(&set));
    /// ```
    #[must_use]
    pub const fn with_hasher_in(hasher: S, memory: A) -> Self {
        Self { map: TrashMap::with_hasher_in(hasher, memory) }
    }

    /// Returns the allocator that the set was created with.
    #[must_use]
    pub fn allocator(&self) -> &A {
        self.map.allocator()
    }

    /// Returns the hasher that the set was made with.
    #[must_use]
    pub const fn hasher(&self) -> &S {
        self.map.hasher()
    }

    /// Returns the number of values.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether there are no values.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Returns the number of values that the set can have before it takes another step of growth.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.map.capacity()
    }

    /// Returns the bytes allocated, free slots included. Memory that values own does not count.
    ///
    /// # Example
    ///
    /// ```
    /// let mut set: flowtable::TrashSet<u32> = flowtable::TrashSet::with_capacity(100);
    /// set.reserve(500);
    /// set.shrink_to(10);
    /// assert!(set.try_reserve(100).is_ok() && set.allocation_size() > 400);
    /// set.shrink_to_fit();
    /// assert_eq!((set.allocation_size(), set.reseeds()), (0, 0));
    /// ```
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        self.map.allocation_size()
    }

    /// Returns how often the set has drawn a seed because hashes were not random.
    #[must_use]
    pub fn reseeds(&self) -> usize {
        self.map.reseeds()
    }

    /// Removes all values and frees their memory. If a drop panics: see [`TrashMap::clear`].
    pub fn clear(&mut self) {
        self.map.clear();
    }

    /// Returns an iterator over references to the values, in no order that means anything.
    ///
    /// # Example
    ///
    /// ```
    /// let mut set = flowtable::TrashSet::from([1, 2, 3, 4, 5]);
    /// assert_eq!(set.iter().sum::<i32>(), 15);
    /// set.retain(|value| *value != 3);
    /// assert_eq!(set.extract_if(|value| value % 2 == 1).sum::<i32>(), 6);
    /// assert_eq!(set.drain().max(), Some(4));
    /// set.insert(7);
    /// set.clear();
    /// assert!(set.is_empty());
    /// ```
    #[must_use]
    pub fn iter(&self) -> Keys<'_, T, ()> {
        self.map.keys()
    }

    /// Removes all values and returns an iterator over them, which drops the rest. Frees the
    /// memory.
    pub fn drain(&mut self) -> IntoKeys<T, (), A> {
        let (current, old) = self.map.take_tables();
        IntoKeys(IntoIter::new(current, old))
    }
}

impl<T: Eq + Hash, S: BuildHasher> TrashSet<T, S> {
    /// Creates an empty set with room for `capacity` values that hashes with `hasher`.
    ///
    /// # Panics
    ///
    /// If the values take more bytes than the address space has.
    #[must_use]
    pub fn with_capacity_and_hasher(capacity: usize, hasher: S) -> Self {
        Self::with_capacity_and_hasher_in(capacity, hasher, Global)
    }
}

impl<T: Eq + Hash, S: BuildHasher, A: Allocator + Clone> TrashSet<T, S, A> {
    /// Creates an empty set with room for `capacity` values that hashes with `hasher` and whose
    /// memory is from `memory`.
    ///
    /// # Panics
    ///
    /// If the values take more bytes than the address space has.
    #[must_use]
    pub fn with_capacity_and_hasher_in(capacity: usize, hasher: S, memory: A) -> Self {
        Self { map: TrashMap::with_capacity_and_hasher_in(capacity, hasher, memory) }
    }

    /// Returns the hash of a value by the set's hasher, for a [`Prehashed`](crate::Prehashed).
    #[inline]
    pub fn hash_of<Q: Hash + ?Sized>(&self, value: &Q) -> u64 {
        self.map.hash_of(value)
    }

    /// Makes room for `additional` values more: see [`TrashMap::reserve`].
    ///
    /// # Panics
    ///
    /// If the values take more bytes than the address space has.
    pub fn reserve(&mut self, additional: usize) {
        self.map.reserve(additional);
    }

    /// Makes room for `additional` values more, if there is memory.
    ///
    /// # Errors
    ///
    /// If the allocation fails.
    pub fn try_reserve(&mut self, additional: usize) -> Result<(), TryReserveError> {
        self.map.try_reserve(additional)
    }

    /// Cancels the reserved capacity, and shrinks the table as far as its entries stay below the
    /// load of growth.
    pub fn shrink_to_fit(&mut self) {
        self.map.shrink_to_fit();
    }

    /// Frees the memory that is not needed for `capacity` values and those that there are.
    pub fn shrink_to(&mut self, capacity: usize) {
        self.map.shrink_to(capacity);
    }

    /// Returns whether the set has a value.
    #[inline]
    #[must_use]
    pub fn contains<Q: Query<T>>(&self, value: Q) -> bool {
        self.map.contains_key(value)
    }

    /// Calls `each` with the index of each value and whether the set has it, in the order of the
    /// values: see [`TrashMap::get_batch`].
    ///
    /// # Example
    ///
    /// ```
    /// let blocked = flowtable::TrashSet::from([7, 8]);
    /// let mut passed = vec![];
    /// blocked.contains_batch(&[5, 7, 9], |packet, is_blocked| {
    ///     if !is_blocked {
    ///         passed.push(packet);
    ///     }
    /// });
    /// assert_eq!(passed, [0, 2]);
    /// ```
    pub fn contains_batch<I>(&self, values: I, mut each: impl FnMut(usize, bool))
    where
        I: IntoIterator<Item: Query<T>, IntoIter: Clone>,
    {
        self.map.get_batch(values, |index, found| each(index, found.is_some()));
    }

    /// Returns a reference to the value of the set that is equivalent to `value`.
    ///
    /// # Example
    ///
    /// ```
    /// let mut names = flowtable::TrashSet::from([String::from("a")]);
    /// assert_eq!(names.get("a").map(|name| &**name), Some("a"));
    /// assert_eq!(names.get_or_insert(String::from("b")), "b");
    /// assert_eq!(names.get_or_insert_with("c", |name| String::from(name)), "c");
    /// assert_eq!(names.replace(String::from("a")), Some(String::from("a")));
    /// assert_eq!(names.take("b"), Some(String::from("b")));
    /// assert_eq!(names.len(), 2);
    /// ```
    #[inline]
    #[must_use]
    pub fn get<Q: Query<T>>(&self, value: Q) -> Option<&T> {
        self.map.get_key_value(value).map(|(value, ())| value)
    }

    /// Inserts a value. Returns whether it was not there; one that was stays.
    pub fn insert(&mut self, value: T) -> bool {
        self.map.insert(value, ()).is_none()
    }

    /// Inserts a value, like [`insert`](Self::insert), or returns it if there is no memory.
    ///
    /// # Errors
    ///
    /// If memory is needed and cannot be allocated; the set is as it was.
    ///
    /// # Example
    ///
    /// ```
    /// let mut set = flowtable::TrashSet::new();
    /// assert_eq!((set.try_insert(7), set.try_insert(7)), (Ok(true), Ok(false)));
    /// ```
    pub fn try_insert(&mut self, value: T) -> Result<bool, TryInsertError<T>> {
        match self.map.try_insert(value, ()) {
            Ok(replaced) => Ok(replaced.is_none()),
            Err(TryInsertError { refused: (refused, ()), reason }) => {
                Err(TryInsertError { refused, reason })
            }
        }
    }

    /// Inserts a value, and returns the equal one that it replaces.
    pub fn replace(&mut self, value: T) -> Option<T> {
        match self.map.entry_ref(&value) {
            map::EntryRef::Occupied(mut entry) => Some(entry.replace_key_unchecked(value)),
            map::EntryRef::Vacant(map::VacantEntry { map, hash, .. }) => {
                map::VacantEntry { map, hash, key: () }.insert_with_key_unchecked(value, ());
                None
            }
        }
    }

    /// Returns the entry of a value, occupied or vacant, after one lookup.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{TrashSet, trash::set::Entry};
    ///
    /// let mut seen = TrashSet::from(["a"]);
    /// for name in ["a", "b"] {
    ///     match seen.entry(name) {
    ///         Entry::Occupied(entry) => assert_eq!(entry.remove(), "a"),
    ///         Entry::Vacant(entry) => assert_eq!(*entry.insert().get(), "b"),
    ///     }
    /// }
    /// assert_eq!(seen, TrashSet::from(["b"]));
    /// ```
    pub fn entry(&mut self, value: T) -> Entry<'_, T, S, A> {
        match self.map.entry(value) {
            map::Entry::Occupied(entry) => Entry::Occupied(OccupiedEntry(entry)),
            map::Entry::Vacant(entry) => Entry::Vacant(VacantEntry(entry)),
        }
    }

    /// Inserts a value if there is no equal one, and returns a reference to the one in the set.
    pub fn get_or_insert(&mut self, value: T) -> &T {
        self.map.entry(value).or_insert_entry(()).into_entry().0
    }

    /// Inserts the result of `owned` if there is no value equivalent to `value`, and returns a
    /// reference to the one in the set. For an insertion with the hash at hand, too.
    ///
    /// # Panics
    ///
    /// If the result of `owned` is not equivalent to `value`.
    pub fn get_or_insert_with<Q: Query<T>>(
        &mut self,
        value: Q,
        owned: impl FnOnce(&Q::Key) -> T,
    ) -> &T {
        let entry = match self.map.entry_ref(value) {
            map::EntryRef::Occupied(entry) => entry,
            map::EntryRef::Vacant(entry) => {
                let owned = owned(entry.key());
                entry.insert_entry_with_key(owned, ())
            }
        };
        entry.into_entry().0
    }

    /// Removes a value. Returns whether it was there.
    pub fn remove<Q: Query<T>>(&mut self, value: Q) -> bool {
        self.take(value).is_some()
    }

    /// Removes and returns the value that is equivalent to `value`.
    pub fn take<Q: Query<T>>(&mut self, value: Q) -> Option<T> {
        self.map.remove_entry(value).map(|(value, ())| value)
    }

    /// Keeps the values for which `keep` returns true. O(slots). If `keep` or a drop panics: see
    /// [`TrashMap::retain`].
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.map.retain(|value, ()| keep(value));
    }

    /// Returns an iterator that removes the values for which `predicate` returns true. Values that
    /// it has not visited when it is dropped stay.
    pub fn extract_if(
        &mut self,
        mut predicate: impl FnMut(&T) -> bool,
    ) -> impl FusedIterator<Item = T> {
        self.map.extract_if(move |value, ()| predicate(value)).map(|(value, ())| value)
    }

    /// Returns segments, load, distances and memory at this moment. O(slots), and hashes every
    /// value.
    ///
    /// # Example
    ///
    /// ```
    /// let set: flowtable::TrashSet<u32> = (0..100).collect();
    /// assert_eq!(set.shape().entries, 100);
    /// ```
    #[must_use]
    pub fn shape(&self) -> TableShape {
        self.map.shape()
    }

    /// Checks every invariant, for tests. O(slots).
    ///
    /// # Errors
    ///
    /// As [`TrashMap::validate`].
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), InvariantError> {
        self.map.validate()
    }
}
