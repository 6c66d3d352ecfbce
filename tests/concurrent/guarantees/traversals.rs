//! B: traversals.

use std::collections::{HashMap, HashSet};

use super::{BURST, Map, ROUNDS, map, weather};
use model::hashers::{Weak, mix};
use model::threads::run_concurrently;
use model::versioned::Versioned;

const STAYING: u64 = if cfg!(miri) { 10 } else { 500 };
const ROUNDS_HERE: u64 = if cfg!(miri) { ROUNDS } else { ROUNDS / 2 };

fn filled(hasher: Weak) -> Map {
    let map = map(hasher);
    (0..STAYING).for_each(|key| _ = map.pin().insert(key, Versioned::new(key, 0)).unwrap());
    map
}

#[test]
fn b1_what_stays_is_visited_exactly_once() {
    for hasher in [Weak::Mixed, Weak::Low] {
        let map = filled(hasher);
        let once = |what: &str, keys: &mut dyn Iterator<Item = u64>| {
            let mut visits = vec![0; STAYING as usize];
            keys.filter(|&key| key < STAYING).for_each(|key| visits[key as usize] += 1);
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
        run_concurrently(&[&|| weather(&map)], &[&read, &read]);
    }
}

#[test]
fn b2_what_comes_and_goes_is_visited_once_at_most_and_what_is_replaced_once() {
    let map = filled(Weak::Mixed);
    // The staying ones get values and keys one after the other.
    let replace = || {
        let mut pin = map.pin();
        for round in 0..ROUNDS_HERE {
            let key = mix(round) % STAYING;
            match round % 2 {
                0 => _ = pin.insert(key, Versioned::new(key, round)).unwrap(),
                _ => _ = pin.update(key, Versioned::next).unwrap(),
            }
            if round % BURST == 0 {
                pin.repin();
            }
        }
    };
    // Of the others, each entry has a version that no other entry has.
    let come_and_go = || {
        let mut pin = map.pin();
        for round in 0..ROUNDS_HERE {
            let key = STAYING + mix(round) % (2 * STAYING);
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
        let (mut staying, mut others) = (HashMap::new(), HashSet::new());
        for (&key, value) in &pin {
            let version = value.version_of(key);
            if key < STAYING {
                *staying.entry(key).or_insert(0) += 1;
            } else {
                assert!(others.insert((key, version)), "{key} {version} is visited twice");
            }
        }
        assert!(staying.values().all(|&visits| visits == 1), "{staying:?}");
        assert_eq!(staying.len() as u64, STAYING);
    };
    run_concurrently(&[&replace, &come_and_go, &|| weather(&map)], &[&read, &read]);
}
