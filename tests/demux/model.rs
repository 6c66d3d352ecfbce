//! Every demultiplexer against its reference model, which computes the PCBs examined; invariants
//! are checked after each step.

use core::fmt::Debug;
use core::net::Ipv4Addr;
use model::cases;

use flowtable::FourTuple;
use flowtable::demux::{Arrival, ConnectionId, DemuxError};
use model::demux::lists::{DemuxModels, Rule};
use model::demux::{CheckedDemux, all};
use model::hashers::Weak;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// One step of a test. Keys are numbers below [`KEYS`].
#[derive(Clone, Debug)]
enum Op {
    Insert(u32),
    /// The first key, and the number of consecutive keys.
    InsertRun(u32, u32),
    /// A number of consecutive segments.
    Lookup(u32, Arrival, u32),
    /// A lookup of each key in turn.
    LookupAll(Arrival),
    Sent(u32),
    Remove(u32),
    RemoveRun(u32, u32),
    Again(u32),
    Exchange(u32),
}

const KEYS: u32 = 48;

fn op() -> impl Strategy<Value = Op> {
    let key = || 0..KEYS;
    // Some keys are drawn often, like those of busy connections.
    let some = || prop_oneof![2 => 0..4_u32, 3 => key()];
    let arrival = || select(vec![Arrival::Data, Arrival::Ack]);
    prop_oneof![
        6 => key().prop_map(Op::Insert),
        3 => (key(), 0..20_u32).prop_map(|(first, count)| Op::InsertRun(first, count)),
        20 => (some(), arrival(), 1..4_u32)
            .prop_map(|(key, arrival, count)| Op::Lookup(key, arrival, count)),
        1 => arrival().prop_map(Op::LookupAll),
        8 => some().prop_map(Op::Sent),
        6 => some().prop_map(Op::Remove),
        1 => (key(), 0..20_u32).prop_map(|(first, count)| Op::RemoveRun(first, count)),
        4 => some().prop_map(Op::Again),
        5 => some().prop_map(Op::Exchange),
    ]
}

fn step<K: Clone + Debug + PartialEq>(pair: &mut CheckedDemux<K>, make: fn(u32) -> K, op: &Op) {
    match *op {
        Op::Insert(number) => pair.insert(&make(number)),
        Op::InsertRun(first, count) => {
            (first..first + count).for_each(|number| pair.insert(&make(number % KEYS)));
        }
        Op::Lookup(number, arrival, count) => {
            (0..count).for_each(|_| pair.lookup(&make(number), arrival));
        }
        Op::LookupAll(arrival) => {
            (0..KEYS).for_each(|number| pair.lookup(&make(number), arrival));
        }
        Op::Sent(number) => pair.sent(&make(number)),
        Op::Remove(number) => pair.remove(&make(number)),
        Op::RemoveRun(first, count) => {
            (first..first + count).for_each(|number| pair.remove(&make(number % KEYS)));
        }
        Op::Again(number) => pair.again(&make(number)),
        Op::Exchange(number) => pair.exchange(&make(number)),
    }
    pair.check();
}

fn run<K: Clone + Debug + PartialEq>(
    mut pairs: Vec<CheckedDemux<K>>,
    make: fn(u32) -> K,
    ops: &[Op],
) {
    for op in ops {
        pairs.iter_mut().for_each(|pair| step(pair, make, op));
    }
}

fn four_tuple(number: u32) -> FourTuple<Ipv4Addr> {
    FourTuple {
        src: Ipv4Addr::from_bits(0x0a00_0001 + number / 3),
        dst: Ipv4Addr::new(192, 0, 2, 1),
        sport: 40_000 + number as u16,
        dport: 23,
    }
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    vec(op(), 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(300, 1)))]

    #[test]
    fn lookups_by_four_tuple_match_the_model(
        ops in ops(), hasher in select(&Weak::ALL), chains in 1..40_usize,
    ) {
        run(all(hasher, chains), four_tuple, &ops);
    }

    #[test]
    fn lookups_by_number_match_the_model(
        ops in ops(), hasher in select(&Weak::ALL), chains in 1..40_usize,
    ) {
        run(all(hasher, chains), |number| number, &ops);
    }

    #[test]
    fn lookups_by_connection_id_match_the_model(ops in ops()) {
        let model = DemuxModels::one(Rule::ConnectionId);
        // The last five numbers are past the capacity, the last one by far.
        let make = |number| if number == KEYS - 1 { u32::MAX } else { number };
        let pair = CheckedDemux::new("ConnectionId", ConnectionId::new(KEYS - 5), model);
        let pair = pair.that_refuses(|&id| (id >= KEYS - 5).then_some(DemuxError::NoSuchId));
        run(vec![pair], make, &ops);
    }
}
