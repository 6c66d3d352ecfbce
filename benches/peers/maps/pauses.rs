//! The longest insertion: each of many insertions is timed.
//!
//! Only the work of the map counts. Two other sources of long times are excluded:
//!
//! - *Page faults.* malloc gets and retains enough memory before; the page faults that happen
//!   anyway are counted and printed. Only the first run uses new memory.
//! - *Interruptions* by other work of the machine. A loop with constant work, "no map", shows how
//!   long these are. There are three runs with the same keys and seed: the map's work recurs at the
//!   same insertion, interruptions do not. The maximum over insertions of the minimum over runs is
//!   called *repeated*; it is the longest time that the map itself takes.

use std::hash::BuildHasher;

use bench_common::machine;
use flowtable::DefaultHashBuilder;

use super::subject::{Map, MapSubject, map};
use crate::keys::{Key, random_keys};
use crate::memory;
use crate::results::{Column, Results};
use crate::subject::{peer, rotation};

const RUNS: usize = 3;

/// Memory to preallocate, as a multiple of the entries' bytes: more than a map that doubles
/// allocates in total. See [`memory::preallocate`].
const SPARE: usize = 4;

/// Percentiles of a run.
const PERCENTILES: [(&str, f64); 3] =
    [("pause p50", 0.50), ("pause p99", 0.99), ("pause p99.99", 0.9999)];

/// Columns with one figure for all runs.
const WORST: [&str; 3] = ["pause worst, repeated", "pause worst, once", "pause worst, new memory"];

/// Times `n` insertions into each map: once with new memory, then [`RUNS`] times.
pub(crate) fn pauses<K: Key>(mut subjects: Vec<MapSubject<K>>, n: usize) -> Results {
    let hasher = DefaultHashBuilder::new();
    subjects.push(peer("no map", map(move || NoMap { hasher: hasher.clone(), last: 0 })));
    let keys = random_keys::<K>(n, 1);
    let title = format!("{n} insertions, keys of {} bytes, values of 8: ns of one", K::NAME);
    let benches = PERCENTILES.iter().map(|&(bench, _)| bench).chain(WORST);
    let columns = benches.map(|bench| Column { bench, unit: "ns", n }).collect();
    let mut results = Results::new(title, K::NAME, columns);
    // Not zeros, whose pages would be touched for the first time during the measurement.
    let mut times = vec![1; n];
    let mut shortest = vec![vec![u32::MAX; n]; subjects.len()];
    let [repeated, once, new_memory] = [0, 1, 2].map(|worst| PERCENTILES.len() + worst);

    results.add_rows(&subjects);
    for (at, subject) in subjects.iter_mut().enumerate() {
        memory::release();
        let faults = run(subject, &keys, &mut times);
        results.record(at, new_memory, longest(&times));
        results.remark(at, format!("{faults} pages of new memory"));
    }
    memory::preallocate(SPARE * n * size_of::<(K, u64)>());
    let mut worst = vec![0.0_f64; subjects.len()];
    for round in 0..RUNS {
        for at in rotation(round, subjects.len()) {
            let faults = run(&mut subjects[at], &keys, &mut times);
            results.remark(at, format!("{faults} in run {}", round + 1));
            keep_least(&mut shortest[at], &times);
            worst[at] = worst[at].max(longest(&times));
            for (column, (_, part)) in PERCENTILES.iter().enumerate() {
                let rank = ((n - 1) as f64 * part) as usize;
                results.record(at, column, f64::from(*times.select_nth_unstable(rank).1));
            }
        }
    }
    memory::release();
    for (at, (shortest, worst)) in shortest.iter().zip(worst).enumerate() {
        results.record(at, repeated, longest(shortest));
        results.record(at, once, worst);
    }
    results
}

/// Times one run. Returns its page faults.
fn run<K>(subject: &mut MapSubject<K>, keys: &[K], times: &mut [u32]) -> u64 {
    let faults = machine::page_faults_of(|| subject.benchmark.time_insertions(keys, times));
    subject.benchmark.clear();
    faults
}

/// Keeps the minimum of each time over all runs.
pub(crate) fn keep_least(least: &mut [u32], times: &[u32]) {
    least.iter_mut().zip(times).for_each(|(least, &time)| *least = time.min(*least));
}

pub(crate) fn longest(times: &[u32]) -> f64 {
    f64::from(times.iter().copied().max().unwrap_or(0))
}

/// Constant work that takes about as long as an insertion.
struct NoMap {
    hasher: DefaultHashBuilder,
    last: u64,
}

impl<K> Map<K> for NoMap {
    fn get(&self, _: &K) -> Option<&u64> {
        None
    }
    fn insert(&mut self, _: K, value: u64) {
        self.last = (0..16).fold(value, |hash, _| self.hasher.hash_one(hash));
    }
    fn remove(&mut self, _: &K) -> Option<u64> {
        None
    }
}
