//! `LcTrieMap` compared with `BTreeMap`, with the invariants checked after each step; and edge
//! cases.

use core::fmt::Debug;
use core::ops::Bound;
use model::cases;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use flowtable::key::bits::{BitString, Headed};
use flowtable::probes::Probes;
use flowtable::trie::map::Entry;
use flowtable::trie::{RebalanceFrom, Thresholds, Tuning};
use flowtable::{DefaultHashBuilder, LcTrieMap};
use proptest::collection::vec;
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// One step of a test.
#[derive(Clone, Debug)]
enum Op<K> {
    Insert(K, u32),
    Remove(K),
    Get(K),
    EntryAdd(K, u32),
    EntryRemove(K),
    Range(Bound<K>, Bound<K>),
    /// Keeps the values with this remainder modulo 4.
    Retain(u32),
    Extract(u32, usize),
    AddToAll(u32),
    AddToRange(Bound<K>, Bound<K>, u32),
    Pop(bool),
    EntryOfEnd(bool, u32),
    /// Splits there, and appends the rest again, or the other way round.
    Split(K, bool),
    Rebuild,
    Shrink,
    Clear,
}

fn op<K: Debug + Clone + 'static>(
    key: impl Strategy<Value = K> + Clone + 'static,
) -> impl Strategy<Value = Op<K>> {
    let bound = prop_oneof![
        Just(Bound::Unbounded),
        key.clone().prop_map(Bound::Included),
        key.clone().prop_map(Bound::Excluded),
    ];
    prop_oneof![
        12 => (key.clone(), any::<u32>()).prop_map(|(key, value)| Op::Insert(key, value)),
        6 => key.clone().prop_map(Op::Remove),
        4 => key.clone().prop_map(Op::Get),
        4 => (key.clone(), any::<u32>()).prop_map(|(key, value)| Op::EntryAdd(key, value)),
        2 => key.clone().prop_map(Op::EntryRemove),
        2 => (bound.clone(), bound.clone()).prop_map(|(from, to)| Op::Range(from, to)),
        1 => (bound.clone(), bound, any::<u32>())
            .prop_map(|(from, to, more)| Op::AddToRange(from, to, more)),
        2 => any::<bool>().prop_map(Op::Pop),
        1 => (any::<bool>(), any::<u32>()).prop_map(|(last, value)| Op::EntryOfEnd(last, value)),
        1 => (key.clone(), any::<bool>()).prop_map(|(key, upwards)| Op::Split(key, upwards)),
        1 => (0..4_u32).prop_map(Op::Retain),
        1 => (0..4_u32, 0..20_usize).prop_map(|(remainder, most)| Op::Extract(remainder, most)),
        1 => any::<u32>().prop_map(Op::AddToAll),
        1 => Just(Op::Rebuild),
        1 => Just(Op::Shrink),
        1 => Just(Op::Clear),
    ]
}

/// `BTreeMap::range` panics when the start is greater than the end; `LcTrieMap::range` is empty.
fn within<K: Ord>(key: &K, from: &Bound<K>, to: &Bound<K>) -> bool {
    let above = match from {
        Bound::Unbounded => true,
        Bound::Included(from) => key >= from,
        Bound::Excluded(from) => key > from,
    };
    above
        && match to {
            Bound::Unbounded => true,
            Bound::Included(to) => key <= to,
            Bound::Excluded(to) => key < to,
        }
}

/// Compares a range of both, forwards and backwards.
fn compare_range<K: BitString + Debug>(
    ours: &LcTrieMap<K, u32>,
    model: &BTreeMap<K, u32>,
    from: Bound<K>,
    to: Bound<K>,
) {
    let expected = model.iter().filter(|(key, _)| within(*key, &from, &to));
    let expected: Vec<_> = expected.collect();
    let range = ours.range((from, to));
    assert!(range.clone().eq(expected.iter().copied()), "range {from:?} to {to:?}");
    assert!(range.rev().eq(expected.into_iter().rev()), "back {from:?} to {to:?}");
}

fn step<K: BitString + Debug>(
    ours: &mut LcTrieMap<K, u32>,
    model: &mut BTreeMap<K, u32>,
    op: Op<K>,
) {
    match op {
        Op::Insert(key, value) => assert_eq!(ours.insert(key, value), model.insert(key, value)),
        Op::Remove(key) => assert_eq!(ours.remove(&key), model.remove(&key)),
        Op::Get(key) => {
            assert_eq!(ours.get(&key), model.get(&key));
            assert_eq!(ours.get_mut(&key), model.get_mut(&key));
            assert_eq!(ours.get_key_value(&key), model.get_key_value(&key));
            assert_eq!(ours.contains_key(&key), model.contains_key(&key));
        }
        Op::EntryAdd(key, value) => {
            let entry = ours.entry(key);
            assert_eq!(entry.key(), &key);
            let now = entry.and_modify(|old| *old = old.wrapping_add(1)).or_insert(value);
            let expected =
                model.entry(key).and_modify(|old| *old = old.wrapping_add(1)).or_insert(value);
            assert_eq!(now, expected);
        }
        Op::EntryRemove(key) => match ours.entry(key) {
            Entry::Occupied(entry) => {
                assert_eq!(Some(entry.remove_entry()), model.remove_entry(&key));
            }
            Entry::Vacant(entry) => assert_eq!(
                (entry.into_key(), None),
                (key, model.get(&key)),
                "vacant only where the model has nothing"
            ),
        },
        Op::Range(from, to) => compare_range(ours, model, from, to),
        Op::Retain(remainder) => {
            ours.retain(|_, value| *value % 4 == remainder);
            model.retain(|_, value| *value % 4 == remainder);
        }
        Op::Extract(remainder, most) => {
            let picks = |value: u32| value % 4 == remainder;
            let removed: Vec<_> = ours.extract_if(|_, value| picks(*value)).take(most).collect();
            let expected = model.iter().filter(|(_, value)| picks(**value)).take(most);
            let expected: Vec<_> = expected.map(|(key, value)| (*key, *value)).collect();
            expected.iter().for_each(|(key, _)| _ = model.remove(key));
            assert_eq!(removed, expected);
        }
        Op::AddToAll(more) => {
            ours.values_mut().for_each(|value| *value = value.wrapping_add(more));
            model.values_mut().for_each(|value| *value = value.wrapping_add(more));
            assert!(ours.iter_mut().eq(model.iter_mut()));
        }
        Op::AddToRange(from, to, more) => {
            let expected = model.iter_mut().filter(|(key, _)| within(*key, &from, &to));
            let mut expected: Vec<_> = expected.collect();
            expected.iter_mut().for_each(|(_, value)| **value = value.wrapping_add(more));
            ours.range_mut((from, to)).for_each(|(_, value)| *value = value.wrapping_add(more));
            assert!(ours.range_mut((from, to)).rev().eq(expected.into_iter().rev()));
        }
        Op::Pop(true) => assert_eq!(ours.pop_last(), model.pop_last()),
        Op::Pop(false) => assert_eq!(ours.pop_first(), model.pop_first()),
        Op::EntryOfEnd(last, value) => {
            let entry = if last { ours.last_entry() } else { ours.first_entry() };
            let expected = if last { model.last_entry() } else { model.first_entry() };
            match (entry, expected) {
                (Some(mut entry), Some(mut expected)) => {
                    assert_eq!(entry.key(), expected.key());
                    assert_eq!(entry.insert(value), expected.insert(value));
                }
                (entry, expected) => assert!(entry.is_none() && expected.is_none()),
            }
        }
        Op::Split(at, upwards) => {
            let (mut rest, mut expected) = (ours.split_off(&at), model.split_off(&at));
            rest.validate().unwrap();
            assert!(rest.iter().eq(&expected) && ours.iter().eq(&*model));
            if upwards {
                rest.append(ours);
                expected.append(model);
                (*ours, *model) = (rest, expected);
            } else {
                ours.append(&mut rest);
                model.append(&mut expected);
                assert!(rest.is_empty() && rest.allocation_size() == 0);
            }
        }
        Op::Rebuild => *ours = ours.clone().into_iter().collect(),
        Op::Shrink => {
            let (before, shape) = (ours.allocation_size(), ours.shape());
            ours.shrink_to_fit();
            assert!(ours.allocation_size() <= before.min(ours.clone().allocation_size()));
            assert_eq!(ours.shape().leaves_by_depth, shape.leaves_by_depth);
        }
        Op::Clear => {
            ours.clear();
            model.clear();
        }
    }
}

/// Applies `ops` to a map and to the model, which must agree in every respect after each.
fn run<K: BitString + Debug>(ops: Vec<Op<K>>, tuning: Tuning) {
    let (mut ours, mut model) = (LcTrieMap::with_tuning(tuning), BTreeMap::new());
    for op in ops {
        let what = format!("{op:?}");
        step(&mut ours, &mut model, op);
        ours.validate().unwrap_or_else(|broken| panic!("after {what}: {broken}"));
        assert_eq!(ours.len(), model.len());
        assert_eq!(ours.is_empty(), model.is_empty());
        assert!(ours.iter().eq(&model), "after {what}");
        assert_eq!(ours.iter().len(), model.len());
        assert!(ours.keys().eq(model.keys()) && ours.values().eq(model.values()));
        assert_eq!(ours.first_key_value(), model.first_key_value());
        assert_eq!(ours.last_key_value(), model.last_key_value());
        assert!(ours.iter().rev().eq(model.iter().rev()), "back after {what}");
    }
    assert_eq!(format!("{ours:?}"), format!("{model:?}"));
    assert!(ours.clone().into_keys().eq(model.keys().copied()));
    assert!(ours.clone().into_values().eq(model.values().copied()));
    assert!(ours.drain().eq(model));
    assert!(ours.is_empty() && ours.allocation_size() == 0);
}

fn tuning() -> impl Strategy<Value = Tuning> {
    let thresholds = (2..=100_u8).prop_flat_map(|inflate| {
        (1..inflate).prop_map(move |halve| Thresholds::new(inflate, halve).unwrap())
    });
    let start = prop_oneof![Just(RebalanceFrom::NewNode), Just(RebalanceFrom::Parent)];
    let any = (thresholds.clone(), thresholds, 1..6_u32, start).prop_map(
        |(node, root, root_bits, rebalance_from)| Tuning { node, root, root_bits, rebalance_from },
    );
    prop_oneof![Just(Tuning::default()), Just(Tuning::TRASH_2006), any]
}

/// Keys that share long prefixes: one of few bases with a few bits flipped.
fn clustered() -> impl Strategy<Value = u64> + Clone {
    (0..4_u64, 0..64_u32, 0..8_u64)
        .prop_map(|(base, bit, low)| (base << 61 | 0x00ff_00ff) ^ (1 << bit) ^ low)
}

/// Steps per case.
const STEPS: usize = if cfg!(miri) { 20 } else { 250 };

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(150, 1)))]

    #[test]
    fn dense_keys(ops in vec(op(any::<u8>()), 0..STEPS), tuning in tuning()) {
        run(ops, tuning);
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow; the code is covered by dense_keys")]
    fn clustered_keys(ops in vec(op(clustered()), 0..STEPS), tuning in tuning()) {
        run(ops, tuning);
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow; the code is covered by dense_keys")]
    fn random_keys(ops in vec(op(any::<u64>()), 0..STEPS), tuning in tuning()) {
        run(ops, tuning);
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow; the code is covered by dense_keys")]
    fn headed_keys_whose_headers_collide(
        ops in vec(
            op((0..3_u32, any::<u8>()).prop_map(|(h, k)| Headed { header: h, key: k })),
            0..STEPS,
        ),
        tuning in tuning(),
    ) {
        run(ops, tuning);
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow; the code is covered by dense_keys")]
    fn long_keys(
        ops in vec(op((0..60_usize, any::<u8>()).prop_map(|(at, byte)| {
            let mut key = [0x55; 60];
            key[at] = byte;
            key
        })), 0..STEPS / 2),
        tuning in tuning(),
    ) {
        run(ops, tuning);
    }
}

/// A million random operations with growing and shrinking sizes. Each is compared with the model;
/// some are validated, because validating all would be O(n²).
#[test]
#[cfg_attr(miri, ignore = "slow; the code is covered by dense_keys")]
fn a_million_operations() {
    let operations = 1_000_000;
    let mut rng = StdRng::seed_from_u64(7);
    let (mut ours, mut model) = (LcTrieMap::new(), BTreeMap::new());
    for i in 0..operations {
        // The number of keys swings between some hundreds and some tens of thousands.
        let growing = (i / 100_000) % 2 == 0;
        let key = rng.random_range(0..40_000_u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        if rng.random_bool(if growing { 0.8 } else { 0.2 }) {
            assert_eq!(ours.insert(key, i), model.insert(key, i));
        } else {
            assert_eq!(ours.remove(&key), model.remove(&key));
        }
        assert_eq!(ours.len(), model.len());
        if ours.len() < 100 || i % 5_000 == 0 {
            ours.validate().unwrap();
        }
    }
    assert!(ours.iter().eq(&model));
}

#[test]
fn an_empty_map_and_a_map_of_one() {
    let mut map: LcTrieMap<u32, ()> = LcTrieMap::default();
    assert_eq!((map.remove(&0), map.remove_entry(&0), map.get(&0)), (None, None, None));
    assert_eq!((map.first_key_value(), map.last_key_value()), (None, None));
    assert_eq!((map.iter().next(), map.range(..).next()), (None, None));
    assert_eq!((map.shape().max_depth(), map.shape().root_bits, map.allocation_size()), (0, 0, 0));
    map.insert(5, ());
    assert_eq!((map.shape().leaves_by_depth, map.shape().root_bits), (vec![1], 0));
    assert!(map.range(6..).next().is_none() && map.range(..5).next().is_none());
    assert!(map.range(5..=5).next().is_some() && map.range(0..).next().is_some());
}

/// Steps from both ends meet in the middle, and each key is returned once.
#[test]
#[cfg_attr(miri, ignore = "slow; the code is covered by iterators_report_their_exact_length")]
fn iterators_meet() {
    let map: LcTrieMap<u32, u32> = (0..101).map(|i| (i * 0x0101_0101, i)).collect();
    let mut rng = StdRng::seed_from_u64(4);
    for _ in 0..50 {
        let (mut ours, mut expected) = (map.iter(), (0..101).map(|i| (i * 0x0101_0101, i)));
        let (mut range, mut into) = (map.range(..), map.clone().into_iter());
        for left in (0..101).rev() {
            let next = if rng.random() {
                (ours.next(), range.next(), into.next(), expected.next())
            } else {
                (ours.next_back(), range.next_back(), into.next_back(), expected.next_back())
            };
            let owned = next.0.map(|(key, value)| (*key, *value));
            assert_eq!((next.0, owned, next.2), (next.1, next.3, next.3));
            assert_eq!((ours.len(), into.len()), (left, left));
        }
        assert_eq!((ours.next(), ours.next_back(), into.next()), (None, None, None));
        assert_eq!((range.next(), range.next_back(), into.next_back()), (None, None, None));
    }
}

/// Every iterator reports the number of remaining entries, and is fused.
#[test]
fn iterators_report_their_exact_length() {
    fn check<I: ExactSizeIterator>(mut iterator: I) {
        for left in (0..10).rev() {
            assert!(iterator.next().is_some());
            assert_eq!((iterator.len(), iterator.size_hint()), (left, (left, Some(left))));
        }
        assert!(iterator.next().is_none() && iterator.next().is_none());
    }
    let mut map: LcTrieMap<u16, u16> = (0..10).map(|i| (i * 6000, i)).collect();
    check(map.iter());
    check(map.keys());
    check(map.values());
    check(map.iter_mut());
    check(map.values_mut());
    check(map.clone().into_iter());
    check(map.clone().drain());
    assert_eq!(map.range(..).size_hint(), (0, Some(10)));
    assert_eq!(format!("{:?}", map.range(..7000).rev().collect::<Vec<_>>()), "[(6000, 1), (0, 0)]");
    assert_eq!(format!("{:?}", map.range(..7000)), "[(0, 0), (6000, 1)]");
}

/// Maps can be statics and can move between threads.
#[test]
fn auto_traits() {
    fn check<T: Send + Sync + Unpin + std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}
    static EMPTY: LcTrieMap<u32, ()> = LcTrieMap::new();
    assert!(EMPTY.is_empty());
    check::<LcTrieMap<u32, String>>();
    check::<flowtable::trie::unicache::Unicache<u32, String>>();
    check::<flowtable::trie::map::Iter<'static, u32, String>>();
    check::<flowtable::trie::map::IntoIter<u32, String>>();
}

#[test]
fn the_empty_bit_string_is_a_key() {
    let mut map = LcTrieMap::new();
    assert_eq!((map.insert([0_u8; 0], 1), map.insert([], 2), map.len()), (None, Some(1), 1));
    map.validate().unwrap();
    assert_eq!(map.remove(&[]), Some(2));
}

/// One key for each bit of a wide key, from the last to the first: every node is the full child of
/// its parent, so resizing cascades as far as possible. That must fit a small stack for any key
/// width.
#[test]
#[cfg_attr(miri, ignore = "slow")]
fn keys_of_extreme_width() {
    const BYTES: usize = 2048;
    let key = |bit: usize| {
        let mut key = [0_u8; BYTES];
        key[bit / 8] = 0x80 >> (bit % 8);
        key
    };
    let fill_and_empty = move || {
        let bits = || (0..8 * BYTES).rev().step_by(3);
        let mut map = LcTrieMap::new();
        bits().for_each(|bit| assert_eq!(map.insert(key(bit), bit), None));
        map.validate().unwrap();
        assert!(map.values().is_sorted_by(|a, b| a > b), "a later bit is a smaller key");
        bits().for_each(|bit| assert_eq!(map.remove(&key(bit)), Some(bit)));
        assert_eq!(map.shape().slots, 0);

        map.extend((0..6000).rev().map(|bit| (key(bit), bit)));
        map.validate().unwrap();
    };
    let thread = std::thread::Builder::new().stack_size(512 << 10).spawn(fill_and_empty);
    thread.unwrap().join().unwrap();
}

/// Every bit of a key in turn, from either end, with ones before or after it.
#[test]
fn a_caterpillar() {
    for reverse in [false, true] {
        let mut map = LcTrieMap::new();
        let mut bits: Vec<u32> = (0..if cfg!(miri) { 7 } else { 128 }).collect();
        if reverse {
            bits.reverse();
        }
        for &bit in &bits {
            map.insert(1_u128 << bit, bit);
            map.insert(u128::MAX << bit, bit);
            map.validate().unwrap();
        }
        for &bit in &bits {
            assert!(map.remove(&(1 << bit)).is_some());
            map.validate().unwrap();
        }
    }
}

/// One insertion doubles a node at most ten times, and the next one continues.
#[test]
#[cfg_attr(miri, ignore = "slow")]
fn work_is_bounded() {
    // 2^15 keys below a skipped bit: a root whose slots are all full, and which cannot grow.
    let mut map: LcTrieMap<u32, ()> = (0..1_u32 << 15).map(|i| (i << 16, ())).collect();
    assert_eq!(map.shape().root_bits, 15);
    // The bit is no longer skipped. The new root has one bit and a full child to absorb.
    map.insert(1 << 31, ());
    assert_eq!(map.shape().root_bits, 1 + 10);
    map.insert(1 << 31 | 1, ());
    assert_eq!(map.shape().root_bits, 16);
    map.validate().unwrap();
}

#[test]
fn every_value_is_dropped_once() {
    let value = Rc::new(());
    let count = if cfg!(miri) { 30 } else { 1000 };
    let mut map: LcTrieMap<u16, Rc<()>> = (0..count).map(|key| (key * 65, value.clone())).collect();
    assert_eq!(Rc::strong_count(&value), 1 + usize::from(count));
    map.insert(0, value.clone());
    map.retain(|key, _| key % 2 == 0);
    assert_eq!(Rc::strong_count(&value), 1 + map.len());
    map.remove(&0).unwrap();
    let half = map.len() / 2;
    let mut drain = map.drain();
    drain.by_ref().take(half).for_each(drop);
    drop(drain);
    assert_eq!((Rc::strong_count(&value), map.len()), (1, 0));
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn large_and_empty_values() {
    let mut map: LcTrieMap<u8, [u64; 100]> = LcTrieMap::new();
    map.extend((0..=255).map(|key| (key, [u64::from(key); 100])));
    assert!(map.iter().all(|(key, value)| value == &[u64::from(*key); 100]));
    let set: LcTrieMap<u8, ()> = (0..=255).map(|key| (key, ())).collect();
    assert_eq!((set.len(), set.shape().max_depth(), set.shape().root_bits), (256, 1, 8));
}

#[test]
fn a_panic_in_a_closure_leaves_the_map_valid() {
    let mut map: LcTrieMap<u32, u32> = (45..55).map(|key| (key << 20, key)).collect();
    let before = map.clone();
    let retained = catch_unwind(AssertUnwindSafe(|| {
        map.retain(|_, value| if *value == 50 { panic!("intended") } else { false });
    }));
    assert!(retained.is_err());
    assert_eq!(map, before);
    let entered = catch_unwind(AssertUnwindSafe(|| {
        map.entry(7).or_insert_with(|| panic!("intended"));
    }));
    assert!(entered.is_err());
    assert_eq!(map, before);
    map.validate().unwrap();
}

#[test]
#[should_panic(expected = "the map does not contain the key")]
fn indexing_an_absent_key_panics() {
    let map: LcTrieMap<u8, u8> = [(1, 1)].into();
    let _ = map[&2];
}

#[test]
fn thresholds_out_of_range_are_refused_with_their_values() {
    for (inflate, halve, message) in [
        (0, 25, "inflate threshold of 0 %: must be 1 to 100"),
        (101, 25, "inflate threshold of 101 %: must be 1 to 100"),
        (50, 0, "halve threshold of 0 %: must be 1 to 100"),
        (50, 200, "halve threshold of 200 %: must be 1 to 100"),
        (50, 50, "halve threshold of 50 %: must be below the 50 % to inflate"),
    ] {
        assert_eq!(Thresholds::new(inflate, halve).unwrap_err().to_string(), message);
    }
}

#[test]
fn the_size_of_the_root_is_limited() {
    let keys = if cfg!(miri) { 8 } else { 2000_u16 };
    for root_bits in [0, 1, 2, 5, u32::MAX] {
        let mut map = LcTrieMap::with_tuning(Tuning { root_bits, ..Tuning::default() });
        map.extend((0..keys).map(|key| (key * 31, ())));
        map.validate().unwrap();
        assert!(map.shape().root_bits <= root_bits.max(1), "a node has at least one bit");
        assert_eq!(map.len(), usize::from(keys));
    }
}

#[test]
fn memory_is_freed() {
    let mut map: LcTrieMap<u64, u64> = LcTrieMap::new();
    let mut rng = StdRng::seed_from_u64(3);
    let keys: Vec<u64> = (0..if cfg!(miri) { 40 } else { 50_000 }).map(|_| rng.random()).collect();
    map.extend(keys.iter().map(|&key| (key, key)));
    let (full, shape) = (map.allocation_size(), map.shape());
    assert_eq!(shape.bytes, full);
    for key in &keys[keys.len() / 10..] {
        map.remove(key);
    }
    map.shrink_to_fit();
    assert!(map.allocation_size() * 4 < full, "{} of {full} bytes", map.allocation_size());
    assert_eq!(map.allocation_size(), map.clone().allocation_size(), "no spare capacity");
    assert_eq!(map.len(), keys.len() / 10);
    map.validate().unwrap();
}

/// An observed lookup visits as many nodes as the depth of its key in the shape, and one leaf.
#[test]
fn counted_lookups_agree_with_the_shape() {
    let hasher = DefaultHashBuilder::with_seed(5);
    let keys = 0..if cfg!(miri) { 20 } else { 5_000_u64 };
    let map: LcTrieMap<Headed<u64>, u64> =
        keys.clone().map(|key| (Headed::new(key, &hasher), key)).collect();
    let shape = map.shape();
    let mut by_depth = vec![0; shape.leaves_by_depth.len()];
    for key in keys {
        let mut probes = Probes::default();
        assert_eq!(map.get_observed(&Headed::new(key, &hasher), &mut probes), Some(&key));
        assert_eq!(probes.entries, 1);
        by_depth[probes.nodes as usize] += 1;
    }
    assert_eq!(by_depth, shape.leaves_by_depth);
}
