//! Recorded histories of `ConcurrentTable` are linearizable: see `model::histories`.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Barrier;
use std::thread;

use flowtable::concurrent::NoUninit;

use super::Table;
use super::model_crate::hashers::{Weak, mix};
use super::model_crate::histories::{Call, Clock, is_linearizable, random_op};
use crate::perform::{Codec, on_table, perform_on_table};
use ::model::scaled;

const HISTORIES: u64 = scaled(3000, 100, 2);
const BATCH: u64 = if cfg!(miri) { 1 } else { 50 };
const THREADS: u64 = 3;
const CALLS: u64 = 6;

/// A table and the threads that wait for each other before they use it.
struct Scene<V> {
    seed: u64,
    table: Table<V>,
    clock: Clock,
    ready: AtomicUsize,
}

impl<V: NoUninit + Send> Scene<V> {
    fn new(seed: u64) -> Self {
        // Few keys collide in one group, or all do.
        let hasher = if seed % 2 == 0 { Weak::Mixed } else { Weak::Constant };
        Self { seed, table: super::table(hasher), clock: Clock::new(), ready: AtomicUsize::new(0) }
    }

    /// The calls of one thread, which begin when all threads have arrived.
    fn play(&self, thread: u64, codec: Codec<V>) -> Vec<Call> {
        self.ready.fetch_add(1, Ordering::SeqCst);
        while self.ready.load(Ordering::SeqCst) < THREADS as usize {
            thread::yield_now();
        }
        let pin = self.table.pin();
        let call = |i| {
            let number = self.seed << 20 | thread << 16 | i;
            if mix(number) >> 61 == 0 {
                self.churn(number, codec.0);
            }
            let (key, op) = random_op(number, 2);
            let op = on_table(op);
            let mut pause = || {
                if mix(number) % 3 == 0 {
                    thread::yield_now();
                }
            };
            pause();
            self.clock.call(key, op, || perform_on_table(&pin, key, op, codec, &mut pause))
        };
        (0..CALLS).map(call).collect()
    }

    /// Inserts and removes other keys, so that the keys of the history move.
    fn churn(&self, number: u64, make: fn(u64) -> V) {
        let pin = self.table.pin();
        let keys = (0..if cfg!(miri) { 10 } else { 60 }).map(|i| 1000 + number * 100 + i);
        keys.clone().for_each(|key| _ = pin.insert(key, make(0)).unwrap());
        keys.for_each(|key| _ = pin.remove(&key));
    }
}

fn check<V: NoUninit + Send>(codec: Codec<V>) {
    for from in (0..HISTORIES).step_by(BATCH as usize) {
        let scenes: Vec<Scene<V>> = (from..from + BATCH).map(Scene::new).collect();
        let start = Barrier::new(THREADS as usize);
        let play = |thread| {
            start.wait();
            scenes.iter().map(|scene| scene.play(thread, codec)).collect::<Vec<_>>()
        };
        let played: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> =
                (0..THREADS).map(|thread| scope.spawn(move || play(thread))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
        });
        for (at, mut scene) in scenes.into_iter().enumerate() {
            let mut calls: Vec<Call> =
                played.iter().flat_map(|thread: &Vec<Vec<Call>>| thread[at].clone()).collect();
            calls.sort_by_key(|call| call.begun);
            assert!(is_linearizable(&calls), "seed {}: {calls:#?}", scene.seed);
            super::validate(&mut scene.table);
        }
    }
}

#[test]
fn histories_of_words_are_linearizable() {
    check((|number| number, |value| value));
}

#[test]
fn histories_of_several_words_are_linearizable() {
    check((
        |number| [number, mix(number)],
        |[number, mixed]| {
            assert_eq!(mixed, mix(number), "a mixture");
            number
        },
    ));
}
