//! A: reads.

use flowtable::{ConcurrentMap, ConcurrentTable, Prehashed, write_to};
use std::sync::atomic::{AtomicU64, Ordering};

use super::{BURST, Map, ROUNDS, churn_others, map};
use model::drop_record::DropRecord;
use model::hashers::{Weak, mix};
use model::scaled;
use model::threads::{on_other_thread, run_concurrently};
use model::versioned::Versioned;

const KEYS: usize = if cfg!(miri) { 8 } else { 64 };

/// A number for each key.
type Numbers = [AtomicU64; KEYS];

fn numbers() -> Numbers {
    [const { AtomicU64::new(0) }; KEYS]
}

/// Versions of each key whose write has begun, and whose write has returned. Keys are present at
/// odd versions and absent at even ones.
struct Clocks {
    begun: Numbers,
    done: Numbers,
}

impl Clocks {
    fn new() -> Self {
        Self { begun: numbers(), done: numbers() }
    }

    /// Writes the keys that belong to `writer` alone.
    fn write(&self, map: &Map, writer: u64) {
        let mut pin = map.pin();
        for round in 0..ROUNDS {
            let key = mix(round) % (KEYS as u64 / 2) * 2 + writer;
            let version = self.begun[key as usize].load(Ordering::Relaxed) + 1;
            self.begun[key as usize].store(version, Ordering::Release);
            if version % 2 == 1 {
                pin.insert(key, Versioned::new(key, version)).unwrap();
            } else {
                pin.remove(&key);
            }
            self.done[key as usize].store(version, Ordering::Release);
            if round % BURST == 0 {
                pin.repin();
            }
        }
    }

    fn done(&self, key: u64) -> u64 {
        self.done[key as usize].load(Ordering::Acquire)
    }

    /// Checks that the value is no older than the write that had returned `before`, and no newer
    /// than the last one that has begun.
    fn check(&self, key: u64, before: u64, found: Option<&Versioned>) {
        let begun = self.begun[key as usize].load(Ordering::Acquire);
        match found.map(|found| found.version_of(key)) {
            Some(found) => assert!(before <= found && found <= begun, "{before} {found} {begun}"),
            None => assert!(before % 2 == 0 || before < begun, "{before} is not found"),
        }
    }
}

#[test]
fn a1_a_read_after_a_write_sees_it_or_a_later_one() {
    let (map, clocks) = (map(Weak::Mixed), Clocks::new());
    let read = |round| {
        let pin = map.pin();
        for key in (0..BURST).map(|i| mix(round * BURST + i) % KEYS as u64) {
            let before = clocks.done(key);
            clocks.check(key, before, pin.get(&key));
        }
    };
    run_concurrently(
        &[&|| clocks.write(&map, 0), &|| clocks.write(&map, 1), &|| churn_others(&map)],
        &[&read, &read],
    );
}

#[test]
fn a2_a_value_is_not_torn_and_belongs_to_its_key() {
    // With equal hashes, values are distinguished by the key only.
    for hasher in [Weak::Mixed, Weak::Constant] {
        let map: Map = map(hasher);
        let write = |writer: u64| {
            let mut pin = map.pin();
            for round in 0..ROUNDS {
                let key = mix(round ^ writer << 32) % 24;
                match mix(round) % 4 {
                    0 => _ = pin.remove(&key),
                    1 => _ = pin.update(&key, Versioned::next).unwrap(),
                    _ => _ = pin.insert(key, Versioned::new(key, round)).unwrap(),
                }
                if round % BURST == 0 {
                    pin.repin();
                }
            }
        };
        let read = |round| {
            let pin = map.pin();
            for key in (0..BURST).map(|i| mix(round * BURST + i) % 24) {
                pin.get(&key).map(|value| value.version_of(key));
                let entry = pin.get_key_value(&key);
                assert!(entry.is_none_or(|(found, _)| *found == key));
                get_batch!(pin, [&key, &(key ^ 1)])[1].map(|value| value.version_of(key ^ 1));
            }
            pin.iter().for_each(|(key, value)| _ = value.version_of(*key));
        };
        run_concurrently(&[&|| write(0), &|| write(1)], &[&read, &read]);
    }
}

#[test]
fn a3_a_present_key_is_found_during_other_insertions_and_removals() {
    let many = scaled(200_000, 2_000, 10);
    let few = if cfg!(miri) { 12 } else { 100 };
    for (hasher, many) in [(Weak::Mixed, many), (Weak::Low, many / 4), (Weak::Constant, few)] {
        let map: Map = map(hasher);
        let kept = 1 << 32..(1 << 32) + if hasher == Weak::Mixed { 500 } else { 50 };
        let kept = kept.step_by(if cfg!(miri) { 50 } else { 1 });
        kept.clone().for_each(|key| _ = map.pin().insert(key, Versioned::new(key, 0)).unwrap());
        let grow_and_shrink = || {
            for from in [0, many] {
                for key in from..from + many {
                    assert!(map.pin().insert(key, Versioned::new(key, 1)).unwrap().is_none());
                }
                // Key by key, and by one call.
                match from {
                    0 => (0..many).for_each(|key| assert!(map.pin().remove(&key).is_some())),
                    _ => map.pin().retain(|key, _| *key >= 1 << 32),
                }
            }
        };
        let read = |_| {
            let pin = map.pin();
            for key in kept.clone() {
                let found = pin.get(&key);
                assert_eq!(found.map(|found| found.version_of(key)), Some(0), "{hasher:?}");
                assert_eq!(get_batch!(pin, [&key, &(key + 1_000_000)]), [found, None]);
            }
        };
        run_concurrently(&[&grow_and_shrink], &[&read, &read]);
        assert_eq!(map.len(), kept.count());
    }
}

#[test]
fn a4_reads_that_happen_after_a_read_see_the_same_or_a_later_value() {
    let (map, latest) = (map(Weak::Mixed), numbers());
    for key in 0..KEYS as u64 {
        map.pin().insert(key, Versioned::new(key, 0)).unwrap();
    }
    let write = || {
        for round in 0..ROUNDS {
            let key = mix(round) % KEYS as u64;
            map.pin().update(&key, Versioned::next).unwrap();
        }
    };
    let read = |round| {
        let pin = map.pin();
        for key in (0..BURST).map(|i| mix(round * BURST + i) % KEYS as u64) {
            let latest = &latest[key as usize];
            let before = latest.load(Ordering::Acquire);
            let seen = pin.get(&key).expect("the key is present").version_of(key);
            assert!(before <= seen, "{seen} was read after {before}");
            latest.fetch_max(seen, Ordering::Release);
        }
    };
    run_concurrently(&[&write, &write, &|| churn_others(&map)], &[&read, &read]);
    let pin = map.pin();
    let sum: u64 = (0..KEYS as u64).map(|key| pin.get(&key).unwrap().version_of(key)).sum();
    assert_eq!(sum, 2 * ROUNDS);
}

/// Small ones are not prefetched.
#[test]
#[cfg_attr(miri, ignore = "slow; others do as much")]
fn a5_a_batch_of_a_small_or_large_map_finds_what_single_reads_find() {
    for len in [0, 10, 1000, 200_000_u64] {
        let map: ConcurrentMap<u64, u64> = (0..len).map(|key| (key, !key)).collect();
        let table: ConcurrentTable<u64, u64> = (0..len).map(|key| (key, !key)).collect();
        let (map, table) = (map.pin(), table.pin());
        for count in [0, 1, 31, 32, 33, 1000] {
            let keys: Vec<u64> = (0..count).map(|at| mix(at) % (2 * len + 1)).collect();
            let expected: Vec<Option<u64>> =
                keys.iter().map(|&key| (key < len).then_some(!key)).collect();
            let mut found = vec![];
            map.get_batch(&keys, |at, value| found.push((at, value.copied())));
            table.get_batch(&keys, |at, value| assert_eq!(found[at], (at, value)));
            assert!(found.iter().map(|(_, value)| value).eq(&expected), "{len}, {count}");
            assert!(found.iter().map(|(at, _)| *at).eq(0..keys.len()));
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow; others do as much")]
fn a5_each_read_of_a_batch_is_a_read() {
    let (map, clocks) = (map(Weak::Mixed), Clocks::new());
    let keys: [u64; KEYS] = core::array::from_fn(|key| key as u64);
    let read = |round| {
        let pin = map.pin();
        let before = keys.map(|key| clocks.done(key));
        let mut found = [None; KEYS];
        let hashed = keys.each_ref().map(|key| Prehashed { hash: pin.hash_of(key), key });
        match round % 2 {
            0 => pin.get_batch(&keys, write_to(&mut found)),
            _ => pin.get_batch(hashed, write_to(&mut found)),
        }
        for key in keys {
            clocks.check(key, before[key as usize], found[key as usize]);
        }
    };
    run_concurrently(
        &[&|| clocks.write(&map, 0), &|| clocks.write(&map, 1), &|| churn_others(&map)],
        &[&read, &read],
    );
}

#[test]
fn a6_a_reference_is_valid_as_long_as_its_pin() {
    static DROPS: DropRecord = DropRecord::new();
    let many = if cfg!(miri) { 30 } else { 2000 };
    let map: Map<u64, _> = map(Weak::Mixed);
    let fill = |round| {
        let pin = map.pin();
        for key in 0..many {
            pin.insert(key, (Box::new(Versioned::new(key, round)), DROPS.token())).unwrap();
        }
    };
    fill(0);
    let mut pin = map.pin();
    for round in 1..4 {
        let seen: Vec<_> =
            pin.iter().chain((0..many).filter_map(|k| pin.get_key_value(&k))).collect();
        assert_eq!(seen.len() as u64, 2 * many);
        on_other_thread(|| {
            fill(round + 100);
            match round {
                1 => (0..many).for_each(|key| assert!(map.pin().remove(&key).is_some())),
                2 => map.pin().retain(|_, _| false),
                _ => map.pin().clear(),
            }
            fill(round);
            (0..10).for_each(|_| map.pin().flush());
        });
        for (key, (value, token)) in seen {
            assert!(token.is_alive(), "dropped under a pin");
            assert_eq!(value.version_of(*key), round - 1);
        }
        pin.repin();
    }
}
