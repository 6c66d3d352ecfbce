//! `LcTrieMap` over headed five-tuples, which is the paper's TRASH, against a hash table and the
//! ordered map of `std`.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use flowtable::FiveTuple;

use crate::args::Plan;
use crate::maps::rounds::Rounds;
use crate::maps::subject::{Operation, map};
use crate::maps::{HeadedTrie, hashbrown_foldhash, hashbrown_our_hash};
use crate::results::{Outcome, Report};
use crate::subject::{ours, peer};

type Key = FiveTuple<Ipv4Addr>;

const OPERATIONS: &[Operation] = &[
    Operation::Fill,
    Operation::Hit,
    Operation::Miss,
    Operation::Zipf,
    Operation::Chain,
    Operation::Churn,
];

pub(crate) fn run(plan: &Plan, report: &mut Report) -> Outcome {
    println!("\nLcTrieMap, headed keys");
    let subjects = vec![
        ours("lc_trie", "LcTrieMap, headed keys", map(HeadedTrie::<Key>::new)),
        hashbrown_foldhash(),
        hashbrown_our_hash(),
        peer("BTreeMap", map(BTreeMap::<Key, u64>::new)),
    ];
    let mut rounds = Rounds { operations: OPERATIONS, subjects, has_limit: false };
    for &n in plan.sizes(&[1_000, 100_000, 1_000_000], &[1_000, 100_000]) {
        report.show(&rounds.run(n, plan.quick))?;
    }
    Ok(())
}
