//! `ChainedCache` with LRU eviction compared with a reference model: a list of entries.

use core::hash::BuildHasher;

use flowtable::Prehashed;
use flowtable::cache::{ChainedCache, Chains, Inserted};
use flowtable::eviction::Lru;

/// A cache and its entries, the least recently used one first.
#[derive(Clone, Debug)]
pub struct CheckedChainedCache<S> {
    ours: ChainedCache<u32, u32, Lru, S>,
    entries: Vec<(u32, u32)>,
}

impl<S: BuildHasher + Clone> CheckedChainedCache<S> {
    pub fn new(capacity: usize, chains: Chains, hasher: S) -> Self {
        let ours = ChainedCache::with_parts(capacity, chains, Lru::new(), hasher);
        Self { ours: ours.expect("there is memory"), entries: vec![] }
    }

    fn bucket(&self, key: u32) -> u64 {
        self.ours.hash_of(&key) % self.ours.chains().buckets as u64
    }

    /// Moves an entry to the end.
    fn record_use(&mut self, key: u32) -> Option<&mut u32> {
        let at = self.entries.iter().position(|(other, _)| *other == key)?;
        let entry = self.entries.remove(at);
        self.entries.push(entry);
        self.entries.last_mut().map(|(_, value)| value)
    }

    /// Removes the entry that a new one evicts, and inserts that.
    fn insert_new(&mut self, key: u32, value: u32) -> Option<(u32, u32)> {
        let bucket = self.bucket(key);
        let in_chain = |(other, _): &(u32, u32)| self.bucket(*other) == bucket;
        let is_long = self.entries.iter().filter(|entry| in_chain(entry)).count()
            >= self.ours.chains().elasticity;
        let victim = match is_long {
            true => self.entries.iter().position(in_chain),
            false => (self.entries.len() >= self.ours.capacity()).then_some(0),
        };
        let evicted = victim.map(|at| self.entries.remove(at));
        self.entries.push((key, value));
        evicted
    }

    pub fn get(&mut self, key: u32) {
        let hash = self.ours.hash_of(&key);
        let expected = self.record_use(key).copied();
        assert_eq!(self.ours.peek(&key), expected.as_ref());
        assert_eq!(self.ours.get(Prehashed { hash, key: &key }), expected.as_ref());
    }

    pub fn insert(&mut self, key: u32, value: u32) {
        let previous = self.record_use(key).map(|own| core::mem::replace(own, value));
        let evicted = if previous.is_some() { None } else { self.insert_new(key, value) };
        assert_eq!(self.ours.insert(key, value), Inserted { previous, evicted });
    }

    pub fn get_or_insert(&mut self, key: u32, value: u32) {
        let expected = self.record_use(key).copied();
        if expected.is_none() {
            self.insert_new(key, value);
        }
        assert_eq!(*self.ours.get_or_insert_with(&key, |_| value), expected.unwrap_or(value));
    }

    pub fn remove(&mut self, key: u32) {
        let at = self.entries.iter().position(|(other, _)| *other == key);
        assert_eq!(self.ours.remove(&key), at.map(|at| self.entries.remove(at).1));
    }

    /// Keeps the entries whose keys are no multiples.
    pub fn retain(&mut self, of: u32) {
        self.ours.retain(|key, _| key % of.max(1) != 0);
        self.entries.retain(|(key, _)| key % of.max(1) != 0);
    }

    pub fn flush(&mut self) {
        self.ours.flush();
        self.entries.clear();
    }

    pub fn clone_ours(&mut self) {
        self.ours = self.ours.clone();
    }

    pub fn check(&self) {
        self.ours.validate().expect("invariant");
        let sorted = |mut entries: Vec<(u32, u32)>| {
            entries.sort_unstable();
            entries
        };
        let ours = self.ours.iter().map(|(key, value)| (*key, *value)).collect();
        assert_eq!(sorted(ours), sorted(self.entries.clone()));
        assert_eq!(self.ours.len(), self.entries.len());
        let mut lengths = vec![0; self.ours.chains().buckets];
        self.entries.iter().for_each(|(key, _)| lengths[self.bucket(*key) as usize] += 1);
        let longest = lengths.iter().max().copied().unwrap_or(0);
        let of = |length: usize| lengths.iter().filter(|other| **other == length).count();
        assert_eq!(self.ours.chain_lengths(), (0..=longest).map(of).collect::<Vec<_>>());
    }
}
