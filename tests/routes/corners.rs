//! Edge cases of `RouteTable`: every prefix length, full nodes, values of all kinds.

use core::fmt::Debug;
use core::net::{Ipv4Addr, Ipv6Addr};
use std::collections::BTreeMap;

use flowtable::key::bits::Address;
use flowtable::{Prefix, RouteTable};
use model::prefixes::{flipped, prefix_of};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

/// Checks every invariant.
fn check<A: Address, V>(table: &RouteTable<A, V>) {
    table.validate().unwrap_or_else(|broken| panic!("{broken}"));
}

fn shuffled<T: Clone>(items: &[T], seed: u64) -> Vec<T> {
    let mut items = items.to_vec();
    items.shuffle(&mut StdRng::seed_from_u64(seed));
    items
}

/// Routes of every length to one address, alone and together, in several orders.
#[test]
#[cfg_attr(miri, ignore = "slow")]
fn every_length() {
    fn check_all<A: Address + Debug>(table: &RouteTable<A, u32>, address: A, lens: &[u32]) {
        check(table);
        let found = |of: &A| table.lookup(of).map(|(found, len)| (found, *len));
        let longest = |most: u32| {
            let len = lens.iter().copied().filter(|&len| len <= most).max()?;
            Some((prefix_of(address, len), len))
        };
        assert_eq!(found(&address), longest(A::BITS));
        // An address that differs first in this bit matches routes up to this length.
        let bits = (0..A::BITS).step_by(if A::BITS > 64 { 3 } else { 1 });
        for bit in bits {
            assert_eq!(found(&flipped(&address, bit)), longest(bit), "bit {bit}");
        }
        let mut sorted = lens.to_vec();
        sorted.sort_unstable();
        assert!(table.matches(&address).map(|(_, len)| *len).eq(sorted));
    }
    fn test<A: Address + Debug>(address: A, step: usize) {
        let lens: Vec<u32> = (0..=A::BITS).rev().step_by(step).chain([0]).collect();
        for &len in &lens {
            check_all(&RouteTable::from([(prefix_of(address, len), len)]), address, &[len]);
        }
        let reversed = lens.iter().copied().rev().collect();
        let mut orders = vec![lens.clone(), reversed, shuffled(&lens, 1), shuffled(&lens, 2)];
        orders.iter_mut().for_each(Vec::dedup);
        for order in &orders {
            let (mut table, mut there) = (RouteTable::new(), vec![]);
            for &len in order {
                let old = there.contains(&len).then_some(len);
                assert_eq!(table.insert(prefix_of(address, len), len), old);
                there.push(len);
                there.sort_unstable();
                there.dedup();
                check_all(&table, address, &there);
            }
            for &len in order {
                let old = there.contains(&len).then_some(len);
                assert_eq!(table.remove(&prefix_of(address, len)), old);
                there.retain(|&other| other != len);
                check_all(&table, address, &there);
            }
            assert_eq!((table.len(), table.allocation_size()), (0, 0));
        }
    }
    test(0xa5_u8, 1);
    test(Ipv4Addr::from_bits(0xa5a5_5a5a), 1);
    test(Ipv6Addr::from_bits(u128::MAX / 5), 2);
    test(0xa55a_u16, 1);
    test([0xff_u8, 0, 0x81], 1);
    test((0x81_u8, 0x7ffe_u16), 1);
    test(Ipv4Addr::UNSPECIFIED, 1);
    test(Ipv4Addr::BROADCAST, 1);
    test(0x0123_4567_89ab_cdef_u64, 1);
    test(Ipv6Addr::UNSPECIFIED, 5);
    test([0x5a_u8; 40], 7);
    test([0_u8; 40], 6);
}

/// A second route that splits the path to a long one: at every length, and branching off at every
/// bit.
#[test]
#[cfg_attr(miri, ignore = "slow")]
fn a_path_is_split_at_any_bit() {
    const FAR: u32 = 1;
    const OTHER: u32 = 2;
    fn test<A: Address + Debug>(far: A, step: usize) {
        let far_route = Prefix::host(far);
        for at in (0..A::BITS).step_by(step) {
            let branch = flipped(&far, at);
            for other in [prefix_of(far, at), prefix_of(branch, at + 1), Prefix::host(branch)] {
                for first_far in [true, false] {
                    let mut table = RouteTable::new();
                    let mut routes = [(far_route, FAR), (other, OTHER)];
                    routes.sort_by_key(|route| (route.1 == FAR) != first_far);
                    table.extend(routes);
                    check(&table);
                    assert_eq!(table.lookup(&far), Some((far_route, &FAR)), "{at}");
                    let near = other.contains(&branch).then_some((other, &OTHER));
                    assert_eq!(table.lookup(&branch), near, "{at}");
                    assert_eq!(table.remove(&other), Some(OTHER));
                    check(&table);
                    assert_eq!(table.lookup(&far), Some((far_route, &FAR)), "{at}");
                    assert_eq!(table.lookup(&branch), None);
                    table.insert(other, OTHER);
                    assert_eq!(table.remove(&far_route), Some(FAR));
                    check(&table);
                    assert_eq!(table.lookup(&branch), near, "{at}");
                    let left = other.contains(&far).then_some((other, &OTHER));
                    assert_eq!(table.lookup(&far), left, "{at}");
                    table.remove(&other);
                    assert_eq!(table.allocation_size(), 0, "{at}");
                }
            }
        }
    }
    test(Ipv4Addr::from_bits(0xdead_beef), 1);
    test(Ipv6Addr::from_bits(0xdead_beef_0123 << 60), 1);
    test([0x99_u8; 40], 3);
}

/// All prefixes of 8-bit addresses: each address is compared at each state of the table.
#[test]
#[cfg_attr(miri, ignore = "slow")]
fn all_prefixes_of_a_byte() {
    let all: Vec<Prefix<u8>> = (0..=8_u32)
        .flat_map(|len| (0..1 << len).map(move |i: u16| prefix_of((i << (8 - len)) as u8, len)))
        .collect();
    assert_eq!(all.len(), 511);
    let mut table = RouteTable::new();
    let mut model = BTreeMap::new();
    for round in 0..3 * 511_u32 {
        // The factor is coprime to 511; the third round removes them.
        let route = all[round as usize * 100 % 511];
        if round < 2 * 511 {
            assert_eq!(table.insert(route, round), model.insert(route, round));
        } else {
            assert_eq!(table.remove(&route), model.remove(&route));
        }
        check(&table);
        assert!(table.iter().eq(model.iter().map(|(prefix, value)| (*prefix, value))));
        for address in 0..=255_u8 {
            let mut covers = (0..=8).map(|len| prefix_of(address, len));
            let longest = covers.rfind(|cover| model.contains_key(cover));
            assert_eq!(table.lookup(&address), longest.map(|cover| (cover, &model[&cover])));
        }
    }
    assert!(table.is_empty());
}

/// Nodes with every route and every child that they can have, at each position.
#[test]
#[cfg_attr(miri, ignore = "slow")]
fn full_nodes() {
    fn test<A: Address + Debug>(base: A, at: u32) {
        let deepest = A::BITS.min(at + 7);
        let mut routes = vec![prefix_of(base, at)];
        for len in at..deepest {
            let above: Vec<A> =
                routes.iter().filter(|one| one.len() == len).map(Prefix::address).collect();
            let below = above.iter().flat_map(|one| [*one, flipped(one, len)]);
            routes.extend(below.map(|one| prefix_of(one, len + 1)));
        }
        let routes = shuffled(&routes, at.into());
        let mut table: RouteTable<A, u32> = routes.iter().copied().zip(0..).collect();
        check(&table);
        assert_eq!((table.len() + 1).ilog2(), deepest - at + 1);
        for (route, value) in routes.iter().zip(0..) {
            assert_eq!(table.get(route), Some(&value));
            if route.len() == deepest {
                assert_eq!(table.lookup(&route.address()), Some((*route, &value)));
                let lens = table.matches(&route.address()).map(|(prefix, _)| prefix.len());
                assert!(lens.eq(at..=deepest));
            }
        }
        let mut sorted = routes.clone();
        sorted.sort_unstable();
        assert!(table.prefixes().eq(sorted));
        for (i, route) in shuffled(&routes, 7).iter().enumerate() {
            assert!(table.remove(route).is_some());
            if i % 16 == 0 {
                check(&table);
            }
        }
        assert_eq!((table.len(), table.allocation_size()), (0, 0));
    }
    for at in [0, 5, 6, 7, 11, 12, 13, 17, 18, 19, 24, 25, 30, 31, 32] {
        test(Ipv4Addr::from_bits(0xc000_02aa), at);
    }
    for at in (0..=128).step_by(6).chain([1, 64, 77, 78, 79, 125, 127, 128]) {
        test(Ipv6Addr::from_bits(u128::MAX / 3), at);
    }
    for at in [0, 18, 60, 78, 138, 198, 258, 312, 318, 320] {
        test([0xc3_u8; 40], at);
    }
}

/// Zero-sized, aligned, owning and large values.
#[test]
fn values_of_all_kinds() {
    fn test<V: Clone + Debug + PartialEq>(make: impl Fn(u32) -> V) {
        let count = if cfg!(miri) { 3 } else { 700 };
        let route = |i: u32| prefix_of(Ipv4Addr::from_bits((i / 3).reverse_bits()), 8 + i % 25);
        let (mut table, mut model) = (RouteTable::new(), BTreeMap::new());
        for i in 0..count {
            assert_eq!(table.insert(route(i), make(i)), model.insert(route(i), make(i)));
            if i % 64 == 0 {
                check(&table);
            }
        }
        check(&table);
        let (clone, sorted) = (table.clone(), model.clone());
        assert!(clone.iter().eq(model.iter().map(|(prefix, value)| (*prefix, value))));
        for i in 0..count {
            assert_eq!(table.get(&route(i)), model.get(&route(i)));
            assert_eq!(table.get_mut(&route(i)), model.get_mut(&route(i)));
            assert_eq!(table.remove(&route(i)), model.remove(&route(i)));
        }
        assert_eq!((table.len(), table.allocation_size()), (0, 0));
        assert!(clone.into_iter().eq(sorted));
    }
    #[derive(Clone, Debug, PartialEq)]
    #[repr(align(64))]
    struct Aligned(u8);
    #[derive(Clone, Debug, PartialEq)]
    #[repr(align(32))]
    struct AlignedNothing;

    test(|_| ());
    test(Box::new);
    if cfg!(miri) {
        return;
    }
    test(|i| i as u8);
    test(|i| (i, i as u8));
    test(|i| format!("route {i}"));
    test(|i| Some(i % 2 == 0).filter(|_| i % 3 == 0));
    test(|i| Aligned(i as u8));
    test(|_| AlignedNothing);
    test(|i| [u64::from(i); 25]);
    test(|i| [i as u8; 300]);
}
