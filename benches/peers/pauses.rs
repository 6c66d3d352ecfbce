//! How long one insertion may take: every one of many is timed.
//!
//! What is to be seen is the work of the map. Three things look like it and are not:
//!
//! - A *page* that is touched first. So malloc gets enough of them before, and keeps them; that there
//!   were none left to get is counted and printed. The first run goes without this.
//! - The *machine*, which does something else now and then. The same loop around work that is always
//!   the same shows how long that takes.
//! - Both are not there again at the same insertion the next time, but the map's own work is: same
//!   keys, same seed. So there are three runs; of each insertion the shortest time counts as
//!   *repeated*, and the longest of these is what the map really takes.

use std::hash::BuildHasher;

use flowtable::DefaultHashBuilder;

use crate::board::{Board, Column};
use crate::contestant::{Contestant, Map};
use crate::entrant::{in_turn, peer};
use crate::keys::{Key, random_keys};
use crate::memory;
use bench_common::machine;

const RUNS: usize = 3;

/// Memory to have at hand, as a multiple of the entries' bytes: more than a map that doubles asks for
/// in all its life. There is that much twice.
const SPARE: usize = 4;

/// Percentiles of a run.
const PERCENTILES: [(&str, f64); 3] =
    [("pause p50", 0.50), ("pause p99", 0.99), ("pause p99.99", 0.9999)];

/// And what there is once of all runs.
const WORST: [&str; 3] = ["pause worst, repeated", "pause worst, once", "pause worst, new memory"];

/// Everybody inserts `n` keys, [`RUNS`] times and once more.
pub(crate) fn pauses<K: Key>(mut contestants: Vec<Contestant<K>>, n: usize) -> Board {
    let hasher = DefaultHashBuilder::new();
    contestants.push(peer("no map", move || Nothing { hasher: hasher.clone(), last: 0 }));
    let keys = random_keys::<K>(n, 1);
    let title = format!("{n} insertions, keys of {} bytes, values of 8: ns of one", K::NAME);
    let benches = PERCENTILES.iter().map(|&(bench, _)| bench).chain(WORST);
    let columns = benches.map(|bench| Column { bench, unit: "ns", n }).collect();
    let mut board = Board::new(title, K::NAME, columns);
    // Touched here, as zeros would not have pages yet.
    let mut times = vec![1; n];
    let mut shortest = vec![vec![u32::MAX; n]; contestants.len()];
    let [repeated, once, new_memory] = [0, 1, 2].map(|worst| PERCENTILES.len() + worst);

    board.add_rows(&contestants);
    for (at, contestant) in contestants.iter_mut().enumerate() {
        memory::give_back();
        let faults = run(contestant, &keys, &mut times);
        board.note(at, new_memory, longest(&times));
        board.remark(at, format!("{faults} pages of new memory"));
    }
    memory::keep(SPARE * n * size_of::<(K, u64)>());
    let mut worst = vec![0.0_f64; contestants.len()];
    for round in 0..RUNS {
        for at in in_turn(round, contestants.len()) {
            let faults = run(&mut contestants[at], &keys, &mut times);
            board.remark(at, format!("{faults} in run {}", round + 1));
            keep_least(&mut shortest[at], &times);
            worst[at] = worst[at].max(longest(&times));
            for (column, (_, part)) in PERCENTILES.iter().enumerate() {
                let rank = ((n - 1) as f64 * part) as usize;
                board.note(at, column, f64::from(*times.select_nth_unstable(rank).1));
            }
        }
    }
    memory::give_back();
    for (at, (shortest, worst)) in shortest.iter().zip(worst).enumerate() {
        board.note(at, repeated, longest(shortest));
        board.note(at, once, worst);
    }
    board
}

/// One run, and the pages that it touched first, as far as the system tells.
fn run<K>(contestant: &mut Contestant<K>, keys: &[K], times: &mut [u32]) -> u64 {
    let faults = machine::page_faults_of(|| contestant.pace(keys, times));
    contestant.clear();
    faults
}

/// Of each time the least of all runs.
pub(crate) fn keep_least(least: &mut [u32], times: &[u32]) {
    least.iter_mut().zip(times).for_each(|(least, &time)| *least = time.min(*least));
}

pub(crate) fn longest(times: &[u32]) -> f64 {
    f64::from(times.iter().copied().max().unwrap_or(0))
}

/// Not a map: something to do that takes as long every time, about as long as an insertion.
struct Nothing {
    hasher: DefaultHashBuilder,
    last: u64,
}

impl<K> Map<K> for Nothing {
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
