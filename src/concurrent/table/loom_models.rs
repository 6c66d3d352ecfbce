//! Models of the protocols for loom, which runs them in all interleavings with few preemptions.
//!
//! Under a checker a table has two shards, and a segment one group before it grows. All keys of a
//! test are in one shard, and have one home if the test requires it.

use loom::sync::Arc;
use loom::thread;

use super::{ConcurrentTable, NoUninit};
use crate::concurrent::loom_hasher::Spread;

type Table<V> = ConcurrentTable<u64, V, Spread>;

/// Runs two closures concurrently on a table with the keys 1 to `keys`, and then a third one.
fn concurrently<V: NoUninit + Send>(
    spread: Spread,
    keys: core::ops::RangeInclusive<u64>,
    value: fn(u64) -> V,
    [one, other, then]: [fn(&Table<V>); 3],
) {
    let mut builder = loom::model::Builder::new();
    // Filling a table takes many steps, without another thread.
    builder.max_branches = 10_000;
    builder.check(move || {
        let mut table = ConcurrentTable::with_hasher(spread);
        for key in keys.clone() {
            table.pin().insert(key, value(key)).unwrap();
        }
        let shared = Arc::new(table);
        let clone = Arc::clone(&shared);
        let thread = thread::spawn(move || one(&clone));
        other(&shared);
        thread.join().unwrap();
        then(&shared);
        table = Arc::try_unwrap(shared).ok().unwrap();
        drop(table);
    });
}

fn insert(table: &Table<u64>, key: u64, value: u64) {
    table.pin().insert(key, value).unwrap();
}

/// Both words of a value are the same.
fn pair(number: u64) -> [u64; 2] {
    [number; 2]
}

#[test]
fn publish_an_entry_is_seen_whole_or_not_at_all() {
    concurrently(
        Spread::Apart,
        1..=0,
        pair,
        [
            |table| assert_eq!(table.pin().insert(1, pair(7)), Ok(None)),
            |table| {
                let pin = table.pin();
                let first = pin.get(&1);
                assert!(first.is_none_or(|value| value == pair(7)), "A2");
                assert!(first.is_none() || pin.get(&1).is_some(), "A4");
            },
            |table| assert_eq!(table.pin().get(&1), Some(pair(7)), "A1"),
        ],
    );
}

#[test]
fn replace_a_word_the_old_value_or_the_new_one() {
    concurrently(
        Spread::Apart,
        1..=1,
        |_| 1,
        [
            |table| insert(table, 1, 2),
            |table| {
                let pin = table.pin();
                let [first, second] = [(); 2].map(|()| pin.get(&1).unwrap());
                assert!((1..=2).contains(&first) && second >= first);
            },
            |table| assert_eq!(table.pin().get(&1), Some(2)),
        ],
    );
}

#[test]
fn replace_two_words_the_old_value_or_the_new_one_whole() {
    concurrently(
        Spread::Apart,
        1..=1,
        |_| pair(1),
        [
            |table| {
                for number in 2..=3 {
                    table.pin().insert(1, pair(number)).unwrap();
                }
            },
            |table| {
                let pin = table.pin();
                let [first, second] = [(); 2].map(|()| pin.get(&1).expect("A3"));
                assert!(first == pair(first[0]) && second == pair(second[0]), "A2");
                assert!(second[0] >= first[0], "A4");
            },
            |table| assert_eq!((table.pin().get(&1), table.len()), (Some(pair(3)), 1)),
        ],
    );
}

#[test]
fn replace_two_words_in_a_later_group() {
    // Five slots: the first group is full of entries, the new value is in the second one.
    concurrently(
        Spread::Together,
        1..=6,
        pair,
        [
            |table| assert_eq!(table.pin().insert(1, pair(9)), Ok(Some(pair(1)))),
            |table| {
                let pin = table.pin();
                let first = pin.get(&1).expect("A3");
                let second = pin.get(&1).expect("A3");
                assert!(first == pair(1) || first == pair(9), "A2");
                assert!(second == pair(9) || second == first, "A4");
            },
            |table| assert_eq!((table.pin().get(&1), table.len()), (Some(pair(9)), 6)),
        ],
    );
}

#[test]
fn remove_remaining_entries_are_found_after_removed_ones() {
    // More than a group has: the last one overflows.
    concurrently(
        Spread::Together,
        1..=8,
        |key| key,
        [
            |table| {
                assert_eq!(table.pin().remove(&1), Some(1));
                insert(table, 9, 9);
            },
            |table| {
                let pin = table.pin();
                assert_eq!(pin.get(&8), Some(8), "A3");
                assert!(pin.get(&1).is_none_or(|value| value == 1));
                assert!(pin.get(&9).is_none_or(|value| value == 9));
            },
            |table| assert_eq!(table.len(), 8),
        ],
    );
}

#[test]
fn grow_remaining_entries_are_found_in_the_old_segment_or_in_the_new() {
    concurrently(
        Spread::Apart,
        1..=5,
        |key| key,
        [
            |table| insert(table, 6, 6),
            |table| {
                let pin = table.pin();
                assert_eq!(pin.get(&5), Some(5), "A3");
                let first = pin.get(&6);
                assert!(first.is_none() || pin.get(&6).is_some(), "A4");
            },
            |table| assert_eq!((table.pin().get(&6), table.len()), (Some(6), 6)),
        ],
    );
}

#[test]
fn add_no_addition_is_lost_while_a_segment_grows() {
    concurrently(
        Spread::Apart,
        1..=5,
        |_| 0,
        [
            |table| {
                insert(table, 6, 0);
                assert!(table.pin().fetch_add(&1, 1).is_some());
            },
            |table| assert!(table.pin().fetch_add(&1, 1).is_some()),
            |table| assert_eq!(table.pin().get(&1), Some(2), "C2"),
        ],
    );
}

#[test]
fn split_remaining_entries_are_found_in_either_half() {
    concurrently(
        Spread::Apart,
        1..=8,
        pair,
        [
            |table| assert_eq!(table.pin().insert(9, pair(9)), Ok(None)),
            |table| {
                let pin = table.pin();
                assert_eq!((pin.get(&1), pin.get(&8)), (Some(pair(1)), Some(pair(8))), "A3");
            },
            |table| assert_eq!((table.pin().get(&9), table.len()), (Some(pair(9)), 9)),
        ],
    );
}
