//! The guarantees T1 to T5 of `ConcurrentLcTrie`.

use std::ops::Bound;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use ::model::hashers::mix;
use ::model::histories::{Call, Clock, is_linearizable, random_op};
use ::model::scaled;
use ::model::threads::run_concurrently;
use flowtable::concurrent::ConcurrentLcTrie;
use flowtable::key::bits::BitString;

use super::misuse::flush_until;
use crate::perform::perform_on_trie;

type Trie = ConcurrentLcTrie<u64, u64>;

const KEYS: u64 = if cfg!(miri) { 8 } else { 64 };

/// Reads with one pin.
const BURST: u64 = if cfg!(miri) { 4 } else { 100 };

/// Steps of one thread. Fewer under a slow checker.
const ROUNDS: u64 = scaled(40_000, 4_000, 24);

/// A key of the set, in any part of the trie.
fn key(number: u64) -> u64 {
    mix(number % KEYS) & !0xFF | (number % KEYS)
}

/// Inserts and removes other keys, so that nodes are resized.
fn churn(trie: &Trie) {
    for round in 0..ROUNDS / 100 {
        let others = (0..100).map(|nth| mix(round << 8 | nth) | 0x80);
        others.clone().for_each(|key| assert!(trie.pin().insert(key, 0).is_ok()));
        others.for_each(|key| assert!(trie.pin().remove(&key).is_some()));
    }
}

#[test]
fn t1_t2_a_lookup_is_of_a_moment_between_its_begin_and_its_end() {
    let trie = Trie::new().with_garbage_limit(usize::MAX, 0);
    let [begun, done] = [(); 2].map(|()| Vec::from_iter((0..KEYS).map(|_| AtomicU64::new(0))));
    // Versions of a key: absent at multiples of four.
    let write = |writer: u64| {
        let mut pinned = trie.pin();
        for round in 0..ROUNDS {
            let at = mix(round) % (KEYS / 2) * 2 + writer;
            let version = begun[at as usize].load(Ordering::Relaxed) + 1;
            begun[at as usize].store(version, Ordering::Release);
            match version % 4 {
                0 => assert!(pinned.remove(&key(at)).is_some()),
                _ => assert!(pinned.insert(key(at), version).is_ok()),
            }
            done[at as usize].store(version, Ordering::Release);
            pinned.repin();
        }
    };
    let read = |round: u64| {
        let pinned = trie.pin();
        for at in (0..BURST).map(|nth| mix(round * BURST + nth) % KEYS) {
            let before = done[at as usize].load(Ordering::Acquire);
            let found = pinned.get(&key(at)).copied();
            let after = begun[at as usize].load(Ordering::Acquire);
            match found {
                Some(found) => assert!((before..=after).contains(&found)),
                None => assert!((before..=after).any(|version| version % 4 == 0)),
            }
        }
    };
    run_concurrently(&[&|| write(0), &|| write(1), &|| churn(&trie)], &[&read, &read]);
    trie.validate().unwrap();
}

#[test]
fn t3_an_iteration_is_in_order_and_complete() {
    let trie = Trie::new().with_garbage_limit(usize::MAX, 0);
    (0..KEYS).for_each(|at| assert!(trie.pin().insert(key(at), at).is_ok()));
    let read = |_| {
        let (pinned, mut found, mut last) = (trie.pin(), 0, None);
        for (key, _) in &pinned {
            assert!(last < Some(key), "in order");
            last = Some(key);
            found += u64::from(key & 0xFF < 0x80);
        }
        assert_eq!(found, KEYS);
    };
    // Keys of others have bit 7 set.
    const { assert!(KEYS <= 0x80) };
    run_concurrently(&[&|| churn(&trie)], &[&read]);
}

/// Odd values are removed; those that replace them are even, and are not.
#[test]
fn t3_a_value_that_replaces_a_rejected_one_stays() {
    let trie = Trie::new().with_garbage_limit(usize::MAX, 0);
    let write = |writer: u64| {
        for round in 0..ROUNDS / 8 {
            let at = key(mix(round) % (KEYS / 2) * 2 + writer);
            let even = 2 * round;
            let pinned = trie.pin();
            assert!(pinned.insert(at, even + 1).is_ok());
            assert!(pinned.get(&at).is_none_or(|value| *value == even + 1));
            assert!(pinned.insert(at, even).is_ok());
            assert_eq!(pinned.get(&at), Some(&even));
        }
    };
    let retain = |_| {
        let (pinned, mut last) = (trie.pin(), None);
        pinned.retain(|key, value| {
            assert!(last < Some(*key), "in order");
            last = Some(*key);
            value % 2 == 0
        });
    };
    run_concurrently(&[&|| write(0), &|| write(1)], &[&retain, &retain]);
    trie.validate().unwrap();
    assert!(trie.pin().iter().all(|(_, value)| value % 2 == 0));
}

/// The cost of retiring is that of some removals only.
#[test]
fn t5_entries_that_are_not_retained_share_the_cost_of_retiring() {
    const ENTRIES: u64 = if cfg!(miri) { 70 } else { 10_000 };
    let trie: Trie = (0..ENTRIES).map(|at| (mix(at), at)).collect();
    flush_until(|| trie.garbage() == 0);
    let reader = trie.pin();
    reader.retain(|_, value| value % 10 == 0);
    assert_eq!(trie.len() as u64, ENTRIES.div_ceil(10));
    assert!(trie.garbage() as u64 <= ENTRIES * (2304 / 64 + 16 + 300) + 2304);
    drop(reader);
    flush_until(|| trie.garbage() == 0);
}

#[test]
fn t4_a_reference_outlives_the_entry() {
    let trie = Trie::new().with_garbage_limit(usize::MAX, 0);
    let pinned = trie.pin();
    (0..KEYS).for_each(|at| assert!(pinned.insert(key(at), at).is_ok()));
    let values: Vec<&u64> = (0..KEYS).filter_map(|at| pinned.get(&key(at))).collect();
    pinned.clear();
    churn(&trie);
    assert!(values.into_iter().copied().eq(0..KEYS));
}

#[test]
fn t5_garbage_is_bounded_and_refusals_change_nothing() {
    const LIMIT: usize = 50_000;
    let trie = Trie::new().with_garbage_limit(LIMIT, 0);
    let reader = trie.pin();
    let mut refused = 0;
    for now in 0..ROUNDS.min(2000) {
        if let Err(error) = trie.pin().insert(7, now) {
            refused += 1;
            let (retired, limit) = crate::guarantees::garbage_of(error.reason).unwrap();
            assert!(error.refused == (7, now) && retired > LIMIT && limit == LIMIT);
            assert!(*reader.get(&7).unwrap() < now);
        }
        assert!(trie.garbage() < LIMIT + 5000);
    }
    assert!(cfg!(miri) || refused > 0);
    assert!(reader.remove(&7).is_some() && trie.is_empty());
}

/// A reader that never repins: each removal adds its leaf, the nodes that it replaces, and 2.3 KB.
#[test]
fn t5_removals_are_not_refused_above_the_limit() {
    const REMOVALS: u64 = if cfg!(miri) { 20 } else { 1000 };
    let trie = Trie::new().with_garbage_limit(10_000, 0);
    (0..REMOVALS).for_each(|at| _ = trie.pin().insert(mix(at), at));
    let reader = trie.pin();
    let present = trie.len() as u64;
    let mut removed = 0;
    for at in 0..REMOVALS {
        removed += u64::from(trie.pin().remove(&mix(at)).is_some());
    }
    assert_eq!((removed, trie.len()), (present, 0));
    assert!(cfg!(miri) || trie.garbage() > 10_000);
    // Halvings replace nodes of 16 bytes for each entry, a few times in all.
    assert!(trie.garbage() as u64 <= 10_000 + REMOVALS * (2304 + 16 + 300));
    assert!(cfg!(miri) || trie.pin().insert(mix(0), 0).is_err(), "T5");
    drop(reader);
    flush_until(|| trie.garbage() == 0);
    assert_eq!(trie.pin().insert(mix(0), 0), Ok(None));
}

#[test]
fn histories_are_linearizable() {
    for seed in 0..scaled(1500, 200, 3) {
        let (trie, clock, start) = (Trie::new(), Clock::new(), Barrier::new(3));
        let play = |thread: u64| {
            start.wait();
            let pinned = trie.pin();
            let call = |nth: u64| {
                let (key, op) = random_op(seed << 20 | thread << 16 | nth, 3);
                perform_on_trie(&pinned, &clock, key, op)
            };
            (0..5).map(call).collect::<Vec<Call>>()
        };
        let mut calls: Vec<Call> = thread::scope(|scope| {
            let play = &play;
            let threads: Vec<_> = (0..3).map(|thread| scope.spawn(move || play(thread))).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        calls.sort_by_key(|call| call.begun);
        assert!(is_linearizable(&calls), "seed {seed}: {calls:#?}");
        trie.validate().unwrap();
    }
}

#[test]
fn can_be_sent_and_shared() {
    fn is<T: Send + Sync>() {}
    is::<ConcurrentLcTrie<u32, String>>();
}

/// An iterator that has ended returns nothing any more, also if entries are inserted.
#[test]
fn iterators_are_fused_and_tries_are_formatted_as_maps() {
    let trie = ConcurrentLcTrie::<u32, char>::new();
    let pinned = trie.pin();
    pinned.insert(1, 'a').unwrap();
    let mut entries = pinned.iter();
    assert_eq!((entries.next(), entries.next()), (Some((1, &'a')), None));
    pinned.insert(2, 'b').unwrap();
    assert_eq!(entries.next(), None);
    assert_eq!(format!("{trie:?}"), "{1: 'a', 2: 'b'}");
}

/// Keys of a million bits, each of which differs from the former one in a later bit: a trie as deep
/// as there are keys.
#[test]
fn a_deep_trie_needs_no_stack() {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    struct Ones(u32);

    impl BitString for Ones {
        const BITS: u32 = 1 << 20;

        fn window(&self, pos: u32) -> u64 {
            match self.0.saturating_sub(pos) {
                0 => 0,
                ones @ 1..64 => u64::MAX << (64 - ones),
                _ => u64::MAX,
            }
        }
    }

    let count = if cfg!(miri) { 20 } else { 600 };
    let trie = ConcurrentLcTrie::<Ones, u32>::new();
    for number in 0..count {
        assert!(trie.pin().insert(Ones(number * 64), number).is_ok());
    }
    let thread = std::thread::Builder::new().stack_size(32 << 10);
    std::thread::scope(|scope| {
        let iterate = || {
            let pinned = trie.pin();
            assert_eq!(pinned.after(&Ones(0)).map(|(_, number)| *number), Some(1));
            assert_eq!(pinned.iter_from(Bound::Included(Ones(count * 60))).count(), {
                (0..count).filter(|number| number * 64 >= count * 60).count()
            });
            trie.validate().unwrap();
        };
        thread.spawn_scoped(scope, iterate).unwrap();
    });
    assert!(trie.depths().len() > count as usize / 64);
}
