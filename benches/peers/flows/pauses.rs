//! The longest packet: each of many packets is timed.
//!
//! Page faults and interruptions are excluded as for maps, see [`crate::maps::pauses`]: memory is
//! preallocated, there are three runs, and the shortest time of each packet counts. Checks for
//! expiry are timed apart in the same way. "no table" does constant work, which shows the
//! interruptions.

use std::ops::Range;

use bench_common::machine;
use flowtable::Timestamp;
use flowtable::flow_cache::Packet;

use super::meter::EndedFlows;
use super::subject::{Meter, MeterSubject, meter};
use super::traffic::{Packets, Popularity, Senders};
use super::{KEY, Name, Subjects, gap};
use crate::maps::pauses::{keep_least, longest};
use crate::memory;
use crate::results::{Column, Results};
use crate::subject::{BURST, peer, rotation};

const RUNS: usize = 3;

/// Bytes to preallocate per flow: more than any of the tables allocates while it grows.
const SPARE: usize = 512;

/// Percentiles of a part.
const PERCENTILES: [(&str, f64); 4] =
    [("p50", 0.50), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)];

/// Columns with one figure for all runs.
const WORST: [&str; 3] = ["worst, repeated", "worst, once", "worst look, repeated"];

/// The shortest times of one subject, over the runs.
struct Times {
    packets: Vec<u32>,
    checks: Vec<u32>,
}

/// Times packets while tables fill, and when they are full.
pub(crate) fn pauses(mut subjects: Subjects, capacity: usize, quick: bool) -> [Results; 2] {
    subjects.push(peer("no table", meter(|_| NoTable::default())));
    let full = if quick { 200_000 } else { 2_000_000 };
    let mut senders = Senders::new(capacity, Popularity::Uniform, gap(capacity));
    let parts = [senders.each(), senders.mixed(full)];
    let titles = ["while a table fills", "when it is full"].map(|part| {
        format!(
            "{capacity} flows: ns for one packet {part}, and for one check after {BURST} of them"
        )
    });
    let mut tables = titles.map(|title| {
        let benches = PERCENTILES.iter().map(|&(bench, _)| bench).chain(WORST);
        let columns = benches.map(|bench| Column { bench, unit: "ns", n: capacity });
        Results::new(title, KEY, columns.collect())
    });
    tables.iter_mut().for_each(|results| results.add_rows(&subjects));
    memory::preallocate(SPARE * capacity);
    let mut shortest: Vec<Times> = subjects.iter().map(|_| Times::longest(count(&parts))).collect();
    // Not zeros, whose pages would be touched for the first time during the measurement.
    let mut times = Times::longest(count(&parts));
    for run in 0..RUNS {
        for row in rotation(run, subjects.len()) {
            let faults = time_packets(&mut subjects[row], capacity, &parts, &mut times);
            tables[1].remark(row, format!("{faults} new pages"));
            record(&mut tables, row, &parts, &mut times, &mut shortest[row]);
        }
    }
    memory::release();
    for (row, shortest) in shortest.iter().enumerate() {
        for (results, (packets, checks)) in tables.iter_mut().zip(ranges(&parts)) {
            results.record(row, PERCENTILES.len(), longest(&shortest.packets[packets]));
            results.record(row, PERCENTILES.len() + 2, longest(&shortest.checks[checks]));
        }
    }
    tables
}

/// Times one run. Returns its page faults.
fn time_packets(
    subject: &mut MeterSubject,
    capacity: usize,
    parts: &[Packets; 2],
    times: &mut Times,
) -> u64 {
    subject.benchmark.open(capacity);
    let faults = machine::page_faults_of(|| {
        for (part, (packets, checks)) in parts.iter().zip(ranges(parts)) {
            subject.benchmark.time_packets(
                part,
                &mut times.packets[packets],
                &mut times.checks[checks],
            );
        }
    });
    subject.benchmark.close();
    faults
}

/// Records the figures of one run.
fn record(
    tables: &mut [Results; 2],
    row: usize,
    parts: &[Packets; 2],
    times: &mut Times,
    shortest: &mut Times,
) {
    keep_least(&mut shortest.packets, &times.packets);
    keep_least(&mut shortest.checks, &times.checks);
    for (results, (packets, _)) in tables.iter_mut().zip(ranges(parts)) {
        let times = &mut times.packets[packets];
        results.record(row, PERCENTILES.len() + 1, longest(times));
        for (column, (_, part)) in PERCENTILES.iter().enumerate() {
            let rank = ((times.len() - 1) as f64 * part) as usize;
            results.record(row, column, f64::from(*times.select_nth_unstable(rank).1));
        }
    }
}

fn count(parts: &[Packets; 2]) -> usize {
    parts.iter().map(Packets::len).sum()
}

/// The ranges of the packets and the checks of each part.
fn ranges(parts: &[Packets; 2]) -> [(Range<usize>, Range<usize>); 2] {
    let [fill, full] = [parts[0].len(), parts[1].len()];
    let checks = [fill / BURST, fill / BURST + full / BURST];
    [(0..fill, 0..checks[0]), (fill..fill + full, checks[0]..checks[1])]
}

impl Times {
    fn longest(packets: usize) -> Self {
        Self { packets: vec![u32::MAX; packets], checks: vec![u32::MAX; packets / BURST] }
    }
}

/// Constant work.
#[derive(Default)]
struct NoTable {
    last: u32,
}

impl Meter for NoTable {
    type Name = Name;

    fn on_packet(
        &mut self,
        name: &Name,
        _: Packet,
        length: u16,
        _: Timestamp,
        _: &mut EndedFlows,
    ) -> bool {
        let mix = |last: u32, step: u32| (last ^ step).wrapping_mul(0x9e37_79b1).rotate_left(15);
        self.last = (0..64).fold(self.last ^ name.src.to_bits() ^ u32::from(length), mix);
        self.last & 1 == 0
    }

    fn expire(&mut self, _: Timestamp, _: usize, _: &mut EndedFlows) {}

    fn len(&self) -> usize {
        0
    }

    fn drain(&mut self, _: &mut EndedFlows) {}
}
