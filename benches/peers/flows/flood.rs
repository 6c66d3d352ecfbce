//! A flood: ten new connections without replies per slot of a table.
//!
//! ```text
//!     handshake   each connection: SYN, SYN ACK, ACK; as many as half of the capacity
//!     calm        packets of these, as many as in the flood
//!     flood       one packet in ten of these, nine begin new ones
//!     audit       a packet of each connection: is it still in the table?
//! ```

use super::subject::Delivery;
use super::traffic::{Popularity, Senders};
use super::{KEY, Subjects};
use crate::results::{Column, Results};
use crate::subject::rotation;

/// Nanoseconds between packets: a million in a second.
const GAP: u64 = 1000;

/// New connections per slot.
const NEW: usize = 10;

/// Columns and units.
const COLUMNS: [(&str, &str); 4] =
    [("calm", "ns"), ("flood", "ns"), ("flood / calm", "ratio"), ("established lost", "flows")];

pub(crate) fn flood(subjects: &mut Subjects, capacity: usize, quick: bool) -> Results {
    let rounds = if quick { 1 } else { 5 };
    let connections = capacity / 2;
    let packets = capacity * NEW * 10 / 9;
    let title = format!(
        "{connections} established connections, {capacity} slots, {packets} packets for ten new \
         connections a slot: ns for a packet; medians of {rounds} rounds"
    );
    let columns = COLUMNS.map(|(bench, unit)| Column { bench, unit, n: capacity });
    let mut results = Results::new(title, KEY, columns.to_vec());
    results.add_rows(subjects);

    let mut senders = Senders::new(connections, Popularity::Uniform, GAP);
    let handshakes = [senders.each(), senders.each(), senders.each()];
    let calm = senders.known(packets);
    let (flood, known) = senders.flooded(packets);
    let audit = senders.each();
    let sent = senders.now().as_nanos() / GAP;
    for round in 0..rounds {
        for row in rotation(round, subjects.len()) {
            let subject = &mut subjects[row];
            subject.benchmark.open(capacity);
            handshakes
                .iter()
                .for_each(|packets| _ = subject.benchmark.process(Delivery::Single, packets));
            let calm = subject.benchmark.process(Delivery::Single, &calm);
            assert_eq!(calm.new_flows, 0, "{}: capacity for all", subject.name);
            let flooded = subject.benchmark.process(Delivery::Single, &flood);
            let audited = subject.benchmark.process(Delivery::Single, &audit);
            // New flows are those of the flood, and evicted ones that were seen again.
            let lost = flooded.new_flows + audited.new_flows - (packets - known) as u64;
            let figures = [calm.ns, flooded.ns, flooded.ns / calm.ns, lost as f64];
            figures
                .iter()
                .enumerate()
                .for_each(|(column, &figure)| results.record(row, column, figure));
            assert_eq!(subject.benchmark.close().packets, sent, "{}: packets", subject.name);
        }
    }
    results
}
