//! The loops: reads, and updates between them.
//!
//! ```text
//!     single   get get get … get  update   get get get … get  update   …   one after 9 or 99 reads
//!     burst    get_batch of 32  update update update   get_batch of 32 …   as many, after a burst
//! ```

use std::fs::read_to_string;
use std::hint::{black_box, spin_loop};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use super::Key;
use super::contestant::{Shared, View, seen};
use crate::contestant::BURST;

/// What a thread has to do.
pub(crate) struct Task {
    pub(crate) reads: Vec<Key>,
    pub(crate) updates: Vec<(Key, u64)>,
    /// An update comes after so many reads.
    pub(crate) every: usize,
    /// Of what reads have to see.
    pub(crate) sum: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    Single,
    Burst,
}

/// What the threads of a run have to do.
pub(crate) struct Job<'a> {
    /// A thread for each.
    pub(crate) tasks: &'a [Task],
    pub(crate) reading: Reading,
    /// Reads of each thread before it is timed.
    pub(crate) warm_up: usize,
}

/// What threads have done.
pub(crate) struct Done {
    /// Nanoseconds from one operation to the next, of whichever thread.
    pub(crate) ns: f64,
    /// Whether every key was found, and with a value that it may have.
    pub(crate) is_right: bool,
    /// The part of its time that a thread waited for a processor, of the one that waited longest.
    pub(crate) waited: f64,
}

/// Threads do `job`. The time is that from when they begin to when the last one is done: if each had its
/// own, two that take turns on one processor would seem to be twice as fast as one.
pub(crate) fn work<M: Shared>(map: &M, job: &Job<'_>) -> Done {
    let ready = &AtomicUsize::new(0);
    let mut done = Done { ns: 0.0, is_right: true, waited: 0.0 };
    let begun = &OnceLock::new();
    let (mut operations, mut longest) = (0, 0.0_f64);
    thread::scope(|scope| {
        let begin = |task| scope.spawn(move || timed(map, task, job, (ready, begun)));
        let threads: Vec<_> = job.tasks.iter().map(begin).collect();
        for (task, thread) in job.tasks.iter().zip(threads) {
            let (time, waited, sum) = thread.join().expect("a thread does its work");
            let ns = time.as_nanos() as f64;
            operations += task.reads.len() + task.updates.len();
            longest = longest.max(ns);
            done.waited = done.waited.max(waited as f64 / ns);
            done.is_right &= sum == task.sum;
        }
    });
    done.ns = longest / operations as f64;
    done
}

/// One thread's part: its time, how many nanoseconds of it the thread waited, and the sum.
fn timed<M: Shared>(
    map: &M,
    task: &Task,
    job: &Job<'_>,
    (ready, begun): (&AtomicUsize, &OnceLock<Instant>),
) -> (Duration, u64, u64) {
    let mut view = map.view();
    for keys in task.reads[..job.warm_up].chunks_exact(BURST) {
        view.repin();
        black_box(view.burst(keys.try_into().expect("a burst has that length")));
    }
    let before = waited();
    // They begin together: one that slept would be late.
    ready.fetch_add(1, SeqCst);
    while ready.load(SeqCst) < job.tasks.len() {
        spin_loop();
    }
    let start = begun.get_or_init(Instant::now);
    let sum = match job.reading {
        Reading::Single => single(&mut view, task),
        Reading::Burst => bursts(&mut view, task),
    };
    let time = start.elapsed();
    (time, waited() - before, black_box(sum))
}

/// Nanoseconds that this thread could have run, and others did; a lock that it waits for does not count.
/// Always 0 where the system does not say so.
fn waited() -> u64 {
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
            sum = sum.wrapping_add(view.get(key).map_or(0, seen));
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
        let keys = keys.try_into().expect("a burst has that length");
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
    let &(key, value) = updates.next().expect("there are as many as reads allow");
    view.insert(key, value);
}
