//! The longest insertion into a growing map, and the longest lookup beside it: each of many is
//! timed.
//!
//! Page faults and interruptions are excluded as in [`pauses`](crate::maps::pauses): memory is
//! preallocated, "no map" does constant work, and of three runs the shortest time of each insertion
//! counts. Lookups are not the same in each run; of the longest lookups of the runs the shortest
//! counts.
//!
//! The writer is the main thread, as the preallocated pages are in the main arena of malloc.

use std::array;
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bench_common::machine;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::Key;
use super::figures::Figures;
use super::histogram::Histogram;
use super::subject::{SharedMap, SharedMapSubject, View};
use crate::keys::random_keys;
use crate::maps::pauses::{keep_least, longest};
use crate::memory;
use crate::results::{Column, Results};
use crate::subject::{BURST, rotation};

const RUNS: usize = 3;

/// Memory to preallocate, as a multiple of the entries' bytes: see [`memory::preallocate`].
const SPARE: usize = 4;

/// Quantiles of a run.
const QUANTILES: [f64; 4] = [0.5, 0.99, 0.999, 0.9999];

const INSERTS: [&str; 6] = [
    "insert p50",
    "insert p99",
    "insert p99.9",
    "insert p99.99",
    "insert worst, repeated",
    "insert worst, once",
];

const READS: [&str; 6] = [
    "read p50",
    "read p99",
    "read p99.9",
    "read p99.99",
    "read worst, least of 3",
    "read worst, once",
];

/// The first column with one figure for all runs.
const WORST: usize = QUANTILES.len();

/// Inserts `n` keys into each map beside a reader, [`RUNS`] times. Returns the results of the
/// writer and of the reader.
pub(crate) fn growth(subjects: &mut [SharedMapSubject], n: usize) -> [Results; 2] {
    let keys = random_keys::<Key>(n, 1);
    let tables = [("insertions", INSERTS), ("lookups beside them", READS)];
    let [mut inserts, mut reads] = tables.map(|(what, benches)| {
        let title = format!("An empty map grows to {n} entries: ns of one, {what}");
        let columns = benches.map(|bench| Column { bench, unit: "ns", n });
        Figures::new(title, columns.to_vec(), subjects)
    });
    // Not zeros, whose pages would be touched for the first time during the measurement.
    let mut times = vec![1; n];
    let mut shortest = vec![vec![u32::MAX; n]; subjects.len()];
    let mut worst = vec![Worst::default(); subjects.len()];
    memory::preallocate(SPARE * n * size_of::<(Key, u64)>());
    for round in 0..RUNS {
        for at in rotation(round, subjects.len()) {
            let faults = machine::page_faults();
            let start = Instant::now();
            let benchmark = &mut subjects[at].benchmark;
            let ReaderTimes { times: read, missed } = benchmark.grow(&keys, &mut times);
            let remark = remark(n, &read, start.elapsed(), faults);
            reads.missed(at, missed);
            subjects[at].benchmark.clear();
            reads.remark(at, remark);
            let mut inserted = Histogram::new();
            inserted.extend(times.iter().copied());
            quantiles(&mut inserts, at, &inserted);
            quantiles(&mut reads, at, &read);
            keep_least(&mut shortest[at], &times);
            worst[at].record(&inserted, &read);
        }
    }
    memory::release();
    for (at, (shortest, worst)) in shortest.iter().zip(worst).enumerate() {
        inserts.record(at, WORST, longest(shortest));
        inserts.record(at, WORST + 1, f64::from(worst.insert));
        reads.record(at, WORST, f64::from(worst.read_least));
        reads.record(at, WORST + 1, f64::from(worst.read));
    }
    [inserts.results(), reads.results()]
}

/// The longest times of all runs.
#[derive(Clone)]
struct Worst {
    insert: u32,
    read: u32,
    /// The shortest of the runs' longest times.
    read_least: u32,
}

impl Default for Worst {
    fn default() -> Self {
        Self { insert: 0, read: 0, read_least: u32::MAX }
    }
}

impl Worst {
    fn record(&mut self, inserts: &Histogram, reads: &Histogram) {
        self.insert = self.insert.max(inserts.longest());
        self.read = self.read.max(reads.longest());
        self.read_least = self.read_least.min(reads.longest());
    }
}

fn quantiles(figures: &mut Figures, row: usize, times: &Histogram) {
    for (column, quantile) in QUANTILES.into_iter().enumerate() {
        figures.record(row, column, times.quantile(quantile) as f64);
    }
}

/// Formats the rates and the page faults of a run.
fn remark(n: usize, reads: &Histogram, time: Duration, faults_before: Option<u64>) -> String {
    let faults = machine::page_faults().zip(faults_before);
    let faults = faults.map_or(0, |(after, before)| after - before);
    let [inserts, reads] =
        [n as u64, reads.count()].map(|count| count as f64 / time.as_micros() as f64);
    format!("{inserts:.2} M/s insertions, {reads:.2} M/s lookups, {faults} new pages")
}

/// The lookups of a reader beside a writer.
pub(crate) struct ReaderTimes {
    times: Histogram,
    /// Lookups that missed a present key.
    missed: usize,
}

/// Fills `map` in this thread, while another thread looks up random present keys.
pub(crate) fn beside_a_reader<M: SharedMap>(
    map: &M,
    keys: &[Key],
    inserts: &mut [u32],
) -> ReaderTimes {
    let filled = AtomicUsize::new(0);
    thread::scope(|scope| {
        let reader = scope.spawn(|| read(&mut map.view(), keys, &filled));
        write(&mut map.view(), keys, &filled, inserts);
        reader.join().expect("the reader does not panic")
    })
}

/// Inserts all keys, and publishes their number once per batch: the counter is shared with the
/// reader, whose accesses cost time that is not the map's.
#[inline(never)]
fn write<V: View>(view: &mut V, keys: &[Key], filled: &AtomicUsize, times: &mut [u32]) {
    let mut last = Instant::now();
    for (at, (&key, time)) in keys.iter().zip(times).enumerate() {
        if at % BURST == 0 {
            // Release: pairs with the Acquire of the reader.
            filled.store(at, Ordering::Release);
            view.repin();
        }
        view.insert(key, at as u64);
        (*time, last) = since(last);
    }
    filled.store(keys.len(), Ordering::Release);
}

/// Looks up random present keys. They are picked in batches before the clock is read, so that cache
/// misses on the array of keys are not timed.
#[inline(never)]
fn read<V: View>(view: &mut V, keys: &[Key], filled: &AtomicUsize) -> ReaderTimes {
    let mut rng = SmallRng::seed_from_u64(5);
    let (mut times, mut missed) = (Histogram::new(), 0);
    loop {
        // Acquire: pairs with the Release of the writer.
        let present = filled.load(Ordering::Acquire);
        if present == keys.len() {
            return ReaderTimes { times, missed };
        }
        if present == 0 {
            spin_loop();
            continue;
        }
        let picked: [Key; BURST] = array::from_fn(|_| keys[rng.random_range(0..present)]);
        let mut last = Instant::now();
        view.repin();
        for key in &picked {
            missed += usize::from(black_box(view.get(key)).is_none());
            let time;
            (time, last) = since(last);
            times.record(time);
        }
    }
}

/// Returns the nanoseconds since `last`, and the present time.
#[inline]
fn since(last: Instant) -> (u32, Instant) {
    let now = Instant::now();
    (now.duration_since(last).as_nanos().try_into().unwrap_or(u32::MAX), now)
}
