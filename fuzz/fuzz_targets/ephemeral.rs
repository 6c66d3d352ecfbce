//! `EphemeralStore` compared with a list in the order of expiry after every step.
#![no_main]

use arbitrary::Arbitrary;
use flowtable::EphemeralStore;
use libfuzzer_sys::fuzz_target;
use model::ephemeral::{CheckedStore, LIFETIME, Step};
use model::hashers::Weak;

/// The maximum number of steps: all bindings are compared after each.
const MANY: usize = 150;

/// The maximum number of tags of a batch.
const BATCH: usize = 70;

#[derive(Arbitrary, Debug)]
struct Input {
    capacity: u8,
    hasher: u8,
    /// The start, in units of 2^30 ns.
    start: u8,
    ops: Vec<(Op, By)>,
}

/// The time between two operations.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum By {
    Nothing,
    Some(u8),
    /// In quarters of a lifetime.
    Quarters(u8),
    /// In units of 2^32 ns.
    Rounds(u8),
    Back(u8),
}

impl By {
    fn nanos(self) -> i64 {
        match self {
            Self::Nothing => 0,
            Self::Some(nanos) => i64::from(nanos),
            Self::Quarters(quarters) => i64::from(quarters) * LIFETIME.as_nanos() as i64 / 4,
            Self::Rounds(rounds) => i64::from(rounds) << 32,
            Self::Back(nanos) => -i64::from(nanos),
        }
    }
}

#[derive(Arbitrary, Clone, Debug)]
enum Op {
    Get(u8),
    GetMut(u8),
    GetOrInsert(u8),
    Remove(u8),
    Retain(u8),
    GetBatch(Vec<u8>),
    GetOrInsertBatch(Vec<u8>),
    Clean(u8),
    Iterate,
    Clear,
    Clone,
}

impl Op {
    fn step(&self, by: By) -> Step {
        let by = by.nanos();
        let tags = |tags: &[u8]| tags.iter().take(BATCH).map(|tag| u32::from(*tag)).collect();
        match self {
            Self::Get(tag) => Step::Get(u32::from(*tag), by),
            Self::GetMut(tag) => Step::GetMut(u32::from(*tag), by),
            Self::GetOrInsert(tag) => Step::GetOrInsert(u32::from(*tag), by),
            Self::Remove(tag) => Step::Remove(u32::from(*tag), by),
            Self::Retain(most) => Step::Retain(u32::from(*most), by),
            Self::GetBatch(burst) => Step::GetBatch(tags(burst), by),
            Self::GetOrInsertBatch(burst) => Step::GetOrInsertBatch(tags(burst), by),
            Self::Clean(budget) => Step::Clean(usize::from(*budget), by),
            Self::Iterate => Step::Iterate(by),
            Self::Clear => Step::Clear,
            Self::Clone => Step::Clone,
        }
    }
}

fuzz_target!(|input: Input| {
    let hasher = Weak::from_byte(input.hasher);
    let capacity = usize::from(input.capacity).max(1);
    let store = EphemeralStore::with_parts(capacity, LIFETIME, hasher);
    let mut pair: CheckedStore<u32, u64, Weak> = CheckedStore::new(store.expect("there is memory"));
    let mut now = u64::from(input.start) << 30;
    for (number, (op, by)) in (0..).step_by(100).zip(input.ops.iter().take(MANY)) {
        now = pair.step(&op.step(*by), now, number);
        pair.check();
    }
});
