//! `ConcurrentLcTrie` against an ordered map and the sequential trie, with pins that are held, and
//! the invariants checked after each step.

use model::cases;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ::model::drop_record::{DropRecord, Token};
use flowtable::LcTrieMap;
use flowtable::concurrent::{ConcurrentLcTrie, Pinned};
use flowtable::trie::Tuning;
use proptest::collection::vec;
use proptest::prelude::*;

use super::misuse::flush_until;

#[derive(Clone, Debug)]
enum Op {
    Insert(u32, u32),
    /// Consecutive keys, which make nodes grow.
    Fill(u32),
    Remove(u32),
    /// The removal of all keys of a range.
    Drain(u32, u32),
    Get(u32),
    /// The removal of values that are multiples.
    Retain(u32),
    Clear,
    Hold,
    Repin,
    LetGo,
}

fn key() -> impl Strategy<Value = u32> {
    prop_oneof![0..20_u32, (0..8_u32).prop_map(|at| at << 29), any::<u32>()]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (key(), any::<u32>()).prop_map(|(key, value)| Op::Insert(key, value)),
        2 => key().prop_map(Op::Fill),
        4 => key().prop_map(Op::Remove),
        1 => (key(), 0..99_u32).prop_map(|(from, count)| Op::Drain(from, count)),
        3 => key().prop_map(Op::Get),
        1 => (1..5_u32).prop_map(Op::Retain),
        1 => Just(Op::Clear),
        1 => Just(Op::Hold),
        1 => Just(Op::Repin),
        1 => Just(Op::LetGo),
    ]
}

fn run(ops: Vec<Op>, tuning: Tuning) {
    let trie = ConcurrentLcTrie::with_tuning(tuning).with_garbage_limit(usize::MAX, 0);
    let (mut model, mut sequential) = (BTreeMap::new(), LcTrieMap::with_tuning(tuning));
    let mut held = Vec::new();
    for op in ops {
        let pinned = trie.pin();
        let mut insert = |key, value| {
            assert_eq!(pinned.insert(key, value).unwrap().copied(), model.insert(key, value));
            sequential.insert(key, value);
        };
        match op {
            Op::Insert(key, value) => insert(key, value),
            Op::Fill(from) => (0..70).for_each(|nth| insert(from.wrapping_add(nth), nth)),
            Op::Remove(key) => {
                assert_eq!(pinned.remove(&key).copied(), model.remove(&key));
                sequential.remove(&key);
            }
            Op::Drain(from, count) => {
                for key in (0..count).map(|nth| from.wrapping_add(nth)) {
                    assert_eq!(pinned.remove(&key).copied(), model.remove(&key));
                    sequential.remove(&key);
                }
            }
            Op::Get(key) => {
                assert_eq!(pinned.get(&key), model.get(&key));
                let after = model.range((Bound::Excluded(key), Bound::Unbounded)).next();
                assert_eq!(pinned.after(&key), after.map(|(&key, value)| (key, value)));
                let from = pinned.iter_from(Bound::Included(key)).map(|(key, _)| key);
                assert!(from.eq(model.range(key..).map(|(&key, _)| key)));
            }
            Op::Retain(divisor) => {
                let mut judged = Vec::new();
                pinned.retain(|key, value| {
                    judged.push((*key, *value));
                    value % divisor > 0
                });
                assert!(judged.into_iter().eq(model.iter().map(|(&key, &value)| (key, value))));
                model.retain(|key, value| {
                    let is_kept = *value % divisor > 0;
                    if !is_kept {
                        sequential.remove(key);
                    }
                    is_kept
                });
            }
            Op::Clear => {
                pinned.clear();
                model.clear();
                sequential.clear();
            }
            Op::Hold => held.push(trie.pin()),
            Op::Repin => held.iter_mut().for_each(Pinned::repin),
            Op::LetGo => drop(held.pop()),
        }
        trie.validate().unwrap();
        assert_eq!(trie.len(), model.len());
        let pin = trie.pin();
        assert_eq!((pin.len(), pin.is_empty()), (model.len(), model.is_empty()));
    }
    let pinned = trie.pin();
    assert!(pinned.iter().eq(model.iter().map(|(&key, value)| (key, value))));
    // The shape is that of the sequential trie.
    let mut depths = sequential.shape().leaves_by_depth;
    depths.truncate(depths.iter().rposition(|&count| count > 0).map_or(0, |at| at + 1));
    assert_eq!(trie.depths(), depths);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(300, 2)))]

    #[test]
    fn entries_and_shapes_are_those_of_the_models(
        ops in vec(op(), 0..if cfg!(miri) { 20 } else { 80 }),
        is_default in any::<bool>(),
    ) {
        run(ops, if is_default { Tuning::default() } else { Tuning::TRASH_2006 });
    }
}

#[test]
fn a_trie_is_collected_and_extended() {
    let count = if cfg!(miri) { 40 } else { 1000 };
    let mut trie: ConcurrentLcTrie<u32, u32> = (0..count).map(|key| (key, key)).collect();
    trie.extend((count / 2..count + 10).map(|key| (key, 2 * key)));
    (&trie).extend([(count + 10, 0)]);
    trie.validate().unwrap();
    let entries = (0..count / 2).map(|key| (key, key));
    let entries = entries.chain((count / 2..count + 10).map(|key| (key, 2 * key)));
    let found = trie.pin().iter().map(|(key, value)| (key, *value)).collect::<Vec<_>>();
    assert!(found.into_iter().eq(entries.chain([(count + 10, 0)])));
}

#[test]
fn an_extension_that_is_refused_panics() {
    let trie = ConcurrentLcTrie::<u32, u32>::new().with_garbage_limit(0, 0);
    let reader = trie.pin();
    let extend = || (&trie).extend((0..9).map(|number| (7, number)));
    assert!(catch_unwind(AssertUnwindSafe(extend)).is_err());
    assert_eq!(reader.get(&7), Some(&1));
    trie.validate().unwrap();
}

#[test]
fn wide_keys() {
    let trie = ConcurrentLcTrie::<[u8; 13], u32>::new();
    let key = |number: u32| {
        let mut key = [7; 13];
        key[2..6].copy_from_slice(&number.reverse_bits().to_le_bytes());
        key[9..13].copy_from_slice(&number.to_be_bytes());
        key
    };
    let count = if cfg!(miri) { 20 } else { 3000 };
    (0..count).for_each(|number| assert!(trie.pin().insert(key(number), number).is_ok()));
    trie.validate().unwrap();
    let pinned = trie.pin();
    assert!((0..count).all(|number| pinned.get(&key(number)) == Some(&number)));
    assert!(pinned.iter().map(|(key, _)| key).is_sorted());
}

#[test]
fn values_are_dropped_once() {
    static DROPS: DropRecord = DropRecord::new();
    let count = if cfg!(miri) { 20 } else { 2000 };
    let trie = ConcurrentLcTrie::<u32, Token>::new();
    let mut pinned = trie.pin();
    for number in 0..count {
        drop(pinned.insert(number % (count / 2), DROPS.token()));
        if number % 3 == 0 {
            assert!(pinned.remove(&(number % (count / 2))).is_some_and(Token::is_alive));
        }
        pinned.repin();
    }
    assert!(pinned.iter().all(|(_, value)| value.is_alive()));
    drop(pinned);
    flush_until(|| trie.garbage() + trie.pin().garbage() == 0 && DROPS.alive() == trie.len());
    drop(trie);
    assert_eq!(DROPS.alive(), 0);
}

/// The first panic of a destructor leaves `drop` after all entries have been dropped.
#[test]
fn a_trie_drops_all_entries_even_if_destructors_panic() {
    static DROPS: DropRecord = DropRecord::new();
    let trie = ConcurrentLcTrie::<u32, Token>::new();
    for number in 0..40 {
        let token = if number % 8 == 3 { DROPS.panicking_token() } else { DROPS.token() };
        assert!(trie.pin().insert(number, token).is_ok());
    }
    assert!(catch_unwind(AssertUnwindSafe(|| drop(trie))).is_err());
    assert_eq!((DROPS.made(), DROPS.alive()), (40, 0));
}

/// Panics of destructors at reclamation stay there: everything else is dropped, and the trie works.
#[test]
fn values_that_panic_when_they_are_reclaimed_are_dropped_once() {
    static DROPS: DropRecord = DropRecord::new();
    let trie = ConcurrentLcTrie::<u32, Token>::new();
    for number in 0..if cfg!(miri) { 20 } else { 2000 } {
        let token = if number % 4 == 1 { DROPS.panicking_token() } else { DROPS.token() };
        let pinned = trie.pin();
        assert!(pinned.insert(number % 50, token).is_ok());
        if number % 3 == 0 {
            assert!(pinned.remove(&(number % 50)).is_some());
        }
    }
    trie.pin().clear();
    flush_until(|| trie.garbage() == 0 && DROPS.alive() == 0);
    assert!(trie.is_empty() && trie.pin().insert(7, DROPS.token()).is_ok());
    drop(trie);
    assert_eq!(DROPS.alive(), 0);
}
