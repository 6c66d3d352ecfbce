//! Lookups and insertions in route tables with lengths as on the Internet.

use std::hash::BuildHasher;
use std::hint::black_box;
use std::net::{Ipv4Addr, Ipv6Addr};

use flowtable::key::bits::Address;
use flowtable::{DefaultHashBuilder, Prefix, RouteTable};

use super::COUNT;

/// Routes of a small table.
const FEW: u64 = 50;

type Route<A> = (Prefix<A>, u64);

/// The random number at an index.
fn random(index: u64) -> u64 {
    DefaultHashBuilder::with_seed(1).hash_one(index)
}

/// Most routes have 24 bits. They are as dense as those of the Internet: in an eighth of the
/// addresses.
fn v4(index: u64) -> Route<Ipv4Addr> {
    let number = random(index);
    let len =
        [24, 24, 24, 24, 24, 24, 24, 23, 22, 22, 22, 21, 20, 20, 19, 16][number as usize % 16];
    let address = Ipv4Addr::from_bits(64 << 24 | (number >> 35) as u32);
    (Prefix::new(address, len).expect("within the address"), 1)
}

/// Most routes are in one of some thousand allocations of 32 bits.
fn v6(index: u64) -> Route<Ipv6Addr> {
    let number = random(index);
    let len =
        [48, 48, 48, 48, 48, 48, 47, 46, 44, 42, 40, 36, 34, 32, 32, 29][number as usize % 16];
    let region = [0x2001, 0x2400, 0x2600, 0x2800, 0x2a00, 0x2a10, 0x2c00, 0x2c0f];
    let first = region[(number >> 4) as usize % 8] << 48 | ((number >> 7) % 512) << 33;
    let address = Ipv6Addr::from_bits(u128::from(first | number >> 32) << 64);
    (Prefix::new(address, len).expect("within the address"), 1)
}

/// An address within each prefix.
fn inside<A: Address>(routes: &[Route<A>]) -> Vec<A> {
    let within = |(index, (prefix, _)): (u64, &Route<A>)| {
        let (first, mask) = (prefix.address(), prefix.netmask());
        let host = random(!index);
        A::from_windows(|pos| first.window(pos) | host.rotate_left(pos) & !mask.window(pos))
    };
    (0..).zip(routes).map(within).collect()
}

#[inline(always)]
fn lookups<A: Address>(table: &RouteTable<A, u64>, addresses: &[A]) -> u64 {
    let found = |address| table.lookup(address).map_or(2, |(_, value)| *value);
    addresses.iter().map(found).sum()
}

#[inline(never)]
fn count_route_v4(table: &RouteTable<Ipv4Addr, u64>, addresses: &[Ipv4Addr]) -> u64 {
    lookups(table, addresses)
}

#[inline(never)]
fn count_route_v6(table: &RouteTable<Ipv6Addr, u64>, addresses: &[Ipv6Addr]) -> u64 {
    lookups(table, addresses)
}

#[inline(never)]
fn count_route_few_v4(table: &RouteTable<Ipv4Addr, u64>, addresses: &[Ipv4Addr]) -> u64 {
    black_box(lookups(table, addresses))
}

#[inline(never)]
fn count_route_few_v6(table: &RouteTable<Ipv6Addr, u64>, addresses: &[Ipv6Addr]) -> u64 {
    black_box(lookups(table, addresses))
}

#[inline(never)]
fn count_route_new(table: &mut RouteTable<Ipv4Addr, u64>, routes: &[Route<Ipv4Addr>]) {
    routes.iter().for_each(|(prefix, value)| _ = table.insert(*prefix, *value));
}

pub(crate) fn count() {
    let routes: Vec<Route<Ipv4Addr>> = (0..2 * COUNT).map(v4).collect();
    let (first, more) = routes.split_at(COUNT as usize);
    let mut table: RouteTable<Ipv4Addr, u64> = first.iter().copied().collect();
    assert_eq!(black_box(count_route_v4(&table, &inside(first))), COUNT);
    let len = table.len();
    count_route_new(&mut table, more);
    assert!(table.len() - len > COUNT as usize * 3 / 4, "most are new");

    let routes: Vec<Route<Ipv6Addr>> = (0..COUNT).map(v6).collect();
    let table: RouteTable<Ipv6Addr, u64> = routes.iter().copied().collect();
    assert!(table.len() > COUNT as usize * 3 / 4, "most differ");
    assert_eq!(black_box(count_route_v6(&table, &inside(&routes))), COUNT);

    // The table of a branch office, which has no direct tables.
    let few: Vec<Route<Ipv4Addr>> = (0..COUNT).map(|nth| v4(nth % FEW)).collect();
    let table: RouteTable<Ipv4Addr, u64> = few.iter().copied().collect();
    assert_eq!(black_box(count_route_few_v4(&table, &inside(&few))), COUNT);
    let few: Vec<Route<Ipv6Addr>> = (0..COUNT).map(|nth| v6(nth % FEW)).collect();
    let table: RouteTable<Ipv6Addr, u64> = few.iter().copied().collect();
    assert_eq!(black_box(count_route_few_v6(&table, &inside(&few))), COUNT);
}
