//! `BoundedCache` compared with a reference model: one list of all entries.

use core::fmt::Debug;
use core::hash::{BuildHasher, Hash};

use flowtable::cache::{CacheError, Inserted, Statistics};
use flowtable::eviction::{EntryStats, Eviction, Lru};
use flowtable::memory::{Allocator, Global};
use flowtable::{BoundedCache, Prehashed, Timestamp};

use super::{Lockstep, Make, Name, Step};

/// The documented maximum number of entries with one hash.
const EQUAL_HASHES: usize = 8;

#[derive(Clone, Debug)]
struct Entry<K, V> {
    /// Its slot: policies examine entries in the order of their slots.
    slot: u32,
    hash: u64,
    key: K,
    value: V,
    /// The time of its last use.
    last_use: u64,
    /// Whether it was used since the policy examined it.
    used: bool,
}

/// All entries in one list, and a policy.
#[derive(Clone, Debug)]
struct BoundedModel<K, V, P> {
    entries: Vec<Entry<K, V>>,
    policy: P,
    capacity: usize,
    slots: u32,
    /// Slots of removed entries, the next one that is used again last.
    free: Vec<u32>,
    uses: u64,
    statistics: Statistics,
}

impl<K: Clone + PartialEq, V: Clone, P: Eviction> BoundedModel<K, V, P> {
    fn new(capacity: usize, policy: P) -> Self {
        let statistics = Statistics::default();
        Self { entries: Vec::new(), policy, capacity, slots: 0, free: vec![], uses: 0, statistics }
    }

    fn position(&self, hash: u64, key: &K) -> Option<usize> {
        self.entries.iter().position(|entry| entry.hash == hash && entry.key == *key)
    }

    fn peek(&self, hash: u64, key: &K) -> Option<&V> {
        self.position(hash, key).map(|position| &self.entries[position].value)
    }

    /// Does what a hit does, except for the counter.
    fn touched(&mut self, hash: u64, key: &K) -> Option<&mut V> {
        let position = self.position(hash, key)?;
        self.uses += 1;
        let entry = &mut self.entries[position];
        (entry.used, entry.last_use) = (true, self.uses);
        self.policy.touch(entry.slot);
        Some(&mut entry.value)
    }

    fn get(&mut self, hash: u64, key: &K) -> Option<&mut V> {
        match self.position(hash, key) {
            Some(_) => self.statistics.hits += 1,
            None => self.statistics.misses += 1,
        }
        self.touched(hash, key)
    }

    fn take(&mut self, position: usize) -> (K, V) {
        let entry = self.entries.remove(position);
        self.policy.remove(entry.slot);
        self.free.push(entry.slot);
        (entry.key, entry.value)
    }

    /// The position of the entry that the policy evicts.
    fn victim(&mut self) -> Option<usize> {
        let entries = &mut self.entries;
        let of = |slot, entries: &[Entry<K, V>]| {
            entries
                .iter()
                .position(|entry| entry.slot == slot)
                .expect("the policy selects a present entry")
        };
        let victim = self.policy.victim(|slot| {
            let at = of(slot, entries);
            let entry = &mut entries[at];
            let used = core::mem::take(&mut entry.used);
            EntryStats { used, last_use: Timestamp::from_nanos(entry.last_use) }
        });
        victim.map(|slot| of(slot, entries))
    }

    /// The position of the entry evicted for one with this hash.
    fn leaves_for(&mut self, hash: u64) -> Option<usize> {
        let is_due = self.policy.is_due(self.entries.len());
        let has_it = |at: &usize| self.entries[*at].hash == hash;
        let equal: Vec<usize> = (0..self.entries.len()).filter(has_it).collect();
        if equal.len() >= EQUAL_HASHES {
            return equal.into_iter().min_by_key(|&at| self.entries[at].last_use);
        }
        if is_due || self.entries.len() == self.capacity { self.victim() } else { None }
    }

    /// Inserts an absent entry, unless the cache is full and none is evicted.
    fn put(&mut self, hash: u64, key: K, value: V) -> Option<(K, V)> {
        let evicted = self.leaves_for(hash).map(|position| self.take(position));
        if self.entries.len() == self.capacity {
            return Some((key, value));
        }
        self.uses += 1;
        let last_use = self.uses;
        let slot = self.free.pop().unwrap_or(self.slots);
        self.slots = self.slots.max(slot + 1);
        self.entries.push(Entry { slot, hash, key, value, last_use, used: false });
        self.policy.insert(slot, 0);
        self.statistics.insertions += 1;
        self.statistics.evictions += u64::from(evicted.is_some());
        evicted
    }

    fn insert(&mut self, hash: u64, key: K, value: V) -> Inserted<K, V> {
        if let Some(previous) = self.touched(hash, &key) {
            let previous = Some(core::mem::replace(previous, value));
            return Inserted { previous, evicted: None };
        }
        Inserted { previous: None, evicted: self.put(hash, key, value) }
    }

    fn remove(&mut self, hash: u64, key: &K) -> Option<V> {
        let position = self.position(hash, key)?;
        Some(self.take(position).1)
    }

    /// Evicts victims of the policy, and if it has none, the entries of the first slots.
    fn set_capacity(&mut self, capacity: usize) {
        while self.entries.len() > capacity {
            let first = (0..self.entries.len()).min_by_key(|&at| self.entries[at].slot);
            let victim = self.victim().or(first).expect("there are entries");
            self.take(victim);
        }
        self.capacity = capacity;
    }

    /// Removes entries in the order of their slots, which matters to policies, and returns them.
    fn retain(&mut self, keep: impl Fn(&mut V) -> bool) -> Vec<(K, V)> {
        let mut removed = Vec::new();
        let mut slots: Vec<u32> = self.entries.iter().map(|entry| entry.slot).collect();
        slots.sort_unstable();
        for slot in slots {
            let position = self.entries.iter().position(|entry| entry.slot == slot);
            let position = position.expect("each entry is present until it is visited");
            if !keep(&mut self.entries[position].value) {
                removed.push(self.take(position));
            }
        }
        removed
    }
}

/// A cache and its reference model.
#[derive(Clone, Debug)]
pub struct CheckedBounded<K, V, P, S, A: Allocator + Clone = Global> {
    ours: BoundedCache<K, V, P, S, A>,
    model: BoundedModel<K, V, P>,
    /// Whether the next access is with a hash.
    is_hashed: bool,
    /// Whether the policy always has an entry to evict.
    always_one: bool,
}

impl<K, V, P, S> CheckedBounded<K, V, P, S>
where
    K: Make + Hash,
    V: Make,
    P: Eviction + Clone,
    S: BuildHasher,
{
    pub fn new(capacity: usize, policy: P, hasher: S) -> Self {
        Self::new_in(capacity, policy, hasher, Global).expect("the memory is available")
    }
}

impl<K, V, P, S, A> CheckedBounded<K, V, P, S, A>
where
    K: Make + Hash,
    V: Make,
    P: Eviction + Clone,
    S: BuildHasher,
    A: Allocator + Clone,
{
    /// A cache in this memory, if there is enough.
    pub fn new_in(capacity: usize, policy: P, hasher: S, memory: A) -> Result<Self, CacheError> {
        let model = BoundedModel::new(capacity, policy.clone());
        let ours = BoundedCache::with_parts_in(capacity, policy, hasher, memory)?;
        Ok(Self { ours, model, is_hashed: false, always_one: true })
    }

    /// Bytes allocated by the cache and its policy.
    pub fn allocation_size(&self) -> usize {
        self.ours.allocation_size()
    }

    /// Expects the policy to have no entry to evict at times.
    pub fn with_refusals(self) -> Self {
        Self { always_one: false, ..self }
    }

    /// The key and its hash, and whether the cache is given it: each second time.
    fn parts(&mut self, name: Name) -> (bool, u64, K) {
        let key = K::make(name.key);
        self.is_hashed = !self.is_hashed;
        (self.is_hashed, self.ours.hash_of(&key), key)
    }

    fn get(&mut self, name: Name, now: Option<u32>) {
        let (is_hashed, hash, key) = self.parts(name);
        let theirs = self.model.get(hash, &key);
        let hashed = Prehashed { hash, key: &key };
        let Some(now) = now else {
            let ours = if is_hashed { self.ours.get(hashed) } else { self.ours.get(&key) };
            return assert_eq!(ours, theirs.as_deref());
        };
        let ours = if is_hashed { self.ours.get_mut(hashed) } else { self.ours.get_mut(&key) };
        assert_eq!(ours, theirs);
        ours.into_iter().chain(theirs).for_each(|value| *value = V::make(now));
    }

    fn insert(&mut self, name: Name, now: u32) {
        let (_, hash, key) = self.parts(name);
        let theirs = self.model.insert(hash, key.clone(), V::make(now));
        assert_eq!(self.ours.insert(key, V::make(now)), theirs);
    }

    fn get_or_insert(&mut self, name: Name, now: u32) {
        if !self.always_one {
            return self.insert(name, now);
        }
        let (is_hashed, hash, key) = self.parts(name);
        let mut is_made = false;
        let make = |made: &K| {
            is_made = true;
            assert_eq!(*made, key);
            V::make(now)
        };
        let ours = match is_hashed {
            true => self.ours.get_or_insert_with(Prehashed { hash, key: &key }, make),
            false => self.ours.get_or_insert_with(&key, make),
        };
        let theirs = self.model.get(hash, &key).cloned();
        assert_eq!(theirs.is_none(), is_made);
        assert_eq!(*ours, theirs.unwrap_or(V::make(now)));
        if is_made {
            *ours = V::make(!now);
            self.model.put(hash, key, V::make(!now));
        }
    }

    fn get_batch_mut(&mut self, names: &[Name], now: u32) {
        let parts: Vec<_> = names.iter().map(|&name| self.parts(name)).collect();
        let keys: Vec<K> = parts.iter().map(|(.., key)| key.clone()).collect();
        let hashes: Vec<u64> = parts.iter().map(|(_, hash, _)| *hash).collect();
        let Self { ours, model, is_hashed, .. } = self;
        let mut next = 0;
        let each = |number, ours: Option<&mut V>| {
            assert_eq!(number, next);
            next += 1;
            let theirs = model.get(hashes[number], &keys[number]);
            assert_eq!(ours, theirs);
            ours.into_iter().chain(theirs).for_each(|value| *value = V::make(now));
        };
        let hashed = hashes.iter().zip(&keys).map(|(&hash, key)| Prehashed { hash, key });
        match *is_hashed {
            true => ours.get_batch_mut(hashed, each),
            false => ours.get_batch_mut(&keys, each),
        }
        assert_eq!(next, names.len());
    }

    fn retain(&mut self, divisor: u32, now: u32) {
        let divided: Vec<V> = (0..=now).step_by(divisor as usize).map(V::make).collect();
        let keep = |value: &mut V| {
            let keep = !divided.contains(value);
            *value = V::make(now);
            keep
        };
        let theirs = self.model.retain(keep);
        match now % 2 {
            0 => self.ours.retain(|_, value| keep(value)),
            _ => assert!(self.ours.extract_if(|_, value| !keep(value)).eq(theirs)),
        }
    }

    fn peek_mut(&mut self, name: Name, now: u32) {
        let (_, hash, key) = self.parts(name);
        let theirs = self.model.position(hash, &key);
        let theirs = theirs.map(|position| &mut self.model.entries[position].value);
        let ours = self.ours.peek_mut(&key);
        assert_eq!(ours, theirs);
        ours.into_iter().chain(theirs).for_each(|value| *value = V::make(now));
    }

    /// It fails only without memory for more entries.
    fn set_capacity(&mut self, capacity: usize) {
        match self.ours.set_capacity(capacity) {
            Ok(()) => self.model.set_capacity(capacity),
            Err(error) => {
                assert_eq!(error, CacheError::NoMemory);
                assert!(capacity > self.model.capacity);
            }
        }
    }

    fn change(&mut self, divisor: u32, now: u32) {
        let divided: Vec<V> = (0..=now).step_by(divisor as usize).map(V::make).collect();
        let ours = (&mut self.ours).into_iter().map(|(_, value)| value);
        let theirs = self.model.entries.iter_mut().map(|entry| &mut entry.value);
        let changed = ours.chain(theirs).filter(|value| divided.contains(value));
        changed.for_each(|value| *value = V::make(now));
    }
}

impl<K, V, P, S, A> Lockstep for CheckedBounded<K, V, P, S, A>
where
    K: Make + Hash,
    V: Make,
    P: Eviction + Clone,
    S: BuildHasher + Clone,
    A: Allocator + Clone,
{
    fn step(&mut self, step: &Step, now: u32) {
        match step {
            Step::Get(name) => self.get(*name, None),
            Step::GetMut(name) => self.get(*name, Some(now)),
            Step::Peek(name) => {
                let (_, hash, key) = self.parts(*name);
                let ours = self.ours.peek(Prehashed { hash, key: &key });
                assert_eq!(ours, self.model.peek(hash, &key));
                assert_eq!(self.ours.peek(&key), ours);
                assert_eq!(self.ours.contains_key(&key), ours.is_some());
            }
            Step::GetOrInsert(name) => self.get_or_insert(*name, now),
            Step::Insert(name) => self.insert(*name, now),
            Step::Remove(name) => {
                let (is_hashed, hash, key) = self.parts(*name);
                let ours = match is_hashed {
                    true => self.ours.remove(Prehashed { hash, key: &key }),
                    false => self.ours.remove(&key),
                };
                assert_eq!(ours, self.model.remove(hash, &key));
            }
            Step::GetBatch(names) | Step::GetBatchMut(names) => self.get_batch_mut(names, now),
            Step::PeekMut(name) => self.peek_mut(*name, now),
            Step::Promote(name) => {
                let (_, hash, key) = self.parts(*name);
                let theirs = self.model.touched(hash, &key).is_some();
                assert_eq!(self.ours.promote(&key), theirs);
            }
            Step::SetCapacity(capacity) => self.set_capacity(*capacity),
            Step::PopLru | Step::Replace(_) => {}
            Step::Retain(divisor) => self.retain(*divisor, now),
            Step::Change(divisor) => self.change(*divisor, now),
            Step::Clear => {
                self.ours.clear();
                self.model.retain(|_| false);
            }
            Step::Fork { .. } | Step::Back => unreachable!("handled by `run`"),
        }
    }

    fn check(&self) {
        let Self { ours, model, .. } = self;
        ours.validate().expect("an invariant");
        let sort = |mut entries: Vec<(K, V)>| {
            entries.sort();
            entries
        };
        let entries = ours.iter().map(|(key, value)| (key.clone(), value.clone()));
        let theirs = model.entries.iter().map(|entry| (entry.key.clone(), entry.value.clone()));
        assert_eq!(sort(entries.collect()), sort(theirs.collect()));
        assert_eq!((ours.len(), ours.is_empty()), (model.entries.len(), model.entries.is_empty()));
        assert!(ours.len() <= ours.capacity());
        assert_eq!((ours.statistics(), ours.capacity()), (model.statistics, model.capacity));
        assert_eq!(ours.into_iter().len(), ours.len());
    }
}

/// A cache with the policy LRU and its reference model, which also compare the order of recency.
#[derive(Clone, Debug)]
pub struct CheckedLru<K, V, S>(CheckedBounded<K, V, Lru, S>);

impl<K: Make + Hash, V: Make, S: BuildHasher> CheckedLru<K, V, S> {
    pub fn new(capacity: usize, hasher: S) -> Self {
        Self(CheckedBounded::new(capacity, Lru::new(), hasher))
    }

    fn pop_lru(&mut self) {
        let CheckedBounded { ours, model, .. } = &mut self.0;
        let oldest = (0..model.entries.len()).min_by_key(|&at| model.entries[at].last_use);
        assert_eq!(ours.pop_lru(), oldest.map(|position| model.take(position)));
    }
}

impl<K: Make + Hash, V: Make, S: BuildHasher + Clone> Lockstep for CheckedLru<K, V, S> {
    fn step(&mut self, step: &Step, now: u32) {
        match step {
            Step::PopLru => self.pop_lru(),
            step => self.0.step(step, now),
        }
    }

    fn check(&self) {
        self.0.check();
        let CheckedBounded { ours, model, .. } = &self.0;
        let mut theirs: Vec<_> = model.entries.iter().collect();
        theirs.sort_by_key(|entry| core::cmp::Reverse(entry.last_use));
        let theirs = theirs.into_iter().map(|entry| (&entry.key, &entry.value));
        assert_eq!(ours.peek_lru(), theirs.clone().last());
        assert!(ours.iter_by_recency().eq(theirs));
    }
}
