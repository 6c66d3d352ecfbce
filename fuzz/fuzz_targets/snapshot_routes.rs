//! `SnapshotRoutes` compared with `RouteTable` on one thread, with pins that are held and released:
//! each is a snapshot, and what is visible is what was applied.
#![no_main]

use std::fmt::Debug;

use arbitrary::Arbitrary;
use flowtable::concurrent::{PinnedSnapshot, Publication, SnapshotRoutes};
use flowtable::key::bits::Address;
use flowtable::{Prefix, RouteTable};
use libfuzzer_sys::fuzz_target;

/// The maximum number of steps.
const MANY: usize = 100;

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
    flipped: u8,
    len: u8,
}

impl Seed {
    fn address<A: Address>(self) -> A {
        let first = 0xa5 << 56 ^ 1_u64.rotate_right(u32::from(self.flipped % 64));
        flowtable_fuzz::address(u128::from(first) << 64 | u128::from(self.flipped))
    }

    fn prefix<A: Address>(self) -> Prefix<A> {
        let len = u32::from(self.len) % (A::BITS + 1);
        Prefix::new(self.address(), len).expect("within the address")
    }
}

#[derive(Arbitrary, Debug)]
enum Op {
    Insert(Seed),
    Remove(Seed),
    Apply(Vec<(Seed, bool)>),
    Retain(u8),
    Replace(Vec<Seed>),
    Clear,
    Publish,
    Lookup([Seed; 3]),
    Hold,
    LetGo(u8),
    Repin(u8),
}

/// A pin, and the routes that it has.
type Held<'r, A> = (PinnedSnapshot<'r, A, Value>, RouteTable<A, Value>);

fuzz_target!(|input: Input| {
    match input.is_wide {
        false => run::<u32>(input),
        true => run::<u128>(input),
    }
});

fn run<A: Address + Debug + Send + Sync>(input: Input) {
    let mut routes = SnapshotRoutes::<A, Value>::new();
    if let Some(limit) = input.limit {
        routes = routes.with_limit(limit.into(), 0);
    }
    let (mut model, mut held): (_, Vec<Held<'_, A>>) = (RouteTable::new(), Vec::new());
    for (op, now) in input.ops.into_iter().take(MANY).zip(0..) {
        match op {
            Op::Hold => held.push(pinned(routes.pin())),
            Op::LetGo(nth) if !held.is_empty() => {
                let (pin, snapshot) = held.swap_remove(usize::from(nth) % held.len());
                assert!(pin.iter().eq(snapshot.iter()));
            }
            Op::Repin(nth) if !held.is_empty() => {
                let (mut pin, _) = held.swap_remove(usize::from(nth) % held.len());
                pin.repin();
                held.push(pinned(pin));
            }
            op => step(&routes, &mut model, op, now),
        }
        if held.is_empty() {
            assert_eq!(routes.publish(), Publication::Visible);
        }
        if routes.pending() == 0 {
            assert!(routes.pin().iter().eq(model.iter()));
        }
    }
    for (pin, snapshot) in held {
        assert!(pin.iter().eq(snapshot.iter()));
    }
}

fn pinned<A: Address>(pin: PinnedSnapshot<'_, A, Value>) -> Held<'_, A> {
    let snapshot = pin.iter().map(|(prefix, value)| (prefix, value.clone())).collect();
    (pin, snapshot)
}

fn step<A: Address + Debug + Send + Sync>(
    routes: &SnapshotRoutes<A, Value>,
    model: &mut RouteTable<A, Value>,
    op: Op,
    now: u64,
) {
    let value = || Box::new(now);
    match op {
        Op::Insert(seed) => match routes.insert(seed.prefix(), value()) {
            Ok(_) => _ = model.insert(seed.prefix(), value()),
            Err(error) => assert_eq!(error.refused, (seed.prefix(), value())),
        },
        Op::Remove(seed) => match routes.remove(&seed.prefix()) {
            Ok(_) => _ = model.remove(&seed.prefix()),
            Err(error) => assert_eq!(error.refused, seed.prefix()),
        },
        Op::Apply(updates) => {
            let updates = updates.into_iter().take(32);
            let updates = updates.map(|(seed, is_new)| (seed.prefix(), is_new.then(value)));
            let updates: Vec<_> = updates.collect();
            match routes.apply(updates.clone()) {
                Ok(_) => updates.into_iter().for_each(|(prefix, value)| {
                    match value {
                        Some(value) => drop(model.insert(prefix, value)),
                        None => drop(model.remove(&prefix)),
                    };
                }),
                Err(error) => assert_eq!(error.refused, updates),
            }
        }
        // Of the visible routes, so of all.
        Op::Retain(most) if routes.pending() == 0 => {
            let keep = |prefix: Prefix<A>| prefix.len() <= u32::from(most);
            if routes.retain(|prefix, _| keep(prefix)).is_ok() {
                model.retain(|prefix, _| keep(prefix));
            }
        }
        Op::Replace(seeds) => {
            let seeds = seeds.iter().take(32);
            let table: RouteTable<A, Value> = seeds.map(|seed| (seed.prefix(), value())).collect();
            match routes.replace(table.clone()) {
                Ok(()) => *model = table,
                Err(error) => assert_eq!(error.refused, table),
            }
        }
        Op::Clear if routes.clear().is_ok() => model.clear(),
        Op::Publish => _ = routes.publish(),
        Op::Lookup(seeds) if routes.pending() == 0 => {
            let pin = routes.pin();
            for seed in seeds {
                let address = seed.address();
                assert_eq!(pin.lookup(&address), model.lookup(&address));
                assert_eq!(pin.get(&seed.prefix()), model.get(&seed.prefix()));
            }
        }
        _ => {}
    }
}
