//! The guarantees R1 to R5 of `ConcurrentRoutes`.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use flowtable::concurrent::{ConcurrentRoutes, pin};
use flowtable::{Prefix, RouteTable};

use super::turn;

const MANY: usize = if cfg!(miri) { 40 } else { 40_000 };

type Routes = ConcurrentRoutes<u128, u64>;
type Update = (Prefix<u128>, Option<u64>);

fn prefix(address: u128, len: u32) -> Prefix<u128> {
    Prefix::new(address, len).unwrap()
}

const ADDRESS: u128 = 0x2001_0db8_0001_0002_0003_0004_0005_0006;

/// Updates that change the longest route of an address, each to another one or to none, with
/// routes of all lengths; and routes beside them, which make regions wide and narrow again.
fn updates() -> impl Iterator<Item = Update> {
    let lens = [0, 3, 6, 9, 16, 18, 20, 29, 36, 48, 64, 90, 128];
    (0..MANY).map(move |now| {
        let random = (now as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
        match now % 4 {
            // A region of 2500 routes, of which nearly all are withdrawn again.
            0 => {
                let nth = now as u128 / 4 % 5000;
                let beside = prefix(ADDRESS ^ (nth % 2500 + 1) << 100, 28);
                (beside, (nth < 2500).then_some(0))
            }
            _ => {
                let at = prefix(ADDRESS, lens[random as usize % lens.len()]);
                (at, (random >> 8 & 1 == 0).then_some(now as u64 + 1))
            }
        }
    })
}

fn make(routes: &Routes, (at, value): Update) {
    match value {
        Some(value) => drop(routes.insert(at, value).unwrap()),
        None => drop(routes.remove(&at).unwrap()),
    }
}

/// Returns the answer after each update, before the first one included.
fn answers() -> Vec<Option<(Prefix<u128>, u64)>> {
    let mut table = RouteTable::new();
    let mut answers = vec![None];
    for (at, value) in updates() {
        match value {
            Some(value) => drop(table.insert(at, value)),
            None => drop(table.remove(&at)),
        }
        answers.push(table.lookup(&ADDRESS).map(|(at, &value)| (at, value)));
    }
    answers
}

#[test]
fn r1_r3_a_lookup_answers_from_a_moment_between_its_begin_and_its_end() {
    let _turn = turn();
    let (routes, answers) = (Routes::new(), answers());
    let (begun, done, is_done) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    let reader = |is_batch: bool| {
        let (mut pinned, mut last, mut reads) = (routes.pin(), 0, 0_u64);
        while !is_done.load(Ordering::Relaxed) {
            let first = done.load(Ordering::Acquire).max(last);
            let mut found = [None; 33];
            match is_batch {
                true => pinned.lookup_batch(&[ADDRESS; 33], &mut found),
                false => found[0] = pinned.lookup(&ADDRESS),
            }
            let end = begun.load(Ordering::Acquire);
            let found = found.map(|route| route.map(|(at, &value)| (at, value)));
            let states = first..=end;
            let moment = states.clone().find(|&state| answers[state] == found[0]);
            last = moment.unwrap_or_else(|| panic!("{:?} is of none of {states:?}", found[0]));
            if is_batch {
                // All lookups of a batch are of moments between its begin and its end.
                let mut all = found.iter();
                assert!(all.all(|found| states.clone().any(|state| answers[state] == *found)));
            }
            reads += 1;
            if reads % 7 == 0 {
                pinned.repin();
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| reader(false));
        scope.spawn(|| reader(true));
        for (nth, update) in (1..).zip(updates()) {
            begun.store(nth, Ordering::Release);
            make(&routes, update);
            done.store(nth, Ordering::Release);
        }
        is_done.store(true, Ordering::Relaxed);
    });
    routes.validate().unwrap();
    let found = routes.pin().lookup(&ADDRESS).map(|(at, &value)| (at, value));
    assert_eq!(Some(&found), answers.last());
}

#[test]
fn r2_a_value_stays_as_it_was_found_until_the_repin() {
    let _turn = turn();
    let routes = Routes::new();
    routes.insert(prefix(ADDRESS, 48), 0).unwrap();
    let mut pinned = routes.pin();
    {
        let (_, value) = pinned.lookup(&ADDRESS).unwrap();
        for now in 1..=MANY as u64 / 10 {
            routes.insert(prefix(ADDRESS, 48), now).unwrap();
            // A pin of any age has the last one.
            assert_eq!(pinned.lookup(&ADDRESS), Some((prefix(ADDRESS, 48), &now)));
        }
        routes.clear().unwrap();
        assert_eq!((*value, pinned.lookup(&ADDRESS)), (0, None));
    }
    pinned.repin();
    assert_eq!(pinned.lookup(&ADDRESS), None);
}

#[test]
fn r2_a_replacement_is_visible_at_once() {
    let _turn = turn();
    let table = |value: u64| -> RouteTable<u128, u64> {
        (0..9_u128).map(|host| (prefix(host << 122, 6 + host as u32), value)).collect()
    };
    let (routes, is_done) = (Routes::from(table(0)), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut pinned, mut last) = (routes.pin(), 0);
            while !is_done.load(Ordering::Relaxed) {
                for host in 0..9_u128 {
                    let value = *pinned.lookup(&(host << 122)).unwrap().1;
                    assert!(value >= last, "{value} after {last}");
                    last = value;
                }
                pinned.repin();
            }
        });
        for now in 1..MANY as u64 / 100 {
            routes.replace(table(now)).unwrap();
        }
        is_done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn r4_a_stalled_reader_makes_nothing_grow() {
    const LIMIT: usize = 100_000;
    let _turn = turn();
    let routes = Routes::new().with_garbage_limit(LIMIT, 1);
    let mut reader = routes.pin();
    let mut refused = 0;
    for now in 0..if cfg!(miri) { 100 } else { 50_000 } {
        if let Err(error) = routes.insert(prefix(ADDRESS, 40), now) {
            refused += 1;
            assert_eq!(error.refused, (prefix(ADDRESS, 40), now));
            assert!(error.limit == LIMIT && error.retired > LIMIT);
            assert!(*reader.lookup(&ADDRESS).unwrap().1 < now);
        }
        assert!(routes.allocation_size() < 10 * LIMIT);
    }
    assert!(cfg!(miri) || refused > 0);
    if refused > 0 {
        assert!(routes.remove(&prefix(ADDRESS, 40)).is_err() && routes.clear().is_err());
    }
    // What is refused is made when the reader has proceeded.
    while routes.remove(&prefix(ADDRESS, 40)).is_err() {
        reader.repin();
    }
    assert!(routes.is_empty());
}

#[test]
fn r4_any_number_of_routes_is_withdrawn_beside_a_reader() {
    let _turn = turn();
    let count = if cfg!(miri) { 20 } else { 30_000 };
    let all = || (0..count).map(|nth: u128| prefix(nth << 90, 38));
    let table: RouteTable<u128, u64> = all().map(|at| (at, 7)).collect();
    let routes = Routes::from(table).with_garbage_limit(50_000, 0);
    let mut reader = routes.pin();
    let mut withdrawn: Vec<Update> = all().map(|at| (at, None)).collect();
    let mut refusals = 0;
    while let Err(error) = routes.apply(withdrawn) {
        // Each call goes on with what the former one has left.
        assert!(error.refused.len() < count as usize);
        withdrawn = error.refused;
        refusals += 1;
        (0..3).for_each(|_| reader.repin());
    }
    assert!(cfg!(miri) || refusals > 3);
    assert!(routes.is_empty() && reader.lookup(&0).is_none());
    routes.validate().unwrap();
}

#[test]
fn r5_updates_are_visible_under_a_guard_that_is_shared() {
    let _turn = turn();
    let (v4, v6) = (ConcurrentRoutes::<u32, u32>::new(), Routes::new());
    let mut guard = pin();
    for now in 0..40 {
        v4.insert(Prefix::default_route(), now).unwrap();
        v6.insert(Prefix::default_route(), now.into()).unwrap();
        assert_eq!(v4.pinned(&guard).lookup(&1).unwrap().1, &now);
        assert_eq!(v6.pinned(&guard).lookup(&1).unwrap().1, &now.into());
        guard.repin();
    }
}

#[test]
fn r5_writers_take_turns() {
    let _turn = turn();
    let routes = Routes::new();
    let each = MANY as u128 / 20;
    let write = |mine: u128| {
        for host in 0..each {
            let at = prefix(host << 80 | mine << 60, 48 + mine as u32 * 10);
            routes.insert(at, mine as u64).unwrap();
            if host % 3 == 0 {
                assert_eq!(routes.remove(&at), Ok(Some(mine as u64)));
            }
        }
    };
    thread::scope(|scope| {
        let write = &write;
        (0..3).for_each(|mine| drop(scope.spawn(move || write(mine))));
    });
    let left = (0..each).filter(|host| host % 3 != 0).count();
    assert_eq!(routes.len(), 3 * left);
    routes.validate().unwrap();
}

#[test]
fn garbage_is_reused_while_readers_repin() {
    let _turn = turn();
    let routes = Routes::new();
    let size = || {
        for now in 0..MANY as u64 / 4 {
            routes.insert(prefix(u128::from(now % 100) << 90, 64), now).unwrap();
        }
        routes.allocation_size()
    };
    let first = size();
    assert!(size() <= 4 * first + (64 << 10));
}

#[test]
fn begins_with_a_table() {
    let _turn = turn();
    let table: RouteTable<u32, u32> = (0..MANY as u32 / 2)
        .map(|at| (Prefix::new(at.wrapping_mul(0x9E37_79B9), 4 + at % 29).unwrap(), at))
        .collect();
    let routes = ConcurrentRoutes::from(table.clone());
    routes.validate().unwrap();
    assert_eq!((routes.to_table(), routes.len()), (table.clone(), table.len()));
    assert_eq!(format!("{routes:?}"), format!("{table:?}"));
    let again: ConcurrentRoutes<u32, u32> = table.clone().into_iter().collect();
    let (pinned, addresses) = (again.pin(), (0..500_u32).map(|at| at.wrapping_mul(0x0197_39A1)));
    addresses.for_each(|at| assert_eq!(pinned.lookup(&at), table.lookup(&at)));
    assert!(Routes::default().is_empty());
}

#[test]
fn values_of_any_size() {
    let _turn = turn();
    let none: ConcurrentRoutes<u32, ()> = (0..70).map(|at| (Prefix::host(at), ())).collect();
    assert_eq!(none.pin().lookup(&69), Some((Prefix::host(69), &())));
    let large: ConcurrentRoutes<u16, [u128; 20]> =
        (0..99).map(|at| (Prefix::host(at), [at.into(); 20])).collect();
    large.validate().unwrap();
    let pinned = large.pin();
    (0..99).for_each(|at| assert_eq!(pinned.lookup(&at).unwrap().1, &[at.into(); 20]));
}

#[test]
fn can_be_sent_and_shared() {
    fn is<T: Send + Sync>() {}
    is::<ConcurrentRoutes<u32, &'static str>>();
}
