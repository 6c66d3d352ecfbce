//! Models of the protocols for loom, which runs them in every interleaving.
//!
//! Under a checker a map has two shards, and a segment two buckets before it splits. All keys of a
//! test are in one shard, and in one bucket if the test requires it.
#![allow(unsafe_code)]

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use super::ConcurrentMap;
use crate::concurrent::loom_hasher::Spread;

/// A value whose reads loom checks: they must happen after its creation.
struct CheckedValue(UnsafeCell<u64>);

// SAFETY: it is never changed.
unsafe impl Sync for CheckedValue {}

impl CheckedValue {
    fn new(value: u64) -> Self {
        Self(UnsafeCell::new(value))
    }

    fn get(&self) -> u64 {
        // SAFETY: it is never changed.
        self.0.with(|value| unsafe { *value })
    }
}

/// A value that records its drop.
struct Alive(Arc<AtomicBool>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

type Map<V> = ConcurrentMap<u64, V, Spread>;

fn map<V: Send + 'static>(
    spread: Spread,
    entries: impl IntoIterator<Item = (u64, V)>,
) -> Arc<Map<V>> {
    let map = ConcurrentMap::with_hasher(spread);
    for (key, value) in entries {
        map.pin().insert(key, value).unwrap();
    }
    Arc::new(map)
}

fn insert(map: &Map<CheckedValue>, key: u64, value: u64) {
    assert!(map.pin().insert(key, CheckedValue::new(value)).is_ok());
}

/// Runs two closures concurrently on a map with the keys 1 to `keys`, in every interleaving.
fn concurrently(
    spread: Spread,
    keys: u64,
    one: fn(&Map<CheckedValue>),
    other: fn(&Map<CheckedValue>),
) {
    loom::model(move || {
        let map = map(spread, (1..=keys).map(|key| (key, CheckedValue::new(key))));
        let clone = Arc::clone(&map);
        let thread = thread::spawn(move || one(&clone));
        other(&map);
        thread.join().unwrap();
    });
}

#[test]
fn publish_an_entry_is_seen_whole_or_not_at_all() {
    concurrently(
        Spread::Apart,
        0,
        |map| insert(map, 1, 7),
        |map| {
            let pin = map.pin();
            let first = pin.get(&1).map(CheckedValue::get);
            assert!(first.is_none_or(|value| value == 7));
            assert!(first.is_none() || pin.get(&1).is_some(), "A4");
        },
    );
}

#[test]
fn replace_the_old_value_or_the_new_one() {
    concurrently(
        Spread::Apart,
        1,
        |map| insert(map, 1, 2),
        |map| {
            let pin = map.pin();
            let [first, second] = [(); 2].map(|()| pin.get(&1).unwrap().get());
            assert!((1..=2).contains(&first) && second >= first);
        },
    );
}

#[test]
fn remove_remaining_entries_are_found_after_removed_ones() {
    // More than a bucket has: the last one overflows, and then another one does.
    concurrently(
        Spread::Together,
        7,
        |map| {
            map.pin().remove(&1);
            map.pin().remove(&2);
            insert(map, 9, 9);
        },
        |map| {
            let pin = map.pin();
            assert_eq!(pin.get(&7).map(CheckedValue::get), Some(7));
            assert!(pin.get(&1).is_none_or(|value| value.get() == 1));
            assert!(pin.get(&9).is_none_or(|value| value.get() == 9));
        },
    );
}

#[test]
fn grow_remaining_entries_are_found_in_the_old_segment_or_in_the_new() {
    concurrently(
        Spread::Apart,
        9,
        |map| insert(map, 10, 10),
        |map| {
            let pin = map.pin();
            assert_eq!(pin.get(&9).map(CheckedValue::get), Some(9));
            assert_eq!(pin.iter().filter(|(key, _)| **key <= 9).count(), 9, "B1");
        },
    );
}

#[test]
fn retire_nothing_is_dropped_under_a_pin() {
    loom::model(|| {
        let alive = Arc::new(AtomicBool::new(true));
        let map = map(Spread::Apart, [(1, Alive(Arc::clone(&alive)))]);
        let clone = Arc::clone(&map);
        let thread = thread::spawn(move || {
            clone.pin().remove(&1);
            // The epoch advances twice before anything is dropped.
            for _ in 0..3 {
                clone.pin().flush();
            }
        });
        let pin = map.pin();
        if let Some(value) = pin.get(&1) {
            assert!(value.0.load(Ordering::SeqCst), "dropped under the pin");
        }
        drop(pin);
        thread.join().unwrap();
    });
}
