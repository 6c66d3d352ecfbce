//! Bursts: lookups in stages, so that the misses of one overlap with those of the others.
//!
//! The stages are those of the engine; here are the forms of the calls. The few keys whose entry is
//! not the first with its tag in its home group are looked up again by themselves at the end.

use core::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::TrashMap;
use crate::table::{BURST, Candidates};

impl<K: Eq + Hash, V, S: BuildHasher> TrashMap<K, V, S> {
    /// The values of several keys at once.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::TrashMap::from([("a", 1), ("b", 2)]);
    /// assert_eq!(map.get_many(["b", "c", "a"]), [Some(&2), None, Some(&1)]);
    /// ```
    #[must_use]
    pub fn get_many<Q, const N: usize>(&self, keys: [&Q; N]) -> [Option<&V>; N]
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.get_many_hashed(keys.map(|key| (self.hash_of(key), key)))
    }

    /// [`get_many`](Self::get_many) with the hashes given: see [`get_hashed`](Self::get_hashed).
    ///
    /// # Example
    ///
    /// ```
    /// let mut bytes = flowtable::TrashMap::from([(443_u16, 0), (53, 0)]);
    /// let packets = [&443, &53].map(|port| (bytes.hash_of(port), port));
    /// for (flow, length) in bytes.get_many_mut_hashed(packets).into_iter().zip([60, 80]) {
    ///     *flow.unwrap() += length;
    /// }
    /// assert_eq!(bytes.get_many_hashed(packets), [Some(&60), Some(&80)]);
    /// ```
    #[must_use]
    pub fn get_many_hashed<Q, const N: usize>(&self, keys: [(u64, &Q); N]) -> [Option<&V>; N]
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let mut found = [None; N];
        let hashes = keys.map(|(hash, _)| hash);
        let bursts = hashes.chunks(BURST).zip(keys.chunks(BURST)).zip(found.chunks_mut(BURST));
        for ((hashes, keys), found) in bursts {
            let mut own = [0; BURST];
            let matches =
                self.matches(self.own_hashes(hashes, keys.iter().map(|key| key.1), &mut own));
            for ((&(hash, key), entry), found) in keys.iter().zip(&matches).zip(found) {
                *found = self.compare(*entry, hash, key);
            }
        }
        found
    }

    /// Returns mutable references to the values of several keys.
    ///
    /// For a burst in which a key may come twice, as it does among packets, take
    /// [`get_batch_mut`](Self::get_batch_mut).
    ///
    /// # Panics
    ///
    /// If two keys have the same entry.
    ///
    /// # Example
    ///
    /// ```
    /// let mut tokens = flowtable::TrashMap::from([("a", 5), ("b", 0)]);
    /// if let [Some(from), Some(to)] = tokens.get_many_mut(["a", "b"]) {
    ///     (*from, *to) = (*from - 2, *to + 2);
    /// }
    /// assert_eq!((tokens["a"], tokens["b"]), (3, 2));
    /// ```
    #[must_use]
    pub fn get_many_mut<Q, const N: usize>(&mut self, keys: [&Q; N]) -> [Option<&mut V>; N]
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.get_many_mut_hashed(keys.map(|key| (self.hash_of(key), key)))
    }

    /// [`get_many_mut`](Self::get_many_mut) with the hashes given: see
    /// [`get_hashed`](Self::get_hashed).
    ///
    /// # Panics
    ///
    /// If two keys have the same entry.
    #[must_use]
    pub fn get_many_mut_hashed<Q, const N: usize>(
        &mut self,
        keys: [(u64, &Q); N],
    ) -> [Option<&mut V>; N]
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let hashes = keys.map(|(hash, _)| hash);
        for (hashes, keys) in hashes.chunks(BURST).zip(keys.chunks(BURST)) {
            self.matches(self.own_hashes(hashes, keys.iter().map(|key| key.1), &mut [0; BURST]));
        }
        self.prepare_all(&keys);
        let at = keys.map(|(hash, key)| {
            let hash = if self.rekeyed.is_some() { self.own_hash(key) } else { hash };
            self.current().locate(hash, |(own, _)| key.equivalent(own))
        });
        let found = self.current_table_mut().get_many_mut(at);
        found.map(|entry| entry.map(|(_, value)| value))
    }

    /// Returns mutable references to the values of several keys.
    ///
    /// The name that `std` has for [`get_many_mut`](Self::get_many_mut).
    ///
    /// # Panics
    ///
    /// If two keys have the same entry.
    ///
    /// # Example
    ///
    /// ```
    /// let mut map = flowtable::TrashMap::from([("a", 1), ("b", 2)]);
    /// assert_eq!(map.get_disjoint_mut(["b", "c"]), [Some(&mut 2), None]);
    /// ```
    #[must_use]
    pub fn get_disjoint_mut<Q, const N: usize>(&mut self, keys: [&Q; N]) -> [Option<&mut V>; N]
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.get_many_mut(keys)
    }

    /// Calls `each` with the index of each key in the slice and its value, in the order of the
    /// slice.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::TrashMap::from([(80_u16, 1), (443, 2)]);
    /// let mut sum = 0;
    /// map.get_batch_with(&[443, 53, 443], |_, value| sum += value.unwrap_or(&0));
    /// assert_eq!(sum, 4);
    /// ```
    pub fn get_batch_with<'a, Q>(&'a self, keys: &[Q], mut each: impl FnMut(usize, Option<&'a V>))
    where
        Q: Hash + Equivalent<K>,
    {
        for (burst, keys) in keys.chunks(BURST).enumerate() {
            let mut hashes = [0; BURST];
            hashes.iter_mut().zip(keys).for_each(|(hash, key)| *hash = self.hash_of(key));
            let matches =
                self.matches(self.own_hashes(&hashes[..keys.len()], keys.iter(), &mut [0; BURST]));
            for (at, ((&hash, key), entry)) in hashes.iter().zip(keys).zip(&matches).enumerate() {
                each(burst * BURST + at, self.compare(*entry, hash, key));
            }
        }
    }

    /// The values of a burst of keys, each put where its key is in the slice.
    ///
    /// # Panics
    ///
    /// If there are not as many places as keys.
    ///
    /// # Example
    ///
    /// ```
    /// let map: flowtable::TrashMap<u32, u32> = (0..1000).map(|key| (key, key + 1)).collect();
    /// let packets = [3, 2000, 3];
    /// let mut found = [None; 3];
    /// map.get_batch(&packets, &mut found);
    /// assert_eq!(found, [Some(&4), None, Some(&4)]);
    /// ```
    pub fn get_batch<'a, Q>(&'a self, keys: &[Q], found: &mut [Option<&'a V>])
    where
        Q: Hash + Equivalent<K>,
    {
        assert_eq!(keys.len(), found.len(), "a place for each key");
        for (keys, found) in keys.chunks(BURST).zip(found.chunks_mut(BURST)) {
            let mut hashes = [0; BURST];
            hashes.iter_mut().zip(keys).for_each(|(hash, key)| *hash = self.hash_of(key));
            self.get_burst(&hashes[..keys.len()], keys, found);
        }
    }

    /// [`get_batch`](Self::get_batch) with the hashes given: see [`get_hashed`](Self::get_hashed).
    ///
    /// # Panics
    ///
    /// If there are not as many hashes and places as keys.
    pub fn get_batch_hashed<'a, Q>(
        &'a self,
        hashes: &[u64],
        keys: &[Q],
        found: &mut [Option<&'a V>],
    ) where
        Q: Hash + Equivalent<K>,
    {
        assert_eq!(keys.len(), hashes.len(), "a hash for each key");
        assert_eq!(keys.len(), found.len(), "a place for each key");
        let bursts = hashes.chunks(BURST).zip(keys.chunks(BURST)).zip(found.chunks_mut(BURST));
        for ((hashes, keys), found) in bursts {
            self.get_burst(hashes, keys, found);
        }
    }

    /// Calls `each` with the number of each key in the slice and a mutable reference to its value:
    /// in the order of the slice, so that a key may come twice.
    ///
    /// # Example
    ///
    /// ```
    /// let mut bytes = flowtable::TrashMap::from([(80_u16, 0), (443, 0)]);
    /// let (ports, lengths) = ([443, 53, 443], [100, 200, 300]);
    /// let mut unknown = vec![];
    /// bytes.get_batch_mut(&ports, |packet, flow| match flow {
    ///     Some(bytes) => *bytes += lengths[packet],
    ///     None => unknown.push(packet),
    /// });
    /// assert_eq!((bytes[&443], unknown), (400, vec![1]));
    /// ```
    pub fn get_batch_mut<Q>(&mut self, keys: &[Q], mut each: impl FnMut(usize, Option<&mut V>))
    where
        Q: Hash + Equivalent<K>,
    {
        for (burst, keys) in keys.chunks(BURST).enumerate() {
            let mut hashes = [0; BURST];
            hashes.iter_mut().zip(keys).for_each(|(hash, key)| *hash = self.hash_of(key));
            self.get_burst_mut(&hashes[..keys.len()], keys, burst * BURST, &mut each);
        }
    }

    /// [`get_batch_mut`](Self::get_batch_mut) with the hashes given: see
    /// [`get_hashed`](Self::get_hashed).
    ///
    /// # Panics
    ///
    /// If there are not as many hashes as keys.
    pub fn get_batch_mut_hashed<Q>(
        &mut self,
        hashes: &[u64],
        keys: &[Q],
        mut each: impl FnMut(usize, Option<&mut V>),
    ) where
        Q: Hash + Equivalent<K>,
    {
        assert_eq!(keys.len(), hashes.len(), "a hash for each key");
        for (burst, (hashes, keys)) in hashes.chunks(BURST).zip(keys.chunks(BURST)).enumerate() {
            self.get_burst_mut(hashes, keys, burst * BURST, &mut each);
        }
    }

    /// Inserts all entries, and passes each replaced value to the closure with the number of the
    /// entry.
    ///
    /// # Example
    ///
    /// ```
    /// let mut map = flowtable::TrashMap::from([(1, 'a')]);
    /// map.insert_batch([(0, 'x'), (1, 'y')], |number, old| assert_eq!((number, old), (1, 'a')));
    /// assert_eq!(map.len(), 2);
    /// ```
    pub fn insert_batch(
        &mut self,
        entries: impl IntoIterator<Item = (K, V)>,
        replaced: impl FnMut(usize, V),
    ) {
        let entries = entries.into_iter();
        self.insert_bursts(entries.map(|(key, value)| (None, key, value)), replaced);
    }

    /// [`insert_batch`](Self::insert_batch) with the hashes given: see
    /// [`get_hashed`](Self::get_hashed).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::TrashMap;
    ///
    /// let mut bytes: TrashMap<u16, u32> = TrashMap::new();
    /// let ports = [443, 53, 443];
    /// let hashes = ports.map(|port| bytes.hash_of(&port)); // once, where packets come in
    /// let flows = hashes.into_iter().zip(ports).map(|(hash, port)| (hash, port, 0));
    /// bytes.insert_batch_hashed(flows, |_, _| ());
    /// bytes.get_batch_mut_hashed(&hashes, &ports, |_, flow| *flow.unwrap() += 100);
    /// let mut found = [None; 3];
    /// bytes.get_batch_hashed(&hashes, &ports, &mut found);
    /// assert_eq!(found, [Some(&200), Some(&100), Some(&200)]);
    /// ```
    pub fn insert_batch_hashed(
        &mut self,
        entries: impl IntoIterator<Item = (u64, K, V)>,
        replaced: impl FnMut(usize, V),
    ) {
        let entries = entries.into_iter();
        self.insert_bursts(entries.map(|(hash, key, value)| (Some(hash), key, value)), replaced);
    }

    /// Prefetches the tags that an operation with this hash begins with.
    #[inline]
    pub(crate) fn prefetch_bucket(&self, hash: u64) {
        self.table.prefetch_group(hash);
    }

    /// Prefetches the entry that may have this hash; its tags should be in the cache already. In a
    /// map that has rekeyed nothing is gained.
    #[inline]
    pub(crate) fn prefetch_entry(&self, hash: u64) {
        self.table.prefetch_entry(hash);
    }

    /// The hashes of some keys in the table: those of the hasher, which are given, or the secret's.
    #[inline]
    fn own_hashes<'h, 'k, Q>(
        &self,
        hashes: &'h [u64],
        keys: impl Iterator<Item = &'k Q>,
        own: &'h mut [u64; BURST],
    ) -> &'h [u64]
    where
        Q: Hash + ?Sized + 'k,
    {
        if self.rekeyed.is_none() {
            return hashes;
        }
        own.iter_mut().zip(keys).for_each(|(own, key)| *own = self.own_hash(key));
        &own[..hashes.len()]
    }

    /// The first two stages. While entries are moved from an old table there are no candidates.
    #[inline]
    fn matches(&self, hashes: &[u64]) -> Candidates<'_, (K, V)> {
        if self.old_table().is_some() {
            return [None; BURST];
        }
        self.current().candidates(hashes)
    }

    /// The last stage.
    #[inline]
    fn compare<'a, Q>(&'a self, entry: Option<&'a (K, V)>, hash: u64, key: &Q) -> Option<&'a V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        match entry {
            Some((own, value)) if key.equivalent(own) => Some(value),
            _ => self.get_hashed(hash, key),
        }
    }

    #[inline]
    fn get_burst<'a, Q>(&'a self, hashes: &[u64], keys: &[Q], found: &mut [Option<&'a V>])
    where
        Q: Hash + Equivalent<K>,
    {
        let matches = self.matches(self.own_hashes(hashes, keys.iter(), &mut [0; BURST]));
        for (((&hash, key), entry), found) in hashes.iter().zip(keys).zip(&matches).zip(found) {
            *found = self.compare(*entry, hash, key);
        }
    }

    fn get_burst_mut<Q>(
        &mut self,
        hashes: &[u64],
        keys: &[Q],
        first: usize,
        each: &mut impl FnMut(usize, Option<&mut V>),
    ) where
        Q: Hash + Equivalent<K>,
    {
        self.matches(self.own_hashes(hashes, keys.iter(), &mut [0; BURST]));
        for (number, (&hash, key)) in hashes.iter().zip(keys).enumerate() {
            each(first + number, self.get_mut_hashed(hash, key));
        }
    }

    fn insert_bursts(
        &mut self,
        mut entries: impl Iterator<Item = (Option<u64>, K, V)>,
        mut replaced: impl FnMut(usize, V),
    ) {
        let mut number = 0;
        loop {
            let mut burst = [const { None }; BURST];
            for (place, (hash, key, value)) in burst.iter_mut().zip(entries.by_ref()) {
                *place = Some((hash.unwrap_or_else(|| self.hash_of(&key)), key, value));
            }
            let is_last = burst[BURST - 1].is_none();
            let (mut hashes, mut own) = ([0; BURST], [0; BURST]);
            for (hash, entry) in hashes.iter_mut().zip(burst.iter().flatten()) {
                *hash = entry.0;
            }
            let hashes = &hashes[..burst.iter().flatten().count()];
            let keys = burst.iter().flatten().map(|(_, key, _)| key);
            self.matches(self.own_hashes(hashes, keys, &mut own));
            for (hash, key, value) in burst.into_iter().flatten() {
                if let Some(old) = self.insert_hashed(hash, key, value) {
                    replaced(number, old);
                }
                number += 1;
            }
            if is_last {
                return;
            }
        }
    }
}
