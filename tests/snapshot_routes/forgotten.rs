//! Pins of `SnapshotRoutes` that are forgotten.
//!
//! Such a pin blocks the updates of all tables of the process, so the test has a process of its
//! own.

use std::sync::Arc;

use flowtable::Prefix;
use flowtable::concurrent::{Publication, SnapshotRoutes};
use model::process;

#[test]
#[cfg_attr(miri, ignore = "Miri starts no processes")]
fn tests_in_their_own_process() {
    process::run_ignored("forgotten::", 1);
}

#[test]
#[ignore = "run in a process of its own"]
fn a_pin_that_is_forgotten_holds_up_updates_and_nothing_else() {
    let value = Arc::new(());
    let routes = SnapshotRoutes::<u8, Arc<()>>::new().with_limit(1000, 1);
    std::mem::forget(routes.pin());
    let insert = |host| routes.insert(Prefix::host(host), Arc::clone(&value));
    assert_eq!(insert(0), Ok(Publication::Visible));
    assert_eq!(insert(1), Ok(Publication::Pending));
    let refused = (2..=255).find_map(|host| insert(host).err());
    assert!(refused.is_some_and(|refused| refused.retired <= 1000));
    assert_eq!((routes.len(), routes.publish()), (1, Publication::Pending));
    // Other threads read, and write.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut pinned = routes.pin();
            pinned.repin();
            assert!(pinned.prefixes().eq([Prefix::host(0)]));
            assert!(routes.remove(&Prefix::host(0)).is_err());
        });
    });
    // Pending values are dropped with the table; the snapshot of the forgotten pin has no clone of
    // them.
    drop(routes);
    assert_eq!(Arc::strong_count(&value), 1);
}
