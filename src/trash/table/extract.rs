//! Removal of the entries that a predicate picks.

use core::fmt;
use core::iter::FusedIterator;

use super::TrashTable;
use crate::memory::{Allocator, Global};
use crate::table::Cursor;

/// Removes and returns the entries for which a predicate returns true. See
/// [`TrashTable::extract_if`].
pub struct ExtractIf<'a, T, F, H, A: Allocator + Clone = Global> {
    table: &'a mut TrashTable<T, A>,
    cursor: Cursor,
    predicate: F,
    hasher: H,
}

impl<T, A: Allocator + Clone> TrashTable<T, A> {
    /// Returns an iterator that removes the entries for which `predicate` returns true. Entries
    /// that it has not visited when it is dropped stay.
    ///
    /// # Example
    ///
    /// ```
    /// let mut table = flowtable::TrashTable::new();
    /// let hash = |&number: &u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    /// (0..10_u64).for_each(|number| drop(table.insert_unique(hash(&number), number, hash)));
    /// assert_eq!(table.extract_if(|number| *number % 2 == 1, hash).sum::<u64>(), 25);
    /// assert_eq!(table.len(), 5);
    /// ```
    pub fn extract_if<F, H>(&mut self, predicate: F, hasher: H) -> ExtractIf<'_, T, F, H, A>
    where
        F: FnMut(&mut T) -> bool,
        H: Fn(&T) -> u64,
    {
        ExtractIf { table: self, cursor: Cursor::default(), predicate, hasher }
    }
}

impl<T, F: FnMut(&mut T) -> bool, H: Fn(&T) -> u64, A: Allocator + Clone> Iterator
    for ExtractIf<'_, T, F, H, A>
{
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let Self { table, cursor, predicate, hasher } = self;
        table.table.extract_next(cursor, predicate, hasher)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.table.len()))
    }
}

impl<T, F: FnMut(&mut T) -> bool, H: Fn(&T) -> u64, A: Allocator + Clone> FusedIterator
    for ExtractIf<'_, T, F, H, A>
{
}

impl<T, F, H, A: Allocator + Clone> fmt::Debug for ExtractIf<'_, T, F, H, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtractIf").finish_non_exhaustive()
    }
}
