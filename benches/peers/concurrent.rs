//! `ConcurrentMap` against other maps that threads share.
//!
//! Everybody has one hasher, of one seed: ahash, the crate's own. Everybody holds what it needs to read
//! for a burst of 32 operations and then lets go of it, whether it looks up one key at a time or all 32
//! at once; but a lock of the whole map is held for one look-up, or for a burst of look-ups.
//!
//! ```text
//!     rounds     reads, and reads with updates, by one thread and by two     see `rounds`
//!     growth     one thread fills a map while another one reads it           see `growth`
//!     bytes      one thread fills a map                                      see `bytes`
//! ```
//!
//! There is a further row on each board: the peer that is best in a column, of those that are made for
//! threads and take single updates.

mod bytes;
mod contestant;
mod figures;
mod growth;
mod histogram;
mod indexed;
mod left_right;
mod locked;
mod nothing;
mod ours;
mod papaya;
mod rounds;
mod sharded;
mod traffic;
mod work;

use std::sync::RwLock;

use dashmap::DashMap;
use flowtable::concurrent::ConcurrentMap;
use flowtable::{DefaultHashBuilder, TrashMap};

use crate::args::Plan;
use crate::board::{Outcome, Report};
use crate::entrant::{ours, peer};
use crate::keys::Words;
use contestant::{Contestant, Part};
use left_right::LeftRight;
use nothing::Nothing;

type Key = Words<2>;

pub(crate) fn run(plan: &Plan, report: &mut Report) -> Outcome {
    println!("\nConcurrentMap");
    let hasher = DefaultHashBuilder::new();
    let mut contestants = maps(&hasher);
    contestants.extend([left_right(&hasher), nothing(&hasher)]);
    for &n in plan.sizes(&[16_000, 128_000, 1_000_000], &[16_000, 128_000, 1_000_000]) {
        for board in rounds::rounds(&mut contestants, n, plan.quick) {
            report.show(&board)?;
        }
    }
    if plan.is_rounds_only() {
        return Ok(());
    }
    let many = if plan.quick { 1_000_000 } else { 8_000_000 };
    let mut contestants = maps(&hasher);
    contestants.push(nothing(&hasher));
    for board in growth::growth(&mut contestants, many) {
        report.show(&board)?;
    }
    let mut contestants = maps(&hasher);
    contestants.push(trash_map(&hasher));
    report.show(&bytes::bytes(&mut contestants, many))
}

/// Those that do everything, ours first.
fn maps(hasher: &DefaultHashBuilder) -> Vec<Contestant> {
    let [own, a, b, c, d, e] = [(); 6].map(|()| hasher.clone());
    vec![
        ours(
            "concurrent",
            "ConcurrentMap",
            (Part::Ours, move || ConcurrentMap::with_hasher(own.clone())),
        ),
        peer("papaya", (Part::Rival, move || ::papaya::HashMap::with_hasher(a.clone()))),
        peer("dashmap", (Part::Rival, move || DashMap::with_hasher(b.clone()))),
        peer("scc HashMap", (Part::Rival, move || scc::HashMap::with_hasher(c.clone()))),
        peer("scc HashIndex", (Part::Rival, move || scc::HashIndex::with_hasher(d.clone()))),
        peer(
            "RwLock of hashbrown",
            (Part::Other, move || {
                RwLock::new(hashbrown::HashMap::<Key, u64, _>::with_hasher(e.clone()))
            }),
        ),
    ]
}

/// What was inserted is seen after each insertion, and that takes too long to fill a large map.
fn left_right(hasher: &DefaultHashBuilder) -> Contestant {
    let hasher = hasher.clone();
    peer("left_right of hashbrown", (Part::Other, move || LeftRight::new(hasher.clone())))
}

fn nothing(hasher: &DefaultHashBuilder) -> Contestant {
    let hasher = hasher.clone();
    peer("no map", (Part::Machine, move || Nothing::new(hasher.clone())))
}

/// What our map would need if no threads shared it.
fn trash_map(hasher: &DefaultHashBuilder) -> Contestant {
    let hasher = hasher.clone();
    peer(
        "TrashMap, not shared",
        (Part::Other, move || RwLock::new(TrashMap::<Key, u64, _>::with_hasher(hasher.clone()))),
    )
}
