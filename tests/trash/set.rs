//! `TrashSet` compared with `HashSet`, for several hashers.

use core::hash::{Hash, Hasher};
use model::cases;
use std::collections::HashSet;

use flowtable::{DefaultHashBuilder, Prehashed, TrashSet};
use model::hashers::{Weak, mix};
use proptest::collection::vec;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Op {
    Insert(u32),
    TryInsert(u32),
    InsertHashed(u32),
    Replace(u32),
    GetOrInsert(u32),
    GetOrInsertWith(u32),
    Remove(u32),
    RemoveHashed(u32),
    Take(u32),
    Extend(Vec<u32>),
    Contains(Vec<u32>),
    Retain(u64),
    Extract(u64, usize),
    Drain(usize),
    ShrinkTo(usize),
    Clear,
}

const KEYS: u32 = if cfg!(miri) { 40 } else { 2000 };

fn op() -> impl Strategy<Value = Op> {
    let (key, keys) = (|| 0..KEYS, || vec(0..KEYS, 0..if cfg!(miri) { 20 } else { 300 }));
    prop_oneof![
        3 => key().prop_map(Op::Insert),
        2 => key().prop_map(Op::TryInsert),
        2 => key().prop_map(Op::InsertHashed),
        2 => key().prop_map(Op::Replace),
        2 => key().prop_map(Op::GetOrInsert),
        2 => key().prop_map(Op::GetOrInsertWith),
        2 => key().prop_map(Op::Remove),
        2 => key().prop_map(Op::RemoveHashed),
        2 => key().prop_map(Op::Take),
        8 => keys().prop_map(Op::Extend),
        2 => keys().prop_map(Op::Contains),
        1 => (0..4_u64).prop_map(Op::Retain),
        1 => (0..4_u64, 0..300_usize).prop_map(|(picked, most)| Op::Extract(picked, most)),
        1 => (0..50_usize).prop_map(Op::Drain),
        1 => (0..3000_usize).prop_map(Op::ShrinkTo),
        1 => Just(Op::Clear),
    ]
}

/// Two sets, of which the operations change the first.
struct Sets {
    ours: TrashSet<u32, Weak>,
    model: HashSet<u32>,
}

impl Sets {
    fn new(hasher: Weak) -> Self {
        Self { ours: TrashSet::with_hasher(hasher), model: HashSet::new() }
    }

    /// With the hashes of the caller.
    fn hashed(&mut self, op: Op) {
        let Self { ours, model } = self;
        match op {
            Op::InsertHashed(key) => {
                let value = Prehashed { hash: ours.hash_of(&key), key: &key };
                assert_eq!(ours.contains(value), model.contains(&key));
                assert_eq!(ours.get_or_insert_with(value, |key| *key), &key);
                model.insert(key);
                assert_eq!(ours.get(value), Some(&key));
            }
            Op::RemoveHashed(key) => {
                let value = Prehashed { hash: ours.hash_of(&key), key: &key };
                assert_eq!(ours.remove(value), model.remove(&key));
                assert_eq!(ours.take(value), None);
            }
            op => self.whole(op),
        }
    }

    fn step(&mut self, op: Op) {
        let Self { ours, model } = self;
        match op {
            Op::Insert(key) => assert_eq!(ours.insert(key), model.insert(key)),
            Op::TryInsert(key) => assert_eq!(ours.try_insert(key), Ok(model.insert(key))),
            Op::Replace(key) => assert_eq!(ours.replace(key), model.replace(key)),
            Op::GetOrInsert(key) => {
                assert_eq!(ours.get_or_insert(key), &key);
                model.insert(key);
            }
            Op::GetOrInsertWith(key) => {
                let is_new = model.insert(key);
                let mut calls = 0;
                let owned = |key: &u32| {
                    calls += 1;
                    *key
                };
                assert_eq!(ours.get_or_insert_with(&key, owned), &key);
                assert_eq!(calls, u32::from(is_new));
            }
            Op::Remove(key) => assert_eq!(ours.remove(&key), model.remove(&key)),
            Op::Take(key) => assert_eq!(ours.take(&key), model.take(&key)),
            Op::Extend(keys) => {
                ours.extend(&keys);
                model.extend(&keys);
            }
            op => self.hashed(op),
        }
    }

    fn whole(&mut self, op: Op) {
        let Self { ours, model } = self;
        let picks = |picked: u64| move |key: &u32| mix((*key).into()) % 4 == picked;
        match op {
            Op::Contains(keys) => {
                let mut found = vec![];
                ours.contains_batch(&keys, |i, is_there| {
                    assert_eq!(i, found.len());
                    found.push(is_there);
                });
                assert!(found.iter().copied().eq(keys.iter().map(|key| model.contains(key))));
                let hash = |&key| Prehashed { hash: ours.hash_of(&key), key };
                let prehashed: Vec<Prehashed<u32>> = keys.iter().map(hash).collect();
                ours.contains_batch(prehashed.iter().map(Prehashed::as_ref), |i, is_there| {
                    assert_eq!(is_there, found[i]);
                });
            }
            Op::Retain(picked) => {
                ours.retain(picks(picked));
                model.retain(picks(picked));
            }
            Op::Extract(picked, most) => {
                for key in ours.extract_if(picks(picked)).take(most).collect::<Vec<_>>() {
                    assert!(picks(picked)(&key) && model.remove(&key));
                }
            }
            Op::Drain(count) => {
                let mut drain = ours.drain();
                assert_eq!(drain.len(), model.len());
                assert!(drain.by_ref().take(count).all(|key| model.remove(&key)));
                assert_eq!(drain.len(), model.len());
                model.clear();
            }
            Op::ShrinkTo(capacity) => ours.shrink_to(capacity),
            _ => {
                ours.clear();
                model.clear();
            }
        }
    }

    fn compare(&self) {
        let Self { ours, model } = self;
        ours.validate().unwrap();
        assert_eq!((ours.len(), ours.is_empty()), (model.len(), model.is_empty()));
        assert!(ours.iter().all(|key| model.contains(key)));
        assert!(model.iter().all(|key| ours.contains(key) && ours.get(key) == Some(key)));
        assert_eq!((ours, ours.shape().entries), (&ours.clone(), model.len()));
    }
}

/// The operations on two sets.
fn compare_two(a: &Sets, b: &Sets) {
    let sorted = |values: Vec<u32>| {
        let mut values = values;
        values.sort_unstable();
        values
    };
    let ours = |values: &TrashSet<u32, Weak>| sorted(values.iter().copied().collect());
    let theirs = |values: &HashSet<u32>| sorted(values.iter().copied().collect());
    assert_eq!(ours(&(&a.ours | &b.ours)), theirs(&(&a.model | &b.model)));
    assert_eq!(ours(&(&a.ours & &b.ours)), theirs(&(&a.model & &b.model)));
    assert_eq!(ours(&(&a.ours - &b.ours)), theirs(&(&a.model - &b.model)));
    assert_eq!(ours(&(&a.ours ^ &b.ours)), theirs(&(&a.model ^ &b.model)));
    assert_eq!(a.ours.is_subset(&b.ours), a.model.is_subset(&b.model));
    assert_eq!(a.ours.is_superset(&b.ours), a.model.is_superset(&b.model));
    assert_eq!(a.ours.is_disjoint(&b.ours), a.model.is_disjoint(&b.model));
    assert_eq!(a.ours == b.ours, a.model == b.model);
    // Hints are bounds, and iterators can be cloned on their way.
    let (difference, intersection) = (a.ours.difference(&b.ours), a.ours.intersection(&b.ours));
    for (hint, count) in [
        (difference.size_hint(), difference.clone().count()),
        (intersection.size_hint(), intersection.clone().count()),
        (a.ours.union(&b.ours).size_hint(), a.ours.union(&b.ours).count()),
        (
            a.ours.symmetric_difference(&b.ours).size_hint(),
            a.ours.symmetric_difference(&b.ours).count(),
        ),
    ] {
        assert!(hint.0 <= count && count <= hint.1.unwrap(), "{hint:?} {count}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(40, 1)))]

    #[test]
    fn sets(
        a in vec(op(), 0..if cfg!(miri) { 6 } else { 60 }),
        b in vec(op(), 0..if cfg!(miri) { 6 } else { 60 }),
        hashers in proptest::array::uniform2(proptest::sample::select(&Weak::ALL)),
    ) {
        let [mut first, mut second] = hashers.map(Sets::new);
        for (set, ops) in [(&mut first, a), (&mut second, b)] {
            for op in ops {
                set.step(op);
                set.compare();
            }
        }
        compare_two(&first, &second);
        compare_two(&second, &first);
        let collected: HashSet<u32> = first.ours.into_iter().collect();
        prop_assert_eq!(collected, first.model);
    }
}

/// Equal to others with its number.
#[derive(Clone, Debug)]
struct Named(u32, &'static str);

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Named {}

impl Hash for Named {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

#[test]
fn insert_keeps_the_value_and_replace_does_not() {
    let mut set = TrashSet::with_hasher(DefaultHashBuilder::with_seed(1));
    assert!(set.insert(Named(1, "first")));
    assert!(!set.insert(Named(1, "second")));
    assert_eq!(set.get(&Named(1, "")).unwrap().1, "first");
    assert_eq!(set.get_or_insert(Named(1, "third")).1, "first");
    assert_eq!(set.replace(Named(1, "fourth")).unwrap().1, "first");
    assert_eq!(set.take(&Named(1, "")).unwrap().1, "fourth");
    assert_eq!(set.replace(Named(1, "fifth")), None);
}

#[test]
#[should_panic(expected = "not equivalent")]
fn a_value_that_is_not_equivalent_is_refused() {
    TrashSet::<u32>::new().get_or_insert_with(&1, |_| 2);
}
