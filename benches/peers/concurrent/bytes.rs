//! Bytes for each entry while one thread fills a map, as the allocator counts them. What the map has
//! replaced and not yet given back is part of them. What malloc adds to each block is not, which flatters
//! those who have a block for each entry: 24 bytes take 32 of glibc's.

use super::Key;
use super::contestant::Contestant;
use super::figures::Figures;
use crate::board::{Board, Column};
use crate::keys::random_keys;
use crate::memory;

/// Entries from which on bytes are looked at.
const FROM: usize = 100_000;

/// Everybody grows to `top` entries.
pub(crate) fn bytes(contestants: &mut [Contestant], top: usize) -> Board {
    let keys = random_keys::<Key>(top, 1);
    let title = format!(
        "Bytes for each entry, keys of 16 bytes, values of 8, at every number of entries from {FROM} to {top}"
    );
    let benches = ["bytes, lowest", "bytes, mean", "bytes, highest", "bytes at the end"];
    let columns = benches.map(|bench| Column { bench, unit: "bytes", n: top });
    let mut figures = Figures::new(title, columns.to_vec(), contestants);
    for (row, contestant) in contestants.iter_mut().enumerate() {
        contestant.clear();
        let before = memory::live();
        let [mut lowest, mut sum, mut highest, mut last] = [f64::INFINITY, 0.0, 0.0, 0.0];
        contestant.fill(&keys, &mut |entries| {
            if entries < FROM {
                return;
            }
            // Blocks that threads counted at the same time have moved the counter, which may wrap.
            last = memory::live().wrapping_sub(before) as f64 / entries as f64;
            lowest = last.min(lowest);
            highest = last.max(highest);
            sum += last;
        });
        let mean = sum / (top - FROM + 1) as f64;
        for (column, figure) in [lowest, mean, highest, last].into_iter().enumerate() {
            figures.note(row, column, figure);
        }
        contestant.clear();
    }
    figures.board()
}
