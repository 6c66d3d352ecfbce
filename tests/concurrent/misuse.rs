//! What callers may do to a `ConcurrentMap`, though they should not, and types at the edges.

use core::fmt::Debug;
use core::hash::{Hash, Hasher};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Weak as WeakArc};

use flowtable::ConcurrentMap;
use flowtable::concurrent::Compute;
use model::counted::Callback;
use model::hashers::{Weak, mix};
use model::hooks::{Hooked, with_hook};
use model::ledger::{Ledger, Token};
use model::threads::{eventually, on_other_thread, run_concurrently, while_held, without_hanging};
use model::versioned::Versioned;

type Map<K = u64, V = u64> = ConcurrentMap<K, V, Weak>;

const MANY: u64 = if cfg!(miri) { 40 } else { 3000 };

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

#[test]
#[cfg_attr(miri, ignore = "slow; others do as much")]
fn closures_panic() {
    let mut map: Map = map(Weak::Mixed);
    (0..100).for_each(|key| _ = map.pin().insert(key, key).unwrap());
    // Half way through a retention: those that have been told to go are gone.
    let mut asked = BTreeSet::new();
    let failed = fails(|| {
        map.pin().retain(|key, _| {
            if asked.len() == 50 {
                fail::<()>();
            }
            asked.insert(*key)
        });
    });
    assert!(failed && map.len() == 100);
    let mut gone = 0;
    assert!(fails(|| {
        map.pin().retain(|_, _| {
            gone += 1;
            if gone > 50 { fail() } else { false }
        });
    }));
    assert_eq!(map.len(), 50);
    validate(&mut map);
    // Many threads at once, all of which fail.
    let fail_often = || {
        for round in 0..MANY {
            assert!(fails(|| _ = map.pin().compute(round % 100, |_| fail())));
            assert!(fails(|| _ = map.pin().get_or_insert_with(1000 + round, fail)));
        }
    };
    run_concurrently(&[&fail_often, &fail_often], &[]);
    assert_eq!(map.len(), 50);
    validate(&mut map);
}

/// Whatever panics wherever, the map has what it had, or what it should have then.
#[test]
#[cfg_attr(miri, ignore = "slow; others do as much")]
fn hash_and_eq_panic() {
    type Write = fn(&Map<Hooked, u64>, u64);
    let writes: [Write; 5] = [
        |map, key| _ = map.pin().insert(Hooked(key), 7).unwrap(),
        |map, key| _ = map.pin().remove(&Hooked(key)),
        |map, key| _ = map.pin().update(Hooked(key), |_| 7).unwrap(),
        |map, key| _ = map.pin().compute(Hooked(key), |_| Compute::Insert(7)).unwrap(),
        |map, key| _ = map.pin().get_or_insert(Hooked(key), 7).unwrap(),
    ];
    let hashers = if cfg!(miri) { [Weak::Three].as_slice() } else { &[Weak::Mixed, Weak::Three] };
    for ((at, write), &hasher) in
        writes.iter().enumerate().flat_map(|w| hashers.iter().map(move |h| (w, h)))
    {
        // New keys, so that segments grow, and old ones.
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
                // It still works, and to the end.
                write(&map, key);
                validate(&mut map);
                before += 1;
                // Sizes at which it grows, too.
                len += 1;
                if !failed && before > 30 {
                    break;
                }
            }
        }
    }
}

/// A key that is equal to some others, today, and hashes as it likes.
#[derive(Debug)]
struct Lawless(u64);

static WHIM: AtomicU64 = AtomicU64::new(1);

fn whim() -> u64 {
    mix(WHIM.fetch_add(1, Ordering::Relaxed))
}

impl Hash for Lawless {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let noise = if whim() % 8 == 0 { whim() % 4 } else { 0 };
        (self.0 + noise).hash(state);
    }
}

impl PartialEq for Lawless {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 && whim() % 16 > 0
    }
}

impl Eq for Lawless {}

/// Nothing is promised but that every value is dropped once, and that it comes to an end.
#[test]
#[cfg_attr(miri, ignore = "slow; others do as much")]
fn keys_break_the_laws() {
    static LEDGER: Ledger = Ledger::new();
    without_hanging(|| {
        for hasher in [Weak::Mixed, Weak::Three] {
            let map: Map<Lawless, Token> = map(hasher);
            let write = || {
                let pin = map.pin();
                for round in 0..MANY {
                    let key = || Lawless(whim() % 200);
                    match round % 6 {
                        0 | 1 => _ = pin.insert(key(), LEDGER.token()).unwrap(),
                        2 => _ = pin.remove(&key()),
                        3 => _ = pin.update(key(), |_| LEDGER.token()).unwrap(),
                        4 => _ = pin.get_or_insert(key(), LEDGER.token()).unwrap(),
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
        LEDGER.alive() == 0
    });
}

/// A value that goes back to its map when it is dropped.
struct Homesick {
    map: WeakArc<Map<u64, Homesick>>,
    key: u64,
    _token: Token,
}

impl Drop for Homesick {
    fn drop(&mut self) {
        let Some(map) = self.map.upgrade() else { return };
        let pin = map.pin();
        assert!(pin.get(&self.key).is_none_or(|other| other.key == self.key));
        // Others, which come here, too, some day.
        pin.remove(&(self.key + 1));
        pin.compute(self.key + 2, |_| Compute::Remove).unwrap();
        if self.key % 4 == 0 {
            pin.retain(|key, _| key % 64 > 0);
            pin.flush();
        }
        // And perhaps the map has nobody but this one now.
    }
}

#[test]
fn values_go_back_to_their_map_when_they_are_dropped() {
    static LEDGER: Ledger = Ledger::new();
    without_hanging(|| {
        for _ in 0..3 {
            let map: Arc<Map<u64, Homesick>> = Arc::new(map(Weak::Mixed));
            let write = || {
                for round in 0..MANY {
                    let key = mix(round) % 500;
                    let home = Arc::downgrade(&map);
                    let value = Homesick { map: home, key, _token: LEDGER.token() };
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
        LEDGER.alive() == 0
    });
}

#[test]
fn a_map_is_dropped_by_what_another_map_has_retired() {
    static LEDGER: Ledger = Ledger::new();
    without_hanging(|| {
        let outer: Map<u64, Map<u64, Token>> = map(Weak::Mixed);
        let fill = |count| {
            let inner = map(Weak::Mixed);
            (0..count).for_each(|key| _ = inner.pin().insert(key % 7, LEDGER.token()).unwrap());
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
            LEDGER.alive() == 0
        });
    });
}

#[test]
fn a_map_is_dropped_while_garbage_is_pending() {
    static LEDGER: Ledger = Ledger::new();
    let mine: Map<u64, (Box<u64>, Token)> = map(Weak::Mixed);
    let other: Map = map(Weak::Mixed);
    while_held(
        || other.pin(),
        || {
            for round in 0..MANY {
                mine.pin().insert(round % 100, (Box::new(round), LEDGER.token())).unwrap();
                mine.pin().remove(&(round % 77));
            }
            on_other_thread(|| drop(mine));
            let map: Map<u64, (Box<u64>, Token)> = map(Weak::Mixed);
            map.pin().insert(1, (Box::new(1), LEDGER.token())).unwrap();
        },
    );
    eventually("all are dropped", || {
        other.pin().flush();
        LEDGER.alive() == 0
    });
}

#[test]
#[cfg_attr(miri, ignore = "a batch has more entries than fit into its time")]
fn limits_at_both_ends() {
    // Few writes come up to the limit if all are to one shard.
    let hasher = if cfg!(miri) { Weak::Constant } else { Weak::Mixed };
    for limit in [0, usize::MAX] {
        let map: Map<u64, Versioned> =
            ConcurrentMap::with_hasher(hasher).with_garbage_limit(limit, 0);
        assert_eq!(map.garbage_limit(), limit);
        let refusals = while_held(
            || map.pin(),
            || {
                let put = |key| map.pin().insert(key % 50, Versioned::new(key % 50, key)).is_ok();
                (0..MANY).filter(|&key| !put(key)).count()
            },
        );
        assert_eq!(refusals > 0, limit == 0, "{refusals} at {limit}");
        // Nobody else has a pin, but other tests may.
        for key in 0..MANY {
            let put = || map.pin().insert(key, Versioned::new(key, 1)).is_ok();
            eventually("there is room", put);
        }
        assert_eq!(map.len() as u64, MANY);
    }
}

/// Entries of a type, by number, against what they should be.
fn try_type<K, V>(key: fn(u64) -> K, value: fn(u64) -> V, different: u64)
where
    K: Eq + Hash + Send + Sync + Debug + 'static,
    V: PartialEq + Send + Sync + Debug + 'static,
{
    let mut map: Map<K, V> = map(Weak::Mixed);
    let write = || {
        for round in 0..MANY / 2 {
            let (pin, at) = (map.pin(), mix(round) % different);
            assert!(pin.insert(key(at), value(at)).unwrap().is_none_or(|old| *old == value(at)));
            assert!(pin.get(&key(at)).is_none_or(|found| *found == value(at)));
            assert!(
                pin.update(key(at), |_| value(at)).unwrap().is_none_or(|new| *new == value(at))
            );
            let other = mix(!round) % different;
            assert!(pin.remove(&key(other)).is_none_or(|old| *old == value(other)));
        }
    };
    run_concurrently(&[&write, &write], &[]);
    (0..different).for_each(|at| _ = map.pin().insert(key(at), value(at)).unwrap());
    assert_eq!(map.pin().iter().count() as u64, different);
    for at in 0..different {
        assert_eq!(map.pin().get_key_value(&key(at)), Some((&key(at), &value(at))));
    }
    validate(&mut map);
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[repr(align(128))]
struct Aligned(u64);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[repr(align(128))]
struct AlignedNothing;

#[test]
fn types_at_the_edges() {
    try_type(|_| (), |_| (), 1);
    try_type(|_| AlignedNothing, |_| [0_u64; 0], 1);
    try_type(|at| at, |_| (), MANY / 3);
    try_type(|_| (), |_| 7_u64, 1);
    try_type(|at| at as u8, |at| [at; 25], 200.min(MANY));
    try_type(Aligned, Aligned, MANY / 3);
    try_type(|at| [at as u8; 201], |at| at as u8, 50);
    try_type(|at| format!("{at}"), |at| vec![at; 3], MANY / 3);
}

#[test]
fn strings_are_found_by_slices() {
    let map: ConcurrentMap<String, String> = ConcurrentMap::new();
    let pin = map.pin();
    pin.insert("key".to_string(), "value".to_string()).unwrap();
    assert_eq!(pin.get("key").map(String::as_str), Some("value"));
    assert_eq!(pin.get_many(["key", "other"]), [Some(&"value".to_string()), None]);
    let mut found = [None; 2];
    pin.get_batch(&["other".to_string(), "key".to_string()], &mut found);
    assert_eq!(found.map(|found| found.is_some()), [false, true]);
    assert!(pin.contains_key("key") && pin.get_hashed(pin.hash_of("key"), "key").is_some());
    assert_eq!(pin.remove_hashed(pin.hash_of("key"), "key").map(String::len), Some(5));
    assert!(pin.remove("key").is_none() && pin.remove_entry("key").is_none());
}

/// Puts another value where it was, when it is dropped, as often as it was told.
struct Again(u64, u32);

static AGAIN: LazyLock<ConcurrentMap<u64, Again>> =
    LazyLock::new(|| ConcurrentMap::new().with_garbage_limit(usize::MAX, 0));

impl Drop for Again {
    fn drop(&mut self) {
        let Self(key, times) = *self;
        if times > 0 && AGAIN.pin().insert(key, Self(key, times - 1)).is_err() {
            unreachable!("there is no limit");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn destructors_that_write_do_not_run_within_each_other() {
    let many = 100_000;
    let pin = AGAIN.pin();
    (0..many).for_each(|key| assert!(pin.insert(key, Again(key, 3)).is_ok()));
    // Nothing is dropped under this pin; then all of it, each with an insertion, each of which retires.
    (0..many).for_each(|key| assert!(pin.insert(key, Again(key, 3)).is_ok()));
    drop(pin);
    (0..many / 10).for_each(|_| AGAIN.pin().flush());
    assert_eq!(AGAIN.len() as u64, many);
}

#[test]
fn to_clear_an_empty_map_retires_nothing() {
    let map: Map<u64, u64> = map(Weak::Mixed);
    let _pin = map.pin();
    let before = map.allocation_size();
    (0..1000).for_each(|_| map.pin().clear());
    map.pin().flush();
    assert_eq!((map.garbage(), map.allocation_size()), (0, before));
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn entries_without_a_size_are_garbage_all_the_same() {
    let map: ConcurrentMap<(), ()> = ConcurrentMap::new().with_garbage_limit(1 << 20, 0);
    let _pin = map.pin();
    let refused = (0..1_000_000).any(|_| map.pin().insert((), ()).is_err());
    assert!(refused, "{} bytes", map.garbage());
}

/// What a panic carries, and panics again when it is dropped.
struct Twice;

impl Drop for Twice {
    fn drop(&mut self) {
        panic!("the payload");
    }
}

/// Panics with that when it is dropped, and is counted.
struct Bomb(&'static AtomicUsize);

impl Drop for Bomb {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
        std::panic::panic_any(Twice);
    }
}

#[test]
fn panics_that_panic_hinder_nobody() {
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
    let panic = catch_unwind(AssertUnwindSafe(|| drop(map))).expect_err("the first of them");
    std::mem::forget(panic);
    assert_eq!(DROPPED.load(Ordering::Relaxed) as u64, 2 * many);
}
