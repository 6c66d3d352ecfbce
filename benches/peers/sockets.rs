//! `SocketTable` against what people build by hand: an array of a few sockets, a map of many.
//!
//! ```text
//!     few         1 to 32 connections: the array, and the maps that take over behind it
//!     many        100 000 connections; those behind `lookup_batch` come in bursts of 32
//!     bytes       for each connection
//!     listeners   packets for connections and for listeners, with few and with many connections
//!     ports       `connect_ephemeral`, when some of the ports to a destination are taken
//! ```
//!
//! All connections are to one port of one server, of IPv4, so only clients' addresses and ports differ.

mod listeners;
mod ports;
mod tables;

use std::net::Ipv4Addr;

use flowtable::{DefaultHashBuilder, FiveTuple, FlowKey, TrashMap};
use rand::Rng;
use rand::rngs::StdRng;

use crate::args::Plan;
use crate::board::{Board, Column, Outcome, Report};
use crate::contest::Contest;
use crate::contestant::{Bench, Contestant};
use crate::entrant::{ours, peer};
use crate::keys::{Key, random_keys};
use crate::memory;
use tables::{Array, Sockets, V4};

const BENCHES: &[Bench] =
    &[Bench::Fill, Bench::Hit, Bench::Miss, Bench::Chain, Bench::Churn, Bench::Burst];

/// A connection of IPv4 to one port of one server. 13 bytes of information in 40.
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
    let few = [1, 2, 4, 8, 12, 16, 17, 24, 32];
    for &n in plan.sizes(&few, &[4, 8, 16, 17]) {
        let mut contestants = contestants();
        contestants.push(peer("array", Array::default));
        let mut contest = Contest { benches: BENCHES, contestants, has_limit: false };
        report.show(&contest.run(n, plan.quick))?;
    }
    if plan.is_rounds_only() {
        return Ok(());
    }
    let many = if plan.quick { 20_000 } else { 100_000 };
    let mut contest = Contest { benches: BENCHES, contestants: contestants(), has_limit: false };
    report.show(&contest.run(many, plan.quick))?;
    report.show(&bytes(&mut contestants(), many))?;
    for connections in [0, 8, many] {
        report.show(&listeners::measured(connections, plan.quick))?;
    }
    report.show(&ports::measured(plan.quick))
}

/// Everybody who is good for any number of connections, ours first. All have the same seed.
fn contestants() -> Vec<Contestant<FlowKey>> {
    let hasher = DefaultHashBuilder::new();
    let [a, b, c, d] = std::array::from_fn(|_| hasher.clone());
    vec![
        ours("sockets", "SocketTable", move || Sockets::new(a.clone())),
        peer("TrashMap of FlowKey", move || TrashMap::<FlowKey, u64>::with_hasher(b.clone())),
        peer("TrashMap of IPv4", move || V4(TrashMap::with_hasher(c.clone()))),
        peer("hashbrown + ahash", move || hashbrown::HashMap::with_hasher(d.clone())),
    ]
}

/// Bytes for each connection, as the allocator counts them.
fn bytes(contestants: &mut [Contestant<FlowKey>], many: usize) -> Board {
    let sizes = [("8 connections", 8), ("20 connections", 20), ("many", many)];
    let columns = sizes.map(|(bench, n)| Column { bench, unit: "bytes", n });
    let title = format!("Bytes for each connection, sockets of 8; many are {many}");
    let mut board = Board::new(title, FlowKey::NAME, columns.to_vec());
    board.add_rows(contestants);
    for (row, contestant) in contestants.iter_mut().enumerate() {
        for (column, (_, n)) in sizes.into_iter().enumerate() {
            contestant.clear();
            let before = memory::live();
            contestant.grow(&random_keys(n, 1), &mut |_| ());
            board.note(row, column, (memory::live() - before) as f64 / n as f64);
        }
        contestant.clear();
    }
    board
}
