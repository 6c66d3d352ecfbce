//! Bytes per flow of a full table, as counted by the allocator.

use super::subject::Delivery;
use super::traffic::{Popularity, Senders};
use super::{KEY, Subjects, gap};
use crate::memory;
use crate::results::{Column, Results};

/// Hundredths of the greatest number of flows, at different distances from powers of two, so that
/// no growth policy is favoured.
const SIZES: [(usize, &str); 4] =
    [(10, "bytes, 1/10"), (23, "bytes, 23/100"), (46, "bytes, 46/100"), (100, "bytes, all")];

pub(crate) fn bytes(subjects: &mut Subjects, top: usize) -> Results {
    let title = format!("Bytes per flow of full tables, up to {top} flows");
    let sizes = SIZES.map(|(part, bench)| (top * part / 100, bench));
    let mut columns = sizes.map(|(n, bench)| Column { bench, unit: "bytes", n }).to_vec();
    columns.push(Column { bench: "peak bytes, all", unit: "bytes", n: top });
    let mut results = Results::new(title, KEY, columns);
    results.add_rows(subjects);
    for (row, subject) in subjects.iter_mut().enumerate() {
        for (column, (flows, _)) in sizes.into_iter().enumerate() {
            let packets = Senders::new(flows, Popularity::Uniform, gap(flows)).each();
            let before = memory::live();
            memory::reset_peak();
            subject.benchmark.open(flows);
            subject.benchmark.process(Delivery::Single, &packets);
            let each = |bytes: usize| (bytes - before) as f64 / flows as f64;
            results.record(row, column, each(memory::live()));
            if column == SIZES.len() - 1 {
                results.record(row, SIZES.len(), each(memory::peak()));
            }
            assert_eq!(subject.benchmark.len(), flows, "{}: flows", subject.name);
            subject.benchmark.close();
        }
    }
    results
}
