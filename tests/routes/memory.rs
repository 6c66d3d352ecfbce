//! `RouteTable` and the allocator: allocated, reported and freed memory.

use core::net::{Ipv4Addr, Ipv6Addr};

use flowtable::key::bits::Address;
use flowtable::routes::{Entry, PrefixSet};
use flowtable::{Prefix, RouteTable};
use model::{alloc, scaled};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

/// The maximum of the bytes allocated during `act`, less those allocated before.
fn peak_of(act: impl FnOnce()) -> usize {
    alloc::measure(act).1.peak
}

/// The distribution of routes of the whole Internet: lengths with their frequencies per thousand,
/// the number of distinct first 16 bits, and that of the next 16.
trait Family: Address {
    const LENS: &[(u32, u32)];
    const BLOCKS: u64;
    const NETWORKS: u64;
}

impl Family for Ipv4Addr {
    const LENS: &[(u32, u32)] = &[
        (8, 1),
        (12, 2),
        (16, 14),
        (18, 14),
        (19, 26),
        (20, 45),
        (21, 55),
        (22, 118),
        (23, 123),
        (24, 600),
        (32, 2),
    ];
    const BLOCKS: u64 = 1 << 9;
    const NETWORKS: u64 = 1 << 16;
}

impl Family for Ipv6Addr {
    const LENS: &[(u32, u32)] = &[
        (28, 4),
        (29, 26),
        (32, 141),
        (36, 45),
        (40, 84),
        (44, 90),
        (46, 40),
        (47, 60),
        (48, 500),
        (64, 5),
        (128, 5),
    ];
    const BLOCKS: u64 = 1 << 5;
    const NETWORKS: u64 = 1 << 9;
}

/// A route like those of the Internet: in a block with others, some below others.
fn route<A: Family>(random: &mut StdRng) -> Prefix<A> {
    let all: u32 = A::LENS.iter().map(|(_, share)| share).sum();
    let mut at = random.random_range(0..all);
    let len = A::LENS.iter().find_map(|&(len, share)| {
        let is_here = at < share;
        at = at.wrapping_sub(share);
        is_here.then_some(len)
    });
    let mut kind = |kinds: u64| random.random_range(0..kinds).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let blocks = kind(A::BLOCKS) >> 48 << 48 | kind(A::NETWORKS) >> 48 << 32;
    let rest: u64 = random.random();
    let address = A::from_windows(|pos| match pos {
        0 => blocks | rest >> 32,
        1..32 => blocks << pos | rest << pos >> 32,
        _ => rest.checked_shl(pos - 32).unwrap_or(0),
    });
    Prefix::new(address, len.expect("shares add up")).expect("lengths are in range")
}

/// `count` distinct routes.
fn routes<A: Family>(count: usize, seed: u64) -> Vec<Prefix<A>> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut routes = vec![];
    while routes.len() < count {
        routes.extend((routes.len()..count).map(|_| route::<A>(&mut random)));
        routes.sort_unstable();
        routes.dedup();
    }
    routes.shuffle(&mut random);
    routes
}

fn filled<A: Family>(routes: &[Prefix<A>]) -> RouteTable<A, u32> {
    routes.iter().copied().zip(0..).collect()
}

const MANY: usize = if cfg!(miri) { 8 } else { 6000 };

#[test]
fn the_allocation_size_is_what_is_allocated() {
    fn test<A: Family, V: Clone>(value: V) {
        let routes = routes::<A>(MANY, 1);
        let mut other = routes.clone();
        other.shuffle(&mut StdRng::seed_from_u64(2));
        let before = alloc::bytes();
        let allocated = || (alloc::bytes() - before) as usize;
        let mut table: RouteTable<A, V> = RouteTable::new();
        assert_eq!((table.allocation_size(), allocated()), (0, 0));
        for &route in &routes {
            table.insert(route, value.clone());
            assert_eq!(table.allocation_size(), allocated(), "with {} routes", table.len());
        }
        let clone = table.clone();
        assert_eq!(table.allocation_size() + clone.allocation_size(), allocated());
        drop(clone);
        for route in &other[..MANY / 2] {
            assert!(table.remove(route).is_some());
            assert_eq!(table.allocation_size(), allocated(), "with {} routes left", table.len());
        }
        table.shrink_to_fit();
        assert_eq!(table.allocation_size(), allocated(), "shrunk");
        let mut at = 0;
        table.retain(|_, _| {
            at += 1;
            at % 4 != 0
        });
        assert_eq!(table.allocation_size(), allocated(), "thinned");
        for route in &other {
            table.remove(route);
            assert_eq!(table.allocation_size(), allocated(), "with {} routes left", table.len());
        }
        assert_eq!((table.len(), allocated()), (0, 0), "all memory is freed");
        table.extend(routes.iter().map(|&route| (route, value.clone())));
        assert_eq!(table.allocation_size(), allocated());
        table.clear();
        assert_eq!((table.allocation_size(), allocated()), (0, 0), "cleared");
        table.extend(routes.iter().map(|&route| (route, value.clone())));
        let mut taken = table.into_iter();
        assert!(taken.next().is_some());
        drop(taken);
        assert_eq!(allocated(), 0, "dropped");
    }
    test::<Ipv6Addr, [u64; 25]>([7; 25]);
    if !cfg!(miri) {
        test::<Ipv4Addr, u8>(7);
        test::<Ipv4Addr, ()>(());
        test::<Ipv6Addr, u32>(7);
    }
}

#[test]
fn lookups_and_iterators_allocate_nothing() {
    let routes = routes::<Ipv6Addr>(MANY, 3);
    let table = filled(&routes);
    let addresses: Vec<Ipv6Addr> = routes.iter().map(Prefix::address).collect();
    let mut found = vec![None; addresses.len()];
    let taken = peak_of(|| {
        table.lookup_batch(&addresses, |i, route| found[i] = route);
        for prefix in &routes {
            assert!(table.get(prefix).is_some() && table.lookup(&prefix.address()).is_some());
            assert!(table.overlaps(prefix) && table.covering(prefix).last().is_some());
            assert!(table.matches(&prefix.address()).count() > 0);
        }
    });
    assert_eq!(taken, 0);
}

/// All routes are inserted and removed, ten times.
#[test]
#[cfg_attr(miri, ignore = "slow")]
fn deleting_everything_returns_the_memory() {
    fn test<A: Family>() {
        let mut routes = routes::<A>(20_000, 4);
        let mut table = RouteTable::new();
        let mut random = StdRng::seed_from_u64(5);
        let mut first = 0;
        for round in 0..scaled(10, 3, 3) {
            table.extend(routes.iter().copied().zip(0_u32..));
            if round == 0 {
                first = table.allocation_size();
            }
            let full = table.allocation_size();
            assert!(
                full <= first + first / 4,
                "{full} bytes in round {round}, {first} in the first"
            );
            routes.shuffle(&mut random);
            assert!(routes.iter().all(|route| table.remove(route).is_some()));
            table.validate().unwrap();
            assert_eq!((table.len(), table.allocation_size()), (0, 0), "round {round}");
        }
    }
    test::<Ipv4Addr>();
    test::<Ipv6Addr>();
}

/// A tenth of the routes is replaced at a time, until each route has been replaced often.
#[test]
#[cfg_attr(miri, ignore = "slow")]
fn churn_does_not_fragment_the_memory() {
    fn test<A: Family>() {
        let mut all = routes::<A>(70_000, 6);
        let there = 50_000;
        let mut random = StdRng::seed_from_u64(7);
        let mut table = filled(&all[..there]);
        let first = table.allocation_size();
        let mut most = first;
        for round in 0..scaled(60, 4, 1) {
            // The last tenth of the present routes is exchanged with absent ones.
            all[..there].shuffle(&mut random);
            let (stay, rest) = all.split_at_mut(there);
            let leave = &mut stay[there - there / 10..];
            rest.shuffle(&mut random);
            for (leaving, coming) in leave.iter_mut().zip(rest) {
                core::mem::swap(leaving, coming);
                assert!(table.remove(coming).is_some());
                assert!(table.insert(*leaving, round).is_none());
                most = most.max(table.allocation_size());
            }
        }
        table.validate().unwrap();
        let fresh = filled(&all[..there]).allocation_size();
        let now = table.allocation_size();
        println!("{first} bytes at first, {most} at most, {now} at the end, {fresh} rebuilt");
        assert!(most <= first.max(fresh) * 5 / 4, "{most} bytes at most, {first} at first");
    }
    test::<Ipv4Addr>();
    test::<Ipv6Addr>();
}

/// Most of the routes are removed; the memory becomes proportional by `shrink_to_fit`.
#[test]
#[cfg_attr(miri, ignore = "slow")]
fn a_table_that_was_large_shrinks() {
    fn test<A: Family>() {
        let routes = routes::<A>(50_000, 8);
        let mut table = filled(&routes);
        let large = table.allocation_size();
        for left in [25_000, 5000, 500, 50] {
            for route in &routes[left..] {
                table.remove(route);
            }
            assert_eq!(table.len(), left);
            let fresh = filled(&routes[..left]).allocation_size();
            let kept = table.allocation_size();
            table.shrink_to_fit();
            let shrunk = table.allocation_size();
            println!("{left} left: {kept} bytes of {large}, {shrunk} when shrunk, {fresh} rebuilt");
            table.validate().unwrap();
            // A block that shrinks moves, and leaves a free one.
            assert!(kept <= 2 * large, "{left} left: {kept} bytes of {large}");
            assert!(
                shrunk <= kept && shrunk <= fresh,
                "{left} left: {shrunk} bytes, {fresh} rebuilt"
            );
            let clone = table.clone().allocation_size();
            assert!(clone <= 2 * fresh, "{left} left: {clone} bytes in a clone, {fresh} rebuilt");
        }
    }
    test::<Ipv4Addr>();
    test::<Ipv6Addr>();
}

/// Routes are inserted into many nodes in turn and removed in turn: all blocks pass through all
/// sizes at the same time.
#[test]
#[cfg_attr(miri, ignore = "slow")]
fn interleaved_updates_do_not_fragment_the_memory() {
    let group = |group: u32| {
        let inside = (18..=24).flat_map(move |len| (0..1 << (len - 18)).map(move |i| (i, len)));
        inside.map(move |(i, len): (u32, u32)| {
            let address = Ipv4Addr::from_bits(32 << 24 | group << 14 | i << (32 - len));
            Prefix::new(address, len).expect("it is in range")
        })
    };
    let groups: Vec<Vec<Prefix<Ipv4Addr>>> = (0..1500).map(|at| group(at).collect()).collect();
    let full: RouteTable<Ipv4Addr, u32> =
        groups.iter().flatten().map(|&route| (route, 1)).collect();
    let full = full.allocation_size();
    let mut table = RouteTable::<_, u32>::new();
    let mut most = 0;
    let size = groups[0].len();
    for (from, to) in [(0, size), (size, 10), (10, size), (size, size / 2), (size / 2, 0)] {
        for at in if from < to { from..to } else { to..from } {
            for group in &groups {
                match from < to {
                    true => assert_eq!(table.insert(group[at], 1), None),
                    false => assert_eq!(table.remove(&group[from + to - 1 - at]), Some(1)),
                }
            }
            most = most.max(table.allocation_size());
        }
        println!("{to} in each group: {} bytes", table.allocation_size());
    }
    println!("{most} bytes at most, {full} in a table that was filled group by group");
    assert_eq!(table.allocation_size(), 0);
    assert!(most <= 2 * full, "{most} bytes at most, {full} when full");
}

/// An update of a large table allocates little memory.
#[test]
#[cfg_attr(miri, ignore = "slow")]
fn an_update_allocates_little() {
    fn test<A: Family>() {
        let routes = routes::<A>(scaled(100_000, 20_000, 100_000), 9);
        let mut table: RouteTable<A, u32> = RouteTable::new();
        let mut most = 0;
        for &route in &routes {
            most = most.max(peak_of(|| assert_eq!(table.insert(route, 1), None)));
        }
        let full = table.allocation_size();
        for route in &routes {
            most = most.max(peak_of(|| assert_eq!(table.remove(route), Some(1))));
        }
        println!("at most {most} bytes in one update; {full} in all");
        assert!(most <= 128 << 10, "{most} bytes for one update of {full}");
    }
    test::<Ipv4Addr>();
    test::<Ipv6Addr>();
}

/// Insertions of which each allocation may fail: a failed one changes nothing.
#[test]
fn an_insertion_may_fail() {
    fn test<A: Family>(steps: usize) {
        let routes = routes::<A>(steps, 10);
        let (mut table, mut failed) = (RouteTable::new(), 0);
        for (&route, nth) in routes.iter().zip(0_u32..) {
            for allowed in 0.. {
                let before = table.len();
                let inserted = alloc::with_allocations(allowed, || table.try_insert(route, nth));
                if nth % 16 == 0 || inserted.is_err() {
                    table.validate().unwrap();
                }
                match inserted {
                    Ok(old) => {
                        assert_eq!((old, table.len()), (None, before + 1));
                        break;
                    }
                    Err(error) => {
                        assert_eq!((error.refused, table.len()), (nth, before));
                        assert_eq!(table.get(&route), None);
                        failed += 1;
                    }
                }
            }
        }
        for (route, nth) in routes.iter().zip(0..) {
            assert!(table.lookup(&route.address()).is_some());
            let removed = alloc::with_allocations(0, || table.remove(route));
            assert_eq!(removed, Some(nth), "a removal needs no memory");
            if nth % 16 == 0 {
                table.validate().unwrap();
            }
        }
        println!("{failed} insertions failed");
        assert!(failed > 3 && table.is_empty());
    }
    let steps = scaled(3000, 200, 20);
    test::<Ipv4Addr>(steps);
    test::<Ipv6Addr>(steps);
}

/// Failed insertions below a direct table move nodes there and back.
#[test]
#[cfg_attr(miri, ignore = "slow")]
fn an_insertion_below_a_direct_table_may_fail() {
    let mut random = StdRng::seed_from_u64(11);
    let mut route = |len| {
        let address = Ipv4Addr::from_bits(8 << 24 | random.random::<u32>() >> 6);
        Prefix::new(address, len).expect("it is in range")
    };
    let mut table: RouteTable<_, u32> = (0..6000).map(|nth| (route(24), nth)).collect();
    assert_eq!(table.shape().direct_tables, 1);
    let mut failed = 0;
    for nth in 0..8000 {
        let route = route([24, 24, 22, 19, 32, 17][nth % 6]);
        for allowed in 0.. {
            let len = table.len();
            if alloc::with_allocations(allowed, || table.try_insert(route, 1)).is_ok() {
                break;
            }
            table.validate().unwrap();
            assert_eq!((table.len(), table.get(&route)), (len, None));
            failed += 1;
        }
    }
    table.validate().unwrap();
    println!("{failed} insertions failed");
    assert!(failed > 5);
}

#[test]
fn shrinking_without_memory_keeps_the_routes() {
    let routes = routes::<Ipv6Addr>(MANY, 12);
    let mut table = filled(&routes);
    for route in &routes[MANY / 4..] {
        table.remove(route);
    }
    let left = filled(&routes[..MANY / 4]);
    for allowed in [0, 1, 2, 3, 5, 8, 13, 21, 34, 55] {
        alloc::with_allocations(allowed, || table.shrink_to_fit());
        table.validate().unwrap();
        assert_eq!(table, left, "{allowed} allocations");
    }
}

/// Chunks are released while routes are withdrawn and announced, in any order: each update
/// allocates little, the routes remain right, and all invariants hold at any time.
#[test]
#[cfg_attr(miri, ignore = "slow")]
fn memory_is_released_during_updates() {
    fn test<A: Family, V: Clone + core::fmt::Debug + PartialEq>(make: fn(usize) -> V) {
        let mut routes = routes::<A>(scaled(20_000, 2000, 0), 13);
        let mut table: RouteTable<A, V> =
            routes.iter().enumerate().map(|(nth, route)| (*route, make(nth))).collect();
        let values = table.clone();
        let mut random = StdRng::seed_from_u64(14);
        // In the order of prefixes, reversed, and random, each with some announcements between.
        for order in 0..3 {
            match order {
                0 => routes.sort_unstable(),
                1 => routes.sort_unstable_by(|one, other| other.cmp(one)),
                _ => routes.shuffle(&mut random),
            }
            let (mut most, full) = (0, table.allocation_size());
            for (nth, route) in routes.iter().enumerate() {
                most = most.max(peak_of(|| assert!(table.remove(route).is_some())));
                if nth % 4 == 3 {
                    // One of the last ones comes back, and leaves.
                    let back = routes[nth - random.random_range(0..4)];
                    let value = values.get(&back).expect("it was there").clone();
                    assert!(table.insert(back, value).is_none());
                    assert!(table.remove(&back).is_some());
                }
                if nth % 999 == 0 || (nth % 99 == 0 && nth > routes.len() - 1500) {
                    table.validate().unwrap();
                    let kept = &routes[nth + 1..];
                    let some = kept.iter().step_by(kept.len() / 64 + 1);
                    some.for_each(|one| assert_eq!(table.get(one), values.get(one)));
                }
                if nth == routes.len() - 400 {
                    let now = table.allocation_size();
                    println!("{now} bytes of {full} with 400 routes, order {order}");
                    // They share few chunks only if they are neighbours.
                    let few = full * 3 / 4 + (96 << 10);
                    assert!(order == 2 || now < few, "{now} bytes of {full}, order {order}");
                }
            }
            assert!(most <= 128 << 10, "{most} bytes for one update");
            assert_eq!((table.len(), table.allocation_size()), (0, 0));
            table.extend(values.iter().map(|(route, value)| (route, value.clone())));
        }
    }
    test::<Ipv4Addr, u32>(|nth| nth as u32);
    test::<Ipv6Addr, Box<u32>>(|nth| Box::new(nth as u32));
    test::<Ipv6Addr, [u64; 9]>(|nth| [nth as u64; 9]);
}

/// Entries and sets return what they refuse.
#[test]
fn insertions_by_entries_and_into_sets_may_fail() {
    let prefix = Prefix::new(Ipv4Addr::new(10, 0, 0, 0), 8).expect("it is in range");
    let mut table = RouteTable::<_, u32>::new();
    let Entry::Vacant(entry) = table.entry(prefix) else { panic!("it is empty") };
    let refused = alloc::with_allocations(0, || entry.try_insert(7).unwrap_err().refused);
    assert_eq!((refused, table.len()), (7, 0));
    let Entry::Vacant(entry) = table.entry(prefix) else { panic!("it is empty") };
    *entry.try_insert(7).unwrap() += 1;
    assert_eq!(table.get(&prefix), Some(&8));

    let mut set = PrefixSet::new();
    let inserted = alloc::with_allocations(0, || set.try_insert(prefix));
    assert_eq!((inserted.unwrap_err().refused, set.len()), (prefix, 0));
    assert_eq!((set.try_insert(prefix), set.try_insert(prefix)), (Ok(true), Ok(false)));
}
