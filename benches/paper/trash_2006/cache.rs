//! The subjects: the trie with each key of the paper, and hash tables, as caches with the same
//! garbage collection.

use std::hash::BuildHasher;

use flowtable::cache::{ChainedCache, Chains};
use flowtable::eviction::{Eviction, Passive, PassiveGc};
use flowtable::key::bits::BitString;
use flowtable::trie::unicache::Unicache;
use flowtable::trie::{TrieShape, Tuning};
use flowtable::{DefaultHashBuilder, Prehashed};
use hashbrown::HashTable;
use model::papers::trash_2006::traffic::{Flow, Packet, PaperKey, src_dst};

/// The time of the last use of an entry: its score in garbage collection.
pub(crate) type Tick = u64;

/// A cache of flows.
pub(crate) trait Cache {
    /// The key of a packet's flow, with its hash. Computed once per packet.
    type Key: Copy;

    fn key(&self, packet: &Packet) -> Self::Key;

    /// Returns whether the flow is cached, and updates the time of its last use.
    fn touch(&mut self, key: &Self::Key, now: Tick) -> bool;

    /// Inserts a flow that is not cached, after a garbage collection if one is due.
    fn admit(&mut self, key: Self::Key, now: Tick);

    /// Removes a flow that has ended.
    fn end(&mut self, key: &Self::Key);

    /// Looks up the flow of a packet, and inserts it on a miss. Returns whether it was a hit.
    fn access(&mut self, key: &Self::Key, now: Tick) -> bool {
        let is_hit = self.touch(key, now);
        if !is_hit {
            self.admit(*key, now);
        }
        is_hit
    }

    fn state(&self) -> State;
}

/// The size and the shape of a cache.
pub(crate) struct State {
    pub(crate) entries: usize,
    pub(crate) bytes: usize,
    /// Tries only.
    pub(crate) shape: Option<TrieShape>,
}

/// The cache of the paper: [`Unicache`] with the tuning of 2006 and any key.
pub(crate) struct Trash<K, F> {
    cache: Unicache<K, Tick>,
    key: F,
}

impl<K: BitString, F: Fn(&Flow) -> K> Trash<K, F> {
    pub(crate) fn new(gc: PassiveGc, key: F) -> Self {
        Self { cache: Unicache::with_tuning(gc, Tuning::TRASH_2006), key }
    }
}

impl<K: BitString, F: Fn(&Flow) -> K> Cache for Trash<K, F> {
    type Key = K;

    fn key(&self, packet: &Packet) -> K {
        (self.key)(&packet.flow)
    }

    fn touch(&mut self, key: &K, now: Tick) -> bool {
        self.cache.get_mut(key).map(|last_use| *last_use = now).is_some()
    }

    fn admit(&mut self, key: K, now: Tick) {
        self.cache.insert(key, now, |_, last_use| Some(*last_use), |_, _| ());
    }

    fn end(&mut self, key: &K) {
        self.cache.remove(key);
    }

    fn state(&self) -> State {
        let shape = self.cache.shape();
        State { entries: shape.leaves, bytes: shape.bytes, shape: Some(shape) }
    }
}

/// The number of buckets in the paper.
pub(crate) const BUCKETS: usize = 1 << 17;

/// The chained table of Linux at the time.
pub(crate) struct Chained<P>(ChainedCache<PaperKey, Tick, P>);

impl Chained<Passive> {
    /// A table with the garbage collection of the trie.
    pub(crate) fn new(gc: PassiveGc, hasher: DefaultHashBuilder) -> Self {
        // The kernel cut chains of more than eight entries, which these keys do not produce.
        let chains = Chains { buckets: BUCKETS, elasticity: 8 };
        Self::with_policy(gc, chains, Passive::new(gc), hasher)
    }
}

impl<P: Eviction> Chained<P> {
    pub(crate) fn with_policy(
        gc: PassiveGc,
        chains: Chains,
        policy: P,
        hasher: DefaultHashBuilder,
    ) -> Self {
        let cache = ChainedCache::with_parts(gc.threshold(), chains, policy, hasher);
        Self(cache.expect("there is memory"))
    }
}

impl<P: Eviction> Cache for Chained<P> {
    type Key = (u64, PaperKey);

    fn key(&self, packet: &Packet) -> (u64, PaperKey) {
        let key = src_dst(&packet.flow);
        (self.0.hash_of(&key), key)
    }

    fn touch(&mut self, &(hash, key): &(u64, PaperKey), now: Tick) -> bool {
        let last_use = self.0.get_mut(Prehashed { hash, key: &key });
        last_use.map(|last_use| *last_use = now).is_some()
    }

    fn admit(&mut self, (hash, key): (u64, PaperKey), now: Tick) {
        self.0.get_or_insert_with(Prehashed { hash, key: &key }, |_| now);
    }

    fn end(&mut self, &(hash, key): &(u64, PaperKey)) {
        self.0.remove(Prehashed { hash, key: &key });
    }

    fn state(&self) -> State {
        State { entries: self.0.len(), bytes: self.0.allocation_size(), shape: None }
    }
}

/// A hash table of today, with capacity for the threshold.
pub(crate) struct Swiss {
    table: HashTable<(PaperKey, Tick)>,
    /// The next bucket to scan for garbage.
    rover: usize,
    gc: PassiveGc,
    hasher: DefaultHashBuilder,
}

impl Swiss {
    pub(crate) fn new(gc: PassiveGc, hasher: DefaultHashBuilder) -> Self {
        Self { table: HashTable::with_capacity(gc.threshold()), rover: 0, gc, hasher }
    }

    /// Evicts `goal` entries, each the least recently used of the next four.
    fn collect(&mut self) {
        let buckets = self.table.num_buckets();
        for _ in 0..self.gc.goal() {
            let mut ring = 0;
            let mut oldest: Option<(Tick, usize)> = None;
            while ring < PassiveGc::RING {
                let bucket = self.rover;
                self.rover = (bucket + 1) % buckets;
                let Some(&(_, last_use)) = self.table.get_bucket(bucket) else { continue };
                ring += 1;
                if oldest.is_none_or(|(oldest, _)| last_use <= oldest) {
                    oldest = Some((last_use, bucket));
                }
            }
            if let Some(entry) =
                oldest.and_then(|(_, bucket)| self.table.get_bucket_entry(bucket).ok())
            {
                entry.remove();
            }
        }
    }
}

impl Cache for Swiss {
    type Key = (u64, PaperKey);

    fn key(&self, packet: &Packet) -> (u64, PaperKey) {
        let key = src_dst(&packet.flow);
        (self.hasher.hash_one(key), key)
    }

    fn touch(&mut self, &(hash, key): &(u64, PaperKey), now: Tick) -> bool {
        let entry = self.table.find_mut(hash, |entry| entry.0 == key);
        entry.map(|entry| entry.1 = now).is_some()
    }

    fn admit(&mut self, (hash, key): (u64, PaperKey), now: Tick) {
        if self.table.len() >= self.gc.threshold() {
            self.collect();
        }
        let Self { table, hasher, .. } = self;
        table.insert_unique(hash, (key, now), |(key, _)| hasher.hash_one(key));
    }

    fn end(&mut self, &(hash, key): &(u64, PaperKey)) {
        if let Ok(entry) = self.table.find_entry(hash, |entry| entry.0 == key) {
            entry.remove();
        }
    }

    fn state(&self) -> State {
        let bytes = self.table.allocation_size();
        State { entries: self.table.len(), bytes, shape: None }
    }
}
