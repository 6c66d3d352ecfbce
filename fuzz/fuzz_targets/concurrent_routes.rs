//! `ConcurrentRoutes` compared with `RouteTable` on one thread, with pins that are held and
//! released, and every invariant checked every few steps.
#![no_main]

use std::fmt::Debug;

use arbitrary::Arbitrary;
use flowtable::concurrent::ConcurrentRoutes;
use flowtable::key::bits::Address;
use flowtable::memory::Global;
use flowtable::{Prefix, RouteTable};
use libfuzzer_sys::fuzz_target;

/// The steps from one check of all invariants to the next.
const EVERY: usize = 16;

/// Values with a destructor: an error in their reclamation is a leak or an invalid access.
type Value = Box<u64>;

#[derive(Arbitrary, Debug)]
struct Input {
    is_wide: bool,
    limit: Option<u16>,
    ops: Vec<Op>,
}

/// A prefix for any address width. Few bits differ, so that prefixes cover each other.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Seed {
    family: u8,
    flipped: u16,
    len: u8,
}

impl Seed {
    fn address<A: Address>(self) -> A {
        let first = u64::from(self.family % 4) << 62;
        let flipped = 1_u64.rotate_right(u32::from(self.flipped) % 128);
        flowtable_fuzz::address(u128::from(first ^ flipped) << 64 | u128::from(self.flipped))
    }

    fn prefix<A: Address>(self) -> Prefix<A> {
        // Updates of short routes store many slots: fewer of them are more inputs a second.
        let len = u32::from(self.len) % (A::BITS + 1);
        let is_short = len < 8 && !self.flipped.is_multiple_of(16);
        let len = if is_short { len + 12 } else { len };
        Prefix::new(self.address(), len).expect("within the address")
    }
}

#[derive(Arbitrary, Debug)]
enum Op {
    Insert(Seed),
    Remove(Seed),
    Lookup([Seed; 3]),
    Retain(u8),
    Replace(Vec<Seed>),
    Clear,
    Repin,
    Hold,
    LetGo,
}

fuzz_target!(|input: Input| {
    match input.is_wide {
        false => run::<u32>(input),
        true => run::<u128>(input),
    }
});

fn run<A: Address + Debug + Send>(input: Input) {
    let mut routes = ConcurrentRoutes::<A, Value>::new();
    if let Some(limit) = input.limit {
        routes = routes.with_garbage_limit(limit.into(), 0);
    }
    let (mut model, mut held) = (RouteTable::new(), Vec::new());
    let mut pin = routes.pin();
    for (op, now) in input.ops.into_iter().zip(0_usize..) {
        match op {
            Op::Repin => pin.repin(),
            Op::Hold => held.push(routes.pin()),
            Op::LetGo => drop(held.pop()),
            op => step(&routes, &mut model, op, now as u64),
        }
        assert_eq!(routes.len(), model.len());
        if now % EVERY == 0 {
            routes.validate().expect("invariant");
        }
    }
    routes.validate().expect("invariant");
    assert!(pin.iter().eq(model.iter()));
}

fn step<A: Address + Debug + Send>(
    routes: &ConcurrentRoutes<A, Value>,
    model: &mut RouteTable<A, Value>,
    op: Op,
    now: u64,
) {
    match op {
        Op::Insert(seed) => match routes.insert(seed.prefix(), Box::new(now)) {
            Ok(is_new) => {
                assert_eq!(model.insert(seed.prefix(), Box::new(now)).is_none(), is_new);
            }
            Err(error) => assert_eq!(error.refused, (seed.prefix(), Box::new(now))),
        },
        Op::Remove(seed) => match routes.remove(&seed.prefix()) {
            Ok(existed) => assert_eq!(model.remove(&seed.prefix()).is_some(), existed),
            Err(error) => assert_eq!(error.refused, seed.prefix()),
        },
        Op::Lookup(seeds) => look_up(routes, model, &seeds),
        Op::Retain(below) => {
            let keep = |prefix: Prefix<A>, _: &Value| prefix.len() < u32::from(below);
            if routes.retain(keep).is_ok() {
                model.retain(|prefix, value| keep(prefix, value));
            } else {
                // Some have been removed, none that was to be kept.
                let pin = routes.pin();
                model.retain(|prefix, value| {
                    let is_there = pin.get(&prefix).is_some();
                    assert!(is_there || !keep(prefix, value));
                    is_there
                });
            }
        }
        Op::Replace(seeds) => {
            let table = || seeds.iter().map(|seed| (seed.prefix(), Box::new(now))).collect();
            match routes.replace::<Global>(table()) {
                Ok(()) => *model = table(),
                Err(error) => assert_eq!(error.refused, table()),
            }
        }
        Op::Clear => {
            let _ = routes.clear();
            let pin = routes.pin();
            model.retain(|prefix, _| pin.get(&prefix).is_some());
        }
        Op::Repin | Op::Hold | Op::LetGo => unreachable!("of the pins, in `run`"),
    }
}

fn look_up<A: Address + Debug + Send>(
    routes: &ConcurrentRoutes<A, Value>,
    model: &RouteTable<A, Value>,
    seeds: &[Seed; 3],
) {
    let pin = routes.pin();
    let addresses = seeds.map(Seed::address::<A>);
    let (mut found, mut values) = ([None; 3], [None; 3]);
    pin.lookup_batch(&addresses, |i, route| found[i] = route);
    pin.lookup_batch_values(&addresses, |i, value| values[i] = value);
    for ((address, found), value) in addresses.iter().zip(found).zip(values) {
        let expected = model.lookup(address);
        assert_eq!(pin.lookup(address), expected);
        assert_eq!((found, value), (expected, expected.map(|(_, value)| value)));
    }
    for seed in seeds {
        assert_eq!(pin.get(&seed.prefix()), model.get(&seed.prefix()));
    }
}
