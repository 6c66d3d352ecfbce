//! Timed rounds: reads, and reads with updates, by 1, 2, 4, 8 … threads, as many as there are CPUs.
//!
//! A figure is the time of a run divided by the operations of all threads, so less is better as in
//! all results; remarks give the rates in millions of operations per second. The speed-up of
//! threads is to be compared with the speed-up of "no map": on a busy machine the other threads get
//! less CPU time.

use std::iter;

use super::Key;
use super::figures::Figures;
use super::subject::SharedMapSubject;
use super::threads::{Job, Reading, Run};
use super::traffic::Traffic;
use crate::keys::random_keys;
use crate::results::{Column, Results, median};
use crate::subject::rotation;

/// Maps with at most this number of entries fit the L2 cache, from which the turns of the other
/// subjects have evicted them. So threads read them once before they are timed.
const FITS_L2: usize = 200_000;

/// Reads per update, and the name of the mix.
const MIXES: [(usize, &str); 3] = [(usize::MAX, "100/0"), (99, "99/1"), (9, "90/10")];

/// A run is repeated if a thread waits for a CPU for a greater share of its time than this.
const MAX_WAITING: f64 = 0.02;
/// The greatest number of runs, as a busy machine may remain busy.
const ATTEMPTS: usize = 2;

const READINGS: [Reading; 2] = [Reading::Single, Reading::Burst];

/// Returns the numbers of threads: the powers of two up to the number of CPUs, but two at least.
fn thread_counts() -> Vec<usize> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from).max(2);
    iter::successors(Some(1), |count| Some(2 * count)).take_while(|&count| count <= cpus).collect()
}

/// Runs all rounds with maps of `n` entries. Returns the results of single and of batched reads.
pub(crate) fn rounds(subjects: &mut [SharedMapSubject], n: usize, quick: bool) -> [Results; 2] {
    let (rounds, reads) = match (n <= FITS_L2, quick) {
        (true, true) => (5, 1 << 16),
        (true, false) => (25, 1 << 18),
        (false, true) => (5, 1 << 17),
        (false, false) => (11, 1 << 19),
    };
    let counts = thread_counts();
    let most = *counts.last().expect("one thread at least");
    let keys = random_keys::<Key>(n, 1);
    let mut traffic = Traffic::new(&keys);
    let mut tables = [0, 1].map(|reading| figures(subjects, n, rounds, reading, &counts));
    subjects.iter_mut().for_each(|subject| subject.benchmark.fill(&keys, &mut |_| ()));
    for round in 0..rounds {
        for (mix, (every, _)) in MIXES.iter().enumerate() {
            let tasks: Vec<_> = (0..most).map(|_| traffic.task(reads, *every)).collect();
            for (reading, figures) in READINGS.into_iter().zip(&mut tables) {
                for (at, &threads) in counts.iter().enumerate() {
                    let warm_up = if n <= FITS_L2 { reads } else { 1 << 10 };
                    let job = Job { tasks: &tasks[..threads], reading, warm_up };
                    turns(subjects, figures, counts.len() * mix + at, round, &job);
                }
            }
        }
    }
    subjects.iter_mut().for_each(|subject| subject.benchmark.clear());
    tables.map(|mut figures| {
        remarks(&mut figures, counts.len());
        figures.results()
    })
}

fn figures(
    subjects: &[SharedMapSubject],
    n: usize,
    rounds: usize,
    reading: usize,
    counts: &[usize],
) -> Figures {
    let (what, prefix) = [("single lookups", ""), ("bursts of 32", "burst ")][reading];
    let title = format!(
        "{n} entries, keys of 16 bytes, values of 8, {what}: ns per operation of any thread; \
         medians of {rounds} rounds. Below: millions of operations per second of {} threads, and \
         the ratio of most to one",
        counts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    );
    let column = |mix: &str, threads: usize| {
        let plural = if threads == 1 { "" } else { "s" };
        let bench: &str = format!("{prefix}{mix}, {threads} thread{plural}").leak();
        Column { bench, unit: "ns", n }
    };
    let columns = MIXES.iter().flat_map(|(_, mix)| counts.iter().map(|&count| column(mix, count)));
    Figures::new(title, columns.collect(), subjects)
}

/// Runs a job of all subjects.
fn turns(
    subjects: &[SharedMapSubject],
    figures: &mut Figures,
    column: usize,
    round: usize,
    job: &Job<'_>,
) {
    let is_read_only = job.tasks.iter().all(|task| task.updates.is_empty());
    for at in rotation(round, subjects.len()) {
        let run = undisturbed(&subjects[at], job);
        figures.waiting(at, run.waiting);
        if figures.is_map(at) {
            assert!(run.is_correct || !is_read_only, "{}: a wrong result", subjects[at].name);
            figures.missed(at, usize::from(!run.is_correct));
        }
        figures.record(at, column, run.ns);
    }
}

/// Returns the run of several in which the threads waited least for a CPU: two threads that take
/// turns on one CPU never contend, which favours locks.
fn undisturbed(subject: &SharedMapSubject, job: &Job<'_>) -> Run {
    let mut best = subject.benchmark.run(job);
    for _ in 1..ATTEMPTS {
        if best.waiting < MAX_WAITING {
            break;
        }
        let run = subject.benchmark.run(job);
        let is_correct = best.is_correct && run.is_correct;
        best = if run.waiting < best.waiting { run } else { best };
        best.is_correct = is_correct;
    }
    best
}

/// Adds the rates, and the speed-up of most threads in the same round.
fn remarks(figures: &mut Figures, counts: usize) {
    for row in 0..figures.rows() {
        for mix in 0..MIXES.len() {
            let columns = counts * mix..counts * (mix + 1);
            let rate = |column| 1e3 / median(figures.cells(row, column)).unwrap_or(f64::NAN);
            let rates: Vec<_> = columns.clone().map(|at| format!("{:.1}", rate(at))).collect();
            let [one, most] =
                [columns.start, columns.end - 1].map(|column| figures.cells(row, column));
            let ratios: Vec<f64> = one.iter().zip(most).map(|(one, most)| one / most).collect();
            let ratio = median(&ratios).unwrap_or(f64::NAN);
            figures.remark(row, format!("{} M/s ({ratio:.2} x)", rates.join(", ")));
        }
    }
}
