//! Entries by the numbers of their slots.

use core::iter::FusedIterator;

use super::{AbsentEntry, OccupiedEntry, TrashTable};
use crate::memory::Allocator;

/// # Slots by number
///
/// An entry is in a slot, called *bucket* in these names, which are hashbrown's. The number of the
/// slot stays the same until the next insertion, removal or change of capacity. Numbers are as
/// compact as an index that a program can keep for the time of one packet; they are no handles.
impl<T, A: Allocator + Clone> TrashTable<T, A> {
    /// Returns the number of the slot with the entry with this hash for which `eq` returns true.
    ///
    /// # Example
    ///
    /// ```
    /// let mut table = flowtable::TrashTable::new();
    /// for name in ["a", "b"] {
    ///     table.insert_unique(7, name, |_| 7);
    /// }
    /// let slot = table.find_bucket_index(7, |name| *name == "b").unwrap();
    /// *table.get_bucket_mut(slot).unwrap() = "c";
    /// assert_eq!((table.get_bucket(slot), table.get_bucket(usize::MAX)), (Some(&"c"), None));
    /// assert!(table.iter_buckets().all(|slot| slot < table.num_buckets()));
    /// assert_eq!((table.iter_buckets().count(), table.iter_hash_buckets(7).count()), (2, 2));
    ///
    /// let entry = table.get_bucket_entry(slot).unwrap();
    /// assert_eq!((entry.bucket_index(), entry.remove(|_| 7)), (slot, "c"));
    /// ```
    pub fn find_bucket_index(&self, hash: u64, eq: impl FnMut(&T) -> bool) -> Option<usize> {
        self.table.locate(hash, eq).map(|at| self.table.number_of(at))
    }

    /// Returns a reference to the entry in a slot.
    #[must_use]
    pub fn get_bucket(&self, index: usize) -> Option<&T> {
        self.table.get(self.table.at_number(index)?)
    }

    /// Returns a mutable reference to the entry in a slot. Its hash must stay the same.
    #[must_use]
    pub fn get_bucket_mut(&mut self, index: usize) -> Option<&mut T> {
        self.table.get_mut(self.table.at_number(index)?)
    }

    /// Returns the entry in a slot: it can be changed or removed.
    ///
    /// # Errors
    ///
    /// The table, if there is no entry.
    pub fn get_bucket_entry(
        &mut self,
        index: usize,
    ) -> Result<OccupiedEntry<'_, T, A>, AbsentEntry<'_, T, A>> {
        match self.table.at_number(index) {
            Some(at) => Ok(OccupiedEntry { table: &mut self.table, at }),
            None => Err(AbsentEntry { table: self }),
        }
    }

    /// Returns a number that all numbers of slots are below.
    #[must_use]
    pub fn num_buckets(&self) -> usize {
        self.table.end_of_numbers()
    }

    /// Returns an iterator over the numbers of the occupied slots.
    pub fn iter_buckets(&self) -> impl FusedIterator<Item = usize> {
        self.table.numbers().fuse()
    }

    /// Returns an iterator over the numbers of the slots whose entries may have this hash: see
    /// [`iter_hash`](Self::iter_hash).
    pub fn iter_hash_buckets(&self, hash: u64) -> impl FusedIterator<Item = usize> {
        self.table.numbers_of_hash(hash).fuse()
    }
}

impl<T, A: Allocator + Clone> OccupiedEntry<'_, T, A> {
    /// Returns the number of the slot: see [`TrashTable::get_bucket`].
    #[must_use]
    pub fn bucket_index(&self) -> usize {
        self.table.number_of(self.at)
    }
}
