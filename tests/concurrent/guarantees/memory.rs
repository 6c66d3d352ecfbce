//! D: reclamation.

use std::panic::{AssertUnwindSafe, catch_unwind};

use flowtable::ConcurrentMap;
use flowtable::concurrent::{Compute, Refused};

use super::{BURST, Map, ROUNDS, map};
use model::alloc::with_allocations;
use model::drop_record::{DropRecord, Token};
use model::hashers::{Weak, mix};
use model::threads::{eventually, on_other_thread, run_concurrently, while_held};
use model::versioned::Versioned;

const KEYS: u64 = if cfg!(miri) { 10 } else { 300 };

/// Reclaims what other maps have retired, too.
fn flush() {
    let map: Map = map(Weak::Mixed);
    map.pin().flush();
}

/// Writes with every method.
fn churn(map: &Map<u64, Token>, record: &'static DropRecord, rounds: core::ops::Range<u64>) {
    let mut pin = map.pin();
    for round in rounds {
        let key = mix(round) % KEYS;
        match mix(!round) % 8 {
            0 => _ = pin.remove(&key),
            1 => _ = pin.update(&key, |_| record.token()).unwrap(),
            2 => _ = pin.get_or_insert(key, record.token()).unwrap(),
            3 => _ = pin.get_or_insert_with(&key, || record.token()).unwrap(),
            4 => _ = pin.compute(&key, |_| Compute::Insert(record.token())).unwrap(),
            5 => _ = pin.compute(&key, |_| Compute::Remove).unwrap(),
            6 if round % 512 == 0 => pin.retain(|key, _| key % 3 > 0),
            7 if round % 1024 == 0 => pin.clear(),
            _ => _ = pin.insert(key, record.token()).unwrap(),
        }
        if round % BURST == 0 {
            pin.repin();
        }
    }
}

#[test]
fn d1_an_entry_is_dropped_once_and_after_the_pins_that_may_reference_it() {
    static DROPS: DropRecord = DropRecord::new();
    let map: Map<u64, Token> = map(Weak::Mixed);
    let many = ROUNDS / 2;
    let read = |round| {
        let pin = map.pin();
        let found = (0..BURST).filter_map(|i| pin.get(&(mix(round * BURST + i) % KEYS)));
        // A traversal takes Miri as long as many writes.
        let values = pin.values().take(if cfg!(miri) && round % 8 > 0 { 0 } else { usize::MAX });
        let found: Vec<&Token> = found.chain(values).collect();
        assert!(found.iter().all(|token| token.is_alive()), "dropped under a pin");
    };
    run_concurrently(
        &[&|| churn(&map, &DROPS, 0..many), &|| churn(&map, &DROPS, many..2 * many)],
        &[&read, &read],
    );
    assert!(map.pin().values().all(Token::is_alive));
    eventually("removed entries are dropped", || {
        map.pin().flush();
        DROPS.alive() == map.len() && map.garbage() == 0
    });
    drop(map);
    assert_eq!(DROPS.alive(), 0, "entries are dropped with the map");
}

#[test]
fn d1_garbage_that_outlives_its_map_is_dropped() {
    static DROPS: DropRecord = DropRecord::new();
    let other: Map = map(Weak::Mixed);
    let mine: Map<u64, Token> = map(Weak::Mixed);
    while_held(
        || other.pin(),
        || {
            churn(&mine, &DROPS, 0..ROUNDS / 20);
            on_other_thread(|| churn(&mine, &DROPS, 0..ROUNDS / 20));
            drop(mine);
        },
    );
    eventually("all are dropped", || {
        flush();
        DROPS.alive() == 0
    });
}

/// Memory of a map beyond the limit: open batches, and chunks that are not full.
const SLACK: usize = 512 << 10;

#[test]
#[cfg_attr(miri, ignore = "a batch has more entries than fit into its time")]
fn d2_a_stalled_reader_retains_at_most_the_limit() {
    let (limit, hasher) = (10 * ROUNDS as usize, Weak::Mixed);
    let fill = |map: &Map, keys: u64| {
        let pin = map.pin();
        (0..keys).all(|key| pin.insert(key, Versioned::new(key, 0)).is_ok())
    };
    let live: Map = ConcurrentMap::with_hasher(hasher);
    assert!(fill(&live, 2 * KEYS));
    let live = live.allocation_size();

    let map: Map = ConcurrentMap::with_hasher(hasher).with_garbage_limit(limit, 2);
    eventually("insertions succeed", || fill(&map, KEYS));
    let churn = |from: u64| {
        let mut refusals = 0;
        let mut pin = map.pin();
        for round in from..from + ROUNDS {
            let key = mix(round) % KEYS * 2 + from;
            match pin.insert(key, Versioned::new(key, round)) {
                Ok(_) if round % 5 == 0 => _ = pin.remove(&key),
                Ok(_) => {}
                Err(error) => {
                    refusals += 1;
                    assert_eq!(error.refused, (key, Versioned::new(key, round)));
                    let (retired, exceeded) = super::garbage_of(error.reason).unwrap();
                    // A shard may have its part, an eighth at least.
                    assert!((limit / 8..=limit).contains(&exceeded) && retired > exceeded);
                }
            }
            let (retired, allocated) = (map.garbage(), map.allocation_size());
            assert!(retired <= limit + SLACK, "{retired} bytes are retired");
            assert!(allocated <= live + limit + SLACK, "{allocated} bytes, {live} without garbage");
            pin.repin();
        }
        refusals
    };
    while_held(
        || map.pin(),
        || {
            run_concurrently(
                &[&|| assert_ne!(churn(0), 0, "never refused"), &|| assert_ne!(churn(1), 0)],
                &[],
            );
            // A removal is never refused.
            let pin = map.pin();
            let keys: Vec<u64> = pin.keys().copied().collect();
            assert!(keys.iter().all(|key| pin.remove(key).is_some()) && pin.is_empty());
        },
    );
    eventually("insertions succeed again", || fill(&map, KEYS));
    assert_eq!(map.len() as u64, KEYS);
}

#[test]
fn d3_a_drop_that_panics_does_not_affect_other_calls() {
    static DROPS: DropRecord = DropRecord::new();
    let map: Map<u64, Token> = map(Weak::Mixed);
    let fill = || {
        let token = |key| if key % 3 == 0 { DROPS.panicking_token() } else { DROPS.token() };
        (0..KEYS).for_each(|key| _ = map.pin().insert(key, token(key)).unwrap());
    };
    fill();
    on_other_thread(fill);
    (0..KEYS).step_by(2).for_each(|key| assert!(map.pin().remove(&key).is_some()));
    eventually("removed entries are dropped, and no call panics", || {
        map.pin().flush();
        DROPS.alive() == map.len()
    });
    fill();
    while_held(|| map.pin(), || map.pin().clear());
    fill();
    // Dropping the map may panic in its caller.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(map)));
    eventually("all are dropped", || {
        flush();
        DROPS.alive() == 0
    });
}

#[test]
#[cfg_attr(miri, ignore = "slow; computes only")]
fn d2_the_error_has_the_limit_that_was_exceeded() {
    let limit = 1 << 20;
    // One key: its shard may have an eighth, if there are many shards. With many keys, or one
    // shard, the limit of the map is exceeded first.
    let many = 20_000;
    for (keys, capacity, exceeded) in [(1, many, limit / 8), (1000, many, limit), (1, 0, limit)] {
        let map: Map = ConcurrentMap::with_capacity_and_hasher(capacity, Weak::Mixed);
        let map = map.with_garbage_limit(limit, 0);
        let insert = |round| {
            let key = mix(round) % keys;
            map.pin().insert(key, Versioned::new(key, round)).err()
        };
        let error = while_held(|| map.pin(), || (0..).find_map(insert)).unwrap();
        let (retired, limit) = super::garbage_of(error.reason).unwrap();
        assert!(limit == exceeded && retired > exceeded, "{keys} keys: {error}");
    }
}

/// Fills a map with tokens under keys up to `len`.
fn fill(map: &Map<u64, Token>, record: &'static DropRecord, len: u64) {
    (0..len).for_each(|key| _ = map.pin().insert(key, record.token()).unwrap());
}

/// The number of entries that are removed without memory: some batches in each shard.
const MANY: u64 = if cfg!(miri) { 60 } else { 20_000 };

#[test]
fn d4_an_allocation_that_fails_is_an_error_and_changes_nothing() {
    let mut map: Map = map(Weak::Mixed);
    let (mut key, mut errors) = (0, 0);
    while errors < if cfg!(miri) { 3 } else { 300 } {
        let (before, pin) = (map.allocation_size(), map.pin());
        let value = Versioned::new(key, 1);
        if let Err(error) = with_allocations(0, || pin.insert(key, value.clone())) {
            assert!(matches!(error.reason, Refused::Memory(_)), "{error}");
            assert_eq!(error.refused, (key, value.clone()));
            assert_eq!((pin.get(&key), map.allocation_size()), (None, before));
            assert_eq!(pin.insert(key, value), Ok(None));
            errors += 1;
        }
        key += 1;
    }
    assert_eq!(map.len() as u64, key);
    assert_eq!(map.validate(), Ok(()));
}

#[test]
fn d4_traversals_and_removals_need_no_memory() {
    static DROPS: DropRecord = DropRecord::new();
    let mut map: Map<u64, Token> = map(Weak::Mixed);
    for round in 0..3 {
        fill(&map, &DROPS, MANY);
        let (pin, alive) = (map.pin(), DROPS.alive());
        with_allocations(0, || {
            assert_eq!(pin.iter().count() as u64, MANY);
            (0..MANY / 2).for_each(|key| assert!(pin.remove(&key).is_some()));
            pin.retain(|key, _| key % 2 == 0);
            // Replaced, if the shard has an id left.
            let replaced = pin.insert(MANY - 2, DROPS.token()).map(|old| old.is_some());
            let replaced = replaced.map_err(|error| error.reason);
            assert!(matches!(replaced, Ok(true) | Err(Refused::Memory(_))));
            assert_eq!(pin.len() as u64, MANY / 4);
            if round == 1 {
                pin.clear();
            }
            pin.flush();
        });
        assert!(DROPS.alive() >= alive, "dropped under a pin");
        drop(pin);
        assert_eq!(map.validate(), Ok(()));
        eventually("removed entries are dropped", || {
            map.pin().flush();
            DROPS.alive() == map.len()
        });
    }
}

#[test]
fn d4_entries_that_were_removed_without_memory_are_dropped_with_the_map() {
    static DROPS: DropRecord = DropRecord::new();
    let map: Map<u64, Token> = map(Weak::Mixed);
    fill(&map, &DROPS, MANY);
    let pin = map.pin();
    with_allocations(0, || (0..MANY).for_each(|key| assert!(pin.remove(&key).is_some())));
    drop(pin);
    assert_eq!(DROPS.alive() as u64, MANY);
    while_held(flowtable::concurrent::pin, || with_allocations(0, || drop(map)));
    assert_eq!(DROPS.alive(), 0);
}

#[test]
#[cfg_attr(miri, ignore = "slow; as above")]
fn d4_slots_of_entries_that_were_removed_without_memory_are_reused() {
    let map: Map = map(Weak::Mixed);
    let mut sizes = vec![];
    for _ in 0..4 {
        let pin = map.pin();
        (0..MANY).for_each(|key| _ = pin.insert(key, Versioned::new(key, 0)).unwrap());
        sizes.push(map.allocation_size());
        with_allocations(0, || pin.retain(|_, _| false));
        drop(pin);
        eventually("all are freed", || {
            map.pin().flush();
            map.garbage() == 0
        });
    }
    // Freed ids are of the shard that has deferred them, which may be another one.
    assert!(sizes[3] < sizes[0] + sizes[0] / 2, "{sizes:?}");
}

#[test]
fn d4_entries_that_were_cleared_without_memory_are_dropped_after_insertions() {
    static DROPS: DropRecord = DropRecord::new();
    let map: Map<u64, Token> = map(Weak::Mixed);
    fill(&map, &DROPS, MANY);
    let pin = map.pin();
    with_allocations(0, || pin.clear());
    drop(pin);
    assert_eq!((DROPS.alive() as u64, map.len()), (MANY, 0));
    // New keys, which replace and retire nothing.
    let mut key = MANY;
    eventually("entries that waited are dropped", || {
        map.pin().insert(key, DROPS.token()).unwrap();
        key += 1;
        DROPS.alive() == map.len()
    });
}

#[test]
fn d4_one_flush_retires_all_entries_that_were_removed_without_memory() {
    static DROPS: DropRecord = DropRecord::new();
    let map: Map<u64, Token> = map(Weak::Mixed);
    fill(&map, &DROPS, MANY);
    let pin = map.pin();
    with_allocations(0, || pin.clear());
    pin.flush();
    assert_eq!(DROPS.alive() as u64, MANY, "dropped under a pin");
    drop(pin);
    // By the collector alone: flushes of another map.
    eventually("entries that waited are dropped", || {
        flush();
        DROPS.alive() == 0
    });
}
