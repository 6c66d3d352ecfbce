//! The methods of `TrashMap`. Random sequences of them are in `model.rs`, weak hashes in
//! `floods.rs`.

use core::hash::Hash;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use equivalent::Equivalent;
use flowtable::probes::Probes;
use flowtable::trash::Entry;
use flowtable::{DefaultHashBuilder, Prehashed, TrashMap, write_to};
use model::hashers::Weak;

const MANY: u32 = if cfg!(miri) { 20 } else { 2000 };

fn squares(count: u32) -> TrashMap<u32, u64> {
    (0..count).map(|key| (key, u64::from(key) * u64::from(key))).collect()
}

#[test]
fn an_empty_map_has_no_entries_and_no_memory() {
    let mut map: TrashMap<u32, u64> = TrashMap::default();
    assert_eq!((map.get(&0), map.get_key_value(&0), map.iter().next()), (None, None, None));
    assert_eq!(map.get_mut(&0), None);
    assert_eq!((map.remove(&0), map.remove_entry(&0), map.contains_key(&0)), (None, None, false));
    assert!(map.iter_mut().next().is_none() && map.drain().next().is_none());
    assert_eq!(map.get_disjoint_mut([&1, &2]), [None, None]);
    let mut found = [Some(&5); 3];
    map.get_batch(&[1, 2, 3], write_to(&mut found));
    assert_eq!(found, [None; 3], "previous contents are overwritten");
    map.get_batch_mut(&[1], |_, found| assert_eq!(found, None));
    map.retain(|_, _| unreachable!());
    map.insert_batch([], |_, _| unreachable!());
    map.extend([(1, 1); 0]);
    map.clear();
    map.shrink_to_fit();
    map.reserve(0);
    assert_eq!((map.len(), map.capacity(), map.allocation_size(), map.reseeds()), (0, 0, 0, 0));
    assert_eq!((map.shape().entries, map.shape().slots), (0, 0));
    assert_eq!(map, map.clone());
    assert_eq!(format!("{map:?}"), "{}");
    map.validate().unwrap();
}

#[test]
fn keys_are_looked_up_by_equivalent_types() {
    let mut map: TrashMap<String, u8> = TrashMap::new();
    map.extend([("one".to_string(), 1), ("two".to_string(), 2)]);
    assert_eq!((map.get("one"), map["two"], map.contains_key("three")), (Some(&1), 2, false));
    assert_eq!(map.get(&"one".to_string()), Some(&1));
    assert_eq!(map.get_key_value("two"), Some((&"two".to_string(), &2)));
    assert_eq!(map.get(Prehashed { hash: map.hash_of("two"), key: "two" }), Some(&2));
    *map.get_mut("one").unwrap() = 10;
    map.get_disjoint_mut(["two"]).into_iter().flatten().for_each(|value| *value = 20);
    assert_eq!((map.remove("one"), map.remove_entry("two")), (Some(10), Some(("two".into(), 20))));

    /// A borrowed key.
    #[derive(Hash)]
    struct Borrowed<'a>(&'a str, u16);
    impl Equivalent<(String, u16)> for Borrowed<'_> {
        fn equivalent(&self, key: &(String, u16)) -> bool {
            self.0 == key.0 && self.1 == key.1
        }
    }
    let ports: TrashMap<_, _> =
        TrashMap::from([(("http".to_string(), 80), 'a'), (("http".to_string(), 8080), 'b')]);
    assert_eq!(ports.get(&Borrowed("http", 8080)), Some(&'b'));
    assert_eq!(ports.get(&Borrowed("http", 81)), None);
}

/// A key whose name is ignored by `Hash` and `Eq`.
#[derive(Clone, Debug)]
struct Named(u8, &'static str);

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Named {}

impl Hash for Named {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

#[test]
fn overwriting_keeps_the_first_key() {
    let mut map: TrashMap<_, _> = TrashMap::from([(Named(1, "first"), 'a')]);
    assert_eq!(map.insert(Named(1, "second"), 'b'), Some('a'));
    assert_eq!(map.try_insert(Named(1, "third"), 'c'), Ok(Some('b')));
    map.insert_batch([(Named(1, "fourth"), 'd')], |at, old| assert_eq!((at, old), (0, 'c')));
    let key = &Named(1, "fifth");
    let entry = map.entry_ref(Prehashed { hash: map.hash_of(key), key }).insert_entry('e');
    assert_eq!(entry.key().1, "first");
    assert_eq!(map.entry(Named(1, "sixth")).key().1, "first");
    map.entry(Named(1, "seventh")).and_modify(|value| *value = 'f').or_insert('g');
    let (key, value) = map.remove_entry(&Named(1, "eighth")).unwrap();
    assert_eq!((key.1, value), ("first", 'f'));
    assert_eq!(map.entry(Named(1, "ninth")).key().1, "ninth");
}

#[test]
fn entries_as_in_std() {
    let mut map: TrashMap<u8, Vec<u8>> = TrashMap::new();
    map.entry(1).or_default().push(1);
    map.entry(1).or_insert_with(|| unreachable!()).push(2);
    map.entry(2).or_insert_with_key(|key| vec![*key]).push(3);
    map.entry(2).and_modify(|value| value.push(4)).or_default();
    map.entry(3).and_modify(|_| unreachable!()).or_insert(vec![9]);
    let Entry::Occupied(mut entry) = map.entry(1) else { panic!("1 is present") };
    assert_eq!((*entry.key(), entry.get().as_slice()), (1, [1, 2].as_slice()));
    entry.get_mut().push(5);
    assert_eq!(entry.insert(vec![6]), [1, 2, 5]);
    entry.into_mut().push(7);
    let Entry::Occupied(entry) = map.entry(3) else { panic!("3 is present") };
    assert_eq!(entry.remove(), [9]);
    let Entry::Occupied(entry) = map.entry(2) else { panic!("2 is present") };
    assert_eq!(entry.remove_entry(), (2, vec![2, 3, 4]));
    let Entry::Vacant(entry) = map.entry(3) else { panic!("3 was removed") };
    assert_eq!((*entry.key(), entry.into_key(), map.len()), (3, 3, 1));
    assert_eq!(map[&1], [6, 7]);
    assert!(format!("{:?}", map.entry(1)).contains('7'));
    assert!(format!("{:?}", map.entry(4)).contains('4'));
}

#[test]
fn batches_of_every_length_and_with_duplicates() {
    let mut map = squares(MANY);
    for length in (0..100).step_by(if cfg!(miri) { 40 } else { 1 }) {
        // One key in three is absent, and each occurs twice.
        let keys: Vec<u32> = (0..length).map(|i| i / 2 * 7 % (MANY * 3 / 2)).collect();
        let hash = |&key: &u32| Prehashed { hash: map.hash_of(&key), key };
        let prehashed: Vec<Prehashed<u32>> = keys.iter().map(hash).collect();
        let prehashed = prehashed.iter().map(Prehashed::as_ref);
        let expected: Vec<Option<&u64>> = keys.iter().map(|key| map.get(key)).collect();
        let mut found = vec![None; keys.len()];
        map.get_batch(&keys, write_to(&mut found));
        assert_eq!(found, expected);
        found.fill(Some(&1));
        map.get_batch(prehashed.clone(), write_to(&mut found));
        assert_eq!(found, expected);

        let mut plus = map.clone();
        let mut indices = vec![];
        plus.get_batch_mut(&keys, |at, found| {
            indices.push(at);
            found.into_iter().for_each(|value| *value += 1);
        });
        plus.get_batch_mut(prehashed, |at, found| {
            indices.push(at);
            found.into_iter().for_each(|value| *value += 1);
        });
        assert!(indices.into_iter().eq((0..keys.len()).chain(0..keys.len())));
        for (key, value) in &plus {
            let times = 2 * keys.iter().filter(|other| *other == key).count() as u64;
            assert_eq!(*value, map[key] + times);
        }
    }
    let old = map.len();
    let mut replaced = vec![];
    map.insert_batch((0..MANY + 40).map(|i| (i / 2 + MANY, i.into())), |at, value| {
        replaced.push((at as u64, value));
    });
    assert!(replaced.into_iter().eq((0..u64::from(MANY) / 2 + 20).map(|i| (2 * i + 1, 2 * i))));
    assert_eq!(map.len() - old, MANY as usize / 2 + 20);
    map.validate().unwrap();
}

#[test]
fn several_keys_at_a_time() {
    let mut map = squares(50);
    let wide: [u32; 40] = core::array::from_fn(|i| i as u32);
    let [Some(two), None, Some(three)] = map.get_disjoint_mut([&2, &99, &3]) else {
        panic!("2 and 3 are present")
    };
    core::mem::swap(two, three);
    assert_eq!((map[&2], map[&3]), (9, 4));
    let both_missing = map.get_disjoint_mut([&99, &99]);
    assert_eq!(both_missing, [None, None], "absent keys are no duplicates");
    assert!(map.get_disjoint_mut(wide.each_ref()).iter().all(Option::is_some));
    let prehashed = wide.each_ref().map(|key| Prehashed { hash: map.hash_of(key), key });
    assert!(map.get_disjoint_mut(prehashed).iter().all(Option::is_some));
}

#[test]
#[should_panic]
fn get_disjoint_mut_refuses_duplicates() {
    let _ = squares(10).get_disjoint_mut([&1, &2, &1]);
}

#[test]
#[should_panic]
fn a_batch_needs_a_result_for_each_key() {
    squares(10).get_batch(&[1, 2, 3], write_to(&mut [None; 2]));
}

/// An iterator whose clone yields other keys loses results, and nothing worse.
#[test]
fn a_batch_of_an_inconsistent_iterator() {
    let (mut map, calls) = (squares(100), Cell::new(0));
    let keys: [u32; 70] = core::array::from_fn(|i| i as u32);
    let inconsistent = || {
        keys.iter().filter(|key| {
            calls.set(calls.get() + 1);
            !(calls.get() + **key).is_multiple_of(3)
        })
    };
    let mut indices = vec![];
    map.get_batch(inconsistent(), |index, _| indices.push(index));
    assert!(indices.is_sorted_by(|one, next| one < next) && indices.len() <= keys.len());
    map.get_batch_mut(inconsistent(), |_, found| found.into_iter().for_each(|value| *value += 1));
    map.validate().unwrap();
}

#[test]
#[should_panic(expected = "the map does not")]
fn indexing_an_absent_key_panics() {
    let _ = squares(3)[&3];
}

/// Every iterator reports its exact length, returns each entry once, and is fused.
#[test]
fn iterators_report_their_exact_length() {
    fn check<I: ExactSizeIterator<Item: Ord>>(mut iterator: I, count: usize) -> BTreeSet<I::Item> {
        let mut seen = BTreeSet::new();
        assert_eq!(iterator.len(), count);
        for left in (0..count).rev() {
            assert!(seen.insert(iterator.next().unwrap()), "each once");
            assert_eq!((iterator.len(), iterator.size_hint()), (left, (left, Some(left))));
        }
        assert!(iterator.next().is_none() && iterator.next().is_none());
        seen
    }
    for count in if cfg!(miri) { vec![0, 20] } else { vec![0, 1, 9, 64, 2000] } {
        let mut map = squares(count as u32);
        let expected: BTreeMap<u32, u64> = map.clone().into_iter().collect();
        assert!(check(map.iter(), count).into_iter().eq(&expected));
        assert!(check((&map).into_iter(), count).into_iter().eq(&expected));
        assert!(check(map.keys(), count).into_iter().eq(expected.keys()));
        assert!(check(map.values(), count).into_iter().eq(expected.values()));
        assert!(check(map.clone().into_iter(), count).into_iter().eq(expected.clone()));
        assert!(check(map.clone().into_keys(), count).into_iter().eq(expected.keys().copied()));
        assert!(check(map.clone().into_values(), count).into_iter().eq(expected.values().copied()));
        assert!(check(map.clone().drain(), count).into_iter().eq(expected.clone()));
        check(map.iter_mut(), count).into_iter().for_each(|(_, value)| *value += 1);
        check((&mut map).into_iter(), count).into_iter().for_each(|(_, value)| *value += 1);
        check(map.values_mut(), count).into_iter().for_each(|value| *value += 1);
        assert!(expected.iter().all(|(key, value)| map[key] == value + 3));
        let half = map.iter();
        assert!(half.clone().eq(half), "a clone has the same order");
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow; covered by other tests")]
fn equality_ignores_order_and_hasher() {
    let forth: TrashMap<u32, u32, Weak> = (0..MANY).map(|key| (key, key)).collect();
    let mut back = TrashMap::with_hasher(Weak::Constant);
    back.extend((0..MANY).rev().map(|key| (key, key)));
    assert_eq!(forth, back);
    back.insert(3, 4);
    assert_ne!(forth, back);
    back.insert(3, 3);
    back.insert(MANY, MANY);
    assert_ne!(forth, back);
    back.remove(&5);
    assert_ne!(forth, back, "equal lengths, different keys");
    assert_eq!(squares(0), TrashMap::new());
}

#[test]
fn conversions() {
    let map: TrashMap<_, _> = TrashMap::from([(1, 'a'), (2, 'b'), (1, 'c')]);
    assert_eq!((map.len(), map[&1]), (2, 'c'), "the last value is kept");
    assert_eq!(map, [(2, 'b'), (1, 'c')].into_iter().collect::<TrashMap<_, _>>());
    let mut other: TrashMap<i32, char> = TrashMap::with_capacity(10);
    other.extend(&map);
    other.extend([(&3, &'d')]);
    other.extend([(4, 'e')]);
    assert_eq!((other.len(), other.hasher().clone()).0, 4);
    assert_eq!(format!("{:?}", TrashMap::<_, _>::from([(1, 'a')])), "{1: 'a'}");
    let shown = format!("{:?}", other.iter());
    assert!(["(1, 'c')", "(3, 'd')"].iter().all(|entry| shown.contains(entry)), "{shown}");
}

/// Maps can be statics, can move between threads, and are covariant.
#[test]
fn auto_traits() {
    fn check<T: Send + Sync + Unpin + std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}
    fn shorter<'a>(map: TrashMap<&'static str, &'static str>) -> TrashMap<&'a str, &'a str> {
        map
    }
    static EMPTY: TrashMap<u32, (), Weak> = TrashMap::with_hasher(Weak::Mixed);
    assert!(EMPTY.is_empty() && EMPTY.get(&1).is_none());
    assert!(shorter(TrashMap::new()).is_empty());
    check::<TrashMap<u32, String>>();
    check::<flowtable::trash::Iter<'static, u32, String>>();
    check::<flowtable::trash::IntoIter<u32, String>>();
    check::<flowtable::trash::TryReserveError>();
    let map = squares(100);
    let sum = std::thread::spawn(move || map.values().sum::<u64>()).join().unwrap();
    assert_eq!(sum, 328_350);
}

/// An observed lookup visits one bucket more than the distance of the entry from its home bucket.
#[test]
#[cfg_attr(miri, ignore = "slow; covered by other tests")]
fn counted_lookups_agree_with_the_shape() {
    let count = 20_000;
    let mut map = TrashMap::with_hasher(DefaultHashBuilder::with_seed(5));
    map.extend((0..count).map(|key: u64| (key, key)));
    let shape = map.shape();
    let mut by_distance = vec![0; shape.entries_by_distance.len()];
    let mut compared = 0;
    for key in 0..count {
        let mut probes = Probes::default();
        assert_eq!(map.get_observed(&key, &mut probes), Some(&key));
        compared += probes.entries;
        by_distance[probes.nodes as usize - 1] += 1;
    }
    assert_eq!(by_distance, shape.entries_by_distance);
    assert!((1.0..1.06).contains(&(f64::from(compared) / count as f64)), "{compared} compared");
    let mut missed = Probes::default();
    for key in count..2 * count {
        assert_eq!(map.get_observed(&key, &mut missed), None);
    }
    assert!(f64::from(missed.nodes) / (count as f64) < 1.25, "{missed:?}");
    assert!(f64::from(missed.entries) / (count as f64) < 0.1, "{missed:?}");
}

#[test]
fn errors_display_their_reasons() {
    let mut map: TrashMap<u64, u64> = TrashMap::new();
    let error = map.try_reserve(usize::MAX).unwrap_err();
    assert!(!error.to_string().is_empty() && error.bytes().is_none());
    let error: Box<dyn std::error::Error> = Box::new(error);
    assert!(error.source().is_none());
    let refused = flowtable::trash::TryInsertError {
        refused: (1, 'a'),
        reason: map.try_reserve(usize::MAX / 2).unwrap_err(),
    };
    assert!(refused.to_string().starts_with("no room: "), "{refused}");
}
