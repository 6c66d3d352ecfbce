//! `SocketTable` against arrays and maps.
//!
//! ```text
//!     small       1 to 32 connections: the inline table, and the map that replaces it
//!     large       100 000 connections; `lookup_batch` with batches of 32
//!     bytes       per connection
//!     listeners   packets for connections and for listeners, with few and with many connections
//!     ports       `connect_ephemeral` when some of the ports to a destination are taken
//! ```
//!
//! *scan* asks each socket for each packet, as smoltcp does: sockets have about 500 bytes, whose
//! state is beside their names. The other arrays have the names only.
//!
//! All connections are to one IPv4 address and port, so only the clients' addresses and ports
//! differ.

mod listeners;
mod ports;
mod tables;

use std::net::Ipv4Addr;

use flowtable::{DefaultHashBuilder, FiveTuple, FlowKey, TrashMap};
use rand::Rng;
use rand::rngs::StdRng;

use crate::args::Plan;
use crate::keys::{Key, random_keys};
use crate::maps::rounds::Rounds;
use crate::maps::subject::{MapSubject, Operation, map};
use crate::memory;
use crate::results::{Column, Outcome, Report, Results};
use crate::subject::{ours, peer};
use tables::{Array, Scan, Sockets, V4};

const OPERATIONS: &[Operation] = &[
    Operation::Fill,
    Operation::Hit,
    Operation::Miss,
    Operation::Chain,
    Operation::Churn,
    Operation::Burst,
];

/// A connection to one IPv4 address and port: 13 bytes of information in 40.
impl Key for FlowKey {
    const NAME: &str = "40";

    fn random(rng: &mut StdRng) -> Self {
        Self::V4(FiveTuple {
            src: rng.random::<u32>().into(),
            dst: Ipv4Addr::new(198, 51, 100, 1),
            sport: rng.random_range(32_768..61_000),
            dport: 443,
            protocol: TCP,
        })
    }
}

const TCP: u8 = 6;

pub(crate) fn run(plan: &Plan, report: &mut Report) -> Outcome {
    println!("\nSocketTable");
    let small = [1, 2, 4, 8, 12, 16, 17, 24, 32];
    for &n in plan.sizes(&small, &[4, 8, 16, 17]) {
        let mut subjects = subjects();
        subjects.push(peer("array", map(Array::default)));
        subjects.push(peer(listeners::SCAN, map(Scan::default)));
        let mut rounds = Rounds { operations: OPERATIONS, subjects, has_limit: false };
        report.show(&rounds.run(n, plan.quick))?;
    }
    if plan.is_rounds_only() {
        return Ok(());
    }
    let large = if plan.quick { 20_000 } else { 100_000 };
    let mut rounds = Rounds { operations: OPERATIONS, subjects: subjects(), has_limit: false };
    report.show(&rounds.run(large, plan.quick))?;
    report.show(&bytes(&mut subjects(), large))?;
    for connections in [0, 8, large] {
        report.show(&listeners::measured(connections, plan.quick))?;
    }
    report.show(&ports::measured(plan.quick))
}

/// The subjects for any number of connections, ours first, with one seed.
fn subjects() -> Vec<MapSubject<FlowKey>> {
    let hasher = DefaultHashBuilder::new();
    let [a, b, c, d] = std::array::from_fn(|_| hasher.clone());
    vec![
        ours("sockets", "SocketTable", map(move || Sockets::new(a.clone()))),
        peer("TrashMap of FlowKey", map(move || TrashMap::<FlowKey, u64>::with_hasher(b.clone()))),
        peer("TrashMap of IPv4", map(move || V4(TrashMap::with_hasher(c.clone())))),
        peer("hashbrown + our hash", map(move || hashbrown::HashMap::with_hasher(d.clone()))),
    ]
}

/// Bytes per connection, as counted by the allocator.
fn bytes(subjects: &mut [MapSubject<FlowKey>], large: usize) -> Results {
    let sizes = [("8 connections", 8), ("20 connections", 20), ("many", large)];
    let columns = sizes.map(|(bench, n)| Column { bench, unit: "bytes", n });
    let title = format!("Bytes per connection, sockets of 8; many are {large}");
    let mut results = Results::new(title, FlowKey::NAME, columns.to_vec());
    results.add_rows(subjects);
    for (row, subject) in subjects.iter_mut().enumerate() {
        for (column, (_, n)) in sizes.into_iter().enumerate() {
            subject.benchmark.clear();
            let before = memory::live();
            subject.benchmark.grow(&random_keys(n, 1), &mut |_| ());
            results.record(row, column, (memory::live() - before) as f64 / n as f64);
        }
        subject.benchmark.clear();
    }
    results
}
