//! `SnapshotRoutes` in memory of the caller.

use std::thread;

use flowtable::concurrent::{Publication, SnapshotRoutes};
use flowtable::{Prefix, RouteTable};
use model::limited::Limited;

use super::turn;

const MANY: u32 = if cfg!(miri) { 10 } else { 1000 };

fn prefix(number: u32) -> Prefix<u32> {
    Prefix::new(number << 12, 20).unwrap()
}

/// A thread reads while the other one writes, clears and replaces all routes: both copies, and the
/// clones of replaced ones, are in the memory, which is freed.
#[test]
fn both_copies_are_in_the_memory() {
    let _turn = turn();
    let memory = Limited::default();
    let routes = SnapshotRoutes::new_in(&memory);
    let write = || {
        for number in 0..MANY {
            routes.insert(prefix(number), number).unwrap();
            if number % 3 == 0 {
                routes.remove(&prefix(number / 2)).unwrap();
            }
        }
    };
    let read = || {
        while routes.pin().get(&prefix(MANY - 1)).is_none() {
            let pinned = routes.pin();
            assert!(pinned.iter().all(|(at, number)| at == prefix(*number)));
        }
    };
    thread::scope(|scope| {
        scope.spawn(read);
        write();
        while routes.publish() == Publication::Pending {}
    });
    let log = routes.allocation_size() - memory.bytes();
    assert!(log < 1 << 20 && memory.bytes() > MANY as usize * 4, "{log}, {}", memory.bytes());

    let mut table = RouteTable::new_in(&memory);
    table.extend((0..MANY).map(|number| (prefix(number), number + 1)));
    while routes.replace(table.clone()).is_err() {}
    drop(table);
    routes.insert(prefix(MANY), 7).unwrap();
    while routes.publish() == Publication::Pending {}
    assert_eq!((routes.len(), routes.pin().get(&prefix(3))), (MANY as usize + 1, Some(&4)));
    let full = memory.bytes();
    while routes.clear().is_err() {}
    routes.insert(prefix(1), 1).unwrap();
    while routes.publish() == Publication::Pending {}
    assert!(memory.bytes() < full / 2, "{} of {full}", memory.bytes());
    assert_eq!(routes.pin().allocator().bytes(), memory.bytes());
}
