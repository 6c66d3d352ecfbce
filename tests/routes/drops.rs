//! Every value inserted into a `RouteTable` is dropped exactly once by each of its methods, also
//! when user code panics.

use core::net::{Ipv4Addr, Ipv6Addr};
use std::collections::BTreeSet;

use flowtable::routes::Routes;
use flowtable::{Prefix, RouteTable};
use model::counted::{Callback, Counted, alive, forget_leaked, with_panic};
use model::scaled;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

const MANY: u64 = scaled(3000, 500, 4);

type Value<const PAD: usize> = (Counted, [u8; PAD]);
type Table<const PAD: usize> = RouteTable<Ipv6Addr, Value<PAD>>;

fn value<const PAD: usize>(number: u64) -> Value<PAD> {
    (Counted::new(number), [number as u8; PAD])
}

/// Many routes in each node, some below others, and some far from all others.
fn route(number: u64) -> Prefix<Ipv6Addr> {
    let low = u128::from(number % 700);
    let (bits, len) = match number % 4 {
        0 => (low << 100, 28),
        1 => (low << 100, 22 + number as u32 % 9),
        2 => (low << 100 | low << 60, 68),
        _ => (u128::from(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)) << 60 | low, 128),
    };
    Prefix::new(Ipv6Addr::from_bits(bits), len).unwrap()
}

/// A table of the first `count` routes; a value has the number of the last route with its prefix.
fn table<const PAD: usize>(count: u64) -> Table<PAD> {
    (0..count).map(|number| (route(number), value(number))).collect()
}

/// Checks that the values of the table are alive, besides `others`.
fn check<const PAD: usize>(table: &Table<PAD>, others: usize) {
    if !cfg!(miri) {
        table.validate().unwrap();
    }
    for (prefix, value) in table {
        assert!(value.0.is_alive() && route(value.0.number) == prefix);
        assert_eq!(value.1, [value.0.number as u8; PAD]);
    }
    assert_eq!((table.iter().count(), alive()), (table.len(), table.len() + others));
}

/// Runs a test with values of few bytes and of many.
fn with_both(small: fn(), large: fn()) {
    small();
    assert_eq!(alive(), 0, "small values");
    if !cfg!(miri) {
        large();
        assert_eq!(alive(), 0, "large values");
    }
}

#[test]
fn by_growth_and_overwriting() {
    fn test<const PAD: usize>() {
        let mut table: Table<PAD> = RouteTable::new();
        for number in 0..2 * MANY {
            let had = table.len();
            let old = table.insert(route(number), value(number));
            assert!(old.as_ref().is_none_or(|(old, _)| old.is_alive()));
            assert_eq!(old.is_none(), table.len() == had + 1);
            if number % 256 == 0 {
                drop(old);
                check(&table, 0);
            }
        }
        check(&table, 0);
        table.extend((0..MANY).map(|number| (route(number), value(number))));
        check(&table, 0);
        for number in 0..MANY {
            *table.get_mut(&route(number)).unwrap() = value(number);
            let (prefix, found) = table.lookup_mut(&route(number).address()).unwrap();
            let number = found.0.number;
            assert!(prefix.covers(&route(number)));
            *found = value(number);
        }
        check(&table, 0);
        table.shrink_to_fit();
        check(&table, 0);
    }
    with_both(test::<0>, test::<200>);
}

#[test]
fn by_removal() {
    fn test<const PAD: usize>() {
        let mut table: Table<PAD> = table(MANY);
        let mut numbers: Vec<u64> = (0..MANY).collect();
        numbers.shuffle(&mut StdRng::seed_from_u64(1));
        for number in numbers {
            let had = table.len();
            let old = table.remove(&route(number));
            assert!(old.as_ref().is_none_or(|(old, _)| old.is_alive()));
            assert_eq!(old.is_some(), table.len() + 1 == had);
            check_now_and_then(&table, number, usize::from(old.is_some()));
        }
        assert_eq!((table.len(), alive(), table.allocation_size()), (0, 0, 0));
    }
    fn check_now_and_then<const PAD: usize>(table: &Table<PAD>, number: u64, others: usize) {
        if number % 256 == 0 {
            check(table, others);
        }
    }
    with_both(test::<0>, test::<200>);
}

#[test]
#[cfg_attr(miri, ignore = "slow; covered by other tests")]
fn by_a_random_sequence() {
    fn test<const PAD: usize>() {
        let mut random = StdRng::seed_from_u64(2);
        let mut table: Table<PAD> = RouteTable::new();
        for step in 0..3 * MANY {
            let number = random.random_range(0..MANY);
            match random.random_range(0..5) {
                0..=2 => drop(table.insert(route(number), value(number))),
                3 => drop(table.remove(&route(number))),
                _ if step % 64 == 0 => table.retain(|_, value| value.0.number % 5 != number % 5),
                _ => assert!(
                    table.lookup(&route(number).address()).is_none_or(|(_, one)| one.0.is_alive())
                ),
            }
            if step % 128 == 0 {
                check(&table, 0);
            }
        }
        check(&table, 0);
    }
    with_both(test::<0>, test::<200>);
}

#[test]
fn by_retain_and_clear() {
    fn test<const PAD: usize>() {
        let mut table: Table<PAD> = table(MANY);
        for divisor in [7, 3, 2] {
            table.retain(|_, value| value.0.number % divisor != 0);
            check(&table, 0);
        }
        table.retain(|_, value| {
            let number = value.0.number;
            *value = self::value(number);
            true
        });
        check(&table, 0);
        table.retain(|_, _| false);
        assert_eq!((table.len(), alive()), (0, 0));
        table.extend((0..MANY).map(|number| (route(number), value(number))));
        check(&table, 0);
        table.clear();
        assert_eq!((table.len(), alive()), (0, 0));
        check(&table, 0);
    }
    with_both(test::<0>, test::<200>);
}

#[test]
fn by_iterators_that_stop_half_way() {
    fn test<const PAD: usize>() {
        let original: Table<PAD> = table(MANY);
        let count = original.len();
        let some = [1, 0, 2, count / 3, count - 1, count];
        for taken in some.into_iter().take(if cfg!(miri) { 1 } else { 6 }) {
            let mut routes = original.clone().into_iter();
            for (prefix, value) in routes.by_ref().take(taken) {
                assert!(value.0.is_alive() && route(value.0.number) == prefix);
            }
            assert_eq!(alive(), 2 * count - taken);
            let kept: Vec<(Prefix<Ipv6Addr>, Value<PAD>)> = routes.by_ref().take(5).collect();
            drop(routes);
            assert!(kept.iter().all(|(_, value)| value.0.is_alive()));
            check(&original, kept.len());
        }
        let again: Table<PAD> = original.clone().into_iter().collect();
        assert_eq!(again, original);
        check(&again, count);
        drop(original.into_iter());
        check(&again, 0);
    }
    with_both(test::<0>, test::<200>);
}

#[test]
fn by_clones() {
    fn test<const PAD: usize>() {
        let table: Table<PAD> = table(MANY);
        let mut clone = table.clone();
        check(&clone, table.len());
        clone.retain(|_, value| value.0.number % 2 == 0);
        check(&clone, table.len());
        clone.clone_from(&table);
        check(&clone, table.len());
        drop(clone);
        check(&table, 0);
    }
    with_both(test::<0>, test::<200>);
}

/// The calls at which something panics: the first ones, the last ones, and some between.
fn positions(count: usize) -> impl Iterator<Item = u32> {
    let (few, step) = if cfg!(miri) { (0, count) } else { (8, count / 12 + 1) };
    let is_one = move |&at: &usize| at < few || at % step == 1 || at + 1 == count;
    (0..count).filter(is_one).map(|at| at as u32)
}

#[test]
fn when_the_closure_of_retain_panics() {
    fn test<const PAD: usize>() {
        let count = table::<PAD>(MANY).len();
        for at in positions(count) {
            let mut table: Table<PAD> = table(MANY);
            let (mut calls, mut rejected) = (0, BTreeSet::new());
            let result = with_panic(Callback::Eq, at, || {
                table.retain(|prefix, value| {
                    // The comparison is what panics.
                    calls += usize::from(value.0 == value.0);
                    let is_kept = value.0.number % 3 == 0;
                    is_kept || !rejected.insert(prefix)
                });
            });
            assert_eq!((result, calls), (None, at as usize));
            let prefixes: BTreeSet<_> = (0..MANY).map(route).collect();
            assert!(prefixes.difference(&rejected).all(|prefix| table.contains(prefix)));
            assert!(table.len() + rejected.len() >= count && table.len() <= count);
            check(&table, 0);
            // The table can be used afterwards.
            table.insert(route(0), value(0));
            table.retain(|_, value| value.0.number % 2 == 0);
            check(&table, 0);
        }
    }
    with_both(test::<0>, test::<200>);
}

#[test]
fn when_the_clone_of_a_value_panics() {
    fn test<const PAD: usize>() {
        let table: Table<PAD> = table(MANY);
        for at in positions(table.len()) {
            assert!(with_panic(Callback::Clone, at, || table.clone()).is_none());
            check(&table, 0);
            let mut other: Table<PAD> = RouteTable::from([(route(0), value(0))]);
            assert!(with_panic(Callback::Clone, at, || other.clone_from(&table)).is_none());
            other.validate().unwrap();
            assert_eq!(alive(), table.len() + other.len());
        }
        let all = table.len() as u32;
        let clone = with_panic(Callback::Clone, all, || table.clone()).expect("no clone panics");
        check(&clone, table.len());
    }
    with_both(test::<0>, test::<200>);
}

#[test]
fn when_the_iterator_of_extend_panics() {
    fn test<const PAD: usize>() {
        for at in positions(MANY as usize) {
            let mut table: Table<PAD> = table(MANY / 2);
            let one = Counted::new(0);
            let routes = (0..MANY).map(|number| {
                assert!(one == one);
                (route(number), value(number))
            });
            assert!(with_panic(Callback::Eq, at, || table.extend(routes)).is_none());
            check(&table, 1);
        }
    }
    with_both(test::<0>, test::<200>);
}

/// The drop of one value panics. The others are dropped or remain; none leaks or is dropped twice.
#[test]
fn when_the_drop_of_a_value_panics() {
    fn test<const PAD: usize>() {
        let count = table::<PAD>(MANY).len();
        let ways: [fn(Table<PAD>) -> Option<Table<PAD>>; 6] = [
            |table| {
                drop(table);
                None
            },
            |table| {
                drop(table.into_iter());
                None
            },
            |table| {
                let mut routes = table.into_iter();
                routes.by_ref().take(2).for_each(core::mem::forget);
                drop(routes);
                None
            },
            |mut table| {
                table.clear();
                Some(table)
            },
            |mut table| {
                table.retain(|_, _| false);
                Some(table)
            },
            |mut table| {
                (0..MANY).for_each(|number| drop(table.insert(route(number), value(number))));
                (0..MANY).for_each(|number| drop(table.remove(&route(number))));
                Some(table)
            },
        ];
        for (way, at) in
            ways.into_iter().flat_map(|way| positions(count - 2).map(move |at| (way, at)))
        {
            let table = table(MANY);
            assert!(with_panic(Callback::Drop, at, || way(table)).is_none());
            // Nothing has been dropped twice; two are forgotten by one of the ways.
            assert!([0, 2].contains(&alive()));
            forget_leaked();
        }
        // A cleared table is empty, and a table remains valid while others are retained.
        for at in positions(count) {
            let mut table: Table<PAD> = table(MANY);
            assert!(with_panic(Callback::Drop, at, || table.clear()).is_none());
            table.validate().unwrap();
            assert_eq!((table.len(), alive()), (0, 0), "the others have been dropped");
            table.insert(route(1), value(1));
            assert!(
                with_panic(Callback::Drop, at % 2, || table.retain(|_, _| false))
                    .is_none_or(|()| at % 2 == 1)
            );
            table.validate().unwrap();
            assert!(table.iter().all(|(_, value)| value.0.is_alive()));
            drop(table);
            alive();
            forget_leaked();
        }
    }
    with_both(test::<0>, test::<200>);
}

#[test]
fn a_drop_that_panics_leaves_no_routes_of_either_family() {
    for at in 0..6 {
        let mut routes = Routes::new();
        for number in 0..3 {
            let v4 = Prefix::new(Ipv4Addr::from_bits(number << 24), 8).unwrap();
            routes.insert(v4.into(), Counted::new(number.into()));
            routes.insert(route(number.into()).into(), Counted::new(number.into()));
        }
        assert!(with_panic(Callback::Drop, at, || routes.clear()).is_none());
        assert!(routes.is_empty() && routes.v4.allocation_size() == 0);
        assert!(routes.insert(route(0).into(), Counted::new(0)).is_none());
        drop(routes);
        alive();
        forget_leaked();
    }
}
