//! Shared stores as subjects: what is measured, and the loops, compiled for each store.

use std::hint::{black_box, spin_loop};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Instant;

use crate::ephemeral::packets::Packet;
use crate::subject::{Subject, Timed};

/// A store that threads share.
pub(crate) trait SharedStore: Sync {
    /// The data that a thread has beside the store.
    type Worker: Send;

    fn worker(&self, lifetime: usize) -> Self::Worker;

    /// Adds one to the value of `tag`, which starts at zero. Returns the new value.
    fn count(&self, worker: &mut Self::Worker, tag: u64, now: u64) -> u64;
}

/// The benchmarks of one store.
pub(crate) trait SharedStoreBenchmark {
    /// Processes the packets of each thread. The time is that of a packet of any thread.
    fn run(&mut self, packets: &[Vec<Packet>]) -> Timed;
}

pub(crate) type SharedStoreSubject = Subject<dyn SharedStoreBenchmark>;

struct Loops<S: SharedStore> {
    store: S,
    workers: Vec<S::Worker>,
}

/// Returns the benchmarks of a store for a number of threads.
pub(crate) fn shared<S: SharedStore + 'static>(
    store: S,
    threads: usize,
    lifetime: usize,
) -> Box<dyn SharedStoreBenchmark> {
    let workers = (0..threads).map(|_| store.worker(lifetime)).collect();
    Box::new(Loops { store, workers })
}

impl<S: SharedStore> SharedStoreBenchmark for Loops<S> {
    /// The time is from the common start to the end of the last thread.
    fn run(&mut self, packets: &[Vec<Packet>]) -> Timed {
        let Self { store, workers } = self;
        let (store, threads) = (&*store, packets.len());
        let (ready, started) = (&AtomicUsize::new(0), &OnceLock::new());
        let results: Vec<(_, u64)> = thread::scope(|scope| {
            let mut running = vec![];
            for (packets, worker) in packets.iter().zip(workers) {
                running.push(scope.spawn(move || {
                    // A barrier that spins: a sleeping thread would start late.
                    ready.fetch_add(1, SeqCst);
                    while ready.load(SeqCst) < threads {
                        spin_loop();
                    }
                    let start = started.get_or_init(Instant::now);
                    let sum = black_box(counts(store, worker, packets));
                    (start.elapsed(), sum)
                }));
            }
            running.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
        });
        let longest = results.iter().map(|(time, _)| *time).max().unwrap_or_default();
        let sum = results.iter().map(|(_, sum)| sum).sum();
        Timed::new(longest, packets.iter().map(Vec::len).sum(), sum)
    }
}

#[inline(never)]
fn counts<S: SharedStore>(store: &S, worker: &mut S::Worker, packets: &[Packet]) -> u64 {
    packets.iter().map(|packet| store.count(worker, packet.tag, packet.now)).sum()
}
