//! `TrashMap` against hash tables: state by key, in any order.

use std::hash::Hash;

use hashbrown::DefaultHashBuilder as Foldhash;

use crate::args::Plan;
use crate::keys::{Key, Words};
use crate::maps::bytes::bytes;
use crate::maps::churn::churned;
use crate::maps::pauses::pauses;
use crate::maps::prefetched::Prefetched;
use crate::maps::rounds::Rounds;
use crate::maps::subject::{MapSubject, Operation, bursts_only};
use crate::maps::{hashbrown_foldhash, hashbrown_our_hash, indexmap, std_map, trash_maps};
use crate::results::{Outcome, Report};
use crate::subject::peer;

const OPERATIONS: &[Operation] = &[
    Operation::Fill,
    Operation::Hit,
    Operation::Miss,
    Operation::Zipf,
    Operation::Chain,
    Operation::Churn,
    Operation::Burst,
];

pub(crate) fn run(plan: &Plan, report: &mut Report) -> Outcome {
    println!("\nTrashMap");
    rounds::<Words<2>>(plan, report)?;
    rounds::<Words<5>>(plan, report)?;
    if plan.is_rounds_only() {
        return Ok(());
    }
    let top = if plan.quick { 2_000_000 } else { 10_000_000 };
    for results in bytes(&mut maps::<Words<2>>(), top) {
        report.show(&results)?;
    }
    for results in bytes(&mut maps::<Words<5>>(), top) {
        report.show(&results)?;
    }
    report.show(&churned(if plan.quick { 100_000 } else { 1_000_000 }, plan.churn()))?;
    report.show(&pauses(maps::<Words<2>>(), top))
}

fn maps<K: Key + Hash>() -> Vec<MapSubject<K>> {
    let peers = [hashbrown_foldhash(), hashbrown_our_hash(), indexmap(), std_map()];
    trash_maps().into_iter().chain(peers).collect()
}

fn rounds<K: Key + Hash>(plan: &Plan, report: &mut Report) -> Outcome {
    let mut subjects = maps::<K>();
    let hasher = Foldhash::default();
    let prefetched = bursts_only(move || Prefetched::new(hasher.clone()));
    subjects.push(peer("hashbrown, prefetched", prefetched));
    let mut rounds = Rounds { operations: OPERATIONS, subjects, has_limit: true };
    for &n in plan.sizes(
        &[1_000, 16_000, 128_000, 1_000_000, 8_000_000],
        &[1_000, 16_000, 128_000, 1_000_000],
    ) {
        report.show(&rounds.run(n, plan.quick))?;
    }
    Ok(())
}
