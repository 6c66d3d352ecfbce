//! The small protocols, in every order in which they may happen.
//!
//! Under a checker a map has two shards, and a segment two buckets before it splits. All keys have the hash
//! that the test says: so they meet in one bucket, or do not.

use alloc::vec::Vec;
use core::hash::{BuildHasher, Hasher};

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use super::ConcurrentMap;

/// The last number that it was given is the hash.
#[derive(Clone, Copy, Default)]
struct Same(u64);

impl BuildHasher for Same {
    type Hasher = Self;

    fn build_hasher(&self) -> Self {
        *self
    }
}

impl Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, number: u64) {
        // All in one shard: the upper bits make the path.
        self.0 = number << 40;
    }
}

/// A value that knows whether it has been dropped.
struct Alive(Arc<AtomicBool>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

type Map<V> = Arc<ConcurrentMap<u64, V, Same>>;

fn map<V: Send + 'static>(entries: impl IntoIterator<Item = (u64, V)>) -> Map<V> {
    let map = ConcurrentMap::with_hasher(Same::default());
    for (key, value) in entries {
        map.pin().insert(key, value).unwrap();
    }
    Arc::new(map)
}

/// Runs one thing beside another, in every order.
fn beside<V: Send + Sync + 'static>(
    entries: impl Fn() -> Vec<(u64, V)> + Send + Sync + 'static,
    one: fn(&ConcurrentMap<u64, V, Same>),
    other: fn(&ConcurrentMap<u64, V, Same>),
) {
    loom::model(move || {
        let map = map(entries());
        let theirs = Arc::clone(&map);
        let thread = thread::spawn(move || one(&theirs));
        other(&map);
        thread.join().unwrap();
    });
}

#[test]
fn publish_an_entry_is_seen_whole_or_not_at_all() {
    beside(
        Vec::new,
        |map| _ = map.pin().insert(1, [7, 8]).unwrap(),
        |map| {
            let pin = map.pin();
            let first = pin.get(&1).copied();
            assert!(first.is_none_or(|value| value == [7, 8]));
            assert!(first.is_none() || pin.get(&1).is_some(), "A4");
        },
    );
}

#[test]
fn replace_the_old_value_or_the_new_one() {
    beside(
        || [(1, 10)].into(),
        |map| _ = map.pin().insert(1, 11).unwrap(),
        |map| {
            let pin = map.pin();
            let (first, second) = (*pin.get(&1).unwrap(), *pin.get(&1).unwrap());
            assert!((10..=11).contains(&first) && second >= first);
        },
    );
}

#[test]
fn remove_what_stays_is_found_behind_what_goes() {
    // More than a bucket has: the last ones are behind their home.
    beside(
        || (1..=8).map(|key| (key, key)).collect(),
        |map| {
            map.pin().remove(&1);
            map.pin().insert(9, 9).unwrap();
        },
        |map| {
            let pin = map.pin();
            assert_eq!((pin.get(&2), pin.get(&8)), (Some(&2), Some(&8)));
            assert!(pin.get(&1).is_none_or(|&value| value == 1));
        },
    );
}

#[test]
fn grow_what_stays_is_found_in_the_old_segment_or_in_the_new() {
    beside(
        || (1..=9).map(|key| (key, key)).collect(),
        |map| (10..=11).for_each(|key| _ = map.pin().insert(key, key).unwrap()),
        |map| {
            let pin = map.pin();
            assert_eq!((pin.get(&1), pin.get(&9)), (Some(&1), Some(&9)));
            assert_eq!(pin.iter().filter(|(key, _)| **key <= 9).count(), 9, "B1");
        },
    );
}

#[test]
fn retire_nothing_is_dropped_under_a_pin() {
    loom::model(|| {
        let alive = Arc::new(AtomicBool::new(true));
        let map = map([(1, Alive(Arc::clone(&alive)))]);
        let theirs = Arc::clone(&map);
        let thread = thread::spawn(move || {
            theirs.pin().remove(&1);
            // The epoch advances twice before anything is dropped.
            for _ in 0..3 {
                theirs.pin().flush();
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
