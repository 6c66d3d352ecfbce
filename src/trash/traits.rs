//! Implementations of the traits of `core`: collection, comparison, indexing, copies.

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::ops::Index;

use equivalent::Equivalent;

use super::TrashMap;
use super::iter::{IntoIter, Iter, IterMut};
use crate::memory::Allocator;

impl<K, V, S: Default> Default for TrashMap<K, V, S> {
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

/// A copy has the same hasher, seed and shape.
impl<K: Clone, V: Clone, S: Clone, A: Allocator + Clone> Clone for TrashMap<K, V, S, A> {
    fn clone(&self) -> Self {
        let (table, reseeded) = (self.table.clone(), self.reseeded.clone());
        Self { table, hasher: self.hasher.clone(), reseeded }
    }

    /// Makes the map a copy of `source`, in its own memory as far as that is of use. If the drop or
    /// the clone of an entry panics, the map is empty.
    fn clone_from(&mut self, source: &Self) {
        // The map is empty until all entries are there.
        let (mut table, reseeded) = (self.table.replace_by_empty(), self.reseeded.take());
        drop(reseeded);
        table.clone_from(&source.table);
        self.reseeded = source.reseeded.clone();
        self.hasher.clone_from(&source.hasher);
        self.table = table;
    }
}

impl<K: fmt::Debug, V: fmt::Debug, S, A: Allocator + Clone> fmt::Debug for TrashMap<K, V, S, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

/// Equal keys with equal values; seeds do not count. The types are equal, so that
/// `map == iterator.collect()` infers them, as in `std`.
impl<K, V, S, A> PartialEq for TrashMap<K, V, S, A>
where
    K: Eq + Hash,
    V: PartialEq,
    S: BuildHasher,
    A: Allocator + Clone,
{
    fn eq(&self, other: &Self) -> bool {
        let same = |(key, value): (&K, &V)| other.get(key).is_some_and(|other| value == other);
        self.len() == other.len() && self.iter().all(same)
    }
}

impl<K: Eq + Hash, V: Eq, S: BuildHasher, A: Allocator + Clone> Eq for TrashMap<K, V, S, A> {}

impl<K: Eq + Hash, V, S: BuildHasher, A: Allocator + Clone> Extend<(K, V)>
    for TrashMap<K, V, S, A>
{
    /// Inserts all entries, in bursts. Reserves capacity for the lower bound of `size_hint`,
    /// until entries are removed.
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        let entries = entries.into_iter();
        // Without the memory, or with a bound that is too large, the map grows in steps.
        let additional = entries.size_hint().0;
        if self.capacity() - self.len() < additional {
            let _ = self.make_room(additional);
        }
        self.insert_batch(entries, |_, _| ());
    }
}

impl<'a, K: Eq + Hash + Copy, V: Copy, S: BuildHasher, A: Allocator + Clone> Extend<(&'a K, &'a V)>
    for TrashMap<K, V, S, A>
{
    fn extend<I: IntoIterator<Item = (&'a K, &'a V)>>(&mut self, entries: I) {
        self.extend(entries.into_iter().map(|(&key, &value)| (key, value)));
    }
}

impl<'a, K: Eq + Hash + Copy, V: Copy, S: BuildHasher, A: Allocator + Clone> Extend<&'a (K, V)>
    for TrashMap<K, V, S, A>
{
    fn extend<I: IntoIterator<Item = &'a (K, V)>>(&mut self, entries: I) {
        self.extend(entries.into_iter().copied());
    }
}

impl<K: Eq + Hash, V, S: BuildHasher + Default> FromIterator<(K, V)> for TrashMap<K, V, S> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::default();
        map.extend(entries);
        map
    }
}

impl<K: Eq + Hash, V, const N: usize> From<[(K, V); N]> for TrashMap<K, V> {
    fn from(entries: [(K, V); N]) -> Self {
        entries.into_iter().collect()
    }
}

impl<K, V, S, A: Allocator + Clone, Q> Index<&Q> for TrashMap<K, V, S, A>
where
    K: Eq + Hash,
    S: BuildHasher,
    Q: Hash + Equivalent<K> + ?Sized,
{
    type Output = V;

    /// The value of `key`.
    ///
    /// # Panics
    ///
    /// If the map does not have the key.
    fn index(&self, key: &Q) -> &V {
        self.get(key).expect("the map does not have the key")
    }
}

impl<K, V, S, A: Allocator + Clone> IntoIterator for TrashMap<K, V, S, A> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V, A>;

    fn into_iter(mut self) -> IntoIter<K, V, A> {
        let (current, old) = self.take_tables();
        IntoIter::new(current, old)
    }
}

impl<'a, K, V, S, A: Allocator + Clone> IntoIterator for &'a TrashMap<K, V, S, A> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Iter<'a, K, V> {
        self.iter()
    }
}

impl<'a, K, V, S, A: Allocator + Clone> IntoIterator for &'a mut TrashMap<K, V, S, A> {
    type Item = (&'a K, &'a mut V);
    type IntoIter = IterMut<'a, K, V>;

    fn into_iter(self) -> IterMut<'a, K, V> {
        self.iter_mut()
    }
}
