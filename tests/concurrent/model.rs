//! `ConcurrentMap` against `HashMap` on one thread, with several hashers, types of entries, and
//! pins that begin and end between operations.

use core::fmt::Debug;
use core::hash::{BuildHasher, Hash};
use flowtable::Prehashed;
use model::cases;
use std::collections::{HashMap, HashSet};

use flowtable::concurrent::{Compute, Computed, Pinned, TryInsert};
use flowtable::{ConcurrentMap, DefaultHashBuilder};
use model::hashers::{Weak, mix};
use model::scaled;
use proptest::collection::vec;
use proptest::prelude::*;

/// Keys and values made from numbers.
trait Part: Clone + Debug + Eq + Hash + Send + 'static {
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

/// Only a hundred distinct values, so that wrong entries are detected.
impl Part for Option<u8> {
    fn make(number: u32) -> Self {
        (number % 100).checked_sub(1).map(|number| number as u8)
    }
}

impl Part for String {
    fn make(number: u32) -> Self {
        format!("number {number}")
    }
}

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

/// One step of a test. Keys are numbers below [`KEYS`].
#[derive(Clone, Debug)]
enum Op {
    Insert(u32, u32),
    Remove(u32),
    RemoveIf(u32, bool),
    Get(u32),
    GetOrInsert(u32, u32),
    /// Of an odd key, by [`Pinned::try_insert_with`].
    GetOrInsertWith(u32, u32),
    Update(u32, u32),
    UpdateOrInsertWith(u32, u32),
    /// Inserts (`Some(Some)`), keeps (`None`) or removes (`Some(None)`).
    Compute(u32, Option<Option<u32>>),
    /// Every operation on a single key by its hash.
    Hashed(u32, u32),
    GetMany([u32; 5]),
    GetBatch(Vec<u32>),
    /// The first key, the distance between keys, and their number.
    InsertRun(u32, u32, u32),
    RemoveRun(u32, u32, u32),
    Extend(Vec<(u32, u32)>),
    Reserve(u32),
    /// Keeps the keys whose hash modulo 4 is, or is not, this remainder.
    Retain(u64, bool),
    Clear,
    Flush,
    Pin,
    Repin(usize),
    Unpin(usize),
}

/// Keys of a model test, here and of `ConcurrentTable`.
pub(crate) const KEYS: u32 = scaled(8000, 1000, 40);

/// The most keys of a run.
pub(crate) const RUN: u32 = scaled(2500, 300, 20);

fn op() -> impl Strategy<Value = Op> {
    let (key, value, pin) = (0..KEYS, any::<u32>(), 0..4_usize);
    let pair = (key.clone(), value);
    let run = (key.clone(), 1..8_u32, 0..RUN);
    prop_oneof![
        5 => pair.clone().prop_map(|(key, value)| Op::Insert(key, value)),
        4 => key.clone().prop_map(Op::Remove),
        2 => (key.clone(), any::<bool>()).prop_map(|(key, is)| Op::RemoveIf(key, is)),
        2 => key.clone().prop_map(Op::Get),
        3 => pair.clone().prop_map(|(key, value)| Op::GetOrInsert(key, value)),
        3 => pair.clone().prop_map(|(key, value)| Op::GetOrInsertWith(key, value)),
        3 => pair.clone().prop_map(|(key, value)| Op::Update(key, value)),
        3 => pair.clone().prop_map(|(key, value)| Op::UpdateOrInsertWith(key, value)),
        4 => (key.clone(), any::<Option<Option<u32>>>())
            .prop_map(|(key, what)| Op::Compute(key, what)),
        4 => pair.clone().prop_map(|(key, value)| Op::Hashed(key, value)),
        2 => proptest::array::uniform5(key.clone()).prop_map(Op::GetMany),
        2 => vec(key, 0..100).prop_map(Op::GetBatch),
        6 => run.clone().prop_map(|(first, apart, count)| Op::InsertRun(first, apart, count)),
        5 => run.prop_map(|(first, apart, count)| Op::RemoveRun(first, apart, count)),
        1 => vec(pair, 0..100).prop_map(Op::Extend),
        1 => (0..RUN).prop_map(Op::Reserve),
        1 => (0..4_u64, any::<bool>()).prop_map(|(remainder, keep)| Op::Retain(remainder, keep)),
        1 => Just(Op::Clear),
        2 => Just(Op::Flush),
        2 => Just(Op::Pin),
        2 => pin.clone().prop_map(Op::Repin),
        2 => pin.prop_map(Op::Unpin),
    ]
}

type Model<K, V> = HashMap<K, V>;

/// A map with some pins, and its reference model.
struct Pair<'m, K, V, S> {
    pins: Vec<Pinned<'m, ConcurrentMap<K, V, S>>>,
    ours: &'m ConcurrentMap<K, V, S>,
    model: &'m mut Model<K, V>,
    /// The number of distinct keys: few, if all keys have one hash.
    span: u32,
}

impl<K: Part, V: Part, S: BuildHasher + Clone> Pair<'_, K, V, S> {
    fn key(&self, number: u32) -> K {
        K::make(number % self.span)
    }

    /// Performs an operation on a single key.
    fn one(&mut self, op: Op) {
        // The oldest pin, or a new one.
        let fresh = self.ours.pin();
        let (key, model) = (|number: u32| K::make(number % self.span), &mut *self.model);
        let pin = self.pins.first().unwrap_or(&fresh);
        match op {
            Op::Insert(at, value) => {
                let old = model.insert(key(at), V::make(value));
                assert_eq!(pin.insert(key(at), V::make(value)), Ok(old.as_ref()));
            }
            Op::Remove(at) => {
                let old = model.remove_entry(&key(at));
                if at % 2 == 0 {
                    assert_eq!(pin.remove(&key(at)), old.as_ref().map(|(_, value)| value));
                } else {
                    assert_eq!(
                        pin.remove_entry(&key(at)),
                        old.as_ref().map(|(key, value)| (key, value))
                    );
                }
            }
            Op::RemoveIf(at, is) => {
                let old = model.get(&key(at)).cloned().filter(|_| is);
                let found = |own: &K, value: &V| {
                    assert_eq!(model.get_key_value(&key(at)), Some((own, value)));
                    is
                };
                assert_eq!(pin.remove_if(&key(at), found), old.as_ref());
                if is {
                    model.remove(&key(at));
                }
            }
            Op::Get(at) => {
                assert_eq!(pin.get(&key(at)), model.get(&key(at)));
                assert_eq!(pin.get_key_value(&key(at)), model.get_key_value(&key(at)));
                assert_eq!(pin.contains_key(&key(at)), model.contains_key(&key(at)));
            }
            Op::GetOrInsert(at, value) => {
                let current = model.entry(key(at)).or_insert(V::make(value));
                assert_eq!(pin.get_or_insert(key(at), V::make(value)), Ok(&*current));
            }
            Op::GetOrInsertWith(at, value) => {
                let is_present = model.contains_key(&key(at));
                let current = model.entry(key(at)).or_insert(V::make(value));
                let make = || {
                    assert!(!is_present);
                    V::make(value)
                };
                let expected = match is_present {
                    false => TryInsert::Inserted(&*current),
                    true => TryInsert::Occupied { current: &*current, refused: None },
                };
                if at % 2 == 0 {
                    assert_eq!(pin.get_or_insert_with(&key(at), make), Ok(expected.value()));
                } else {
                    assert_eq!(pin.try_insert_with(&key(at), make), Ok(expected));
                }
            }
            Op::Update(at, value) => {
                let current = model.get_mut(&key(at));
                let update = |now: &V| {
                    assert_eq!(Some(now), current.as_deref());
                    V::make(value)
                };
                assert_eq!(
                    pin.update(&key(at), update),
                    Ok(current.is_some().then_some(&V::make(value)))
                );
                current.into_iter().for_each(|current| *current = V::make(value));
            }
            Op::UpdateOrInsertWith(at, value) => {
                let old = model.insert(key(at), V::make(value));
                let update = |now: &V| {
                    assert_eq!(Some(now), old.as_ref());
                    V::make(value)
                };
                let make = || {
                    assert_eq!(old, None);
                    V::make(value)
                };
                let updated = pin.update_or_insert_with(&key(at), update, make);
                assert_eq!(updated, Ok(&V::make(value)));
            }
            Op::Compute(at, what) => Self::compute(pin, model, key(at), what),
            Op::Hashed(at, value) => Self::hashed(pin, model, &key(at), &V::make(value)),
            op => self.many(op),
        }
    }

    fn compute(
        pin: &Pinned<'_, ConcurrentMap<K, V, S>>,
        model: &mut Model<K, V>,
        key: K,
        what: Option<Option<u32>>,
    ) {
        let old = model.get(&key).cloned();
        let decide = |now: Option<&V>| {
            assert_eq!(now, old.as_ref());
            match what {
                None => Compute::Keep,
                Some(None) => Compute::Remove,
                Some(Some(value)) => Compute::Insert(V::make(value)),
            }
        };
        let new = what.flatten().map(V::make);
        let expected = match (what, &old, &new) {
            (Some(Some(_)), Some(old), Some(new)) => Computed::Updated { old, new },
            (Some(Some(_)), None, Some(new)) => Computed::Inserted(new),
            (Some(None), Some(old), _) => Computed::Removed(old),
            _ => Computed::Kept(old.as_ref()),
        };
        assert_eq!(pin.compute(&key, decide), Ok(expected));
        match (what, new) {
            (Some(None), _) => _ = model.remove(&key),
            (_, Some(new)) => _ = model.insert(key, new),
            _ => {}
        }
    }

    fn hashed(
        pin: &Pinned<'_, ConcurrentMap<K, V, S>>,
        model: &mut Model<K, V>,
        key: &K,
        value: &V,
    ) {
        let query = Prehashed { hash: pin.hash_of(key), key };
        assert_eq!(query.hash, pin.hasher().hash_one(key));
        assert_eq!(pin.get(query), model.get(key));
        let is_new = !model.contains_key(key);
        let there = model.entry(key.clone()).or_insert_with(|| value.clone());
        assert_eq!(pin.get_or_insert_with(query, || value.clone()), Ok(&*there));
        if is_new {
            assert_eq!(pin.remove(query), model.remove(key).as_ref());
            assert_eq!(pin.remove(query), None);
        }
    }

    /// Performs an operation on several keys.
    fn many(&mut self, op: Op) {
        let fresh = self.ours.pin();
        let pin = self.pins.last().unwrap_or(&fresh);
        let run = |first: u32, apart: u32, count: u32| {
            let span = self.span;
            (0..count.min(span)).map(move |i| (first + i * apart) % KEYS % span)
        };
        match op {
            Op::InsertRun(first, apart, count) => {
                for number in run(first, apart, count) {
                    let old = self.model.insert(self.key(number), V::make(number));
                    assert_eq!(pin.insert(self.key(number), V::make(number)), Ok(old.as_ref()));
                }
            }
            Op::RemoveRun(first, apart, count) => {
                for number in run(first, apart, count) {
                    let key = self.key(number);
                    assert_eq!(pin.remove(&key), self.model.remove(&key).as_ref());
                }
            }
            Op::GetMany(keys) => {
                let keys = keys.map(|number| self.key(number));
                let expected = keys.each_ref().map(|key| self.model.get(key));
                assert_eq!(get_batch!(pin, keys.each_ref()), expected);
                let hashed = keys.each_ref().map(|key| Prehashed { hash: pin.hash_of(key), key });
                assert_eq!(get_batch!(pin, hashed), expected);
            }
            Op::GetBatch(keys) => {
                let keys: Vec<K> = keys.into_iter().map(|number| self.key(number)).collect();
                let mut found = vec![None; keys.len()];
                pin.get_batch(&keys, flowtable::write_to(&mut found));
                assert!(found.into_iter().eq(keys.iter().map(|key| self.model.get(key))));
            }
            Op::Extend(entries) => {
                let made = |(key, value): (u32, u32)| (self.key(key), V::make(value));
                let entries: Vec<(K, V)> = entries.into_iter().map(made).collect();
                let mut ours = self.ours;
                ours.extend(entries.iter().cloned());
                self.model.extend(entries);
            }
            op => self.whole(op),
        }
    }

    /// Performs an operation on the whole map, or on the pins.
    fn whole(&mut self, op: Op) {
        match op {
            Op::Retain(remainder, keep) => {
                let kept = |key: &K| (mix(Weak::Mixed.hash_one(key)) % 4 == remainder) == keep;
                let mut visited = 0;
                self.ours.pin().retain(|key, value| {
                    visited += 1;
                    assert_eq!(self.model.get(key), Some(value));
                    kept(key)
                });
                assert_eq!(visited, self.model.len());
                self.model.retain(|key, _| kept(key));
            }
            Op::Clear => {
                self.ours.pin().clear();
                self.model.clear();
            }
            Op::Flush => self.ours.pin().flush(),
            Op::Reserve(additional) => self.ours.pin().reserve(additional as usize).unwrap(),
            Op::Pin if self.pins.len() < 4 => self.pins.push(self.ours.pin()),
            Op::Repin(at) => self.pins.iter_mut().skip(at).take(1).for_each(Pinned::repin),
            Op::Unpin(at) if at < self.pins.len() => drop(self.pins.remove(at)),
            _ => {}
        }
    }

    fn compare(&self, after: &str) {
        let (pin, model) = (self.ours.pin(), &*self.model);
        assert_eq!((pin.len(), pin.is_empty()), (model.len(), model.is_empty()), "after {after}");
        assert_eq!(pin.allocation_size(), self.ours.allocation_size(), "after {after}");
        assert_eq!(self.ours.len(), model.len());
        let collected: HashSet<&K> = pin.keys().collect();
        assert_eq!(
            (collected.len(), pin.iter().count()),
            (model.len(), model.len()),
            "after {after}"
        );
        assert!(pin.keys().zip(pin.values()).eq(&pin), "all iterators have one order");
        for (key, value) in &pin {
            assert_eq!(model.get(key), Some(value), "after {after}");
        }
        for (key, value) in model {
            assert_eq!(pin.get(key), Some(value), "after {after}");
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

/// Performs all operations on a map and on the model, and compares them after each. Invariants are
/// checked after each burst, when no pin is left.
fn run<K: Part, V: Part, S: BuildHasher + Clone>(bursts: Vec<Vec<Op>>, hasher: S, span: u32) {
    let mut map = ConcurrentMap::with_hasher(hasher);
    let mut model = Model::<K, V>::new();
    for ops in bursts {
        let what = format!("{ops:?}");
        // References of this pin are not affected by later operations.
        let watcher = map.pin();
        let seen: Vec<(&K, &V)> = watcher.iter().collect();
        let as_seen: Vec<(K, V)> =
            seen.iter().map(|&(key, value)| (key.clone(), value.clone())).collect();
        let mut pair = Pair { pins: vec![], ours: &map, model: &mut model, span };
        for op in ops {
            pair.one(op);
            pair.compare(&what);
        }
        drop(pair);
        assert!(seen.into_iter().eq(as_seen.iter().map(|(key, value)| (key, value))));
        drop(watcher);
        map.validate().unwrap_or_else(|broken| panic!("after {what}: {broken}"));
    }
    map.pin().clear();
    assert!(map.pin().iter().next().is_none());
    assert_eq!(format!("{map:?}").len(), format!("{:?}", Model::<K, V>::new()).len());
}

/// Most bursts are short, so that the invariants are checked often.
fn bursts() -> impl Strategy<Value = Vec<Vec<Op>>> {
    let many = if cfg!(miri) { 3..6 } else { 20..40 };
    vec(prop_oneof![3 => vec(op(), 1), 2 => vec(op(), 2..12)], many)
}

fn weak() -> impl Strategy<Value = Weak> {
    proptest::sample::select(&Weak::ALL)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(25, 1)))]

    #[test]
    #[cfg_attr(miri, ignore = "slow; words cover the code")]
    fn words_with_the_default_hasher_match_the_model(bursts in bursts()) {
        run::<u64, u64, _>(bursts, DefaultHashBuilder::with_seed(1), KEYS);
    }

    #[test]
    fn words_match_the_model(bursts in bursts(), hasher in weak()) {
        run::<u64, u64, _>(bursts, hasher, span(hasher));
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow; words cover the code")]
    fn two_bytes_match_the_model(bursts in bursts(), hasher in weak()) {
        run::<Option<u8>, (), _>(bursts, hasher, span(hasher));
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow; words cover the code")]
    fn entries_without_a_size_match_the_model(bursts in bursts(), hasher in weak()) {
        run::<(), (), _>(bursts, hasher, span(hasher));
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow; words cover the code")]
    fn large_values_match_the_model(bursts in bursts(), hasher in weak()) {
        run::<u64, [u64; 25], _>(bursts, hasher, span(hasher));
    }

    #[test]
    fn strings_match_the_model(bursts in bursts(), hasher in weak()) {
        run::<String, Aligned, _>(bursts, hasher, span(hasher));
    }
}
