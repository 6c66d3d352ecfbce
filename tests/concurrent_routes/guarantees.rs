//! The guarantees R1 to R7 of `ConcurrentRoutes`.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use flowtable::concurrent::{ConcurrentRoutes, Pinned, Refused, pin};
use flowtable::key::bits::Address;
use flowtable::{Prefix, RouteTable};
use model::threads::eventually;

use super::readers::{MANY, beside_updates};
use super::turn;

type Routes<V> = ConcurrentRoutes<u32, V>;

fn prefix(address: u32, len: u32) -> Prefix<u32> {
    Prefix::new(address, len).unwrap()
}

/// Readers look up one address again and again while routes of these lengths are inserted and
/// removed in turns, each before the previous one is removed. So there is always a route, and never
/// more than two, and their values only increase.
fn make_before_break<A: Address + Send + Sync + 'static>(address: A, lens: &[u32]) {
    let routes = ConcurrentRoutes::<A, Box<u32>>::new();
    let at = |now: u32| Prefix::new(address, lens[now as usize % lens.len()]).unwrap();
    routes.insert(at(0), Box::new(0)).unwrap();
    let make = |now| {
        assert_eq!(routes.insert(at(now), Box::new(now)).ok(), Some(true));
        assert_eq!(routes.remove(&at(now - 1)).ok(), Some(true));
    };
    beside_updates(
        || (routes.pin(), [0; 32]),
        make,
        |(pinned, last), made| {
            let made_before = made();
            let mut found = [None; 32];
            pinned.lookup_batch(&[address; 32], |i, route| found[i] = route);
            let single = pinned.lookup(&address);
            for (last, found) in last.iter_mut().zip(found.into_iter().chain([single])) {
                let (prefix, now) = found.expect("there is always a route");
                assert!(at(**now) == prefix, "the value is that of the route");
                // The longer one of two routes hides the later one.
                assert!(**now + 1 >= made_before && **now + 1 >= *last, "{now} after {last}");
                *last = **now;
            }
            pinned.repin();
        },
    );
    routes.validate().unwrap();
    assert_eq!(routes.len(), 1);
}

#[test]
fn r1_old_or_new_by_routes_of_ipv4() {
    let _turn = turn();
    make_before_break(0x0A01_0203_u32, &[8, 24, 32, 6, 12, 25]);
}

#[test]
fn r1_old_or_new_by_routes_of_ipv6() {
    let _turn = turn();
    make_before_break(0x2001_0DB8_0001_0002_u128 << 64 | 3, &[48, 20, 64, 32, 128, 16, 29]);
}

#[test]
fn r1_old_or_new_while_a_part_loses_all_routes() {
    let _turn = turn();
    make_before_break(0x0A01_0203_u32, &[0, 24]);
}

#[test]
fn r2_updates_are_visible_on_return() {
    let _turn = turn();
    let routes: Routes<u32> = ConcurrentRoutes::new();
    // Forty updates are seen as forty, by one guard.
    let guard = pin();
    for now in 0..40 {
        for len in [0, 6, 7, 18, 19, 24, 25, 32] {
            routes.insert(prefix(SHORT, len), now).unwrap();
            assert_eq!(routes.pinned(&guard).lookup(&SHORT), Some((prefix(SHORT, len), &now)));
        }
        for len in [32, 25, 24, 19, 18, 7, 6, 0] {
            assert_eq!(routes.pinned(&guard).lookup(&SHORT), Some((prefix(SHORT, len), &now)));
            routes.remove(&prefix(SHORT, len)).unwrap();
        }
        assert_eq!(routes.pinned(&guard).lookup(&SHORT), None);
    }
}

#[test]
fn r3_updates_are_observed_in_their_order() {
    let _turn = turn();
    let routes: Routes<u32> = ConcurrentRoutes::new();
    let (is_done, seen) = (AtomicBool::new(false), AtomicU32::new(0));
    thread::scope(|scope| {
        let reader = || {
            while !is_done.load(Ordering::Relaxed) {
                // What another thread has seen, and what this one sees then.
                let seen_before = seen.load(Ordering::Acquire);
                let now = routes.pin().lookup(&SHORT).map_or(0, |(_, &now)| now);
                assert!(now >= seen_before, "{now} after {seen_before}");
                seen.fetch_max(now, Ordering::AcqRel);
            }
        };
        scope.spawn(reader);
        scope.spawn(reader);
        for now in 0..MANY {
            routes.insert(prefix(SHORT, 8), now).unwrap();
        }
        is_done.store(true, Ordering::Relaxed);
    });
}

const SHORT: u32 = 0x0A00_0000;

#[test]
fn r4_each_address_has_an_old_or_a_new_route_when_all_are_replaced() {
    let _turn = turn();
    let table = |value: u32| -> RouteTable<u32, u32> {
        (0..64_u32).map(|at| (prefix(at << 26 | 7 << 12, 22), value)).collect()
    };
    let routes: Routes<u32> = ConcurrentRoutes::from(table(0));
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut pinned, mut last) = (routes.pin(), [0; 64]);
            while !is_done.load(Ordering::Relaxed) {
                for (at, last) in (0..).zip(&mut last) {
                    let &now = pinned.lookup(&(at << 26 | 7 << 12)).unwrap().1;
                    assert!(now >= *last);
                    *last = now;
                }
                pinned.repin();
            }
        });
        for now in 1..=MANY / 400 {
            while routes.replace(table(now)).is_err() {
                thread::yield_now();
            }
            assert!(routes.pin().iter().all(|(_, &value)| value == now));
        }
        is_done.store(true, Ordering::Relaxed);
    });
    routes.validate().unwrap();
}

#[test]
fn r5_references_outlive_their_routes() {
    let _turn = turn();
    let value = Arc::new(());
    let routes: Routes<Arc<()>> = ConcurrentRoutes::new();
    let lens = [3, 9, 18, 20, 24, 30];
    lens.iter().for_each(|&len| _ = routes.insert(prefix(SHORT, len), value.clone()).unwrap());
    let pinned = routes.pin();
    let found: Vec<_> = pinned.iter().map(|(_, value)| value).collect();
    let single = pinned.lookup(&SHORT).unwrap().1;
    let guard = pin();
    let (prefix_of_18, under_guard) = (prefix(SHORT, 18), |at| routes.pinned(&guard).get(at));
    let shared = under_guard(&prefix_of_18).unwrap();
    routes.clear().unwrap();
    assert!(found.into_iter().chain([single, shared]).all(|found| Arc::ptr_eq(found, &value)));
    drop((pinned, guard));
    eventually("values are dropped", || {
        drop(routes.insert(prefix(SHORT, 8), Arc::new(())));
        Arc::strong_count(&value) == 1
    });
}

/// The limit in the tests of R6.
const LIMIT: usize = 1 << 16;

#[test]
fn r6_a_stalled_reader_makes_nothing_grow() {
    let _turn = turn();
    let routes: Routes<String> = ConcurrentRoutes::new().with_garbage_limit(LIMIT, 1);
    let (sleep, wake) = (Barrier::new(2), Barrier::new(2));
    routes.insert(prefix(SHORT, 24), "first".into()).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let pinned = routes.pin();
            let first = pinned.lookup(&SHORT).unwrap().1;
            sleep.wait();
            wake.wait();
            assert_eq!(first, "first");
        });
        sleep.wait();
        let insert = |host: u32| routes.insert(Prefix::host(SHORT + host % 9), host.to_string());
        let (last, error) = (0..).find_map(|host| Some((host, insert(host).err()?))).unwrap();
        let Refused::Garbage { retired, limit } = error.reason else { panic!("{error}") };
        assert_eq!(error.refused, (Prefix::host(SHORT + last % 9), last.to_string()));
        assert!(retired > limit && limit == LIMIT && retired < 2 * LIMIT);
        // So also the other ways, and nothing has changed.
        let before: Vec<_> = routes.pin().iter().map(|(at, value)| (at, value.clone())).collect();
        let refused = routes.remove(&Prefix::host(SHORT)).unwrap_err().refused;
        assert_eq!(refused, Prefix::host(SHORT));
        let burst: Vec<_> = (0..3).map(|host| (Prefix::host(host), Some("x".into()))).collect();
        assert_eq!(routes.apply(burst.clone()).unwrap_err().refused, burst);
        assert!(routes.retain(|_, _| false).is_err() && routes.clear().is_err());
        let table = RouteTable::from([(Prefix::host(1), "a".into())]);
        assert_eq!(routes.replace(table.clone()).unwrap_err().refused, table);
        assert!(routes.pin().iter().map(|(at, value)| (at, value.clone())).eq(before));
        wake.wait();
    });
    eventually("garbage is freed", || routes.insert(Prefix::host(1), "b".into()).is_ok());
    routes.validate().unwrap();
}

#[test]
fn r6_many_routes_are_withdrawn_step_by_step() {
    let _turn = turn();
    let many = (0..MANY).map(|host| (Prefix::host(host * 3), host));
    let routes: Routes<u32> = many.collect::<Routes<u32>>().with_garbage_limit(LIMIT, 0);
    // Beside a reader that delays each call.
    let mut pinned = routes.pin();
    let mut calls = 0;
    while routes.retain(|_, value| value % 2 == 0).is_err() {
        calls += 1;
        pinned.repin();
    }
    assert!(cfg!(miri) || calls > 1);
    assert_eq!(routes.len(), MANY.div_ceil(2) as usize);
    routes.validate().unwrap();
}

#[test]
fn r7_writers_take_turns() {
    let _turn = turn();
    let routes: Routes<u32> = ConcurrentRoutes::new();
    let write = |mine: u32| {
        for host in 0..MANY / 8 {
            let at = Prefix::host(host << 8 | mine);
            assert!(routes.insert(at, host).unwrap());
            if host % 3 == 0 {
                assert!(routes.remove(&at).unwrap());
            }
        }
    };
    thread::scope(|scope| {
        let write = &write;
        (0..3).for_each(|mine| drop(scope.spawn(move || write(mine))));
        scope.spawn(|| (0..MANY).for_each(|_| assert!(routes.len() <= 3 * MANY as usize)));
    });
    let left = (0..MANY / 8).filter(|host| host % 3 != 0).count();
    assert_eq!(routes.len(), 3 * left);
    routes.validate().unwrap();
}

#[test]
fn r7_a_thread_that_ends_with_a_pin_lets_go_of_it() {
    thread_local! {
        static KEPT: RefCell<Option<Pinned<'static, Routes<Arc<()>>>>> =
            const { RefCell::new(None) };
    }
    static ROUTES: Mutex<Option<&'static Routes<Arc<()>>>> = Mutex::new(None);
    let _turn = turn();
    let routes: &Routes<Arc<()>> = Box::leak(Box::default());
    let value = Arc::new(());
    routes.insert(prefix(0, 20), value.clone()).unwrap();
    *ROUTES.lock().unwrap() = Some(routes);
    thread::spawn(|| {
        let routes = ROUTES.lock().unwrap().unwrap();
        KEPT.set(Some(routes.pin()));
        routes.remove(&prefix(0, 20)).unwrap();
    })
    .join()
    .unwrap();
    eventually("the value is dropped", || {
        drop(routes.insert(prefix(1, 32), Arc::new(())));
        Arc::strong_count(&value) == 1
    });
}

#[test]
fn begins_with_a_table() {
    let _turn = turn();
    let table: RouteTable<u32, u32> =
        (0..MANY / 4).map(|at| (prefix(at << 12, 20 + at % 9), at)).collect();
    let routes = ConcurrentRoutes::from(table.clone());
    assert_eq!(routes.len(), table.len());
    assert!(routes.pin().iter().eq(&table));
    assert_eq!(format!("{routes:?}"), format!("{table:?}"));
    assert!(Routes::<u32>::default().is_empty());
}

#[test]
fn can_be_sent_and_shared() {
    fn is<T: Send + Sync>() {}
    is::<ConcurrentRoutes<u32, String>>();
}
