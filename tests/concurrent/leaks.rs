//! Pins of `ConcurrentMap` that never end, or end late: they retain garbage only.
//!
//! All maps of a program have one collector, so a leaked pin affects all maps from then on, and
//! tests that wait for garbage to be reclaimed would hang. That is why these tests have a process
//! of their own.

use core::cell::RefCell;
use std::sync::LazyLock;
use std::thread;

use flowtable::ConcurrentMap;
use flowtable::concurrent::Pinned;
use model::drop_record::{DropRecord, Token};
use model::hashers::Weak;
use model::process;
use model::threads::{on_other_thread, without_hanging};
use model::versioned::Versioned;

type Map<V> = ConcurrentMap<u64, V, Weak>;
type Pin = Pinned<'static, ConcurrentMap<u64, Versioned, Weak>>;

const MANY: u64 = if cfg!(miri) { 50 } else { 5000 };

fn map<V>(limit: usize) -> Map<V> {
    ConcurrentMap::with_hasher(Weak::Mixed).with_garbage_limit(limit, 3)
}

/// Checks that all operations of a map with a limit work, except for refused writes.
fn use_all(map: &Map<Versioned>, limit: usize) {
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
    let retained = map.allocation_size() + map.pin().garbage();
    let allowed = limit.saturating_add(2 * MANY as usize * 80 + (1 << 20));
    assert!(retained < allowed, "{retained}, {refused} refused");
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
fn a_forgotten_pin_retains_garbage_only() {
    without_hanging(|| {
        for limit in [0, 10_000, usize::MAX] {
            let map = map(limit);
            core::mem::forget(map.pin());
            use_all(&map, limit);
            on_other_thread(|| use_all(&map, limit));
        }
    });
}

#[test]
#[ignore = "run in a process of its own"]
fn a_forgotten_pin_of_an_ended_thread_retains_garbage_only() {
    without_hanging(|| {
        let map = map(10_000);
        for _ in 0..3 {
            on_other_thread(|| {
                map.pin().insert(1, Versioned::new(1, 1)).ok();
                core::mem::forget(map.pin());
            });
            use_all(&map, 10_000);
        }
    });
}

/// The entries of a map are dropped with it, even if a pin never ends.
#[test]
#[ignore = "run in a process of its own"]
fn a_map_with_a_forgotten_pin_drops_its_entries() {
    static DROPS: DropRecord = DropRecord::new();
    let map: Map<Token> = map(usize::MAX);
    core::mem::forget(map.pin());
    for key in 0..MANY / 10 {
        map.pin().insert(key, DROPS.token()).unwrap();
        map.pin().insert(key / 2, DROPS.token()).unwrap();
    }
    let (alive, len) = (DROPS.alive(), map.len());
    drop(map);
    assert!(DROPS.alive() <= alive - len, "{} are alive", DROPS.alive());
}

static SHARED: LazyLock<Map<Versioned>> = LazyLock::new(|| map(usize::MAX));

thread_local! {
    static KEPT: RefCell<Option<Pin>> = const { RefCell::new(None) };
}

#[test]
#[ignore = "run in a process of its own"]
fn a_pin_in_a_thread_local_ends_with_its_thread() {
    without_hanging(|| {
        let threads = (0..4).map(|thread| {
            thread::spawn(move || {
                // Half of the threads initialise theirs before that of the collector, which is
                // destroyed first then.
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
        threads.into_iter().for_each(|thread| thread.join().expect("the thread does not panic"));
    });
}

/// Runs a function at the end of its thread.
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
fn a_thread_local_may_write_while_it_is_destroyed() {
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
                // Thread-locals are destroyed in the reverse order of their initialisation.
                if before {
                    LATE.set(Some(AtTheEnd(write)));
                }
                write();
                LATE.set(Some(AtTheEnd(write)));
            });
            thread.join().expect("the thread does not panic");
        }
        let pin = SHARED.pin();
        let version = pin.get(&KEY).map(|value| value.version_of(KEY));
        assert_eq!(version, Some(5), "two threads, two writes each, and one by a replaced value");
    });
}
