//! Bindings that live for one lifetime: `EphemeralStore`, and hash tables with a queue in the order of expiry.
//!
//! ```text
//!     create      each packet brings a new tag, and with each the oldest binding expires
//!     mixed       every other packet brings a tag whose binding lives
//!     find        all do, and time stands still
//!     bursts      the same, 32 packets at a time
//! ```
//!
//! Tags and values have 8 bytes, tags are random. Time passes with each new tag, so that as many bindings
//! live all the time as there are at the beginning.

mod contestant;
mod packets;
mod tables;

use core::time::Duration;

use flowtable::ephemeral::Heads;
use flowtable::{DefaultHashBuilder, EphemeralStore};
use hashbrown::DefaultHashBuilder as Foldhash;

use crate::args::Plan;
use crate::board::{Board, Column, Outcome, Report};
use crate::entrant::{Agreed, in_turn, ours, peer};
use contestant::Contestant;
use packets::Packets;
use tables::{Linked, Queued, Store};

/// The bytes of a tag, for the boards.
const KEY: &str = "8";

/// Packets that come together in bursts.
pub(crate) const BURST: usize = 32;

/// What packets bring.
#[derive(Clone, Copy)]
pub(crate) enum Bench {
    Create,
    Mixed,
    Find,
}

/// What is timed, and whether it is in bursts.
const BENCHES: [(&str, Bench, bool); 6] = [
    ("create", Bench::Create, false),
    ("mixed", Bench::Mixed, false),
    ("find", Bench::Find, false),
    ("create in bursts", Bench::Create, true),
    ("mixed in bursts", Bench::Mixed, true),
    ("find in bursts", Bench::Find, true),
];

pub(crate) fn run(plan: &Plan, report: &mut Report) -> Outcome {
    println!("\nEphemeralStore");
    for &n in plan.sizes(&[1_000, 16_000, 65_536, 1_000_000], &[1_000, 65_536]) {
        report.show(&measured(n, plan.quick))?;
    }
    Ok(())
}

/// Everybody, ours first. There is room for those who live, and for a burst.
fn contestants(n: usize) -> Vec<Contestant> {
    let (ahash, foldhash) = (DefaultHashBuilder::new(), Foldhash::default());
    let life = n - BURST;
    let (room, lifetime) = (n, Duration::from_nanos(life as u64));
    let memory = "there is memory for the store";
    let double = EphemeralStore::new(room, lifetime).expect(memory);
    let half = EphemeralStore::with_parts(room, lifetime, Heads::Half, ahash.clone());
    let same = EphemeralStore::with_parts(room, lifetime, Heads::Double, foldhash.clone());
    vec![
        ours("ephemeral", "EphemeralStore", Store(double)),
        ours("ephemeral/half", "half as many heads", Store(half.expect(memory))),
        ours("ephemeral/foldhash", "EphemeralStore + foldhash", Store(same.expect(memory))),
        peer("hashbrown + foldhash", Queued::new(room, life, foldhash.clone())),
        peer("hashbrown + ahash", Queued::new(room, life, ahash)),
        peer("hashlink LinkedHashMap", Linked::new(room, life, foldhash)),
    ]
}

fn measured(n: usize, quick: bool) -> Board {
    let (rounds, count) = if quick { (3, 1 << 16) } else { (15, n.max(1 << 18)) };
    let mut packets = Packets::new(n);
    let mut contestants = contestants(n);
    let title = format!("{n} bindings alive: ns for a packet; medians of {rounds} rounds");
    let column = |&(bench, ..): &(&'static str, _, _)| Column { bench, unit: "ns", n };
    let mut board = Board::new(title, KEY, BENCHES.iter().map(column).collect());
    let first = packets.draw(Bench::Create, n);
    board.add_rows(&contestants);
    for contestant in &mut contestants {
        contestant.run(&first, false);
    }
    for (row, contestant) in contestants.iter().enumerate() {
        if let Some(bytes) = contestant.bytes() {
            board.remark(row, format!("{:.1} bytes for a binding", bytes as f64 / n as f64));
        }
    }
    for round in 0..rounds {
        for (column, &(_, bench, in_bursts)) in BENCHES.iter().enumerate() {
            let drawn = packets.draw(bench, count);
            let mut agreed = Agreed::default();
            for at in in_turn(round, contestants.len()) {
                let timed = contestants[at].run(&drawn, in_bursts);
                board.note(at, column, timed.ns);
                agreed.on(timed.sum, contestants[at].name);
            }
        }
    }
    board
}
