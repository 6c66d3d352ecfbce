//! The subjects: the trie with each key of the paper, and hash tables, as caches with the same
//! garbage collection.

use std::hash::BuildHasher;

use flowtable::DefaultHashBuilder;
use flowtable::eviction::PassiveGc;
use flowtable::key::bits::BitString;
use flowtable::trie::unicache::Unicache;
use flowtable::trie::{TrieShape, Tuning};
use hashbrown::HashTable;
use model::papers::trash_2006::traffic::{Flow, Packet, src_dst};

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
        let shape = self.cache.trie().shape();
        State { entries: shape.leaves, bytes: shape.bytes, shape: Some(shape) }
    }
}

#[derive(Clone, Copy)]
struct Entry {
    key: u128,
    hash: u64,
    last_use: Tick,
    /// The next entry of the chain, or of the free list.
    next: u32,
}

const END: u32 = u32::MAX;

/// The chained table of Linux at the time: a fixed array of buckets, with insertion at the head of
/// a chain.
///
/// The kernel also cut chains of more than eight entries, which these keys do not produce.
pub(crate) struct Chained {
    buckets: Box<[u32]>,
    entries: Vec<Entry>,
    free: u32,
    len: usize,
    /// The next bucket to scan for garbage.
    rover: usize,
    gc: PassiveGc,
    hasher: DefaultHashBuilder,
}

impl Chained {
    /// The number of buckets in the paper.
    pub(crate) const BUCKETS: usize = 1 << 17;

    pub(crate) fn new(gc: PassiveGc, hasher: DefaultHashBuilder) -> Self {
        let buckets = vec![END; Self::BUCKETS].into();
        Self { buckets, entries: Vec::new(), free: END, len: 0, rover: 0, gc, hasher }
    }

    fn bucket(hash: u64) -> usize {
        hash as usize % Self::BUCKETS
    }

    /// Returns the indices of the entries in a chain.
    fn chain(&self, bucket: usize) -> impl Iterator<Item = u32> {
        let index = |index| (index != END).then_some(index);
        std::iter::successors(index(self.buckets[bucket]), move |&at| {
            index(self.entries[at as usize].next)
        })
    }

    fn unlink(&mut self, hash: u64, key: u128) {
        let bucket = Self::bucket(hash);
        let mut before = END;
        let mut at = self.buckets[bucket];
        while at != END && self.entries[at as usize].key != key {
            before = at;
            at = self.entries[at as usize].next;
        }
        if at == END {
            return;
        }
        let next = std::mem::replace(&mut self.entries[at as usize].next, self.free);
        match before {
            END => self.buckets[bucket] = next,
            before => self.entries[before as usize].next = next,
        }
        self.free = at;
        self.len -= 1;
    }

    /// Evicts `goal` entries, each the least recently used of the next four, rounded up to whole
    /// chains.
    fn collect(&mut self) {
        for _ in 0..self.gc.goal() {
            let mut ring = 0;
            let mut oldest: Option<Entry> = None;
            while ring < PassiveGc::RING {
                for at in self.chain(self.rover) {
                    let entry = self.entries[at as usize];
                    ring += 1;
                    if oldest.is_none_or(|oldest| entry.last_use <= oldest.last_use) {
                        oldest = Some(entry);
                    }
                }
                self.rover = (self.rover + 1) % Self::BUCKETS;
            }
            if let Some(oldest) = oldest {
                self.unlink(oldest.hash, oldest.key);
            }
        }
    }
}

impl Cache for Chained {
    type Key = (u64, u128);

    fn key(&self, packet: &Packet) -> (u64, u128) {
        let key = src_dst(&packet.flow);
        (self.hasher.hash_one(key), key)
    }

    fn touch(&mut self, &(hash, key): &(u64, u128), now: Tick) -> bool {
        let found = self.chain(Self::bucket(hash)).find(|&at| self.entries[at as usize].key == key);
        found.map(|at| self.entries[at as usize].last_use = now).is_some()
    }

    fn admit(&mut self, (hash, key): (u64, u128), now: Tick) {
        if self.len >= self.gc.threshold() {
            self.collect();
        }
        let head = &mut self.buckets[Self::bucket(hash)];
        let entry = Entry { key, hash, last_use: now, next: *head };
        match self.free {
            END => {
                *head = self.entries.len() as u32;
                self.entries.push(entry);
            }
            free => {
                *head = free;
                self.free = std::mem::replace(&mut self.entries[free as usize], entry).next;
            }
        }
        self.len += 1;
    }

    fn end(&mut self, &(hash, key): &(u64, u128)) {
        self.unlink(hash, key);
    }

    fn state(&self) -> State {
        let bytes = size_of_val(&*self.buckets) + self.entries.capacity() * size_of::<Entry>();
        State { entries: self.len, bytes, shape: None }
    }
}

/// A hash table of today, with capacity for the threshold.
pub(crate) struct Swiss {
    table: HashTable<(u128, Tick)>,
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
    type Key = (u64, u128);

    fn key(&self, packet: &Packet) -> (u64, u128) {
        let key = src_dst(&packet.flow);
        (self.hasher.hash_one(key), key)
    }

    fn touch(&mut self, &(hash, key): &(u64, u128), now: Tick) -> bool {
        let entry = self.table.find_mut(hash, |entry| entry.0 == key);
        entry.map(|entry| entry.1 = now).is_some()
    }

    fn admit(&mut self, (hash, key): (u64, u128), now: Tick) {
        if self.table.len() >= self.gc.threshold() {
            self.collect();
        }
        let Self { table, hasher, .. } = self;
        table.insert_unique(hash, (key, now), |(key, _)| hasher.hash_one(key));
    }

    fn end(&mut self, &(hash, key): &(u64, u128)) {
        if let Ok(entry) = self.table.find_entry(hash, |entry| entry.0 == key) {
            entry.remove();
        }
    }

    fn state(&self) -> State {
        let bytes = self.table.allocation_size();
        State { entries: self.table.len(), bytes, shape: None }
    }
}
