//! Entries of borrowed keys.

use model::cases;
use std::collections::HashMap;

use flowtable::trash::EntryRef;
use flowtable::{Prehashed, TrashMap};
use model::hashers::Weak;
use proptest::collection::vec;
use proptest::prelude::*;

/// One step with the key `number`.
fn step(
    map: &mut TrashMap<String, u32, Weak>,
    model: &mut HashMap<String, u32>,
    (kind, number): (u8, u32),
) {
    let key: &str = &format!("key {number}");
    let hash = map.hash_of(key);
    match kind {
        0 | 1 => {
            let ours = map.entry_ref(key).and_modify(|value| *value += 1).or_insert(number);
            let theirs = model.entry(key.into()).and_modify(|value| *value += 1);
            assert_eq!(ours, theirs.or_insert(number));
        }
        2 => {
            let ours = map.entry_ref(Prehashed { hash, key }).or_default();
            assert_eq!(ours, model.entry(key.into()).or_default());
        }
        3 => {
            let entry = map.try_entry_ref(key).unwrap().insert_entry(number);
            assert_eq!((entry.key().as_str(), entry.get()), (key, &number));
            model.insert(key.into(), number);
        }
        _ => match map.entry_ref(key) {
            EntryRef::Occupied(entry) => {
                assert_eq!(Some(entry.remove_entry()), model.remove_entry(key));
            }
            EntryRef::Vacant(entry) if number % 2 == 0 => {
                assert_eq!(entry.key(), key);
                assert_eq!(entry.try_insert(number).map(|value| *value), Ok(number));
                assert_eq!(model.insert(key.into(), number), None);
            }
            EntryRef::Vacant(entry) => assert_eq!(model.get(entry.key()), None),
        },
    }
}

const KEYS: u32 = if cfg!(miri) { 20 } else { 500 };
const STEPS: usize = if cfg!(miri) { 30 } else { 3000 };

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(40, 1)))]

    #[test]
    fn entries_of_borrowed_keys(
        steps in vec((0..6_u8, 0..KEYS), 0..STEPS),
        hasher in proptest::sample::select(&Weak::ALL),
    ) {
        let (mut map, mut model) = (TrashMap::with_hasher(hasher), HashMap::new());
        for (number, op) in steps.into_iter().enumerate() {
            step(&mut map, &mut model, op);
            if number % 100 == 0 {
                map.validate().unwrap();
            }
        }
        prop_assert_eq!(map.into_iter().collect::<HashMap<_, _>>(), model);
    }
}
