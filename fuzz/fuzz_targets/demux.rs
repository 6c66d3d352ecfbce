//! Every demultiplexer compared with a reference model, which counts the PCBs examined, with every
//! invariant checked every few steps, with good and weak hashers.
#![no_main]

use std::fmt::Debug;
use std::hash::Hash;

use arbitrary::Arbitrary;
use flowtable::FlowKey;
use flowtable::demux::{Arrival, ConnectionId, DemuxError};
use flowtable_fuzz::{Key, Seed, Seeds};
use libfuzzer_sys::fuzz_target;
use model::demux::lists::{DemuxModels, Rule};
use model::demux::{CheckedDemux, all};
use model::hashers::Weak;

/// The maximum number of steps, and the steps from one comparison of all PCBs to the next: a
/// thousand inputs a second find more than longer ones that are compared after each step.
const MANY: usize = 8;
const EVERY: usize = 4;

/// The names of one step.
const RUN: usize = 4;

/// The upper bound of connection ids, and the ids that are tried: an array of more takes longer to
/// allocate than all steps.
const CAPACITY: u32 = 0x1f0;
const IDS: u16 = 0x200;

#[derive(Arbitrary, Debug)]
struct Input {
    names: Names,
    hasher: u8,
    chains: u8,
    ops: Vec<Op>,
}

#[derive(Arbitrary, Debug)]
enum Names {
    Numbers,
    Flows,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Op {
    Insert(Seeds),
    Remove(Seeds),
    Lookup(Seeds, For),
    /// A train of segments.
    Train(Seed, For, u8),
    Sent(Seeds),
    Again(Seeds),
    Exchange(Seeds),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum For {
    Data,
    Ack,
}

impl For {
    fn arrival(self) -> Arrival {
        match self {
            Self::Data => Arrival::Data,
            Self::Ack => Arrival::Ack,
        }
    }
}

fuzz_target!(|input: Input| {
    let model = DemuxModels::one(Rule::ConnectionId);
    let connections = CheckedDemux::new("ConnectionId", ConnectionId::new(CAPACITY), model)
        .that_refuses(|&id| (id >= CAPACITY).then_some(DemuxError::NoSuchId));
    run(&mut [connections], |seed| (u16::grow(seed) % IDS).into(), &input.ops);
    match input.names {
        Names::Numbers => run_all::<u64>(&input),
        Names::Flows => run_all::<FlowKey>(&input),
    }
});

fn run_all<K: Key + Hash + 'static>(input: &Input) {
    let mut pairs =
        all::<K, Weak>(Weak::from_byte(input.hasher), 1 + usize::from(input.chains % 40));
    run(&mut pairs, K::grow, &input.ops);
}

fn run<K: Clone + Debug + PartialEq>(
    pairs: &mut [CheckedDemux<K>],
    grow: fn(Seed) -> K,
    ops: &[Op],
) {
    for (at, op) in ops.iter().take(MANY).enumerate() {
        for pair in &mut *pairs {
            step(pair, grow, *op);
            if at % EVERY == EVERY - 1 {
                pair.check();
            }
        }
    }
    pairs.iter().for_each(CheckedDemux::check);
}

fn step<K: Clone + Debug + PartialEq>(pair: &mut CheckedDemux<K>, grow: fn(Seed) -> K, op: Op) {
    match op {
        Op::Insert(seeds) => seeds.iter().take(RUN).for_each(|seed| pair.insert(&grow(seed))),
        Op::Remove(seeds) => seeds.iter().take(RUN).for_each(|seed| pair.remove(&grow(seed))),
        Op::Lookup(seeds, what) => {
            seeds.iter().take(RUN).for_each(|seed| pair.lookup(&grow(seed), what.arrival()));
        }
        Op::Train(seed, what, length) => {
            (0..length % 8).for_each(|_| pair.lookup(&grow(seed), what.arrival()));
        }
        Op::Sent(seeds) => seeds.iter().take(RUN).for_each(|seed| pair.sent(&grow(seed))),
        Op::Again(seeds) => seeds.iter().take(RUN).for_each(|seed| pair.again(&grow(seed))),
        Op::Exchange(seeds) => seeds.iter().take(RUN).for_each(|seed| pair.exchange(&grow(seed))),
    }
}
