//! Traversals, concurrent with writers, and traits of collections.

use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::iter::FusedIterator;

use super::ConcurrentMap;
use super::storage::{Ids, hash_of};
use super::view::{Entry, View};
use crate::concurrent::engine::{Slot, Walk};
use crate::concurrent::pinned::{Guard, Pinned, Protect};

impl<'t, K, V, S, G> Pinned<'t, ConcurrentMap<K, V, S>, G> {
    /// Iterates over all entries, in no order. An entry that is inserted or removed during the
    /// iteration is visited at most once, an entry that stays exactly once. It may wait for a
    /// writer of a shard where an entry is removed, or a segment split or merged, in the meantime.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([("a", 1), ("b", 2)]);
    /// let pin = map.pin();
    /// assert_eq!(pin.iter().map(|(_, value)| value).sum::<i32>(), 3);
    /// ```
    #[inline]
    #[must_use]
    pub fn iter<'p, 'r>(&'p self) -> Iter<'r, K, V, S>
    where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        Iter::new(self.view())
    }

    /// Iterates over all keys: see [`iter`](Self::iter).
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([("a", 1)]);
    /// assert!(map.pin().keys().eq(&["a"]));
    /// ```
    pub fn keys<'p, 'r>(&'p self) -> impl Iterator<Item = &'r K>
    where
        G: Protect<'p, 'r>,
        't: 'r,
        K: 'r,
    {
        self.iter().map(|(key, _)| key)
    }

    /// Iterates over all values: see [`iter`](Self::iter).
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([("a", 1)]);
    /// assert!(map.pin().values().eq(&[1]));
    /// ```
    pub fn values<'p, 'r>(&'p self) -> impl Iterator<Item = &'r V>
    where
        G: Protect<'p, 'r>,
        't: 'r,
        V: 'r,
    {
        self.iter().map(|(_, value)| value)
    }
}

/// An iterator over all entries of a map: see [`Pinned::iter`].
pub struct Iter<'p, K, V, S> {
    view: View<'p, K, V, S>,
    walk: Walk<'p, Ids>,
}

impl<'p, K, V, S> Iter<'p, K, V, S> {
    #[inline]
    pub(super) fn new(view: View<'p, K, V, S>) -> Self {
        Self { view, walk: Walk::new(&view.map.engine, view.pin) }
    }

    /// Calls `each` with each entry that is left.
    #[inline]
    pub(super) fn for_entries(mut self, mut each: impl FnMut(Entry<'p, K, V>)) {
        let view = self.view;
        self.walk.for_each(Slot::value, hash_of, |_, id| each(view.entry(id)));
    }
}

impl<'p, K, V, S> Iterator for Iter<'p, K, V, S> {
    type Item = (&'p K, &'p V);

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.view.entry(self.walk.next(Slot::value, hash_of)?).pair())
    }

    #[inline]
    fn fold<B, F: FnMut(B, Self::Item) -> B>(self, initial: B, mut fold: F) -> B {
        let mut folded = Some(initial);
        self.for_entries(|entry| folded = folded.take().map(|folded| fold(folded, entry.pair())));
        folded.expect("it is folded")
    }
}

impl<K, V, S> FusedIterator for Iter<'_, K, V, S> {}

impl<'p, K, V, S, G> IntoIterator for &'p Pinned<'_, ConcurrentMap<K, V, S>, G>
where
    G: Protect<'p, 'p>,
{
    type Item = (&'p K, &'p V);
    type IntoIter = Iter<'p, K, V, S>;

    fn into_iter(self) -> Iter<'p, K, V, S> {
        self.iter()
    }
}

impl<K, V, S: Default> Default for ConcurrentMap<K, V, S> {
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

impl<K, V, S> Extend<(K, V)> for &ConcurrentMap<K, V, S>
where
    K: Eq + Hash + Send + 'static,
    V: Send + 'static,
    S: BuildHasher,
{
    /// Inserts all entries.
    ///
    /// # Panics
    ///
    /// If an insertion is refused: see [`Pinned::insert`].
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        self.pin().insert_all(entries, |pin, (key, value)| pin.insert(key, value).map(drop));
    }
}

impl<K, V, S> Extend<(K, V)> for ConcurrentMap<K, V, S>
where
    K: Eq + Hash + Send + 'static,
    V: Send + 'static,
    S: BuildHasher,
{
    /// Inserts all entries.
    ///
    /// # Panics
    ///
    /// If an insertion is refused: see [`Pinned::insert`].
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        (&*self).extend(entries);
    }
}

impl<K, V, S> FromIterator<(K, V)> for ConcurrentMap<K, V, S>
where
    K: Eq + Hash + Send + 'static,
    V: Send + 'static,
    S: BuildHasher + Default,
{
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::default();
        map.extend(entries);
        map
    }
}

impl<K, V, const N: usize> From<[(K, V); N]> for ConcurrentMap<K, V>
where
    K: Eq + Hash + Send + 'static,
    V: Send + 'static,
{
    fn from(entries: [(K, V); N]) -> Self {
        Self::from_iter(entries)
    }
}

impl<K, V, S> fmt::Debug for ConcurrentMap<K, V, S>
where
    K: Eq + Hash + Send + fmt::Debug + 'static,
    V: Send + fmt::Debug + 'static,
    S: BuildHasher,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pin().fmt(f)
    }
}

impl<K, V, S, G> fmt::Debug for Pinned<'_, ConcurrentMap<K, V, S>, G>
where
    K: fmt::Debug,
    V: fmt::Debug,
    G: Borrow<Guard>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let view = View { map: self.of, pin: self.epoch() };
        f.debug_map().entries(Iter::new(view)).finish()
    }
}

impl<K: fmt::Debug, V: fmt::Debug, S> fmt::Debug for Iter<'_, K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").finish_non_exhaustive()
    }
}
