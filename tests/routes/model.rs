//! `RouteTable` compared with a list of routes and with `LcRouteTable`, with the invariants checked
//! after each step.

use core::fmt::Debug;
use core::hash::Hash;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::ops::Bound;
use model::cases;

use flowtable::key::bits::Address;
use flowtable::trie::routes::LcRouteTable;
use flowtable::{Prefix, RouteTable};
use model::prefixes::{flipped, prefix_of};
use model::prefixes::{last_address, spliced};
use model::routes::list::RouteList;
use proptest::collection::vec;
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

/// A value made of a number.
trait Value: Clone + Debug + PartialEq {
    fn make(number: u32) -> Self;
}

impl Value for () {
    fn make(_: u32) -> Self {}
}

impl Value for u32 {
    fn make(number: u32) -> Self {
        number
    }
}

impl Value for String {
    fn make(number: u32) -> Self {
        format!("number {number}")
    }
}

impl Value for [u64; 25] {
    fn make(number: u32) -> Self {
        [number.into(); 25]
    }
}

/// A prefix for any address width. Those of one pattern share all bits up to the first that is
/// flipped in one of them.
#[derive(Clone, Copy, Debug)]
struct Seed {
    pattern: u8,
    flipped_bits: [u32; 2],
    tail: u8,
    len: Len,
}

/// A prefix length for any address width.
#[derive(Clone, Copy, Debug)]
enum Len {
    Any(u32),
    Host,
    /// This many bits after the first flipped bit.
    AfterFlipped(u32),
    /// Around a multiple of six, where nodes end.
    Stride(u32, u32),
}

impl Seed {
    fn address<A: Address>(self) -> A {
        use flowtable::key::bits::BitString;
        let mut bytes = [self.pattern; 40];
        bytes[A::BITS as usize / 8 - 1] ^= self.tail;
        for bit in self.flipped_bits.map(|bit| bit % A::BITS) {
            bytes[bit as usize / 8] ^= 0x80 >> (bit % 8);
        }
        A::from_windows(|pos| bytes.window(pos))
    }

    fn prefix<A: Address>(self) -> Prefix<A> {
        let len = match self.len {
            Len::Any(len) => len,
            Len::Host => A::BITS,
            Len::AfterFlipped(more) => self.flipped_bits[0] % A::BITS + more,
            Len::Stride(count, more) => (6 * count % A::BITS + more).saturating_sub(1),
        };
        prefix_of(self.address(), len % (A::BITS + 1))
    }
}

/// The prefix of an operation: a new one, or one close to the present route with this index.
#[derive(Clone, Copy, Debug)]
enum Pick {
    New(Seed),
    There(usize),
    Longer(usize, u32, Seed),
    Shorter(usize, u32),
    /// Of equal length; the bit this far before its end is flipped.
    Beside(usize, u32),
}

#[derive(Clone, Debug)]
enum Op {
    Insert(Pick, u32),
    InsertMany(Vec<Pick>),
    Extend(Vec<Pick>),
    Remove(Pick),
    RemoveMany(Vec<Pick>),
    RemoveCovered(Pick),
    Get(Pick, u32),
    Lookup(Pick, u32),
    LookupBatch(Vec<(Pick, u32)>),
    Walk(Pick, u32),
    /// Retains the routes whose bits are set, and changes some of them.
    Retain(u64),
    IntoIter(usize),
    Clone,
    Collect(u64),
    Iterate,
    Shrink,
    Clear,
}

fn seed() -> impl Strategy<Value = Seed> + Clone {
    let pattern = proptest::sample::select(&[0_u8, 0xff, 0xa5][..]);
    let flipped_bits = proptest::array::uniform2(0..320_u32);
    let len = prop_oneof![
        3 => (0..=320_u32).prop_map(Len::Any),
        1 => Just(Len::Host),
        2 => (0..3_u32).prop_map(Len::AfterFlipped),
        2 => (0..54_u32, 0..3_u32).prop_map(|(count, more)| Len::Stride(count, more)),
    ];
    let tail = prop_oneof![0..4_u8, any::<u8>()];
    (pattern, flipped_bits, tail, len).prop_map(|(pattern, flipped_bits, tail, len)| Seed {
        pattern,
        flipped_bits,
        tail,
        len,
    })
}

fn pick() -> impl Strategy<Value = Pick> + Clone {
    let (route, by) = (0..1000_usize, 0..9_u32);
    prop_oneof![
        3 => seed().prop_map(Pick::New),
        2 => route.clone().prop_map(Pick::There),
        2 => (route.clone(), prop_oneof![by.clone(), 0..130_u32], seed())
            .prop_map(|(route, by, seed)| Pick::Longer(route, by, seed)),
        1 => (route.clone(), prop_oneof![by.clone(), 0..130_u32])
            .prop_map(|(route, by)| Pick::Shorter(route, by)),
        2 => (route, by).prop_map(|(route, by)| Pick::Beside(route, by)),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let many = vec(pick(), 0..40);
    let (bit, value) = (0..320_u32, any::<u32>());
    prop_oneof![
        8 => (pick(), value).prop_map(|(pick, value)| Op::Insert(pick, value)),
        4 => many.clone().prop_map(Op::InsertMany),
        1 => many.clone().prop_map(Op::Extend),
        5 => pick().prop_map(Op::Remove),
        3 => many.prop_map(Op::RemoveMany),
        1 => pick().prop_map(Op::RemoveCovered),
        2 => (pick(), value).prop_map(|(pick, value)| Op::Get(pick, value)),
        3 => (pick(), bit.clone()).prop_map(|(pick, bit)| Op::Lookup(pick, bit)),
        2 => vec((pick(), bit.clone()), 0..100)
            .prop_map(Op::LookupBatch),
        3 => (pick(), bit).prop_map(|(pick, bit)| Op::Walk(pick, bit)),
        2 => prop_oneof![any::<u64>(), Just(0), Just(!1), Just(u64::MAX)].prop_map(Op::Retain),
        1 => (0..50_usize).prop_map(Op::IntoIter),
        1 => Just(Op::Clone),
        1 => any::<u64>().prop_map(Op::Collect),
        1 => Just(Op::Iterate),
        2 => Just(Op::Shrink),
        1 => Just(Op::Clear),
    ]
}

/// The table, the list, and the `LcRouteTable`.
struct Trio<A, V> {
    ours: RouteTable<A, V>,
    linear: RouteList<A, V>,
    reference: LcRouteTable<A, V>,
}

impl<A: Address + Debug + Hash, V: Value> Trio<A, V> {
    fn prefix(&self, pick: Pick) -> Prefix<A> {
        let there = |route: usize| {
            let routes = self.linear.iter();
            Some(routes.get(route % routes.len().max(1))?.0)
        };
        let found = match pick {
            Pick::New(seed) => Some(seed.prefix()),
            Pick::There(route) => there(route),
            Pick::Longer(route, by, seed) => there(route).map(|near| {
                let address = spliced(&near.address(), near.len(), &seed.address());
                prefix_of(address, (near.len() + by).min(A::BITS))
            }),
            Pick::Shorter(route, by) => {
                there(route).map(|near| prefix_of(near.address(), near.len().saturating_sub(by)))
            }
            Pick::Beside(route, by) => {
                there(route).map(|near| match near.len().checked_sub(by + 1) {
                    Some(bit) => prefix_of(flipped(&near.address(), bit), near.len()),
                    None => near,
                })
            }
        };
        found.unwrap_or_else(Prefix::default_route)
    }

    /// The first address of the prefix, or one that differs from it in a bit.
    fn address(&self, pick: Pick, bit: u32) -> A {
        let first = self.prefix(pick).address();
        if bit < A::BITS { flipped(&first, bit) } else { first }
    }

    fn insert(&mut self, prefix: Prefix<A>, value: &V) {
        let old = self.linear.insert(prefix, value.clone());
        assert_eq!(self.ours.insert(prefix, value.clone()), old, "{prefix:?}");
        assert_eq!(self.reference.insert(prefix, value.clone()), old, "{prefix:?}");
    }

    fn remove(&mut self, prefix: &Prefix<A>) {
        let old = self.linear.remove(prefix);
        assert_eq!(self.ours.remove(prefix), old, "{prefix:?}");
        assert_eq!(self.reference.remove(prefix), old, "{prefix:?}");
    }

    fn step(&mut self, op: Op) {
        match op {
            Op::Insert(pick, value) => self.insert(self.prefix(pick), &V::make(value)),
            Op::InsertMany(picks) => {
                for (pick, value) in picks.into_iter().zip(0..) {
                    self.insert(self.prefix(pick), &V::make(value));
                }
            }
            Op::Extend(picks) => {
                let values = (0..).map(V::make);
                let routes: Vec<(Prefix<A>, V)> =
                    picks.into_iter().map(|pick| self.prefix(pick)).zip(values).collect();
                self.ours.extend(routes.iter().cloned());
                for (prefix, value) in routes {
                    self.linear.insert(prefix, value.clone());
                    self.reference.insert(prefix, value);
                }
            }
            Op::Remove(pick) => self.remove(&self.prefix(pick)),
            Op::RemoveMany(picks) => {
                for pick in picks {
                    self.remove(&self.prefix(pick));
                }
            }
            Op::RemoveCovered(pick) => {
                let covered = self.ours.covered(&self.prefix(pick));
                let covered: Vec<Prefix<A>> = covered.map(|(prefix, _)| prefix).collect();
                covered.iter().for_each(|prefix| self.remove(prefix));
            }
            op => self.query(op),
        }
    }

    fn query(&mut self, op: Op) {
        match op {
            Op::Get(pick, value) => {
                let prefix = self.prefix(pick);
                assert_eq!(self.ours.contains(&prefix), self.linear.get(&prefix).is_some());
                assert_eq!(self.ours.get(&prefix), self.linear.get(&prefix));
                assert_eq!(self.reference.get(&prefix), self.linear.get(&prefix));
                if self.ours.get_mut(&prefix).map(|now| *now = V::make(value)).is_some() {
                    self.linear.insert(prefix, V::make(value));
                    self.reference.insert(prefix, V::make(value));
                }
            }
            Op::Lookup(pick, bit) => {
                let address = self.address(pick, bit);
                self.lookup(&address);
                let Some((prefix, _)) = self.linear.lookup(&address) else {
                    return assert!(self.ours.lookup_mut(&address).is_none());
                };
                let (found, value) = match bit % 2 {
                    0 => self.ours.lookup_mut(&address),
                    _ => self.ours.matches_mut(&address).last(),
                }
                .expect("a route for it");
                assert_eq!((found, Some(&*value)), (prefix, self.linear.get(&prefix)));
                *value = V::make(bit);
                self.linear.insert(prefix, V::make(bit));
                self.reference.insert(prefix, V::make(bit));
            }
            Op::LookupBatch(picks) => {
                let addresses: Vec<A> =
                    picks.into_iter().map(|(pick, bit)| self.address(pick, bit)).collect();
                let mut found = vec![None; addresses.len()];
                let mut values = vec![None; addresses.len()];
                self.ours.lookup_batch(&addresses, |i, route| found[i] = route);
                self.ours.lookup_batch_values(&addresses, |i, value| values[i] = value);
                for (address, (found, value)) in addresses.iter().zip(found.into_iter().zip(values))
                {
                    assert_eq!(found, self.linear.lookup(address), "{address:?}");
                    assert_eq!(value, found.map(|(_, value)| value), "{address:?}");
                }
            }
            Op::Walk(pick, bit) => {
                let (prefix, address) = (self.prefix(pick), self.address(pick, bit));
                self.walk(&prefix, &address);
                self.walk_mutably(&prefix, &address);
            }
            op => self.whole(op),
        }
    }

    fn lookup(&self, address: &A) {
        let longest = self.linear.lookup(address);
        assert_eq!(self.ours.lookup(address), longest, "{address:?}");
        assert_eq!(self.reference.lookup(address), longest, "{address:?}");
    }

    fn walk(&self, prefix: &Prefix<A>, address: &A) {
        let Self { ours, linear, .. } = self;
        assert!(ours.matches(address).eq(linear.matches(address)), "{address:?}");
        assert!(ours.covering(prefix).eq(linear.covering(prefix)), "{prefix:?}");
        assert!(ours.covered(prefix).eq(linear.covered(prefix)), "{prefix:?}");
        assert_eq!(ours.overlaps(prefix), linear.overlaps(prefix), "{prefix:?}");
        assert_eq!(ours.lookup_prefix(prefix), linear.covering(prefix).pop(), "{prefix:?}");
        for bound in [Bound::Included(*prefix), Bound::Excluded(*prefix), Bound::Unbounded] {
            assert!(ours.iter_from(bound).eq(linear.iter_from(bound)), "{bound:?}");
        }
        let shorter = prefix_of(*address, prefix.len().saturating_sub(3));
        assert!(ours.covering(&shorter).eq(linear.covering(&shorter)), "{shorter:?}");
        assert!(ours.covered(&shorter).eq(linear.covered(&shorter)), "{shorter:?}");
        assert_eq!(ours.overlaps(&shorter), linear.overlaps(&shorter), "{shorter:?}");
    }

    /// Changes the values of all routes that a prefix covers, and then those that contain an
    /// address.
    fn walk_mutably(&mut self, prefix: &Prefix<A>, address: &A) {
        let Self { ours, linear, reference } = self;
        let covered = linear.covered(prefix).into_iter().map(|(prefix, _)| prefix);
        let covered: Vec<Prefix<A>> = covered.collect();
        let matches = linear.matches(address).into_iter().map(|(prefix, _)| prefix);
        let matches: Vec<Prefix<A>> = matches.collect();
        let mut number = 0;
        let mut change = |(prefix, value): (Prefix<A>, &mut V)| {
            number += 1;
            *value = V::make(number);
            linear.insert(prefix, value.clone());
            reference.insert(prefix, value.clone());
            prefix
        };
        // All references at once.
        let routes: Vec<_> = ours.covered_mut(prefix).collect();
        assert!(routes.into_iter().map(&mut change).eq(covered), "{prefix:?}");
        let routes: Vec<_> = ours.matches_mut(address).collect();
        assert!(routes.into_iter().map(&mut change).eq(matches), "{address:?}");
    }

    /// Retains the routes whose bits are set, in order, and changes some of these.
    fn retain(&mut self, bits: u64) {
        let Self { ours, linear, reference } = self;
        let is_set = |at: usize| bits >> (at % 64) & 1 == 1;
        let routes = linear.clone();
        let mut routes = routes.iter().into_iter().enumerate();
        ours.retain(|prefix, value| {
            let (at, (theirs, theirs_value)) = routes.next().expect("equal numbers of routes");
            assert_eq!((prefix, &*value), (theirs, theirs_value));
            if is_set(at) && at % 5 == 0 {
                *value = V::make(at as u32);
                linear.insert(prefix, value.clone());
                reference.insert(prefix, value.clone());
            } else if !is_set(at) {
                linear.remove(&prefix);
                reference.remove(&prefix);
            }
            is_set(at)
        });
        assert!(routes.next().is_none(), "the closure is called for each route");
    }

    /// Applies an operation on the whole table.
    fn whole(&mut self, op: Op) {
        let Self { ours, linear, reference } = self;
        match op {
            Op::Retain(bits) => self.retain(bits),
            Op::IntoIter(count) => {
                let mut taken = ours.clone().into_iter();
                let theirs = linear.clone();
                let theirs = theirs.iter().into_iter().take(count);
                let taken: Vec<(Prefix<A>, V)> = taken.by_ref().take(count).collect();
                assert!(theirs.eq(taken.iter().map(|(prefix, value)| (*prefix, value))));
            }
            Op::Clone => {
                let clone = ours.clone();
                assert_eq!(&clone, ours);
                *ours = clone;
            }
            Op::Collect(seed) => {
                let mut routes: Vec<(Prefix<A>, V)> = ours.clone().into_iter().collect();
                routes.shuffle(&mut StdRng::seed_from_u64(seed));
                let collected: RouteTable<A, V> = routes.into_iter().collect();
                assert_eq!(&collected, ours, "equality ignores the order");
                assert_eq!(ours, &collected);
                *ours = collected;
            }
            Op::Iterate => {
                let theirs = linear.iter();
                assert!(ours.prefixes().eq(theirs.iter().map(|(prefix, _)| *prefix)));
                assert!(ours.values().eq(theirs.iter().map(|(_, value)| *value)));
                assert!((&*ours).into_iter().eq(theirs.iter().copied()));
                assert!(ours.covered(&Prefix::default_route()).eq(theirs));
            }
            Op::Shrink => {
                let before = ours.allocation_size();
                ours.shrink_to_fit();
                assert!(ours.allocation_size() <= before);
            }
            Op::Clear => {
                ours.clear();
                linear.clear();
                *reference = LcRouteTable::new();
            }
            op => unreachable!("{op:?} is handled by the callers"),
        }
    }

    /// Compares the tables, and lookups around every `step`th route from this one on.
    fn compare(&self, from: usize, step: usize) {
        let Self { ours, linear, reference } = self;
        if !cfg!(miri) {
            ours.validate().unwrap_or_else(|broken| panic!("{broken}"));
            reference.validate().unwrap_or_else(|broken| panic!("{broken}"));
        }
        assert_eq!((ours.len(), reference.len()), (linear.len(), linear.len()));
        assert_eq!(ours.is_empty(), linear.is_empty());
        assert!(!ours.is_empty() || ours.allocation_size() == 0);
        let theirs = linear.iter();
        assert!(ours.iter().eq(theirs.iter().copied()), "{ours:?}");
        assert!(reference.iter().eq(theirs.iter().copied()), "{reference:?}");
        for (prefix, value) in theirs.into_iter().skip(from % step).step_by(step) {
            assert_eq!(ours.get(&prefix), Some(value));
            let (first, last) = (prefix.address(), last_address(&prefix));
            self.lookup(&first);
            self.lookup(&last);
            if let Some(bit) = prefix.len().checked_sub(1) {
                self.lookup(&flipped(&first, bit));
                self.lookup(&flipped(&last, bit));
            }
        }
    }
}

/// Applies `ops` to the tables, which must agree after each; in Miri, after every third.
fn run<A: Address + Debug + Hash, V: Value>(ops: Vec<Op>) {
    let (ours, linear, reference) = (RouteTable::new(), RouteList::new(), LcRouteTable::new());
    let mut trio: Trio<A, V> = Trio { ours, linear, reference };
    for (at, op) in ops.into_iter().enumerate() {
        trio.step(op);
        if !cfg!(miri) || at % 3 == 0 {
            trio.compare(at, 8);
        }
    }
    trio.compare(0, 1);
    let every = if cfg!(miri) { 5 } else { 1 };
    for prefix in trio.ours.prefixes().step_by(every) {
        trio.walk(&prefix, &last_address(&prefix));
    }
    let prefixes: Vec<Prefix<A>> = trio.ours.prefixes().collect();
    prefixes.iter().for_each(|prefix| trio.remove(prefix));
    trio.compare(0, 1);
}

/// Random operations. In Miri, which is slow, each once.
fn ops() -> BoxedStrategy<Vec<Op>> {
    if cfg!(miri) { Just(each_once()).boxed() } else { vec(op(), 60..120).boxed() }
}

/// Each operation, on few routes that are close to each other.
fn each_once() -> Vec<Op> {
    let seed = |len| Seed { pattern: 0xa5, flipped_bits: [40, 77], tail: 1, len: Len::Any(len) };
    let new = |len| Pick::New(seed(len));
    let many = || {
        let (longer, beside) = (Pick::Longer(0, 3, seed(0)), Pick::Beside(0, 1));
        Vec::from([new(64), new(20), longer, Pick::Shorter(1, 5), beside])
    };
    Vec::from([
        Op::InsertMany(many()),
        Op::Insert(new(78), 1),
        Op::Insert(Pick::There(0), 2),
        Op::Extend(many()),
        Op::Get(Pick::There(1), 3),
        Op::Get(new(128), 3),
        Op::Lookup(Pick::There(2), 70),
        Op::LookupBatch(vec![(Pick::There(0), 1), (Pick::There(1), 64), (new(128), 3)]),
        Op::Walk(Pick::There(3), 60),
        Op::Clone,
        Op::Iterate,
        Op::Collect(5),
        Op::IntoIter(2),
        Op::Remove(Pick::There(1)),
        Op::RemoveMany(vec![Pick::There(0), new(128)]),
        Op::Shrink,
        Op::Retain(0b0110),
        Op::InsertMany(many()),
        Op::RemoveCovered(Pick::Shorter(0, 9)),
        Op::InsertMany(many()),
        Op::Clear,
        Op::InsertMany(many()),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(40, 1)))]

    #[test]
    #[cfg_attr(miri, ignore = "slow; covered by other tests")]
    fn addresses_of_a_byte(ops in ops()) {
        run::<u8, u32>(ops);
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow; covered by other tests")]
    fn v4(ops in ops()) {
        run::<Ipv4Addr, u32>(ops);
    }

    #[test]
    fn v6_with_values_that_own_memory(ops in ops()) {
        run::<Ipv6Addr, String>(ops);
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow; covered by other tests")]
    fn wide_addresses_without_values(ops in ops()) {
        run::<[u8; 40], ()>(ops);
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow; covered by other tests")]
    fn two_part_addresses_with_large_values(ops in ops()) {
        run::<(u16, [u8; 6]), [u64; 25]>(ops);
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow; covered by other tests")]
    fn the_order_of_insertion_does_not_matter(
        seeds in vec(seed(), 0..300),
        order in any::<u64>(),
    ) {
        fn test<A: Address + Debug>(seeds: &[Seed], order: u64) {
            let mut routes: Vec<(Prefix<A>, u32)> =
                seeds.iter().map(|seed| seed.prefix()).zip(0..).collect();
            routes.sort_unstable();
            routes.dedup_by_key(|(prefix, _)| *prefix);
            let sorted: RouteTable<A, u32> = routes.iter().copied().collect();
            routes.reverse();
            let reversed: RouteTable<A, u32> = routes.iter().copied().collect();
            routes.shuffle(&mut StdRng::seed_from_u64(order));
            let mut shuffled: RouteTable<A, u32> = routes.iter().copied().collect();
            for table in [&sorted, &reversed, &shuffled] {
                table.validate().unwrap();
                assert_eq!(table, &sorted);
                assert!(table.iter().eq(sorted.iter()));
                assert_eq!(format!("{table:?}"), format!("{sorted:?}"));
            }
            if let Some((prefix, value)) = routes.first() {
                shuffled.insert(*prefix, value + 1);
                assert_ne!(shuffled, sorted);
                assert_ne!(sorted, shuffled);
                shuffled.remove(prefix);
                assert_ne!(shuffled, sorted);
                assert_ne!(sorted, shuffled);
            }
        }
        test::<u8>(&seeds, order);
        test::<Ipv4Addr>(&seeds, order);
        test::<Ipv6Addr>(&seeds, order);
        test::<[u8; 40]>(&seeds, order);
    }
}
