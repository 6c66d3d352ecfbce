//! `TrashMap` against hash tables: the structure for state by key, in any order.

use std::hash::Hash;

use hashbrown::DefaultHashBuilder as Foldhash;

use crate::args::Plan;
use crate::board::{Outcome, Report};
use crate::bytes::bytes;
use crate::churn::churned;
use crate::contest::Contest;
use crate::contestant::{Bench, BurstsOnly, Contestant};
use crate::entrant::peer;
use crate::keys::{Key, Words};
use crate::maps::{hashbrown_ahash, hashbrown_foldhash, indexmap, std_map, trash_maps};
use crate::pauses::pauses;
use crate::prefetched::Prefetched;

const BENCHES: &[Bench] =
    &[Bench::Fill, Bench::Hit, Bench::Miss, Bench::Zipf, Bench::Chain, Bench::Churn, Bench::Burst];

pub(crate) fn run(plan: &Plan, report: &mut Report) -> Outcome {
    println!("\nTrashMap");
    rounds::<Words<2>>(plan, report)?;
    rounds::<Words<5>>(plan, report)?;
    if plan.is_rounds_only() {
        return Ok(());
    }
    let many = if plan.quick { 2_000_000 } else { 10_000_000 };
    for board in bytes(&mut maps::<Words<2>>(), many) {
        report.show(&board)?;
    }
    for board in bytes(&mut maps::<Words<5>>(), many) {
        report.show(&board)?;
    }
    report.show(&churned(if plan.quick { 100_000 } else { 1_000_000 }, plan.churn()))?;
    report.show(&pauses(maps::<Words<2>>(), many))
}

fn maps<K: Key + Hash>() -> Vec<Contestant<K>> {
    let [ours, ours_foldhash] = trash_maps();
    vec![ours, ours_foldhash, hashbrown_foldhash(), hashbrown_ahash(), indexmap(), std_map()]
}

fn rounds<K: Key + Hash>(plan: &Plan, report: &mut Report) -> Outcome {
    let mut contestants = maps::<K>();
    let hasher = Foldhash::default();
    let prefetched = BurstsOnly(move || Prefetched::new(hasher.clone()));
    contestants.push(peer("hashbrown, prefetched", prefetched));
    let mut contest = Contest { benches: BENCHES, contestants, has_limit: true };
    for &n in plan.sizes(
        &[1_000, 16_000, 128_000, 1_000_000, 8_000_000],
        &[1_000, 16_000, 128_000, 1_000_000],
    ) {
        report.show(&contest.run(n, plan.quick))?;
    }
    Ok(())
}
