//! Entries: what hashbrown's have beyond those of `std`, and entries of sets.

use model::cases;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use flowtable::trash::set::Entry as SetEntry;
use flowtable::trash::{Entry, EntryRef};
use flowtable::{TrashMap, TrashSet};
use model::hashers::Weak;
use proptest::collection::vec;
use proptest::prelude::*;

const KEYS: u32 = if cfg!(miri) { 20 } else { 500 };
const STEPS: usize = if cfg!(miri) { 30 } else { 3000 };

type Map = TrashMap<String, u32, Weak>;

/// One step with the key `number`.
fn step(map: &mut Map, model: &mut HashMap<String, u32>, (kind, number): (u8, u32)) {
    let key = format!("key {number}");
    let change = |_: &String, value: u32| if value % 3 == 0 { None } else { Some(value - 1) };
    match kind {
        0 | 1 => {
            let entry = map.entry(key.clone()).and_replace_entry_with(change);
            let ours = match &entry {
                Entry::Occupied(entry) => Some(*entry.get()),
                Entry::Vacant(_) => None,
            };
            assert_eq!(entry.key(), &key);
            let theirs = model.remove(&key).and_then(|value| change(&key, value));
            model.extend(theirs.map(|value| (key, value)));
            assert_eq!(ours, theirs);
        }
        2 => {
            let ours = map.entry_ref(key.as_str()).or_insert_entry(number).into_entry();
            let theirs = model.entry(key.clone()).or_insert(number);
            assert_eq!(ours, (&key, theirs));
        }
        3 => {
            let entry = map.entry_ref(key.as_str()).insert(number);
            assert_eq!((entry.key(), entry.get()), (&key, &number));
            model.insert(key, number);
        }
        4 if !model.contains_key(&key) => {
            let (own, value) = map.insert_unique_unchecked(key.clone(), number);
            assert_eq!((own, &*value), (&key, &number));
            model.insert(key, number);
        }
        5 => match map.entry_ref(key.as_str()) {
            EntryRef::Occupied(entry) => {
                assert_eq!(Some(entry.remove()), model.remove(&key));
            }
            EntryRef::Vacant(entry) => {
                *entry.insert_with_key(key.clone(), number) += 1;
                assert_eq!(model.insert(key, number + 1), None);
            }
        },
        _ => assert_eq!(
            map.get_key_value_mut(key.as_str()).map(|(key, value)| (key.clone(), *value)),
            model.get_key_value(&key).map(|(key, value)| (key.clone(), *value))
        ),
    }
}

/// One step with the value `number` of a set.
fn step_of_set(set: &mut TrashSet<u32, Weak>, model: &mut HashSet<u32>, (kind, number): (u8, u32)) {
    let entry = set.entry(number);
    assert_eq!(entry.get(), &number);
    match (kind, entry) {
        (0..3, entry) => {
            assert_eq!(entry.insert().get(), &number);
            model.insert(number);
        }
        (3, entry) => {
            entry.or_insert();
            model.insert(number);
        }
        (_, SetEntry::Occupied(entry)) => {
            assert_eq!((entry.get(), model.remove(&number)), (&number, true));
            assert_eq!(entry.remove(), number);
        }
        (_, SetEntry::Vacant(entry)) => {
            assert!(!model.contains(&number));
            assert_eq!(entry.into_value(), number);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(40, 1)))]

    #[test]
    fn entries_of_maps_and_sets(
        steps in vec((0..7_u8, 0..KEYS), 0..STEPS),
        hasher in proptest::sample::select(&Weak::ALL),
    ) {
        let (mut map, mut model) = (TrashMap::with_hasher(hasher), HashMap::new());
        let (mut set, mut values) = (TrashSet::with_hasher(hasher), HashSet::new());
        for (number, op) in steps.into_iter().enumerate() {
            step(&mut map, &mut model, op);
            step_of_set(&mut set, &mut values, op);
            if number % 100 == 0 {
                map.validate().unwrap();
                set.validate().unwrap();
            }
        }
        prop_assert_eq!(map.into_iter().collect::<HashMap<_, _>>(), model);
        prop_assert_eq!(set.into_iter().collect::<HashSet<_>>(), values);
    }

    #[test]
    fn operators_that_assign(
        ours in vec(0..KEYS, 0..STEPS / 5),
        theirs in vec(0..KEYS, 0..STEPS / 5),
        hasher in proptest::sample::select(&Weak::ALL),
    ) {
        let set_of = |values: &[u32]| {
            let mut set = TrashSet::with_hasher(hasher);
            set.extend(values);
            set
        };
        let (ours, theirs) = (set_of(&ours), set_of(&theirs));
        let sorted = |set: &TrashSet<u32, Weak>| {
            let mut values: Vec<u32> = set.iter().copied().collect();
            values.sort_unstable();
            values
        };
        let mut results = [ours.clone(), ours.clone(), ours.clone(), ours.clone()];
        results[0] |= &theirs;
        results[1] &= &theirs;
        results[2] ^= &theirs;
        results[3] -= &theirs;
        let expected: [Vec<u32>; 4] = [
            ours.union(&theirs).copied().collect(),
            ours.intersection(&theirs).copied().collect(),
            ours.symmetric_difference(&theirs).copied().collect(),
            ours.difference(&theirs).copied().collect(),
        ];
        for (result, expected) in results.iter().zip(&expected) {
            result.validate().unwrap();
            prop_assert_eq!(sorted(result), sorted(&set_of(expected)));
        }
    }
}

#[test]
fn a_key_is_replaced_by_an_equal_one() {
    let shared: Rc<str> = "a".into();
    let mut map: TrashMap<Rc<str>, u32> = TrashMap::from([("a".into(), 1)]);
    let Entry::Occupied(mut entry) = map.entry(shared.clone()) else { panic!("it is there") };
    let old = entry.replace_key(shared.clone());
    assert!(!Rc::ptr_eq(&old, &shared) && Rc::ptr_eq(entry.key(), &shared));
    assert_eq!(map.get("a"), Some(&1));
}

#[test]
#[should_panic(expected = "the keys are not equal")]
fn a_key_is_not_replaced_by_another_one() {
    let mut map = TrashMap::from([("a", 1)]);
    map.entry("a").or_insert_entry(0).replace_key("b");
}

#[test]
#[should_panic(expected = "the key is not equivalent")]
fn a_key_that_is_not_equivalent_is_refused() {
    let mut map: TrashMap<String, u32> = TrashMap::new();
    let EntryRef::Vacant(entry) = map.entry_ref("a") else { panic!("the map is empty") };
    entry.insert_with_key("b".into(), 1);
}

#[test]
fn a_set_is_made_of_a_map() {
    let map: TrashMap<u32, (), Weak> = (0..1000).map(|key| (key, ())).collect();
    let set = TrashSet::from(map.clone());
    assert!(set.len() == 1000 && map.keys().all(|key| set.contains(key)));
    set.validate().unwrap();
}

#[test]
fn entries_are_copied_from_references() {
    let mut map = TrashMap::from([(1, 'a')]);
    map.extend(&[(2, 'b'), (1, 'c')]);
    map.extend(&TrashMap::from([(3, 'd')]));
    assert_eq!(map, TrashMap::from([(1, 'c'), (2, 'b'), (3, 'd')]));
}

/// As `std` infers them: no type is named.
#[test]
fn collections_are_inferred_by_comparisons() {
    let map = TrashMap::from([(1, 'a'), (2, 'b')]);
    assert_eq!(map, [(2, 'b'), (1, 'a')].into_iter().collect());
    assert!(map != Default::default() && TrashMap::<u8, u8>::new() == Default::default());
    let set = TrashSet::from([0, 1, 2]);
    assert_eq!(set, (0..3).collect());
    assert!(set != Default::default());
}

#[test]
fn iterators_without_entries() {
    use flowtable::trash::table;
    use flowtable::trash::{
        IntoIter, IntoKeys, IntoValues, Iter, IterMut, Keys, Values, ValuesMut,
    };

    fn is_empty<I: Iterator + Default>() -> bool {
        I::default().size_hint().0 == 0 && I::default().next().is_none()
    }
    type Key = String;
    assert!(is_empty::<Iter<'_, Key, u8>>() && is_empty::<IterMut<'_, Key, u8>>());
    assert!(is_empty::<Keys<'_, Key, u8>>() && is_empty::<Values<'_, Key, u8>>());
    assert!(is_empty::<ValuesMut<'_, Key, u8>>() && is_empty::<IntoIter<Key, u8>>());
    assert!(is_empty::<IntoKeys<Key, u8>>() && is_empty::<IntoValues<Key, u8>>());
    assert!(is_empty::<table::Iter<'_, Key>>() && is_empty::<table::IterMut<'_, Key>>());
    assert!(is_empty::<table::IterHash<'_, Key>>() && is_empty::<table::IterHashMut<'_, Key>>());
    assert!(is_empty::<table::IntoIter<Key>>());
}
