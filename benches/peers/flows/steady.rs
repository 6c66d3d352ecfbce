//! Full tables in a steady state: rounds in which flows begin and fall silent, and most packets
//! hit; and rounds in which all packets hit.

use super::subject::Delivery;
use super::traffic::{Packets, Popularity, Senders};
use super::{Subjects, gap};
use crate::results::{Column, Results, median};
use crate::subject::{BURST, rotation};

/// The share of senders in the capacity of a table, in percent. The rest is for former senders
/// until they expire.
const SENDING: usize = 60;

/// Packets per slot before the rounds, until as many flows end as begin.
const WARM_UP: usize = 8;

/// Packets per slot in an idle timeout, and a sixth more: see [`gap`].
const IDLE_PACKETS: usize = 6;

/// Packets that are generated at once.
const CHUNK: usize = 1 << 16;

/// How the packets of each column are passed, and whether all of them are of known flows.
const COLUMNS: [(Delivery, bool); 4] = [
    (Delivery::Single, false),
    (Delivery::Burst, false),
    (Delivery::Single, true),
    (Delivery::Burst, true),
];

/// The totals of one subject over the rounds in which flows begin.
#[derive(Clone, Default)]
struct Tally {
    ns: [Vec<f64>; COLUMNS.len()],
    packets: u64,
    new_flows: u64,
}

/// Runs rounds of packets one by one, and in batches.
pub(crate) fn steady(
    subjects: &mut Subjects,
    (popularity, key): (Popularity, &'static str),
    capacity: usize,
    quick: bool,
) -> Results {
    let (rounds, round) = if quick { (3, 1 << 16) } else { (15, 1 << 18) };
    let title = format!(
        "{capacity} flows with names of {key} bytes, packets of known ones {}: ns for a packet; \
         bursts of {BURST}; medians of {rounds} rounds",
        popularity.name()
    );
    let names: &[_] = match popularity {
        Popularity::Uniform => &["uniform", "uniform, burst", "hits", "hits, burst"],
        Popularity::Zipf => &["zipf", "zipf, burst"],
    };
    let columns = names.iter().map(|&bench| Column { bench, unit: "ns", n: capacity });
    let mut results = Results::new(title, key, columns.collect());
    let mut senders = Senders::new(capacity * SENDING / 100, popularity, gap(capacity));
    warm_up(subjects, &mut senders, capacity);

    let mut tallies = vec![Tally::default(); subjects.len()];
    results.add_rows(subjects);
    let columns: Vec<_> = (0..names.len()).collect();
    for columns in columns.chunks(2) {
        if COLUMNS[columns[0]].1 {
            end_former_senders(subjects, &mut senders, capacity);
        }
        for (number, &column) in (0..rounds).flat_map(|n| columns.iter().map(move |c| (n, c))) {
            let (delivery, is_known) = COLUMNS[column];
            let packets = if is_known { senders.known(round) } else { senders.mixed(round) };
            for row in rotation(number, subjects.len()) {
                let processed = subjects[row].benchmark.process(delivery, &packets);
                results.record(row, column, processed.ns);
                let tally = &mut tallies[row];
                tally.ns[column].push(processed.ns);
                if !is_known {
                    tally.packets += packets.len() as u64;
                    tally.new_flows += processed.new_flows;
                }
            }
        }
    }
    let now = senders.now().as_nanos() / gap(capacity);
    for (row, (subject, tally)) in subjects.iter_mut().zip(tallies).enumerate() {
        results.remark(row, tally.remark());
        results.remark(row, format!("{} flows", subject.benchmark.len()));
        assert_eq!(subject.benchmark.close().packets, now, "{}: packets", subject.name);
    }
    results
}

/// Processes packets of known flows until all others have expired: a packet of a round of hits is a
/// hit, and nothing else.
fn end_former_senders(subjects: &mut Subjects, senders: &mut Senders, capacity: usize) {
    for _ in 0..(IDLE_PACKETS * capacity).div_ceil(CHUNK) {
        process(subjects, &senders.known(CHUNK));
    }
}

fn process(subjects: &mut Subjects, packets: &Packets) {
    for subject in subjects {
        subject.benchmark.process(Delivery::Single, packets);
    }
}

/// Fills all tables, and continues until their state is steady.
fn warm_up(subjects: &mut Subjects, senders: &mut Senders, capacity: usize) {
    subjects.iter_mut().for_each(|subject| subject.benchmark.open(capacity));
    process(subjects, &senders.each());
    for _ in 0..(WARM_UP * capacity).div_ceil(CHUNK) {
        process(subjects, &senders.mixed(CHUNK));
    }
}

impl Tally {
    fn remark(&self) -> String {
        let [single, burst] =
            [0, 1].map(|column| 1000.0 / median(&self.ns[column]).unwrap_or(f64::INFINITY));
        let hits = 100.0 - 100.0 * self.new_flows as f64 / self.packets as f64;
        format!("{single:.2} Mpps, in bursts {burst:.2}, {hits:.1} % hits")
    }
}
