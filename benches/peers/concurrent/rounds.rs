//! Timed rounds: reads, and reads with updates, by one thread and by two.
//!
//! A figure is the time from one operation to the next, of whichever thread, so that less is better as
//! on all boards: 1 000 divided by it is millions a second, which the lines below a board say. How much
//! more two threads do than one is to be compared with what they do without a map: a machine that is busy
//! has less for the second one.

use super::Key;
use super::contestant::Contestant;
use super::figures::Figures;
use super::traffic::Traffic;
use super::work::{Done, Job, Reading};
use crate::board::{Board, Column, median};
use crate::entrant::in_turn;
use crate::keys::random_keys;

/// Maps of so many entries fit a cache. Threads read them once before they are timed, as the turns of
/// the others have thrown them out.
const FITS_A_CACHE: usize = 200_000;

/// Reads for an update, and what that is called with one thread and with two: single, and in bursts.
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

/// A run is repeated if a thread waits for a processor for more of its time than this.
const DISTURBED: f64 = 0.02;
/// Runs at most, as a machine that is busy stays so.
const TRIES: usize = 2;

const READINGS: [Reading; 2] = [Reading::Single, Reading::Burst];

/// All rounds with maps of `n` entries: a board for single look-ups, and one for bursts.
pub(crate) fn rounds(contestants: &mut [Contestant], n: usize, quick: bool) -> [Board; 2] {
    let (rounds, reads) = match (n <= FITS_A_CACHE, quick) {
        (true, true) => (5, 1 << 16),
        (true, false) => (25, 1 << 18),
        (false, true) => (5, 1 << 17),
        (false, false) => (11, 1 << 19),
    };
    let keys = random_keys::<Key>(n, 1);
    let mut traffic = Traffic::new(&keys);
    let mut boards = [0, 1].map(|reading| figures(contestants, n, rounds, reading));
    contestants.iter_mut().for_each(|one| one.fill(&keys, &mut |_| ()));
    for round in 0..rounds {
        for (mix, (every, _)) in MIXES.iter().enumerate() {
            let tasks = [(); 2].map(|()| traffic.task(reads, *every));
            for (reading, figures) in READINGS.into_iter().zip(&mut boards) {
                for threads in 1..=2 {
                    let warm_up = if n <= FITS_A_CACHE { reads } else { 1 << 10 };
                    let job = Job { tasks: &tasks[..threads], reading, warm_up };
                    turns(contestants, figures, 2 * mix + threads - 1, round, &job);
                }
            }
        }
    }
    contestants.iter_mut().for_each(|contestant| contestant.clear());
    boards.map(|mut figures| {
        remarks(&mut figures);
        figures.board()
    })
}

fn figures(contestants: &[Contestant], n: usize, rounds: usize, reading: usize) -> Figures {
    let what = ["single look-ups", "bursts of 32"][reading];
    let title = format!(
        "{n} entries, keys of 16 bytes, values of 8, {what}: ns from one operation of whichever thread \
         to the next; medians of {rounds} rounds. Below: millions a second of one thread and of two, \
         and the ratio"
    );
    let benches = MIXES.iter().flat_map(|(_, names)| names[reading]);
    let columns = benches.map(|bench| Column { bench, unit: "ns", n }).collect();
    Figures::new(title, columns, contestants)
}

/// Everybody does the same, another one first in each round.
fn turns(
    contestants: &[Contestant],
    figures: &mut Figures,
    column: usize,
    round: usize,
    job: &Job<'_>,
) {
    let is_read_only = job.tasks.iter().all(|task| task.updates.is_empty());
    for at in in_turn(round, contestants.len()) {
        let done = undisturbed(&contestants[at], job);
        figures.waited(at, done.waited);
        if figures.is_map(at) {
            assert!(done.is_right || !is_read_only, "{} is wrong", contestants[at].name);
            figures.overlooked(at, usize::from(!done.is_right));
        }
        figures.note(at, column, done.ns);
    }
}

/// The run of a few in which the threads waited least for a processor: two threads that take turns on one
/// are never in each other's way, and locks look good.
fn undisturbed(contestant: &Contestant, job: &Job<'_>) -> Done {
    let mut best = contestant.work(job);
    for _ in 1..TRIES {
        if best.waited < DISTURBED {
            break;
        }
        let done = contestant.work(job);
        let is_right = best.is_right && done.is_right;
        best = if done.waited < best.waited { done } else { best };
        best.is_right = is_right;
    }
    best
}

/// Millions a second, and how many times one thread's rate two threads have, in the same round.
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
