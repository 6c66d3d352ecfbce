//! Pinned tables: the methods that read.

use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};

use bytemuck::NoUninit;

use super::ConcurrentTable;
use super::storage::Inline;
use crate::concurrent::engine::{Group, Segment};
use crate::concurrent::guard::{Guard, pin};
use crate::concurrent::policy::mix;
use crate::hash::DefaultHashBuilder;
use crate::raw::prefetch::BURST;
use crate::raw::results::results_for;

/// A pinned [`ConcurrentTable`], with the methods of a map: see [`pin`](ConcurrentTable::pin).
///
/// It owns its guard, or borrows one of type `G = &Guard` that it shares with other structures: see
/// [`pinned`](ConcurrentTable::pinned). A pin is bound to its thread. It does not block writers,
/// its own thread included.
///
/// # Example
///
/// ```
/// let table = flowtable::ConcurrentTable::new();
/// let pin = table.pin();
/// pin.insert(80_u16, 1_u64)?;
/// assert_eq!((pin.fetch_add(&80, 2), pin.get(&80)), (Some(1), Some(3)));
/// # Ok::<(), flowtable::concurrent::Refused>(())
/// ```
pub struct PinnedTable<'t, K, V, S = DefaultHashBuilder, G = Guard> {
    pub(super) table: &'t ConcurrentTable<K, V, S>,
    guard: G,
}

impl<'t, K, V, S> PinnedTable<'t, K, V, S> {
    #[inline]
    pub(super) fn new(table: &'t ConcurrentTable<K, V, S>) -> Self {
        Self { table, guard: pin() }
    }

    /// Ends the pin and begins another one, at a lower cost, which allows the collector to proceed.
    /// Other pins of the thread stay as they are.
    ///
    /// # Example
    ///
    /// ```
    /// let table = flowtable::ConcurrentTable::from([(1_u32, 10_u32), (2, 20)]);
    /// let mut pin = table.pin();
    /// for burst in [[1, 2], [2, 3]] {
    ///     assert_eq!(pin.get_many(burst.each_ref())[1], (burst[1] < 3).then_some(20));
    ///     pin.repin();
    /// }
    /// ```
    #[inline]
    pub fn repin(&mut self) {
        self.guard.repin();
    }
}

impl<'t, 'g, K, V, S> PinnedTable<'t, K, V, S, &'g Guard> {
    #[inline]
    pub(super) const fn of(table: &'t ConcurrentTable<K, V, S>, guard: &'g Guard) -> Self {
        Self { table, guard }
    }
}

impl<'t, K, V, S, G: Borrow<Guard>> PinnedTable<'t, K, V, S, G> {
    /// Returns the guard of the collector.
    #[inline]
    pub(super) fn epoch(&self) -> &crossbeam_epoch::Guard {
        self.guard.borrow().epoch()
    }

    /// Returns the table.
    #[must_use]
    pub fn table(&self) -> &'t ConcurrentTable<K, V, S> {
        self.table
    }

    /// Returns the number of entries: see [`ConcurrentTable::len`].
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns whether the table has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Returns the bytes that are retired and not freed yet: see [`ConcurrentTable::garbage`].
    #[must_use]
    pub fn garbage(&self) -> usize {
        self.table.garbage()
    }

    /// Returns the number of allocated bytes: see [`ConcurrentTable::allocation_size`].
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        self.table.allocation_size()
    }

    /// Returns the segment of a mixed hash.
    #[inline(always)]
    pub(super) fn segment(&self, mixed: u64) -> Segment<'_, Inline<K, V>> {
        self.table.engine.segment(mixed, self.epoch())
    }
}

/// Returns the value in a slot, if it has this key.
#[inline(always)]
fn value_of<K: NoUninit, V: NoUninit>(
    key: &K,
) -> impl Fn(Group<'_, Inline<K, V>>, usize) -> Option<V> + Copy {
    move |group, slot| group.has_key(slot, key).then(|| group.value(slot))
}

impl<K: NoUninit + Hash, V: NoUninit, S: BuildHasher, G: Borrow<Guard>>
    PinnedTable<'_, K, V, S, G>
{
    /// Returns the hash of `key` under the table's hasher, for the methods that take a hash.
    #[inline]
    pub fn hash_of(&self, key: &K) -> u64 {
        self.table.hasher.hash_one(key)
    }

    /// Returns a copy of the value of `key`. Wait-free.
    ///
    /// # Example
    ///
    /// ```
    /// let table = flowtable::ConcurrentTable::from([(1_u32, 10_u32)]);
    /// assert_eq!((table.pin().get(&1), table.pin().get(&2)), (Some(10), None));
    /// ```
    #[inline]
    #[must_use]
    pub fn get(&self, key: &K) -> Option<V> {
        self.get_hashed(self.hash_of(key), key)
    }

    /// Returns a copy of the value of `key`, given its hash.
    ///
    /// A hash other than [`hash_of`](Self::hash_of) the key does not find it, and an insertion with
    /// it may duplicate the key. To use the hash that a network card computes, give the table a
    /// hasher that computes the same.
    ///
    /// # Example
    ///
    /// ```
    /// let table = flowtable::ConcurrentTable::from([(1_u32, 10_u32)]);
    /// let pin = table.pin();
    /// assert_eq!(pin.get_hashed(pin.hash_of(&1), &1), Some(10));
    /// ```
    #[inline]
    #[must_use]
    pub fn get_hashed(&self, hash: u64, key: &K) -> Option<V> {
        let mixed = mix(hash);
        self.segment(mixed).find(hash, mixed, value_of(key))
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
    pub fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// Returns copies of the values of several keys. Each lookup is a read of its own; together
    /// they are not a snapshot.
    ///
    /// # Example
    ///
    /// ```
    /// let table = flowtable::ConcurrentTable::from([(1_u32, 10_u32), (2, 20)]);
    /// assert_eq!(table.pin().get_many([&2, &3, &1]), [Some(20), None, Some(10)]);
    /// ```
    #[must_use]
    pub fn get_many<const N: usize>(&self, keys: [&K; N]) -> [Option<V>; N] {
        let (keys, mut found) = (keys.map(|key| *key), [None; N]);
        self.get_batch(&keys, &mut found);
        found
    }

    /// Writes copies of the values of a burst of keys to `found`, in the order of the keys. What
    /// `found` has beyond that is set to `None`. The cache misses of 32 keys overlap. Each lookup
    /// is a read of its own; together they are not a snapshot.
    ///
    /// # Panics
    ///
    /// If `found` is shorter than `keys`.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::ConcurrentTable;
    ///
    /// let table: ConcurrentTable<u32, u32> = (0..1000).map(|key| (key, key + 1)).collect();
    /// let (pin, packets) = (table.pin(), [3, 2000, 3]);
    /// let mut found = [None; 3];
    /// pin.get_batch(&packets, &mut found);
    /// assert_eq!(found, [Some(4), None, Some(4)]);
    /// ```
    pub fn get_batch(&self, keys: &[K], found: &mut [Option<V>]) {
        let found = results_for(keys.len(), found);
        for (keys, found) in keys.chunks(BURST).zip(found.chunks_mut(BURST)) {
            self.get_burst(keys.iter().map(|key| self.hash_of(key)), keys, found);
        }
    }

    /// Writes copies of the values of a burst of keys to `found`, given their hashes: see
    /// [`get_hashed`](Self::get_hashed).
    ///
    /// # Panics
    ///
    /// If `hashes` and `keys` differ in length, or `found` is shorter.
    ///
    /// # Example
    ///
    /// ```
    /// let table = flowtable::ConcurrentTable::from([(1_u32, 10_u32), (2, 20)]);
    /// let (pin, packets) = (table.pin(), [2, 7]);
    /// let hashes = packets.map(|key| pin.hash_of(&key)); // once, when packets are received
    /// let mut found = [None; 2];
    /// pin.get_batch_hashed(&hashes, &packets, &mut found);
    /// assert_eq!(found, [Some(20), None]);
    /// ```
    pub fn get_batch_hashed(&self, hashes: &[u64], keys: &[K], found: &mut [Option<V>]) {
        assert_eq!(keys.len(), hashes.len(), "the slices of keys and hashes differ in length");
        let found = results_for(keys.len(), found);
        let bursts = hashes.chunks(BURST).zip(keys.chunks(BURST)).zip(found.chunks_mut(BURST));
        for ((hashes, keys), found) in bursts {
            self.get_burst(hashes.iter().copied(), keys, found);
        }
    }

    /// Looks up to [`BURST`] keys up, given their hashes: prefetches their groups, and then
    /// compares.
    #[inline]
    fn get_burst(&self, hashes: impl Iterator<Item = u64>, keys: &[K], found: &mut [Option<V>]) {
        let mut copies = [0; BURST];
        let mut homes: [Group<'_, Inline<K, V>>; BURST] = [self.segment(0).home(0); BURST];
        // Slices of one length: so the loops are not bounded by several.
        let (copies, homes) = (&mut copies[..found.len()], &mut homes[..found.len()]);
        for ((hash, copy), home) in hashes.zip(&mut *copies).zip(&mut *homes) {
            let mixed = mix(hash);
            (*copy, *home) = (hash, self.segment(mixed).home(mixed));
            home.prefetch();
            home.prefetch_second();
        }
        for (((&hash, home), key), found) in copies.iter().zip(homes).zip(keys).zip(found) {
            let value = value_of(key);
            *found = match home.first(hash).map(|slot| value(*home, slot)) {
                Some(Some(value)) => Some(value),
                None if !home.has_overflowed() => None,
                _ => self.segment(mix(hash)).find_further(hash, mix(hash), value),
            };
        }
    }
}
