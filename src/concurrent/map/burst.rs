//! Bursts: lookups in stages, so that the cache misses of all keys overlap.
//!
//! As in [`TrashMap`](crate::TrashMap): all lines are prefetched, then all candidates, and then
//! keys are compared. Keys that are not the first candidate of their home are looked up singly.

use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::pinned::Pinned;
use super::storage::Ids;
use super::store::Store;
use crate::concurrent::engine::Group;
use crate::concurrent::guard::Guard;
use crate::concurrent::policy::mix;
use crate::raw::prefetch::BURST;
use crate::raw::results::results_for;

impl<K: Eq + Hash, V, S: BuildHasher, G: Borrow<Guard>> Pinned<'_, K, V, S, G> {
    /// Returns the values of several keys. Each lookup is a read of its own; together they are not
    /// a snapshot.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([("a", 1), ("b", 2)]);
    /// assert_eq!(map.pin().get_many(["b", "c", "a"]), [Some(&2), None, Some(&1)]);
    /// ```
    #[must_use]
    pub fn get_many<Q, const N: usize>(&self, keys: [&Q; N]) -> [Option<&V>; N]
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.get_many_hashed(keys.map(|key| (self.hash_of(key), key)))
    }

    /// Returns the values of several keys, given their hashes: see
    /// [`get_hashed`](Self::get_hashed).
    #[must_use]
    pub fn get_many_hashed<Q, const N: usize>(&self, keys: [(u64, &Q); N]) -> [Option<&V>; N]
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let mut found = [None; N];
        for (keys, found) in keys.chunks(BURST).zip(found.chunks_mut(BURST)) {
            self.get_burst(keys.iter().map(|key| key.0), keys.iter().map(|key| key.1), found);
        }
        found
    }

    /// Writes the values of a burst of keys to `found`, in the order of the keys. What `found` has
    /// beyond that is set to `None`. Each lookup is a read of its own; together they are not a
    /// snapshot.
    ///
    /// # Panics
    ///
    /// If `found` is shorter than `keys`.
    ///
    /// # Example
    ///
    /// ```
    /// let map: flowtable::ConcurrentMap<u32, u32> = (0..1000).map(|key| (key, key + 1)).collect();
    /// let (pin, packets) = (map.pin(), [3, 2000, 3]);
    /// let mut found = [None; 3];
    /// pin.get_batch(&packets, &mut found);
    /// assert_eq!(found, [Some(&4), None, Some(&4)]);
    /// ```
    pub fn get_batch<'p, Q>(&'p self, keys: &[Q], found: &mut [Option<&'p V>])
    where
        Q: Hash + Equivalent<K>,
    {
        let found = results_for(keys.len(), found);
        for (keys, found) in keys.chunks(BURST).zip(found.chunks_mut(BURST)) {
            self.get_burst(keys.iter().map(|key| self.hash_of(key)), keys, found);
        }
    }

    /// Writes the values of a burst of keys to `found`, given their hashes: see
    /// [`get_hashed`](Self::get_hashed).
    ///
    /// # Panics
    ///
    /// If `hashes` and `keys` differ in length, or `found` is shorter.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([("a", 1), ("b", 2)]);
    /// let (pin, packets) = (map.pin(), ["b", "x"]);
    /// let hashes = packets.map(|name| pin.hash_of(name)); // once, when packets are received
    /// let mut found = [None; 2];
    /// pin.get_batch_hashed(&hashes, &packets, &mut found);
    /// assert_eq!(found, [Some(&2), None]);
    /// assert_eq!(pin.get_many_hashed([(hashes[0], packets[0])]), [Some(&2)]);
    /// ```
    pub fn get_batch_hashed<'p, Q>(
        &'p self,
        hashes: &[u64],
        keys: &[Q],
        found: &mut [Option<&'p V>],
    ) where
        Q: Hash + Equivalent<K>,
    {
        assert_eq!(keys.len(), hashes.len(), "the slices of keys and hashes differ in length");
        let found = results_for(keys.len(), found);
        let bursts = hashes.chunks(BURST).zip(keys.chunks(BURST)).zip(found.chunks_mut(BURST));
        for ((hashes, keys), found) in bursts {
            self.get_burst(hashes.iter().copied(), keys, found);
        }
    }

    /// Looks up to [`BURST`] keys up, given their hashes.
    #[inline]
    fn get_burst<'p, 'k, Q>(
        &'p self,
        hashes: impl Iterator<Item = u64>,
        keys: impl IntoIterator<Item = &'k Q>,
        found: &mut [Option<&'p V>],
    ) where
        Q: Equivalent<K> + ?Sized + 'k,
    {
        let (map, pin, len) = (self.map, self.epoch(), found.len());
        let home = |mixed| map.engine.segment(mixed, pin).home(mixed);
        let mut mixed = [0; BURST];
        let mut homes: [Group<'_, Ids>; BURST] = [home(0); BURST];
        let mut candidates = [None; BURST];
        // Slices of one length: so the loops are not bounded by several.
        let mixed = &mut mixed[..len];
        let (homes, candidates) = (&mut homes[..len], &mut candidates[..len]);
        for ((hash, mixed), own) in hashes.zip(&mut *mixed).zip(&mut *homes) {
            *mixed = mix(hash);
            *own = home(*mixed);
            own.prefetch();
        }
        for ((&mixed, home), candidate) in mixed.iter().zip(&*homes).zip(&mut *candidates) {
            *candidate = home.first(mixed).map(|slot| map.entry(home.value(slot), pin).get());
            candidate.inspect(|entry| Store::prefetch(*entry));
        }
        let probed = mixed.iter().zip(homes).zip(candidates);
        for ((key, found), ((&mixed, home), candidate)) in keys.into_iter().zip(found).zip(probed) {
            *found = match candidate {
                Some(entry) if key.equivalent(&entry.0) => Some(&entry.1),
                None if !home.has_overflowed() => None,
                _ => self.find_further(mixed, key).map(|entry| &entry.get().1),
            };
        }
    }
}
