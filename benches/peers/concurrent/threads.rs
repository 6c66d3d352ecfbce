//! The loops of threads: reads, and updates between them.
//!
//! ```text
//!     single   get get get … get  update   get get get … get  update   …   one after 9 or 99 reads
//!     burst    get_batch of 32  update update update   get_batch of 32 …   after each batch
//! ```

use std::fs::read_to_string;
use std::hint::{black_box, spin_loop};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use super::Key;
use super::shared_map::{SharedMap, View, low_half};
use crate::subject::BURST;

/// The work of one thread.
pub(crate) struct Task {
    pub(crate) reads: Vec<Key>,
    pub(crate) updates: Vec<(Key, u64)>,
    /// Reads between two updates.
    pub(crate) every: usize,
    /// The expected sum of [`low_half`] of the values read.
    pub(crate) sum: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    Single,
    Burst,
}

/// The work of a run.
pub(crate) struct Job<'a> {
    /// One per thread.
    pub(crate) tasks: &'a [Task],
    pub(crate) reading: Reading,
    /// Reads per thread that are not timed.
    pub(crate) warm_up: usize,
}

/// The result of a run.
pub(crate) struct Run {
    /// Nanoseconds per operation of any thread: the time of the run divided by all operations.
    pub(crate) ns: f64,
    /// Whether every key was found with one of its values.
    pub(crate) is_correct: bool,
    /// The greatest share of time that a thread spent waiting for a CPU.
    pub(crate) waiting: f64,
}

/// Runs `job`. The time is from the common start to the end of the last thread: with a clock per
/// thread, two threads that take turns on one CPU would seem to be twice as fast as one.
pub(crate) fn run<M: SharedMap>(map: &M, job: &Job<'_>) -> Run {
    let ready = &AtomicUsize::new(0);
    let mut result = Run { ns: 0.0, is_correct: true, waiting: 0.0 };
    let started = &OnceLock::new();
    let (mut operations, mut longest) = (0, 0.0_f64);
    thread::scope(|scope| {
        let start = |task| scope.spawn(move || timed(map, task, job, (ready, started)));
        let threads: Vec<_> = job.tasks.iter().map(start).collect();
        for (task, thread) in job.tasks.iter().zip(threads) {
            let (time, waiting, sum) = thread.join().expect("the thread does not panic");
            let ns = time.as_nanos() as f64;
            operations += task.reads.len() + task.updates.len();
            longest = longest.max(ns);
            result.waiting = result.waiting.max(waiting as f64 / ns);
            result.is_correct &= sum == task.sum;
        }
    });
    result.ns = longest / operations as f64;
    result
}

/// Runs one thread. Returns its time, the nanoseconds of it spent waiting for a CPU, and the sum.
fn timed<M: SharedMap>(
    map: &M,
    task: &Task,
    job: &Job<'_>,
    (ready, started): (&AtomicUsize, &OnceLock<Instant>),
) -> (Duration, u64, u64) {
    let mut view = map.view();
    for keys in task.reads[..job.warm_up].chunks_exact(BURST) {
        view.repin();
        black_box(view.burst(keys.try_into().expect("the length of a chunk")));
    }
    let before = waiting();
    // A barrier that spins: a sleeping thread would start late.
    ready.fetch_add(1, SeqCst);
    while ready.load(SeqCst) < job.tasks.len() {
        spin_loop();
    }
    let start = started.get_or_init(Instant::now);
    let sum = match job.reading {
        Reading::Single => single(&mut view, task),
        Reading::Burst => bursts(&mut view, task),
    };
    let time = start.elapsed();
    (time, waiting() - before, black_box(sum))
}

/// Returns the nanoseconds in which this thread was runnable but did not run; waiting for a lock
/// does not count. Always 0 without `/proc/thread-self/schedstat`.
fn waiting() -> u64 {
    let stat = read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ').nth(1).and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

#[inline(never)]
fn single<V: View>(view: &mut V, task: &Task) -> u64 {
    let (mut sum, mut reads) = (0_u64, 0);
    let mut updates = task.updates.iter();
    for keys in task.reads.chunks_exact(BURST) {
        view.repin();
        for key in keys {
            sum = sum.wrapping_add(view.get(key).map_or(0, low_half));
            reads += 1;
            if reads == task.every {
                reads = 0;
                update(view, &mut updates);
            }
        }
    }
    sum
}

#[inline(never)]
fn bursts<V: View>(view: &mut V, task: &Task) -> u64 {
    let (mut sum, mut reads) = (0_u64, 0);
    let mut updates = task.updates.iter();
    for keys in task.reads.chunks_exact(BURST) {
        view.repin();
        let keys = keys.try_into().expect("the length of a chunk");
        sum = sum.wrapping_add(view.burst(keys));
        reads += BURST;
        while reads >= task.every {
            reads -= task.every;
            update(view, &mut updates);
        }
    }
    sum
}

#[inline]
fn update<'a, V: View>(view: &mut V, updates: &mut impl Iterator<Item = &'a (Key, u64)>) {
    let &(key, value) = updates.next().expect("an update for each `every` reads");
    view.insert(key, value);
}
