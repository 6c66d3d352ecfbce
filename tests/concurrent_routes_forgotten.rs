//! A pin that is forgotten holds up updates for good, and nothing else. Alone in its process, since it
//! holds up all that use the same collector.
#![cfg(feature = "concurrent")]

use std::sync::Arc;

use flowtable::Prefix;
use flowtable::concurrent::{ConcurrentRoutes, Publication};

#[test]
fn a_pin_that_is_forgotten_holds_up_updates_and_nothing_else() {
    let value = Arc::new(());
    let routes = ConcurrentRoutes::<u8, Arc<()>>::new().with_limit(1000, 1);
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
    // What has been pending is dropped with the rest; a clone of the forgotten pin's is not there.
    drop(routes);
    assert_eq!(Arc::strong_count(&value), 1);
}
