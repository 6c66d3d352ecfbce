//! A [`ConcurrentSet`] beside a set of the standard library.

use std::collections::BTreeSet;

use flowtable::{ConcurrentSet, Prehashed};
use model::cases;
use proptest::collection::vec;
use proptest::prelude::*;

/// An operation of a set.
#[derive(Clone, Debug)]
enum Operation {
    Insert(u16),
    Remove(u16),
    /// Keeps the keys of another remainder.
    Retain(u16),
    Clear,
}

fn operations() -> impl Strategy<Value = Operation> {
    prop_oneof![
        60 => (0..300_u16).prop_map(Operation::Insert),
        30 => (0..300_u16).prop_map(Operation::Remove),
        2 => (0..7_u16).prop_map(Operation::Retain),
        1 => Just(Operation::Clear),
    ]
}

/// Compares all reads, by keys and in bursts, with and without hashes.
fn check(ours: &ConcurrentSet<u16>, model: &BTreeSet<u16>) {
    let pin = ours.pin();
    let keys: Vec<u16> = (0..310).collect();
    let expected: Vec<bool> = keys.iter().map(|key| model.contains(key)).collect();
    let mut found = vec![];
    pin.contains_batch(&keys, |index, is_there| {
        assert_eq!(index, found.len());
        found.push(is_there);
    });
    assert_eq!(found, expected);
    let map = ours.as_map();
    let hashed = keys.iter().map(|key| Prehashed { hash: map.hash_of(key), key });
    pin.contains_batch(hashed, |index, is_there| assert_eq!(is_there, expected[index]));
    for (key, is_there) in keys.iter().zip(expected) {
        assert_eq!((pin.contains(key), pin.get(key)), (is_there, is_there.then_some(key)));
    }
    let mut all: Vec<u16> = pin.iter().copied().collect();
    all.sort_unstable();
    assert!(all.iter().eq(model));
    assert_eq!((ours.len(), ours.is_empty()), (model.len(), model.is_empty()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(100, 2)))]

    #[test]
    fn it_is_a_set(operations in vec(operations(), 0..400)) {
        let (mut ours, mut model) = (ConcurrentSet::new(), BTreeSet::new());
        for operation in operations {
            let pin = ours.pin();
            match operation {
                Operation::Insert(key) => assert_eq!(pin.insert(key), Ok(model.insert(key))),
                Operation::Remove(key) => {
                    assert_eq!(pin.remove(&key), model.take(&key).as_ref());
                }
                Operation::Retain(rest) => {
                    pin.retain(|key| key % 7 != rest);
                    model.retain(|key| key % 7 != rest);
                }
                Operation::Clear => {
                    pin.clear();
                    model.clear();
                }
            }
        }
        check(&ours, &model);
        ours.validate().unwrap();
    }
}
