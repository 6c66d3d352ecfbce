//! Models of the protocols for loom, which runs them in every interleaving.
//!
//! Under a checker a wide region has 64 words, it becomes wide with two routes, and each update is
//! a batch of retired blocks.

use loom::sync::Arc;
use loom::thread;

use super::ConcurrentRoutes;
use crate::key::prefix::Prefix;
use crate::routes::RouteTable;

type Routes = ConcurrentRoutes<u32, u64>;

const ADDRESS: u32 = 0x0A01_0203;

fn at(len: u32) -> Prefix<u32> {
    Prefix::new(ADDRESS, len).unwrap()
}

/// A route of the same region, in another word.
fn beside() -> Prefix<u32> {
    Prefix::new(ADDRESS ^ 1 << 21, 24).unwrap()
}

fn insert(routes: &Routes, at: Prefix<u32>, value: u64) {
    routes.insert(at, value).unwrap();
}

fn lookup(routes: &Routes) -> Option<(u32, u64)> {
    routes.pin().lookup(&ADDRESS).map(|(at, &value)| (at.len(), value))
}

/// Runs two closures concurrently on a table with these routes, in every interleaving, and then a
/// third one.
fn concurrently<const N: usize>(
    first: [(Prefix<u32>, u64); N],
    [one, other, then]: [fn(&Routes); 3],
) {
    let mut builder = loom::model::Builder::new();
    // Making a table takes many steps, without another thread.
    builder.max_branches = 100_000;
    builder.check(move || {
        let shared = Arc::new(Routes::from(RouteTable::from(first)));
        let clone = Arc::clone(&shared);
        let thread = thread::spawn(move || one(&clone));
        other(&shared);
        thread.join().unwrap();
        then(&shared);
        shared.validate().unwrap();
    });
}

#[test]
fn publish_a_route_is_seen_whole_or_not_at_all() {
    concurrently(
        [(at(3), 1)],
        [
            |routes| insert(routes, at(29), 2),
            |routes| {
                let [first, second] = [(); 2].map(|()| lookup(routes).unwrap());
                assert!([(3, 1), (29, 2)].contains(&first), "R1");
                assert!(second.0 >= first.0, "R3");
            },
            |routes| assert_eq!(lookup(routes), Some((29, 2)), "R3"),
        ],
    );
}

#[test]
fn withdraw_a_route_the_longer_or_the_shorter_one_is_seen() {
    concurrently(
        [(at(3), 1), (at(29), 2)],
        [
            |routes| drop(routes.remove(&at(29)).unwrap()),
            |routes| {
                let [first, second] = [(); 2].map(|()| lookup(routes).unwrap());
                assert!([(3, 1), (29, 2)].contains(&first), "R1");
                assert!(second.0 <= first.0, "R3");
            },
            |routes| assert_eq!(lookup(routes), Some((3, 1)), "R3"),
        ],
    );
}

#[test]
fn order_a_longer_route_before_a_shorter_one() {
    concurrently(
        [(at(3), 1)],
        [
            |routes| {
                insert(routes, at(29), 2);
                insert(routes, at(3), 3);
            },
            // The new short route is never seen, since there was the longer one before.
            |routes| assert!([Some((3, 1)), Some((29, 2))].contains(&lookup(routes)), "R1"),
            |routes| assert_eq!(lookup(routes), Some((29, 2)), "R3"),
        ],
    );
}

#[test]
fn widen_a_region_no_route_is_missing() {
    concurrently(
        [(at(9), 1)],
        [
            |routes| {
                insert(routes, beside(), 2);
                insert(routes, at(9), 3);
            },
            |routes| {
                let [first, second] = [(); 2].map(|()| lookup(routes).unwrap());
                assert!(first.0 == 9 && second.1 >= first.1, "R3");
            },
            |routes| assert_eq!(lookup(routes), Some((9, 3)), "R3"),
        ],
    );
}

#[test]
fn narrow_a_region_no_route_is_missing() {
    concurrently(
        [(at(5), 1), (at(9), 2), (beside(), 3)],
        [
            |routes| {
                drop(routes.remove(&beside()).unwrap());
                drop(routes.remove(&at(9)).unwrap());
                insert(routes, at(5), 4);
            },
            |routes| {
                let first = lookup(routes).unwrap();
                assert!([(9, 2), (5, 1), (5, 4)].contains(&first), "R1");
                assert!(first.0 == 9 || lookup(routes).unwrap().0 == 5, "R3");
            },
            |routes| assert_eq!(lookup(routes), Some((5, 4)), "R3"),
        ],
    );
}

#[test]
fn replace_all_routes_no_lookup_is_between() {
    concurrently(
        [(at(9), 1)],
        [
            |routes| drop(routes.replace(RouteTable::from([(at(24), 2)])).unwrap()),
            |routes| assert!([Some((9, 1)), Some((24, 2))].contains(&lookup(routes)), "R1"),
            |routes| assert_eq!(lookup(routes), Some((24, 2)), "R3"),
        ],
    );
}

#[test]
fn reuse_a_block_is_not_changed_under_a_pin() {
    concurrently(
        [(at(24), 1)],
        [
            |routes| (2..5).for_each(|now| insert(routes, at(24), now)),
            |routes| {
                let pinned = routes.pin();
                let (_, value) = pinned.lookup(&ADDRESS).unwrap();
                let first = *value;
                let (_, second) = pinned.lookup(&ADDRESS).unwrap();
                assert!(*value == first && *second >= first, "R2");
            },
            |routes| assert_eq!(lookup(routes), Some((24, 4)), "R3"),
        ],
    );
}
