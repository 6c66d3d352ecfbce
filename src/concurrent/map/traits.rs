//! Traits of the standard library for concurrent maps.

use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};

use super::ConcurrentMap;
use super::iter::Iter;
use super::pinned::Pinned;
use crate::concurrent::guard::Guard;

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
    /// If there is more garbage than the limit allows: see [`Pinned::insert`].
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        let mut pin = self.pin();
        for (nth, (key, value)) in entries.into_iter().enumerate() {
            if let Err(error) = pin.insert(key, value) {
                panic!("{error}");
            }
            if nth % 32 == 31 {
                pin.repin();
            }
        }
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
    /// If there is more garbage than the limit allows: see [`Pinned::insert`].
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

impl<K: fmt::Debug, V: fmt::Debug, S, G: Borrow<Guard>> fmt::Debug for Pinned<'_, K, V, S, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: fmt::Debug, V: fmt::Debug, S> fmt::Debug for Iter<'_, K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").finish_non_exhaustive()
    }
}
