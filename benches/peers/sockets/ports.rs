//! Ports for who does not ask for one, when some of those to the same destination are taken.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Instant;

use flowtable::FlowKey;
use flowtable::demux::SocketTable;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::TCP;
use crate::board::{Board, Column};
use crate::keys::Key;

/// As Linux has it.
const PORTS: RangeInclusive<u16> = 32_768..=60_999;

/// Connections that are opened and closed again in each round.
const CALLS: usize = 20;

/// The rows: of a hundred ports so many are taken.
const TAKEN: [(&str, usize); 5] = [
    ("none taken", 0),
    ("50 % taken", 50),
    ("90 % taken", 90),
    ("99 % taken", 99),
    ("all taken", 100),
];

/// Which ports are taken.
const COLUMNS: [&str; 2] = ["any ports", "ports in a row"];

/// The row that has none taken is the one of ours, so the others say how many times as long they take.
pub(crate) fn measured(is_quick: bool) -> Board {
    let rounds = if is_quick { 5 } else { 51 };
    let columns = COLUMNS.map(|bench| Column { bench, unit: "ns", n: PORTS.len() });
    let title = format!(
        "connect_ephemeral with {} ports, so many to this destination taken: ns, medians of {rounds} rounds",
        PORTS.len(),
    );
    let mut board = Board::new(title, FlowKey::NAME, columns.to_vec());
    for (row, (name, percent)) in TAKEN.into_iter().enumerate() {
        board.add_row(name, (percent == 0).then_some("sockets"));
        for (column, which) in COLUMNS.into_iter().enumerate() {
            let mut longest = 0;
            let mut table = table(percent, column == 1);
            for _ in 0..rounds {
                let (ns, most) = opened(&mut table);
                board.note(row, column, ns);
                longest = most.max(longest);
            }
            board.remark(row, format!("longest, {which}: {} us", longest / 1000));
        }
    }
    board
}

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

fn there() -> SocketAddr {
    SocketAddr::new(Ipv4Addr::new(198, 51, 100, 1).into(), 443)
}

/// With so many of a hundred ports taken: any, or the first ones.
fn table(percent: usize, in_a_row: bool) -> SocketTable<u64> {
    let mut ports: Vec<u16> = PORTS.collect();
    if !in_a_row {
        ports.shuffle(&mut StdRng::seed_from_u64(6));
    }
    ports.truncate(ports.len() * percent / 100);
    let mut table = SocketTable::new(usize::MAX);
    for port in ports {
        let connected = table.connect(SocketAddr::new(HERE, port), there(), TCP, 0);
        connected.expect("there is room, and the connection is new");
    }
    table
}

/// Opens connections, then closes them: nanoseconds for each opened one, and the most.
fn opened(table: &mut SocketTable<u64>) -> (f64, u128) {
    let (mut sum, mut longest, mut names) = (0, 0, Vec::new());
    for _ in 0..CALLS {
        let start = Instant::now();
        let connected = table.connect_ephemeral(HERE, there(), TCP, PORTS, 0);
        let ns = start.elapsed().as_nanos();
        names.extend(connected);
        sum += ns;
        longest = longest.max(ns);
    }
    for name in names {
        table.remove(&name).expect("it was opened");
    }
    (sum as f64 / CALLS as f64, longest)
}
