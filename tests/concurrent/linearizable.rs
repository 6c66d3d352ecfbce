//! Short random histories of `ConcurrentMap`, each of which must be linearizable.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use flowtable::ConcurrentMap;
use model::hashers::{Weak, mix};
use model::histories::{Call, Clock, Op, has_overlap, is_linearizable, random_op};
use model::scaled;

use super::perform::perform;

const THREADS: u64 = 3;
const CALLS: u64 = 5;
const KEYS: u64 = 2;
const HISTORIES: u64 = scaled(6000, 200, 10);
/// Histories after which the threads wait for each other.
const BATCH: u64 = if cfg!(miri) { 2 } else { 40 };

type Map = ConcurrentMap<u64, u64, Weak>;

/// The map and the clock of one history.
struct Scene {
    seed: u64,
    map: Map,
    clock: Clock,
    ready: AtomicUsize,
}

impl Scene {
    fn new(seed: u64) -> Self {
        let hasher = if seed % 2 == 0 { Weak::Mixed } else { Weak::Constant };
        let map = ConcurrentMap::with_hasher(hasher).with_garbage_limit(usize::MAX, 0);
        Self { seed, map, clock: Clock::new(), ready: AtomicUsize::new(0) }
    }

    /// The calls of one thread, which begin when all threads have arrived.
    fn play(&self, thread: u64) -> Vec<Call> {
        self.ready.fetch_add(1, Ordering::SeqCst);
        let mut spins = 0;
        while self.ready.load(Ordering::SeqCst) < THREADS as usize {
            spins += 1;
            if spins % 100 == 0 { thread::yield_now() } else { core::hint::spin_loop() }
        }
        let pin = self.map.pin();
        let mut numbers = (0..).map(|i| self.seed << 20 | thread << 16 | i);
        let mut pauses = (0..).map(|i| mix(self.seed ^ thread << 50 ^ i << 40));
        let mut pause = || spin(pauses.next().unwrap_or(0));
        let calls = numbers.by_ref().take(CALLS as usize).map(|number| {
            pause();
            if mix(number) >> 60 == 0 {
                self.churn(number);
            }
            let (key, op) = random_op(number, KEYS);
            self.clock.call(key, op, || perform(&pin, key, op, &mut pause))
        });
        calls.collect()
    }

    /// Inserts and removes other keys, so that the keys of the history move.
    fn churn(&self, number: u64) {
        let pin = self.map.pin();
        let keys = (0..if cfg!(miri) { 10 } else { 60 }).map(|i| 1000 + number * 100 + i);
        keys.clone().for_each(|key| _ = pin.insert(key, 0).unwrap());
        keys.for_each(|key| _ = pin.remove(&key));
    }
}

/// Spins for a random time, or yields the rest of the time slice.
fn spin(number: u64) {
    match number % 8 {
        0 => thread::yield_now(),
        _ => (0..number >> 8 & 127).for_each(|_| core::hint::spin_loop()),
    }
}

#[test]
fn histories_are_linearizable() {
    let mut overlaps = 0;
    for from in (0..HISTORIES).step_by(BATCH as usize) {
        let scenes: Vec<Scene> = (from..from + BATCH).map(Scene::new).collect();
        let start = Barrier::new(THREADS as usize);
        let play = |thread| {
            start.wait();
            scenes.iter().map(|scene| scene.play(thread)).collect::<Vec<_>>()
        };
        let played: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> =
                (0..THREADS).map(|thread| scope.spawn(move || play(thread))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
        });
        for (at, scene) in scenes.into_iter().enumerate() {
            let mut calls: Vec<Call> =
                played.iter().flat_map(|thread| thread[at].clone()).collect();
            calls.sort_by_key(|call| call.begun);
            assert!(is_linearizable(&calls), "seed {}: {calls:#?}", scene.seed);
            overlaps += usize::from(has_overlap(&calls));
            let mut map = scene.map;
            map.validate().unwrap_or_else(|broken| panic!("seed {}: {broken}", scene.seed));
        }
    }
    // Most histories overlap; the bound only detects threads that run in turns.
    println!("{overlaps} of {HISTORIES} histories have calls that overlap");
    assert!(cfg!(miri) || overlaps as u64 > HISTORIES / 100, "{overlaps} overlap, of {HISTORIES}");
}

/// Calls with results and times: `(op, result, begun, done)`.
fn history(calls: &[(Op, Option<u64>, u64, u64)]) -> Vec<Call> {
    let call = |&(op, result, begun, done)| Call { key: 1, op, result, begun, done };
    calls.iter().map(call).collect()
}

#[test]
fn linearizable_histories_are_accepted() {
    for calls in [
        vec![],
        vec![(Op::Get, None, 0, 1), (Op::Insert(1), None, 2, 3), (Op::Get, Some(1), 4, 5)],
        // Seen by a call that began later, before the insertion returned.
        vec![(Op::Insert(1), None, 0, 9), (Op::Get, None, 1, 2), (Op::Get, Some(1), 3, 4)],
        // Two concurrent updates.
        vec![(Op::Insert(5), None, 0, 1), (Op::Update, Some(7), 2, 5), (Op::Update, Some(6), 3, 4)],
        vec![
            (Op::Compute(3), None, 0, 5),
            (Op::Compute(4), Some(3), 1, 6),
            (Op::Remove, Some(6), 2, 7),
        ],
        vec![(Op::GetOrInsert(3), Some(4), 0, 5), (Op::GetOrInsertWith(4), Some(4), 1, 6)],
    ] {
        assert!(is_linearizable(&history(&calls)), "{calls:?}");
    }
}

#[test]
fn histories_that_are_not_linearizable_are_rejected() {
    for calls in [
        vec![(Op::Get, Some(1), 0, 1)],
        // An insertion that has returned is not seen.
        vec![(Op::Insert(1), None, 0, 1), (Op::Get, None, 2, 3)],
        // Seen, and then not seen.
        vec![(Op::Insert(1), None, 0, 9), (Op::Get, Some(1), 1, 2), (Op::Get, None, 3, 4)],
        // A lost update.
        vec![(Op::Insert(5), None, 0, 1), (Op::Update, Some(6), 2, 5), (Op::Update, Some(6), 3, 4)],
        // Removed twice.
        vec![(Op::Insert(5), None, 0, 1), (Op::Remove, Some(5), 2, 5), (Op::Remove, Some(5), 3, 4)],
        // Both calls inserted first.
        vec![(Op::GetOrInsert(3), Some(3), 0, 5), (Op::GetOrInsertWith(4), Some(4), 1, 6)],
        // Two readers see two insertions in different orders.
        vec![
            (Op::Insert(1), None, 0, 20),
            (Op::Insert(2), Some(1), 1, 21),
            (Op::Get, Some(2), 2, 3),
            (Op::Look, Some(1), 4, 5),
        ],
    ] {
        assert!(!is_linearizable(&history(&calls)), "{calls:?}");
    }
    // Keys are independent.
    let mut calls = history(&[(Op::Insert(1), None, 0, 1), (Op::Get, None, 2, 3)]);
    calls[1].key = 2;
    assert!(is_linearizable(&calls));
}

/// A sequential history is linearizable, and with another result it is not.
#[test]
fn a_changed_result_is_rejected() {
    let map: Map = ConcurrentMap::default();
    let (pin, clock) = (map.pin(), Clock::new());
    for seed in 0..if cfg!(miri) { 5 } else { 200_u64 } {
        pin.clear();
        let call = |i| {
            let (key, op) = random_op(1 << 50 | seed << 20 | i, KEYS);
            clock.call(key, op, || perform(&pin, key, op, &mut || ()))
        };
        let calls: Vec<Call> = (0..THREADS * CALLS).map(call).collect();
        assert!(is_linearizable(&calls), "seed {seed}: {calls:#?}");
        for at in 0..calls.len() {
            let mut changed = calls.clone();
            changed[at].result = Some(u64::MAX);
            assert!(!is_linearizable(&changed), "seed {seed}, {at}: {changed:#?}");
        }
    }
}
