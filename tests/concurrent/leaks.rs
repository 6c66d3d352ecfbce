//! Pins of `ConcurrentMap` that do not end, or end late: they retain garbage, without further harm.
//!
//! crossbeam-epoch has one collector for all maps of a program, so a leaked pin affects all maps from
//! then on, and tests that wait for garbage to be reclaimed would hang. That is why these tests have
//! a process of their own.

use core::cell::RefCell;
use std::sync::LazyLock;
use std::thread;

use flowtable::ConcurrentMap;
use flowtable::concurrent::Pinned;
use model::hashers::Weak;
use model::ledger::{Ledger, Token};
use model::process;
use model::threads::{on_other_thread, without_hanging};
use model::versioned::Versioned;

type Map<V> = ConcurrentMap<u64, V, Weak>;

const MANY: u64 = if cfg!(miri) { 50 } else { 5000 };

fn map<V>(limit: usize) -> Map<V> {
    ConcurrentMap::with_hasher(Weak::Mixed).with_garbage_limit(limit, 3)
}

/// All that there is works, but for what is refused.
fn use_all(map: &Map<Versioned>) {
    let mut pin = map.pin();
    let mut refused = 0;
    for key in (0..MANY).chain(0..MANY) {
        refused += usize::from(pin.insert(key, Versioned::new(key, 1)).is_err());
        if key % 3 == 0 {
            pin.remove(&key);
        }
        assert!(pin.get(&key).is_none_or(|value| value.version_of(key) == 1));
        pin.repin();
    }
    pin.flush();
    let kept = map.allocation_size() + map.garbage();
    let allowed = map.garbage_limit().saturating_add(2 * MANY as usize * 80 + (1 << 20));
    assert!(kept < allowed, "{kept}, {refused} refused");
    assert_eq!(pin.iter().count(), map.len());
    pin.clear();
    assert_eq!((map.len(), pin.iter().count()), (0, 0));
}

#[test]
#[cfg_attr(miri, ignore = "Miri starts no processes")]
fn tests_in_their_own_process() {
    process::run_ignored("leaks::", 5);
}

#[test]
#[ignore = "run in a process of its own"]
fn a_pin_that_is_forgotten() {
    without_hanging(|| {
        for limit in [0, 10_000, usize::MAX] {
            let map = map(limit);
            core::mem::forget(map.pin());
            use_all(&map);
            on_other_thread(|| use_all(&map));
        }
    });
}

#[test]
#[ignore = "run in a process of its own"]
fn a_pin_that_is_forgotten_by_a_thread_that_ends() {
    without_hanging(|| {
        let map = map(10_000);
        for _ in 0..3 {
            on_other_thread(|| {
                map.pin().insert(1, Versioned::new(1, 1)).ok();
                core::mem::forget(map.pin());
            });
            use_all(&map);
        }
    });
}

/// What is in a map is dropped with it, though somebody has a pin for ever.
#[test]
#[ignore = "run in a process of its own"]
fn a_map_that_is_dropped_while_a_pin_of_it_is_forgotten() {
    static LEDGER: Ledger = Ledger::new();
    let map: Map<Token> = map(usize::MAX);
    core::mem::forget(map.pin());
    for key in 0..MANY / 10 {
        map.pin().insert(key, LEDGER.token()).unwrap();
        map.pin().insert(key / 2, LEDGER.token()).unwrap();
    }
    let (alive, len) = (LEDGER.alive(), map.len());
    drop(map);
    assert!(LEDGER.alive() <= alive - len, "{} are alive", LEDGER.alive());
}

static SHARED: LazyLock<Map<Versioned>> = LazyLock::new(|| map(usize::MAX));

thread_local! {
    static KEPT: RefCell<Option<Pinned<'static, u64, Versioned, Weak>>> = const { RefCell::new(None) };
}

#[test]
#[ignore = "run in a process of its own"]
fn a_pin_that_a_thread_keeps_to_its_end() {
    without_hanging(|| {
        let threads = (0..4).map(|thread| {
            thread::spawn(move || {
                // Half of them have a thread-local before crossbeam has its own, which goes first then.
                if thread % 2 == 0 {
                    KEPT.with_borrow(Option::is_none);
                }
                for round in 0..MANY {
                    let key = round * 8 + thread;
                    SHARED.pin().insert(key, Versioned::new(key, round)).unwrap();
                    KEPT.set(Some(SHARED.pin()));
                    KEPT.with_borrow(|pin| {
                        let found = pin.as_ref().and_then(|pin| pin.get(&key));
                        assert_eq!(found.map(|found| found.version_of(key)), Some(round));
                    });
                    SHARED.pin().remove(&key);
                }
            })
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().for_each(|thread| thread.join().expect("it ends well"));
    });
}

/// Does something at the end of its thread.
struct AtTheEnd(fn());

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        (self.0)();
    }
}

thread_local! {
    static LATE: RefCell<Option<AtTheEnd>> = const { RefCell::new(None) };
}

#[test]
#[ignore = "run in a process of its own"]
fn a_thread_local_may_write_when_its_thread_ends() {
    const KEY: u64 = 1 << 50;
    fn write() {
        let pin = SHARED.pin();
        let version = pin.get(&KEY).map_or(0, |value| value.version_of(KEY));
        pin.insert(KEY, Versioned::new(KEY, version + 1)).unwrap();
        pin.insert(KEY + 1, Versioned::new(KEY + 1, 0)).unwrap();
        pin.remove(&(KEY + 1));
        pin.flush();
    }
    without_hanging(|| {
        for before in [true, false] {
            let thread = thread::spawn(move || {
                // Thread-locals end in the reverse of the order in which they began.
                if before {
                    LATE.set(Some(AtTheEnd(write)));
                }
                write();
                LATE.set(Some(AtTheEnd(write)));
            });
            thread.join().expect("it ends well");
        }
        let pin = SHARED.pin();
        let version = pin.get(&KEY).map(|value| value.version_of(KEY));
        assert_eq!(version, Some(5), "two threads, two writes each, and one that was replaced");
    });
}
