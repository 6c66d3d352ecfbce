//! How long an insertion into a growing map takes, and a look-up beside it: every one of both is timed.
//!
//! What is not the map's own work is kept apart as in [`pauses`](crate::pauses): pages are there
//! before, the same loops run without a map, and there are three runs, as the machine's interruptions
//! are not at the same insertion again. A reader has no such order: of its runs the least counts.
//!
//! The writer is the thread that `malloc` has the pages for.

use std::array;
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::Key;
use super::contestant::{Contestant, Shared, View};
use super::figures::Figures;
use super::histogram::Histogram;
use crate::board::{Board, Column};
use crate::contestant::BURST;
use crate::entrant::in_turn;
use crate::keys::random_keys;
use crate::memory;
use crate::pauses::{keep_least, longest};
use bench_common::machine;

const RUNS: usize = 3;

/// Memory to have at hand, as a multiple of the entries' bytes: see [`memory::keep`].
const SPARE: usize = 4;

/// Percentiles of a run.
const PARTS: [f64; 4] = [0.5, 0.99, 0.999, 0.9999];

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

/// Where the figures that there are once for all runs begin.
const WORST: usize = PARTS.len();

/// Everybody inserts `n` keys beside a reader, [`RUNS`] times: a board for the writer, and one for the
/// reader.
pub(crate) fn growth(contestants: &mut [Contestant], n: usize) -> [Board; 2] {
    let keys = random_keys::<Key>(n, 1);
    let boards = [("insertions", INSERTS), ("look-ups beside them", READS)];
    let [mut inserts, mut reads] = boards.map(|(what, benches)| {
        let title = format!("An empty map grows to {n} entries: ns of one, {what}");
        let columns = benches.map(|bench| Column { bench, unit: "ns", n });
        Figures::new(title, columns.to_vec(), contestants)
    });
    // Touched here, as zeros would not have pages yet.
    let mut times = vec![1; n];
    let mut shortest = vec![vec![u32::MAX; n]; contestants.len()];
    let mut worst = vec![Worst::default(); contestants.len()];
    memory::keep(SPARE * n * size_of::<(Key, u64)>());
    for round in 0..RUNS {
        for at in in_turn(round, contestants.len()) {
            let faults = machine::page_faults();
            let start = Instant::now();
            let Looked { times: read, overlooked } = contestants[at].grow(&keys, &mut times);
            let remark = remark(n, &read, start.elapsed(), faults);
            reads.overlooked(at, overlooked);
            contestants[at].clear();
            reads.remark(at, remark);
            let mut inserted = Histogram::new();
            inserted.extend(times.iter().copied());
            percentiles(&mut inserts, at, &inserted);
            percentiles(&mut reads, at, &read);
            keep_least(&mut shortest[at], &times);
            worst[at].note(&inserted, &read);
        }
    }
    memory::give_back();
    for (at, (shortest, worst)) in shortest.iter().zip(worst).enumerate() {
        inserts.note(at, WORST, longest(shortest));
        inserts.note(at, WORST + 1, f64::from(worst.insert));
        reads.note(at, WORST, f64::from(worst.read_least));
        reads.note(at, WORST + 1, f64::from(worst.read));
    }
    [inserts.board(), reads.board()]
}

/// The longest times of all runs.
#[derive(Clone)]
struct Worst {
    insert: u32,
    read: u32,
    /// The longest of the run where it is least.
    read_least: u32,
}

impl Default for Worst {
    fn default() -> Self {
        Self { insert: 0, read: 0, read_least: u32::MAX }
    }
}

impl Worst {
    fn note(&mut self, inserts: &Histogram, reads: &Histogram) {
        self.insert = self.insert.max(inserts.longest());
        self.read = self.read.max(reads.longest());
        self.read_least = self.read_least.min(reads.longest());
    }
}

fn percentiles(figures: &mut Figures, row: usize, times: &Histogram) {
    for (column, part) in PARTS.into_iter().enumerate() {
        figures.note(row, column, times.percentile(part) as f64);
    }
}

/// What a run was, and the pages that were touched first in it, as far as the system tells.
fn remark(n: usize, reads: &Histogram, time: Duration, faults_before: Option<u64>) -> String {
    let faults = machine::page_faults().zip(faults_before);
    let faults = faults.map_or(0, |(after, before)| after - before);
    let [inserts, reads] =
        [n as u64, reads.count()].map(|count| count as f64 / time.as_micros() as f64);
    format!("{inserts:.2} M/s insertions, {reads:.2} M/s look-ups, {faults} new pages")
}

/// What a reader beside a writer has seen.
pub(crate) struct Looked {
    times: Histogram,
    /// Keys that were there and not found.
    overlooked: usize,
}

/// One thread fills `map`, another one looks up random keys that are there.
pub(crate) fn beside_a_reader<M: Shared>(map: &M, keys: &[Key], inserts: &mut [u32]) -> Looked {
    let filled = AtomicUsize::new(0);
    thread::scope(|scope| {
        let reader = scope.spawn(|| read(&mut map.view(), keys, &filled));
        write(&mut map.view(), keys, &filled, inserts);
        reader.join().expect("a reader reads")
    })
}

/// Says how far it is once in a burst, as the reader's eyes on the counter are not the map's work.
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

/// Picks its keys in bursts, before it looks at the clock: a key that is far away is not the map's.
#[inline(never)]
fn read<V: View>(view: &mut V, keys: &[Key], filled: &AtomicUsize) -> Looked {
    let mut rng = SmallRng::seed_from_u64(5);
    let (mut times, mut overlooked) = (Histogram::new(), 0);
    loop {
        // Acquire: pairs with the Release of the writer.
        let present = filled.load(Ordering::Acquire);
        if present == keys.len() {
            return Looked { times, overlooked };
        }
        if present == 0 {
            spin_loop();
            continue;
        }
        let picked: [Key; BURST] = array::from_fn(|_| keys[rng.random_range(0..present)]);
        let mut last = Instant::now();
        view.repin();
        for key in &picked {
            overlooked += usize::from(black_box(view.get(key)).is_none());
            let time;
            (time, last) = since(last);
            times.note(time);
        }
    }
}

/// Nanoseconds since `last`, and when that is.
#[inline]
fn since(last: Instant) -> (u32, Instant) {
    let now = Instant::now();
    (now.duration_since(last).as_nanos().try_into().unwrap_or(u32::MAX), now)
}
