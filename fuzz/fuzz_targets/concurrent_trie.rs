//! `ConcurrentLcTrie` compared with `BTreeMap` on one thread, with pins that are held and released,
//! and every invariant checked after every step.
#![no_main]

use std::collections::BTreeMap;

use arbitrary::Arbitrary;
use flowtable::concurrent::{ConcurrentLcTrie, Pinned};
use flowtable_fuzz::{Dials, Edge, Key, KeyType, Seed, Seeds, with_keys};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    keys: KeyType,
    tuning: Dials,
    limit: Option<u16>,
    ops: Vec<Op>,
}

#[derive(Arbitrary, Debug)]
enum Op {
    Insert(Seeds),
    Remove(Seeds),
    Get(Seed),
    Iterate(Edge),
    Retain(u8),
    Clear,
    Repin,
    Flush,
    Hold,
    LetGo,
}

fuzz_target!(|input: Input| with_keys!(input.keys, run(input)));

fn run<K: Key + Send + Sync + 'static>(input: Input) {
    let mut trie = ConcurrentLcTrie::with_tuning(input.tuning.tuning());
    if let Some(limit) = input.limit {
        trie = trie.with_garbage_limit(limit.into(), 0);
    }
    let mut model = BTreeMap::new();
    let mut held = Vec::new();
    let mut pin = trie.pin();
    for (op, now) in input.ops.into_iter().zip(1..) {
        match op {
            Op::Repin => pin.repin(),
            Op::Hold => held.push(trie.pin()),
            Op::LetGo => drop(held.pop()),
            op => step::<K>(&pin, &mut model, op, now),
        }
        trie.validate().expect("invariant");
        assert_eq!(trie.len(), model.len());
    }
    assert!(pin.iter().eq(model.iter().map(|(key, value)| (key.clone(), value))));
    assert_eq!(trie.depths().into_iter().sum::<usize>(), model.len());
}

fn step<K: Key + Send + Sync + 'static>(
    pin: &Pinned<'_, ConcurrentLcTrie<K, u64>>,
    model: &mut BTreeMap<K, u64>,
    op: Op,
    now: u64,
) {
    match op {
        Op::Insert(seeds) => {
            for key in seeds.iter().map(K::grow) {
                match pin.insert(key.clone(), now) {
                    Ok(old) => assert_eq!(old.copied(), model.insert(key, now)),
                    Err(error) => assert_eq!(error.refused, (key, now)),
                }
            }
        }
        Op::Remove(seeds) => {
            for key in seeds.iter().map(K::grow) {
                assert_eq!(pin.remove(&key).copied(), model.remove(&key));
            }
        }
        Op::Get(seed) => {
            let key = K::grow(seed);
            assert_eq!(pin.get(&key), model.get(&key));
            assert_eq!(pin.contains_key(&key), model.contains_key(&key));
        }
        Op::Iterate(edge) => {
            let from = edge.bound::<K>();
            let ours = pin.iter_from(from.clone());
            let theirs = model.range((from, std::ops::Bound::Unbounded));
            assert!(ours.eq(theirs.map(|(key, value)| (key.clone(), value))));
        }
        Op::Retain(divisor) => {
            let keep = |value: u64| value % (1 + u64::from(divisor)) > 0;
            pin.retain(|_, value| keep(*value));
            model.retain(|_, value| keep(*value));
        }
        Op::Clear => {
            pin.clear();
            model.clear();
        }
        Op::Flush => pin.flush(),
        Op::Repin | Op::Hold | Op::LetGo => unreachable!("of the pins, in `run`"),
    }
}
