//! The longest insertion into a growing map, and the longest lookup beside it: each of many is
//! timed.
//!
//! Page faults and interruptions are excluded as in [`pauses`](crate::maps::pauses): memory is
//! preallocated, "no map" does constant work, and of three runs the shortest time of each insertion
//! counts. Lookups are not the same in each run; of the longest lookups of the runs the shortest
//! counts.
//!
//! The writer is the main thread, as the preallocated pages are in the main arena of malloc.

use std::time::{Duration, Instant};

use super::Key;
use super::figures::Figures;
use super::histogram::Histogram;
use super::insertions::ReaderTimes;
use super::subject::SharedMapSubject;
use crate::keys::random_keys;
use crate::maps::pauses::{keep_least, longest};
use crate::memory;
use crate::results::{Column, Results};
use crate::subject::rotation;
use bench_common::machine;

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
