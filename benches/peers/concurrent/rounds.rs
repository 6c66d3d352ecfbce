//! Timed rounds: reads, and reads with updates, by one thread and by two.
//!
//! A figure is the time of a run divided by the operations of all threads, so less is better as in
//! all results; remarks give the rates in millions of operations per second. The speed-up of two
//! threads is to be compared with that of "no map": on a busy machine the second thread gets less
//! CPU time.

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

/// Reads per update, and the columns with one thread and with two, for single and batched reads.
const MIXES: [(usize, [[&str; 2]; 2]); 3] = [
    (
        usize::MAX,
        [
            ["100/0, 1 thread", "100/0, 2 threads"],
            ["burst 100/0, 1 thread", "burst 100/0, 2 threads"],
        ],
    ),
    (
        99,
        [["99/1, 1 thread", "99/1, 2 threads"], ["burst 99/1, 1 thread", "burst 99/1, 2 threads"]],
    ),
    (
        9,
        [
            ["90/10, 1 thread", "90/10, 2 threads"],
            ["burst 90/10, 1 thread", "burst 90/10, 2 threads"],
        ],
    ),
];

/// A run is repeated if a thread waits for a CPU for a greater share of its time than this.
const MAX_WAITING: f64 = 0.02;
/// The greatest number of runs, as a busy machine may remain busy.
const ATTEMPTS: usize = 2;

const READINGS: [Reading; 2] = [Reading::Single, Reading::Burst];

/// Runs all rounds with maps of `n` entries. Returns the results of single and of batched reads.
pub(crate) fn rounds(subjects: &mut [SharedMapSubject], n: usize, quick: bool) -> [Results; 2] {
    let (rounds, reads) = match (n <= FITS_L2, quick) {
        (true, true) => (5, 1 << 16),
        (true, false) => (25, 1 << 18),
        (false, true) => (5, 1 << 17),
        (false, false) => (11, 1 << 19),
    };
    let keys = random_keys::<Key>(n, 1);
    let mut traffic = Traffic::new(&keys);
    let mut tables = [0, 1].map(|reading| figures(subjects, n, rounds, reading));
    subjects.iter_mut().for_each(|subject| subject.benchmark.fill(&keys, &mut |_| ()));
    for round in 0..rounds {
        for (mix, (every, _)) in MIXES.iter().enumerate() {
            let tasks = [(); 2].map(|()| traffic.task(reads, *every));
            for (reading, figures) in READINGS.into_iter().zip(&mut tables) {
                for threads in 1..=2 {
                    let warm_up = if n <= FITS_L2 { reads } else { 1 << 10 };
                    let job = Job { tasks: &tasks[..threads], reading, warm_up };
                    turns(subjects, figures, 2 * mix + threads - 1, round, &job);
                }
            }
        }
    }
    subjects.iter_mut().for_each(|subject| subject.benchmark.clear());
    tables.map(|mut figures| {
        remarks(&mut figures);
        figures.results()
    })
}

fn figures(subjects: &[SharedMapSubject], n: usize, rounds: usize, reading: usize) -> Figures {
    let what = ["single lookups", "bursts of 32"][reading];
    let title = format!(
        "{n} entries, keys of 16 bytes, values of 8, {what}: ns per operation of any thread; \
         medians of {rounds} rounds. Below: millions of operations per second of one thread and of \
         two, and the ratio"
    );
    let benches = MIXES.iter().flat_map(|(_, names)| names[reading]);
    let columns = benches.map(|bench| Column { bench, unit: "ns", n }).collect();
    Figures::new(title, columns, subjects)
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

/// Adds the rates, and the speed-up of two threads in the same round.
fn remarks(figures: &mut Figures) {
    for row in 0..figures.rows() {
        for mix in 0..MIXES.len() {
            let [one, two] = [0, 1].map(|threads| figures.cells(row, 2 * mix + threads));
            let ratios: Vec<f64> = one.iter().zip(two).map(|(one, two)| one / two).collect();
            let medians = [median(one), median(two), median(&ratios)];
            let [one, two, ratio] = medians.map(|figure| figure.unwrap_or(f64::NAN));
            let (one, two) = (1e3 / one, 1e3 / two);
            figures.remark(row, format!("{one:.1} and {two:.1} M/s ({ratio:.2} x)"));
        }
    }
}
