//! All packets stop: the cost of expiring a flow, and how late it expires.
//!
//! ```text
//!     silent   packets 0 .. 10 s        none …                              expires 60 .. 70 s
//!     seen     packets 0 .. 10 s        again 30 .. 40 s       none …       expires 90 .. 100 s
//! ```
//!
//! A table checks flows at the same rate as while packets arrived: it may check twice as many flows
//! as expire.

use std::time::Duration;

use super::subject::{Delivery, MeterSubject};
use super::traffic::{Popularity, Senders};
use super::{IDLE, KEY, Subjects};
use crate::results::{Column, Results};
use crate::subject::{BURST, rotation};

/// The time in which each flow sends one packet.
const SPAN: Duration = Duration::from_secs(10);

/// From the first packet of a flow to the second.
const AGAIN: Duration = Duration::from_secs(30);

/// Columns and units.
const COLUMNS: [(&str, &str); 4] =
    [("silent, ns", "ns"), ("seen again, ns", "ns"), ("late, ms", "ms"), ("late again, ms", "ms")];

pub(crate) fn expiry(subjects: &mut Subjects, flows: usize, quick: bool) -> Results {
    let rounds = if quick { 1 } else { 3 };
    let title = format!("{flows} flows expire: ns for each, and the greatest delay in ms");
    let columns = COLUMNS.map(|(bench, unit)| Column { bench, unit, n: flows });
    let mut results = Results::new(title, KEY, columns.to_vec());
    results.add_rows(subjects);
    for round in 0..rounds {
        for row in rotation(round, subjects.len()) {
            let subject = &mut subjects[row];
            for (column, is_seen_again) in [false, true].into_iter().enumerate() {
                subject.benchmark.open(flows);
                if let Some((ns, late)) = end_all(subject, flows, is_seen_again) {
                    results.record(row, column, ns);
                    results.record(row, column + 2, late);
                }
                subject.benchmark.close();
            }
        }
    }
    results
}

/// Returns the nanoseconds per expired flow and the greatest delay in milliseconds; `None` for a
/// table without idle timeout.
fn end_all(subject: &mut MeterSubject, flows: usize, again: bool) -> Option<(f64, f64)> {
    let gap = (SPAN.as_nanos() / flows as u128) as u64;
    let step = Duration::from_nanos(gap * BURST as u64);
    let mut senders = Senders::new(flows, Popularity::Uniform, gap);
    subject.benchmark.process(Delivery::Single, &senders.each());
    if again {
        let pause = AGAIN - SPAN;
        subject.benchmark.pause(senders.now(), senders.now() + pause, step);
        senders.pause(pause.as_nanos() as u64);
        subject.benchmark.process(Delivery::Single, &senders.each());
    }
    assert_eq!(subject.benchmark.len(), flows, "{}: no flow is idle yet", subject.name);
    let now = senders.now();
    let time = subject.benchmark.pause(now, now + 2 * IDLE, step);
    let ended = subject.benchmark.ended();
    if ended.flows == 0 {
        return None;
    }
    assert_eq!(ended.flows, flows as u64, "{}: all are idle", subject.name);
    Some((time.as_nanos() as f64 / flows as f64, ended.max_delay as f64 / 1e6))
}
