//! `ConcurrentMap` and `ConcurrentTable` against other maps that threads share.
//!
//! All maps have the crate's default hasher with one seed. A thread holds its guard for a batch of
//! 32 operations, single or batched; a lock of the whole map is held for one lookup, or for a batch
//! of lookups.
//!
//! ```text
//!     rounds     reads, and reads with updates, by 1, 2, 4 … threads         see `rounds`
//!     walks      `len` and `retain` of small maps                            see `walks`
//!     growth     one thread fills a map while another one reads it           see `growth`
//!     bytes      one thread fills a map                                      see `bytes`
//! ```
//!
//! An additional row shows the best peer of each column, of the concurrent maps with single
//! updates.

mod bytes;
mod figures;
mod growth;
mod hash_index;
mod histogram;
mod insertions;
mod left_right;
mod no_map;
mod ours;
mod papaya;
mod rounds;
mod rw_lock;
mod sharded;
mod shared_map;
mod subject;
mod table;
mod threads;
mod traffic;
mod walks;

use std::sync::RwLock;

use dashmap::DashMap;
use flowtable::concurrent::{ConcurrentMap, ConcurrentTable};
use flowtable::{DefaultHashBuilder, TrashMap};

use crate::args::Plan;
use crate::keys::Words;
use crate::results::{Outcome, Report};
use crate::subject::{ours, peer};
use left_right::LeftRight;
use no_map::NoMap;
use subject::{Role, SharedMapSubject, shared};

type Key = Words<2>;

pub(crate) fn run(plan: &Plan, report: &mut Report) -> Outcome {
    println!("\nConcurrentMap");
    let hasher = DefaultHashBuilder::new();
    let mut subjects = maps(&hasher);
    subjects.extend([left_right(&hasher), no_map(&hasher)]);
    let sizes = &[1_000, 16_000, 128_000, 1_000_000];
    for &n in plan.sizes(sizes, sizes) {
        for results in rounds::rounds(&mut subjects, n, plan.quick) {
            report.show(&results)?;
        }
    }
    if plan.is_rounds_only() {
        return Ok(());
    }
    for n in [100, 1_000, 16_000] {
        report.show(&walks::walks(&mut maps(&hasher), n, plan.quick))?;
    }
    let top = if plan.quick { 1_000_000 } else { 8_000_000 };
    let mut subjects = maps(&hasher);
    subjects.push(no_map(&hasher));
    for results in growth::growth(&mut subjects, top) {
        report.show(&results)?;
    }
    let mut subjects = maps(&hasher);
    subjects.push(trash_map(&hasher));
    report.show(&bytes::bytes(&mut subjects, top))
}

/// The maps for all benchmarks, ours first.
fn maps(hasher: &DefaultHashBuilder) -> Vec<SharedMapSubject> {
    let [a, b, c, d, e, f, g] = [(); 7].map(|()| hasher.clone());
    let lock = move || RwLock::new(hashbrown::HashMap::<Key, u64, _>::with_hasher(f.clone()));
    vec![
        ours(
            "concurrent",
            "ConcurrentMap",
            shared(Role::Ours, move || ConcurrentMap::with_hasher(a.clone())),
        ),
        ours(
            "concurrent_table",
            "ConcurrentTable",
            shared(Role::Other, move || ConcurrentTable::with_hasher(g.clone())),
        ),
        peer("papaya", shared(Role::Peer, move || ::papaya::HashMap::with_hasher(b.clone()))),
        peer("dashmap", shared(Role::Peer, move || DashMap::with_hasher(c.clone()))),
        peer("scc HashMap", shared(Role::Peer, move || scc::HashMap::with_hasher(d.clone()))),
        peer("scc HashIndex", shared(Role::Peer, move || scc::HashIndex::with_hasher(e.clone()))),
        peer("RwLock of hashbrown", shared(Role::Other, lock)),
    ]
}

/// Publishes each insertion, which takes too long for filling a large map.
fn left_right(hasher: &DefaultHashBuilder) -> SharedMapSubject {
    let hasher = hasher.clone();
    let new = move || LeftRight::new(hasher.clone());
    peer("left_right of hashbrown", shared(Role::Other, new))
}

fn no_map(hasher: &DefaultHashBuilder) -> SharedMapSubject {
    let hasher = hasher.clone();
    peer("no map", shared(Role::Baseline, move || NoMap::new(hasher.clone())))
}

/// Shows the bytes of our map without sharing.
fn trash_map(hasher: &DefaultHashBuilder) -> SharedMapSubject {
    let hasher = hasher.clone();
    let new = move || RwLock::new(TrashMap::<Key, u64, _>::with_hasher(hasher.clone()));
    peer("TrashMap, not shared", shared(Role::Other, new))
}
