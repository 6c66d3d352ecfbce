//! The methods of `RouteTable`. Random sequences of them are in `model.rs`, edge cases in
//! `corners.rs`.

use core::fmt::Debug;
use core::net::{Ipv4Addr, Ipv6Addr};
use std::collections::BTreeMap;
use std::rc::Rc;

use flowtable::key::bits::Address;
use flowtable::{Prefix, RouteTable};

type V4 = Prefix<Ipv4Addr>;
type V6 = Prefix<Ipv6Addr>;

fn v4(text: &str) -> V4 {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn v6(text: &str) -> V6 {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn ip4(text: &str) -> Ipv4Addr {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn prefix<A: Address>(address: A, len: u32) -> Prefix<A> {
    Prefix::new(address, len).unwrap_or_else(|error| panic!("{error}"))
}

/// Checks every invariant, except in Miri, where that is slow.
fn check<A: Address, V>(table: &RouteTable<A, V>) {
    if !cfg!(miri) {
        table.validate().unwrap_or_else(|broken| panic!("{broken}"));
    }
}

/// Routes of a small network, whose values are their names.
const NETWORK: [&str; 8] = [
    "0.0.0.0/0",
    "10.0.0.0/8",
    "10.1.0.0/16",
    "10.1.2.0/24",
    "10.1.2.3/32",
    "10.2.0.0/16",
    "192.0.2.0/25",
    "192.0.2.128/25",
];

fn network() -> RouteTable<Ipv4Addr, &'static str> {
    NETWORK.into_iter().map(|name| (v4(name), name)).collect()
}

fn names<'a, A: Address>(
    routes: impl Iterator<Item = (Prefix<A>, &'a &'static str)>,
) -> Vec<&'static str> {
    routes.map(|(_, name)| *name).collect()
}

#[test]
fn an_empty_table_has_no_routes_and_no_memory() {
    fn test<A: Address + Debug>() {
        let mut table: RouteTable<A, u64> = RouteTable::new();
        let (zero, all) = (A::from_windows(|_| 0), A::from_windows(|_| u64::MAX));
        for address in [zero, all] {
            assert_eq!(table.lookup(&address), None);
            assert_eq!(table.lookup_mut(&address), None);
            assert!(table.matches(&address).next().is_none());
            for len in [0, 1, A::BITS] {
                let prefix = prefix(address, len);
                assert_eq!(table.get(&prefix), None);
                assert_eq!(table.get_mut(&prefix), None);
                assert_eq!((table.remove(&prefix), table.contains(&prefix)), (None, false));
                assert!(table.covering(&prefix).next().is_none());
                assert!(table.covered(&prefix).next().is_none());
                assert!(!table.overlaps(&prefix));
            }
        }
        let mut found = [Some((Prefix::default_route(), &5)); 3];
        table.lookup_batch(&[zero, all, zero], |i, route| found[i] = route);
        assert_eq!(found, [None; 3]);
        table.lookup_batch(&[], |_, _| unreachable!());
        table.retain(|_, _| unreachable!());
        table.extend([]);
        table.clear();
        table.shrink_to_fit();
        assert_eq!((table.len(), table.is_empty(), table.allocation_size()), (0, true, 0));
        assert!(table.iter().next().is_none() && table.prefixes().next().is_none());
        assert!(table.values().next().is_none() && (&table).into_iter().next().is_none());
        assert_eq!(table, table.clone());
        assert_eq!((table.clone(), table.clone()), (RouteTable::default(), [].into()));
        assert_eq!(format!("{table:?}"), "{}");
        assert!(!table.shape().to_string().is_empty());
        check(&table);
        assert!(table.into_iter().next().is_none());
    }
    test::<u8>();
    if !cfg!(miri) {
        test::<Ipv4Addr>();
        test::<Ipv6Addr>();
        test::<[u8; 40]>();
    }
}

#[test]
fn a_table_can_be_a_constant() {
    const NONE: RouteTable<Ipv6Addr, String> = RouteTable::new();
    let mut table = NONE;
    table.insert(V6::default_route(), "all".to_owned());
    assert_eq!((table.len(), NONE.len()), (1, 0));
}

#[test]
fn the_longest_match_is_found() {
    let table = network();
    check(&table);
    for (address, name) in [
        ("10.1.2.3", "10.1.2.3/32"),
        ("10.1.2.2", "10.1.2.0/24"),
        ("10.1.2.4", "10.1.2.0/24"),
        ("10.1.3.3", "10.1.0.0/16"),
        ("10.2.2.3", "10.2.0.0/16"),
        ("10.3.2.3", "10.0.0.0/8"),
        ("11.1.2.3", "0.0.0.0/0"),
        ("192.0.2.127", "192.0.2.0/25"),
        ("192.0.2.128", "192.0.2.128/25"),
        ("192.0.3.0", "0.0.0.0/0"),
        ("0.0.0.0", "0.0.0.0/0"),
        ("255.255.255.255", "0.0.0.0/0"),
    ] {
        assert_eq!(table.lookup(&ip4(address)), Some((v4(name), &name)), "{address}");
    }
}

#[test]
fn removing_a_route_uncovers_the_next_longest() {
    let mut table = network();
    let address = ip4("10.1.2.3");
    // Longest first: the longest remaining route matches.
    for name in ["10.1.2.3/32", "10.1.2.0/24", "10.1.0.0/16", "10.0.0.0/8", "0.0.0.0/0"] {
        assert_eq!(table.lookup(&address), Some((v4(name), &name)));
        assert_eq!(table.remove(&v4(name)), Some(name));
        assert_eq!(table.remove(&v4(name)), None);
        check(&table);
    }
    assert_eq!(table.lookup(&address), None);
    assert_eq!(table.lookup(&ip4("10.2.0.0")), Some((v4("10.2.0.0/16"), &"10.2.0.0/16")));
    // Shortest first: the match does not change until the last removal.
    let mut table = network();
    for name in ["0.0.0.0/0", "10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24", "10.1.2.3/32"] {
        assert_eq!(table.lookup(&address), Some((v4("10.1.2.3/32"), &"10.1.2.3/32")));
        assert_eq!(table.remove(&v4(name)), Some(name));
        check(&table);
    }
    assert_eq!((table.lookup(&address), table.len()), (None, 3));
}

#[test]
fn get_finds_exact_prefixes_only() {
    let mut table = network();
    assert_eq!(table.get(&v4("10.1.0.0/16")), Some(&"10.1.0.0/16"));
    for absent in ["10.1.0.0/17", "10.0.0.0/15", "10.1.0.0/32", "0.0.0.0/1", "0.0.0.0/32"] {
        let absent = v4(absent);
        assert_eq!(table.get(&absent), None, "{absent}");
        assert_eq!(table.get_mut(&absent), None, "{absent}");
        assert_eq!((table.contains(&absent), table.remove(&absent)), (false, None), "{absent}");
    }
    for name in NETWORK {
        assert!(table.contains(&v4(name)));
        *table.get_mut(&v4(name)).unwrap() = "changed";
    }
    assert!(table.values().all(|name| *name == "changed"));
    assert_eq!(table.len(), NETWORK.len());
}

#[test]
fn insertion_returns_the_old_value() {
    let mut table = RouteTable::new();
    for (round, old) in [(1, None), (2, Some(1)), (3, Some(2))] {
        for name in NETWORK {
            assert_eq!(table.insert(v4(name), round), old);
        }
        assert_eq!(table.len(), NETWORK.len());
        check(&table);
    }
    assert!(table.values().eq([3; NETWORK.len()].iter()));
}

#[test]
fn lookup_mut_changes_the_longest_match() {
    let mut table = network();
    let (found, name) = table.lookup_mut(&ip4("10.1.2.9")).unwrap();
    assert_eq!((found, *name), (v4("10.1.2.0/24"), "10.1.2.0/24"));
    *name = "changed";
    assert_eq!(table.get(&v4("10.1.2.0/24")), Some(&"changed"));
    assert_eq!(table.lookup(&ip4("10.1.2.3")), Some((v4("10.1.2.3/32"), &"10.1.2.3/32")));
    table.remove(&V4::default_route());
    assert_eq!(table.lookup_mut(&ip4("8.8.8.8")), None);
}

#[test]
fn batches_of_all_lengths() {
    let mut table = network();
    table.remove(&V4::default_route());
    let address = |i: u32| match i % 5 {
        0 => ip4("10.1.2.3"),
        1 => ip4("192.0.2.200"),
        2 => Ipv4Addr::from_bits(i.wrapping_mul(0x9e37_79b9)),
        3 => ip4("10.1.9.9"),
        _ => ip4("172.16.0.1"),
    };
    let counts = (0..70).chain([127, 128, 129, 1000]);
    for count in counts.filter(|count| !cfg!(miri) || count % 33 == 0) {
        let addresses: Vec<Ipv4Addr> = (0..count).map(address).collect();
        let mut found = vec![Some((V4::default_route(), &"before")); addresses.len()];
        table.lookup_batch(&addresses, |i, route| found[i] = route);
        assert!(found.into_iter().eq(addresses.iter().map(|one| table.lookup(one))), "{count}");
    }
    let (mut indices, addresses) = (vec![], [address(1); 40]);
    table.lookup_batch_values(&addresses, |i, value| {
        indices.push(i);
        assert_eq!(value, table.lookup(&address(1)).map(|(_, value)| value));
    });
    assert!(indices.into_iter().eq(0..40), "each address once, in order");
}

#[test]
fn results_of_a_batch_outlive_the_addresses() {
    let table = network();
    let mut found = [None; 2];
    {
        let addresses = vec![ip4("10.1.2.3"), ip4("192.0.2.1")];
        table.lookup_batch(&addresses, |i, route| found[i] = route);
    }
    assert_eq!(found.map(|found| *found.unwrap().1), ["10.1.2.3/32", "192.0.2.0/25"]);
}

#[test]
fn all_routes_to_an_address_shortest_first() {
    let table = network();
    let to = |address| names(table.matches(&ip4(address)));
    assert_eq!(to("10.1.2.3"), NETWORK[..5]);
    assert_eq!(to("10.1.2.4"), NETWORK[..4]);
    assert_eq!(to("192.0.2.1"), ["0.0.0.0/0", "192.0.2.0/25"]);
    assert_eq!(to("8.8.8.8"), ["0.0.0.0/0"]);
    assert!(table.matches(&ip4("10.1.2.3")).all(|(prefix, name)| prefix == v4(name)));
    // The last match of an address is its longest match.
    let last = table.matches(&ip4("10.1.2.3")).last();
    assert_eq!(last, table.lookup(&ip4("10.1.2.3")));
}

#[test]
fn covering_and_covered_routes() {
    let mut table = network();
    let covering = |table: &RouteTable<_, _>, of| names(table.covering(&v4(of)));
    let covered = |table: &RouteTable<_, _>, by| names(table.covered(&v4(by)));
    assert_eq!(covering(&table, "10.1.2.0/24"), NETWORK[..4], "itself included");
    assert_eq!(covering(&table, "10.1.2.0/25"), NETWORK[..4]);
    assert_eq!(covering(&table, "10.1.2.0/23"), NETWORK[..3]);
    assert_eq!(covering(&table, "10.0.0.0/7"), ["0.0.0.0/0"]);
    assert_eq!(covering(&table, "0.0.0.0/0"), ["0.0.0.0/0"]);
    assert_eq!(covered(&table, "0.0.0.0/0"), NETWORK);
    assert_eq!(covered(&table, "10.0.0.0/8"), NETWORK[1..6]);
    assert_eq!(covered(&table, "10.0.0.0/9"), NETWORK[2..6], "itself not included");
    assert_eq!(covered(&table, "10.1.2.3/32"), ["10.1.2.3/32"]);
    assert_eq!(covered(&table, "10.1.2.2/31"), ["10.1.2.3/32"]);
    assert_eq!(covered(&table, "10.1.2.4/32"), [""; 0]);
    assert_eq!(covered(&table, "192.0.2.0/24"), NETWORK[6..]);
    assert_eq!(covered(&table, "128.0.0.0/1"), NETWORK[6..]);
    assert!(NETWORK.iter().all(|name| table.overlaps(&v4(name))));
    assert!(table.overlaps(&v4("8.8.8.8/32")), "with the default route");
    table.remove(&V4::default_route());
    assert_eq!(covering(&table, "10.0.0.0/7"), [""; 0]);
    for (other, overlaps) in [
        ("0.0.0.0/0", true),
        ("8.0.0.0/5", true),
        ("10.0.0.0/7", true),
        ("10.200.0.0/16", true),
        ("10.1.2.3/32", true),
        ("11.0.0.0/8", false),
        ("8.0.0.0/7", false),
        ("192.0.2.64/26", true),
        ("192.0.3.0/24", false),
        ("192.0.2.0/23", true),
    ] {
        assert_eq!(table.overlaps(&v4(other)), overlaps, "{other}");
    }
}

#[test]
fn iteration_is_in_order_with_covering_routes_first() {
    let table: RouteTable<_, _> = NETWORK.into_iter().rev().map(|name| (v4(name), name)).collect();
    assert_eq!(names(table.iter()), NETWORK, "the names are in this order");
    assert!(table.prefixes().eq(NETWORK.map(v4)));
    assert!(table.values().eq(NETWORK.iter()));
    let mut count = 0;
    for (prefix, name) in &table {
        assert_eq!(prefix, v4(name));
        count += 1;
    }
    assert_eq!(count, table.len());
    let taken: Vec<(V4, &str)> = table.into_iter().collect();
    assert_eq!(taken, NETWORK.map(|name| (v4(name), name)));
}

#[test]
fn retain_calls_its_closure_once_for_each_route_in_order() {
    let mut table = network();
    let mut called = vec![];
    table.retain(|prefix, name| {
        called.push(prefix);
        assert_eq!(prefix, v4(name));
        *name = "kept";
        prefix.len() % 16 == 0
    });
    assert_eq!(called, NETWORK.map(v4));
    assert_eq!(names(table.iter()), ["kept"; 4]);
    check(&table);
    assert_eq!(table.lookup(&ip4("10.1.2.4")), Some((v4("10.1.0.0/16"), &"kept")));
    assert_eq!(table.lookup(&ip4("10.9.9.9")), Some((v4("0.0.0.0/0"), &"kept")));
    table.retain(|_, _| false);
    assert_eq!((table.len(), table.allocation_size()), (0, 0));
    check(&table);
}

/// Rejected routes are removed in groups, after which a walk continues behind them.
#[test]
fn retain_continues_after_routes_that_it_has_removed() {
    type Wide = (u64, [u8; 40]);
    fn test<A: Address + Debug>(prefixes: &[Prefix<A>], tops: &[Prefix<A>]) {
        for (top, kept) in tops.iter().flat_map(|top| [0, 1, 2, 5, 100].map(|kept| (top, kept))) {
            let mut table: RouteTable<A, usize> =
                prefixes.iter().enumerate().map(|(nth, prefix)| (*prefix, nth)).collect();
            let mut model: BTreeMap<Prefix<A>, usize> =
                table.iter().map(|(prefix, nth)| (prefix, *nth)).collect();
            let is_kept = |nth: usize| kept > 0 && nth % kept == 0;
            let (mut called, mut covered) = (vec![], vec![]);
            table.retain_covered(top, |prefix, nth| {
                called.push(prefix);
                is_kept(*nth)
            });
            model.retain(|prefix, nth| {
                let is_covered = top.covers(prefix);
                covered.extend(is_covered.then_some(*prefix));
                !is_covered || is_kept(*nth)
            });
            assert_eq!((called, table.validate()), (covered, Ok(())), "{top:?}, {kept}");
            assert!(table.iter().eq(model.iter().map(|(prefix, nth)| (*prefix, nth))));
            extract(table, model, kept + 1);
        }
    }
    /// Removes each `every`-th route by an iterator, first some of them and then the others.
    fn extract<A: Address + Debug>(
        mut table: RouteTable<A, usize>,
        model: BTreeMap<Prefix<A>, usize>,
        every: usize,
    ) {
        let picks = |nth: usize| nth % every == 0;
        let mut called = vec![];
        let some = table.extract_if(|_, nth| picks(*nth)).take(3).collect::<Vec<_>>();
        let others = table.extract_if(|prefix, nth| {
            called.push(prefix);
            picks(*nth)
        });
        let others = others.collect::<Vec<_>>();
        let (removed, kept): (Vec<_>, Vec<_>) = model.into_iter().partition(|(_, nth)| picks(*nth));
        assert_eq!([some, others].concat(), removed);
        let visited = |prefix: &Prefix<A>| !removed.iter().take(3).any(|(at, _)| at == prefix);
        assert_eq!(called.len(), kept.len() + removed.len().saturating_sub(3));
        assert!(called.is_sorted() && called.iter().all(visited));
        assert_eq!(table.validate(), Ok(()));
        assert!(table.into_iter().eq(kept));
    }
    // All prefixes of up to ten bits, and longer ones below some, with paths between.
    let few = if cfg!(miri) { 4 } else { 10 };
    let short = (0..=few).flat_map(|len| (0..1_u128 << len).map(move |bits| (bits, len)));
    let long = (0..400_u128).map(|n| (((n % 7) << 60) | (n << 20) | n, 20 + n as u32 * 7 % 60));
    let prefixes: Vec<Prefix<u128>> = short
        .chain(long)
        .map(|(bits, len)| Prefix::new(bits.checked_shl(128 - len).unwrap_or(0), len).unwrap())
        .collect();
    let tops = [0, 1, 3, 6, 7, 30].map(|len| Prefix::new(0, len).unwrap());
    let others = [5, 6, 9].map(|len| Prefix::new(0xB7 << 120, len).unwrap());
    test(&prefixes, &[&tops[..], &others].concat());
    // Later slots at each stride: in more nodes than there are on the path of 128 bits.
    let ladder = (0..384).map(|len| Prefix::<Wide>::new((0, [0; 40]), len).unwrap());
    let ladder: Vec<Prefix<Wide>> = ladder.flat_map(|prefix| prefix.halves()).flatten().collect();
    test(&ladder, &[Prefix::default_route(), ladder[300], ladder[301]]);
}

#[test]
fn a_cleared_table_can_be_used() {
    let mut table = network();
    table.clear();
    assert_eq!((table.len(), table.lookup(&ip4("10.1.2.3"))), (0, None));
    assert!(table.iter().next().is_none());
    check(&table);
    table.extend(NETWORK.map(|name| (v4(name), name)));
    assert_eq!(table, network());
}

#[test]
#[cfg_attr(miri, ignore = "covered by other tests")]
fn equality_ignores_the_order_of_insertion() {
    let table = network();
    let reversed: RouteTable<_, _> =
        NETWORK.into_iter().rev().map(|name| (v4(name), name)).collect();
    assert_eq!(table, reversed);
    assert_eq!(table, RouteTable::from(NETWORK.map(|name| (v4(name), name))));
    let mut other = table.clone();
    assert_eq!(other, table);
    *other.get_mut(&v4("10.1.2.3/32")).unwrap() = "another value";
    assert_ne!(other, table);
    other.remove(&v4("10.1.2.3/32"));
    assert_ne!(other, table);
    other.insert(v4("10.1.2.4/32"), "10.1.2.3/32");
    assert_ne!(other, table, "equal lengths and values, another prefix");
    assert_eq!(table.get(&v4("10.1.2.3/32")), Some(&"10.1.2.3/32"), "the original is unchanged");
    let debugged = format!("{:?}", RouteTable::from([(v4("10.0.0.0/8"), 'a')]));
    assert!(debugged.starts_with('{') && debugged.contains("'a'"), "{debugged}");
}

#[test]
fn collecting_keeps_the_last_of_duplicates() {
    let twice = [(v4("10.0.0.0/8"), 1), (v4("11.0.0.0/8"), 2), (v4("10.0.0.0/8"), 3)];
    for table in [RouteTable::from(twice), twice.into_iter().collect()] {
        assert_eq!(
            (table.len(), table.get(&v4("10.0.0.0/8"))),
            (2, Some(&3)),
            "the last value is kept"
        );
    }
}

/// Enough routes that they are sorted by digits, and some that are longer than those that are.
#[test]
fn collecting_is_inserting_in_order() {
    let value = Rc::new(());
    let route = |number: u32| {
        let address =
            u128::from(number % 100).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        let len = [0, 1, 47, 64, 65, 128][number as usize % 6];
        (prefix(Ipv6Addr::from_bits(address), len), (number, value.clone()))
    };
    let routes = || (0..if cfg!(miri) { 300 } else { 2000 }).map(route);
    let mut inserted = RouteTable::new();
    routes().for_each(|(at, value)| _ = inserted.insert(at, value));
    let collected: RouteTable<_, _> = routes().collect();
    collected.validate().unwrap();
    assert!(collected.iter().eq(inserted.iter()));
    assert_eq!(Rc::strong_count(&value), 1 + 2 * inserted.len());
    drop(collected);
    assert_eq!(Rc::strong_count(&value), 1 + inserted.len());
}

#[test]
fn host_bits_do_not_count() {
    let mut table = RouteTable::new();
    table.insert(prefix(ip4("10.1.2.3"), 8), 'a');
    table.insert(prefix(ip4("10.200.0.0"), 8), 'b');
    assert_eq!((table.len(), table.get(&v4("10.0.0.0/8"))), (1, Some(&'b')));
    assert_eq!(table.lookup(&ip4("10.9.9.9")), Some((v4("10.0.0.0/8"), &'b')));
    assert!(V4::try_from((ip4("10.1.2.3"), 8)).is_err());
}

#[test]
fn v4_mapped_addresses_are_ipv6_addresses() {
    let mapped = v6("::ffff:10.0.0.0/104");
    let mut table = RouteTable::from([(mapped, "ten"), (v6("::/96"), "compatible")]);
    let ten = Ipv4Addr::new(10, 1, 2, 3);
    assert_eq!(table.lookup(&ten.to_ipv6_mapped()), Some((mapped, &"ten")));
    assert_eq!(table.lookup(&ten.to_ipv6_compatible()), Some((v6("::/96"), &"compatible")));
    assert_eq!(table.lookup(&Ipv4Addr::new(11, 1, 2, 3).to_ipv6_mapped()), None);
    table.insert(v6("::ffff:0:0/96"), "mapped");
    table.insert(Prefix::host(ten.to_ipv6_mapped()), "host");
    let to_ten = ["mapped", "ten", "host"];
    assert_eq!(names(table.matches(&ten.to_ipv6_mapped())), to_ten);
    assert_eq!(names(table.covered(&v6("::ffff:0:0/96"))), to_ten);
    assert_eq!(names(table.iter()), ["compatible", "mapped", "ten", "host"]);
}

#[test]
fn a_table_is_send_and_sync_if_its_values_are() {
    fn is_send_and_sync<T: Send + Sync>(_: &T) {}
    is_send_and_sync(&network());
    let table = network();
    let found = std::thread::scope(|scope| {
        let find = || table.lookup(&ip4("10.1.2.3")).map(|(_, name)| *name);
        [scope.spawn(find), scope.spawn(find)].map(|thread| thread.join().ok().flatten())
    });
    assert_eq!(found, [Some("10.1.2.3/32"); 2]);
}

#[test]
#[cfg_attr(miri, ignore = "nothing unsafe in it")]
fn the_shape_counts_routes_nodes_and_bytes() {
    let mut table = network();
    let shape = table.shape();
    assert_eq!((shape.routes, shape.direct_tables), (table.len(), 0));
    assert_eq!(shape.routes_by_nodes.iter().sum::<usize>(), table.len());
    assert!(shape.bytes() <= table.allocation_size() && shape.average_nodes() >= 1.0);
    assert!(shape.to_string().starts_with("8 routes in "), "{shape}");
    table.clear();
    let shape = table.shape();
    assert_eq!((shape.routes, shape.nodes, shape.bytes()), (0, 0, 0));
    assert!(shape.average_nodes() == 0.0);
}
