//! Maps in memory of the caller: see [`memory`](crate::memory).

use core::hash::{BuildHasher, Hash};

use super::TrashMap;
use crate::hash::DefaultHashBuilder;
use crate::memory::Allocator;
use crate::table::Table;

impl<K, V, A: Allocator + Clone> TrashMap<K, V, DefaultHashBuilder, A> {
    /// Creates an empty map whose memory is from `memory`. Allocates nothing.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::TrashMap;
    ///
    /// let arena = bumpalo::Bump::new();
    /// let mut flows = TrashMap::new_in(&arena);
    /// flows.insert("a", 1);
    /// assert!(arena.allocated_bytes() > 0);
    /// let other: TrashMap<u32, u32, _, _> = TrashMap::with_capacity_in(100, flows.allocator());
    /// assert!(other.capacity() >= 100);
    /// ```
    #[must_use]
    pub fn new_in(memory: A) -> Self {
        Self::with_hasher_in(DefaultHashBuilder::new(), memory)
    }

    /// Creates an empty map with room for `capacity` entries whose memory is from `memory`: see
    /// [`reserve`](TrashMap::reserve).
    ///
    /// # Panics
    ///
    /// If the entries take more bytes than the address space has.
    #[must_use]
    pub fn with_capacity_in(capacity: usize, memory: A) -> Self
    where
        K: Eq + Hash,
    {
        Self::with_capacity_and_hasher_in(capacity, DefaultHashBuilder::new(), memory)
    }
}

impl<K, V, S, A: Allocator + Clone> TrashMap<K, V, S, A> {
    /// Creates an empty map that hashes with `hasher` and whose memory is from `memory`. Allocates
    /// nothing.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{DefaultHashBuilder, TrashMap};
    ///
    /// let arena = bumpalo::Bump::new();
    /// let hasher = DefaultHashBuilder::with_seed(7);
    /// let mut map = TrashMap::with_hasher_in(hasher.clone(), &arena);
    /// assert_eq!(map.insert(443_u16, "https"), None);
    /// let mut other = TrashMap::with_capacity_and_hasher_in(1000, hasher, &arena);
    /// other.extend(map.drain());
    /// assert_eq!(other.get(&443), Some(&"https"));
    /// ```
    #[must_use]
    pub const fn with_hasher_in(hasher: S, memory: A) -> Self {
        Self { table: Table::new_in(memory), hasher, reseeded: None }
    }

    /// Returns the allocator that the map was created with.
    #[must_use]
    pub fn allocator(&self) -> &A {
        self.table.allocator()
    }
}

impl<K: Eq + Hash, V, S: BuildHasher, A: Allocator + Clone> TrashMap<K, V, S, A> {
    /// Creates an empty map with room for `capacity` entries that hashes with `hasher` and whose
    /// memory is from `memory`.
    ///
    /// # Panics
    ///
    /// If the entries take more bytes than the address space has.
    #[must_use]
    pub fn with_capacity_and_hasher_in(capacity: usize, hasher: S, memory: A) -> Self {
        let mut map = Self::with_hasher_in(hasher, memory);
        map.reserve(capacity);
        map
    }
}
