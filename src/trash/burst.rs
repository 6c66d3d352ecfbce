//! Bursts: lookups in stages, so that the misses of one overlap with those of the others.
//!
//! The stages are those of the engine. One driver takes slices through them, 32 items at a time;
//! the forms of the calls differ in where keys and hashes are and in what is done with the results.
//! The few keys whose entry is not the first with its tag in its home group are looked up again by
//! themselves at the end.

use core::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::TrashMap;
use super::reseed::Reseeded;
use crate::memory::Allocator;
use crate::raw::prefetch::BURST;
use crate::raw::results::results_for;
use crate::table::Burst;

impl<K: Eq + Hash, V, S: BuildHasher, A: Allocator + Clone> TrashMap<K, V, S, A> {
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
        let each = |index: usize, value| found[index] = value;
        self.drive(&keys, |pair| pair.1, |_, _, pair| pair.0, each);
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
        for keys in keys.chunks(BURST) {
            self.hashes(0, keys.iter(), &|pair| pair.1, &|_, _, pair| pair.0);
        }
        self.prepare_all(&keys);
        let at = keys.map(|(hash, key)| {
            let hash = self.current_hash(hash, key);
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
    pub fn get_batch_with<'a, Q>(&'a self, keys: &[Q], each: impl FnMut(usize, Option<&'a V>))
    where
        Q: Hash + Equivalent<K>,
    {
        self.drive(keys, |key| key, |map, _, key| map.hash_of(key), each);
    }

    /// Calls `each` with the index of each key in the slice and its value, given the hashes: see
    /// [`get_hashed`](Self::get_hashed).
    ///
    /// # Panics
    ///
    /// If there are not as many hashes as keys.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::TrashMap::from([(80_u16, 1), (443, 2)]);
    /// let (ports, mut sum) = ([443, 53, 443], 0);
    /// let hashes = ports.map(|port| map.hash_of(&port));
    /// map.get_batch_with_hashed(&hashes, &ports, |_, value| sum += value.unwrap_or(&0));
    /// assert_eq!(sum, 4);
    /// ```
    pub fn get_batch_with_hashed<'a, Q>(
        &'a self,
        hashes: &[u64],
        keys: &[Q],
        each: impl FnMut(usize, Option<&'a V>),
    ) where
        Q: Hash + Equivalent<K>,
    {
        assert_eq!(keys.len(), hashes.len(), "a hash for each key");
        self.drive(keys, |key| key, |_, index, _| hashes[index], each);
    }

    /// Writes the values of a burst of keys to a slice, each at the index of its key. What the
    /// slice has beyond that is set to `None`.
    ///
    /// # Panics
    ///
    /// If the slice is shorter than that of the keys.
    ///
    /// # Example
    ///
    /// ```
    /// let map: flowtable::TrashMap<u32, u32> = (0..1000).map(|key| (key, key + 1)).collect();
    /// let mut found = [None; 32]; // for any burst
    /// map.get_batch(&[3, 2000, 3], &mut found);
    /// assert_eq!(found[..4], [Some(&4), None, Some(&4), None]);
    /// ```
    pub fn get_batch<'a, Q>(&'a self, keys: &[Q], found: &mut [Option<&'a V>])
    where
        Q: Hash + Equivalent<K>,
    {
        let found = results_for(keys.len(), found);
        self.get_batch_with(keys, |index, value| found[index] = value);
    }

    /// Writes the values of a burst of keys to a slice, like [`get_batch`](Self::get_batch), given
    /// the hashes: see [`get_hashed`](Self::get_hashed).
    ///
    /// # Panics
    ///
    /// If there are not as many hashes as keys, or the slice is shorter.
    pub fn get_batch_hashed<'a, Q>(
        &'a self,
        hashes: &[u64],
        keys: &[Q],
        found: &mut [Option<&'a V>],
    ) where
        Q: Hash + Equivalent<K>,
    {
        let found = results_for(keys.len(), found);
        self.get_batch_with_hashed(hashes, keys, |index, value| found[index] = value);
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
    pub fn get_batch_mut<Q>(&mut self, keys: &[Q], each: impl FnMut(usize, Option<&mut V>))
    where
        Q: Hash + Equivalent<K>,
    {
        self.drive_mut(keys, |map, _, key| map.hash_of(key), each);
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
        each: impl FnMut(usize, Option<&mut V>),
    ) where
        Q: Hash + Equivalent<K>,
    {
        assert_eq!(keys.len(), hashes.len(), "a hash for each key");
        self.drive_mut(keys, |_, index, _| hashes[index], each);
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

    /// Takes the keys of some items through all stages. `hash` returns the hash of an item by the
    /// map's hasher, given its index, and `key` its key; `each` is called with the results.
    #[inline]
    fn drive<'a, 'k, I, Q>(
        &'a self,
        items: &'k [I],
        key: impl Fn(&'k I) -> &'k Q,
        hash: impl Fn(&Self, usize, &'k I) -> u64,
        mut each: impl FnMut(usize, Option<&'a V>),
    ) where
        I: 'k,
        Q: Hash + Equivalent<K> + ?Sized + 'k,
    {
        let mut burst = Burst::new();
        for (chunk, items) in items.chunks(BURST).enumerate() {
            let first = chunk * BURST;
            self.stages(first, items.iter(), &key, &hash, &mut burst);
            let Burst { hashes, candidates } = &burst;
            for (at, ((item, &hash), &entry)) in
                items.iter().zip(hashes).zip(candidates).enumerate()
            {
                each(first + at, self.compare(entry, hash, key(item)));
            }
        }
    }

    /// Takes keys through the first stages, and calls `each` with mutable references to their
    /// values. As each of these calls may change the map, all comparisons come last.
    fn drive_mut<'k, Q>(
        &mut self,
        keys: &'k [Q],
        hash: impl Fn(&Self, usize, &'k Q) -> u64,
        mut each: impl FnMut(usize, Option<&mut V>),
    ) where
        Q: Hash + Equivalent<K>,
    {
        for (chunk, keys) in keys.chunks(BURST).enumerate() {
            let first = chunk * BURST;
            let hashes = self.hashes(first, keys.iter(), &|key| key, &hash);
            for (at, (key, &hash)) in keys.iter().zip(&hashes).enumerate() {
                each(first + at, self.get_mut_hashed(hash, key));
            }
        }
    }

    /// The first two stages, for at most [`BURST`] items. The hashes are those in the current
    /// table, which in a map that has reseeded are those of its seed. There are no candidates while
    /// entries are moved from an old table.
    #[inline(always)]
    fn stages<'a, 'k, I, Q>(
        &'a self,
        first: usize,
        items: impl Iterator<Item = &'k I>,
        key: &impl Fn(&'k I) -> &'k Q,
        hash: &impl Fn(&Self, usize, &'k I) -> u64,
        burst: &mut Burst<'a, (K, V)>,
    ) where
        I: 'k,
        Q: Hash + ?Sized + 'k,
    {
        match &self.reseeded {
            None => {
                let hash = |(at, item)| hash(self, first + at, item);
                self.table.find_candidates(items.enumerate().map(hash), burst);
            }
            Some(reseeded) => reseeded.stages(items.map(key), burst),
        }
    }

    /// The first two stages, for a caller that looks the entries up by their hashes.
    fn hashes<'k, I, Q>(
        &self,
        first: usize,
        items: impl Iterator<Item = &'k I>,
        key: &impl Fn(&'k I) -> &'k Q,
        hash: &impl Fn(&Self, usize, &'k I) -> u64,
    ) -> [u64; BURST]
    where
        I: 'k,
        Q: Hash + ?Sized + 'k,
    {
        let mut burst = Burst::new();
        self.stages(first, items, key, hash, &mut burst);
        burst.hashes
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

    /// Inserts entries, with their hashes if they are given.
    fn insert_bursts(
        &mut self,
        mut entries: impl Iterator<Item = (Option<u64>, K, V)>,
        mut replaced: impl FnMut(usize, V),
    ) {
        let mut index = 0;
        loop {
            let mut burst = [const { None }; BURST];
            for (place, entry) in burst.iter_mut().zip(entries.by_ref()) {
                *place = Some(entry);
            }
            let is_last = burst[BURST - 1].is_none();
            let hash_of = |map: &Self, _, entry: &(Option<u64>, K, V)| {
                entry.0.unwrap_or_else(|| map.hash_of(&entry.1))
            };
            let hashes = self.hashes(0, burst.iter().flatten(), &|entry| &entry.1, &hash_of);
            for ((_, key, value), hash) in burst.into_iter().flatten().zip(hashes) {
                if let Some(old) = self.insert_hashed(hash, key, value) {
                    replaced(index, old);
                }
                index += 1;
            }
            if is_last {
                return;
            }
        }
    }
}

impl<K, V, A: Allocator + Clone> Reseeded<K, V, A> {
    /// The first two stages in a map that has reseeded.
    #[cold]
    #[inline(never)]
    fn stages<'a, 'k, Q: Hash + ?Sized + 'k>(
        &'a self,
        keys: impl Iterator<Item = &'k Q>,
        burst: &mut Burst<'a, (K, V)>,
    ) {
        self.table.find_candidates(keys.map(|key| self.seed.hash_one(key)), burst);
        if self.old.is_some() {
            burst.candidates = [None; BURST];
        }
    }
}
