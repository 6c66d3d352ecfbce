//! Reserving and freeing memory.

use core::hash::{BuildHasher, Hash};

use super::TrashMap;
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
