//! Models of the protocols for loom, which runs them in all interleavings with few preemptions.
//!
//! Under a checker a map has two shards, a segment two lines of two slots each, whose tags are in
//! different words, and it splits above three entries. All keys of a test are in one shard, and
//! have one home if the test requires it.
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

type CheckedMap = Map<CheckedValue>;

fn insert(map: &CheckedMap, key: u64, value: u64) {
    assert!(map.pin().insert(key, CheckedValue::new(value)).is_ok());
}

/// Runs two closures concurrently on a map with these keys, and then a third one.
fn concurrently(spread: Spread, keys: &'static [u64], [one, other, then]: [fn(&CheckedMap); 3]) {
    let mut builder = loom::model::Builder::new();
    // Filling a map takes many steps, without another thread.
    builder.max_branches = 10_000;
    builder.check(move || {
        let map = map(spread, keys.iter().map(|&key| (key, CheckedValue::new(key))));
        let clone = Arc::clone(&map);
        let thread = thread::spawn(move || one(&clone));
        other(&map);
        thread.join().unwrap();
        then(&map);
    });
}

/// Returns the number in the value of a key.
fn get(map: &CheckedMap, key: u64) -> Option<u64> {
    map.pin().get(&key).map(CheckedValue::get)
}

#[test]
fn publish_an_entry_is_seen_whole_or_not_at_all() {
    concurrently(
        Spread::Apart,
        &[],
        [
            |map| insert(map, 1, 7),
            |map| {
                let pin = map.pin();
                let first = pin.get(&1).map(CheckedValue::get);
                assert!(first.is_none_or(|value| value == 7), "A2");
                assert!(first.is_none() || pin.get(&1).is_some(), "A4");
            },
            |map| assert_eq!(get(map, 1), Some(7), "A1"),
        ],
    );
}

#[test]
fn replace_the_old_value_or_the_new_one() {
    concurrently(
        Spread::Apart,
        &[1],
        [
            |map| insert(map, 1, 2),
            |map| {
                let pin = map.pin();
                let [first, second] = [(); 2].map(|()| pin.get(&1).unwrap().get());
                assert!((1..=2).contains(&first) && second >= first, "A4");
            },
            |map| assert_eq!((get(map, 1), map.len()), (Some(2), 1)),
        ],
    );
}

#[test]
fn remove_remaining_entries_are_found_after_removed_ones() {
    // The third entry is in the second line. A slot is used again, with the same tag.
    concurrently(
        Spread::Together,
        &[1, 2, 3],
        [
            |map| {
                map.pin().remove(&1);
                map.pin().remove(&2);
                insert(map, 9, 9);
            },
            |map| {
                let pin = map.pin();
                assert_eq!(pin.get(&3).map(CheckedValue::get), Some(3), "A3");
                assert!(pin.get(&1).is_none_or(|value| value.get() == 1), "A2");
                assert!(pin.get(&9).is_none_or(|value| value.get() == 9), "A2");
            },
            |map| assert_eq!(([1, 3, 9].map(|key| get(map, key))), [None, Some(3), Some(9)]),
        ],
    );
}

#[test]
fn move_a_key_that_moves_to_the_other_word_of_tags_is_absent_in_between() {
    // Both words of the home are full. The key leaves the second, and returns to the first.
    concurrently(
        Spread::Together,
        &[1, 2],
        [
            |map| {
                map.pin().remove(&1);
                map.pin().remove(&2);
                insert(map, 2, 20);
            },
            |map| {
                let pin = map.pin();
                let seen = [(); 2].map(|()| pin.get(&2).map(CheckedValue::get));
                assert!(seen[0] != Some(20) || seen[1] == Some(20), "A4");
                assert!(seen[0].is_some() || seen[1] != Some(2), "A4");
            },
            |map| assert_eq!((get(map, 1), get(map, 2), map.len()), (None, Some(20), 1)),
        ],
    );
}

#[test]
fn split_remaining_entries_are_found_in_the_old_segment_or_in_the_new() {
    // 1 and 2 are in the upper half.
    concurrently(
        Spread::Apart,
        &[1, 2, 5],
        [
            |map| insert(map, 8, 8),
            |map| {
                let pin = map.pin();
                assert_eq!(pin.get(&5).map(CheckedValue::get), Some(5), "A3");
                assert_eq!(pin.iter().filter(|(key, _)| **key <= 5).count(), 3, "B1");
            },
            |map| assert_eq!((get(map, 8), map.len()), (Some(8), 4)),
        ],
    );
}

#[test]
fn link_keys_that_collide_are_found_in_a_further_link() {
    // The directory is doubled, and the segment has no free slot after that.
    concurrently(
        Spread::Together,
        &[1, 2, 3, 4],
        [
            |map| insert(map, 5, 5),
            |map| {
                let pin = map.pin();
                let found = pin.get(&5).map(CheckedValue::get);
                assert!(found.is_none_or(|value| value == 5), "A2");
                assert!(found.is_none() || pin.iter().count() == 5, "A1");
                assert_eq!(pin.get(&4).map(CheckedValue::get), Some(4), "A3");
            },
            |map| assert_eq!((get(map, 5), map.len()), (Some(5), 5)),
        ],
    );
}

#[test]
fn merge_remaining_entries_are_found_in_the_old_segments_or_in_the_new() {
    // 1 and 2 are in the upper half.
    concurrently(
        Spread::Apart,
        &[1, 2, 5, 8],
        [
            |map| {
                let before = map.allocation_size();
                map.pin().remove(&2);
                map.pin().remove(&8);
                assert!(map.allocation_size() < before, "nothing was merged");
            },
            |map| {
                let pin = map.pin();
                assert_eq!(pin.get(&1).map(CheckedValue::get), Some(1), "A3");
                assert_eq!(pin.iter().filter(|(key, _)| [1, 5].contains(*key)).count(), 2, "B1");
            },
            |map| assert_eq!([1, 2, 5, 8].map(|key| get(map, key)), [Some(1), None, Some(5), None]),
        ],
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
