//! `ConcurrentRoutes` against a reference model, with pins that begin, repin and end in between,
//! and the invariants checked after each step.

use core::fmt::Debug;
use core::hash::Hash;
use core::net::{Ipv4Addr, Ipv6Addr};

use flowtable::concurrent::{ConcurrentRoutes, PinnedRoutes};
use flowtable::key::bits::{Address, BitString};
use flowtable::{Prefix, RouteTable};
use model::prefixes::{flipped, last_address, prefix_of};
use model::routes::by_length::RoutesByLength;
use proptest::collection::vec;
use proptest::prelude::*;

use super::turn;

/// A prefix for any address width.
#[derive(Clone, Copy, Debug)]
struct Seed {
    pattern: u8,
    flipped: [u32; 2],
    len: u32,
}

impl Seed {
    fn prefix<A: Address>(self) -> Prefix<A> {
        let mut bytes = [self.pattern; 40];
        for bit in self.flipped.map(|bit| bit % A::BITS) {
            bytes[bit as usize / 8] ^= 0x80 >> (bit % 8);
        }
        let address: A = A::from_windows(|pos| bytes.window(pos));
        prefix_of(address, self.len % (A::BITS + 1))
    }
}

#[derive(Clone, Debug)]
enum Op {
    Insert(Seed, u32),
    Remove(Seed),
    /// Withdraws a route that exists.
    RemoveNth(usize),
    Apply(Vec<(Seed, Option<u32>)>),
    /// Routes of one region, which make it wide; and their withdrawal.
    Fill(Seed, u32),
    Drain(Seed),
    Retain(u32),
    Clear,
    Replace(Vec<(Seed, u32)>),
    ShrinkToFit,
    Pin,
    Repin(usize),
    Unpin(usize),
}

/// Prefixes from a small set, so that operations meet the same ones.
fn seed() -> impl Strategy<Value = Seed> {
    let pattern = prop_oneof![Just(0), Just(0x0F), any::<u8>()];
    (pattern, [0..140_u32, 0..140_u32], 0..140_u32).prop_map(|(pattern, flipped, len)| Seed {
        pattern,
        flipped,
        len,
    })
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (seed(), any::<u32>()).prop_map(|(at, value)| Op::Insert(at, value)),
        3 => seed().prop_map(Op::Remove),
        6 => any::<usize>().prop_map(Op::RemoveNth),
        2 => vec((seed(), any::<Option<u32>>()), 0..9).prop_map(Op::Apply),
        1 => (seed(), any::<u32>()).prop_map(|(at, value)| Op::Fill(at, value)),
        1 => seed().prop_map(Op::Drain),
        1 => (2..5_u32).prop_map(Op::Retain),
        1 => Just(Op::Clear),
        1 => vec((seed(), any::<u32>()), 0..9).prop_map(Op::Replace),
        1 => Just(Op::ShrinkToFit),
        2 => Just(Op::Pin),
        2 => any::<usize>().prop_map(Op::Repin),
        2 => any::<usize>().prop_map(Op::Unpin),
    ]
}

struct Checked<'r, A: Address + Hash + Debug> {
    routes: &'r ConcurrentRoutes<A, u32>,
    model: RoutesByLength<A, u32>,
    present: Vec<Prefix<A>>,
    pins: Vec<PinnedRoutes<'r, A, u32>>,
}

/// Routes that fill a region: more than make it wide.
const FILLED: u64 = if cfg!(miri) { 4 } else { 2200 };

/// Returns the routes of a region, of 12 bits and more.
fn filling<A: Address>(seed: Seed) -> impl Iterator<Item = Prefix<A>> {
    let region = seed.prefix::<A>().address().window(0) >> 58 << 58;
    (0..FILLED).map(move |nth| {
        let bits = region | nth.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 6;
        let address: A =
            A::from_windows(|pos| if pos == 0 { bits } else { nth << 40 | bits >> 50 });
        prefix_of(address, (12 + nth as u32 % 20).min(A::BITS))
    })
}

impl<A: Address + Hash + Debug> Checked<'_, A> {
    fn insert(&mut self, at: Prefix<A>, value: u32) {
        let old = self.routes.insert(at, value).expect("the limit is far away");
        assert_eq!(old, self.model.insert(at, value));
        self.present.push(at);
    }

    fn remove(&mut self, at: Prefix<A>) {
        let old = self.routes.remove(&at).expect("the limit is far away");
        assert_eq!(old, self.model.remove(&at));
    }

    fn replace(&mut self, routes: Vec<(Prefix<A>, u32)>) {
        self.model = RoutesByLength::new();
        self.present.clear();
        for (at, value) in routes {
            self.model.insert(at, value);
            self.present.push(at);
        }
    }

    fn step(&mut self, op: Op) {
        let count = self.pins.len().max(1);
        match op {
            Op::Insert(at, value) => self.insert(at.prefix(), value),
            Op::Remove(at) => self.remove(at.prefix()),
            Op::RemoveNth(nth) if !self.present.is_empty() => {
                let at = self.present.swap_remove(nth % self.present.len());
                self.remove(at);
            }
            Op::RemoveNth(_) => {}
            Op::Apply(updates) => {
                let updates = updates.into_iter().map(|(at, value)| (at.prefix(), value));
                let updates: Vec<_> = updates.collect();
                self.routes.apply(updates.iter().copied()).expect("the limit is far away");
                for (at, value) in updates {
                    match value {
                        Some(value) => drop(self.model.insert(at, value)),
                        None => drop(self.model.remove(&at)),
                    }
                    self.present.push(at);
                }
            }
            Op::Fill(seed, value) => filling(seed).for_each(|at| self.insert(at, value)),
            Op::Drain(seed) => filling(seed).for_each(|at| self.remove(at)),
            Op::Retain(divisor) => {
                self.routes.retain(|_, value| value % divisor != 0).unwrap();
                let all = self.model.iter().into_iter().map(|(at, &value)| (at, value));
                let all: Vec<_> = all.collect();
                for (at, _) in all.into_iter().filter(|(_, value)| value % divisor == 0) {
                    self.model.remove(&at);
                }
            }
            Op::Clear => {
                self.routes.clear().unwrap();
                self.replace(vec![]);
            }
            Op::Replace(new) => {
                let new: Vec<_> = new.into_iter().map(|(at, value)| (at.prefix(), value)).collect();
                let old = self.routes.replace(new.iter().copied().collect()).unwrap();
                assert_eq!(old.len(), self.model.len());
                self.replace(new);
            }
            Op::ShrinkToFit => self.routes.shrink_to_fit().unwrap(),
            Op::Pin => self.pins.push(self.routes.pin()),
            Op::Repin(at) => {
                if let Some(pin) = self.pins.get_mut(at % count) {
                    pin.repin();
                }
            }
            Op::Unpin(at) => {
                if at % count < self.pins.len() {
                    self.pins.swap_remove(at % count);
                }
            }
        }
    }

    fn compare(&self, at: &Prefix<A>) {
        let addresses = [at.address(), last_address(at), flipped(&at.address(), A::BITS - 1)];
        let expected = addresses.each_ref().map(|address| self.model.lookup(address));
        let pinned = self.routes.pin();
        for pin in self.pins.iter().chain([&pinned]) {
            let (mut found, mut values) = ([None; 3], [None; 3]);
            pin.lookup_batch(&addresses, &mut found);
            assert_eq!(found, expected);
            pin.lookup_batch_values(&addresses, &mut values);
            assert_eq!(values, expected.map(|route| route.map(|(_, value)| value)));
            for (address, expected) in addresses.iter().zip(expected) {
                assert_eq!(pin.lookup(address), expected);
            }
        }
        assert_eq!(self.routes.get(at).as_ref(), self.model.get(at));
        assert_eq!(self.routes.len(), self.model.len());
    }
}

fn run<A: Address + Hash + Debug>(ops: Vec<Op>) {
    let _turn = turn();
    let routes = ConcurrentRoutes::<A, u32>::new();
    let model = RoutesByLength::new();
    let mut checked = Checked { routes: &routes, model, present: vec![], pins: vec![] };
    for op in ops {
        let seeds = match op {
            Op::Insert(at, _) | Op::Remove(at) => vec![at],
            Op::Apply(ref updates) => updates.iter().map(|(at, _)| *at).collect(),
            _ => vec![],
        };
        checked.step(op);
        seeds.into_iter().for_each(|seed| checked.compare(&seed.prefix()));
        routes.validate().unwrap();
    }
    for at in checked.present.iter().rev().take(200) {
        checked.compare(at);
    }
    let table: RouteTable<A, u32> = routes.to_table();
    assert!(table.iter().all(|(at, value)| checked.model.get(&at) == Some(value)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 60 }))]

    #[test]
    fn answers_of_short_addresses(ops in vec(op(), 0..if cfg!(miri) { 12 } else { 60 })) {
        run::<u8>(ops);
    }

    #[test]
    fn answers_of_v4(ops in vec(op(), 0..if cfg!(miri) { 12 } else { 60 })) {
        run::<Ipv4Addr>(ops);
    }

    #[test]
    fn answers_of_v6(ops in vec(op(), 0..if cfg!(miri) { 12 } else { 60 })) {
        run::<Ipv6Addr>(ops);
    }
}
