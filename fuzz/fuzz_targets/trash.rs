//! `TrashMap` compared with `HashMap`, every invariant checked after every step, with good and weak
//! hashers.
#![no_main]

use std::collections::{HashMap, hash_map};
use std::fmt::Debug;
use std::hash::{BuildHasher, Hash};

use arbitrary::Arbitrary;
use flowtable::trash::{Entry, EntryRef};
use flowtable::{Prehashed, TrashMap, write_to};
use flowtable_fuzz::{EntryOp, Key, Seed, Seeds};
use libfuzzer_sys::fuzz_target;
use model::hashers::Weak;

#[derive(Arbitrary, Debug)]
struct Input {
    entries: Entries,
    hasher: u8,
    ops: Vec<Op>,
}

/// Entries in slots, in boxes, and zero-sized.
#[derive(Arbitrary, Debug)]
enum Entries {
    Words,
    Bytes,
    Boxed,
    Few,
}

#[derive(Arbitrary, Debug)]
enum Op {
    Insert(Seeds),
    InsertHashed(Seeds),
    InsertBatch(Seeds),
    Remove(Seeds),
    RemoveHashed(Seeds),
    Get(Seed),
    GetBatch(Seeds, bool),
    GetBatchMut(Seeds, bool),
    GetManyMut([Seed; 4]),
    Entry(Seed, EntryOp),
    Retain { divisor: u8, keep_multiples: bool },
    IterMut,
    Drain(u8),
    IntoIter(u8),
    Clone,
    Reserve(u16),
    ShrinkToFit,
    ShrinkTo(u16),
    ExtractIf { divisor: u8, most: u8 },
    EntryRef(Seed),
    Clear,
}

fuzz_target!(|input: Input| match input.entries {
    Entries::Words => run::<u64, u64>(input, |now| now),
    Entries::Bytes => run::<[u8; 20], u64>(input, |now| now),
    Entries::Boxed => run::<u64, [u64; 9]>(input, |now| [now; 9]),
    Entries::Few => run::<u16, u8>(input, |now| now as u8),
});

fn run<K: Key + Hash, V: Clone + Debug + PartialEq>(input: Input, make: fn(u64) -> V) {
    let mut pair: Pair<K, V> = Pair {
        map: TrashMap::with_hasher(Weak::from_byte(input.hasher)),
        model: HashMap::new(),
        make,
        now: 0,
    };
    for op in input.ops {
        pair.step(op);
        pair.map.validate().expect("invariant");
        assert_eq!(pair.map.len(), pair.model.len());
        assert_eq!(pair.map.iter().count(), pair.model.len());
        assert!(pair.map.iter().all(|(key, value)| pair.model.get(key) == Some(value)));
        assert!(pair.model.iter().all(|(key, value)| pair.map.get(key) == Some(value)));
    }
    let shape = pair.map.shape();
    assert_eq!((shape.entries, shape.bytes), (pair.map.len(), pair.map.allocation_size()));
    assert_eq!(pair.map.into_iter().collect::<HashMap<K, V>>(), pair.model);
}

/// Returns keys with their hashes.
fn prehashed<'k, K: Key + Hash, V>(
    map: &TrashMap<K, V, Weak>,
    keys: &'k [K],
) -> Vec<Prehashed<&'k K>> {
    keys.iter().map(|key| Prehashed { hash: map.hash_of(key), key }).collect()
}

struct Pair<K, V> {
    map: TrashMap<K, V, Weak>,
    model: HashMap<K, V>,
    make: fn(u64) -> V,
    now: u64,
}

impl<K: Key + Hash, V: Clone + Debug + PartialEq> Pair<K, V> {
    /// Returns a new value.
    fn value(&mut self) -> V {
        self.now += 1;
        (self.make)(self.now)
    }

    fn step(&mut self, op: Op) {
        match op {
            Op::Insert(seeds) => {
                for key in seeds.iter().map(K::grow) {
                    let value = self.value();
                    assert_eq!(self.map.insert(key, value.clone()), self.model.insert(key, value));
                }
            }
            Op::InsertHashed(seeds) => {
                for key in seeds.iter().map(K::grow) {
                    let value = self.value();
                    let query = Prehashed { hash: self.map.hash_of(&key), key: &key };
                    let old = match self.map.entry_ref(query) {
                        EntryRef::Occupied(mut entry) => Some(entry.insert(value.clone())),
                        EntryRef::Vacant(entry) => {
                            entry.insert(value.clone());
                            None
                        }
                    };
                    assert_eq!(old, self.model.insert(key, value));
                    assert!(self.map.get(query).is_some());
                }
            }
            Op::InsertBatch(seeds) => self.insert_batch(seeds),
            Op::Remove(seeds) => {
                for key in seeds.iter().map(K::grow) {
                    assert_eq!(self.map.remove_entry(&key), self.model.remove_entry(&key));
                }
            }
            Op::RemoveHashed(seeds) => {
                for key in seeds.iter().map(K::grow) {
                    let query = Prehashed { hash: self.map.hash_of(&key), key: &key };
                    let is_there = self.map.contains_key(query);
                    let found = self.map.get_key_value(query).is_some();
                    assert_eq!((is_there, found), (self.model.contains_key(&key), is_there));
                    let removed = self.map.remove_entry(query);
                    assert_eq!(removed, self.model.remove_entry(&key));
                }
            }
            Op::Get(seed) => {
                let (Self { map, model, .. }, key) = (self, K::grow(seed));
                assert_eq!(map.get_key_value(&key), model.get_key_value(&key));
                assert_eq!(map.get_mut(&key), model.get_mut(&key));
                assert_eq!(map.contains_key(&key), model.contains_key(&key));
            }
            Op::GetBatch(seeds, hashed) => self.get_batch(seeds, hashed),
            Op::GetBatchMut(seeds, hashed) => self.get_batch_mut(seeds, hashed),
            Op::GetManyMut(seeds) => {
                let (value, keys) = (self.value(), seeds.map(K::grow));
                if (1..4).any(|at| keys[..at].contains(&keys[at])) {
                    return;
                }
                let found = self.map.get_disjoint_mut(keys.each_ref());
                for (found, key) in found.into_iter().zip(keys) {
                    let theirs = self.model.get_mut(&key);
                    assert_eq!(found, theirs);
                    found.into_iter().chain(theirs).for_each(|now| *now = value.clone());
                }
            }
            Op::Entry(seed, op) => self.entry(K::grow(seed), op),
            Op::EntryRef(seed) => {
                let (key, value) = (K::grow(seed), self.value());
                let ours = self.map.try_entry_ref(&key).expect("there is memory");
                let ours = ours.and_modify(|now| *now = value.clone()).or_insert(value.clone());
                let theirs = self.model.entry(key).and_modify(|now| *now = value.clone());
                assert_eq!(ours, theirs.or_insert(value));
            }
            op => self.whole(op),
        }
    }

    fn insert_batch(&mut self, seeds: Seeds) {
        let keys = seeds.iter().chain(seeds.iter().take(5)).map(K::grow);
        let entries: Vec<(K, V)> = keys.map(|key| (key, self.value())).collect();
        let Self { map, model, .. } = self;
        let theirs = entries.iter().cloned().enumerate();
        let theirs = theirs.filter_map(|(at, (key, value))| Some((at, model.insert(key, value)?)));
        let (theirs, mut ours): (Vec<_>, _) = (theirs.collect(), vec![]);
        map.insert_batch(entries, |at, old| ours.push((at, old)));
        assert_eq!(ours, theirs);
    }

    fn get_batch(&mut self, seeds: Seeds, hashed: bool) {
        let old = self.model.values().next().cloned();
        let Self { map, model, .. } = self;
        let keys: Vec<K> = seeds.iter().map(K::grow).collect();
        let prehashed = prehashed(map, &keys);
        let mut found = vec![old.as_ref(); keys.len()];
        match hashed {
            true => map.get_batch(prehashed, write_to(&mut found)),
            false => map.get_batch(&keys, write_to(&mut found)),
        }
        assert!(found.into_iter().eq(keys.iter().map(|key| model.get(key))));
    }

    fn get_batch_mut(&mut self, seeds: Seeds, hashed: bool) {
        let value = self.value();
        let Self { map, model, .. } = self;
        let keys: Vec<K> = seeds.iter().chain(seeds.iter().take(3)).map(K::grow).collect();
        let prehashed = prehashed(map, &keys);
        let each = |at: usize, found: Option<&mut V>| {
            let theirs = model.get_mut(&keys[at]);
            assert_eq!(found, theirs);
            found.into_iter().chain(theirs).for_each(|now| *now = value.clone());
        };
        match hashed {
            true => map.get_batch_mut(prehashed, each),
            false => map.get_batch_mut(&keys, each),
        }
    }

    fn entry(&mut self, key: K, op: EntryOp) {
        let (value, default) = (self.value(), self.value());
        let (ours, theirs) = (self.map.entry(key), self.model.entry(key));
        assert_eq!(ours.key(), theirs.key());
        match (op, ours, theirs) {
            (EntryOp::Key, ours, _) => assert_eq!(ours.key(), &key),
            (EntryOp::OrInsert, ours, theirs) => {
                assert_eq!(ours.or_insert(value.clone()), theirs.or_insert(value));
            }
            (EntryOp::AndModify, ours, theirs) => {
                let ours = ours.and_modify(|now| *now = value.clone()).or_insert(default.clone());
                assert_eq!(ours, theirs.and_modify(|now| *now = value).or_insert(default));
            }
            (op, Entry::Occupied(mut ours), hash_map::Entry::Occupied(mut theirs)) => match op {
                EntryOp::Insert => assert_eq!(ours.insert(value.clone()), theirs.insert(value)),
                EntryOp::Remove => assert_eq!(ours.remove_entry(), theirs.remove_entry()),
                _ => {
                    assert_eq!(ours.get(), theirs.get());
                    *ours.get_mut() = value.clone();
                    *theirs.into_mut() = value;
                }
            },
            (op, Entry::Vacant(ours), hash_map::Entry::Vacant(theirs)) => match op {
                EntryOp::Insert => {
                    let mut ours = ours.insert_entry(value.clone());
                    assert_eq!(ours.get_mut(), theirs.insert(value));
                }
                _ => assert_eq!(ours.into_key(), theirs.into_key()),
            },
            (_, ours, theirs) => panic!("{ours:?} is not {theirs:?}"),
        }
    }

    /// Applies an operation on the whole map.
    fn whole(&mut self, op: Op) {
        let value = self.value();
        let Self { map, model, .. } = self;
        match op {
            Op::Retain { divisor, keep_multiples } => {
                let keep = |key: &K| {
                    (Weak::Mixed.hash_one(key) % u64::from(divisor.max(1)) == 0) == keep_multiples
                };
                map.retain(|key, value| {
                    assert_eq!(model.get(key), Some(&*value));
                    keep(key)
                });
                model.retain(|key, _| keep(key));
            }
            Op::IterMut => {
                map.iter_mut().for_each(|(_, now)| *now = value.clone());
                model.values_mut().for_each(|now| *now = value.clone());
            }
            Op::Drain(count) => {
                let mut drained = map.drain();
                for (key, value) in drained.by_ref().take(count.into()) {
                    assert_eq!(model.remove(&key), Some(value));
                }
                assert_eq!(drained.len(), model.len());
                model.clear();
            }
            Op::IntoIter(count) => {
                let (mut taken, mut theirs) = (map.clone().into_iter(), model.clone());
                for (key, value) in taken.by_ref().take(count.into()) {
                    assert_eq!(theirs.remove(&key), Some(value));
                }
                assert_eq!(taken.len(), theirs.len());
            }
            Op::Clone => {
                let copy = map.clone();
                assert_eq!(copy, *map);
                *map = copy;
            }
            Op::Reserve(more) => {
                map.reserve(usize::from(more % 4096));
                assert!(map.capacity() >= map.len() + usize::from(more % 4096));
            }
            Op::ShrinkToFit => {
                let before = map.allocation_size();
                map.shrink_to_fit();
                assert!(map.allocation_size() <= before);
            }
            Op::ShrinkTo(capacity) => {
                let before = map.allocation_size();
                map.shrink_to(capacity.into());
                assert!(map.allocation_size() <= before);
            }
            Op::ExtractIf { divisor, most } => {
                let picks = |key: &K| Weak::Mixed.hash_one(key) % u64::from(divisor.max(1)) == 0;
                let expected = model.keys().filter(|key| picks(key)).count().min(most.into());
                let mut extracted = 0;
                for (key, value) in map.extract_if(|key, _| picks(key)).take(most.into()) {
                    assert!(picks(&key));
                    assert_eq!(model.remove(&key), Some(value));
                    extracted += 1;
                }
                assert_eq!(extracted, expected);
            }
            _ => {
                map.clear();
                model.clear();
            }
        }
    }
}
