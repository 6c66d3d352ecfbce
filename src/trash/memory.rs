//! The memory of a map: the allocator of the caller, reserving and freeing.
//!
//! See [`memory`](crate::memory) for allocators.

use core::hash::{BuildHasher, Hash};

use super::TrashMap;
use crate::hash::DefaultHashBuilder;
use crate::memory::Allocator;
use crate::table::Table;
use crate::table::error::TryReserveError;

impl<K: Eq + Hash, V, S: BuildHasher, A: Allocator + Clone> TrashMap<K, V, S, A> {
    /// Makes room for `additional` entries more, and keeps it: the map does not get smaller than
    /// that when entries are removed, until [`shrink_to_fit`](Self::shrink_to_fit).
    ///
    /// Entries are spread by chance, so some insertions may still have to split a segment. Entries
    /// of more than 64 bytes are allocated one by one when they are inserted.
    ///
    /// # Panics
    ///
    /// If the entries take more bytes than the address space has.
    pub fn reserve(&mut self, additional: usize) {
        self.try_reserve(additional).unwrap_or_else(|error| error.raise());
    }

    /// Makes room for `additional` entries more, like [`reserve`](Self::reserve), if there is
    /// memory.
    ///
    /// # Errors
    ///
    /// If the allocation fails. It is tried in one piece first, so that an attempt that must fail
    /// takes nothing.
    ///
    /// # Example
    ///
    /// ```
    /// let mut map: flowtable::TrashMap<u64, u64> = flowtable::TrashMap::with_capacity(1000);
    /// map.reserve(5000);
    /// assert!(map.capacity() >= 5000 && map.try_reserve(usize::MAX / 2).is_err());
    /// map.shrink_to_fit();
    /// assert_eq!((map.capacity(), map.allocation_size()), (0, 0));
    /// ```
    pub fn try_reserve(&mut self, additional: usize) -> Result<(), TryReserveError> {
        self.make_room(additional)?;
        let entries = self.len().saturating_add(additional);
        self.current_table_mut().set_reserved(entries);
        Ok(())
    }

    /// Makes room for `additional` entries more, until others are removed.
    pub(super) fn make_room(&mut self, additional: usize) -> Result<(), TryReserveError> {
        let old = self.old_table().map_or(0, Table::len);
        let additional = additional.checked_add(old).ok_or(TryReserveError::OVERFLOW)?;
        let (table, hasher) = self.current_mut();
        table.reserve(additional, &hasher)
    }

    /// Cancels the reserved capacity, and shrinks the table as far as its entries stay below the
    /// load of growth. O(slots).
    pub fn shrink_to_fit(&mut self) {
        self.shrink_to(0);
    }

    /// Frees the memory that is not needed for `capacity` entries and those that there are.
    /// O(slots).
    ///
    /// # Example
    ///
    /// ```
    /// let mut map: flowtable::TrashMap<u64, u64> = flowtable::TrashMap::with_capacity(10_000);
    /// map.insert(1, 1);
    /// map.shrink_to(100);
    /// assert!((100..1000).contains(&map.capacity()));
    /// ```
    pub fn shrink_to(&mut self, capacity: usize) {
        self.finish_move();
        if self.is_empty() && capacity == 0 {
            self.clear();
        }
        let (table, hasher) = self.current_mut();
        table.shrink_to_at_most(capacity, &hasher);
    }
}

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
