//! Misuse of `ConcurrentMap`: panics, inconsistent keys, reentrant drops; and types of unusual
//! layouts.

use core::borrow::Borrow;
use core::fmt::Debug;
use core::hash::{Hash, Hasher};
use flowtable::Prehashed;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak as WeakArc};

use flowtable::ConcurrentMap;
use flowtable::concurrent::Compute;
use model::counted::Callback;
use model::drop_record::{DropRecord, Token};
use model::hashers::{Weak, mix};
use model::hooks::{Hooked, with_hook};
use model::scaled;
use model::threads::{eventually, on_other_thread, run_concurrently, while_held, without_hanging};
use model::versioned::Versioned;

type Map<K = u64, V = u64> = ConcurrentMap<K, V, Weak>;

const MANY: u64 = scaled(3000, 2000, 40);

fn map<K, V>(hasher: Weak) -> Map<K, V> {
    ConcurrentMap::with_hasher(hasher).with_garbage_limit(usize::MAX, 0)
}

fn validate<K, V>(map: &mut Map<K, V>)
where
    K: Eq + Hash + Send + 'static,
    V: Send + 'static,
{
    map.validate().unwrap_or_else(|broken| panic!("{broken}"));
}

/// A panic without the hook, which would print it.
fn fail<R>() -> R {
    resume_unwind(Box::new("it panics"))
}

fn fails(act: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(act)).is_err()
}

/// The collector is one of this crate.
#[test]
fn a_pin_of_another_user_of_crossbeam_delays_nothing() {
    let _pin = crossbeam_epoch::pin();
    let map: Map = map(Weak::Mixed);
    for round in 0..MANY {
        map.pin().insert(round % 8, round).unwrap();
    }
    eventually("garbage is freed", || {
        map.pin().flush();
        map.garbage() == 0
    });
}

#[test]
#[cfg_attr(miri, ignore = "slow; other tests cover the code")]
fn a_map_stays_valid_if_closures_panic() {
    let mut map: Map = map(Weak::Mixed);
    (0..100).for_each(|key| _ = map.pin().insert(key, key).unwrap());
    // A panic half way through a retention: entries that were rejected before are removed.
    let mut visited = BTreeSet::new();
    let failed = fails(|| {
        map.pin().retain(|key, _| {
            if visited.len() == 50 {
                fail::<()>();
            }
            visited.insert(*key)
        });
    });
    assert!(failed && map.len() == 100);
    let mut removed = 0;
    assert!(fails(|| {
        map.pin().retain(|_, _| {
            removed += 1;
            if removed > 50 { fail() } else { false }
        });
    }));
    assert_eq!(map.len(), 50);
    validate(&mut map);
    // Concurrent panics in two threads.
    let fail_often = || {
        for round in 0..MANY {
            assert!(fails(|| _ = map.pin().compute(&(round % 100), |_| fail())));
            assert!(fails(|| _ = map.pin().get_or_insert_with(&(1000 + round), fail)));
        }
    };
    run_concurrently(&[&fail_often, &fail_often], &[]);
    assert_eq!(map.len(), 50);
    validate(&mut map);
}

/// After a panic of any callback, the content is that before or after the write.
#[test]
#[cfg_attr(miri, ignore = "slow; other tests cover the code")]
fn a_map_stays_valid_if_hash_or_eq_panics() {
    type Write = fn(&Map<Hooked, u64>, u64);
    let writes: [Write; 5] = [
        |map, key| _ = map.pin().insert(Hooked(key), 7).unwrap(),
        |map, key| _ = map.pin().remove(&Hooked(key)),
        |map, key| _ = map.pin().update(&Hooked(key), |_| 7).unwrap(),
        |map, key| _ = map.pin().compute(&Hooked(key), |_| Compute::Insert(7)).unwrap(),
        |map, key| _ = map.pin().get_or_insert(Hooked(key), 7).unwrap(),
    ];
    let hashers = if cfg!(miri) { [Weak::Three].as_slice() } else { &[Weak::Mixed, Weak::Three] };
    for ((at, write), &hasher) in
        writes.iter().enumerate().flat_map(|w| hashers.iter().map(move |h| (w, h)))
    {
        // New keys, which make segments grow, and present ones.
        for (key, callback) in
            [(3, Callback::Hash), (3, Callback::Eq), (1000, Callback::Hash), (1000, Callback::Eq)]
        {
            let (mut before, mut len) = (0, 20);
            loop {
                let mut map = map(hasher);
                (0..len).for_each(|key| _ = map.pin().insert(Hooked(key), key).unwrap());
                let (failed, called) =
                    with_hook(callback, before, fail, || fails(|| write(&map, key)));
                assert_eq!(failed, called);
                validate(&mut map);
                let pin = map.pin();
                for other in (0..len).filter(|&other| other != key) {
                    assert_eq!(pin.get(&Hooked(other)), Some(&other), "{at} {callback:?} {before}");
                }
                if failed && pin.len() as u64 == len {
                    assert!(pin.get(&Hooked(key)).is_none_or(|&value| value == key || value == 7));
                }
                drop(pin);
                // The next write succeeds.
                write(&map, key);
                validate(&mut map);
                before += 1;
                // Include sizes at which the map grows.
                len += 1;
                if !failed && before > 30 {
                    break;
                }
            }
        }
    }
}

/// A key with inconsistent `Hash` and `Eq`.
#[derive(Clone, Debug)]
struct Inconsistent(u64);

static NOISE: AtomicU64 = AtomicU64::new(1);

fn noise() -> u64 {
    mix(NOISE.fetch_add(1, Ordering::Relaxed))
}

impl Hash for Inconsistent {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let noise = if noise() % 8 == 0 { noise() % 4 } else { 0 };
        (self.0 + noise).hash(state);
    }
}

impl PartialEq for Inconsistent {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 && noise() % 16 > 0
    }
}

impl Eq for Inconsistent {}

/// The only guarantees are that every value is dropped once, and that all calls return.
#[test]
#[cfg_attr(miri, ignore = "slow; other tests cover the code")]
fn inconsistent_keys_cause_neither_leaks_nor_hangs() {
    static DROPS: DropRecord = DropRecord::new();
    without_hanging(|| {
        for hasher in [Weak::Mixed, Weak::Three] {
            let map: Map<Inconsistent, Token> = map(hasher);
            let write = || {
                let pin = map.pin();
                for round in 0..MANY {
                    let key = || Inconsistent(noise() % 200);
                    match round % 6 {
                        0 | 1 => _ = pin.insert(key(), DROPS.token()).unwrap(),
                        2 => _ = pin.remove(&key()),
                        3 => _ = pin.update(&key(), |_| DROPS.token()).unwrap(),
                        4 => _ = pin.get_or_insert(key(), DROPS.token()).unwrap(),
                        _ if round % 100 == 5 => pin.retain(|key, _| key.0 % 2 == 0),
                        _ => assert!(pin.get(&key()).is_none_or(Token::is_alive)),
                    }
                }
            };
            run_concurrently(&[&write, &write], &[]);
            drop(map);
        }
    });
    let other: Map = map(Weak::Mixed);
    eventually("all are dropped", || {
        other.pin().flush();
        DROPS.alive() == 0
    });
}

/// A key that no other key equals, but the number that it contains.
struct Unequal {
    number: Number,
    serial: u64,
}

#[derive(PartialEq, Eq, Hash)]
struct Number(u64);

impl PartialEq for Unequal {
    fn eq(&self, other: &Self) -> bool {
        self.serial == other.serial
    }
}

impl Eq for Unequal {}

impl Hash for Unequal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

impl Borrow<Number> for Unequal {
    fn borrow(&self) -> &Number {
        &self.number
    }
}

impl ToOwned for Number {
    type Owned = Unequal;

    fn to_owned(&self) -> Unequal {
        Unequal { number: Self(self.0), serial: NOISE.fetch_add(1, Ordering::Relaxed) }
    }
}

/// A borrowed key is compared as it is, not as the key that is made of it.
#[test]
fn owned_keys_that_differ_from_their_queries_cause_no_hangs() {
    without_hanging(|| {
        let map: Map<Unequal, u64> = map(Weak::Mixed);
        let pin = map.pin();
        for round in 0..50 {
            let key = &Number(round % 5);
            let new = pin.update_or_insert_with(key, |value| value + 1, || 0).unwrap();
            assert_eq!(*new, round / 5);
            assert_eq!(pin.get_or_insert_with(key, || 100).unwrap(), &(round / 5));
        }
        assert_eq!(map.len(), 5);
    });
}

/// A value that accesses its map when it is dropped.
struct Reentrant {
    map: WeakArc<Map<u64, Reentrant>>,
    key: u64,
    _token: Token,
}

impl Drop for Reentrant {
    fn drop(&mut self) {
        let Some(map) = self.map.upgrade() else { return };
        let pin = map.pin();
        assert!(pin.get(&self.key).is_none_or(|other| other.key == self.key));
        // Other values, whose drops access the map later.
        pin.remove(&(self.key + 1));
        pin.compute(&(self.key + 2), |_| Compute::Remove).unwrap();
        if self.key % 4 == 0 {
            pin.retain(|key, _| key % 64 > 0);
            pin.flush();
        }
        // `map` may be the last reference to the map.
    }
}

#[test]
fn values_may_access_their_map_when_they_are_dropped() {
    static DROPS: DropRecord = DropRecord::new();
    without_hanging(|| {
        for _ in 0..3 {
            let map: Arc<Map<u64, Reentrant>> = Arc::new(map(Weak::Mixed));
            let write = || {
                for round in 0..MANY {
                    let key = mix(round) % 500;
                    let home = Arc::downgrade(&map);
                    let value = Reentrant { map: home, key, _token: DROPS.token() };
                    _ = map.pin().insert(key, value).is_ok();
                    map.pin().remove(&(key / 2));
                }
            };
            run_concurrently(&[&write, &write], &[]);
            (0..10).for_each(|_| map.pin().flush());
            drop(map);
        }
    });
    let other: Map = map(Weak::Mixed);
    eventually("all are dropped", || {
        other.pin().flush();
        DROPS.alive() == 0
    });
}

#[test]
fn a_map_may_be_a_retired_value_of_another_map() {
    static DROPS: DropRecord = DropRecord::new();
    without_hanging(|| {
        let outer: Map<u64, Map<u64, Token>> = map(Weak::Mixed);
        let fill = |count| {
            let inner = map(Weak::Mixed);
            (0..count).for_each(|key| _ = inner.pin().insert(key % 7, DROPS.token()).unwrap());
            inner
        };
        for key in 0..MANY / 10 {
            outer.pin().insert(key % 10, fill(20)).unwrap();
        }
        let pin = outer.pin();
        let inner = pin.get(&3).unwrap();
        outer.pin().clear();
        on_other_thread(|| (0..10).for_each(|_| outer.pin().flush()));
        assert!(inner.pin().values().all(Token::is_alive));
        drop(pin);
        eventually("all are dropped", || {
            outer.pin().flush();
            DROPS.alive() == 0
        });
    });
}

#[test]
fn a_map_may_be_dropped_with_garbage_pending() {
    static DROPS: DropRecord = DropRecord::new();
    let mine: Map<u64, (Box<u64>, Token)> = map(Weak::Mixed);
    let other: Map = map(Weak::Mixed);
    while_held(
        || other.pin(),
        || {
            for round in 0..MANY {
                mine.pin().insert(round % 100, (Box::new(round), DROPS.token())).unwrap();
                mine.pin().remove(&(round % 77));
            }
            on_other_thread(|| drop(mine));
            let map: Map<u64, (Box<u64>, Token)> = map(Weak::Mixed);
            map.pin().insert(1, (Box::new(1), DROPS.token())).unwrap();
        },
    );
    eventually("all are dropped", || {
        other.pin().flush();
        DROPS.alive() == 0
    });
}

#[test]
#[cfg_attr(miri, ignore = "a batch has more entries than fit into its time")]
fn the_garbage_limit_may_be_zero_or_the_maximum() {
    // Few writes reach the limit if all are in one shard.
    let hasher = if cfg!(miri) { Weak::Constant } else { Weak::Mixed };
    for limit in [0, usize::MAX] {
        let map: Map<u64, Versioned> =
            ConcurrentMap::with_hasher(hasher).with_garbage_limit(limit, 0);
        let refusals = while_held(
            || map.pin(),
            || {
                let put = |key| map.pin().insert(key % 50, Versioned::new(key % 50, key)).is_ok();
                (0..MANY).filter(|&key| !put(key)).count()
            },
        );
        assert_eq!(refusals > 0, limit == 0, "{refusals} at {limit}");
        // Only other tests may have pins.
        for key in 0..MANY {
            let put = || map.pin().insert(key, Versioned::new(key, 1)).is_ok();
            eventually("the insertion succeeds", put);
        }
        assert_eq!(map.len() as u64, MANY);
    }
}

/// Checks a map of any types of keys and values, with `distinct` keys.
fn check_type<K, V>(key: fn(u64) -> K, value: fn(u64) -> V, distinct: u64)
where
    K: Clone + Eq + Hash + Send + Sync + Debug + 'static,
    V: PartialEq + Send + Sync + Debug + 'static,
{
    let mut map: Map<K, V> = map(Weak::Mixed);
    let write = || {
        for round in 0..MANY / 2 {
            let (pin, at) = (map.pin(), mix(round) % distinct);
            assert!(pin.insert(key(at), value(at)).unwrap().is_none_or(|old| *old == value(at)));
            assert!(pin.get(&key(at)).is_none_or(|found| *found == value(at)));
            assert!(
                pin.update(&key(at), |_| value(at)).unwrap().is_none_or(|new| *new == value(at))
            );
            let other = mix(!round) % distinct;
            assert!(pin.remove(&key(other)).is_none_or(|old| *old == value(other)));
        }
    };
    run_concurrently(&[&write, &write], &[]);
    (0..distinct).for_each(|at| _ = map.pin().insert(key(at), value(at)).unwrap());
    assert_eq!(map.pin().iter().count() as u64, distinct);
    for at in 0..distinct {
        assert_eq!(map.pin().get_key_value(&key(at)), Some((&key(at), &value(at))));
    }
    validate(&mut map);
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[repr(align(128))]
struct Aligned(u64);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[repr(align(128))]
struct AlignedEmpty;

#[test]
fn types_of_unusual_layouts_work() {
    check_type(|_| (), |_| (), 1);
    check_type(|_| AlignedEmpty, |_| [0_u64; 0], 1);
    check_type(|at| at, |_| (), MANY / 3);
    check_type(|_| (), |_| 7_u64, 1);
    check_type(|at| at as u8, |at| [at; 25], 200.min(MANY));
    check_type(Aligned, Aligned, MANY / 3);
    check_type(|at| [at as u8; 201], |at| at as u8, 50);
    check_type(|at| format!("{at}"), |at| vec![at; 3], MANY / 3);
}

#[test]
fn strings_are_found_by_slices() {
    let map: ConcurrentMap<String, String> = ConcurrentMap::new();
    let pin = map.pin();
    pin.insert("key".to_string(), "value".to_string()).unwrap();
    assert_eq!(pin.get("key").map(String::as_str), Some("value"));
    assert_eq!(get_batch!(pin, ["key", "other"]), [Some(&"value".to_string()), None]);
    let mut found = [None; 2];
    pin.get_batch(&["other".to_string(), "key".to_string()], flowtable::write_to(&mut found));
    assert_eq!(found.map(|found| found.is_some()), [false, true]);
    assert!(
        pin.contains_key("key")
            && pin.get(Prehashed { hash: pin.hash_of("key"), key: "key" }).is_some()
    );
    assert_eq!(pin.remove("key").map(String::len), Some(5));
    assert!(pin.remove("key").is_none() && pin.remove_entry("key").is_none());
}

#[test]
fn clearing_an_empty_map_retires_nothing() {
    let map: Map<u64, u64> = map(Weak::Mixed);
    let _pin = map.pin();
    let before = map.allocation_size();
    (0..1000).for_each(|_| map.pin().clear());
    map.pin().flush();
    assert_eq!((map.garbage(), map.allocation_size()), (0, before));
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn entries_without_a_size_count_as_garbage() {
    let map: ConcurrentMap<(), ()> = ConcurrentMap::new().with_garbage_limit(1 << 20, 0);
    let _pin = map.pin();
    let refused = (0..1_000_000).any(|_| map.pin().insert((), ()).is_err());
    assert!(refused, "{} bytes", map.garbage());
}

/// A panic payload that panics when it is dropped.
struct PanickingPayload;

impl Drop for PanickingPayload {
    fn drop(&mut self) {
        panic!("the payload");
    }
}

/// A counted value that panics with [`PanickingPayload`] when it is dropped.
struct Bomb(&'static AtomicUsize);

impl Drop for Bomb {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
        std::panic::panic_any(PanickingPayload);
    }
}

#[test]
fn panicking_payloads_do_not_affect_other_calls() {
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    let many = if cfg!(miri) { 20 } else { 1000 };
    let map: Map<u64, Bomb> = map(Weak::Mixed);
    let fill = || (0..many).for_each(|key| assert!(map.pin().insert(key, Bomb(&DROPPED)).is_ok()));
    fill();
    map.pin().clear();
    eventually("all are dropped", || {
        map.pin().flush();
        DROPPED.load(Ordering::Relaxed) as u64 == many && map.garbage() == 0
    });
    fill();
    let panic =
        catch_unwind(AssertUnwindSafe(|| drop(map))).expect_err("the first panic is propagated");
    std::mem::forget(panic);
    assert_eq!(DROPPED.load(Ordering::Relaxed) as u64, 2 * many);
}

#[test]
fn a_capacity_of_more_than_the_most_entries_panics_at_once() {
    for capacity in [(1 << 31) + 1, usize::MAX] {
        assert!(fails(|| drop(ConcurrentMap::<u64, u64>::with_capacity(capacity))));
        let hasher = Weak::Mixed;
        assert!(fails(|| drop(Map::<u64, u64>::with_capacity_and_hasher(capacity, hasher))));
    }
}
