//! Models of the guarantees for loom, which runs them in all interleavings with few preemptions.
//!
//! Under a checker a store has two shards. All tags of a test are in one.

use core::time::Duration;

use loom::sync::Arc;
use loom::thread;

use super::ConcurrentStore;
use crate::concurrent::loom_hasher::Spread;
use crate::timestamp::Timestamp;

type Store = ConcurrentStore<u64, u64, Spread>;

/// Runs two closures concurrently on a store in which tag 1 has the value 1, and then a check.
fn concurrently<R: Send + 'static>(
    one: fn(&Store) -> R,
    other: fn(&Store) -> R,
    check: fn(&Store, R, R),
) {
    loom::model(move || {
        let (lifetime, hasher) = (Duration::from_nanos(100), Spread::Apart);
        let store = Store::with_parts(128, lifetime, hasher).unwrap();
        assert_eq!(store.insert_new(1, Timestamp::ZERO, 1), Ok(true));
        let store = Arc::new(store);
        let clone = Arc::clone(&store);
        let thread = thread::spawn(move || one(&clone));
        let other = other(&store);
        check(&store, thread.join().unwrap(), other);
        store.validate().unwrap();
    });
}

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

#[test]
fn e2_one_thread_creates_a_binding() {
    let create = |store: &Store| store.insert_new(2, at(1), 2).unwrap();
    concurrently(create, create, |store, one, other| {
        assert!(one != other, "E2");
        assert_eq!(store.live(at(1)), 2);
    });
}

#[test]
fn e1_updates_are_not_lost() {
    let add = |store: &Store| store.update(&1, at(1), |value| *value += 1).is_some();
    concurrently(add, add, |store, one, other| {
        assert!(one && other);
        assert_eq!(store.get(&1, at(1)), Some(3), "E1");
    });
}

#[test]
fn e1_a_binding_is_removed_once() {
    let remove = |store: &Store| store.remove(&1, at(1)).is_some();
    concurrently(remove, remove, |store, one, other| {
        assert!(one != other, "E1");
        assert_eq!(store.get(&1, at(1)), None);
    });
}

#[test]
fn e3_a_binding_expires_for_all_threads() {
    let late = |store: &Store| store.get(&1, at(100)).is_none();
    let create = |store: &Store| store.insert_new(2, at(100), 2).unwrap();
    concurrently(late, create, |store, expired, created| {
        assert!(expired && created, "E3");
        // Time does not go back for a tag of the same shard.
        assert_eq!(store.get(&1, at(1)), None);
    });
}
