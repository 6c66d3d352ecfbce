//! `ConcurrentTable` against `HashMap` on one thread, with several hashers, types of entries, and
//! pins that begin and end between operations.

use core::fmt::Debug;
use core::hash::{BuildHasher, Hash};
use flowtable::Prehashed;
use model::cases;
use std::collections::HashMap;

use flowtable::concurrent::{NoUninit, Pinned};
use flowtable::{ConcurrentTable, DefaultHashBuilder};
use proptest::collection::vec;
use proptest::prelude::*;

use super::model_crate::hashers::{Weak, mix};
use crate::model::{KEYS, RUN};

/// Keys and values made from numbers.
trait Part: NoUninit + Debug + Eq + Hash {
    fn make(number: u32) -> Self;
}

impl Part for u64 {
    fn make(number: u32) -> Self {
        number.into()
    }
}

impl Part for () {
    fn make(_: u32) -> Self {}
}

/// Only 256 distinct values, so that wrong entries are detected.
impl Part for u8 {
    fn make(number: u32) -> Self {
        number as u8
    }
}

impl Part for [u8; 13] {
    fn make(number: u32) -> Self {
        core::array::from_fn(|at| (mix(number.into()) >> at) as u8)
    }
}

impl Part for [u64; 5] {
    fn make(number: u32) -> Self {
        [mix(number.into()); 5]
    }
}

/// One step of a test. Keys are numbers below [`KEYS`].
#[derive(Clone, Debug)]
enum Op {
    Insert(u32, u32),
    Remove(u32),
    Get(u32),
    GetOrInsert(u32, u32),
    Replace(u32, u32),
    Update(u32, u32),
    /// Every operation on a single key by its hash.
    Hashed(u32, u32),
    GetBatch(Vec<u32>),
    /// The first key, the distance between keys, and their number.
    InsertRun(u32, u32, u32),
    RemoveRun(u32, u32, u32),
    Extend(Vec<(u32, u32)>),
    /// Keeps the keys whose hash modulo 4 is, or is not, this remainder.
    Retain(u64, bool),
    Clear,
    ShrinkToFit,
    Flush,
    Repin,
}

fn op() -> impl Strategy<Value = Op> {
    let (key, value) = (0..KEYS, any::<u32>());
    let pair = (key.clone(), value);
    let run = (key.clone(), 1..8_u32, 0..RUN);
    prop_oneof![
        5 => pair.clone().prop_map(|(key, value)| Op::Insert(key, value)),
        4 => key.clone().prop_map(Op::Remove),
        2 => key.clone().prop_map(Op::Get),
        3 => pair.clone().prop_map(|(key, value)| Op::GetOrInsert(key, value)),
        3 => pair.clone().prop_map(|(key, value)| Op::Replace(key, value)),
        3 => pair.clone().prop_map(|(key, value)| Op::Update(key, value)),
        4 => pair.clone().prop_map(|(key, value)| Op::Hashed(key, value)),
        2 => vec(key, 0..100).prop_map(Op::GetBatch),
        6 => run.clone().prop_map(|(first, apart, count)| Op::InsertRun(first, apart, count)),
        5 => run.prop_map(|(first, apart, count)| Op::RemoveRun(first, apart, count)),
        1 => vec(pair, 0..100).prop_map(Op::Extend),
        1 => (0..4_u64, any::<bool>()).prop_map(|(remainder, keep)| Op::Retain(remainder, keep)),
        1 => Just(Op::Clear),
        1 => Just(Op::ShrinkToFit),
        1 => Just(Op::Flush),
        2 => Just(Op::Repin),
    ]
}

type Model<K, V> = HashMap<K, V>;

/// A pinned table and its reference model.
struct Pair<'t, K, V, S> {
    pin: Pinned<'t, ConcurrentTable<K, V, S>>,
    model: &'t mut Model<K, V>,
    /// The number of distinct keys: few, if all keys have one hash.
    span: u32,
}

impl<K: Part, V: Part, S: BuildHasher> Pair<'_, K, V, S> {
    fn key(&self, number: u32) -> K {
        K::make(number % self.span)
    }

    fn perform(&mut self, op: Op) {
        match op {
            Op::Insert(at, value) => self.insert(at, value),
            Op::Remove(at) => {
                let key = self.key(at);
                assert_eq!(self.pin.remove(&key), self.model.remove(&key));
            }
            Op::Get(at) => {
                let (key, pin) = (self.key(at), &self.pin);
                assert_eq!(pin.get(&key), self.model.get(&key).copied());
                assert_eq!(pin.contains_key(&key), self.model.contains_key(&key));
            }
            Op::GetOrInsert(at, value) => {
                let (key, value) = (self.key(at), V::make(value));
                let current = *self.model.entry(key).or_insert(value);
                assert_eq!(self.pin.get_or_insert(&key, value), Ok(current));
            }
            Op::Replace(at, value) => {
                let (key, value) = (self.key(at), V::make(value));
                let old = self.model.get_mut(&key).map(|old| core::mem::replace(old, value));
                assert_eq!(self.pin.replace(&key, value), Ok(old));
            }
            Op::Update(at, value) => {
                let (key, value) = (self.key(at), V::make(value));
                let old = self.model.get(&key).copied();
                let update = |now| {
                    assert_eq!(Some(now), old);
                    value
                };
                assert_eq!(self.pin.update(&key, update), Ok(old.map(|_| value)));
                self.model.entry(key).and_modify(|now| *now = value);
            }
            Op::Hashed(at, value) => self.hashed(self.key(at), V::make(value)),
            op => self.many(op),
        }
    }

    fn insert(&mut self, at: u32, value: u32) {
        let (key, value) = (self.key(at), V::make(value));
        assert_eq!(self.pin.insert(key, value), Ok(self.model.insert(key, value)));
    }

    fn hashed(&mut self, key: K, value: V) {
        let (pin, model) = (&self.pin, &mut *self.model);
        let query = Prehashed { hash: pin.hash_of(&key), key: &key };
        assert_eq!(query.hash, pin.hasher().hash_one(key));
        assert_eq!(pin.get(query), model.get(&key).copied());
        let is_new = !model.contains_key(&key);
        assert_eq!(pin.get_or_insert(query, value), Ok(*model.entry(key).or_insert(value)));
        if is_new {
            assert_eq!(pin.remove(query), model.remove(&key));
            assert_eq!(pin.remove(query), None);
        }
    }

    /// Performs an operation on several keys.
    fn many(&mut self, op: Op) {
        let span = self.span;
        let run = |first: u32, apart: u32, count: u32| {
            (0..count.min(span)).map(move |i| (first + i * apart) % KEYS % span)
        };
        match op {
            Op::InsertRun(first, apart, count) => {
                run(first, apart, count).for_each(|number| self.insert(number, number));
            }
            Op::RemoveRun(first, apart, count) => {
                for number in run(first, apart, count) {
                    let key = self.key(number);
                    assert_eq!(self.pin.remove(&key), self.model.remove(&key));
                }
            }
            Op::GetBatch(keys) => {
                let keys: Vec<K> = keys.into_iter().map(|number| self.key(number)).collect();
                let mut found = vec![None; keys.len()];
                self.pin.get_batch(&keys, flowtable::write_to(&mut found));
                assert!(found.into_iter().eq(keys.iter().map(|key| self.model.get(key).copied())));
            }
            Op::Extend(entries) => {
                let made = |(key, value): (u32, u32)| (self.key(key), V::make(value));
                let entries: Vec<(K, V)> = entries.into_iter().map(made).collect();
                let mut table = &*self.pin;
                table.extend(entries.iter().copied());
                self.model.extend(entries);
            }
            op => self.whole(op),
        }
    }

    /// Performs an operation on the whole table, or on the pin.
    fn whole(&mut self, op: Op) {
        match op {
            Op::Retain(remainder, keep) => {
                let kept = |key: &K| (mix(Weak::Mixed.hash_one(key)) % 4 == remainder) == keep;
                let mut visited = 0;
                self.pin.retain(|key, value| {
                    visited += 1;
                    assert_eq!(self.model.get(key), Some(value));
                    kept(key)
                });
                assert_eq!(visited, self.model.len());
                self.model.retain(|key, _| kept(key));
            }
            Op::Clear => {
                self.pin.clear();
                self.model.clear();
            }
            Op::ShrinkToFit => {
                let before = self.pin.allocation_size();
                self.pin.shrink_to_fit();
                assert!(self.pin.allocation_size() <= before);
            }
            Op::Flush => self.pin.flush(),
            _ => self.pin.repin(),
        }
    }

    fn compare(&self, after: &str) {
        let (pin, model) = (&self.pin, &*self.model);
        assert_eq!((pin.len(), pin.is_empty()), (model.len(), model.is_empty()), "after {after}");
        let collected: HashMap<K, V> = pin.iter().collect();
        assert_eq!((pin.iter().count(), &collected), (model.len(), model), "after {after}");
        assert!(pin.keys().zip(pin.values()).eq(pin), "all iterators have one order");
        for (key, value) in model {
            assert_eq!(pin.get(key), Some(*value), "after {after}");
        }
    }
}

/// The number of keys for which a hasher is fast enough.
fn span(hasher: Weak) -> u32 {
    match hasher {
        Weak::Three | Weak::Constant => KEYS.min(150),
        _ => KEYS,
    }
}

/// Performs all operations on a table and on the model, and compares them after each burst; then
/// invariants are checked.
fn run<K: Part, V: Part, S: BuildHasher>(bursts: Vec<Vec<Op>>, hasher: S, span: u32) {
    let mut table = ConcurrentTable::with_hasher(hasher).with_garbage_limit(usize::MAX, 0);
    let mut model = Model::<K, V>::new();
    for ops in bursts {
        let what = format!("{ops:?}");
        let mut pair = Pair { pin: table.pin(), model: &mut model, span };
        for op in ops {
            pair.perform(op);
        }
        pair.compare(&what);
        drop(pair);
        table.validate().unwrap_or_else(|broken| panic!("after {what}: {broken}"));
    }
    let empty = table.allocation_size();
    table.pin().clear();
    assert!(table.is_empty() && table.allocation_size() <= empty);
    table.validate().unwrap_or_else(|broken| panic!("{broken}"));
}

fn bursts() -> impl Strategy<Value = Vec<Vec<Op>>> {
    if cfg!(miri) { vec(vec(op(), 0..3), 0..3) } else { vec(vec(op(), 0..6), 0..8) }
}

fn weak() -> impl Strategy<Value = Weak> {
    proptest::sample::select(&Weak::ALL)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(48, 2),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_default_hasher_matches_the_model(bursts in bursts()) {
        run::<u64, u64, _>(bursts, DefaultHashBuilder::with_seed(1), KEYS);
    }

    #[test]
    fn words_match_the_model(bursts in bursts(), hasher in weak()) {
        run::<u64, u64, _>(bursts, hasher, span(hasher));
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow; words cover the code")]
    fn a_byte_matches_the_model(bursts in bursts(), hasher in weak()) {
        run::<u8, (), _>(bursts, hasher, span(hasher));
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow; words cover the code")]
    fn entries_without_a_size_match_the_model(bursts in bursts(), hasher in weak()) {
        run::<(), (), _>(bursts, hasher, span(hasher));
    }

    #[test]
    fn odd_sizes_match_the_model(bursts in bursts(), hasher in weak()) {
        run::<[u8; 13], [u8; 13], _>(bursts, hasher, span(hasher));
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow; odd sizes cover the code")]
    fn large_values_match_the_model(bursts in bursts(), hasher in weak()) {
        run::<u64, [u64; 5], _>(bursts, hasher, span(hasher));
    }
}
