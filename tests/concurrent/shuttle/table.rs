//! `ConcurrentTable` under interleavings that shuttle chooses.

use flowtable::ConcurrentTable;
use flowtable::concurrent::NoUninit;
use model::hashers::{Weak, mix};
use model::histories::{Call, Clock, is_linearizable, random_op};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Arc;
use shuttle::thread;

use super::{EXECUTIONS, MANY, both};
use crate::perform::{on_table, perform_on_table};

type Table<V> = ConcurrentTable<u64, V, Weak>;
type Act<V> = Box<dyn FnOnce(&Table<V>) + Send>;

/// Two words that depend on each other.
fn pair(number: u64) -> [u64; 2] {
    [number, mix(number)]
}

#[track_caller]
fn number([number, mixed]: [u64; 2]) -> u64 {
    assert_eq!(mixed, mix(number), "a mixture");
    number
}

fn table<V: NoUninit>() -> Table<V> {
    // A full hash, or one home for all keys.
    let hasher = if thread_rng().r#gen::<bool>() { Weak::Mixed } else { Weak::Constant };
    ConcurrentTable::with_hasher(hasher).with_garbage_limit(usize::MAX, 0)
}

/// Runs each of the acts in a thread of its own, and then checks the table.
fn run_all<V: NoUninit + Send>(table: Table<V>, acts: Vec<Act<V>>) -> Table<V> {
    let table = Arc::new(table);
    let start = |act: Act<V>| {
        let table = table.clone();
        thread::spawn(move || act(&table))
    };
    let threads: Vec<_> = acts.into_iter().map(start).collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no thread panics"));
    let mut table = Arc::into_inner(table).expect("all threads have ended");
    while table.garbage() > 0 {
        table.pin().flush();
    }
    table.validate().unwrap_or_else(|broken| panic!("{broken}"));
    table
}

/// Inserts and removes keys that no test uses, so that segments grow and shrink.
fn churn<V: NoUninit>(value: fn(u64) -> V) -> Act<V> {
    Box::new(move |table| {
        let pin = table.pin();
        let keys = 100..100 + MANY / 2;
        keys.clone().for_each(|key| assert!(pin.insert(key, value(key)).unwrap().is_none()));
        keys.for_each(|key| assert!(pin.remove(&key).is_some()));
    })
}

fn histories<V: NoUninit + Send>(make: fn(u64) -> V, read: fn(V) -> u64) {
    let (seed, clock) = (thread_rng().r#gen::<u64>() >> 24, Arc::new(Clock::new()));
    let calls = Arc::new(std::sync::Mutex::new(vec![]));
    let play = |thread: u64| {
        let (clock, calls) = (clock.clone(), calls.clone());
        Box::new(move |table: &Table<V>| {
            let pin = table.pin();
            let call = |i: u64| {
                let (key, op) = random_op(seed << 8 | thread << 4 | i, 2);
                let (op, pause) = (on_table(op), &mut thread::yield_now);
                clock.call(key, op, || perform_on_table(&pin, key, op, (make, read), pause))
            };
            let mine: Vec<Call> = (0..4).map(call).collect();
            calls.lock().unwrap().extend(mine);
        }) as Act<V>
    };
    let mut acts: Vec<_> = (0..3).map(play).collect();
    if seed % 2 == 0 {
        acts.push(churn(make));
    }
    run_all(table(), acts);
    let mut calls = calls.lock().unwrap().clone();
    calls.sort_by_key(|call| call.begun);
    assert!(is_linearizable(&calls), "{calls:#?}");
}

#[test]
fn histories_of_words_are_linearizable() {
    both(EXECUTIONS, || histories(|number| number, |value| value));
}

#[test]
fn histories_of_several_words_are_linearizable() {
    both(EXECUTIONS, || histories(pair, number));
}

#[test]
fn present_keys_are_found_while_segments_grow_and_shrink() {
    both(EXECUTIONS, || {
        let table = table();
        (0..4).for_each(|key| _ = table.pin().insert(key, pair(key)).unwrap());
        let read = || {
            Box::new(|table: &Table<[u64; 2]>| {
                let pin = table.pin();
                for round in 0..6 {
                    let key = round % 4;
                    assert_eq!(pin.get(&key), Some(pair(key)));
                    assert_eq!(get_batch!(pin, [&key, &99]), [Some(pair(key)), None]);
                    let mut visited: Vec<u64> = pin.keys().filter(|key| *key < 4).collect();
                    visited.sort_unstable();
                    assert_eq!(visited, [0, 1, 2, 3]);
                }
            }) as Act<[u64; 2]>
        };
        let replace = Box::new(|table: &Table<[u64; 2]>| {
            let pin = table.pin();
            (0..8).for_each(|key| assert!(pin.insert(key % 4, pair(key % 4)).unwrap().is_some()));
        });
        let table = run_all(table, vec![churn(pair), replace, read(), read()]);
        assert_eq!(table.len(), 4);
    });
}

#[test]
fn additions_are_not_lost_in_a_growing_segment() {
    both(EXECUTIONS, || {
        let add = || {
            Box::new(|table: &Table<u64>| {
                let pin = table.pin();
                for round in 0..6 {
                    let key = round % 2;
                    pin.get_or_insert(&key, 0).unwrap();
                    assert!(pin.fetch_add(&key, 1).is_some());
                    assert!(pin.update(&key, |now| now + 1).unwrap().is_some());
                }
            }) as Act<u64>
        };
        let table = run_all(table(), vec![add(), add(), churn(|key| key)]);
        assert_eq!([0, 1].map(|key| table.pin().get(&key)), [Some(12); 2]);
    });
}

#[test]
fn values_are_not_torn_and_versions_never_decrease() {
    both(EXECUTIONS, || {
        let write = Box::new(|table: &Table<[u64; 2]>| {
            let pin = table.pin();
            for version in 1..MANY {
                // One key repeatedly, and others that make its segment grow.
                pin.insert(0, pair(version)).unwrap();
                pin.insert(version % 11, pair(version)).unwrap();
            }
        });
        let read = || {
            Box::new(|table: &Table<[u64; 2]>| {
                let (pin, mut last) = (table.pin(), 0);
                for _ in 0..MANY {
                    let now = pin.get(&0).map_or(0, number);
                    assert!(last <= now, "{now} was read after {last}");
                    last = now;
                }
            }) as Act<[u64; 2]>
        };
        run_all(table(), vec![write, read(), read()]);
    });
}
