//! C: writes.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use flowtable::ConcurrentMap;
use flowtable::concurrent::{Compute, Computed};

use super::{BURST, Map, ROUNDS, churn_others, map};
use model::hashers::{Weak, mix};
use model::threads::{on_other_thread, run_concurrently, while_held};
use model::versioned::Versioned;

/// Writes of one thread to a shared key.
const WRITES: u64 = ROUNDS / 2;

/// Writes a version with one of three methods; returns the version that it replaces.
fn replace(map: &Map, key: u64, version: u64) -> Option<u64> {
    let pin = map.pin();
    let mut old = None;
    match version % 3 {
        0 => {
            old = pin
                .insert(key, Versioned::new(key, version))
                .unwrap()
                .map(|old| old.version_of(key));
        }
        1 => {
            let replace = |now: &Versioned| {
                old = Some(now.version_of(key));
                Versioned::new(key, version)
            };
            let new = pin.update(&key, replace).unwrap().expect("the key is present");
            assert_eq!(new.version_of(key), version);
        }
        _ => match pin.compute(&key, |_| Compute::Insert(Versioned::new(key, version))).unwrap() {
            Computed::Updated { old: before, new } => {
                assert_eq!(new.version_of(key), version);
                old = Some(before.version_of(key));
            }
            other => panic!("{other:?}"),
        },
    }
    old
}

#[test]
fn c1_all_threads_see_the_writes_of_a_key_in_one_order() {
    const KEY: u64 = 7;
    let map = map(Weak::Mixed);
    map.pin().insert(KEY, Versioned::new(KEY, 0)).unwrap();
    let (followed, seen) = (Mutex::new(vec![None; 1 + 2 * WRITES as usize]), Mutex::new(vec![]));
    let write = |writer| {
        let versions = 1 + writer * WRITES..1 + (writer + 1) * WRITES;
        let pairs: Vec<_> = versions.map(|new| (replace(&map, KEY, new), new)).collect();
        let mut followed = followed.lock().unwrap();
        for (old, new) in pairs {
            let before = followed[old.expect("the key is present") as usize].replace(new);
            assert_eq!(before, None, "{old:?} has been replaced twice");
        }
    };
    let read = |_| {
        let pin = map.pin();
        let mut versions: Vec<u64> =
            (0..BURST).map(|_| pin.get(&KEY).unwrap().version_of(KEY)).collect();
        versions.dedup();
        seen.lock().unwrap().push(versions);
    };
    run_concurrently(&[&|| write(0), &|| write(1), &|| churn_others(&map)], &[&read]);
    // All versions form a single chain, from one to the next.
    let followed = followed.into_inner().unwrap();
    let mut position = vec![None; followed.len()];
    let (mut at, mut count) = (0, 0);
    loop {
        assert_eq!(position[at as usize].replace(count), None, "a cycle");
        count += 1;
        let Some(next) = followed[at as usize] else { break };
        at = next;
    }
    assert_eq!(
        (count as usize, map.pin().get(&KEY).unwrap().version_of(KEY)),
        (followed.len(), at)
    );
    for versions in seen.into_inner().unwrap() {
        assert!(versions.is_sorted_by_key(|&version| position[version as usize]), "{versions:?}");
    }
}

#[test]
fn c1_an_inserted_value_is_removed_once() {
    const KEYS: u64 = 3;
    let map = map(Weak::Mixed);
    let removals = [const { AtomicU64::new(0) }; 2 * WRITES as usize];
    let record = |old: Option<&Versioned>, key| {
        let Some(old) = old else { return };
        let times = removals[old.version_of(key) as usize].fetch_add(1, Ordering::Relaxed);
        assert_eq!(times, 0, "{old:?} has been removed twice");
    };
    let write = |writer| {
        for version in writer * WRITES..(writer + 1) * WRITES {
            let (pin, key) = (map.pin(), mix(version) % KEYS);
            record(pin.insert(key, Versioned::new(key, version)).unwrap(), key);
            match version % 3 {
                0 => record(pin.remove(&(2 - key)), 2 - key),
                1 => record(pin.remove_entry(&key).map(|(_, value)| value), key),
                _ => match pin.compute(&key, |_| Compute::Remove).unwrap() {
                    Computed::Removed(old) => record(Some(old), key),
                    other => assert!(matches!(other, Computed::Kept(None)), "{other:?}"),
                },
            }
        }
    };
    run_concurrently(&[&|| write(0), &|| write(1), &|| churn_others(&map)], &[]);
    let pin = map.pin();
    (0..KEYS).for_each(|key| record(pin.get(&key), key));
    assert!(removals.iter().all(|times| times.load(Ordering::Relaxed) == 1), "one is lost");
}

#[test]
fn c2_no_write_is_lost_between_reading_and_writing() {
    const KEYS: u64 = 5;
    let map = map(Weak::Mixed);
    let (added, removed) = (AtomicU64::new(0), AtomicU64::new(0));
    let add_one = |key| {
        let pin = map.pin();
        if key % 2 == 0 {
            pin.get_or_insert_with(&key, || Versioned::new(key, 0)).unwrap();
            return pin.update(&key, Versioned::next).unwrap().is_some();
        }
        // A value of 20 is removed, and begins again at 1.
        let next = |now: Option<&Versioned>| match now {
            None => Compute::Insert(Versioned::new(key, 1)),
            Some(now) if now.version_of(key) >= 20 => Compute::Remove,
            Some(now) => Compute::Insert(now.next()),
        };
        match pin.compute(&key, next).unwrap() {
            Computed::Removed(old) => {
                removed.fetch_add(old.version_of(key), Ordering::Relaxed);
                false
            }
            Computed::Inserted(new) => new.version_of(key) == 1,
            Computed::Updated { old, new } => new.version_of(key) == old.version_of(key) + 1,
            Computed::Kept(_) => panic!("the closure never keeps a value"),
        }
    };
    let count = || {
        let ones = (0..ROUNDS / 2).filter(|&round| add_one(mix(round) % KEYS)).count();
        added.fetch_add(ones as u64, Ordering::Relaxed);
    };
    run_concurrently(&[&count, &count, &count, &|| churn_others(&map)], &[]);
    let pin = map.pin();
    let left: u64 = (0..KEYS).filter_map(|key| Some(pin.get(&key)?.version_of(key))).sum();
    assert_eq!(left + removed.into_inner(), added.into_inner());
}

type Content = BTreeMap<u64, u64>;

fn content(map: &Map) -> Content {
    let pin = map.pin();
    pin.iter().map(|(&key, value)| (key, value.version_of(key))).collect()
}

/// A panic without the hook, which would print it.
fn fail<R>() -> R {
    resume_unwind(Box::new("a closure panics"))
}

#[test]
#[cfg_attr(miri, ignore = "slow; others do as much")]
fn c3_a_write_that_panics_changes_nothing() {
    let map = map(Weak::Three);
    (0..30).for_each(|key| _ = map.pin().insert(key, Versioned::new(key, key)).unwrap());
    let (before, size) = (content(&map), map.allocation_size());
    for key in [7, 29, 30, 1000] {
        let pin = map.pin();
        let fails = |act: &dyn Fn()| {
            let done = catch_unwind(AssertUnwindSafe(act));
            let is_there = before.contains_key(&key);
            assert_eq!(content(&map), before, "{key}");
            assert_eq!((map.allocation_size(), map.len()), (size, 30), "{key}");
            (done.is_err(), is_there)
        };
        let (failed, is_there) = fails(&|| _ = pin.update(&key, |_| fail()).unwrap());
        assert_eq!(failed, is_there, "the closure runs if there is a value to update");
        let (failed, is_there) = fails(&|| _ = pin.get_or_insert_with(&key, fail).unwrap());
        assert_ne!(failed, is_there, "the closure runs if there is no value");
        assert!(fails(&|| _ = pin.compute(&key, |_| fail()).unwrap()).0);
    }
    // The closure runs again after another thread has written, and panics then.
    let mut runs = 0;
    let pin = map.pin();
    let done = catch_unwind(AssertUnwindSafe(|| {
        let update = |now: &Versioned| {
            runs += 1;
            assert_eq!(now.version_of(7), if runs == 1 { 7 } else { 100 });
            on_other_thread(|| _ = map.pin().insert(7, Versioned::new(7, 100)).unwrap());
            if runs == 2 { fail() } else { now.next() }
        };
        pin.update(&7, update).unwrap();
    }));
    assert_eq!((done.is_err(), pin.get(&7).unwrap().version_of(7)), (true, 100));
}

/// A write of a fixed key, or of the new one; if it is refused, returns the garbage and its limit.
type Write<'a> = &'a dyn Fn(u64) -> Option<(usize, usize)>;

/// Calls `write` with new keys until it is refused, and checks that the refused call has changed
/// nothing.
fn until_refused(map: &Map, limit: usize, new: &mut u64, what: &str, write: Write<'_>) {
    let pin = map.pin();
    for _ in 0..1000 {
        let before = content(map);
        *new += 1;
        if let Some((retired, with_limit)) = write(*new) {
            assert_eq!(content(map), before, "{what}");
            // Of the map, or of a shard.
            assert!([limit, limit / 8].contains(&with_limit), "{what}: {with_limit}");
            assert!(with_limit < retired && retired <= map.garbage(), "{what}: {retired}");
            assert_eq!(map.len(), before.len(), "{what}");
            return;
        }
        // Inserts and removes the key, so that garbage grows to the limit.
        let _ = pin.insert(*new, Versioned::new(*new, 1));
        _ = pin.remove(&*new);
    }
    panic!("{what} is not refused");
}

#[test]
#[cfg_attr(miri, ignore = "slow; others do as much")]
fn c3_a_refused_write_changes_nothing() {
    let limit = if cfg!(miri) { 2000 } else { 20_000 };
    let map: Map = ConcurrentMap::with_hasher(Weak::Mixed).with_garbage_limit(limit, 1);
    let fill = || (0..30).all(|key| map.pin().insert(key, Versioned::new(key, key)).is_ok());
    // A pin of another test may retain garbage, too.
    model::threads::eventually("insertions succeed", fill);
    while_held(
        || map.pin(),
        || {
            let pin = map.pin();
            let mut new = 100;
            let value = |key| Versioned::new(key, 1);
            let mut refused =
                |what: &str, write: Write<'_>| until_refused(&map, limit, &mut new, what, write);
            refused("insert", &|_| {
                let error = pin.insert(7, value(7)).err()?;
                assert_eq!(error.refused, (7, value(7)));
                super::garbage_of(error.reason)
            });
            refused("get_or_insert", &|new| {
                let error = pin.get_or_insert(new, value(new)).err()?;
                assert_eq!(error.refused, (new, value(new)));
                super::garbage_of(error.reason)
            });
            refused("get_or_insert_with", &|new| {
                super::garbage_of(pin.get_or_insert_with(&new, || value(new)).err()?)
            });
            refused("update", &|_| super::garbage_of(pin.update(&7, Versioned::next).err()?));
            refused("compute", &|_| {
                super::garbage_of(pin.compute(&7, |_| Compute::Insert(value(7))).err()?)
            });
        },
    );
}
