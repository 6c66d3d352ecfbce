//! The caches and the duplicate filter compared with reference models after every step.
#![no_main]

use std::time::Duration;

use arbitrary::Arbitrary;
use flowtable::Timestamp;
use flowtable::cache::{Chains, Replacement};
use flowtable::eviction::{ByClass, Eviction, Passive, PassiveGc, Random, SecondChance};
use libfuzzer_sys::fuzz_target;
use model::caches::bounded::{CheckedBounded, CheckedLru};
use model::caches::chains::CheckedChainedCache;
use model::caches::filter::CheckedFilter;
use model::caches::sets::CheckedSets;
use model::caches::{Make, Name, Step, Wide, run};
use model::hashers::Weak;

/// The maximum number of steps: all entries are compared after each.
const MANY: usize = 100;

#[derive(Arbitrary, Debug)]
enum Input {
    Sets {
        ways: u8,
        capacity: u8,
        replacement: Rule,
        types: Types,
        ops: Vec<Op>,
    },
    Chains {
        capacity: u8,
        policy: Policy,
        hasher: u8,
        ops: Vec<Op>,
    },
    /// A chained cache: the operation and its key in each byte of a pair.
    Chained {
        capacity: u8,
        buckets: u8,
        elasticity: u8,
        hasher: u8,
        ops: Vec<(u8, u8)>,
    },
    Filter {
        capacity: u8,
        lifetime: u8,
        hasher: u8,
        packets: Vec<Packet>,
    },
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Types {
    Numbers,
    Boxes,
    Large,
    Wide,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Rule {
    SecondChance,
    LeastRecentlyUsed,
    Oldest,
}

impl Rule {
    fn replacement(self) -> Replacement {
        match self {
            Self::SecondChance => Replacement::SecondChance,
            Self::LeastRecentlyUsed => Replacement::LeastRecentlyUsed,
            Self::Oldest => Replacement::Oldest,
        }
    }
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Policy {
    Lru,
    SecondChance,
    ByClass,
    Random(u8),
    Passive(u8, u8),
}

/// A key, and the bit in which its index differs from its usual one.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Flow(u8, u8);

impl Flow {
    fn name(self) -> Name {
        let key = u32::from(self.0 % 64);
        // A bit that selects the set, that distinguishes entries, or that is ignored.
        Name {
            index: key.wrapping_mul(0x9e37_79b9) ^ 1_u32.checked_shl(self.1.into()).unwrap_or(0),
            key,
        }
    }
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Op {
    Get(Flow),
    GetMut(Flow),
    Peek(Flow),
    GetOrInsert(Flow),
    Insert(Flow),
    Remove(Flow),
    /// A batch of this many flows from this one on.
    GetBatch(Flow, u8),
    GetBatchMut(Flow, u8),
    Retain(u8),
    Clear,
    Replace(Rule),
    Fork(bool),
    Back,
    Change(u8),
    PeekMut(Flow),
    Promote(Flow),
    SetCapacity(u8),
    PopLru,
}

impl Op {
    fn step(self) -> Step {
        let batch = |Flow(first, bit), count: u8| {
            let flows = (0..count % 80).map(move |more| Flow(first.wrapping_add(more), bit));
            flows.map(Flow::name).collect()
        };
        match self {
            Self::Get(flow) => Step::Get(flow.name()),
            Self::GetMut(flow) => Step::GetMut(flow.name()),
            Self::Peek(flow) => Step::Peek(flow.name()),
            Self::GetOrInsert(flow) => Step::GetOrInsert(flow.name()),
            Self::Insert(flow) => Step::Insert(flow.name()),
            Self::Remove(flow) => Step::Remove(flow.name()),
            Self::GetBatch(flow, count) => Step::GetBatch(batch(flow, count)),
            Self::GetBatchMut(flow, count) => Step::GetBatchMut(batch(flow, count)),
            Self::Retain(divisor) => Step::Retain(1 + u32::from(divisor % 8)),
            Self::Clear => Step::Clear,
            Self::Replace(rule) => Step::Replace(rule.replacement()),
            Self::Fork(with_clone) => Step::Fork { with_clone },
            Self::Back => Step::Back,
            Self::Change(divisor) => Step::Change(1 + u32::from(divisor % 8)),
            Self::PeekMut(flow) => Step::PeekMut(flow.name()),
            Self::Promote(flow) => Step::Promote(flow.name()),
            Self::SetCapacity(capacity) => Step::SetCapacity(1 + usize::from(capacity)),
            Self::PopLru => Step::PopLru,
        }
    }
}

/// A packet of a sender with a sequence number, or a cleaning with a budget; and the time since the
/// previous one.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Packet {
    Accept(u8, u8, i8),
    Forget(u8, i8),
}

fuzz_target!(|input: Input| match input {
    Input::Sets { ways, capacity, replacement, types, ops } => {
        let (capacity, replacement) = (1 + usize::from(capacity % 40), replacement.replacement());
        let steps = steps(&ops);
        match types {
            Types::Numbers => sets::<u32, u32>(ways, capacity, replacement, &steps),
            Types::Boxes => sets::<Box<u32>, Box<u32>>(ways, capacity, replacement, &steps),
            Types::Large => sets::<[u64; 12], Box<u32>>(ways, capacity, replacement, &steps),
            Types::Wide => sets::<Wide, ()>(ways, capacity, replacement, &steps),
        }
    }
    Input::Chains { capacity, policy, hasher, ops } => {
        let capacity = 1 + usize::from(capacity % 40);
        let (hasher, steps) = (Weak::from_byte(hasher), steps(&ops));
        match policy {
            Policy::Lru => run(CheckedLru::<Box<u32>, Box<u32>, _>::new(capacity, hasher), &steps),
            Policy::SecondChance => chains(capacity, SecondChance::new(), hasher, &steps),
            Policy::ByClass => chains(capacity, ByClass::new(), hasher, &steps),
            Policy::Random(seed) => {
                chains(capacity, Random::with_seed(seed.into()), hasher, &steps);
            }
            Policy::Passive(threshold, goal) => {
                let gc = PassiveGc::new(1 + usize::from(threshold % 40), 1 + usize::from(goal % 9));
                let policy = Passive::new(gc.expect("neither is zero"));
                chains(capacity, policy, hasher, &steps);
            }
        }
    }
    Input::Chained { capacity, buckets, elasticity, hasher, ops } => {
        let chains = Chains {
            buckets: 1 + usize::from(buckets % 16),
            elasticity: 1 + usize::from(elasticity % 8),
        };
        let capacity = 1 + usize::from(capacity % 40);
        chained(CheckedChainedCache::new(capacity, chains, Weak::from_byte(hasher)), &ops);
    }
    Input::Filter { capacity, lifetime, hasher, packets } => {
        let (capacity, lifetime) =
            (1 + usize::from(capacity % 20), Duration::from_nanos(lifetime.into()));
        filter(CheckedFilter::new(capacity, lifetime, Weak::from_byte(hasher)), &packets);
    }
});

fn chained(mut pair: CheckedChainedCache<Weak>, ops: &[(u8, u8)]) {
    for (value, &(op, key)) in (0..).zip(ops.iter().take(MANY)) {
        let key = u32::from(key % 64);
        match op % 16 {
            0..6 => pair.insert(key, value),
            6..9 => pair.get(key),
            9..12 => pair.get_or_insert(key, value),
            12 | 13 => pair.remove(key),
            14 if key == 0 => pair.flush(),
            14 => pair.retain(key),
            _ => pair.clone_ours(),
        }
        pair.check();
    }
}

fn steps(ops: &[Op]) -> Vec<Step> {
    ops.iter().take(MANY).map(|op| op.step()).collect()
}

fn sets<K: Make, V: Make>(ways: u8, capacity: usize, replacement: Replacement, steps: &[Step]) {
    match ways % 5 {
        0 => run(CheckedSets::<K, V, 1>::new(capacity, replacement), steps),
        1 => run(CheckedSets::<K, V, 2>::new(capacity, replacement), steps),
        2 => run(CheckedSets::<K, V, 3>::new(capacity, replacement), steps),
        3 => run(CheckedSets::<K, V, 4>::new(capacity, replacement), steps),
        _ => run(CheckedSets::<K, V, 8>::new(capacity, replacement), steps),
    }
}

fn chains<P: Eviction + Clone>(capacity: usize, policy: P, hasher: Weak, steps: &[Step]) {
    run(CheckedBounded::<Box<u32>, Box<u32>, P, Weak>::new(capacity, policy, hasher), steps);
}

fn filter(mut pair: CheckedFilter<Weak>, packets: &[Packet]) {
    let mut now = 1000_u64;
    for packet in packets.iter().take(MANY) {
        match *packet {
            Packet::Accept(sender, sequence, later) => {
                now = now.saturating_add_signed(later.into());
                _ = pair.accept(
                    u32::from(sender % 32),
                    sequence.into(),
                    Timestamp::from_nanos(now),
                );
            }
            Packet::Forget(budget, later) => {
                now = now.saturating_add_signed(later.into());
                pair.clean(Timestamp::from_nanos(now), usize::from(budget % 8));
            }
        }
        pair.check();
    }
}
