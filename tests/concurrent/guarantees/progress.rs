//! E: progress.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use std::thread;

use flowtable::ConcurrentMap;
use flowtable::concurrent::Compute;

use super::{Map, ROUNDS, map};
use model::counted::Callback;
use model::hashers::Weak;
use model::hooks::{Hooked, with_hook};
use model::threads::{eventually, on_other_thread, while_held, without_hanging};
use model::versioned::Versioned;

/// A map with `count` keys, each with its number as the value.
fn hooked(hasher: Weak, count: u64) -> Arc<Map<Hooked, u64>> {
    let map = map(hasher);
    (0..count).for_each(|key| _ = map.pin().insert(Hooked(key), key).unwrap());
    Arc::new(map)
}

/// A capacity for which a map has all shards.
const ALL_SHARDS: usize = 20_000;

/// Runs `act` while another thread is inside an insertion and has the lock of its shard.
fn during_insertion(map: &Arc<Map<Hooked, u64>>, key: u64, before: u32, act: impl FnOnce()) {
    let (arrive, has_arrived) = channel();
    let (release, is_released) = channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            let wait = move || {
                arrive.send(()).expect("the other side waits");
                // An error if `act` has panicked.
                let _ = is_released.recv();
            };
            with_hook(Callback::Eq, before, wait, || {
                _ = map.pin().insert(Hooked(key), key).unwrap();
            });
        });
        // An error if the insertion ends after fewer comparisons.
        if has_arrived.recv().is_ok() {
            act();
        }
        drop(release);
    });
}

#[test]
fn e1_a_read_does_not_wait_for_writers() {
    without_hanging(|| {
        let mut times = 0;
        // All keys are in the locked shard.
        let map = hooked(Weak::Constant, 20);
        for before in 0..if cfg!(miri) { 1 } else { 20 } {
            during_insertion(&map, 19, before, || {
                times += 1;
                let pin = map.pin();
                for key in (0..20).step_by(if cfg!(miri) { 7 } else { 1 }) {
                    assert_eq!(pin.get(&Hooked(key)), Some(&key));
                    let found = get_batch!(pin, [&Hooked(key), &Hooked(key + 100)]);
                    assert_eq!(found, [Some(&key), None]);
                }
                let mut found = [None; 2];
                pin.get_batch(&[Hooked(0), Hooked(19)], flowtable::write_to(&mut found));
                assert_eq!((found, map.len()), ([Some(&0), Some(&19)], 20));
            });
        }
        assert_ne!(times, 0, "an insertion compares keys");
    });
}

#[test]
#[cfg_attr(miri, ignore = "slow; others do as much")]
fn e2_a_writer_locks_one_shard_only() {
    let done = without_hanging(|| {
        let map = hooked(Weak::Mixed, 1000);
        map.pin().reserve(ALL_SHARDS).unwrap();
        let (send, receive) = channel();
        let mut threads = vec![];
        during_insertion(&map, 19, 0, || {
            // At most four of the sixteen threads wait for the locked shard.
            for key in 100..116 {
                let (map, send) = (map.clone(), send.clone());
                threads.push(thread::spawn(move || {
                    _ = map.pin().insert(Hooked(key), 0).unwrap();
                    // An error if enough threads have sent.
                    let _ = send.send(());
                }));
            }
            (0..12).for_each(|_| receive.recv().expect("twelve insertions return"));
        });
        threads.into_iter().map(|thread| thread.join().unwrap()).count()
    });
    assert_eq!(done, 16);
}

/// Writes with every method, in this thread and in another one, to be called from a closure.
fn write_all(map: &Map<u64, u64>) {
    let write = || {
        let pin = map.pin();
        for key in 0..20 {
            pin.insert(key, 1).unwrap();
            pin.update(&key, |value| value + 1).unwrap();
            pin.compute(&key, |_| Compute::Remove).unwrap();
            pin.get_or_insert_with(&key, || 3).unwrap();
        }
        pin.retain(|key, _| key % 2 == 0);
        assert!(pin.remove(&2).is_some());
        pin.flush();
    };
    write();
    on_other_thread(write);
}

#[test]
#[cfg_attr(miri, ignore = "slow; others do as much")]
fn e2_closures_run_without_a_lock() {
    without_hanging(|| {
        for hasher in [Weak::Mixed, Weak::Constant] {
            let map: Map<u64, u64> = map(hasher);
            let pin = map.pin();
            pin.insert(4, 1).unwrap();
            let mut runs = 0;
            // The first run changes the value, so the closure runs a second time.
            let mut first = |map| {
                runs += 1;
                if runs % 2 == 1 {
                    write_all(map);
                }
            };
            let updated = pin.update(&4, |value| {
                first(&map);
                value + 10
            });
            assert_eq!(updated.unwrap(), Some(&13));
            let computed = pin.compute(&4, |value| {
                first(&map);
                Compute::Insert(value.map_or(0, |value| value + 10))
            });
            computed.unwrap();
            assert_eq!((pin.get(&4), runs), (Some(&13), 4));
            let made = pin.get_or_insert_with(&5, || {
                write_all(&map);
                7
            });
            assert_eq!(made, Ok(&7));
            pin.retain(|_, _| {
                write_all(&map);
                true
            });
            for _ in &pin {
                write_all(&map);
            }
        }
    });
}

#[test]
#[cfg_attr(miri, ignore = "slow; the next one does as much")]
fn e2_a_write_from_hash_or_eq_panics_and_does_not_hang() {
    type Write = (&'static str, fn(&Map<Hooked, u64>, u64));
    let writes: [Write; 6] = [
        ("insert", |map, key| _ = map.pin().insert(Hooked(key), 1).unwrap()),
        ("remove", |map, key| _ = map.pin().remove(&Hooked(key))),
        ("update", |map, key| _ = map.pin().update(&Hooked(key), |_| 1).unwrap()),
        ("compute", |map, key| {
            _ = map.pin().compute(&Hooked(key), |_| Compute::Insert(1)).unwrap();
        }),
        ("get_or_insert", |map, key| _ = map.pin().get_or_insert(Hooked(key), 1).unwrap()),
        ("clear", |map, _| map.pin().clear()),
    ];
    // The same key, which is present, and an absent key in another shard.
    let inner = |key| writes.iter().map(move |&(name, write)| (name, write, key));
    let inner: Vec<_> = inner(3).chain(inner(10)).collect();
    let callbacks = [(Callback::Hash, 0), (Callback::Eq, 0), (Callback::Eq, 1), (Callback::Eq, 3)];
    without_hanging(move || {
        for (outer, write) in writes {
            for (&(name, within, key), (callback, before)) in inner
                .iter()
                .flat_map(|inner| callbacks.iter().map(move |callback| (inner, *callback)))
            {
                let what = format!("{name} of {key} from {callback:?} no. {before} of {outer}");
                let map = hooked(Weak::Three, 9);
                let again = map.clone();
                let act = || catch_unwind(AssertUnwindSafe(|| write(&map, 3)));
                let (done, called) = with_hook(callback, before, move || within(&again, key), act);
                assert!(called || done.is_ok(), "{what}");
                // `insert` compares keys under the lock.
                let has_lock = outer == "insert" && callback == Callback::Eq;
                let writes = ["insert", "compute", "clear"].contains(&name);
                assert!(!called || !has_lock || !writes || done.is_err(), "{what}");
                // All locks are released, and the map is valid.
                (0..20).for_each(|key| _ = map.pin().insert(Hooked(key), 5).unwrap());
                assert_eq!(map.len(), 20, "{what}");
                let mut map = Arc::into_inner(map).expect("the hook is dropped");
                map.validate().unwrap_or_else(|broken| panic!("{what}: {broken}"));
            }
        }
    });
}

#[test]
fn e2_two_threads_that_write_from_eq_do_not_hang() {
    without_hanging(|| {
        let (map, meet) = (hooked(Weak::Three, 9), Arc::new(Barrier::new(2)));
        map.pin().reserve(ALL_SHARDS).unwrap();
        // Each writes to the shard that the other has locked.
        let threads = [(3, 4), (4, 3)].map(|(mine, other)| {
            let (map, again, meet) = (map.clone(), map.clone(), meet.clone());
            let write = move || {
                meet.wait();
                again.pin().insert(Hooked(other), 1).unwrap();
            };
            thread::spawn(move || {
                let insert = || _ = map.pin().insert(Hooked(mine), 1).unwrap();
                with_hook(Callback::Eq, 0, write, || {
                    catch_unwind(AssertUnwindSafe(insert)).is_err()
                })
            })
        });
        let ends = threads.map(|thread| thread.join().expect("the panic is caught"));
        assert_eq!(ends, [(true, true); 2]);
        assert_eq!(map.pin().iter().filter(|(key, value)| key.0 == **value).count(), 9);
    });
}

#[test]
#[cfg_attr(miri, ignore = "slow; others do as much")]
fn e3_no_call_waits_for_readers() {
    without_hanging(|| {
        for limit in [0, 10_000, usize::MAX] {
            let map: Map = ConcurrentMap::with_hasher(Weak::Mixed).with_garbage_limit(limit, 5);
            while_held(
                || map.pin(),
                || {
                    let mut pin = map.pin();
                    // These calls also reclaim what other tests have retired.
                    for key in 0..ROUNDS / 33 {
                        let _ = pin.insert(key, Versioned::new(key, 0));
                        let _ = pin.insert(key, Versioned::new(key, 1));
                        let _ = pin.update(&key, Versioned::next);
                        let _ = pin.compute(&(key / 2), |_| Compute::Remove);
                        let _ = pin.get_or_insert(key / 3, Versioned::new(key / 3, 0));
                        let _ = pin.remove(&(key / 4));
                        pin.repin();
                        pin.flush();
                    }
                    pin.retain(|key, value| value.version_of(*key) > 1);
                    pin.clear();
                    assert_eq!((pin.iter().count(), map.len()), (0, 0));
                },
            );
            eventually("an insertion succeeds", || {
                map.pin().insert(1, Versioned::new(1, 1)).is_ok()
            });
        }
    });
}

#[test]
#[cfg_attr(miri, ignore = "slow; others do as much")]
fn e4_an_insertion_allocates_at_most_one_segment() {
    let map: Map<u64, u64> = map(Weak::Mixed);
    let (many, mut growths, mut chunks) = (if cfg!(miri) { 100 } else { 50_000 }, 0, 0);
    let mut before = map.allocation_size();
    for key in 0..many {
        map.pin().insert(key, key).unwrap();
        let size = map.allocation_size();
        // The second half of a segment that is split, of 32 groups, and a directory; or a chunk of
        // entries, for all shards, and a table of chunks.
        let (segment, chunk) = (32 * (64 + 24) + 64 + 512, 1024 * 16 + 2048);
        assert!(size < before + segment + chunk, "{size} bytes after {before} at {key}");
        chunks += usize::from(size > before + segment);
        growths += usize::from(size > before + 256);
        before = size;
    }
    assert!(chunks <= many as usize / 1024 + 2, "{chunks} insertions allocated a chunk");
    assert!(
        growths >= if cfg!(miri) { 1 } else { 128 },
        "{growths} insertions allocated a segment"
    );
}
