//! Removal of the entries that a predicate picks, one with each step of an iterator.

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::iter::FusedIterator;

use super::TrashMap;
use super::reseed::{self, Old, Reseeded};
use crate::memory::{Allocator, Global};
use crate::table::Cursor;

/// Where an extraction continues.
#[derive(Default)]
pub(crate) struct ExtractCursor {
    /// In the table from before a reseeding, which comes first.
    old: Cursor,
    current: Cursor,
}

/// Removes and returns the entries for which a predicate returns true. See
/// [`TrashMap::extract_if`].
pub struct ExtractIf<'a, K, V, S, F, A: Allocator + Clone = Global> {
    map: &'a mut TrashMap<K, V, S, A>,
    predicate: F,
    cursor: ExtractCursor,
}

impl<K: Eq + Hash, V, S: BuildHasher, A: Allocator + Clone> TrashMap<K, V, S, A> {
    /// Returns an iterator that removes the entries for which `predicate` returns true. Entries
    /// that it has not visited when it is dropped stay. O(slots) if it is run to its end.
    ///
    /// # Example
    ///
    /// ```
    /// let mut idle = flowtable::TrashMap::from([("a", 70), ("b", 5), ("c", 90)]);
    /// let mut gone: Vec<_> = idle.extract_if(|_, seconds| *seconds > 60).collect();
    /// gone.sort();
    /// assert_eq!((gone, idle.len()), (vec![("a", 70), ("c", 90)], 1));
    /// ```
    pub fn extract_if<F: FnMut(&K, &mut V) -> bool>(
        &mut self,
        predicate: F,
    ) -> ExtractIf<'_, K, V, S, F, A> {
        ExtractIf { map: self, predicate, cursor: ExtractCursor::default() }
    }

    /// Removes and returns the next entry for which `predicate` returns true. Between the calls
    /// with a cursor, the map is not changed otherwise.
    pub(crate) fn extract_next(
        &mut self,
        cursor: &mut ExtractCursor,
        mut predicate: impl FnMut(&K, &mut V) -> bool,
    ) -> Option<(K, V)> {
        let mut picks = |(key, value): &mut (K, V)| predicate(key, value);
        self.extract_old(&mut cursor.old, &mut picks).or_else(|| {
            let (table, hasher) = self.current_mut();
            table.extract_next(&mut cursor.current, &mut picks, &hasher)
        })
    }

    /// The next entry of the table from before a reseeding.
    fn extract_old(
        &mut self,
        cursor: &mut Cursor,
        picks: impl FnMut(&mut (K, V)) -> bool,
    ) -> Option<(K, V)> {
        let Self { hasher, reseeded, .. } = self;
        let Some(Reseeded { old: Some(Old { table, seed, .. }), .. }) = reseeded.as_deref_mut()
        else {
            return None;
        };
        table.extract_next(cursor, picks, &reseed::entry_hasher(&*hasher, seed.as_ref()))
    }
}

impl<K: Eq + Hash, V, S: BuildHasher, F: FnMut(&K, &mut V) -> bool, A: Allocator + Clone> Iterator
    for ExtractIf<'_, K, V, S, F, A>
{
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        self.map.extract_next(&mut self.cursor, &mut self.predicate)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.map.len()))
    }
}

impl<K: Eq + Hash, V, S: BuildHasher, F: FnMut(&K, &mut V) -> bool, A: Allocator + Clone>
    FusedIterator for ExtractIf<'_, K, V, S, F, A>
{
}

impl<K, V, S, F, A: Allocator + Clone> fmt::Debug for ExtractIf<'_, K, V, S, F, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtractIf").finish_non_exhaustive()
    }
}
