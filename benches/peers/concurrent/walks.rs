//! The number of entries, and a walk over all of them, which keeps them: in small maps, where what
//! a map does for each of its parts counts.

use super::Key;
use super::figures::Figures;
use super::subject::{SharedMapSubject, Walk};
use crate::keys::random_keys;
use crate::results::{Column, Results};
use crate::subject::rotation;

const WALKS: [(&str, Walk); 2] = [("len", Walk::Len), ("retain", Walk::Retain)];

/// Measures maps of `n` entries.
pub(crate) fn walks(subjects: &mut [SharedMapSubject], n: usize, quick: bool) -> Results {
    let (rounds, times) = if quick { (5, 200) } else { (25, 1000) };
    let title = format!(
        "{n} entries, keys of 16 bytes, values of 8: ns of a call of len, and of a call of retain \
         that keeps all entries; medians of {rounds} rounds"
    );
    let columns = WALKS.map(|(bench, _)| Column { bench, unit: "ns", n });
    let mut figures = Figures::new(title, columns.to_vec(), subjects);
    let keys = random_keys::<Key>(n, 1);
    subjects.iter_mut().for_each(|subject| subject.benchmark.fill(&keys, &mut |_| ()));
    for round in 0..rounds {
        for (column, (_, walk)) in WALKS.into_iter().enumerate() {
            for at in rotation(round, subjects.len()) {
                if let Some(ns) = subjects[at].benchmark.walk(walk, times) {
                    figures.record(at, column, ns);
                }
            }
        }
    }
    subjects.iter_mut().for_each(|subject| subject.benchmark.clear());
    figures.results()
}
