//! Bytes per entry while one thread fills a map, as counted by the allocator.
//!
//! Retired memory that is not reclaimed yet is included. malloc's overhead per block is not, which
//! favours maps with a block per entry: glibc uses 32 bytes for 24.

use super::Key;
use super::figures::Figures;
use super::subject::SharedMapSubject;
use crate::keys::random_keys;
use crate::memory;
use crate::results::{Column, Results};

/// The least number of entries at which bytes are read.
const FROM: usize = 100_000;

/// Grows all maps to `top` entries.
pub(crate) fn bytes(subjects: &mut [SharedMapSubject], top: usize) -> Results {
    let keys = random_keys::<Key>(top, 1);
    let title = format!(
        "Bytes per entry, keys of 16 bytes, values of 8, at every number of entries from {FROM} to \
         {top}"
    );
    let benches = ["bytes, lowest", "bytes, mean", "bytes, highest", "bytes at the end"];
    let columns = benches.map(|bench| Column { bench, unit: "bytes", n: top });
    let mut figures = Figures::new(title, columns.to_vec(), subjects);
    for (row, subject) in subjects.iter_mut().enumerate() {
        subject.benchmark.clear();
        let before = memory::live();
        let [mut lowest, mut sum, mut highest, mut last] = [f64::INFINITY, 0.0, 0.0, 0.0];
        subject.benchmark.fill(&keys, &mut |entries| {
            if entries < FROM {
                return;
            }
            // Threads that counted at the same time have shifted the counter, so this may wrap.
            last = memory::live().wrapping_sub(before) as f64 / entries as f64;
            lowest = last.min(lowest);
            highest = last.max(highest);
            sum += last;
        });
        let mean = sum / (top - FROM + 1) as f64;
        for (column, figure) in [lowest, mean, highest, last].into_iter().enumerate() {
            figures.record(row, column, figure);
        }
        subject.benchmark.clear();
    }
    figures.results()
}
