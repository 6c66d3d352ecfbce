//! Benchmarks of maps: their implementations of [`Map`](subject::Map), and what is measured.

pub(crate) mod bytes;
pub(crate) mod churn;
mod limit;
pub(crate) mod pauses;
pub(crate) mod prefetched;
mod probes;
pub(crate) mod rounds;
pub(crate) mod subject;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hash};

use flowtable::key::bits::{BitString, Headed};
use flowtable::{DefaultHashBuilder, LcTrieMap, TrashMap, write_to};
use hashbrown::DefaultHashBuilder as Foldhash;
use indexmap::IndexMap;

use crate::keys::Key;
use crate::subject::{BURST, ours, peer};
use subject::{Map, MapSubject, map};

impl<K: Hash + Eq, S: BuildHasher> Map<K> for TrashMap<K, u64, S> {
    #[inline]
    fn get(&self, key: &K) -> Option<&u64> {
        TrashMap::get(self, key)
    }
    #[inline]
    fn insert(&mut self, key: K, value: u64) {
        TrashMap::insert(self, key, value);
    }
    #[inline]
    fn remove(&mut self, key: &K) -> Option<u64> {
        TrashMap::remove(self, key)
    }
    #[inline]
    fn get_batch<'a>(&'a self, keys: &[K; BURST], found: &mut [Option<&'a u64>; BURST]) {
        TrashMap::get_batch(self, keys, write_to(found));
    }
}

/// TRASH as in the paper: an LC-trie over headed keys.
pub(crate) struct HeadedTrie<K> {
    trie: LcTrieMap<Headed<K>, u64>,
    hasher: DefaultHashBuilder,
}

impl<K: BitString> HeadedTrie<K> {
    pub(crate) fn new() -> Self {
        Self { trie: LcTrieMap::new(), hasher: DefaultHashBuilder::new() }
    }
}

impl<K: BitString + Hash + Copy> Map<K> for HeadedTrie<K> {
    #[inline]
    fn get(&self, key: &K) -> Option<&u64> {
        self.trie.get(&Headed::new(*key, &self.hasher))
    }
    #[inline]
    fn insert(&mut self, key: K, value: u64) {
        self.trie.insert(Headed::new(key, &self.hasher), value);
    }
    #[inline]
    fn remove(&mut self, key: &K) -> Option<u64> {
        self.trie.remove(&Headed::new(*key, &self.hasher))
    }
}

impl<K: Hash + Eq, S: BuildHasher> Map<K> for hashbrown::HashMap<K, u64, S> {
    #[inline]
    fn get(&self, key: &K) -> Option<&u64> {
        hashbrown::HashMap::get(self, key)
    }
    #[inline]
    fn insert(&mut self, key: K, value: u64) {
        hashbrown::HashMap::insert(self, key, value);
    }
    #[inline]
    fn remove(&mut self, key: &K) -> Option<u64> {
        hashbrown::HashMap::remove(self, key)
    }
}

impl<K: Hash + Eq, S: BuildHasher> Map<K> for std::collections::HashMap<K, u64, S> {
    #[inline]
    fn get(&self, key: &K) -> Option<&u64> {
        std::collections::HashMap::get(self, key)
    }
    #[inline]
    fn insert(&mut self, key: K, value: u64) {
        std::collections::HashMap::insert(self, key, value);
    }
    #[inline]
    fn remove(&mut self, key: &K) -> Option<u64> {
        std::collections::HashMap::remove(self, key)
    }
}

impl<K: Hash + Eq, S: BuildHasher> Map<K> for IndexMap<K, u64, S> {
    #[inline]
    fn get(&self, key: &K) -> Option<&u64> {
        IndexMap::get(self, key)
    }
    #[inline]
    fn insert(&mut self, key: K, value: u64) {
        IndexMap::insert(self, key, value);
    }
    #[inline]
    fn remove(&mut self, key: &K) -> Option<u64> {
        IndexMap::swap_remove(self, key)
    }
}

impl<K: Ord> Map<K> for BTreeMap<K, u64> {
    #[inline]
    fn get(&self, key: &K) -> Option<&u64> {
        BTreeMap::get(self, key)
    }
    #[inline]
    fn insert(&mut self, key: K, value: u64) {
        BTreeMap::insert(self, key, value);
    }
    #[inline]
    fn remove(&mut self, key: &K) -> Option<u64> {
        BTreeMap::remove(self, key)
    }
}

/// Returns `TrashMap` with the default hasher, with the hasher of the main peer, and with ahash,
/// which the default hasher is for byte strings. All maps of a subject have one seed, so that they
/// do identical work for identical keys.
pub(crate) fn trash_maps<K: Key + Hash>() -> [MapSubject<K>; 3] {
    let (our_hash, foldhash) = (DefaultHashBuilder::new(), Foldhash::default());
    let ahash = ahash::RandomState::with_seeds(1, 2, 3, 4);
    let with_our_hash = move || TrashMap::<K, u64>::with_hasher(our_hash.clone());
    let with_foldhash = move || TrashMap::with_hasher(foldhash.clone());
    let with_ahash = move || TrashMap::with_hasher(ahash.clone());
    [
        ours("trash", "TrashMap", map(with_our_hash)),
        ours("trash+foldhash", "TrashMap + foldhash", map(with_foldhash)),
        ours("trash+ahash", "TrashMap + ahash", map(with_ahash)),
    ]
}

/// Returns the main peer.
pub(crate) fn hashbrown_foldhash<K: Key + Hash>() -> MapSubject<K> {
    let hasher = Foldhash::default();
    peer("hashbrown + foldhash", map(move || hashbrown::HashMap::with_hasher(hasher.clone())))
}

pub(crate) fn hashbrown_our_hash<K: Key + Hash>() -> MapSubject<K> {
    let hasher = DefaultHashBuilder::new();
    peer("hashbrown + our hash", map(move || hashbrown::HashMap::with_hasher(hasher.clone())))
}

/// Returns the map of `std` with SipHash, its default.
pub(crate) fn std_map<K: Key + Hash>() -> MapSubject<K> {
    let hasher = std::hash::RandomState::new();
    peer("std", map(move || std::collections::HashMap::with_hasher(hasher.clone())))
}

pub(crate) fn indexmap<K: Key + Hash>() -> MapSubject<K> {
    let hasher = Foldhash::default();
    peer("indexmap + foldhash", map(move || IndexMap::with_hasher(hasher.clone())))
}
