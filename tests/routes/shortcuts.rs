//! Direct tables and levels of a `RouteTable`, for which there was no memory for a while.

use core::net::{Ipv4Addr, Ipv6Addr};

use flowtable::key::bits::Address;
use flowtable::{Prefix, RouteTable};
use model::{alloc, scaled};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

type V6 = RouteTable<Ipv6Addr, u32>;

/// A route of IPv6: most of 48 bits, some shorter or much longer, below few first bits.
fn route(random: &mut StdRng) -> Prefix<Ipv6Addr> {
    let len = [20, 29, 32, 40, 44, 48, 48, 48, 48, 50, 64, 128][random.random_range(0..12)];
    let address = 0x2001 << 112 | random.random::<u128>() >> 20 & !(0xFFF << 60);
    Prefix::new(address.into(), len).expect("it is in range")
}

/// Inserts a route without memory, and with memory if it needs some.
fn insert_without<A: Address>(table: &mut RouteTable<A, u32>, prefix: Prefix<A>) {
    if alloc::with_allocations(0, || table.try_insert(prefix, 1)).is_err() {
        table.insert(prefix, 1);
    }
}

/// Returns a table that has lost its levels.
fn without_levels(routes: usize, random: &mut StdRng) -> V6 {
    let mut table: V6 = (0..routes).map(|_| (route(random), 1)).collect();
    assert!(table.shape().level_bytes > 0);
    while table.shape().level_bytes > 0 {
        insert_without(&mut table, route(random));
    }
    table.validate().unwrap();
    table
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn direct_tables_are_made_after_a_refusal() {
    let mut table = RouteTable::new();
    let net = |nth: u32| Prefix::new(Ipv4Addr::from_bits(nth << 10), 24).expect("in range");
    for nth in 0..40_000 {
        // When they are prepared, and when the first one is allocated.
        match nth {
            500..530 | 4000..4200 => insert_without(&mut table, net(nth)),
            _ => drop(table.insert(net(nth), 1)),
        }
        if nth % 1000 == 0 {
            table.validate().unwrap();
        }
    }
    assert_eq!(table.shape().direct_tables, 1);
}

/// Many routes have no direct tables, until there is memory and one more route below each.
#[test]
#[cfg_attr(miri, ignore = "slow")]
fn direct_tables_of_a_large_table_are_made_one_by_one() {
    let net = |nth: u32| Prefix::new(Ipv4Addr::from_bits(nth << 12), 24).expect("in range");
    let mut table: RouteTable<_, u32> = (0..1 << 18).map(|nth| (net(nth), 1)).collect();
    alloc::with_allocations(0, || table.shrink_to_fit());
    table.validate().unwrap();
    assert_eq!(table.shape().direct_tables, 0);
    for nth in 0..16 {
        let more = Prefix::new(Ipv4Addr::from_bits(nth << 26 | 1), 32).expect("in range");
        // The first one prepares them.
        for host in [0, 1] {
            let more = Prefix::host(Ipv4Addr::from_bits(more.address().to_bits() | host << 1));
            assert_eq!(table.insert(more, 2), None);
        }
        assert_eq!(table.shape().direct_tables, nth as usize + 1);
        table.validate().unwrap();
    }
}

/// Routes are inserted and removed without levels, which `shrink_to_fit` makes again.
#[test]
#[cfg_attr(miri, ignore = "slow")]
fn levels_are_made_after_a_refusal() {
    for seed in 0..scaled(4, 1, 4) {
        let random = &mut StdRng::seed_from_u64(seed);
        let mut table = without_levels(1500, random);
        let mut routes: Vec<_> = table.prefixes().collect();
        for nth in 0..2000 {
            let prefix = route(random);
            if nth % 2 == 0 {
                table.insert(prefix, nth);
                routes.push(prefix);
            } else {
                table.remove(&routes.swap_remove(random.random_range(0..routes.len())));
            }
        }
        assert_eq!(table.shape().level_bytes, 0);
        table.validate().unwrap();
        let model: Vec<_> = table.iter().map(|(prefix, value)| (prefix, *value)).collect();
        let model: V6 = model.into_iter().collect();
        for shrinks in [false, true] {
            if shrinks {
                table.shrink_to_fit();
                assert!(table.shape().level_bytes > 0);
                table.validate().unwrap();
            }
            for prefix in &routes {
                for address in [prefix.address(), prefix.last_address()] {
                    assert_eq!(table.lookup(&address), model.lookup(&address));
                }
            }
        }
    }
}

/// Levels are made again, too, when a table has had few long routes.
#[test]
#[cfg_attr(miri, ignore = "slow")]
fn levels_are_made_after_few_routes() {
    let random = &mut StdRng::seed_from_u64(9);
    let mut table = without_levels(1500, random);
    let routes: Vec<_> = table.prefixes().collect();
    routes[20..].iter().for_each(|prefix| _ = table.remove(prefix));
    while table.len() < 400 {
        table.insert(route(random), 1);
    }
    table.validate().unwrap();
    assert!(table.shape().level_bytes > 0);
}
