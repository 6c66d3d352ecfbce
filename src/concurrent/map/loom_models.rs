//! The small protocols, in every order in which they may happen.
//!
//! Under a checker a map has two shards, and a segment two buckets before it splits. All keys of a test are in one
//! shard, and all in one bucket if the test says so.
#![allow(unsafe_code)]

use core::hash::{BuildHasher, Hasher};

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use super::ConcurrentMap;
use super::directory::{path, shard_of};

/// Whether keys are spread over the buckets of the first shard, or all in one.
#[derive(Clone, Copy)]
enum Spread {
    Apart,
    Together,
}

/// A hash of the first shard.
struct FirstShard(Spread, u64);

impl BuildHasher for Spread {
    type Hasher = FirstShard;

    fn build_hasher(&self) -> FirstShard {
        FirstShard(*self, 0)
    }
}

impl Hasher for FirstShard {
    fn finish(&self) -> u64 {
        self.1
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, number: u64) {
        let from = match self.0 {
            Spread::Apart => number << 40,
            Spread::Together => 1 << 40,
        };
        self.1 = (from..).find(|&hash| shard_of(path(hash)) == 0).unwrap();
    }
}

/// A value whose reading is checked: it must come after its making.
struct Told(UnsafeCell<u64>);

// SAFETY: nobody changes it.
unsafe impl Sync for Told {}

impl Told {
    fn new(value: u64) -> Self {
        Self(UnsafeCell::new(value))
    }

    fn get(&self) -> u64 {
        // SAFETY: nobody changes it.
        self.0.with(|value| unsafe { *value })
    }
}

/// A value that knows whether it has been dropped.
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

fn put(map: &Map<Told>, key: u64, value: u64) {
    assert!(map.pin().insert(key, Told::new(value)).is_ok());
}

/// Runs one thing beside another on a map with the first so many keys, in every order.
fn beside(spread: Spread, keys: u64, one: fn(&Map<Told>), other: fn(&Map<Told>)) {
    loom::model(move || {
        let map = map(spread, (1..=keys).map(|key| (key, Told::new(key))));
        let theirs = Arc::clone(&map);
        let thread = thread::spawn(move || one(&theirs));
        other(&map);
        thread.join().unwrap();
    });
}

#[test]
fn publish_an_entry_is_seen_whole_or_not_at_all() {
    beside(
        Spread::Apart,
        0,
        |map| put(map, 1, 7),
        |map| {
            let pin = map.pin();
            let first = pin.get(&1).map(Told::get);
            assert!(first.is_none_or(|value| value == 7));
            assert!(first.is_none() || pin.get(&1).is_some(), "A4");
        },
    );
}

#[test]
fn replace_the_old_value_or_the_new_one() {
    beside(
        Spread::Apart,
        1,
        |map| put(map, 1, 2),
        |map| {
            let pin = map.pin();
            let [first, second] = [(); 2].map(|()| pin.get(&1).unwrap().get());
            assert!((1..=2).contains(&first) && second >= first);
        },
    );
}

#[test]
fn remove_what_stays_is_found_behind_what_goes() {
    // More than a bucket has: the last one is behind its home, and then another one is.
    beside(
        Spread::Together,
        7,
        |map| {
            map.pin().remove(&1);
            map.pin().remove(&2);
            put(map, 9, 9);
        },
        |map| {
            let pin = map.pin();
            assert_eq!(pin.get(&7).map(Told::get), Some(7));
            assert!(pin.get(&1).is_none_or(|value| value.get() == 1));
            assert!(pin.get(&9).is_none_or(|value| value.get() == 9));
        },
    );
}

#[test]
fn grow_what_stays_is_found_in_the_old_segment_or_in_the_new() {
    beside(
        Spread::Apart,
        9,
        |map| put(map, 10, 10),
        |map| {
            let pin = map.pin();
            assert_eq!(pin.get(&9).map(Told::get), Some(9));
            assert_eq!(pin.iter().filter(|(key, _)| **key <= 9).count(), 9, "B1");
        },
    );
}

#[test]
fn retire_nothing_is_dropped_under_a_pin() {
    loom::model(|| {
        let alive = Arc::new(AtomicBool::new(true));
        let map = map(Spread::Apart, [(1, Alive(Arc::clone(&alive)))]);
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
