//! Parallel iterators over maps, sets and tables: the feature `rayon`.
//!
//! The traits of rayon give the methods `par_iter`, `par_iter_mut`, `into_par_iter`, `par_extend`
//! and `collect`. Threads share the entries by segments, some 600 entries each: so a table of one
//! segment is visited by one thread. Insertions are done by one thread, in bursts, when the entries
//! have been computed.

use core::hash::{BuildHasher, Hash};

use rayon::iter::plumbing::{Folder, UnindexedConsumer, UnindexedProducer, bridge_unindexed};
use rayon::iter::{FromParallelIterator, IntoParallelIterator, ParallelExtend, ParallelIterator};

use super::iter::Both;
use super::{IntoIter, IntoKeys, Iter, IterMut, Keys, TrashMap, TrashSet, TrashTable, table};
use crate::memory::Allocator;
use crate::table::Split;

/// A parallel iterator over what the iterator `I` returns.
///
/// # Example
///
/// ```
/// use flowtable::TrashMap;
/// use rayon::prelude::*;
///
/// let flows = (0..10_000).into_par_iter();
/// let mut bytes: TrashMap<u32, u64> = flows.map(|flow| (flow, 64)).collect();
/// bytes.par_iter_mut().for_each(|(&flow, bytes)| *bytes += u64::from(flow % 2));
/// bytes.par_extend([(10_000, 1000)]);
/// assert_eq!(bytes.par_values().sum::<u64>(), 10_000 * 64 + 5000 + 1000);
/// assert_eq!(bytes.par_keys().max(), Some(&10_000));
/// bytes.par_values_mut().for_each(|bytes| *bytes -= 64);
/// let some: TrashMap<u32, u64> = bytes.par_drain().filter(|entry| entry.1 > 0).collect();
/// assert_eq!((some.len(), bytes.len()), (5001, 0));
///
/// let mut ports: flowtable::TrashSet<u16> = (1..1024).into_par_iter().collect();
/// let odd = ports.par_iter().filter(|port| **port % 2 == 1).count();
/// assert_eq!((odd, ports.par_drain().count()), (512, 1023));
///
/// let mut table = flowtable::TrashTable::new();
/// table.insert_unique(7, "an entry", |_| 7);
/// assert_eq!(table.par_drain().map(str::len).sum::<usize>(), 8);
/// ```
#[derive(Clone, Debug)]
pub struct Parallel<I>(I);

/// A part of the entries for one thread.
struct Part<I>(I);

impl<I: Split> UnindexedProducer for Part<I> {
    type Item = I::Item;

    fn split(self) -> (Self, Option<Self>) {
        let (part, other) = self.0.split();
        (Self(part), other.map(Self))
    }

    fn fold_with<F: Folder<I::Item>>(self, folder: F) -> F {
        folder.consume_iter(self.0)
    }
}

impl<Entries: Split + ExactSizeIterator> Split for Both<Entries> {
    fn split(self) -> (Self, Option<Self>) {
        let both = |current| Self { current, old: None };
        if let Some(old) = self.old {
            return (both(self.current), Some(both(old)));
        }
        let (part, other) = self.current.split();
        (both(part), other.map(both))
    }
}

impl<'a, K: Sync, V: Sync> ParallelIterator for Parallel<Iter<'a, K, V>> {
    type Item = (&'a K, &'a V);

    fn drive_unindexed<C: UnindexedConsumer<Self::Item>>(self, consumer: C) -> C::Result {
        let entries = Parallel(self.0.entries);
        entries.map(|(key, value)| (key, value)).drive_unindexed(consumer)
    }
}

impl<'a, K: Send, V: Send> ParallelIterator for Parallel<IterMut<'a, K, V>>
where
    K: Sync,
{
    type Item = (&'a K, &'a mut V);

    fn drive_unindexed<C: UnindexedConsumer<Self::Item>>(self, consumer: C) -> C::Result {
        let entries = Parallel(self.0.entries);
        entries.map(|(key, value)| (&*key, value)).drive_unindexed(consumer)
    }
}

impl<K: Send, V: Send, A> ParallelIterator for Parallel<IntoIter<K, V, A>>
where
    A: Allocator + Clone + Send,
{
    type Item = (K, V);

    fn drive_unindexed<C: UnindexedConsumer<Self::Item>>(self, consumer: C) -> C::Result {
        let Both { mut current, mut old } = self.0.entries;
        let old = old.as_mut().map(table::IntoIter::removed);
        bridge_unindexed(Part(Both { current: current.removed(), old }), consumer)
    }
}

impl<'a, T: Sync> ParallelIterator for Parallel<Keys<'a, T, ()>> {
    type Item = &'a T;

    fn drive_unindexed<C: UnindexedConsumer<Self::Item>>(self, consumer: C) -> C::Result {
        Parallel(self.0.0).map(|(value, ())| value).drive_unindexed(consumer)
    }
}

impl<T: Send, A: Allocator + Clone + Send> ParallelIterator for Parallel<IntoKeys<T, (), A>> {
    type Item = T;

    fn drive_unindexed<C: UnindexedConsumer<Self::Item>>(self, consumer: C) -> C::Result {
        Parallel(self.0.0).map(|(value, ())| value).drive_unindexed(consumer)
    }
}

impl<I: Split + ExactSizeIterator> ParallelIterator for Parallel<Both<I>> {
    type Item = I::Item;

    fn drive_unindexed<C: UnindexedConsumer<Self::Item>>(self, consumer: C) -> C::Result {
        bridge_unindexed(Part(self.0), consumer)
    }
}

impl<'a, T: Sync> ParallelIterator for Parallel<table::Iter<'a, T>> {
    type Item = &'a T;

    fn drive_unindexed<C: UnindexedConsumer<Self::Item>>(self, consumer: C) -> C::Result {
        bridge_unindexed(Part(self.0), consumer)
    }
}

impl<'a, T: Send> ParallelIterator for Parallel<table::IterMut<'a, T>> {
    type Item = &'a mut T;

    fn drive_unindexed<C: UnindexedConsumer<Self::Item>>(self, consumer: C) -> C::Result {
        bridge_unindexed(Part(self.0), consumer)
    }
}

impl<T: Send, A: Allocator + Clone + Send> ParallelIterator for Parallel<table::IntoIter<T, A>> {
    type Item = T;

    fn drive_unindexed<C: UnindexedConsumer<Self::Item>>(mut self, consumer: C) -> C::Result {
        bridge_unindexed(Part(self.0.removed()), consumer)
    }
}

/// Implements the conversion of a structure into the parallel form of its iterator.
macro_rules! into_parallel {
    ($([$($generics:tt)*] $structure:ty => $iterator:ty;)*) => {$(
        impl<$($generics)*> IntoParallelIterator for $structure
        where
            Parallel<$iterator>: ParallelIterator<Item = <$iterator as Iterator>::Item>,
            <$iterator as Iterator>::Item: Send,
        {
            type Item = <$iterator as Iterator>::Item;
            type Iter = Parallel<$iterator>;

            fn into_par_iter(self) -> Self::Iter {
                Parallel(self.into_iter())
            }
        }
    )*};
}

into_parallel! {
    ['a, K, V, S, A: Allocator + Clone] &'a TrashMap<K, V, S, A> => Iter<'a, K, V>;
    ['a, K, V, S, A: Allocator + Clone] &'a mut TrashMap<K, V, S, A> => IterMut<'a, K, V>;
    [K, V, S, A: Allocator + Clone] TrashMap<K, V, S, A> => IntoIter<K, V, A>;
    ['a, T, S, A: Allocator + Clone] &'a TrashSet<T, S, A> => Keys<'a, T, ()>;
    [T, S, A: Allocator + Clone] TrashSet<T, S, A> => IntoKeys<T, (), A>;
    ['a, T, A: Allocator + Clone] &'a TrashTable<T, A> => table::Iter<'a, T>;
    ['a, T, A: Allocator + Clone] &'a mut TrashTable<T, A> => table::IterMut<'a, T>;
    [T, A: Allocator + Clone] TrashTable<T, A> => table::IntoIter<T, A>;
}

/// Inserts all entries, which threads compute first.
fn extend<T: Send>(target: &mut impl Extend<T>, entries: impl IntoParallelIterator<Item = T>) {
    let parts = entries.into_par_iter().collect_vec_list();
    parts.into_iter().for_each(|part| target.extend(part));
}

impl<T: Send, K, V, S, A: Allocator + Clone> ParallelExtend<T> for TrashMap<K, V, S, A>
where
    Self: Extend<T>,
{
    fn par_extend<I: IntoParallelIterator<Item = T>>(&mut self, entries: I) {
        extend(self, entries);
    }
}

impl<U: Send, T, S, A: Allocator + Clone> ParallelExtend<U> for TrashSet<T, S, A>
where
    Self: Extend<U>,
{
    fn par_extend<I: IntoParallelIterator<Item = U>>(&mut self, values: I) {
        extend(self, values);
    }
}

impl<K, V, S: BuildHasher + Default> FromParallelIterator<(K, V)> for TrashMap<K, V, S>
where
    K: Eq + Hash + Send,
    V: Send,
{
    fn from_par_iter<I: IntoParallelIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::default();
        map.par_extend(entries);
        map
    }
}

impl<T, S: BuildHasher + Default> FromParallelIterator<T> for TrashSet<T, S>
where
    T: Eq + Hash + Send,
{
    fn from_par_iter<I: IntoParallelIterator<Item = T>>(values: I) -> Self {
        let mut set = Self::default();
        set.par_extend(values);
        set
    }
}

impl<K: Sync, V: Sync, S, A: Allocator + Clone> TrashMap<K, V, S, A> {
    /// Returns a parallel iterator over the keys.
    pub fn par_keys(&self) -> impl ParallelIterator<Item = &K> {
        Parallel(self.iter()).map(|(key, _)| key)
    }

    /// Returns a parallel iterator over the values.
    pub fn par_values(&self) -> impl ParallelIterator<Item = &V> {
        Parallel(self.iter()).map(|(_, value)| value)
    }
}

impl<K: Send + Sync, V: Send, S, A: Allocator + Clone> TrashMap<K, V, S, A> {
    /// Returns a parallel iterator over mutable references to the values.
    pub fn par_values_mut(&mut self) -> impl ParallelIterator<Item = &mut V> {
        Parallel(self.iter_mut()).map(|(_, value)| value)
    }
}

impl<K: Eq + Hash, V, S: BuildHasher, A: Allocator + Clone> TrashMap<K, V, S, A> {
    /// Removes all entries and returns a parallel iterator over them: see
    /// [`drain`](TrashMap::drain).
    pub fn par_drain(&mut self) -> Parallel<IntoIter<K, V, A>> {
        Parallel(self.drain())
    }
}

impl<T, S, A: Allocator + Clone> TrashSet<T, S, A> {
    /// Removes all values and returns a parallel iterator over them: see
    /// [`drain`](TrashSet::drain).
    pub fn par_drain(&mut self) -> Parallel<IntoKeys<T, (), A>> {
        Parallel(self.drain())
    }
}

impl<T, A: Allocator + Clone> TrashTable<T, A> {
    /// Removes all entries and returns a parallel iterator over them: see
    /// [`drain`](TrashTable::drain).
    pub fn par_drain(&mut self) -> Parallel<table::IntoIter<T, A>> {
        Parallel(self.drain())
    }
}
