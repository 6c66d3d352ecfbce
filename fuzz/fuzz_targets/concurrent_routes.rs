//! `ConcurrentRoutes` compared with a reference model on one thread, with pins that are held and
//! released, and every invariant checked every few steps, around the sizes of wide regions.
#![no_main]

use std::fmt::Debug;
use std::hash::Hash;
use std::net::{Ipv4Addr, Ipv6Addr};

use arbitrary::Arbitrary;
use flowtable::key::bits::{Address, BitString};
use flowtable::{ConcurrentRoutes, Prefix};
use libfuzzer_sys::fuzz_target;
use model::routes::by_length::RoutesByLength;

/// The maximum number of steps.
const MANY: usize = 16;

#[derive(Arbitrary, Debug)]
struct Input {
    addresses: Addresses,
    ops: Vec<Op>,
}

#[derive(Arbitrary, Debug)]
enum Addresses {
    Byte,
    V4,
    V6,
    Wide,
}

/// A prefix for any address width.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Seed {
    is_other: bool,
    flipped: [u16; 2],
    len: u16,
}

/// Up to 32 prefixes: each with another bit flipped, or each longer than the one before.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Seeds {
    first: Seed,
    more: u8,
    is_chain: bool,
}

#[derive(Arbitrary, Debug)]
enum Op {
    Insert(Seeds),
    Remove(Seeds),
    RemoveNth(u16),
    Lookup(Seeds),
    Retain(u8),
    Replace(Seeds),
    Clear,
    ShrinkToFit,
    Flush,
    Hold,
    Repin,
    LetGo,
}

impl Seed {
    fn prefix<A: Address>(self) -> Prefix<A> {
        let mut bytes = [if self.is_other { 0xa5 } else { 0 }; 40];
        for bit in self.flipped.map(|bit| usize::from(bit) % A::BITS as usize) {
            bytes[bit / 8] ^= 0x80 >> (bit % 8);
        }
        let address: A = A::from_windows(|pos| bytes.window(pos));
        Prefix::new(address, u32::from(self.len) % (A::BITS + 1)).expect("it is in range")
    }
}

impl Seeds {
    fn iter<A: Address>(self) -> impl Iterator<Item = Prefix<A>> {
        let Seed { flipped: [bit, other], len, .. } = self.first;
        (0..=u16::from(self.more % 32)).map(move |nth| {
            let seed = match self.is_chain {
                true => Seed { len: len.wrapping_add(nth), ..self.first },
                false => Seed { flipped: [bit.wrapping_add(nth), other], ..self.first },
            };
            seed.prefix()
        })
    }
}

fuzz_target!(|input: Input| match input.addresses {
    Addresses::Byte => run::<u8>(input.ops),
    Addresses::V4 => run::<Ipv4Addr>(input.ops),
    Addresses::V6 => run::<Ipv6Addr>(input.ops),
    Addresses::Wide => run::<[u8; 40]>(input.ops),
});

fn run<A: Address + Debug + Hash>(ops: Vec<Op>) {
    let routes = ConcurrentRoutes::<A, u32>::new();
    let mut model = RoutesByLength::<A, u32>::new();
    let mut held = Vec::new();
    for (now, op) in (0..).zip(ops.into_iter().take(MANY)) {
        match op {
            Op::Hold => held.push(routes.pin()),
            Op::Repin => held.iter_mut().for_each(|pin| pin.repin()),
            Op::LetGo => drop(held.pop()),
            op => step(&routes, &mut model, op, now),
        }
        assert_eq!(routes.len(), model.len());
        if now % 4 == 3 {
            routes.validate().expect("invariant");
        }
    }
    routes.validate().expect("invariant");
    let table = routes.to_table();
    assert!(table.iter().eq(model.iter()));
    held.push(routes.pin());
    for pin in &held {
        for (prefix, _) in model.iter() {
            let address = prefix.address();
            assert_eq!(pin.lookup(&address), model.lookup(&address));
        }
    }
}

fn step<A: Address + Debug + Hash>(
    routes: &ConcurrentRoutes<A, u32>,
    model: &mut RoutesByLength<A, u32>,
    op: Op,
    now: u32,
) {
    match op {
        Op::Insert(seeds) => {
            for prefix in seeds.iter() {
                assert_eq!(routes.insert(prefix, now), Ok(model.insert(prefix, now)));
            }
        }
        Op::Remove(seeds) => {
            for prefix in seeds.iter() {
                assert_eq!(routes.remove(&prefix), Ok(model.remove(&prefix)));
            }
        }
        Op::RemoveNth(nth) => {
            let at = usize::from(nth) % model.len().max(1);
            if let Some(prefix) = model.prefixes().get(at) {
                assert_eq!(routes.remove(prefix), Ok(model.remove(prefix)));
            }
        }
        Op::Lookup(seeds) => {
            let addresses: Vec<A> = seeds.iter().map(|prefix| prefix.address()).collect();
            let (pin, mut found) = (routes.pin(), vec![None; addresses.len()]);
            pin.lookup_batch(&addresses, &mut found);
            for (address, found) in addresses.iter().zip(found) {
                assert_eq!(found, model.lookup(address));
                assert_eq!(found, pin.lookup(address));
            }
        }
        Op::Retain(divisor) => {
            let keep = |value: u32| value % u32::from(divisor.max(1)) != 0;
            routes.retain(|_, &value| keep(value)).expect("the limit is far away");
            for prefix in model.prefixes() {
                if !keep(*model.get(&prefix).expect("it is there")) {
                    model.remove(&prefix);
                }
            }
        }
        Op::Replace(seeds) => {
            let new: Vec<_> = seeds.iter().map(|prefix| (prefix, now)).collect();
            let table = new.iter().copied().collect();
            let former = routes.replace(table).expect("the limit is far away");
            assert!(former.iter().eq(model.iter()));
            *model = RoutesByLength::new();
            new.into_iter().for_each(|(prefix, value)| drop(model.insert(prefix, value)));
        }
        Op::Clear => {
            routes.clear().expect("the limit is far away");
            *model = RoutesByLength::new();
        }
        Op::ShrinkToFit => routes.shrink_to_fit().expect("the limit is far away"),
        _ => routes.flush(),
    }
}
