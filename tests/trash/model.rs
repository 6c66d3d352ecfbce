//! `TrashMap` compared with `HashMap`, for several hashers and types of entries, with the
//! invariants checked after each step.

use core::fmt::Debug;
use core::hash::{BuildHasher, Hash};
use model::cases;
use std::collections::HashMap;

use flowtable::trash::Entry;
use flowtable::{DefaultHashBuilder, Prehashed, TrashMap, write_to};
use model::hashers::{Weak, mix};
use proptest::collection::vec;
use proptest::prelude::*;

/// A key or value made of a number.
trait Part: Clone + Debug + Eq + Hash {
    fn make(number: u32) -> Self;
}

impl Part for u64 {
    fn make(number: u32) -> Self {
        number.into()
    }
}

impl Part for [u8; 37] {
    fn make(number: u32) -> Self {
        core::array::from_fn(|at| number.to_le_bytes()[at % 4])
    }
}

/// Only a hundred distinct values, so that unequal keys often have equal values.
impl Part for Option<u8> {
    fn make(number: u32) -> Self {
        (number % 100).checked_sub(1).map(|number| number as u8)
    }
}

impl Part for () {
    fn make(_: u32) -> Self {}
}

impl Part for String {
    fn make(number: u32) -> Self {
        format!("number {number}")
    }
}

/// Too large for a slot.
impl Part for [u64; 25] {
    fn make(number: u32) -> Self {
        [mix(number.into()); 25]
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[repr(align(128))]
struct Aligned(u8);

impl Part for Aligned {
    fn make(number: u32) -> Self {
        Self(number as u8)
    }
}

/// No bytes, at addresses divisible by 64.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[repr(align(64))]
struct AlignedNothing;

impl Part for AlignedNothing {
    fn make(_: u32) -> Self {
        Self
    }
}

/// One step of a test. Keys are numbers, all of them below [`KEYS`].
#[derive(Clone, Debug)]
enum Op {
    Insert(u32, u32),
    TryInsert(u32, u32),
    Remove(u32),
    RemoveEntry(u32),
    Get(u32),
    EntryAdd(u32, u32),
    EntrySet(u32, u32),
    EntryRemove(u32),
    /// All operations on one key by a hash passed by the caller.
    Hashed(u32, u32),
    /// This many keys from the first one on, this far apart.
    InsertRun(u32, u32, u32),
    RemoveRun(u32, u32, u32),
    GetDisjointMut([u32; 4], u32),
    GetBatch(Vec<u32>, bool),
    GetBatchMut(Vec<u32>, bool, u32),
    InsertBatch(Vec<(u32, u32)>),
    Extend(Vec<(u32, u32)>),
    /// Keeps the keys whose mixed numbers have this remainder modulo 4, or the others.
    Retain(u64, bool),
    SetAll(u32),
    Drain(usize),
    IntoIter(usize),
    Clone,
    Collect,
    Reserve(usize),
    Shrink,
    ShrinkTo(usize),
    /// Removes keys like `Retain`, up to this number.
    Extract(u64, usize),
    Clear,
    Iterate,
}

const KEYS: u32 = if cfg!(miri) { 40 } else { 3000 };
const RUN: u32 = if cfg!(miri) { 20 } else { 600 };

fn op() -> impl Strategy<Value = Op> {
    let (key, value) = (0..KEYS, any::<u32>());
    let (keys, entries) = (vec(0..KEYS, 0..100), vec((0..KEYS, any::<u32>()), 0..100));
    let pair = (key.clone(), value);
    let run = (key.clone(), 1..8_u32, 0..RUN);
    prop_oneof![
        6 => pair.clone().prop_map(|(key, value)| Op::Insert(key, value)),
        2 => pair.clone().prop_map(|(key, value)| Op::TryInsert(key, value)),
        4 => key.clone().prop_map(Op::Remove),
        2 => key.clone().prop_map(Op::RemoveEntry),
        4 => key.clone().prop_map(Op::Get),
        3 => pair.clone().prop_map(|(key, value)| Op::EntryAdd(key, value)),
        3 => pair.clone().prop_map(|(key, value)| Op::EntrySet(key, value)),
        2 => key.clone().prop_map(Op::EntryRemove),
        4 => pair.prop_map(|(key, value)| Op::Hashed(key, value)),
        8 => run.clone().prop_map(|(first, apart, count)| Op::InsertRun(first, apart, count)),
        6 => run.prop_map(|(first, apart, count)| Op::RemoveRun(first, apart, count)),
        2 => (proptest::array::uniform4(key), any::<u32>())
            .prop_map(|(keys, value)| Op::GetDisjointMut(keys, value)),
        2 => (keys.clone(), any::<bool>()).prop_map(|(keys, hashed)| Op::GetBatch(keys, hashed)),
        2 => (keys, any::<bool>(), any::<u32>())
            .prop_map(|(keys, hashed, value)| Op::GetBatchMut(keys, hashed, value)),
        3 => entries.clone().prop_map(Op::InsertBatch),
        1 => entries.prop_map(Op::Extend),
        2 => (0..4_u64, any::<bool>()).prop_map(|(remainder, keep)| Op::Retain(remainder, keep)),
        1 => any::<u32>().prop_map(Op::SetAll),
        1 => (0..50_usize).prop_map(Op::Drain),
        1 => (0..50_usize).prop_map(Op::IntoIter),
        1 => Just(Op::Clone),
        1 => Just(Op::Collect),
        1 => (0..4000_usize).prop_map(Op::Reserve),
        2 => Just(Op::Shrink),
        1 => (0..2000_usize).prop_map(Op::ShrinkTo),
        2 => (0..4_u64, 0..900_usize).prop_map(|(picked, most)| Op::Extract(picked, most)),
        1 => Just(Op::Clear),
        2 => Just(Op::Iterate),
    ]
}

/// Returns keys with their hashes.
fn prehashed<'k, K: Part, V, S: BuildHasher>(
    map: &TrashMap<K, V, S>,
    keys: &'k [K],
) -> Vec<Prehashed<&'k K>> {
    keys.iter().map(|key| Prehashed { hash: map.hash_of(key), key }).collect()
}

struct Pair<K, V, S> {
    ours: TrashMap<K, V, S>,
    model: HashMap<K, V>,
}

impl<K: Part, V: Part, S: BuildHasher + Clone + Default> Pair<K, V, S> {
    /// Applies an operation on one key.
    fn one(&mut self, op: Op) {
        let Self { ours, model } = self;
        match op {
            Op::Insert(key, value) => assert_eq!(
                ours.insert(K::make(key), V::make(value)),
                model.insert(K::make(key), V::make(value))
            ),
            Op::TryInsert(key, value) => assert_eq!(
                ours.try_insert(K::make(key), V::make(value)),
                Ok(model.insert(K::make(key), V::make(value)))
            ),
            Op::Remove(key) => {
                assert_eq!(ours.remove(&K::make(key)), model.remove(&K::make(key)));
            }
            Op::RemoveEntry(key) => {
                assert_eq!(ours.remove_entry(&K::make(key)), model.remove_entry(&K::make(key)));
            }
            Op::Get(key) => {
                let key = K::make(key);
                assert_eq!(ours.get(&key), model.get(&key));
                assert_eq!(ours.get_mut(&key), model.get_mut(&key));
                assert_eq!(ours.get_key_value(&key), model.get_key_value(&key));
                assert_eq!(ours.contains_key(&key), model.contains_key(&key));
                assert_eq!(ours.get_observed(&key, &mut ()), model.get(&key));
            }
            Op::EntryAdd(key, value) => {
                let (entry, theirs) = (ours.entry(K::make(key)), model.entry(K::make(key)));
                assert_eq!(entry.key(), &K::make(key));
                let now = entry.and_modify(|old| *old = V::make(1)).or_insert(V::make(value));
                assert_eq!(
                    now,
                    theirs.and_modify(|old| *old = V::make(1)).or_insert(V::make(value))
                );
            }
            Op::EntrySet(key, value) => {
                let old = model.insert(K::make(key), V::make(value));
                match ours.entry(K::make(key)) {
                    Entry::Occupied(mut entry) => {
                        assert_eq!(Some(entry.get()), old.as_ref());
                        assert_eq!(Some(entry.insert(V::make(value))), old);
                        assert_eq!(*entry.into_mut(), V::make(value));
                    }
                    Entry::Vacant(entry) => {
                        assert_eq!((entry.key(), old), (&K::make(key), None));
                        match value % 3 {
                            0 => assert_eq!(*entry.insert(V::make(value)), V::make(value)),
                            1 => {
                                let inserted = entry.try_insert(V::make(value));
                                assert_eq!(inserted.map(|own| own.clone()), Ok(V::make(value)));
                            }
                            _ => {
                                let entry = entry.insert_entry(V::make(value));
                                assert_eq!(entry.get(), &V::make(value));
                            }
                        }
                    }
                }
            }
            Op::EntryRemove(key) => match ours.entry(K::make(key)) {
                Entry::Occupied(entry) => {
                    assert_eq!(Some(entry.remove_entry()), model.remove_entry(&K::make(key)));
                }
                Entry::Vacant(entry) => assert!(!model.contains_key(&entry.into_key())),
            },
            Op::Hashed(key, value) => self.hashed(&K::make(key), &V::make(value)),
            op => self.batch(op),
        }
    }

    fn hashed(&mut self, key: &K, value: &V) {
        let Self { ours, model } = self;
        let query = Prehashed { hash: ours.hash_of(key), key };
        assert_eq!(ours.get(query), model.get(key));
        assert_eq!(ours.get_mut(query), model.get_mut(key));
        let old = model.insert(key.clone(), value.clone());
        assert_eq!(ours.entry_ref(query).insert_entry(value.clone()).get(), value);
        assert_eq!(ours.get(query), Some(value));
        assert_eq!(ours.contains_key(query), model.contains_key(key));
        assert_eq!(ours.get_key_value(query), model.get_key_value(key));
        if old.is_none() {
            assert_eq!(ours.remove(query), model.remove(key));
            assert_eq!(ours.remove_entry(query), None);
            assert_eq!(ours.try_entry_ref(query).unwrap().or_insert(value.clone()), value);
            assert_eq!(ours.remove_entry(query), Some((key.clone(), value.clone())));
            assert!(!ours.contains_key(query));
        }
    }

    /// Applies an operation on many keys.
    fn batch(&mut self, op: Op) {
        let Self { ours, model } = self;
        match op {
            Op::InsertRun(first, apart, count) => {
                for number in (0..count).map(|i| (first + i * apart) % KEYS) {
                    let (key, value) = (K::make(number), V::make(number));
                    assert_eq!(ours.insert(key.clone(), value.clone()), model.insert(key, value));
                }
            }
            Op::RemoveRun(first, apart, count) => {
                for key in (0..count).map(|i| K::make((first + i * apart) % KEYS)) {
                    assert_eq!(ours.remove(&key), model.remove(&key));
                }
            }
            Op::GetDisjointMut(keys, value) => self.get_disjoint_mut(&keys.map(K::make), value),
            Op::GetBatch(keys, hashed) => {
                let keys: Vec<K> = keys.into_iter().map(K::make).collect();
                let old = V::make(0);
                let mut found = vec![Some(&old); keys.len()];
                if hashed {
                    ours.get_batch(prehashed(ours, &keys), write_to(&mut found));
                } else {
                    ours.get_batch(&keys, write_to(&mut found));
                }
                assert!(found.into_iter().eq(keys.iter().map(|key| model.get(key))));
            }
            Op::GetBatchMut(keys, hashed, value) => {
                let keys: Vec<K> = keys.into_iter().map(K::make).collect();
                let mut next = 0;
                let each = |at: usize, found: Option<&mut V>| {
                    assert_eq!(at, next, "in order, and each once");
                    next += 1;
                    // A duplicate key has been changed already.
                    let theirs = model.get_mut(&keys[at]);
                    assert_eq!(found, theirs);
                    let both = found.into_iter().chain(theirs);
                    both.for_each(|now| *now = V::make(value.wrapping_add(at as u32)));
                };
                if hashed {
                    ours.get_batch_mut(prehashed(ours, &keys), each);
                } else {
                    ours.get_batch_mut(&keys, each);
                }
                assert_eq!(next, keys.len());
            }
            Op::InsertBatch(entries) => self.insert_batch(&entries),
            Op::Extend(entries) => {
                let made = |&(key, value): &(u32, u32)| (K::make(key), V::make(value));
                ours.extend(entries.iter().map(made));
                model.extend(entries.iter().map(made));
            }
            op => self.all(op),
        }
    }

    fn get_disjoint_mut(&mut self, keys: &[K; 4], value: u32) {
        let Self { ours, model } = self;
        let keys_ref = keys.each_ref();
        let duplicate = |at: usize| keys[..at].contains(&keys[at]) && model.contains_key(&keys[at]);
        if !(0..4).any(duplicate) {
            for (key, found) in keys.iter().zip(ours.get_disjoint_mut(keys_ref)) {
                let theirs = model.get_mut(key);
                assert_eq!(found, theirs);
                found.into_iter().chain(theirs).for_each(|now| *now = V::make(value));
            }
        }
    }

    fn insert_batch(&mut self, entries: &[(u32, u32)]) {
        let Self { ours, model } = self;
        let mut expected = vec![];
        for (at, &(key, value)) in entries.iter().enumerate() {
            let old = model.insert(K::make(key), V::make(value));
            expected.extend(old.map(|old| (at, old)));
        }
        let mut replaced = vec![];
        let made = entries.iter().map(|&(key, value)| (K::make(key), V::make(value)));
        ours.insert_batch(made, |at, old| replaced.push((at, old)));
        assert_eq!(replaced, expected);
    }

    /// Keeps a quarter of the keys, or the others; the predicate is called once for each.
    fn retain(&mut self, remainder: u64, keep: bool) {
        let Self { ours, model } = self;
        let kept = |key: &K| (mix(Weak::Mixed.hash_one(key)) % 4 == remainder) == keep;
        let mut calls = 0;
        ours.retain(|key, value| {
            calls += 1;
            assert_eq!(model.get(key), Some(&*value));
            kept(key)
        });
        assert_eq!(calls, model.len());
        model.retain(|key, _| kept(key));
    }

    /// Removes a quarter of the keys, or the first `most` of these.
    fn extract(&mut self, picked: u64, most: usize) {
        let Self { ours, model } = self;
        let picks = |key: &K| mix(Weak::Mixed.hash_one(key)) % 4 == picked;
        let extracted: Vec<(K, V)> = ours.extract_if(|key, _| picks(key)).take(most).collect();
        assert_eq!(extracted.len(), model.keys().filter(|key| picks(key)).count().min(most));
        for (key, value) in extracted {
            assert!(picks(&key));
            assert_eq!(model.remove(&key), Some(value));
        }
    }

    /// Takes `count` entries from a drain, which drops the others.
    fn drain(&mut self, count: usize) {
        let Self { ours, model } = self;
        let mut drain = ours.drain();
        assert_eq!(drain.len(), model.len());
        for (key, value) in drain.by_ref().take(count) {
            assert_eq!(model.remove(&key), Some(value));
        }
        assert_eq!(drain.len(), model.len());
        drop(drain);
        assert!(ours.is_empty());
        model.clear();
    }

    /// Applies an operation on the whole map.
    fn all(&mut self, op: Op) {
        let Self { ours, model } = self;
        match op {
            Op::Retain(remainder, keep) => self.retain(remainder, keep),
            Op::SetAll(value) => {
                ours.values_mut().for_each(|now| *now = V::make(value));
                ours.iter_mut().for_each(|(_, now)| assert_eq!(now, &V::make(value)));
                model.values_mut().for_each(|now| *now = V::make(value));
            }
            Op::Drain(count) => self.drain(count),
            Op::IntoIter(count) => {
                let mut taken = ours.clone().into_iter();
                let mut theirs = model.clone();
                for (key, value) in taken.by_ref().take(count) {
                    assert_eq!(theirs.remove(&key), Some(value));
                }
                assert_eq!(taken.len(), theirs.len());
            }
            Op::Clone => {
                let clone = ours.clone();
                assert_eq!(&clone, ours);
                *ours = clone;
            }
            Op::Collect => {
                let collected: TrashMap<K, V, S> = ours.clone().into_iter().collect();
                assert_eq!(&collected, ours, "equality ignores the hasher");
                assert_eq!(ours, &collected);
            }
            Op::Reserve(more) => {
                ours.reserve(more);
                assert!(ours.capacity() >= ours.len() + more);
                assert_eq!(ours.try_reserve(more / 2), Ok(()));
            }
            Op::Shrink => {
                let before = ours.allocation_size();
                ours.shrink_to_fit();
                assert!(ours.allocation_size() <= before);
                assert!(!ours.is_empty() || ours.allocation_size() == 0);
            }
            Op::ShrinkTo(capacity) => {
                let before = ours.capacity();
                ours.shrink_to(capacity);
                assert!(ours.capacity() >= ours.len().max(capacity.min(before)));
            }
            Op::Extract(picked, most) => self.extract(picked, most),
            Op::Clear => {
                ours.clear();
                model.clear();
            }
            Op::Iterate => self.iterate(),
            op => unreachable!("{op:?} is handled by the callers"),
        }
    }

    fn iterate(&mut self) {
        let Self { ours, model } = self;
        let collected: HashMap<&K, &V> = ours.iter().collect();
        assert_eq!((ours.iter().len(), collected.len()), (model.len(), model.len()));
        assert!(ours.keys().zip(ours.values()).eq(&*ours), "all are in one order");
        assert!(ours.clone().into_keys().eq(ours.keys().cloned()), "a clone has the same order");
        assert!(ours.clone().into_values().eq(ours.values().cloned()));
        let copied: Vec<(K, V)> = ours.iter_mut().map(|(k, v)| (k.clone(), v.clone())).collect();
        assert!(ours.iter().eq(copied.iter().map(|(key, value)| (key, value))));
        assert_eq!(format!("{ours:?}").len(), format!("{model:?}").len());
    }

    fn compare(&self, after: &str) {
        let Self { ours, model } = self;
        ours.validate().unwrap_or_else(|broken| panic!("after {after}: {broken}"));
        assert_eq!(ours.len(), model.len(), "after {after}");
        assert_eq!(ours.is_empty(), model.is_empty());
        assert_eq!(ours.iter().count(), model.len(), "after {after}");
        for (key, value) in ours {
            assert_eq!(model.get(key), Some(value), "after {after}");
        }
        for (key, value) in model {
            assert_eq!(ours.get(key), Some(value), "after {after}");
        }
    }
}

/// Applies `ops` to a map and the model, which must agree after each; in Miri, after every third.
fn run<K: Part, V: Part, S: BuildHasher + Clone + Default>(ops: Vec<Op>, hasher: S) {
    let mut pair: Pair<K, V, S> =
        Pair { ours: TrashMap::with_hasher(hasher), model: HashMap::new() };
    for (number, op) in ops.into_iter().enumerate() {
        let what = format!("{op:?}");
        pair.one(op);
        if !cfg!(miri) || number % 3 == 0 {
            pair.compare(&what);
        }
    }
    assert!(pair.ours.into_iter().all(|(key, value)| pair.model.remove(&key) == Some(value)));
    assert!(pair.model.is_empty());
}

/// Random operations. In Miri, which is slow, each once.
fn ops() -> BoxedStrategy<Vec<Op>> {
    if cfg!(miri) { Just(each_once()).boxed() } else { vec(op(), 60..120).boxed() }
}

/// Each operation, on keys that are present and on others.
fn each_once() -> Vec<Op> {
    let keys = || Vec::from([30, 0, 7, 39, 7]);
    let entries = || keys().into_iter().zip(0..).collect();
    Vec::from([
        Op::InsertRun(0, 1, RUN),
        Op::Get(39),
        Op::GetDisjointMut([1, 2, 30, 39], 0),
        Op::GetDisjointMut([1, 2, 30, 39], 1),
        Op::GetBatch(keys(), false),
        Op::GetBatch(keys(), true),
        Op::GetBatchMut(keys(), false, 1),
        Op::GetBatchMut(keys(), true, 2),
        Op::Iterate,
        Op::IntoIter(5),
        Op::Clone,
        Op::Collect,
        Op::Insert(1, 2),
        Op::TryInsert(35, 3),
        Op::EntryAdd(2, 5),
        Op::EntryAdd(36, 5),
        Op::EntrySet(3, 7),
        Op::EntrySet(30, 0),
        Op::EntrySet(31, 1),
        Op::EntrySet(32, 2),
        Op::EntryRemove(3),
        Op::EntryRemove(3),
        Op::Hashed(4, 9),
        Op::Hashed(33, 9),
        Op::Remove(4),
        Op::RemoveEntry(5),
        Op::InsertBatch(entries()),
        Op::SetAll(4),
        Op::Reserve(50),
        Op::Shrink,
        Op::Retain(0, false),
        Op::Extract(1, 3),
        Op::ShrinkTo(9),
        Op::RemoveRun(0, 1, RUN),
        Op::Drain(2),
        Op::Extend(entries()),
        Op::Clear,
    ])
}

fn weak() -> impl Strategy<Value = Weak> {
    proptest::sample::select(if cfg!(miri) { &[Weak::Mixed][..] } else { &Weak::ALL })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(40, 1)))]

    #[test]
    #[cfg_attr(miri, ignore = "slow; covered by numbers")]
    fn numbers_with_the_default_hasher(ops in ops()) {
        run::<u64, u64, _>(ops, DefaultHashBuilder::default());
    }

    #[test]
    fn numbers(ops in ops(), hasher in weak()) {
        run::<u64, u64, _>(ops, hasher);
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow; covered by numbers")]
    fn flow_keys(ops in ops(), hasher in weak()) {
        run::<[u8; 37], u64, _>(ops, hasher);
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow; covered by numbers")]
    fn two_bytes(ops in ops(), hasher in weak()) {
        run::<Option<u8>, (), _>(ops, hasher);
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow; covered by numbers")]
    fn no_bytes_at_all(ops in ops(), hasher in weak()) {
        run::<(), AlignedNothing, _>(ops, hasher);
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow; covered by boxed_for_their_size")]
    fn strings(ops in ops(), hasher in weak()) {
        run::<String, String, _>(ops, hasher);
    }

    #[test]
    fn boxed_for_their_size(ops in ops(), hasher in weak()) {
        run::<u64, [u64; 25], _>(ops, hasher);
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow; covered by boxed_for_their_size")]
    fn boxed_for_their_alignment(ops in ops(), hasher in weak()) {
        run::<u64, Aligned, _>(ops, hasher);
    }
}
