//! `ConcurrentStore` compared with `EphemeralStore` on one thread, every invariant checked at the
//! end.
#![no_main]

use std::time::Duration;

use arbitrary::Arbitrary;
use flowtable::concurrent::ConcurrentStore;
use flowtable::{EphemeralStore, Timestamp};
use libfuzzer_sys::fuzz_target;
use model::hashers::Weak;

const LIFETIME: Duration = Duration::from_secs(1);

/// The capacity of the model, which is never full.
const MANY: usize = 1 << 12;

#[derive(Arbitrary, Debug)]
struct Input {
    capacity: u16,
    hasher: u8,
    ops: Vec<(Op, u8)>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Op {
    InsertNew(u16),
    /// With 32 neighbours.
    InsertMany(u16),
    GetOrInsert(u16),
    Get(u16),
    Update(u16),
    Remove(u16),
    Retain(u8),
    Clean(u8),
    Iterate,
    Clear,
}

struct Pair {
    ours: ConcurrentStore<u16, Box<u64>, Weak>,
    model: EphemeralStore<u16, Box<u64>, Weak>,
}

fuzz_target!(|input: Input| {
    let hasher = Weak::from_byte(input.hasher);
    let capacity = usize::from(input.capacity % 2048).max(1);
    let mut pair = Pair {
        ours: ConcurrentStore::with_parts(capacity, LIFETIME, hasher).expect("there is memory"),
        model: EphemeralStore::with_parts(MANY, LIFETIME, hasher).expect("there is memory"),
    };
    let mut now = Timestamp::ZERO;
    for ((op, by), value) in input.ops.into_iter().take(100).zip(0..) {
        // In 64ths of a lifetime.
        now = now + LIFETIME / 64 * u32::from(by);
        pair.step(op, now, value);
        assert_eq!(pair.ours.live(now), pair.model.live(now));
    }
    pair.ours.validate().expect("invariant");
});

impl Pair {
    fn step(&mut self, op: Op, now: Timestamp, value: u64) {
        let Self { ours, model } = self;
        match op {
            Op::InsertNew(tag) => self.insert(tag, now, value),
            Op::InsertMany(tag) => {
                (0..32).for_each(|more| self.insert(tag.wrapping_add(more), now, value));
            }
            Op::GetOrInsert(tag) => {
                let existed = model.get(&tag, now).cloned();
                let each = |value: &mut Box<u64>, is_new: bool| (value.clone(), is_new);
                match ours.get_or_insert_with(tag, now, || Box::new(value), each) {
                    Ok((found, is_new)) => {
                        assert_eq!(is_new, existed.is_none());
                        let is_room = "the model has more capacity";
                        let there = model.get_or_insert_with(tag, now, || Box::new(value));
                        assert_eq!(*there.expect(is_room), found);
                    }
                    Err(full) => assert!(full.refused == tag && existed.is_none()),
                }
            }
            Op::Get(tag) => assert_eq!(ours.get(&tag, now).as_ref(), model.get(&tag, now)),
            Op::Update(tag) => {
                let old = ours.update(&tag, now, |old| std::mem::replace(old, Box::new(value)));
                let there = model.get_mut(&tag, now);
                assert_eq!(old, there.map(|old| std::mem::replace(old, Box::new(value))));
            }
            Op::Remove(tag) => assert_eq!(ours.remove(&tag, now), model.remove(&tag, now)),
            Op::Retain(divisor) => {
                let keep = |tag: &u16, _: &mut Box<u64>| tag.is_multiple_of(divisor.into());
                ours.retain(now, keep);
                model.retain(now, keep);
            }
            Op::Clean(budget) => _ = ours.clean(now, budget.into()),
            Op::Iterate => {
                let mut found: Vec<(u16, Box<u64>)> = ours.iter(now).collect();
                let there = model.iter(now).map(|(tag, value)| (*tag, value.clone()));
                let mut there: Vec<(u16, Box<u64>)> = there.collect();
                found.sort_unstable();
                there.sort_unstable();
                assert_eq!(found, there);
            }
            Op::Clear => {
                ours.clear();
                model.clear();
            }
        }
    }

    fn insert(&mut self, tag: u16, now: Timestamp, value: u64) {
        let Self { ours, model } = self;
        let existed = model.get(&tag, now).is_some();
        match ours.insert_new(tag, now, Box::new(value)) {
            Ok(is_new) => {
                assert_eq!(is_new, !existed);
                let there = model.get_or_insert_with(tag, now, || Box::new(value));
                assert!(there.is_ok(), "the model has more capacity");
            }
            Err(full) => assert!(full.refused == tag && !existed),
        }
    }
}
