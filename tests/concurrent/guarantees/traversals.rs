//! B: traversals.

use std::collections::{HashMap, HashSet};

use super::{BURST, Map, ROUNDS, churn_others, map};
use model::hashers::{Weak, mix};
use model::threads::run_concurrently;
use model::versioned::Versioned;

const PRESENT: u64 = if cfg!(miri) { 10 } else { 500 };
const ROUNDS_HERE: u64 = if cfg!(miri) { ROUNDS } else { ROUNDS / 2 };

fn filled(hasher: Weak) -> Map {
    let map = map(hasher);
    (0..PRESENT).for_each(|key| _ = map.pin().insert(key, Versioned::new(key, 0)).unwrap());
    map
}

#[test]
fn b1_a_present_key_is_visited_exactly_once() {
    for hasher in [Weak::Mixed, Weak::Low] {
        let map = filled(hasher);
        let once = |what: &str, keys: &mut dyn Iterator<Item = u64>| {
            let mut visits = vec![0; PRESENT as usize];
            keys.filter(|&key| key < PRESENT).for_each(|key| visits[key as usize] += 1);
            assert!(visits.iter().all(|&visits| visits == 1), "{what} {hasher:?}: {visits:?}");
        };
        let read = |round| {
            let pin = map.pin();
            match round % 4 {
                0 => once("iter", &mut pin.iter().map(|(key, _)| *key)),
                1 => once("keys", &mut pin.keys().copied()),
                2 => once("into_iter", &mut (&pin).into_iter().map(|(key, _)| *key)),
                _ => {
                    let mut keys = vec![];
                    pin.retain(|key, _| {
                        keys.push(*key);
                        true
                    });
                    once("retain", &mut keys.into_iter());
                }
            }
        };
        run_concurrently(&[&|| churn_others(&map)], &[&read, &read]);
    }
}

#[test]
fn b2_a_transient_key_is_visited_at_most_once_and_a_replaced_one_once() {
    let map = filled(Weak::Mixed);
    // The present keys are replaced one after the other.
    let replace = || {
        let mut pin = map.pin();
        for round in 0..ROUNDS_HERE {
            let key = mix(round) % PRESENT;
            match round % 2 {
                0 => _ = pin.insert(key, Versioned::new(key, round)).unwrap(),
                _ => _ = pin.update(&key, Versioned::next).unwrap(),
            }
            if round % BURST == 0 {
                pin.repin();
            }
        }
    };
    // Each entry of the other keys has a distinct version.
    let insert_and_remove = || {
        let mut pin = map.pin();
        for round in 0..ROUNDS_HERE {
            let key = PRESENT + mix(round) % (2 * PRESENT);
            if pin.remove(&key).is_none() {
                pin.insert(key, Versioned::new(key, round)).unwrap();
            }
            if round % BURST == 0 {
                pin.repin();
            }
        }
    };
    let read = |_| {
        let pin = map.pin();
        let (mut present, mut others) = (HashMap::new(), HashSet::new());
        for (&key, value) in &pin {
            let version = value.version_of(key);
            if key < PRESENT {
                *present.entry(key).or_insert(0) += 1;
            } else {
                assert!(others.insert((key, version)), "{key} {version} is visited twice");
            }
        }
        assert!(present.values().all(|&visits| visits == 1), "{present:?}");
        assert_eq!(present.len() as u64, PRESENT);
    };
    run_concurrently(&[&replace, &insert_and_remove, &|| churn_others(&map)], &[&read, &read]);
}
