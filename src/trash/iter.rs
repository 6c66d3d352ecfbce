//! Iteration over a [`TrashMap`], in no order that means anything, and removal of the entries that
//! a predicate picks, one with each step of an iterator.

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::iter::FusedIterator;

use super::TrashMap;
use super::reseed::{self, Old, Reseeded};
use crate::memory::{Allocator, Global};
use crate::table::{self, Cursor, Table};

impl<K, V, S, A: Allocator + Clone> TrashMap<K, V, S, A> {
    /// Returns an iterator over keys and values, in no specified order.
    ///
    /// # Example
    ///
    /// ```
    /// let mut bytes = flowtable::TrashMap::from([(443, 100), (53, 10)]);
    /// for (port, bytes) in bytes.iter_mut() {
    ///     *bytes += port % 10;
    /// }
    /// bytes.values_mut().for_each(|bytes| *bytes *= 2);
    /// assert_eq!(bytes.iter().max(), Some((&443, &206)));
    /// assert_eq!((bytes.keys().sum(), bytes.values().sum()), (496, 232));
    ///
    /// let mut ports: Vec<i32> = bytes.clone().into_keys().collect();
    /// ports.sort();
    /// let mut counts: Vec<i32> = bytes.clone().into_values().collect();
    /// counts.sort();
    /// assert_eq!((ports, counts), (vec![53, 443], vec![26, 206]));
    /// ```
    #[must_use]
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter::new(self.current(), self.old_table())
    }

    /// Returns an iterator over keys and mutable references to values.
    pub fn iter_mut(&mut self) -> IterMut<'_, K, V> {
        match self.reseeded.as_deref_mut() {
            None => IterMut::new(&mut self.table, None),
            Some(Reseeded { table, old, .. }) => {
                IterMut::new(table, old.as_mut().map(|old| &mut old.table))
            }
        }
    }

    /// The keys.
    #[must_use]
    pub fn keys(&self) -> Keys<'_, K, V> {
        Keys(self.iter())
    }

    /// The values.
    #[must_use]
    pub fn values(&self) -> Values<'_, K, V> {
        Values(self.iter())
    }

    /// Returns an iterator over mutable references to the values.
    pub fn values_mut(&mut self) -> ValuesMut<'_, K, V> {
        ValuesMut(self.iter_mut())
    }

    /// Converts the map into an iterator over its keys.
    #[must_use]
    pub fn into_keys(self) -> IntoKeys<K, V, A> {
        IntoKeys(self.into_iter())
    }

    /// Converts the map into an iterator over its values.
    #[must_use]
    pub fn into_values(self) -> IntoValues<K, V, A> {
        IntoValues(self.into_iter())
    }
}

/// The entries of a table and of the one before.
#[derive(Clone, Default)]
pub(super) struct Both<Entries> {
    pub(super) current: Entries,
    pub(super) old: Option<Entries>,
}

impl<Entries: ExactSizeIterator> Iterator for Both<Entries> {
    type Item = Entries::Item;

    #[inline]
    fn next(&mut self) -> Option<Entries::Item> {
        self.current.next().or_else(|| self.old.as_mut()?.next())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.current.len() + self.old.as_ref().map_or(0, ExactSizeIterator::len);
        (left, Some(left))
    }
}

impl<Entries: ExactSizeIterator> ExactSizeIterator for Both<Entries> {}

/// An iterator over keys and values: see [`TrashMap::iter`](super::TrashMap::iter).
pub struct Iter<'a, K, V> {
    pub(super) entries: Both<table::Iter<'a, (K, V)>>,
}

impl<'a, K, V> Iter<'a, K, V> {
    pub(super) fn new<A: Allocator + Clone>(
        table: &'a Table<(K, V), A>,
        old: Option<&'a Table<(K, V), A>>,
    ) -> Self {
        Self { entries: Both { current: table.iter(), old: old.map(Table::iter) } }
    }
}

impl<K, V> Default for Iter<'_, K, V> {
    fn default() -> Self {
        Self { entries: Both::default() }
    }
}

impl<K, V> Clone for Iter<'_, K, V> {
    fn clone(&self) -> Self {
        Self { entries: self.entries.clone() }
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Iter<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.entries.next().map(|(key, value)| (key, value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.entries.size_hint()
    }
}

impl<K, V> ExactSizeIterator for Iter<'_, K, V> {}
impl<K, V> FusedIterator for Iter<'_, K, V> {}

/// An iterator over keys and mutable references to the values: see
/// [`TrashMap::iter_mut`](super::TrashMap::iter_mut).
pub struct IterMut<'a, K, V> {
    pub(super) entries: Both<table::IterMut<'a, (K, V)>>,
}

impl<'a, K, V> IterMut<'a, K, V> {
    pub(super) fn new<A: Allocator + Clone>(
        table: &'a mut Table<(K, V), A>,
        old: Option<&'a mut Table<(K, V), A>>,
    ) -> Self {
        Self { entries: Both { current: table.iter_mut(), old: old.map(Table::iter_mut) } }
    }
}

impl<K, V> Default for IterMut<'_, K, V> {
    fn default() -> Self {
        Self { entries: Both::default() }
    }
}

impl<'a, K, V> Iterator for IterMut<'a, K, V> {
    type Item = (&'a K, &'a mut V);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.entries.next().map(|(key, value)| (&*key, value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.entries.size_hint()
    }
}

impl<K, V> ExactSizeIterator for IterMut<'_, K, V> {}
impl<K, V> FusedIterator for IterMut<'_, K, V> {}

impl<K, V> fmt::Debug for IterMut<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IterMut").field("left", &self.entries.len()).finish_non_exhaustive()
    }
}

/// An owning iterator over all entries; it drops the rest when dropped. See
/// [`TrashMap::drain`](super::TrashMap::drain).
///
/// # Example
///
/// ```
/// let mut flows = flowtable::TrashMap::from([("a", 1), ("b", 2)]);
/// assert_eq!(flows.drain().map(|(_, value)| value).sum::<i32>(), 3);
/// assert!(flows.is_empty()); // and it can be filled again
/// flows.insert("c", 3);
/// flows.clear();
/// assert_eq!((flows.len(), flows.allocation_size()), (0, 0));
/// ```
pub struct IntoIter<K, V, A: Allocator + Clone = Global> {
    pub(super) entries: Both<table::IntoIter<(K, V), A>>,
}

impl<K, V, A: Allocator + Clone> IntoIter<K, V, A> {
    pub(super) fn new(table: Table<(K, V), A>, old: Option<Table<(K, V), A>>) -> Self {
        let old = old.map(Table::into_entries);
        Self { entries: Both { current: table.into_entries(), old } }
    }
}

impl<K, V, A: Allocator + Clone + Default> Default for IntoIter<K, V, A> {
    fn default() -> Self {
        Self { entries: Both::default() }
    }
}

impl<K, V, A: Allocator + Clone> Iterator for IntoIter<K, V, A> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        self.entries.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.entries.size_hint()
    }
}

impl<K, V, A: Allocator + Clone> ExactSizeIterator for IntoIter<K, V, A> {}
impl<K, V, A: Allocator + Clone> FusedIterator for IntoIter<K, V, A> {}

impl<K, V, A: Allocator + Clone> fmt::Debug for IntoIter<K, V, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntoIter").field("left", &self.entries.len()).finish_non_exhaustive()
    }
}

/// An iterator over the keys: see [`TrashMap::keys`](super::TrashMap::keys).
pub struct Keys<'a, K, V>(pub(super) Iter<'a, K, V>);

impl<K, V> Clone for Keys<'_, K, V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// An iterator over the values: see [`TrashMap::values`](super::TrashMap::values).
pub struct Values<'a, K, V>(pub(super) Iter<'a, K, V>);

impl<K, V> Clone for Values<'_, K, V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// An iterator over mutable references to the values: see
/// [`TrashMap::values_mut`](super::TrashMap::values_mut).
#[derive(Debug)]
pub struct ValuesMut<'a, K, V>(pub(super) IterMut<'a, K, V>);

/// An owning iterator over the keys: see [`TrashMap::into_keys`](super::TrashMap::into_keys).
#[derive(Debug)]
pub struct IntoKeys<K, V, A: Allocator + Clone = Global>(pub(super) IntoIter<K, V, A>);

/// An owning iterator over the values: see [`TrashMap::into_values`](super::TrashMap::into_values).
#[derive(Debug)]
pub struct IntoValues<K, V, A: Allocator + Clone = Global>(pub(super) IntoIter<K, V, A>);

impl<K: fmt::Debug, V> fmt::Debug for Keys<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

impl<K, V: fmt::Debug> fmt::Debug for Values<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

/// Implements iterators over a part of each entry by the iterator inside.
macro_rules! parts_of_entries {
    ($(
        [$($generics:tt)*] $parts:ty = $part:pat => $value:ident: $item:ty, of $entries:ty;
    )*) => {$(
        impl<$($generics)*> Iterator for $parts {
            type Item = $item;

            #[inline]
            fn next(&mut self) -> Option<$item> {
                self.0.next().map(|$part| $value)
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                self.0.size_hint()
            }
        }

        impl<$($generics)*> ExactSizeIterator for $parts {}
        impl<$($generics)*> FusedIterator for $parts {}

        impl<$($generics)*> Default for $parts
        where
            $entries: Default,
        {
            fn default() -> Self {
                Self(Default::default())
            }
        }
    )*};
}

parts_of_entries! {
    ['a, K, V] Keys<'a, K, V> = (key, _) => key: &'a K, of Iter<'a, K, V>;
    ['a, K, V] Values<'a, K, V> = (_, value) => value: &'a V, of Iter<'a, K, V>;
    ['a, K, V] ValuesMut<'a, K, V> = (_, value) => value: &'a mut V, of IterMut<'a, K, V>;
    [K, V, A: Allocator + Clone] IntoKeys<K, V, A> = (key, _) => key: K, of IntoIter<K, V, A>;
    [K, V, A: Allocator + Clone] IntoValues<K, V, A> = (_, value) => value: V, of IntoIter<K, V, A>;
}

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
