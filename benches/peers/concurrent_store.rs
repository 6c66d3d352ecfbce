//! Bindings with one lifetime, shared by threads: `ConcurrentStore`, and maps that threads share.
//!
//! ```text
//!     create     each packet has a new tag, and with each the oldest binding of its thread expires
//!     mixed      every other packet has the tag of a live binding
//!     find       all packets have; no time passes
//! ```
//!
//! Tags and values have 8 bytes, tags are random. Each thread has tags and a clock of its own,
//! which advances with each tag that it creates. A run is a tenth of a lifetime, so the clocks of
//! two threads differ by less, and a tag that is looked up is live by each clock.
//!
//! The peers have no lifetimes. Here each thread has a queue of the tags that it has created, and
//! removes the expired ones; where threads find each other's tags, as all could, removal by a
//! thread that sleeps would be late, and one queue for all threads would be a lock more.

mod stores;
mod subject;

use core::time::Duration;

use dashmap::DashMap;
use flowtable::DefaultHashBuilder;
use flowtable::concurrent::ConcurrentStore;

use crate::args::Plan;
use crate::ephemeral::Mix;
use crate::ephemeral::packets::{Packet, Packets};
use crate::results::{Column, Outcome, Report, Results};
use crate::subject::{Agreement, ours, peer, rotation};
use subject::{SharedStoreSubject, shared};

/// The bytes of a tag, for the results.
const KEY: &str = "8";

/// Columns, for each number of threads.
const MIXES: [(Mix, [&str; 2]); 3] = [
    (Mix::Create, ["create, 1 thread", "create, 2 threads"]),
    (Mix::Mixed, ["mixed, 1 thread", "mixed, 2 threads"]),
    (Mix::Find, ["find, 1 thread", "find, 2 threads"]),
];

/// A run is this share of a lifetime.
const RUNS_PER_LIFETIME: usize = 10;

pub(crate) fn run(plan: &Plan, report: &mut Report) -> Outcome {
    println!("\nConcurrentStore");
    for &n in plan.sizes(&[128_000, 1_000_000], &[128_000]) {
        report.show(&measured(n, plan.quick))?;
    }
    Ok(())
}

/// All subjects for a number of threads, ours first.
fn subjects(n: usize, threads: usize) -> Vec<SharedStoreSubject> {
    let hasher = DefaultHashBuilder::new();
    let lifetime = n / threads;
    let period = Duration::from_nanos(lifetime as u64);
    // More than `n` where clocks differ.
    let capacity = n + n / RUNS_PER_LIFETIME;
    let store = ConcurrentStore::with_parts(capacity, period, hasher.clone());
    let dash: DashMap<u64, u64, _> = DashMap::with_capacity_and_hasher(n, hasher.clone());
    let scc: scc::HashMap<u64, u64, _> = scc::HashMap::with_capacity_and_hasher(n, hasher);
    vec![
        ours(
            "concurrent_store",
            "ConcurrentStore",
            shared(store.expect("memory for the store"), threads, lifetime),
        ),
        peer("dashmap, queues", shared(dash, threads, lifetime)),
        peer("scc HashMap, queues", shared(scc, threads, lifetime)),
    ]
}

fn measured(n: usize, quick: bool) -> Results {
    let rounds = if quick { 5 } else { 25 };
    let title = format!(
        "{n} bindings alive, shared: ns per packet of any thread; medians of {rounds} rounds"
    );
    let columns = MIXES.iter().flat_map(|(_, names)| names);
    let columns = columns.map(|bench| Column { bench, unit: "ns", n }).collect();
    let mut results = Results::new(title, KEY, columns);
    for threads in 1..=2 {
        let mut subjects = subjects(n, threads);
        if threads == 1 {
            results.add_rows(&subjects);
        }
        measure(&mut subjects, threads, n / threads, rounds, &mut results);
    }
    results
}

/// Runs all rounds with this number of threads.
fn measure(
    subjects: &mut [SharedStoreSubject],
    threads: usize,
    lifetime: usize,
    rounds: usize,
    results: &mut Results,
) {
    let run = lifetime / RUNS_PER_LIFETIME;
    let ages = lifetime - lifetime.div_ceil(4);
    let packets = |thread| Packets::new(lifetime, ages, 2002 + thread as u64);
    let mut packets: Vec<Packets> = (0..threads).map(packets).collect();
    let mut draw = |mix| -> Vec<Vec<Packet>> {
        packets.iter_mut().map(|packets| packets.draw(mix, run)).collect()
    };
    for _ in 0..RUNS_PER_LIFETIME + 1 {
        let first = draw(Mix::Create);
        subjects.iter_mut().for_each(|subject| _ = subject.benchmark.run(&first));
    }
    for round in 0..rounds {
        for (column, &(mix, _)) in MIXES.iter().enumerate() {
            let drawn = draw(mix);
            let mut agreement = Agreement::default();
            for at in rotation(round, subjects.len()) {
                let timed = subjects[at].benchmark.run(&drawn);
                results.record(at, 2 * column + threads - 1, timed.ns);
                agreement.check(timed.sum, subjects[at].name);
            }
        }
    }
}
