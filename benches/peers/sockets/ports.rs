//! The search for an ephemeral port when some of the ports to the destination are taken.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Instant;

use flowtable::FlowKey;
use flowtable::sockets::SocketTable;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::TCP;
use crate::keys::Key;
use crate::results::{Column, Results};

/// The default of Linux.
const PORTS: RangeInclusive<u16> = 32_768..=60_999;

/// Connections that are opened and closed in each round.
const CALLS: usize = 20;

/// The rows, and the percentage of taken ports.
const TAKEN: [(&str, usize); 5] = [
    ("none taken", 0),
    ("50 % taken", 50),
    ("90 % taken", 90),
    ("99 % taken", 99),
    ("all taken", 100),
];

/// Which ports are taken.
const COLUMNS: [&str; 2] = ["any ports", "ports in a row"];

/// Measures `connect_ephemeral`. The row without taken ports is "ours", so ratios are relative to
/// it.
pub(crate) fn measured(is_quick: bool) -> Results {
    let rounds = if is_quick { 5 } else { 51 };
    let columns = COLUMNS.map(|bench| Column { bench, unit: "ns", n: PORTS.len() });
    let title = format!(
        "connect_ephemeral with {} ports, some of them taken: ns, medians of {rounds} rounds",
        PORTS.len(),
    );
    let mut results = Results::new(title, FlowKey::NAME, columns.to_vec());
    for (row, (name, percent)) in TAKEN.into_iter().enumerate() {
        results.add_row(name, (percent == 0).then_some("sockets"));
        for (column, which) in COLUMNS.into_iter().enumerate() {
            let mut longest = 0;
            let mut table = table(percent, column == 1);
            for _ in 0..rounds {
                let (ns, max) = opened(&mut table);
                results.record(row, column, ns);
                longest = max.max(longest);
            }
            results.remark(row, format!("longest, {which}: {} us", longest / 1000));
        }
    }
    results
}

const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

fn remote() -> SocketAddr {
    SocketAddr::new(Ipv4Addr::new(198, 51, 100, 1).into(), 443)
}

/// Returns a table in which this percentage of the ports is taken: random ones, or the first ones.
fn table(percent: usize, in_a_row: bool) -> SocketTable<u64> {
    let mut ports: Vec<u16> = PORTS.collect();
    if !in_a_row {
        ports.shuffle(&mut StdRng::seed_from_u64(6));
    }
    ports.truncate(ports.len() * percent / 100);
    let mut table = SocketTable::new(usize::MAX);
    for port in ports {
        let connected = table.connect(SocketAddr::new(LOCAL, port), remote(), TCP, 0);
        connected.expect("a new connection below the limit");
    }
    table
}

/// Opens connections, then closes them. Returns the mean and the maximum of nanoseconds per
/// connection.
fn opened(table: &mut SocketTable<u64>) -> (f64, u128) {
    let (mut sum, mut longest, mut keys) = (0, 0, Vec::new());
    for _ in 0..CALLS {
        let start = Instant::now();
        let connected = table.connect_ephemeral(LOCAL, remote(), TCP, PORTS, 0);
        let ns = start.elapsed().as_nanos();
        keys.extend(connected);
        sum += ns;
        longest = longest.max(ns);
    }
    for key in keys {
        table.remove(&key).expect("it was opened");
    }
    (sum as f64 / CALLS as f64, longest)
}
