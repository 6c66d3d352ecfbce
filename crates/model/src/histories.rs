//! Histories of concurrent calls, and a check that they are linearizable.
//!
//! Each call is recorded with the times of its begin and of its end. A history is linearizable if
//! there is a point in time for each call between the two, so that the calls have the same results
//! one after the other in the order of these points. A map is linearizable when each of its keys
//! is, so a history is checked key by key. Herlihy & Wing, TOPLAS 1990; the search is that of Wing
//! & Gong, JPDC 1993: take any call that began before all other remaining calls ended, continue
//! with the rest, and backtrack when the results do not match. Visited states are memoised, as in
//! Lowe, CCPE 2017.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::hashers::mix;

/// An operation on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Insert(u64),
    Remove,
    Get,
    /// Adds one.
    Update,
    GetOrInsert(u64),
    GetOrInsertWith(u64),
    /// Inserts a value where there is none, doubles an odd one, removes an even one.
    Compute(u64),
    /// Leaves the value unchanged.
    Look,
}

/// The value after an operation, and its result.
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

/// A recorded call.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub key: u64,
    pub op: Op,
    pub result: Option<u64>,
    pub begun: u64,
    pub done: u64,
}

/// A clock whose times are all different. Of a size that every target has atomics of.
pub struct Clock(AtomicUsize);

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock {
    pub const fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    fn time(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst) as u64
    }

    /// Performs and records `op`.
    pub fn call(&self, key: u64, op: Op, perform: impl FnOnce() -> Option<u64>) -> Call {
        let begun = self.time();
        let result = perform();
        Call { key, op, result, begun, done: self.time() }
    }
}

/// The key and operation of a number.
pub fn random_op(number: u64, keys: u64) -> (u64, Op) {
    let number = mix(number);
    // Distinct values for distinct calls; small, so that additions and doublings do not overflow.
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

/// Whether the calls to each key have a sequential order. Keys have no values at first.
pub fn is_linearizable(calls: &[Call]) -> bool {
    let mut keys: Vec<u64> = calls.iter().map(|call| call.key).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter().all(|key| {
        let of_key: Vec<Call> = calls.iter().filter(|call| call.key == key).copied().collect();
        assert!(of_key.len() < 64, "a bit of a word for each call");
        search(&of_key, (1 << of_key.len()) - 1, None, &mut HashSet::new())
    })
}

/// Whether the calls that are `left` match the value `now`.
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
pub fn has_overlap(calls: &[Call]) -> bool {
    let overlap = |a: &Call, b: &Call| {
        a.key == b.key && a.begun < b.done && b.begun < a.done && a.op != Op::Get
    };
    calls
        .iter()
        .enumerate()
        .any(|(at, a)| calls.iter().enumerate().any(|(other, b)| at != other && overlap(a, b)))
}
