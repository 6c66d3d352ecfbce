//! Direct tables and levels of a `RouteTable`, for which there was no memory for a while.

use core::net::{Ipv4Addr, Ipv6Addr};

use flowtable::key::bits::Address;
use flowtable::{Prefix, RouteTable};
use model::alloc;
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

/// Many routes have no direct tables yet, until there is memory.
#[test]
#[cfg_attr(miri, ignore = "slow")]
fn direct_tables_of_a_large_table_are_made_in_steps() {
    let net = |nth: u32| Prefix::new(Ipv4Addr::from_bits(nth << 12), 24).expect("in range");
    let mut table: RouteTable<_, u32> = (0..1 << 18).map(|nth| (net(nth), 1)).collect();
    alloc::with_allocations(0, || table.shrink_to_fit());
    table.validate().unwrap();
    assert_eq!(table.shape().direct_tables, 0);
    for nth in 0..2000 {
        let more = Prefix::new(Ipv4Addr::from_bits(nth << 6 | 1), 32).expect("in range");
        assert_eq!(table.insert(more, 2), None);
        if nth % 100 == 0 {
            table.validate().unwrap();
        }
    }
    assert_eq!(table.shape().direct_tables, 16, "also of those without insertions");
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn levels_are_made_after_a_refusal() {
    let random = &mut StdRng::seed_from_u64(1);
    let mut table = without_levels(10_000, random);
    for _ in 0..10_000 {
        table.insert(route(random), 1);
    }
    table.validate().unwrap();
    let (bytes, expected) = (table.shape().level_bytes, table.clone().shape().level_bytes);
    assert!(bytes >= expected / 2, "{bytes} bytes of levels, {expected} when computed at once");
}

/// Routes are inserted and removed at either side of the cursor while levels are made.
#[test]
#[cfg_attr(miri, ignore = "slow")]
fn levels_that_are_being_made_agree_with_the_routes() {
    for seed in 0..8 {
        let random = &mut StdRng::seed_from_u64(seed);
        let mut table = without_levels(1500, random);
        let mut routes: Vec<_> = table.prefixes().collect();
        for nth in 0..4000 {
            let prefix = route(random);
            if nth % 2 == 0 {
                table.insert(prefix, nth);
                routes.push(prefix);
            } else {
                table.remove(&routes.swap_remove(random.random_range(0..routes.len())));
            }
            if nth % 8 == 0 {
                table.validate().unwrap();
            }
        }
        assert!(table.shape().level_bytes > 0);
        let model = table.clone();
        for prefix in &routes {
            for address in [prefix.address(), prefix.last_address()] {
                assert_eq!(table.lookup(&address), model.lookup(&address));
            }
        }
    }
}
