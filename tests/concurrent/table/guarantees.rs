//! The guarantees of `ConcurrentTable`, each with tests that have its number. Those of traversals
//! are in `traversals.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use flowtable::ConcurrentTable;
use flowtable::concurrent::Refused;

use super::model_crate::alloc::with_allocations;
use super::model_crate::hashers::{Weak, mix};
use super::model_crate::threads::{
    eventually, on_other_thread, run_concurrently, while_held, without_hanging,
};
use super::{BURST, ROUNDS, Table, Value, churn_others, table, validate};
use ::model::scaled;

const KEYS: usize = if cfg!(miri) { 8 } else { 64 };

type Numbers = [AtomicU64; KEYS];

/// Versions of each key whose write has begun, and whose write has returned. Keys are present at
/// odd versions, and at those divisible by four with another value; absent at the others.
struct Clocks {
    begun: Numbers,
    done: Numbers,
}

fn is_present(version: u64) -> bool {
    version % 4 != 2 && version > 0
}

impl Clocks {
    fn new() -> Self {
        let numbers = || [const { AtomicU64::new(0) }; KEYS];
        Self { begun: numbers(), done: numbers() }
    }

    /// Writes the keys that belong to `writer` alone.
    fn write<V: Value>(&self, table: &Table<V>, writer: u64) {
        let mut pin = table.pin();
        for round in 0..ROUNDS {
            let key = mix(round) % (KEYS as u64 / 2) * 2 + writer;
            let version = self.begun[key as usize].load(Ordering::Relaxed) + 1;
            self.begun[key as usize].store(version, Ordering::Release);
            if is_present(version) {
                pin.insert(key, V::new(key, version)).unwrap();
            } else {
                assert!(pin.remove(&key).is_some());
            }
            self.done[key as usize].store(version, Ordering::Release);
            if round % BURST == 0 {
                pin.repin();
            }
        }
    }

    /// Checks that the value is no older than the write that had returned `before`, and no newer
    /// than the last one that has begun.
    fn check<V: Value>(&self, key: u64, before: u64, found: Option<V>) {
        let begun = self.begun[key as usize].load(Ordering::Acquire);
        match found.map(|found| found.version_of(key)) {
            Some(found) => assert!(before <= found && found <= begun, "{before} {found} {begun}"),
            None => assert!(!is_present(before) || before < begun, "{before} is not found"),
        }
    }
}

fn a1<V: Value>() {
    let (mut table, clocks) = (table(Weak::Mixed), Clocks::new());
    let read = |round| {
        let pin = table.pin();
        for key in (0..BURST).map(|i| mix(round * BURST + i) % KEYS as u64) {
            let before = clocks.done[key as usize].load(Ordering::Acquire);
            clocks.check::<V>(key, before, pin.get(&key));
        }
    };
    run_concurrently(
        &[&|| clocks.write(&table, 0), &|| clocks.write(&table, 1), &|| churn_others(&table)],
        &[&read, &read],
    );
    validate(&mut table);
}

#[test]
fn a1_a_read_after_a_write_sees_it_or_a_later_one() {
    a1::<u64>();
    a1::<[u64; 4]>();
}

fn a2<V: Value>(hasher: Weak) {
    let mut table: Table<V> = table(hasher);
    let write = |writer: u64| {
        let mut pin = table.pin();
        for round in 0..ROUNDS / 2 {
            let key = mix(round ^ writer << 32) % 24;
            match mix(round) % 4 {
                0 => _ = pin.remove(&key),
                1 => _ = pin.update(&key, |old| V::new(key, old.version_of(key) + 1)).unwrap(),
                _ => _ = pin.insert(key, V::new(key, round)).unwrap(),
            }
            if round % BURST == 0 {
                pin.repin();
            }
        }
    };
    let read = |round| {
        let pin = table.pin();
        for key in (0..BURST).map(|i| mix(round * BURST + i) % 24) {
            pin.get(&key).map(|value| value.version_of(key));
            get_batch!(pin, [&key, &(key ^ 1)])[1].map(|value| value.version_of(key ^ 1));
        }
        pin.iter().for_each(|(key, value)| _ = value.version_of(key));
    };
    run_concurrently(&[&|| write(0), &|| write(1)], &[&read, &read]);
    validate(&mut table);
}

#[test]
fn a2_a_value_is_not_torn_and_belongs_to_its_key() {
    // With equal hashes, values are distinguished by the key only.
    for hasher in [Weak::Mixed, Weak::Constant] {
        a2::<u64>(hasher);
        a2::<[u64; 4]>(hasher);
    }
}

fn a3<V: Value>(hasher: Weak, many: u64) {
    let mut table: Table<V> = table(hasher);
    let own = |key: u64| key % 7 == 0;
    let value = |key: u64| V::new(key, 1);
    (0..many)
        .filter(|&key| own(key))
        .for_each(|key| _ = table.pin().insert(key, value(key)).unwrap());
    let write = || {
        let mut pin = table.pin();
        for key in (0..many).chain(0..many) {
            if own(key) {
                // The same value, of several words in another slot.
                assert_eq!(pin.insert(key, value(key)), Ok(Some(value(key))));
            } else if pin.insert(key, value(key)).unwrap().is_some() {
                assert_eq!(pin.remove(&key), Some(value(key)));
            }
            pin.repin();
        }
        pin.shrink_to_fit();
    };
    let read = |round: u64| {
        let pin = table.pin();
        for key in (0..BURST).map(|i| mix(round * BURST + i) % many).map(|key| key / 7 * 7) {
            assert_eq!(pin.get(&key), Some(value(key)), "{key}");
            assert_eq!(get_batch!(pin, [&key]), [Some(value(key))]);
        }
    };
    run_concurrently(&[&write], &[&read, &read]);
    validate(&mut table);
}

#[test]
fn a3_a_present_key_is_found_during_other_insertions_and_removals() {
    let many = scaled(60_000, 2_000, 21);
    for (hasher, many) in [
        (Weak::Constant, many.min(100)),
        (Weak::Mixed, many),
        (Weak::Low, if cfg!(miri) { 7 } else { many / 4 }),
    ] {
        a3::<[u64; 4]>(hasher, many);
        if !cfg!(miri) {
            a3::<u64>(hasher, many);
        }
    }
}

fn a4<V: Value>() {
    let table: Table<V> = table(Weak::Mixed);
    let write = || {
        let mut pin = table.pin();
        for version in 0..ROUNDS {
            for key in 0..4 {
                pin.insert(key, V::new(key, version)).unwrap();
            }
            pin.repin();
        }
    };
    // Readers of a key share the newest version that one of them has observed.
    let newest = [const { AtomicU64::new(0) }; 4];
    let read = |_| {
        let pin = table.pin();
        for key in 0..4 {
            let before = newest[key as usize].load(Ordering::Acquire);
            let found = pin.get(&key).map_or(0, |value| value.version_of(key));
            assert!(found >= before, "{found} after {before}");
            newest[key as usize].fetch_max(found, Ordering::AcqRel);
        }
    };
    run_concurrently(&[&write, &|| churn_others(&table)], &[&read, &read]);
}

#[test]
fn a4_no_reader_observes_an_older_value_after_a_newer_one() {
    a4::<u64>();
    a4::<[u64; 4]>();
}

#[test]
fn a5_each_lookup_of_a_burst_is_a_read() {
    let (table, clocks) = (table(Weak::Mixed), Clocks::new());
    let keys: [u64; KEYS] = core::array::from_fn(|key| key as u64);
    let read = |_| {
        let before = keys.map(|key| clocks.done[key as usize].load(Ordering::Acquire));
        let mut found = [None; KEYS];
        table.pin().get_batch(&keys, flowtable::write_to(&mut found));
        for (key, before) in keys.into_iter().zip(before) {
            clocks.check::<[u64; 4]>(key, before, found[key as usize]);
        }
    };
    run_concurrently(
        &[&|| clocks.write(&table, 0), &|| clocks.write(&table, 1), &|| churn_others(&table)],
        &[&read],
    );
}

#[test]
fn c1_all_threads_observe_the_writes_of_a_key_in_one_order() {
    // Two writers alternate: each waits for the other's value, so an order is given.
    let table: Table<[u64; 4]> = table(Weak::Mixed);
    let turns = ROUNDS / 20;
    table.pin().insert(1, Value::new(1, 0)).unwrap();
    let write = |writer: u64| {
        for turn in (0..turns).filter(|turn| turn % 2 == writer) {
            eventually("the other writer has written", || {
                table.pin().get(&1).unwrap().version_of(1) == turn
            });
            table.pin().insert(1, Value::new(1, turn + 1)).unwrap();
        }
    };
    let newest = AtomicU64::new(0);
    let read = |_| {
        let before = newest.load(Ordering::Acquire);
        let found = table.pin().get(&1).unwrap().version_of(1);
        assert!(found >= before, "{found} after {before}");
        newest.fetch_max(found, Ordering::AcqRel);
    };
    run_concurrently(&[&|| write(0), &|| write(1)], &[&read]);
    assert_eq!(table.pin().get(&1).unwrap().version_of(1), turns);
}

#[test]
fn c2_no_addition_is_lost_while_the_table_grows_and_shrinks() {
    let table: Table = table(Weak::Mixed);
    (0..10).for_each(|key| _ = table.pin().insert(key, 0).unwrap());
    let add = |step: u64| {
        let mut pin = table.pin();
        for round in 0..ROUNDS {
            let key = round % 10;
            match round % 3 {
                0 => assert!(pin.fetch_add(&key, step).is_some()),
                1 => assert!(pin.update(&key, |value| value + step).unwrap().is_some()),
                _ => {
                    let mut now = pin.get(&key).unwrap();
                    while let Err(present) = pin.compare_exchange(&key, now, now + step).unwrap() {
                        now = present;
                    }
                }
            }
            pin.repin();
        }
    };
    run_concurrently(&[&|| add(1), &|| add(1 << 32), &|| churn_others(&table)], &[]);
    let sum: u64 = (0..10).map(|key| table.pin().get(&key).unwrap()).sum();
    assert_eq!(sum, ROUNDS << 32 | ROUNDS);
    assert_eq!(table.pin().compare_exchange(&99, 0, 1), None);
}

#[test]
fn c2_updates_of_several_words_are_not_lost() {
    let table: Table<[u64; 3]> = table(Weak::Mixed);
    (0..4).for_each(|key| _ = table.pin().insert(key, [0; 3]).unwrap());
    let add = |word: usize| {
        let mut pin = table.pin();
        for round in 0..ROUNDS / 2 {
            let change = |mut value: [u64; 3]| {
                value[word] += 1;
                value[2] += 1;
                value
            };
            assert!(pin.update(&(round % 4), change).unwrap().is_some());
            pin.repin();
        }
    };
    run_concurrently(&[&|| add(0), &|| add(1)], &[]);
    for key in 0..4 {
        assert_eq!(table.pin().get(&key), Some([ROUNDS / 8, ROUNDS / 8, ROUNDS / 4]));
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow; others do as much")]
fn c3_a_write_that_is_refused_changes_nothing() {
    let mut table: Table<[u64; 4]> =
        ConcurrentTable::with_hasher(Weak::Mixed).with_garbage_limit(0, 0);
    let (mut inserted, mut refused) = (vec![], 0);
    while_held(
        || table.pin(),
        || {
            let pin = table.pin();
            for key in 0..20_000 {
                match pin.insert(key, Value::new(key, 1)) {
                    Ok(old) => {
                        assert_eq!(old, None);
                        inserted.push(key);
                    }
                    Err(Refused::Garbage { retired, limit: 0 }) if retired > 0 => refused += 1,
                    Err(other) => panic!("{other}"),
                }
            }
            // A removal is never refused.
            for key in inserted.iter().step_by(2) {
                assert!(pin.remove(key).is_some());
            }
        },
    );
    assert!(refused > 0);
    assert_eq!(table.len(), inserted.len() / 2);
    for key in inserted.iter().skip(1).step_by(2) {
        assert_eq!(table.pin().get(key), Some(Value::new(*key, 1)));
    }
    validate(&mut table);
}

#[test]
#[cfg_attr(miri, ignore = "slow; others do as much")]
fn c3_a_word_is_replaced_whatever_the_garbage() {
    let table: Table = ConcurrentTable::with_hasher(Weak::Mixed).with_garbage_limit(0, 0);
    while_held(
        || table.pin(),
        || {
            let pin = table.pin();
            let keys: Vec<u64> = (0..5000).filter(|&key| pin.insert(key, 0).is_ok()).collect();
            assert!(keys.len() < 5000 && pin.garbage_is_kept());
            for value in 1..10 {
                assert!(keys.iter().all(|&key| pin.insert(key, value) == Ok(Some(value - 1))));
            }
        },
    );
}

trait Kept {
    fn garbage_is_kept(&self) -> bool;
}

impl<V> Kept for flowtable::concurrent::Pinned<'_, ConcurrentTable<u64, V, Weak>> {
    fn garbage_is_kept(&self) -> bool {
        self.garbage() > 0
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow; others do as much")]
fn d1_memory_is_freed_when_pins_have_ended() {
    let table: Table<[u64; 4]> = table(Weak::Mixed);
    let read = |round: u64| {
        // A copy of a segment that was freed would be torn.
        let pin = table.pin();
        for key in (0..BURST).map(|i| 1 << 40 | mix(mix(round * BURST + i) % (ROUNDS / 6)) >> 24) {
            pin.get(&key).map(|value| value.version_of(key));
        }
    };
    run_concurrently(&[&|| churn_others(&table)], &[&read, &read]);
    assert!(table.is_empty());
    eventually("garbage is freed", || {
        table.pin().flush();
        table.pin().garbage() == 0
    });
    table.pin().shrink_to_fit();
    // Each shard has an empty segment of one group with its counts, and a directory.
    let empty: Table<[u64; 4]> = super::table(Weak::Mixed);
    let shards = (table.allocation_size() - empty.allocation_size()) / (128 + 64 + 64);
    assert!(shards < 64, "the memory of {shards} more shards");
}

/// The limit, and what one writer retires beyond it.
#[test]
#[cfg_attr(miri, ignore = "slow; others do as much")]
fn d2_a_stalled_reader_retains_at_most_the_limit() {
    let limit = 256 << 10;
    let table: Table<[u64; 4]> =
        ConcurrentTable::with_hasher(Weak::Mixed).with_garbage_limit(limit, 2);
    let churn = |from: u64| {
        let (mut refusals, mut pin) = (0, table.pin());
        for round in 0..ROUNDS {
            let key = mix(round) % 500 * 2 + from;
            match pin.insert(key, Value::new(key, round)) {
                Ok(_) if round % 5 == 0 => _ = pin.remove(&key),
                Ok(_) => {}
                Err(Refused::Garbage { .. }) => refusals += 1,
                Err(other) => panic!("{other}"),
            }
            let retired = table.garbage();
            assert!(retired <= limit + (64 << 10), "{retired} bytes are retired");
            pin.repin();
        }
        refusals
    };
    while_held(
        || table.pin(),
        || {
            run_concurrently(
                &[&|| assert_ne!(churn(0), 0, "never refused"), &|| assert_ne!(churn(1), 0)],
                &[],
            );
        },
    );
    eventually("insertions succeed again", || {
        (0..1000).all(|key| table.pin().insert(key, Value::new(key, 1)).is_ok())
    });
}

#[test]
fn d4_an_allocation_that_fails_is_an_error_and_changes_nothing() {
    let mut table: Table<[u64; 4]> = table(Weak::Mixed);
    let (mut key, mut errors) = (0, 0);
    while errors < if cfg!(miri) { 3 } else { 300 } {
        let (before, pin) = (table.allocation_size(), table.pin());
        match with_allocations(0, || pin.insert(key, Value::new(key, 1))) {
            Err(Refused::Memory(error)) => {
                assert!(error.bytes().is_some());
                errors += 1;
                assert_eq!((pin.get(&key), table.allocation_size()), (None, before));
                pin.insert(key, Value::new(key, 1)).unwrap();
            }
            Err(other) => panic!("{other}"),
            Ok(_) => {}
        }
        key += 1;
    }
    assert_eq!(table.len() as u64, key);
    assert!((0..key).all(|key| table.pin().get(&key) == Some(Value::new(key, 1))));
    // Nor does shrinking fail.
    let pin = table.pin();
    with_allocations(0, || {
        assert_eq!(pin.iter().count() as u64, key);
        (1..key).for_each(|key| assert!(pin.remove(&key).is_some()));
        pin.shrink_to_fit();
    });
    drop(pin);
    assert_eq!(table.len(), 1);
    validate(&mut table);
}

/// Runs `act` while another thread has the lock of a shard: it is in a hash of a key, for growth.
fn while_locked(act: impl FnOnce(&Table<u64, Hooked>) + Send + 'static) {
    without_hanging(|| {
        let (arrive, has_arrived) = channel();
        let (release, is_released) = channel::<()>();
        let table: Arc<Table<u64, Hooked>> = Arc::new(table(Weak::Constant));
        let shared = Arc::clone(&table);
        let writer = thread::spawn(move || {
            (0..20).for_each(|key| _ = shared.pin().insert(Hooked(key), key).unwrap());
            HOOK.set(Some(Box::new(move || {
                arrive.send(()).expect("the other side waits");
                // An error if `act` has panicked.
                let _ = is_released.recv();
            })));
            (20..100).for_each(|key| _ = shared.pin().insert(Hooked(key), key).unwrap());
        });
        has_arrived.recv().expect("a segment grows");
        act(&table);
        drop(release);
        writer.join().expect("the writer does not panic");
        assert_eq!(table.len(), 100);
    });
}

type Hook = Box<dyn FnOnce()>;

std::thread_local! {
    /// Runs when a key that is present is hashed again.
    static HOOK: core::cell::RefCell<Option<Hook>> = const { core::cell::RefCell::new(None) };
}

/// A key whose hash runs the hook of its thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
struct Hooked(u64);

#[allow(unsafe_code)]
// SAFETY: it is a word.
unsafe impl flowtable::concurrent::NoUninit for Hooked {}

impl core::hash::Hash for Hooked {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        state.write_u64(self.0);
        // The first keys are hashed again only when their segment is copied.
        if self.0 < 20 {
            HOOK.take().into_iter().for_each(|hook| hook());
        }
    }
}

#[test]
fn e1_a_read_does_not_wait_for_writers() {
    while_locked(|table| {
        let pin = table.pin();
        for key in 0..20 {
            assert_eq!(pin.get(&Hooked(key)), Some(key));
            assert_eq!(get_batch!(pin, [&Hooked(key), &Hooked(key + 500)]), [Some(key), None]);
        }
        let mut found = [None; 2];
        pin.get_batch(&[Hooked(0), Hooked(19)], flowtable::write_to(&mut found));
        assert_eq!((found, table.len() >= 20), ([Some(0), Some(19)], true));
    });
}

#[test]
fn e2_a_write_from_a_hash_panics_and_does_not_hang() {
    without_hanging(|| {
        let table: Arc<Table<u64, Hooked>> = Arc::new(table(Weak::Constant));
        (0..20).for_each(|key| _ = table.pin().insert(Hooked(key), key).unwrap());
        let (shared, mut panics) = (Arc::clone(&table), 0);
        for key in 20..60 {
            let again = Arc::clone(&shared);
            HOOK.set(Some(Box::new(move || _ = again.pin().insert(Hooked(30), 1))));
            let insert = || shared.pin().insert(Hooked(key), key);
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(insert));
            HOOK.set(None);
            if done.is_err() {
                panics += 1;
                // C3: nothing has changed, and the lock is released.
                assert_eq!(table.pin().get(&Hooked(key)), None);
                assert_eq!(table.pin().insert(Hooked(key), key), Ok(None));
            }
        }
        assert!(panics > 0 && table.len() == 60);
        validate(
            &mut Arc::into_inner(table).into_iter().chain(Arc::into_inner(shared)).next().unwrap(),
        );
    });
}

#[test]
#[cfg_attr(miri, ignore = "slow; others do as much")]
fn e3_a_reader_that_sleeps_delays_no_call() {
    without_hanging(|| {
        let table: Table<[u64; 4]> =
            ConcurrentTable::with_hasher(Weak::Mixed).with_garbage_limit(10_000, 3);
        while_held(
            || table.pin(),
            || {
                on_other_thread(|| {
                    let mut refused = 0;
                    // A write that is refused yields three times: long on a loaded machine.
                    for key in 0..ROUNDS / 33 {
                        let inserted = table.pin().insert(key, Value::new(key, 1));
                        refused += usize::from(inserted.is_err());
                        _ = table.pin().remove(&(key / 2));
                    }
                    assert!(refused > 0, "there was never too much garbage");
                    table.pin().clear();
                    table.pin().flush();
                    assert_eq!((table.len(), table.pin().iter().count()), (0, 0));
                });
            },
        );
    });
}

#[test]
#[cfg_attr(miri, ignore = "slow; others do as much")]
fn e4_an_insertion_copies_one_segment() {
    let table: Table<u64, [u64; 2]> = table(Weak::Mixed);
    let mut pin = table.pin();
    // 48 groups of 128 bytes become two of 32; a shard that is split has another directory.
    let segment = (2 * 32 - 48) * 128 + 64 + 64;
    let mut doubled = 0;
    for number in 0..200_000 {
        let before = table.allocation_size();
        pin.insert([mix(number), number], number).unwrap();
        let more = table.allocation_size().saturating_sub(before);
        assert!(more <= segment + 8 * 4096, "{more} bytes at {number}");
        doubled += u32::from(more > segment);
        pin.repin();
    }
    // Only the doubling of a directory takes more.
    assert!(doubled < 300, "{doubled} insertions took more than a segment");
}
