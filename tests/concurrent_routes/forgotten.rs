//! Pins of `ConcurrentRoutes` that are forgotten.
//!
//! Such a pin blocks the garbage of the whole process, so the test has a process of its own.

use std::sync::Arc;

use flowtable::Prefix;
use flowtable::concurrent::ConcurrentRoutes;
use model::process;

#[test]
#[cfg_attr(miri, ignore = "Miri starts no processes")]
fn tests_in_their_own_process() {
    process::run_ignored("forgotten::", 1);
}

#[test]
#[ignore = "run in a process of its own"]
fn a_pin_that_is_forgotten_bounds_updates_and_nothing_else() {
    let value = Arc::new(());
    let routes = ConcurrentRoutes::<u32, Arc<()>>::new().with_garbage_limit(10_000, 1);
    std::mem::forget(routes.pin());
    let insert = |host| routes.insert(Prefix::host(host), Arc::clone(&value));
    let refused = (0..1000).find_map(|host| insert(host).err()).unwrap();
    let flowtable::concurrent::Refused::Garbage { retired, .. } = refused.reason else {
        panic!("{refused}")
    };
    assert!(retired > 10_000 && retired < 20_000);
    let count = routes.len();
    assert!(count > 0 && routes.garbage() == retired);
    // Other threads read, and are refused, too.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut pinned = routes.pin();
            pinned.repin();
            assert_eq!(pinned.iter().count(), count);
            assert!(pinned.lookup(&0).is_some());
            assert!(routes.remove(&Prefix::host(0)).is_err());
        });
    });
    drop(refused);
    // What is not garbage is dropped with the table.
    let before = Arc::strong_count(&value);
    drop(routes);
    assert!(Arc::strong_count(&value) <= before - count);
}
