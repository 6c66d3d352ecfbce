//! Table 1: the costs of functions, and the rates that follow.

use crate::finding::Finding;
use crate::report::{Outcome, Report, Table, two};

/// Microseconds per packet: input and classification, the fast path, output.
pub(crate) const INPUT: f64 = 1.6;
pub(crate) const FORWARDING: f64 = 0.3;
pub(crate) const OUTPUT: f64 = 1.4;

/// Table 1: the costs of functions, and the rates that follow.
pub(crate) fn costs(report: &mut Report) -> Outcome {
    let mut table = Table::new(&["function", "paper, us", "with input and output, Kpps at most"]);
    for (name, cost) in [
        ("IP, fast path", FORWARDING),
        ("IP, general", 3.0),
        ("transparent proxy", 10.7),
        ("classical proxy", 12.8),
        ("active protocol", 37.3),
    ] {
        table.row(&[&name, &cost, &two(1000.0 / (INPUT + cost + OUTPUT))]);
    }
    let why =
        "It lists what functions cost on the testbed: what the other tables are calculated from.";
    report.record(Finding::not_measured("table 1", "costs of functions", why));
    report.table("table_1", "Table 1: costs of forwarding functions, and what follows", table)
}
