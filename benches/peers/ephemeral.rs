//! Bindings with one lifetime: `EphemeralStore`, and hash tables with a queue in the order of
//! expiry.
//!
//! ```text
//!     create      each packet has a new tag, and with each the oldest binding expires
//!     mixed       every other packet has the tag of a live binding
//!     find        all packets have; no time passes
//!     bursts      each of these, in batches of 32 packets
//! ```
//!
//! Tags and values have 8 bytes, tags are random. Time advances with each new tag, so the number of
//! live bindings is constant.

pub(crate) mod packets;
mod subject;
mod tables;

use core::time::Duration;

use flowtable::{DefaultHashBuilder, EphemeralStore};
use hashbrown::DefaultHashBuilder as Foldhash;

use crate::args::Plan;
use crate::results::{Column, Outcome, Report, Results};
use crate::subject::{Agreement, BURST, ours, peer, rotation};
use packets::Packets;
use subject::{StoreSubject, store};
use tables::{Linked, Queued, Store};

/// The bytes of a tag, for the results.
const KEY: &str = "8";

/// The tags of packets: new ones, known ones, or both in turn.
#[derive(Clone, Copy)]
pub(crate) enum Mix {
    Create,
    Mixed,
    Find,
}

/// Columns, and whether packets arrive in batches.
const MIXES: [(&str, Mix, bool); 6] = [
    ("create", Mix::Create, false),
    ("mixed", Mix::Mixed, false),
    ("find", Mix::Find, false),
    ("create in bursts", Mix::Create, true),
    ("mixed in bursts", Mix::Mixed, true),
    ("find in bursts", Mix::Find, true),
];

pub(crate) fn run(plan: &Plan, report: &mut Report) -> Outcome {
    println!("\nEphemeralStore");
    for &n in plan.sizes(&[1_000, 16_000, 65_536, 1_000_000], &[1_000, 65_536]) {
        report.show(&measured(n, plan.quick))?;
    }
    Ok(())
}

/// All subjects, ours first, with capacity for the live bindings and a batch.
fn subjects(n: usize) -> Vec<StoreSubject> {
    let (our_hash, foldhash) = (DefaultHashBuilder::new(), Foldhash::default());
    let ticks = n - BURST;
    let (capacity, lifetime) = (n, Duration::from_nanos(ticks as u64));
    let memory = "memory for the store";
    let default_store = EphemeralStore::with_parts(capacity, lifetime, our_hash.clone());
    let foldhash_store = EphemeralStore::with_parts(capacity, lifetime, foldhash.clone());
    vec![
        ours("ephemeral", "EphemeralStore", store(Store(default_store.expect(memory)))),
        ours(
            "ephemeral/foldhash",
            "EphemeralStore + foldhash",
            store(Store(foldhash_store.expect(memory))),
        ),
        peer("hashbrown + foldhash", store(Queued::new(capacity, ticks, foldhash.clone()))),
        peer("hashbrown + our hash", store(Queued::new(capacity, ticks, our_hash))),
        peer("hashlink LinkedHashMap", store(Linked::new(capacity, ticks, foldhash))),
    ]
}

fn measured(n: usize, quick: bool) -> Results {
    let (rounds, count) = if quick { (3, 1 << 16) } else { (15, n.max(1 << 18)) };
    let mut packets = Packets::new(n, n - n / 10, 2002);
    let mut subjects = subjects(n);
    let title = format!("{n} bindings alive: ns for a packet; medians of {rounds} rounds");
    let column = |&(bench, ..): &(&'static str, _, _)| Column { bench, unit: "ns", n };
    let mut results = Results::new(title, KEY, MIXES.iter().map(column).collect());
    let first = packets.draw(Mix::Create, n);
    results.add_rows(&subjects);
    for subject in &mut subjects {
        subject.benchmark.run(&first, false);
    }
    for (row, subject) in subjects.iter().enumerate() {
        if let Some(bytes) = subject.benchmark.bytes() {
            results.remark(row, format!("{:.1} bytes for a binding", bytes as f64 / n as f64));
        }
    }
    for round in 0..rounds {
        for (column, &(_, mix, in_bursts)) in MIXES.iter().enumerate() {
            let drawn = packets.draw(mix, count);
            let mut agreement = Agreement::default();
            for at in rotation(round, subjects.len()) {
                let timed = subjects[at].benchmark.run(&drawn, in_bursts);
                results.record(at, column, timed.ns);
                agreement.check(timed.sum, subjects[at].name);
            }
        }
    }
    results
}
