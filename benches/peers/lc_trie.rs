//! `LcTrieMap` over headed five-tuples, which is the paper's TRASH, against a hash table and the
//! ordered map of `std`.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use flowtable::FiveTuple;

use crate::args::Plan;
use crate::board::{Outcome, Report};
use crate::contest::Contest;
use crate::contestant::Bench;
use crate::entrant::{ours, peer};
use crate::maps::{HeadedTrie, hashbrown_ahash, hashbrown_foldhash};

type Key = FiveTuple<Ipv4Addr>;

const BENCHES: &[Bench] =
    &[Bench::Fill, Bench::Hit, Bench::Miss, Bench::Zipf, Bench::Chain, Bench::Churn];

pub(crate) fn run(plan: &Plan, report: &mut Report) -> Outcome {
    println!("\nLcTrieMap, headed keys");
    let contestants = vec![
        ours("lc_trie", "LcTrieMap, headed keys", HeadedTrie::<Key>::new),
        hashbrown_foldhash(),
        hashbrown_ahash(),
        peer("BTreeMap", BTreeMap::<Key, u64>::new),
    ];
    let mut contest = Contest { benches: BENCHES, contestants, has_limit: false };
    for &n in plan.sizes(&[1_000, 100_000, 1_000_000], &[1_000, 100_000]) {
        report.show(&contest.run(n, plan.quick))?;
    }
    Ok(())
}
