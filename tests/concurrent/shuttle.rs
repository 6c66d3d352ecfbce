//! `ConcurrentMap` under interleavings that shuttle chooses. Its segments are small there: a dozen
//! entries make them grow.
//!
//! All threads run on one thread of the operating system, so the per-thread state of
//! crossbeam-epoch is not tested: there is a single thread, with a participant for each pin. It
//! also outlives an execution, so all garbage is reclaimed before the execution ends: the counter
//! of the map belongs to the execution.

mod table;
mod trie;

use flowtable::ConcurrentMap;
use flowtable::concurrent::{Compute, Pinned};
use model::hashers::{Weak, mix};
use model::histories::{Call, Clock, is_linearizable, random_op};
use model::threads::on_other_thread;
use model::versioned::Versioned;
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Arc;
use shuttle::{check_pct, check_random, thread};

use super::perform::perform;

/// Executions of each test, which take about a second.
const EXECUTIONS: usize = 250;
/// The number of preemptions that a bug may need to be found.
const DEPTH: usize = 3;
/// Keys of one test; a dozen make a segment grow.
const MANY: u64 = 24;

type Map<V> = ConcurrentMap<u64, V, Weak>;

fn map<V>() -> Map<V> {
    // A full hash, or one bucket for all keys.
    let hasher = if thread_rng().r#gen::<bool>() { Weak::Mixed } else { Weak::Constant };
    ConcurrentMap::with_hasher(hasher).with_garbage_limit(usize::MAX, 0)
}

/// Runs each of the acts in a thread of its own, and then checks the map.
fn run_all<V: Send + Sync + 'static>(
    map: Map<V>,
    acts: Vec<Box<dyn FnOnce(&Map<V>) + Send>>,
) -> Map<V> {
    let map = Arc::new(map);
    let start = |act: Box<dyn FnOnce(&Map<V>) + Send>| {
        let map = map.clone();
        thread::spawn(move || act(&map))
    };
    let threads: Vec<_> = acts.into_iter().map(start).collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no thread panics"));
    let mut map = Arc::into_inner(map).expect("all threads have ended");
    map.pin().flush();
    while map.garbage() > 0 {
        map.pin().flush();
    }
    map.validate().unwrap_or_else(|broken| panic!("{broken}"));
    map
}

/// Only one test at a time: they would reclaim each other's garbage. So would a thread that ends
/// while the next test runs, outside its execution: hence the thread ends before the lock is
/// released.
static EXCLUSIVE: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn both(executions: usize, test: fn()) {
    let _exclusive = EXCLUSIVE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    on_other_thread(|| {
        check_random(test, executions);
        check_pct(test, executions, DEPTH);
    });
}

/// Inserts and removes keys that no test uses, so that segments grow and shrink.
fn churn(map: &Map<u64>) {
    let pin = map.pin();
    for key in 100..100 + MANY {
        pin.insert(key, key).unwrap();
    }
    for key in 100..100 + MANY {
        assert_eq!(pin.remove(&key), Some(&key));
    }
}

#[test]
fn histories_are_linearizable() {
    both(2 * EXECUTIONS, || {
        let (seed, clock) = (thread_rng().r#gen::<u64>() >> 24, Arc::new(Clock::new()));
        let calls = Arc::new(std::sync::Mutex::new(vec![]));
        let play = |thread: u64| {
            let (clock, calls) = (clock.clone(), calls.clone());
            Box::new(move |map: &Map<u64>| {
                let pin = map.pin();
                let call = |i: u64| {
                    let (key, op) = random_op(seed << 8 | thread << 4 | i, 2);
                    clock.call(key, op, || perform(&pin, key, op, &mut thread::yield_now))
                };
                let mine: Vec<Call> = (0..4).map(call).collect();
                calls.lock().unwrap().extend(mine);
            }) as Box<dyn FnOnce(&Map<u64>) + Send>
        };
        let mut acts: Vec<_> = (0..3).map(play).collect();
        if seed % 2 == 0 {
            acts.push(Box::new(churn));
        }
        run_all(map(), acts);
        let mut calls = calls.lock().unwrap().clone();
        calls.sort_by_key(|call| call.begun);
        assert!(is_linearizable(&calls), "{calls:#?}");
    });
}

#[test]
fn present_keys_are_found_while_segments_grow_and_shrink() {
    both(EXECUTIONS, || {
        let map = map();
        (0..4).for_each(|key| _ = map.pin().insert(key, key).unwrap());
        let read = |map: &Map<u64>| {
            let pin = map.pin();
            for round in 0..6 {
                let key = round % 4;
                assert_eq!(pin.get(&key), Some(&key));
                assert_eq!(get_batch!(pin, [&key, &99]), [Some(&key), None]);
                let mut visited: Vec<u64> = pin.keys().copied().filter(|key| *key < 4).collect();
                visited.sort_unstable();
                assert_eq!(visited, [0, 1, 2, 3]);
            }
        };
        let map = run_all(map, vec![Box::new(churn), Box::new(read), Box::new(read)]);
        assert_eq!(map.len(), 4);
    });
}

#[test]
fn two_writers_grow_the_same_segments() {
    both(EXECUTIONS, || {
        let fill = |from: u64| {
            move |map: &Map<u64>| {
                let pin = map.pin();
                (from..MANY).step_by(2).for_each(|key| _ = pin.insert(key, key).unwrap());
            }
        };
        let map = run_all(map(), vec![Box::new(fill(0)), Box::new(fill(1))]);
        assert_eq!(map.len() as u64, MANY);
        let pin = map.pin();
        assert!((0..MANY).all(|key| pin.get(&key) == Some(&key)));
    });
}

#[test]
fn updates_are_not_lost_in_a_growing_segment() {
    both(EXECUTIONS, || {
        let count = |map: &Map<u64>| {
            let pin = map.pin();
            for round in 0..6 {
                let key = round % 2;
                let add = |now: Option<&u64>| Compute::Insert(now.map_or(1, |now| now + 1));
                _ = pin.compute(&key, add).unwrap();
                assert!(pin.update(&key, |now| now + 1).unwrap().is_some());
            }
        };
        let map = run_all(map(), vec![Box::new(count), Box::new(count), Box::new(churn)]);
        assert_eq!([0, 1].map(|key| *map.pin().get(&key).unwrap()), [12, 12]);
    });
}

#[test]
fn values_are_not_torn_and_versions_never_decrease() {
    both(EXECUTIONS, || {
        let write = |map: &Map<Versioned>| {
            let pin = map.pin();
            for version in 1..MANY {
                // One key repeatedly, and others that make its segment grow.
                pin.insert(0, Versioned::new(0, version)).unwrap();
                pin.insert(version, Versioned::new(version, 0)).unwrap();
            }
        };
        let read = |map: &Map<Versioned>| {
            let (pin, mut last) = (map.pin(), 0);
            let version = |pin: &Pinned<'_, ConcurrentMap<u64, Versioned, Weak>>| {
                pin.get(&0).map_or(0, |v| v.version_of(0))
            };
            for round in 0..MANY {
                let now = version(&pin);
                assert!(last <= now, "{now} was read after {last}");
                last = now;
                let key = 1 + mix(round) % (MANY - 1);
                let found = pin.get(&key).map(|value| value.version_of(key));
                assert!(found.is_some() || now < MANY - 1 || version(&pin) < key + 1 || key >= now);
            }
        };
        run_all(map(), vec![Box::new(write), Box::new(read), Box::new(read)]);
    });
}
