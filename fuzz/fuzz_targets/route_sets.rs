//! Two `RouteTable`s: union, intersection and difference compared with ordered maps, those of
//! `PrefixSet`s too, and aggregated tables with what the tables themselves forward.
#![no_main]

use std::collections::BTreeMap;
use std::fmt::Debug;

use arbitrary::Arbitrary;
use flowtable::key::bits::Address;
use flowtable::routes::PrefixSet;
use flowtable::{Prefix, RouteTable};
use libfuzzer_sys::fuzz_target;

/// The maximum number of routes.
const MANY: usize = 64;

/// The number of different values.
const VALUES: usize = 4;

#[derive(Arbitrary, Debug)]
struct Input {
    width: Width,
    routes: Vec<Route>,
}

#[derive(Arbitrary, Debug)]
enum Width {
    Byte,
    Word,
    Widest,
}

/// A route of one of the tables, or of both with another value in each.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Route {
    flipped: [u8; 2],
    len: u8,
    value: u8,
    tables: u8,
}

impl Route {
    /// Few bits differ, so that prefixes cover each other.
    fn prefix<A: Address>(self) -> Prefix<A> {
        let flip = |bits, at: u8| bits ^ 1_u128.rotate_right(u32::from(at) % A::BITS + 1);
        let address = flowtable_fuzz::address(self.flipped.into_iter().fold(0xa5 << 120, flip));
        Prefix::new(address, u32::from(self.len) % (A::BITS + 1)).expect("within the address")
    }
}

type Map<A> = BTreeMap<Prefix<A>, u8>;

fuzz_target!(|input: Input| match input.width {
    Width::Byte => {
        let [one, other] = run::<u8>(&input.routes);
        [one, other].iter().for_each(check_size);
    }
    Width::Word => _ = run::<u32>(&input.routes),
    Width::Widest => _ = run::<u128>(&input.routes),
});

fn run<A: Address + Debug>(routes: &[Route]) -> [RouteTable<A, u8>; 2] {
    let mut maps = [Map::<A>::new(), Map::new()];
    let mut tables = [RouteTable::new(), RouteTable::new()];
    for route in routes.iter().take(MANY) {
        for (at, (map, table)) in (1..).zip(maps.iter_mut().zip(&mut tables)) {
            if (route.tables % 3 + 1) & at != 0 {
                let value = (route.value % 128 + at) % VALUES as u8;
                assert_eq!(table.insert(route.prefix(), value), map.insert(route.prefix(), value));
            }
        }
    }
    let ([one, other], [a, b]) = (&maps, &tables);
    check_sets(one, other, a, b);
    check_sets(other, one, b, a);
    tables.iter().for_each(check_aggregated);
    tables
}

fn check_sets<A: Address + Debug>(
    one: &Map<A>,
    other: &Map<A>,
    a: &RouteTable<A, u8>,
    b: &RouteTable<A, u8>,
) {
    let mut either = other.clone();
    either.extend(one);
    assert!(a.union(b).eq(either.iter().map(|(prefix, value)| (*prefix, value))));
    let both = one.iter().filter_map(|(prefix, value)| Some((*prefix, value, other.get(prefix)?)));
    assert!(a.intersection(b).eq(both.clone()));
    let only = one.iter().filter(|(prefix, _)| !other.contains_key(prefix));
    assert!(a.difference(b).eq(only.clone().map(|(prefix, value)| (*prefix, value))));

    let [a, b]: [PrefixSet<A>; 2] = [one, other].map(|map| map.keys().copied().collect());
    assert!(a.union(&b).iter().eq(either.keys().copied()));
    assert!(a.intersection(&b).iter().eq(both.map(|(prefix, ..)| prefix)));
    assert!(a.difference(&b).iter().eq(only.map(|(prefix, _)| *prefix)));
    for prefix in other.keys() {
        let covers = one.keys().any(|own| own.covers(prefix));
        assert_eq!(a.covers(prefix), covers);
        assert_eq!(a.overlaps(prefix), covers || one.keys().any(|own| prefix.covers(own)));
    }
}

/// The smallest table forwards the same, and is not larger.
fn check_aggregated<A: Address + Debug>(table: &RouteTable<A, u8>) {
    let smallest = table.aggregated();
    smallest.validate().expect("invariant");
    assert!(smallest.len() <= table.len());
    assert_eq!(smallest.aggregated().len(), smallest.len());
    // What is forwarded changes at the first address of a prefix, and after its last one.
    for prefix in table.prefixes().chain(smallest.prefixes()) {
        let last = prefix.last_address();
        let bits = u128::from_windows(|pos| last.window(pos));
        let next = bits.checked_add(1 << (128 - A::BITS)).map(flowtable_fuzz::address);
        for address in [Some(prefix.address()), next].into_iter().flatten() {
            let value = |table: &RouteTable<A, u8>| table.lookup(&address).map(|(_, value)| *value);
            assert_eq!(value(&smallest), value(table), "{address:?}");
        }
    }
    let none = A::from_windows(|_| 0);
    assert_eq!(smallest.lookup(&none).is_some(), table.lookup(&none).is_some());
}

/// The aggregated table has as few routes as possible: the fewest below a prefix, for each value
/// that is inherited, are computed from those of its halves.
fn check_size(table: &RouteTable<u8, u8>) {
    const NONE: usize = VALUES;
    let value = |address| table.lookup(&address).map_or(NONE, |(_, value)| usize::from(*value));
    let leaf = |address| -> [usize; NONE + 1] {
        let value = value(address);
        // An address without a route cannot have one above.
        let other = if value == NONE { 1000 } else { 1 };
        std::array::from_fn(|inherited| if inherited == value { 0 } else { other })
    };
    let mut level: Vec<_> = (0..=u8::MAX).map(leaf).collect();
    while level.len() > 1 {
        let of_halves = |halves: &[[usize; NONE + 1]]| {
            let below: [usize; NONE + 1] = std::array::from_fn(|at| halves[0][at] + halves[1][at]);
            let with_route = 1 + below[..NONE].iter().min().expect("there are values");
            below.map(|without| without.min(with_route))
        };
        level = level.chunks(2).map(of_halves).collect();
    }
    assert_eq!(table.aggregated().len(), level[0][NONE], "{table:?}");
}
