//! Entries, mutable iteration, sets, aggregation and tables of both families.

use core::fmt::Debug;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::collections::{BTreeMap, BTreeSet};

use flowtable::key::bits::Address;
use flowtable::routes::{AnyPrefixSet, Entry, PrefixSet};
use flowtable::{AnyPrefix, Prefix, RouteTable, Routes};
use model::prefixes::prefix_of;
use model::scaled;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

/// Random routes that often cover each other, with few values.
fn random_routes<A: Address>(count: usize, rng: &mut StdRng) -> BTreeMap<Prefix<A>, u32> {
    let route = |rng: &mut StdRng| {
        let bits = rng.random::<u64>() & rng.random::<u64>() & rng.random::<u64>();
        let address = A::from_windows(|pos| bits.checked_shl(pos).unwrap_or(0));
        (prefix_of(address, rng.random_range(0..=A::BITS)), rng.random_range(0..3))
    };
    (0..count).map(|_| route(rng)).collect()
}

fn table_of<A: Address>(routes: &BTreeMap<Prefix<A>, u32>) -> RouteTable<A, u32> {
    routes.iter().map(|(prefix, value)| (*prefix, *value)).collect()
}

#[test]
fn entries_are_those_of_a_map() {
    fn test<A: Address + Debug>(seed: u64) {
        let mut rng = StdRng::seed_from_u64(seed);
        let (mut table, mut model) = (RouteTable::<A, u32>::new(), BTreeMap::new());
        for step in 0..scaled(3000, 300, 30) {
            let routes = random_routes::<A>(1, &mut rng);
            let prefix = *routes.keys().next().unwrap();
            match (step % 3, table.entry(prefix)) {
                (0, Entry::Occupied(entry)) => {
                    assert_eq!(Some(entry.remove()), model.remove(&prefix));
                }
                (1, Entry::Vacant(entry)) => {
                    assert_eq!(entry.prefix(), prefix);
                    *entry.insert(step) += 1;
                    assert_eq!(model.insert(prefix, step + 1), None);
                }
                (_, entry) => {
                    *entry.and_modify(|value| *value += 1).or_insert(step) += 2;
                    *model.entry(prefix).and_modify(|value| *value += 1).or_insert(step) += 2;
                }
            }
            table.validate().unwrap();
        }
        assert!(table.iter().eq(model.iter().map(|(prefix, value)| (*prefix, value))));
    }
    test::<u8>(1);
    test::<Ipv4Addr>(2);
    test::<Ipv6Addr>(3);
}

#[test]
fn all_values_are_changed_once() {
    let mut rng = StdRng::seed_from_u64(4);
    let routes = random_routes::<Ipv6Addr>(if cfg!(miri) { 20 } else { 2000 }, &mut rng);
    let mut table: RouteTable<Ipv6Addr, Box<u32>> =
        routes.iter().map(|(prefix, value)| (*prefix, Box::new(*value))).collect();
    let mut all: Vec<_> = table.iter_mut().collect();
    assert!(all.iter().map(|(prefix, _)| prefix).eq(routes.keys()));
    all.iter_mut().for_each(|(_, value)| ***value += 10);
    for (prefix, value) in &mut table {
        **value += prefix.len();
    }
    table.values_mut().for_each(|value| **value += 100);
    let expected = routes.iter().map(|(prefix, value)| value + 110 + prefix.len());
    assert!(table.values().map(|value| **value).eq(expected));
    assert_eq!(table.iter_mut().size_hint(), (routes.len(), Some(routes.len())));
}

#[test]
fn sets_are_those_of_maps() {
    let mut rng = StdRng::seed_from_u64(5);
    for _ in 0..if cfg!(miri) { 2 } else { 200 } {
        let [one, other] = [(); 2].map(|()| random_routes::<u8>(60, &mut rng));
        let (a, b) = (table_of(&one), table_of(&other));
        let mut all = other.clone();
        all.extend(one.clone());
        assert!(a.union(&b).eq(all.iter().map(|(prefix, value)| (*prefix, value))));
        let both =
            one.iter().filter_map(|(prefix, value)| Some((*prefix, value, other.get(prefix)?)));
        assert!(a.intersection(&b).eq(both));
        let only = one.iter().filter(|(prefix, _)| !other.contains_key(prefix));
        assert!(a.difference(&b).eq(only.map(|(prefix, value)| (*prefix, value))));
        let [a, b] = [&one, &other].map(|routes| routes.keys().copied().collect::<PrefixSet<u8>>());
        assert!(a.union(&b).iter().eq(all.keys().copied()));
        assert_eq!(a.difference(&b).len() + a.intersection(&b).len(), a.len());
        let mut rest = a.clone();
        rest.retain(|prefix| !b.contains(&prefix));
        assert_eq!(rest, a.difference(&b));
        let mut rest = a.clone();
        assert!(rest.extract_if(|prefix| b.contains(&prefix)).eq(a.intersection(&b).iter()));
        assert_eq!(rest, a.difference(&b));
        let addresses: Vec<u8> = (0..=255).collect();
        let mut found = [None; 256];
        a.lookup_batch(&addresses, |i, route| found[i] = route);
        assert!(addresses.iter().zip(found).all(|(address, found)| a.lookup(address) == found));
        for prefix in b.iter() {
            assert!(a.covering(&prefix).eq(a.iter().filter(|other| other.covers(&prefix))));
            assert!(a.covered(&prefix).eq(a.iter().filter(|other| prefix.covers(other))));
            assert_eq!(a.lookup_prefix(&prefix), a.covering(&prefix).last());
            let (mut rest, count) = (a.clone(), a.covered(&prefix).count());
            assert_eq!(rest.remove_covered(&prefix), count);
            assert!(rest.into_iter().eq(a.iter().filter(|other| !prefix.covers(other))));
        }
    }
}

#[test]
fn routes_that_a_prefix_covers_are_removed() {
    let mut rng = StdRng::seed_from_u64(6);
    let mut routes = random_routes::<Ipv4Addr>(if cfg!(miri) { 30 } else { 1000 }, &mut rng);
    let mut table = table_of(&routes);
    for len in (0..=8).rev() {
        let top = prefix_of(Ipv4Addr::UNSPECIFIED, len);
        let before = routes.len();
        routes.retain(|prefix, _| !top.covers(prefix));
        assert_eq!(table.remove_covered(&top), before - routes.len());
        table.validate().unwrap();
        assert!(table.prefixes().eq(routes.keys().copied()));
    }
}

/// The values that a prefix may inherit.
const INHERITED: [Option<u32>; 4] = [None, Some(0), Some(1), Some(2)];

/// The number of routes of the smallest table that forwards the same, for each inherited value, by
/// dynamic programming over all prefixes: `values` has the values of all addresses.
fn fewest(values: &[Option<u32>], prefix: Prefix<u8>) -> [usize; 4] {
    let below: [usize; 4] = match prefix.halves() {
        Some(halves) => {
            let [low, high] = halves.map(|half| fewest(values, half));
            core::array::from_fn(|at| low[at] + high[at])
        }
        None => {
            let value = values[usize::from(prefix.address())];
            INHERITED.map(|inherited| usize::MAX / 1000 * usize::from(value != inherited))
        }
    };
    let with_route = 1 + below[1..].iter().min().expect("three values");
    below.map(|without| without.min(with_route))
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn an_aggregated_table_forwards_the_same_with_the_fewest_routes() {
    let mut rng = StdRng::seed_from_u64(7);
    for round in 0..60 {
        // Below 4 bits there are few prefixes, so that all tables can be tried.
        let routes: BTreeMap<Prefix<u8>, u32> = random_routes::<u8>(1 + round % 12, &mut rng)
            .into_iter()
            .map(|(prefix, value)| (prefix_of(prefix.address(), prefix.len() % 4), value))
            .collect();
        let table = table_of(&routes);
        let smallest = table.aggregated();
        smallest.validate().unwrap();
        let values = |table: &RouteTable<u8, u32>| -> Vec<Option<u32>> {
            (0..=255).map(|address| table.lookup(&address).map(|(_, via)| *via)).collect()
        };
        assert_eq!(values(&smallest), values(&table), "{table:?} {smallest:?}");
        let [fewest, ..] = fewest(&values(&table), Prefix::default_route());
        assert_eq!(smallest.len(), fewest, "{table:?} {smallest:?}");
    }
    let routes = random_routes::<Ipv4Addr>(5000, &mut rng);
    let table = table_of(&routes);
    let smallest = table.aggregated();
    assert!(smallest.len() < table.len());
    for prefix in routes.keys() {
        for address in [prefix.address(), prefix.last_address()] {
            let via = |table: &RouteTable<Ipv4Addr, u32>| table.lookup(&address).map(|it| *it.1);
            assert_eq!(via(&smallest), via(&table));
        }
    }
}

/// A batch finds what single lookups do, however the families are mixed.
fn check_batches<'a>(routes: &Routes<u32>, prefixes: impl Iterator<Item = &'a AnyPrefix>) {
    let mut addresses: Vec<IpAddr> =
        prefixes.flat_map(|prefix| [prefix.address(), prefix.last_address()]).collect();
    addresses.shuffle(&mut StdRng::seed_from_u64(9));
    for len in [0, 1, 31, 32, 33, addresses.len()] {
        let burst = &addresses[..len];
        let mut found = vec![routes.iter().next(); len];
        routes.lookup_batch(burst, |i, route| found[i] = route);
        assert!(burst.iter().map(|address| routes.lookup(*address)).eq(found));
    }
}

#[test]
fn both_families_are_in_one_table() {
    let mut rng = StdRng::seed_from_u64(8);
    let v4 = random_routes::<Ipv4Addr>(50, &mut rng);
    let v6 = random_routes::<Ipv6Addr>(50, &mut rng);
    let all: BTreeMap<AnyPrefix, u32> = v4
        .iter()
        .map(|(prefix, value)| ((*prefix).into(), *value))
        .chain(v6.iter().map(|(prefix, value)| ((*prefix).into(), *value)))
        .collect();
    let mut routes: Routes<u32> = all.iter().map(|(prefix, value)| (*prefix, *value)).collect();
    assert!(routes.iter().eq(all.iter().map(|(prefix, value)| (*prefix, value))));
    for prefix in all.keys() {
        let longest = |address: IpAddr| {
            let covers = all.iter().filter(|(prefix, _)| prefix.contains(address));
            covers.max_by_key(|(prefix, _)| prefix.len()).map(|(prefix, value)| (*prefix, value))
        };
        for address in [prefix.address(), prefix.last_address()] {
            assert_eq!(routes.lookup(address), longest(address));
        }
        assert_eq!(prefix.to_string().parse(), Ok(*prefix));
    }
    check_batches(&routes, all.keys());
    assert_eq!(routes.clone(), routes);
    let (entries, mut changed) = (all.iter().map(|(prefix, value)| (*prefix, value)), all.clone());
    assert!((&routes).into_iter().eq(entries));
    assert_eq!(routes.iter().size_hint(), (all.len(), Some(all.len())));
    assert!(routes.clone().into_iter().eq(all.clone()));
    for (prefix, value) in &mut routes {
        *value += u32::from(prefix.len());
    }
    changed.iter_mut().for_each(|(prefix, value)| *value += u32::from(prefix.len()));
    routes.retain(|prefix, _| prefix.len() % 3 > 0);
    changed.retain(|prefix, _| prefix.len() % 3 > 0);
    for (prefix, value) in &changed {
        assert_eq!(routes.get(prefix), Some(value));
        *routes.get_mut(prefix).unwrap() += 1;
    }
    changed.values_mut().for_each(|value| *value += 1);
    assert!(routes.iter().eq(changed.iter().map(|(prefix, value)| (*prefix, value))));
    for (prefix, value) in &changed {
        assert_eq!(routes.remove(prefix), Some(*value));
    }
    assert!(routes.is_empty() && routes.v4.allocation_size() == 0);
}

#[test]
fn a_set_of_both_families_is_that_of_a_map() {
    let mut rng = StdRng::seed_from_u64(10);
    let v4 = random_routes::<Ipv4Addr>(50, &mut rng).into_keys().map(AnyPrefix::from);
    let v6 = random_routes::<Ipv6Addr>(50, &mut rng).into_keys().map(AnyPrefix::from);
    let mut model: BTreeSet<AnyPrefix> = v4.chain(v6).collect();
    let mut set: AnyPrefixSet = model.iter().copied().collect();
    assert!(set.iter().eq(model.iter().copied()) && set.clone().into_iter().eq(model.clone()));
    for prefix in model.clone() {
        for address in [prefix.address(), prefix.last_address()] {
            let longest = model.iter().filter(|prefix| prefix.contains(address));
            let longest = longest.max_by_key(|prefix| prefix.len()).copied();
            assert_eq!(set.lookup(address), longest);
            assert_eq!(set.contains_address(address), longest.is_some());
        }
        assert!(set.contains(&prefix) && !set.insert(prefix));
        if prefix.len() % 2 == 0 {
            assert!(model.remove(&prefix) && set.remove(&prefix) && !set.remove(&prefix));
        }
        assert_eq!(set.contains(&prefix), model.contains(&prefix));
    }
    set.retain(|prefix| prefix.len() % 3 > 0);
    model.retain(|prefix| prefix.len() % 3 > 0);
    assert_eq!(set, model.iter().copied().collect());
    assert_eq!(format!("{set:?}"), format!("{model:?}"));
}

#[test]
fn an_aggregated_set_has_the_same_addresses() {
    let mut rng = StdRng::seed_from_u64(11);
    for _ in 0..if cfg!(miri) { 2 } else { 100 } {
        let set: PrefixSet<u8> = random_routes(20, &mut rng).into_keys().collect();
        let smallest = set.aggregated();
        let has = |set: &PrefixSet<u8>| (0..=255).map(|at| set.contains_address(&at)).collect();
        let (before, after): (Vec<bool>, Vec<bool>) = (has(&set), has(&smallest));
        assert_eq!(before, after);
        assert!(smallest.iter().all(|prefix| smallest.covering(&prefix).count() == 1));
        let siblings = |prefix: Prefix<u8>| {
            let above = Prefix::new(prefix.address(), prefix.len().saturating_sub(1)).unwrap();
            above.halves().is_some_and(|halves| halves.iter().all(|half| smallest.contains(half)))
        };
        assert!(!smallest.iter().any(siblings), "{smallest:?}");
    }
}
