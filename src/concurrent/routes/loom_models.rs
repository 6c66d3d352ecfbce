//! Models of the protocol for loom, which runs them in all interleavings with few preemptions.
//!
//! Under a checker a slot has the first six bits, and a part one slot.

use loom::sync::Arc;
use loom::thread;

use super::ConcurrentRoutes;
use crate::key::prefix::Prefix;

type Routes = ConcurrentRoutes<u16, u32>;

fn at(len: u32) -> Prefix<u16> {
    Prefix::of(&0, len)
}

fn insert(routes: &Routes, len: u32, value: u32) {
    routes.insert(at(len), value).unwrap();
}

fn remove(routes: &Routes, len: u32) {
    routes.remove(&at(len)).unwrap();
}

/// Returns the length and value of the longest route of address 0.
fn look_up(routes: &Routes) -> Option<(u32, u32)> {
    routes.pin().lookup(&0).map(|(prefix, &value)| (prefix.len(), value))
}

/// Runs two closures concurrently on a table with routes of these lengths, and then a third
/// one. With two updates there are too many interleavings with two preemptions.
fn concurrently<const N: usize>(
    updates: usize,
    lens: [u32; N],
    [one, other, then]: [fn(&Routes); 3],
) {
    let mut builder = loom::model::Builder::new();
    if updates > 1 {
        builder.preemption_bound = Some(1);
    }
    builder.max_branches = 10_000;
    builder.check(move || {
        let shared = Arc::new(Routes::new());
        lens.iter().for_each(|&len| insert(&shared, len, len));
        let clone = Arc::clone(&shared);
        let thread = thread::spawn(move || one(&clone));
        other(&shared);
        thread.join().unwrap();
        then(&shared);
        shared.validate().unwrap();
    });
}

#[test]
fn publish_a_block_is_seen_whole_or_not_at_all() {
    concurrently(
        1,
        [6],
        [
            |routes| insert(routes, 14, 7),
            |routes| {
                let [first, second] = [(); 2].map(|()| look_up(routes).unwrap());
                assert!([(6, 6), (14, 7)].contains(&first) && second >= first, "R1, R3");
            },
            |routes| assert_eq!(look_up(routes), Some((14, 7)), "R2"),
        ],
    );
}

#[test]
fn make_before_break_there_is_always_a_route() {
    concurrently(
        2,
        [14],
        [
            |routes| {
                insert(routes, 6, 7);
                remove(routes, 14);
            },
            |routes| {
                let found = look_up(routes);
                assert!([Some((14, 14)), Some((6, 7))].contains(&found), "R1");
            },
            |routes| assert_eq!(look_up(routes), Some((6, 7)), "R2"),
        ],
    );
}

#[test]
fn retire_a_block_that_a_reader_holds() {
    concurrently(
        2,
        [8, 14],
        [
            |routes| {
                remove(routes, 14);
                insert(routes, 8, 9);
            },
            |routes| {
                let pinned = routes.pin();
                let (prefix, value) = pinned.lookup(&0).unwrap();
                crate::concurrent::sync::yield_now();
                assert!([(14, 14), (8, 8), (8, 9)].contains(&(prefix.len(), *value)), "R1, R5");
            },
            |routes| assert_eq!(look_up(routes), Some((8, 9)), "R2"),
        ],
    );
}

#[test]
fn groups_are_made_and_released_while_a_reader_loads_a_slot() {
    concurrently(
        2,
        [0],
        [
            |routes| {
                insert(routes, 10, 7);
                remove(routes, 10);
            },
            |routes| {
                let found = look_up(routes);
                assert!([Some((0, 0)), Some((10, 7))].contains(&found), "R1");
            },
            |routes| assert_eq!(look_up(routes), Some((0, 0)), "R2"),
        ],
    );
}

#[test]
fn writers_exclude_each_other() {
    concurrently(
        2,
        [],
        [
            |routes| insert(routes, 12, 1),
            |routes| insert(routes, 7, 2),
            |routes| assert_eq!((look_up(routes), routes.len()), (Some((12, 1)), 2)),
        ],
    );
}
