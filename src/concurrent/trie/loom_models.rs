//! Models of the protocols for loom, which runs them in all interleavings with few preemptions.

use loom::sync::Arc;
use loom::thread;

use super::ConcurrentLcTrie;

type Trie = ConcurrentLcTrie<u8, u32>;

fn insert(trie: &Trie, key: u8, value: u32) {
    trie.pin().insert(key, value).unwrap();
}

fn get(trie: &Trie, key: u8) -> Option<u32> {
    trie.pin().get(&key).copied()
}

/// Runs two closures concurrently on a trie with these keys, and then a third one.
fn concurrently<const N: usize>(keys: [u8; N], [one, other, then]: [fn(&Trie); 3]) {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 10_000;
    builder.check(move || {
        let shared = Arc::new(Trie::new());
        keys.iter().for_each(|&key| insert(&shared, key, key.into()));
        let clone = Arc::clone(&shared);
        let thread = thread::spawn(move || one(&clone));
        other(&shared);
        thread.join().unwrap();
        then(&shared);
        shared.validate().unwrap();
    });
}

#[test]
fn publish_an_entry_is_seen_whole_or_not_at_all() {
    concurrently(
        [0x80],
        [
            |trie| insert(trie, 0x81, 7),
            |trie| {
                let pin = trie.pin();
                let [first, second] = [(); 2].map(|()| pin.get(&0x81).copied());
                assert!(first.is_none_or(|value| value == 7) && second >= first, "T2");
                assert_eq!(pin.get(&0x80), Some(&0x80), "T2");
            },
            |trie| assert_eq!(get(trie, 0x81), Some(7), "T1"),
        ],
    );
}

#[test]
fn replace_a_value_the_old_or_the_new_one() {
    concurrently(
        [1, 2],
        [
            |trie| insert(trie, 1, 7),
            |trie| {
                let pin = trie.pin();
                let first = pin.get(&1).unwrap();
                let value = *first;
                assert!(*pin.get(&1).unwrap() >= value && *first == value, "T2, T4");
            },
            |trie| assert_eq!(get(trie, 1), Some(7), "T1"),
        ],
    );
}

#[test]
fn resize_a_node_no_entry_is_invisible() {
    concurrently(
        [0x00, 0x40, 0x80],
        [
            // The root is doubled, and halved again.
            |trie| {
                insert(trie, 0xC0, 7);
                trie.pin().remove(&0xC0);
            },
            |trie| assert_eq!([get(trie, 0x40), get(trie, 0x80)], [Some(0x40), Some(0x80)], "T2"),
            |trie| assert_eq!(trie.pin().iter().count(), 3),
        ],
    );
}

#[test]
fn remove_an_entry_its_value_stays_under_the_pin() {
    concurrently(
        [1, 2, 3],
        [
            |trie| assert!(trie.pin().remove(&2).is_some()),
            |trie| {
                let pin = trie.pin();
                let value = pin.get(&2);
                let is_removed = pin.get(&2).is_none();
                assert!(value.is_none_or(|&value| value == 2) && (value.is_some() || is_removed));
                assert_eq!(pin.after(&2), Some((3, &3)), "T3");
            },
            |trie| assert_eq!(get(trie, 2), None, "T1"),
        ],
    );
}
