//! Histories of calls that overlap, and whether they could have come from calls one after the other.
//!
//! Each call is written down with the time at which it began and the time at which it was done. It is
//! linearizable if there is a moment for each call between the two, so that the calls give the same
//! results one after the other in the order of these moments. A map is linearizable when each of its
//! keys is, so a history is judged key by key. Herlihy & Wing, TOPLAS 1990; the search is that of
//! Wing & Gong, JPDC 1993: take any call that began before all others that are left were done, go on
//! with the rest, and go back when the results do not fit. What has been searched is remembered, as
//! in Lowe, CCPE 2017.
#![allow(dead_code, reason = "not every test needs all")]

use core::hash::BuildHasher;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

use flowtable::concurrent::{Compute, Computed, Pinned};

use super::weak::mix;

/// What is done to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Insert(u64),
    Remove,
    Get,
    /// Adds one.
    Update,
    GetOrInsert(u64),
    GetOrInsertWith(u64),
    /// Puts a value in where there is none, doubles an odd one, removes an even one.
    Compute(u64),
    /// Leaves it.
    Look,
}

/// What an operation makes of what is there, and what it returns.
fn apply(op: Op, now: Option<u64>) -> (Option<u64>, Option<u64>) {
    match (op, now) {
        (Op::Insert(value), _) => (Some(value), now),
        (Op::Remove, _) => (None, now),
        (Op::Get | Op::Look, _) => (now, now),
        (Op::Update, _) => (now.map(|value| value + 1), now.map(|value| value + 1)),
        (Op::GetOrInsert(value) | Op::GetOrInsertWith(value), _) => {
            (now.or(Some(value)), now.or(Some(value)))
        }
        (Op::Compute(value), None) => (Some(value), None),
        (Op::Compute(_), Some(value)) if value % 2 == 1 => (Some(2 * value), now),
        (Op::Compute(_), Some(_)) => (None, now),
    }
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) key: u64,
    pub(crate) op: Op,
    pub(crate) result: Option<u64>,
    pub(crate) begun: u64,
    pub(crate) done: u64,
}

/// Tells times that are all different.
pub(crate) struct Watch(AtomicU64);

impl Watch {
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    fn time(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }

    /// Does `op`, calling `pause` wherever a closure is run, and writes it down.
    pub(crate) fn call<S: BuildHasher>(
        &self,
        pin: &Pinned<'_, u64, u64, S>,
        key: u64,
        op: Op,
        pause: &mut dyn FnMut(),
    ) -> Call {
        let begun = self.time();
        let result = perform(pin, key, op, pause);
        Call { key, op, result, begun, done: self.time() }
    }
}

fn perform<S: BuildHasher>(
    pin: &Pinned<'_, u64, u64, S>,
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
            pin.update(key, update).unwrap().copied()
        }
        Op::GetOrInsert(value) => pin.get_or_insert(key, value).ok().copied(),
        Op::GetOrInsertWith(value) => {
            let make = || {
                pause();
                value
            };
            pin.get_or_insert_with(key, make).ok().copied()
        }
        Op::Compute(value) => {
            let compute = |now: Option<&u64>| {
                pause();
                match now {
                    None => Compute::Put(value),
                    Some(now) if now % 2 == 1 => Compute::Put(2 * now),
                    Some(_) => Compute::Remove,
                }
            };
            match pin.compute(key, compute).unwrap() {
                Computed::Inserted(new) => {
                    assert_eq!(*new, value);
                    None
                }
                Computed::Updated { old, new } => {
                    assert_eq!(*new, 2 * old);
                    Some(*old)
                }
                Computed::Removed(old) => Some(*old),
                Computed::Kept(now) => panic!("{now:?} was not to be kept"),
            }
        }
        Op::Look => {
            let look = |_: Option<&u64>| {
                pause();
                Compute::Keep
            };
            match pin.compute(key, look).unwrap() {
                Computed::Kept(now) => now.copied(),
                other => panic!("{other:?}"),
            }
        }
    }
}

/// A call of a thread, by a number.
pub(crate) fn drawn(number: u64, keys: u64) -> (u64, Op) {
    let number = mix(number);
    // Values that tell the calls apart; small ones, so that adding and doubling do not end.
    let value = number >> 32 & 0xffff;
    let op = match number >> 8 & 15 {
        0..3 => Op::Insert(value),
        3..6 => Op::Remove,
        6..9 => Op::Get,
        9..11 => Op::Update,
        11 => Op::GetOrInsert(value),
        12 => Op::GetOrInsertWith(value),
        13..15 => Op::Compute(value),
        _ => Op::Look,
    };
    (number % keys, op)
}

/// Whether the calls to each key can be put in an order. All keys begin without a value.
pub(crate) fn is_linearizable(calls: &[Call]) -> bool {
    let mut keys: Vec<u64> = calls.iter().map(|call| call.key).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter().all(|key| {
        let of_key: Vec<Call> = calls.iter().filter(|call| call.key == key).copied().collect();
        assert!(of_key.len() < 64, "a bit of a word for each call");
        search(&of_key, (1 << of_key.len()) - 1, None, &mut HashSet::new())
    })
}

/// Whether the calls that are `left` fit what is there `now`.
fn search(
    calls: &[Call],
    left: u64,
    now: Option<u64>,
    searched: &mut HashSet<(u64, Option<u64>)>,
) -> bool {
    if left == 0 {
        return true;
    }
    if !searched.insert((left, now)) {
        return false;
    }
    let is_left = |at: &usize| left >> at & 1 == 1;
    let first_done = (0..calls.len()).filter(is_left).map(|at| calls[at].done).min();
    (0..calls.len()).filter(is_left).any(|at| {
        let call = &calls[at];
        let (then, result) = apply(call.op, now);
        Some(call.begun) < first_done
            && result == call.result
            && search(calls, left & !(1 << at), then, searched)
    })
}

/// Whether two of the calls to a key overlap, one of them a write.
pub(crate) fn has_overlap(calls: &[Call]) -> bool {
    let overlap = |a: &Call, b: &Call| {
        a.key == b.key && a.begun < b.done && b.begun < a.done && a.op != Op::Get
    };
    calls
        .iter()
        .enumerate()
        .any(|(at, a)| calls.iter().enumerate().any(|(other, b)| at != other && overlap(a, b)))
}
