//! Removal of the entries that a predicate picks, one with each step of an iterator.

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::iter::FusedIterator;

use super::TrashMap;
use super::reseed::{self, Old, Reseeded};
use crate::table::Cursor;

/// Removes and returns the entries for which a predicate returns true. See
/// [`TrashMap::extract_if`].
pub struct ExtractIf<'a, K, V, S, F> {
    map: &'a mut TrashMap<K, V, S>,
    predicate: F,
    /// In the table from before a reseeding, which comes first.
    old: Cursor,
    current: Cursor,
}

impl<K: Eq + Hash, V, S: BuildHasher> TrashMap<K, V, S> {
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
    ) -> ExtractIf<'_, K, V, S, F> {
        let (old, current) = (Cursor::default(), Cursor::default());
        ExtractIf { map: self, predicate, old, current }
    }
}

impl<K: Eq + Hash, V, S: BuildHasher, F: FnMut(&K, &mut V) -> bool> ExtractIf<'_, K, V, S, F> {
    /// The next entry of the table from before a reseeding.
    fn next_old(&mut self) -> Option<(K, V)> {
        let TrashMap { hasher, reseeded, .. } = &mut *self.map;
        let Some(Reseeded { old: Some(Old { table, seed, .. }), .. }) = reseeded.as_deref_mut()
        else {
            return None;
        };
        let (seed, predicate) = (seed.as_ref(), &mut self.predicate);
        let picks = |(key, value): &mut (K, V)| predicate(key, value);
        table.extract_next(&mut self.old, picks, |(key, _)| reseed::hash(&*hasher, seed, key))
    }
}

impl<K: Eq + Hash, V, S: BuildHasher, F: FnMut(&K, &mut V) -> bool> Iterator
    for ExtractIf<'_, K, V, S, F>
{
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        self.next_old().or_else(|| {
            let (table, hasher) = self.map.current_mut();
            let predicate = &mut self.predicate;
            let picks = |(key, value): &mut (K, V)| predicate(key, value);
            table.extract_next(&mut self.current, picks, hasher)
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.map.len()))
    }
}

impl<K: Eq + Hash, V, S: BuildHasher, F: FnMut(&K, &mut V) -> bool> FusedIterator
    for ExtractIf<'_, K, V, S, F>
{
}

impl<K, V, S, F> fmt::Debug for ExtractIf<'_, K, V, S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtractIf").finish_non_exhaustive()
    }
}
