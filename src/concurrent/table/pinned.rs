//! Pinned tables: the methods that read.

use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};

use bytemuck::NoUninit;

use super::ConcurrentTable;
use super::storage::Inline;
use crate::concurrent::engine::{Group, Segment};
use crate::concurrent::pinned::{Guard, Pinned};
use crate::concurrent::policy::mix;
use crate::hash::Query;
use crate::raw::prefetch::BURST;

impl<K, V, S, G: Borrow<Guard>> Pinned<'_, ConcurrentTable<K, V, S>, G> {
    /// Returns the segment of a mixed hash.
    #[inline]
    pub(super) fn segment(&self, mixed: u64) -> Segment<'_, Inline<K, V>> {
        self.of.engine.segment(mixed, self.epoch())
    }
}

/// Returns the value in a slot, if it has this key.
#[inline]
fn value_of<K: NoUninit, V: NoUninit>(
    key: &K,
) -> impl Fn(Group<'_, Inline<K, V>>, usize) -> Option<V> + Copy {
    move |group, slot| group.has_key(slot, key).then(|| group.value(slot))
}

impl<K, V, S, G> Pinned<'_, ConcurrentTable<K, V, S>, G>
where
    K: NoUninit + Eq + Hash,
    V: NoUninit,
    S: BuildHasher,
    G: Borrow<Guard>,
{
    /// Returns a copy of the value of `key`. Wait-free.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ConcurrentTable, Prehashed};
    ///
    /// let table = ConcurrentTable::from([(1_u32, 10_u32)]);
    /// assert_eq!((table.pin().get(&1), table.pin().get(&2)), (Some(10), None));
    /// let key = Prehashed { hash: table.hash_of(&1), key: &1 }; // once for what follows
    /// assert_eq!(table.pin().get(key), Some(10));
    /// ```
    #[inline]
    #[must_use]
    pub fn get(&self, key: impl Query<K, Key = K>) -> Option<V> {
        let hash = key.hash_with(&self.of.hasher);
        let mixed = mix(hash);
        self.segment(mixed).find(hash, mixed, value_of(key.key()))
    }

    /// Returns whether the table contains `key`.
    ///
    /// # Example
    ///
    /// ```
    /// let table = flowtable::ConcurrentTable::from([(1_u32, 10_u32)]);
    /// assert!(!table.pin().contains_key(&2));
    /// ```
    #[inline]
    #[must_use]
    pub fn contains_key(&self, key: impl Query<K, Key = K>) -> bool {
        self.get(key).is_some()
    }

    /// Calls `each` with the index of each key and a copy of its value, in the order of the keys.
    /// Each lookup is a read of its own; together they are not a snapshot.
    ///
    /// The cache misses of 32 lookups overlap, in a table of more than 2 MiB. The iterator is
    /// cloned, and yields each key three times, to hash and to compare them. For results in a slice
    /// or array, pass [`write_to`](crate::write_to).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ConcurrentTable, write_to};
    ///
    /// let table: ConcurrentTable<u32, u32> = (0..1000).map(|key| (key, key + 1)).collect();
    /// let (pin, packets) = (table.pin(), [3, 2000, 3]);
    /// let mut found = [None; 3];
    /// pin.get_batch(&packets, write_to(&mut found));
    /// assert_eq!(found, [Some(4), None, Some(4)]);
    /// ```
    pub fn get_batch<I>(&self, keys: I, mut each: impl FnMut(usize, Option<V>))
    where
        I: IntoIterator<Item: Query<K, Key = K>, IntoIter: Clone>,
    {
        if self.of.engine.is_small(0, self.epoch()) {
            return keys.into_iter().enumerate().for_each(|(at, key)| each(at, self.get(key)));
        }
        let mut hashes = [0; BURST];
        let mut homes: [Group<'_, Inline<K, V>>; BURST] = [self.segment(0).home(0); BURST];
        let (mut keys, mut first) = (keys.into_iter(), 0);
        loop {
            // Clones of an iterator over a slice make counted loops.
            let mut count = 0;
            for ((own, home), key) in hashes.iter_mut().zip(&mut homes).zip(keys.clone()) {
                let hash = key.hash_with(&self.of.hasher);
                let mixed = mix(hash);
                (*own, *home) = (hash, self.segment(mixed).home(mixed));
                home.prefetch();
                home.prefetch_second();
                count += 1;
            }
            let lookups = hashes.iter().zip(&homes).zip(keys.clone());
            for (at, ((&hash, home), key)) in lookups.enumerate() {
                let value = value_of(key.key());
                let found = match home.first(hash).map(|slot| value(*home, slot)) {
                    Some(Some(value)) => Some(value),
                    None if !home.has_overflowed() => None,
                    _ => self.segment(mix(hash)).find_further(hash, mix(hash), value),
                };
                each(first + at, found);
            }
            if count < BURST || keys.nth(BURST - 1).is_none() {
                return;
            }
            first += BURST;
        }
    }
}
