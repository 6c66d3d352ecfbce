//! The guarantees R1 to R5 of `SnapshotRoutes`.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Barrier, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use flowtable::concurrent::WouldExceed;
use flowtable::concurrent::{PinnedSnapshot, Publication, SnapshotRoutes};
use flowtable::{Prefix, RouteTable};

use super::turn;

const MANY: u32 = if cfg!(miri) { 30 } else { 20_000 };

/// Where more threads than processors are in each other's way, fewer do.
const ENOUGH: Duration = Duration::from_secs(if cfg!(miri) { 1000 } else { 1 });

type Routes<V> = SnapshotRoutes<u32, V>;

fn prefix(address: u32, len: u32) -> Prefix<u32> {
    Prefix::new(address, len).unwrap()
}

/// Makes it visible, readers having left.
fn publish<V: Clone>(routes: &Routes<V>) {
    while routes.publish() == Publication::Pending {
        thread::yield_now();
    }
}

const SHORT: u32 = 0x0A00_0000;
const LONG: u32 = 0x0A01_0000;

/// Generation `now`: the short route has it, and the long one, which is there in each other one.
fn updates(now: u32) -> [(Prefix<u32>, Option<Box<u32>>); 2] {
    let long = (now % 2 == 1).then(|| Box::new(now));
    [(prefix(SHORT, 8), Some(Box::new(now))), (prefix(LONG, 16), long)]
}

/// Checks that all results are of one generation, and returns it.
fn generation(pinned: &PinnedSnapshot<'_, u32, Box<u32>>) -> u32 {
    let mut found = [None; 3];
    pinned.lookup_batch(&[SHORT, LONG, LONG + 1], &mut found);
    let [short, long, again] = found.map(|route| route.expect("the short one is always there"));
    let len = if **short.1 % 2 == 1 { 16 } else { 8 };
    assert_eq!((long.0.len(), long), (len, again));
    assert_eq!((short.1, pinned.len()), (long.1, 1 + len as usize / 16));
    assert_eq!(pinned.matches(&LONG).count(), pinned.len());
    **short.1
}

#[test]
fn r1_a_look_up_answers_from_before_an_update_or_from_behind_it() {
    let _turn = turn();
    let routes: Routes<Box<u32>> = SnapshotRoutes::new();
    assert_eq!(routes.apply(updates(0)), Ok(Publication::Visible));
    let (is_done, last) = (AtomicBool::new(false), AtomicU32::new(0));
    let reader = || {
        let mut last = 0;
        let mut pinned = routes.pin();
        while !is_done.load(Ordering::Relaxed) {
            let now = generation(&pinned);
            assert!(now >= last, "{now} comes after {last}");
            last = now;
            match now % 3 {
                0 => pinned.repin(),
                _ => {
                    drop(pinned);
                    pinned = routes.pin();
                }
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(reader);
        scope.spawn(reader);
        let (start, mut now) = (Instant::now(), 0);
        while now < MANY && start.elapsed() < ENOUGH {
            now += 1;
            let publication = routes.apply(updates(now)).expect("the limit is far away");
            if publication == Publication::Visible {
                assert_eq!(generation(&routes.pin()), now);
            }
        }
        is_done.store(true, Ordering::Relaxed);
        last.store(now, Ordering::Relaxed);
    });
    publish(&routes);
    assert_eq!(generation(&routes.pin()), last.into_inner());
}

#[test]
fn r2_a_pin_is_a_snapshot() {
    let _turn = turn();
    let routes: Routes<Box<u32>> = SnapshotRoutes::new();
    let mut pinned = routes.pin();
    assert_eq!(routes.apply(updates(1)), Ok(Publication::Visible));
    assert!(pinned.is_empty());
    let second = routes.pin();
    assert_eq!(generation(&second), 1);
    assert_eq!(routes.apply(updates(2)), Ok(Publication::Pending), "the first pin is in the way");
    assert_eq!((pinned.len(), generation(&second)), (0, 1));
    pinned.repin();
    assert_eq!(generation(&pinned), 1);
    drop(second);
    // A pin that is repinned goes on as well as a new one.
    while routes.publish() == Publication::Pending {
        pinned.repin();
    }
    assert_eq!(generation(&pinned), 1);
    pinned.repin();
    assert_eq!(generation(&pinned), 2);
}

#[test]
fn r3_what_is_visible_is_in_each_pin_that_comes_behind() {
    let _turn = turn();
    let routes: Routes<u32> = SnapshotRoutes::new();
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            for seen in receiver {
                assert!(*routes.pin().get(&prefix(0, 0)).unwrap() >= seen);
            }
        });
        for now in 0..MANY {
            if routes.insert(prefix(0, 0), now) == Ok(Publication::Visible) {
                sender.send(now).unwrap();
            }
        }
        drop(sender);
    });
}

#[test]
fn r3_what_is_pending_is_not_overtaken() {
    const LAST: u32 = if cfg!(miri) { 2 } else { 9 };
    let _turn = turn();
    let routes: Routes<u32> = SnapshotRoutes::new();
    let pinned = routes.pin();
    assert_eq!(routes.insert(prefix(0, 0), 0), Ok(Publication::Visible));
    for now in 1..=LAST {
        assert_eq!(routes.insert(prefix(0, 0), now), Ok(Publication::Pending));
        assert_eq!(routes.insert(prefix(now << 8, 24), now), Ok(Publication::Pending));
        assert_eq!(routes.remove(&prefix((now - 1) << 8, 24)), Ok(Publication::Pending));
    }
    assert_eq!((routes.pending(), routes.len(), pinned.len()), (3 * LAST as usize, 1, 0));
    drop(pinned);
    let last = routes.insert(prefix(1, 32), 100);
    assert_eq!((last, routes.pending()), (Ok(Publication::Visible), 0));
    let expected = [(prefix(0, 0), LAST), (prefix(1, 32), 100), (prefix(LAST << 8, 24), LAST)];
    assert!(routes.pin().iter().map(|(at, &value)| (at, value)).eq(expected));
}

/// Updates in the tests of R4, most of which are refused; and the longest log.
const TRIED: u32 = if cfg!(miri) { 20 } else { 1000 };
const LIMIT: usize = if cfg!(miri) { 1 << 9 } else { 1 << 12 };

#[test]
fn r4_a_stalled_reader_makes_nothing_grow() {
    let _turn = turn();
    let routes: Routes<String> = SnapshotRoutes::new().with_limit(LIMIT, 1);
    let empty = routes.allocation_size();
    let (sleep, wake) = (Barrier::new(2), Barrier::new(2));
    let mut accepted = 0;
    thread::scope(|scope| {
        scope.spawn(|| {
            let pinned = routes.pin();
            sleep.wait();
            wake.wait();
            assert!(pinned.is_empty());
        });
        sleep.wait();
        for host in 0..TRIED {
            match routes.insert(Prefix::host(host), host.to_string()) {
                Ok(_) => accepted += 1,
                Err(WouldExceed { refused, retired, limit, .. }) => {
                    assert_eq!(refused, (Prefix::host(host), host.to_string()));
                    assert!(retired <= limit && limit == LIMIT);
                }
            }
        }
        assert!(accepted < TRIED as usize / 2 && routes.pending() + 1 == accepted);
        // So also the other two ways, and nothing has changed.
        let refused = routes.remove(&Prefix::host(0)).unwrap_err().refused;
        assert_eq!(refused, Prefix::host(0));
        let burst: Vec<_> = (0..3).map(|host| (Prefix::host(host), Some("x".into()))).collect();
        assert_eq!(routes.apply(burst.clone()).unwrap_err().refused, burst);
        assert_eq!((routes.publish(), routes.pending() + 1), (Publication::Pending, accepted));
        // A log has room for twice what is in it at most.
        let table = routes.pin().allocation_size();
        assert!(routes.allocation_size() <= empty + 2 * table + 2 * LIMIT);
        wake.wait();
    });
    publish(&routes);
    let pinned = routes.pin();
    assert!(pinned.prefixes().eq((0..accepted as u32).map(Prefix::host)));
    assert!(pinned.values().cloned().eq((0..accepted).map(|host| host.to_string())));
}

#[test]
fn r4_a_batch_above_the_limit_waits_for_readers() {
    let _turn = turn();
    let routes: Routes<u32> = SnapshotRoutes::new().with_limit(LIMIT, 1);
    let many = TRIED as usize * 5;
    let batch = |value| (0..TRIED * 5).map(move |host| (Prefix::host(host), value));
    let mut pinned = routes.pin();
    assert_eq!(routes.apply(batch(Some(1))), Ok(Publication::Visible), "the spare copy is free");
    assert_eq!((pinned.len(), routes.len(), routes.pending()), (0, many, 0));
    let refused = routes.apply(batch(None)).unwrap_err();
    assert_eq!((refused.refused.len(), routes.len(), routes.pending()), (many, many, 0));
    assert!(routes.retain(|_, _| false).is_err() && routes.clear().is_err());
    // All routes of a peer are withdrawn when the reader has proceeded.
    while routes.apply(batch(None)).is_err() {
        pinned.repin();
    }
    assert_eq!((routes.len(), routes.pending()), (0, 0));
    assert_eq!(routes.apply([]), Ok(Publication::Visible));
}

#[test]
fn r4_all_routes_are_replaced_at_once() {
    let _turn = turn();
    let table = |value: u32| (0..9_u32).map(|host| (Prefix::host(host), value)).collect();
    let routes: Routes<u32> = SnapshotRoutes::from(RouteTable::clone(&table(0)));
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut pinned = routes.pin();
            let mut last = 0;
            while !is_done.load(Ordering::Relaxed) {
                let first = *pinned.values().next().unwrap();
                assert!(pinned.len() == 9 && pinned.values().all(|&value| value == first));
                assert!(first >= last);
                last = first;
                pinned.repin();
            }
        });
        let mut now = 0;
        while now < MANY / 20 {
            if routes.replace(table(now + 1)).is_ok() {
                now += 1;
                assert_eq!(routes.pin().get(&Prefix::host(3)), Some(&now));
            }
            // An update between two replacements: the other copy is a clone then.
            if now % 3 == 0 {
                let update = routes.insert(Prefix::host(8), now);
                assert!(update.is_ok());
            }
        }
        is_done.store(true, Ordering::Relaxed);
    });
    publish(&routes);
    assert!(routes.pin().values().all(|&value| value == MANY / 20));
}

#[test]
fn r5_a_thread_that_holds_a_pin_and_writes_does_not_hang() {
    let _turn = turn();
    let routes: Routes<u32> = SnapshotRoutes::new();
    let mut pinned = routes.pin();
    let last = if cfg!(miri) { 3 } else { 39 };
    for now in 0..=last {
        routes.insert(prefix(0, 0), now).unwrap();
        assert_eq!(pinned.get(&prefix(0, 0)), None);
    }
    pinned.repin();
    assert_eq!(pinned.get(&prefix(0, 0)), Some(&0));
    while routes.publish() == Publication::Pending {
        pinned.repin();
    }
    pinned.repin();
    assert_eq!(pinned.get(&prefix(0, 0)), Some(&last));
}

#[test]
fn r5_writers_take_turns() {
    let _turn = turn();
    let routes: Routes<u32> = SnapshotRoutes::new();
    let visible = AtomicU32::new(0);
    let write = |mine: u32| {
        for host in 0..MANY / 8 {
            let at = Prefix::host(host << 8 | mine);
            if routes.insert(at, host) == Ok(Publication::Visible) {
                visible.fetch_add(1, Ordering::Relaxed);
            }
            if host % 3 == 0 {
                routes.remove(&at).unwrap();
            }
        }
    };
    thread::scope(|scope| {
        let write = &write;
        (0..3).for_each(|mine| drop(scope.spawn(move || write(mine))));
        scope.spawn(|| (0..MANY).for_each(|_| assert!(routes.pin().len() <= 3 * MANY as usize)));
    });
    publish(&routes);
    let left = (0..MANY / 8).filter(|host| host % 3 != 0).count();
    assert_eq!(routes.len(), 3 * left);
    assert!(cfg!(miri) || visible.into_inner() > 0);
}

#[test]
fn r5_a_thread_that_ends_with_a_pin_lets_go_of_it() {
    thread_local! {
        static KEPT: RefCell<Option<PinnedSnapshot<'static, u32, u32>>> =
            const { RefCell::new(None) };
    }
    static ROUTES: Mutex<Option<&'static Routes<u32>>> = Mutex::new(None);
    let _turn = turn();
    let routes: &Routes<u32> = Box::leak(Box::default());
    *ROUTES.lock().unwrap() = Some(routes);
    thread::spawn(|| {
        let routes = ROUTES.lock().unwrap().unwrap();
        KEPT.set(Some(routes.pin()));
        assert_eq!(routes.insert(prefix(0, 0), 1), Ok(Publication::Visible));
        assert_eq!(routes.insert(prefix(0, 0), 2), Ok(Publication::Pending));
    })
    .join()
    .unwrap();
    publish(routes);
    assert_eq!(routes.pin().get(&prefix(0, 0)), Some(&2));
}

#[test]
fn r5_a_thread_that_panics_with_a_pin_lets_go_of_it() {
    let _turn = turn();
    let routes: Routes<u32> = SnapshotRoutes::new();
    thread::scope(|scope| {
        let panics = scope.spawn(|| {
            let _pinned = routes.pin();
            assert_eq!(routes.insert(prefix(0, 0), 1), Ok(Publication::Visible));
            assert_eq!(routes.insert(prefix(0, 0), 2), Ok(Publication::Pending));
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(panics.join().is_err());
    });
    publish(&routes);
    assert_eq!(routes.pin().get(&prefix(0, 0)), Some(&2));
}

#[test]
fn begins_with_a_table() {
    let _turn = turn();
    let table: RouteTable<u32, u32> =
        (0..MANY).map(|at| (prefix(at << 12, 20 + at % 9), at)).collect();
    let routes = SnapshotRoutes::from(table.clone());
    assert_eq!((&*routes.pin(), routes.len()), (&table, table.len()));
    assert_eq!(format!("{routes:?}"), format!("{table:?}"));
    let again: Routes<u32> = table.clone().into_iter().collect();
    assert_eq!(*again.pin(), *routes.pin());
    // Both copies are the same.
    assert_eq!(routes.insert(prefix(0, 0), 7), Ok(Publication::Visible));
    assert_eq!(routes.remove(&prefix(0, 0)), Ok(Publication::Visible));
    assert_eq!(*routes.pin(), table);
    assert!(Routes::<u32>::default().is_empty());
}

#[test]
fn can_be_sent_and_shared() {
    fn is<T: Send + Sync>() {}
    is::<SnapshotRoutes<u32, String>>();
}

/// A call waits for short pins if it may, and holds none of its own meanwhile.
#[test]
#[cfg_attr(miri, ignore = "slow")]
fn r4_a_patient_clear_is_not_refused() {
    let _turn = turn();
    let routes: Routes<u32> = SnapshotRoutes::new().with_limit(1 << 20, 10_000_000);
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                let _pinned = routes.pin();
                thread::yield_now();
            }
        });
        let refused = (0..1000).find(|round| {
            let inserted = routes.insert(prefix(SHORT, 8), *round);
            inserted.is_err() || routes.clear().is_err()
        });
        is_done.store(true, Ordering::Relaxed);
        assert_eq!(refused, None);
    });
}
