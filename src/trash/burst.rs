//! Bursts: lookups in stages, so that their cache misses overlap.
//!
//! The engine defines the stages. Two drivers take queries through them, 32 at a time: one
//! compares all entries at the end, the other, for mutable references, looks each key up again,
//! since the closure may change the map. The few keys whose entry is not the first with its tag in
//! its home group are looked up again by themselves at the end.

use core::array::from_fn;
use core::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::TrashMap;
use super::reseed::Reseeded;
use crate::hash::Query;
use crate::memory::Allocator;
use crate::raw::prefetch::BURST;
use crate::table::Burst;

impl<K: Eq + Hash, V, S: BuildHasher, A: Allocator + Clone> TrashMap<K, V, S, A> {
    /// Calls `each` with the index of each key and its value, in the order of the keys.
    ///
    /// The cache misses of 32 lookups overlap. The iterator is cloned, and yields each key three
    /// times, to hash and to compare them: it should be cheap, as over a slice. For results in a
    /// slice or array, pass [`write_to`](crate::write_to).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prehashed, TrashMap, write_to};
    ///
    /// let map = TrashMap::from([(80_u16, 1), (443, 2)]);
    /// let (ports, mut sum) = ([443, 53, 443], 0);
    /// map.get_batch(&ports, |_, value| sum += value.unwrap_or(&0));
    /// assert_eq!(sum, 4);
    ///
    /// let mut found = [None; 3];
    /// map.get_batch(&ports, write_to(&mut found));
    /// assert_eq!(found, [Some(&2), None, Some(&2)]);
    ///
    /// let hashed = ports.map(|key| Prehashed { hash: map.hash_of(&key), key });
    /// let hashed = hashed.iter().map(Prehashed::as_ref);
    /// map.get_batch(hashed, |at, value| assert_eq!(value, found[at]));
    /// ```
    pub fn get_batch<'a, I>(&'a self, keys: I, mut each: impl FnMut(usize, Option<&'a V>))
    where
        I: IntoIterator<Item: Query<K>, IntoIter: Clone>,
    {
        let mut keys = keys.into_iter();
        let (mut burst, mut first) = (Burst::new(), 0);
        loop {
            // Clones of an iterator over a slice make counted loops.
            let count = self.stages(keys.clone(), &mut burst);
            let lookups = burst.hashes.iter().zip(&burst.candidates).zip(keys.clone());
            for (at, ((&hash, &entry), query)) in lookups.enumerate() {
                let key = query.key();
                let found = match entry {
                    Some((own, value)) if key.equivalent(own) => Some(value),
                    _ => self.find_of_burst(hash, &query).map(|(_, value)| value),
                };
                each(first + at, found);
            }
            if count < BURST || keys.nth(BURST - 1).is_none() {
                return;
            }
            first += BURST;
        }
    }

    /// Calls `each` with the index of each key and a mutable reference to its value, in the order
    /// of the keys, so that a key may come twice.
    ///
    /// See [`get_batch`](Self::get_batch).
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
    pub fn get_batch_mut<I>(&mut self, keys: I, mut each: impl FnMut(usize, Option<&mut V>))
    where
        I: IntoIterator<Item: Query<K>, IntoIter: Clone>,
    {
        let mut keys = keys.into_iter();
        let mut first = 0;
        loop {
            let mut burst = Burst::new();
            let count = self.stages(keys.clone(), &mut burst);
            let hashes = burst.hashes;
            for (at, (&hash, key)) in hashes.iter().zip(keys.clone()).enumerate() {
                let hash = self.hash_of_burst(hash, &key);
                let found = self.find_mut(hash, key.key());
                each(first + at, found.map(|(_, value)| value));
            }
            if count < BURST || keys.nth(BURST - 1).is_none() {
                return;
            }
            first += BURST;
        }
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
    /// if let [Some(from), Some(to)] = tokens.get_disjoint_mut(["a", "b"]) {
    ///     (*from, *to) = (*from - 2, *to + 2);
    /// }
    /// assert_eq!((tokens["a"], tokens["b"]), (3, 2));
    /// let [from, none] = tokens.get_disjoint_key_value_mut(["a", "c"]);
    /// assert_eq!((from, none), (Some((&"a", &mut 3)), None));
    /// ```
    #[must_use]
    pub fn get_disjoint_mut<Q: Query<K>, const N: usize>(
        &mut self,
        keys: [Q; N],
    ) -> [Option<&mut V>; N] {
        self.get_disjoint_key_value_mut(keys).map(|entry| entry.map(|(_, value)| value))
    }

    /// Returns the keys of the map and mutable references to the values of several keys: see
    /// [`get_disjoint_mut`](Self::get_disjoint_mut).
    ///
    /// # Panics
    ///
    /// If two keys have the same entry.
    #[must_use]
    pub fn get_disjoint_key_value_mut<Q: Query<K>, const N: usize>(
        &mut self,
        keys: [Q; N],
    ) -> [Option<(&K, &mut V)>; N] {
        let hashes = keys.each_ref().map(|key| key.hash_with(&self.hasher));
        for hashes in hashes.chunks(BURST) {
            self.table.find_candidates(hashes.iter().copied(), &mut Burst::new());
        }
        self.prepare_all(&hashes, &keys);
        let at = from_fn(|index| {
            let key = keys[index].key();
            let hash = self.current_hash(hashes[index], key);
            self.current().locate(hash, |(own, _)| key.equivalent(own))
        });
        let found = self.current_table_mut().get_many_mut(at);
        found.map(|entry| entry.map(|(key, value)| (&*key, value)))
    }

    /// Inserts all entries, and passes each replaced value to the closure with the index of the
    /// entry.
    ///
    /// # Example
    ///
    /// ```
    /// let mut map = flowtable::TrashMap::from([(1, 'a')]);
    /// map.insert_batch([(0, 'x'), (1, 'y')], |index, old| assert_eq!((index, old), (1, 'a')));
    /// assert_eq!(map.len(), 2);
    /// ```
    pub fn insert_batch(
        &mut self,
        entries: impl IntoIterator<Item = (K, V)>,
        mut replaced: impl FnMut(usize, V),
    ) {
        let mut entries = entries.into_iter();
        let mut index = 0;
        loop {
            let mut chunk = [const { None }; BURST];
            for (place, entry) in chunk.iter_mut().zip(entries.by_ref()) {
                *place = Some(entry);
            }
            let mut burst = Burst::new();
            let count = self.stages(chunk.iter().flatten().map(|(key, _)| key), &mut burst);
            let hashes = burst.hashes;
            for ((key, value), hash) in chunk.into_iter().flatten().zip(hashes) {
                let hash = self.hash_of_burst(hash, &&key);
                let inserted = self.try_insert_with_hash(hash, key, value);
                if let Some(old) = inserted.unwrap_or_else(|refusal| refusal.reason.raise()) {
                    replaced(index, old);
                }
                index += 1;
            }
            if count < BURST {
                return;
            }
        }
    }

    /// Returns the entry of a query that is not a candidate.
    #[inline]
    fn find_of_burst<Q: Query<K>>(&self, hash: u64, query: &Q) -> Option<&(K, V)> {
        let has_extras = || self.table.has_extras();
        let miss = || if has_extras() { self.find_further_of_burst(hash, query) } else { None };
        self.table.find_or(hash, |(own, _)| query.key().equivalent(own), Some, miss)
    }

    /// Takes at most [`BURST`] keys through the first two stages, and returns their number. The
    /// hashes are those in the current table, which are of the map's seed if it has reseeded. There
    /// are no candidates while entries are moved from an old table.
    #[inline]
    fn stages<'a>(
        &'a self,
        keys: impl Iterator<Item: Query<K>>,
        burst: &mut Burst<'a, (K, V)>,
    ) -> usize {
        match &self.reseeded {
            None => self.table.find_candidates(keys.map(|key| key.hash_with(&self.hasher)), burst),
            Some(reseeded) => reseeded.stages(keys, burst),
        }
    }
}

impl<K, V, A: Allocator + Clone> Reseeded<K, V, A> {
    /// The first two stages in a map that has reseeded.
    #[cold]
    #[inline(never)]
    fn stages<'a>(
        &'a self,
        keys: impl Iterator<Item: Query<K>>,
        burst: &mut Burst<'a, (K, V)>,
    ) -> usize {
        let hashes = keys.map(|key| self.seed.hash_one(key.key()));
        let count = self.table.find_candidates(hashes, burst);
        if self.old.is_some() {
            burst.candidates = [None; BURST];
        }
        count
    }
}
