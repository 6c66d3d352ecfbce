//! Models of the protocol for loom, which runs them in all interleavings with few preemptions.
//!
//! The first block of cells exists already: it is published by a lock of `std`, whose ordering loom
//! does not observe.

use loom::sync::Arc;
use loom::thread;

use super::ConcurrentStampedRoutes;
use crate::key::prefix::Prefix;
use crate::routes::{Refreshed, RouteStamp};

type Routes = ConcurrentStampedRoutes<u16, u32>;

fn at(len: u32) -> Prefix<u16> {
    Prefix::of(&0, len)
}

/// A decision on the route of address 0.
#[derive(Clone, Copy, Debug)]
struct Decision {
    stamp: RouteStamp,
    value: Option<u32>,
}

fn decide(routes: &Routes) -> Decision {
    let pinned = routes.pin();
    let (stamp, found) = pinned.resolve(&0);
    Decision { stamp, value: found.map(|(_, &value)| value) }
}

/// Asserts that a decision is current only if it has the value of now.
fn check(routes: &Routes, decision: Decision) {
    let now = decide(routes);
    assert!(routes.is_current(&now.stamp), "without writers each stamp is current");
    let is_current = routes.is_current(&decision.stamp);
    assert!(!is_current || decision.value == now.value, "G1: {decision:?}, now {now:?}");
}

/// Runs updates beside two lookups, with a decision that was made before. With two updates there
/// are too many interleavings with two preemptions.
fn beside_lookups(lens: &'static [u32], updates: &'static [fn(&Routes)]) {
    let mut builder = loom::model::Builder::new();
    if updates.len() > 1 {
        builder.preemption_bound = Some(1);
    }
    builder.max_branches = 10_000;
    builder.check(move || {
        let beside = (Prefix::host(u16::MAX), 0);
        let routes = lens.iter().map(|&len| (at(len), len)).chain([beside]);
        let shared = Arc::new(routes.collect::<Routes>());
        let before = decide(&shared);
        let clone = Arc::clone(&shared);
        let thread = thread::spawn(move || updates.iter().for_each(|update| update(&clone)));
        let first = decide(&shared);
        if first.value != before.value {
            assert!(!shared.is_current(&before.stamp), "G2");
        }
        thread.join().unwrap();
        for decision in [before, first] {
            check(&shared, decision);
        }
        let mut stamp = first.stamp;
        let now = decide(&shared).value;
        match shared.pin().refresh(&0, &mut stamp) {
            Refreshed::Same => assert_eq!(first.value, now, "the route is the same"),
            Refreshed::Changed(route) => assert_eq!(route.map(|(_, &value)| value), now),
        }
        shared.validate().unwrap();
    });
}

#[test]
fn stamp_a_route_that_is_replaced() {
    beside_lookups(&[6], &[|routes| _ = routes.insert(at(6), 7)]);
}

#[test]
fn stamp_a_route_below_which_one_is_announced() {
    beside_lookups(&[6], &[|routes| _ = routes.insert(at(14), 7)]);
}

#[test]
fn stamp_a_route_that_is_withdrawn() {
    beside_lookups(&[6, 14], &[|routes| _ = routes.remove(&at(14))]);
}

#[test]
fn stamp_no_route_when_the_first_one_is_announced() {
    beside_lookups(&[], &[|routes| _ = routes.insert(at(7), 7)]);
}

#[test]
fn stamp_a_route_whose_cell_is_used_again() {
    beside_lookups(
        &[14],
        &[
            |routes| _ = routes.remove(&at(14)).unwrap(),
            |routes| _ = routes.insert(at(6), 7).unwrap(),
        ],
    );
}
