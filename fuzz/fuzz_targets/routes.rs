//! `RouteTable` compared with a reference model and `LcRouteTable`, every invariant checked
//! every few steps, with narrow and wide addresses, and around the sizes of direct tables.
#![no_main]

use std::fmt::Debug;
use std::hash::Hash;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Bound;

use arbitrary::Arbitrary;
use flowtable::key::bits::{Address, BitString};
use flowtable::trie::routes::LcRouteTable;
use flowtable::{Prefix, RouteTable};
use libfuzzer_sys::fuzz_target;
use model::routes::by_length::RoutesByLength;

/// The maximum number of steps, and the steps from one check of all invariants to the next: a
/// thousand inputs a second find more than a hundred longer ones that are checked after each step.
const MANY: usize = 8;
const EVERY: usize = 4;

#[derive(Arbitrary, Debug)]
struct Input {
    addresses: Addresses,
    /// Initial routes, such that a direct table is about to be created or removed, or none.
    first: First,
    ops: Vec<Op>,
}

#[derive(Arbitrary, Debug)]
enum Addresses {
    Byte,
    V4,
    V6,
    Wide,
}

/// Initial routes below one prefix of six bits, which has a direct table from 48 routes on until
/// there are fewer than 12: these numbers are larger without `cfg(fuzzing)`, and so are those for
/// levels, and the chunks of memory. They take time, so few kinds have any.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct First {
    kind: u8,
    more: u8,
}

/// A prefix for any address width.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Seed {
    family: u8,
    flipped: [u16; 2],
    tail: u8,
    len: u16,
}

/// Up to 8 prefixes: neighbours, each with another bit flipped, or each longer than the one
/// before.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Seeds {
    first: Seed,
    more: u8,
    how: u8,
}

#[derive(Arbitrary, Debug)]
enum Op {
    Insert(Seeds),
    Remove(Seeds),
    /// The route with this index.
    RemoveNth(u16),
    RemoveCovered(Seed),
    Get(Seed),
    LookupMut(Seed),
    LookupBatch(Seeds),
    Walk(Seed, Seed),
    /// Retains the routes whose index is a multiple of the divisor, or the others.
    Retain {
        divisor: u8,
        keep_multiples: bool,
    },
    IntoIter(u8),
    Clone,
    Collect,
    ShrinkToFit,
    Clear,
}

impl Seed {
    /// The first byte of all families but the last two.
    const BASE: u8 = 0xa5;

    fn address<A: Address>(self) -> A {
        let mut bytes = [[Self::BASE, Self::BASE, 0, 0xff][usize::from(self.family % 4)]; 40];
        bytes[A::BITS as usize / 8 - 1] ^= self.tail;
        for bit in self.flipped.map(|bit| usize::from(bit) % A::BITS as usize) {
            bytes[bit / 8] ^= 0x80 >> (bit % 8);
        }
        A::from_windows(|pos| bytes.window(pos))
    }

    fn prefix<A: Address>(self) -> Prefix<A> {
        cut(self.address(), u32::from(self.len) % (A::BITS + 1))
    }
}

impl Seeds {
    fn iter(self) -> impl Iterator<Item = Seed> {
        let Seed { flipped: [bit, other], tail, len, .. } = self.first;
        (0..=self.more % 8).map(move |i| match self.how % 3 {
            0 => Seed { tail: tail.wrapping_add(i), ..self.first },
            1 => Seed { flipped: [bit.wrapping_add(i.into()), other], ..self.first },
            _ => Seed { len: len.wrapping_add(i.into()), ..self.first },
        })
    }
}

fn bound_includes<T>(bound: Bound<T>) -> bool {
    matches!(bound, Bound::Included(_))
}

fn cut<A: Address>(address: A, len: u32) -> Prefix<A> {
    Prefix::new(address, len).expect("it is in range")
}

/// The last address of a prefix.
fn last<A: Address>(prefix: &Prefix<A>) -> A {
    let (first, all) = (prefix.address(), A::from_windows(|_| u64::MAX));
    let hidden = all.truncated(prefix.len());
    A::from_windows(|pos| first.window(pos) | (all.window(pos) ^ hidden.window(pos)))
}

fuzz_target!(|input: Input| match input.addresses {
    Addresses::Byte => run::<u8, u8>(input, |now| now as u8),
    Addresses::V4 => run::<Ipv4Addr, u32>(input, |now| now),
    Addresses::V6 => run::<Ipv6Addr, Box<u32>>(input, Box::new),
    Addresses::Wide => run::<[u8; 40], ()>(input, |_| ()),
});

fn run<A: Address + Debug + Hash, V: Clone + Debug + PartialEq>(input: Input, make: fn(u32) -> V) {
    let (ours, model, reference) = (RouteTable::new(), RoutesByLength::new(), LcRouteTable::new());
    let mut trio: Trio<A, V> = Trio { ours, model, reference, make, now: 0 };
    trio.fill(input.first);
    for (at, op) in input.ops.into_iter().take(MANY).enumerate() {
        trio.step(op);
        if at % EVERY == EVERY - 1 {
            trio.check(at);
        }
    }
    trio.check(0);
    let routes = trio.model.iter();
    assert!(trio.reference.iter().eq(routes.iter().copied()));
    let taken: Vec<(Prefix<A>, V)> = trio.ours.into_iter().collect();
    assert!(taken.iter().map(|(prefix, value)| (*prefix, value)).eq(routes));
}

struct Trio<A, V> {
    ours: RouteTable<A, V>,
    model: RoutesByLength<A, V>,
    reference: LcRouteTable<A, V>,
    make: fn(u32) -> V,
    now: u32,
}

impl<A: Address + Debug + Hash, V: Clone + Debug + PartialEq> Trio<A, V> {
    /// Returns a new value.
    fn value(&mut self) -> V {
        self.now += 1;
        (self.make)(self.now)
    }

    fn fill(&mut self, First { kind, more }: First) {
        let (most, left) = match kind % 32 {
            8 => (40 + u32::from(more % 16), u32::MAX),
            16 => (56, 8 + u32::from(more % 16)),
            _ => return,
        };
        if A::BITS < 24 {
            return;
        }
        // Spread over all of 18 bits, which are the lengths of most.
        let numbered = |number: u32| {
            let bits = u64::from(Seed::BASE >> 2) << 58 | u64::from(number * 75 % 4096) << 46;
            let len = 18 + number % 4;
            cut(A::from_windows(|pos| bits.checked_shl(pos).unwrap_or(0)), len)
        };
        for number in 0..most {
            let value = self.value();
            self.insert(numbered(number), value);
        }
        for number in left..most {
            self.remove(&numbered(number));
        }
    }

    fn insert(&mut self, prefix: Prefix<A>, value: V) {
        let old = self.model.insert(prefix, value.clone());
        assert_eq!(self.ours.insert(prefix, value.clone()), old);
        assert_eq!(self.reference.insert(prefix, value), old);
    }

    fn remove(&mut self, prefix: &Prefix<A>) {
        let old = self.model.remove(prefix);
        assert_eq!(self.ours.remove(prefix), old);
        assert_eq!(self.reference.remove(prefix), old);
    }

    fn lookup(&self, address: &A) {
        let longest = self.model.lookup(address);
        assert_eq!(self.ours.lookup(address), longest);
        assert_eq!(self.reference.lookup(address), longest);
    }

    /// Compares all routes, and lookups of a sample.
    fn check(&self, at: usize) {
        self.ours.validate().expect("invariant");
        let count = self.model.len();
        assert_eq!((self.ours.len(), self.reference.len()), (count, count));
        assert!(count > 0 || self.ours.allocation_size() == 0);
        let stride = count / 16 + 1;
        self.reference.validate().expect("invariant");
        let routes = self.model.iter();
        assert!(self.ours.iter().eq(routes.iter().copied()));
        for (prefix, value) in routes.into_iter().skip(at % stride).step_by(stride) {
            assert_eq!(self.ours.get(&prefix), Some(value));
            self.lookup(&prefix.address());
            self.lookup(&last(&prefix));
        }
    }

    fn step(&mut self, op: Op) {
        match op {
            Op::Insert(seeds) => {
                for seed in seeds.iter() {
                    let value = self.value();
                    self.insert(seed.prefix(), value);
                    self.lookup(&seed.address());
                }
            }
            Op::Remove(seeds) => {
                for seed in seeds.iter() {
                    self.remove(&seed.prefix());
                    self.lookup(&seed.address());
                }
            }
            Op::RemoveNth(number) => {
                let at = usize::from(number) % self.ours.len().max(1);
                let nth = self.ours.prefixes().nth(at);
                let Some(prefix) = nth else { return };
                self.remove(&prefix);
                self.lookup(&prefix.address());
            }
            Op::RemoveCovered(seed) => {
                let covered = self.ours.covered(&seed.prefix()).map(|(prefix, _)| prefix);
                covered.collect::<Vec<_>>().iter().for_each(|prefix| self.remove(prefix));
                assert!(self.ours.covered(&seed.prefix()).next().is_none());
            }
            Op::Get(seed) => {
                let prefix = seed.prefix();
                assert_eq!(self.ours.get(&prefix), self.model.get(&prefix));
                assert_eq!(self.ours.contains(&prefix), self.model.get(&prefix).is_some());
                assert_eq!(
                    self.ours.get_mut(&prefix).map(|value| &*value),
                    self.model.get(&prefix)
                );
                self.lookup(&seed.address());
            }
            Op::LookupMut(seed) => {
                let value = self.value();
                let address: A = seed.address();
                let theirs = self.model.lookup(&address);
                let found = self.ours.lookup_mut(&address);
                assert_eq!(found.as_ref().map(|(prefix, now)| (*prefix, &**now)), theirs);
                if let Some((prefix, now)) = found {
                    *now = value.clone();
                    self.model.insert(prefix, value.clone());
                    self.reference.insert(prefix, value);
                }
            }
            Op::LookupBatch(seeds) => {
                let asked: Vec<A> =
                    seeds.iter().chain(seeds.iter().take(9)).map(Seed::address).collect();
                let mut found = vec![None; asked.len()];
                self.ours.lookup_batch(&asked, |i, route| found[i] = route);
                let mut values = vec![None; asked.len()];
                self.ours.lookup_batch_values(&asked, |i, value| values[i] = value);
                assert!(
                    values.iter().eq(&found
                        .iter()
                        .map(|one| one.map(|(_, value)| value))
                        .collect::<Vec<_>>())
                );
                assert!(found.into_iter().eq(asked.iter().map(|one| self.model.lookup(one))));
            }
            Op::Walk(seed, other) => {
                self.walk(&seed.prefix(), &other.address());
                self.walk_mutably(&seed.prefix(), &other.address());
            }
            op => self.whole(op),
        }
    }

    fn walk(&self, prefix: &Prefix<A>, address: &A) {
        let (ours, theirs) = (&self.ours, self.model.iter());
        let those = |are: &dyn Fn(&Prefix<A>) -> bool| {
            let those = theirs.iter().copied().filter(|(route, _)| are(route));
            those.collect::<Vec<(Prefix<A>, &V)>>()
        };
        let (covering, covered) =
            (those(&|route| route.covers(prefix)), those(&|route| prefix.covers(route)));
        assert_eq!(ours.overlaps(prefix), !covering.is_empty() || !covered.is_empty());
        assert_eq!(ours.lookup_prefix(prefix), covering.last().copied());
        for bound in [Bound::Included(*prefix), Bound::Excluded(*prefix)] {
            let is_after = |at: &Prefix<A>| at > prefix || at == prefix && bound_includes(bound);
            assert!(ours.iter_from(bound).eq(those(&is_after)));
        }
        assert!(ours.matches(address).eq(those(&|route| route.contains(address))));
        assert!(ours.covering(prefix).eq(covering));
        assert!(ours.covered(prefix).eq(covered));
    }

    /// Changes the values of the routes that a prefix covers, or that contain an address.
    fn walk_mutably(&mut self, prefix: &Prefix<A>, address: &A) {
        let Self { ours, model, reference, make, now } = self;
        let covered: Vec<_> = ours.covered_mut(prefix).collect();
        let mut change = |(prefix, value): (Prefix<A>, &mut V)| {
            *now += 1;
            let old = std::mem::replace(value, make(*now));
            assert_eq!(model.insert(prefix, value.clone()), Some(old.clone()));
            assert_eq!(reference.insert(prefix, value.clone()), Some(old));
        };
        covered.into_iter().for_each(&mut change);
        let matches: Vec<_> = ours.matches_mut(address).collect();
        matches.into_iter().for_each(change);
    }

    /// Applies an operation on the whole table.
    fn whole(&mut self, op: Op) {
        let Self { ours, model, reference, .. } = self;
        match op {
            Op::Retain { divisor, keep_multiples } => {
                let routes = model.clone();
                let mut routes = routes.iter().into_iter();
                let mut number = 0_u32;
                ours.retain(|prefix, value| {
                    assert_eq!(Some((prefix, &*value)), routes.next());
                    let keep = number.is_multiple_of(divisor.into()) == keep_multiples;
                    if !keep {
                        model.remove(&prefix);
                        reference.remove(&prefix);
                    }
                    number += 1;
                    keep
                });
                assert!(routes.next().is_none());
            }
            Op::IntoIter(count) => {
                let taken = ours.clone().into_iter().take(count.into());
                let taken: Vec<(Prefix<A>, V)> = taken.collect();
                let theirs = model.iter().into_iter().take(count.into());
                assert!(taken.iter().map(|(prefix, value)| (*prefix, value)).eq(theirs));
            }
            Op::Clone => {
                let copy = ours.clone();
                assert_eq!(copy, *ours);
                *ours = copy;
            }
            Op::Collect => {
                let mut routes: Vec<(Prefix<A>, V)> = ours.clone().into_iter().collect();
                routes.reverse();
                let copy: RouteTable<A, V> = routes.into_iter().collect();
                assert_eq!(copy, *ours);
                *ours = copy;
            }
            Op::ShrinkToFit => {
                let before = ours.allocation_size();
                ours.shrink_to_fit();
                assert!(ours.allocation_size() <= before);
            }
            _ => {
                ours.clear();
                (*model, *reference) = (RoutesByLength::new(), LcRouteTable::new());
            }
        }
    }
}
