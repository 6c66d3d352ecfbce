//! The operations of a recorded history on a `ConcurrentMap`, a `ConcurrentTable` or a
//! `ConcurrentLcTrie`.

use core::hash::BuildHasher;

use flowtable::concurrent::{Compute, Computed, ConcurrentLcTrie, ConcurrentMap};
use flowtable::concurrent::{ConcurrentTable, NoUninit, Pinned};
use model::histories::{Call, Clock, Op};

/// Performs `op`; closures call `pause`.
pub(crate) fn perform<S: BuildHasher>(
    pin: &Pinned<'_, ConcurrentMap<u64, u64, S>>,
    key: u64,
    op: Op,
    pause: &mut dyn FnMut(),
) -> Option<u64> {
    match op {
        Op::Insert(value) => pin.insert(key, value).unwrap().copied(),
        Op::Remove => pin.remove(&key).copied(),
        Op::Get => pin.get(&key).copied(),
        Op::Update => {
            let update = |value: &u64| {
                pause();
                value + 1
            };
            pin.update(&key, update).unwrap().copied()
        }
        Op::GetOrInsert(value) => pin.get_or_insert(key, value).ok().copied(),
        Op::GetOrInsertWith(value) => {
            let make = || {
                pause();
                value
            };
            pin.get_or_insert_with(&key, make).ok().copied()
        }
        Op::Compute(value) => {
            let compute = |now: Option<&u64>| {
                pause();
                match now {
                    None => Compute::Insert(value),
                    Some(now) if now % 2 == 1 => Compute::Insert(2 * now),
                    Some(_) => Compute::Remove,
                }
            };
            match pin.compute(&key, compute).unwrap() {
                Computed::Inserted(new) => {
                    assert_eq!(*new, value);
                    None
                }
                Computed::Updated { old, new } => {
                    assert_eq!(*new, 2 * old);
                    Some(*old)
                }
                Computed::Removed(old) => Some(*old),
                Computed::Kept(now) => panic!("{now:?} is unexpectedly kept"),
            }
        }
        Op::Look => {
            let look = |_: Option<&u64>| {
                pause();
                Compute::Keep
            };
            match pin.compute(&key, look).unwrap() {
                Computed::Kept(now) => now.copied(),
                other => panic!("{other:?}"),
            }
        }
    }
}

/// How a value is made of a number, and read.
pub(crate) type Codec<V> = (fn(u64) -> V, fn(V) -> u64);

/// Returns the operation that a table performs in place of `op`: it has no `compute`.
pub(crate) fn on_table(op: Op) -> Op {
    match op {
        Op::Compute(value) => Op::Insert(value),
        Op::GetOrInsertWith(value) => Op::GetOrInsert(value),
        Op::Look => Op::Get,
        op => op,
    }
}

/// Performs an operation of [`on_table`] on a `ConcurrentTable`, with numbers as values; closures
/// call `pause`.
pub(crate) fn perform_on_table<V: NoUninit, S: BuildHasher>(
    pin: &Pinned<'_, ConcurrentTable<u64, V, S>>,
    key: u64,
    op: Op,
    (make, read): Codec<V>,
    pause: &mut dyn FnMut(),
) -> Option<u64> {
    let result = match op {
        Op::Insert(value) => pin.insert(key, make(value)).unwrap(),
        Op::Remove => pin.remove(&key),
        Op::Get => pin.get(&key),
        Op::Update => {
            let update = |value: V| {
                pause();
                make(read(value) + 1)
            };
            pin.update(&key, update).unwrap()
        }
        Op::GetOrInsert(value) => pin.get_or_insert(&key, make(value)).ok(),
        op => unreachable!("{op:?}"),
    };
    result.map(read)
}

/// Performs the operation on a trie that is closest to `op`, and returns it: a trie has no updates.
pub(crate) fn perform_on_trie(
    pin: &Pinned<'_, ConcurrentLcTrie<u64, u64>>,
    clock: &Clock,
    key: u64,
    op: Op,
) -> Call {
    let (op, wide) = match op {
        Op::Insert(value) | Op::GetOrInsert(value) | Op::Compute(value) => (Op::Insert(value), key),
        Op::Remove => (Op::Remove, key),
        _ => (Op::Get, key),
    };
    // Keys that differ in their first bits, so that they are below different slots.
    let wide = wide << 62 | wide;
    clock.call(key, op, || match op {
        Op::Insert(value) => pin.insert(wide, value).unwrap().copied(),
        Op::Remove => pin.remove(&wide).copied(),
        _ => pin.get(&wide).copied(),
    })
}
