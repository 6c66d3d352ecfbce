//! Callbacks of a `FlowCache` that panic, and keys with inconsistent `Hash`, `Eq` and
//! normalization. After a panic the cache is valid. With inconsistent keys flows may not be found,
//! but the cache does not panic, each key and value is dropped once, and the bounds hold.

use core::cell::Cell;
use core::hash::{Hash, Hasher};
use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use flowtable::eviction::ByClass;
use flowtable::flow_cache::{
    Class, Config, Cursor, Event, Handle, Image, Packet, Tenant, Timeouts,
};
use flowtable::key::flow::FlowName;
use flowtable::{Direction, FlowCache, TcpFlags, Timestamp};
use model::counted::{Callback, Counted, alive, forget_leaked, with_panic};
use model::hashers::{Weak, mix};
use model::scaled;

thread_local! {
    /// The number of correct results of keys before a wrong one; all are correct if it is negative.
    static CORRECT: Cell<i32> = const { Cell::new(-1) };
    static FAULT: Cell<Fault> = const { Cell::new(Fault::None) };
    static STATE: Cell<u64> = const { Cell::new(0) };
}

/// The fault of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// A method of a key panics, once.
    Panic,
    /// A result is wrong, once.
    Once,
    /// After some correct results, others are wrong at random.
    FromThenOn,
}

/// Whether the next result is wrong. May panic instead.
fn is_wrong() -> bool {
    let correct = CORRECT.get();
    if correct > 0 {
        CORRECT.set(correct - 1);
    }
    if correct != 0 {
        return false;
    }
    match FAULT.get() {
        Fault::None => false,
        Fault::Panic => {
            CORRECT.set(-1);
            resume_unwind(Box::new("injected"))
        }
        Fault::Once => {
            CORRECT.set(-1);
            true
        }
        Fault::FromThenOn => {
            STATE.set(STATE.get() + 1);
            mix(STATE.get()) % 3 == 0
        }
    }
}

/// A number and a direction; a consistent key unless a fault is set.
#[derive(Clone, Debug)]
struct Inconsistent {
    number: Counted,
    reverse: bool,
}

impl Inconsistent {
    fn new(number: u64) -> Self {
        Self { number: Counted::new(number), reverse: false }
    }
}

impl PartialEq for Inconsistent {
    fn eq(&self, other: &Self) -> bool {
        (self.number == other.number && self.reverse == other.reverse) ^ is_wrong()
    }
}

impl Eq for Inconsistent {}

impl Hash for Inconsistent {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
        if is_wrong() {
            7.hash(state);
        }
    }
}

impl FlowName for Inconsistent {
    fn normalized(&self) -> (Self, Direction) {
        let direction = match self.reverse ^ is_wrong() {
            true => Direction::Reverse,
            false => Direction::Forward,
        };
        let other = u64::from(is_wrong());
        (Self::new(self.number.number ^ other), direction)
    }

    fn reversed(&self) -> Self {
        let other = u64::from(is_wrong());
        Self {
            number: Counted::new(self.number.number ^ other),
            reverse: !self.reverse ^ is_wrong(),
        }
    }
}

/// A value whose `default` may panic like its `clone`.
#[derive(Clone, Debug)]
struct Value(Counted);

impl Default for Value {
    fn default() -> Self {
        Self(Counted::new(0).clone())
    }
}

type Cache = FlowCache<Inconsistent, Value, ByClass, Weak>;

const FLOWS: u64 = 40;
const TCP: Packet = Packet::tcp(TcpFlags::ACK);

fn seconds(seconds: u64) -> Timestamp {
    Timestamp::from_secs(seconds)
}

fn empty(hasher: Weak) -> Cache {
    let config = Config::new(FLOWS as usize).expect("some").with_timeouts(Timeouts::METER);
    FlowCache::with_policy_and_hasher(config, ByClass::new(), hasher)
}

/// A full cache, in which every other flow has aliases.
fn full(hasher: Weak) -> Cache {
    let mut cache = empty(hasher);
    cache.set_share(Tenant(1), Some(FLOWS as usize / 2));
    for number in 0..FLOWS {
        let packet = TCP.from_tenant(Tenant((number % 3) as u32));
        let observed = cache.observe(&Inconsistent::new(number), packet, seconds(number));
        let handle = observed.expect("there is room").handle();
        for name in 0..number % 2 * 3 {
            let name = Inconsistent::new(1000 * (1 + name) + number);
            assert!(cache.add_alias(handle, Direction::Forward, &name).is_ok());
        }
    }
    cache
}

fn handles(cache: &Cache) -> Vec<Handle> {
    let mut cursor = Cursor::new();
    cache.page(&mut cursor, usize::MAX).map(|flow| flow.handle()).collect()
}

/// Checks that all flows are alive, and that there are no more than the capacity.
fn check(cache: &Cache, what: &str) {
    let handles = handles(cache);
    assert_eq!((handles.len(), cache.metrics().flows), (cache.len(), cache.len()), "{what}");
    assert!(cache.len() <= cache.capacity(), "{what}");
    for flow in cache.iter() {
        assert!(flow.value().0.is_alive() && flow.key().number.is_alive(), "{what}");
        assert!(flow.keys().all(|name| name.number.is_alive()), "{what}");
        assert!(cache.get(flow.handle()).is_none_or(|value| value.0.is_alive()), "{what}");
    }
}

/// Checks that the cache recovers. A flow that was being removed during a panic may have lost keys.
/// If it lost the primary one, it expires, and the flow that has the key by then stays and is
/// found.
fn check_recovery(cache: &mut Cache, what: &str) {
    let start = cache.now();
    for number in 0..FLOWS {
        _ = cache.observe(&Inconsistent::new(number), TCP, start + Duration::from_secs(30));
    }
    let progress = cache.advance(start + Duration::from_secs(61), usize::MAX, |_| ());
    assert!(progress.is_done, "{what}: {progress:?}");
    for handle in handles(cache) {
        let flow = cache.resident(handle).expect("the scan returned the flow");
        let found = |key: &Inconsistent| cache.find(key).map(|found| found.handle);
        assert_eq!(found(&flow.key()), Some(handle), "{what}: {flow:?}");
        let mut others = flow.keys().map(|name| found(&name));
        assert!(others.all(|other| other.is_none_or(|other| other == handle)), "{what}: {flow:?}");
    }
}

/// Checks that new flows are admitted, found and expired.
fn check_use(mut cache: Cache, what: &str) {
    let start = cache.now();
    for number in 5000..5000 + 2 * FLOWS {
        let key = Inconsistent::new(number);
        let observed =
            cache.observe(&key, TCP, start).unwrap_or_else(|why| panic!("{what}: {why}"));
        let handle = observed.handle();
        assert_eq!(cache.find(&key).map(|found| found.handle), Some(handle), "{what}");
    }
    check(&cache, what);
    let flows = cache.len();
    let progress = cache.advance(start + Duration::from_secs(1000), usize::MAX, |_| ());
    assert!(
        progress.is_done && progress.ended + progress.reported >= flows,
        "{what}: {progress:?}"
    );
    assert!(cache.is_empty(), "{what}");
    cache.validate().unwrap_or_else(|broken| panic!("{what}, at the end: {broken}"));
}

type Act = (&'static str, fn(&mut Cache));

/// All operations that call code of keys and values.
const ACTS: [Act; 14] = [
    ("a hit", |cache| drop(cache.observe(&Inconsistent::new(3), TCP, seconds(50)))),
    ("a hit of an alias", |cache| drop(cache.observe(&Inconsistent::new(2003), TCP, seconds(50)))),
    ("a miss", |cache| drop(cache.observe(&Inconsistent::new(999), TCP, seconds(50)))),
    ("a miss of a tenant", |cache| {
        let packet = TCP.from_tenant(Tenant(1));
        (0..FLOWS).for_each(|number| {
            drop(cache.observe(&Inconsistent::new(900 + number), packet, seconds(50)));
        });
    }),
    ("a reused tuple", |cache| {
        let answer = Packet::tcp(TcpFlags::RST);
        drop(cache.observe(&Inconsistent::new(3), answer, seconds(50)));
        drop(cache.observe(&Inconsistent::new(3), Packet::tcp(TcpFlags::SYN), seconds(50)));
    }),
    ("an answer", |cache| {
        let answer = Packet::tcp(TcpFlags::SYN | TcpFlags::ACK);
        drop(cache.observe(&Inconsistent::new(999), answer, seconds(50)));
    }),
    ("a batch", |cache| {
        let numbers = (0..50).chain(900..950).chain(940..960);
        let batch: Vec<_> = numbers.map(|number| (Inconsistent::new(number), TCP)).collect();
        let batch = batch.iter().map(|(key, packet)| (key, *packet, seconds(50)));
        cache.observe_batch(batch, |_, observed| drop(observed));
    }),
    ("advancing", |cache| while !cache.advance(seconds(80), 7, |event| drop(event)).is_done {}),
    ("removal", |cache| {
        let handles = handles(cache);
        handles.into_iter().step_by(3).for_each(|handle| drop(cache.remove(handle)));
    }),
    ("aliases", |cache| {
        for handle in handles(cache).into_iter().step_by(3) {
            let name = Inconsistent::new(3000 + handle.id());
            _ = cache.add_alias(handle, Direction::Forward, &name);
            _ = cache.add_alias(handle, Direction::Forward, &Inconsistent::new(2001));
            _ = cache.remove_key(handle, &name);
            _ = cache.remove_key(handle, &Inconsistent::new(1000 + handle.id()));
        }
    }),
    ("draining", |cache| cache.drain().take(10).for_each(drop)),
    ("classes", |cache| {
        for (at, handle) in handles(cache).into_iter().enumerate() {
            cache.set_class(handle, Class::ALL[at % 4]);
            cache.set_pinned(handle, at % 3 == 0);
        }
        drop(cache.observe(&Inconsistent::new(999), TCP, seconds(50)));
    }),
    ("an image", |cache| {
        let mut cursor = Cursor::new();
        let image: Image<Inconsistent, Value> = cache.page(&mut cursor, usize::MAX).collect();
        handles(cache).into_iter().for_each(|handle| drop(cache.remove(handle)));
        _ = cache.restore(image, seconds(60));
    }),
    ("the end", |cache| {
        drop(core::mem::replace(cache, empty(Weak::Mixed)));
    }),
];

/// Checks a cache after a panic. The return value of a function leaks if the drop of an argument
/// panics, a bug of the compiler, <https://github.com/rust-lang/rust/issues/47949>: up to `leaks`
/// are allowed.
fn check_after_panic(mut cache: Cache, what: &str, leaks: usize) {
    check(&cache, what);
    check_recovery(&mut cache, what);
    check_use(cache, what);
    assert!(alive() <= leaks, "{what}: {} have leaked", alive());
    forget_leaked();
}

fn panic_everywhere(hasher: Weak) {
    for (name, act) in ACTS {
        for callback in [Callback::Hash, Callback::Eq, Callback::Clone, Callback::Drop] {
            for good in (0..).map(|step| step + step * step / scaled(16, 1, 16)) {
                let what = format!("{name}, {hasher:?}, {callback:?} no. {good}");
                let mut cache = full(hasher);
                let done = with_panic(callback, good, || act(&mut cache));
                check_after_panic(cache, &what, if callback == Callback::Drop { 4 } else { 0 });
                if done.is_some() {
                    break;
                }
            }
        }
    }
}

#[test]
fn the_cache_stays_valid_if_keys_or_values_panic() {
    panic_everywhere(Weak::Mixed);
    panic_everywhere(Weak::Three);
}

/// Runs `work` with a fault after some correct results. Returns whether the fault occurred, and
/// whether `work` panicked.
fn with_fault(correct: i32, fault: Fault, work: impl FnOnce()) -> (bool, bool) {
    FAULT.set(fault);
    CORRECT.set(correct);
    let result = catch_unwind(AssertUnwindSafe(work));
    let occurred = CORRECT.replace(-1) <= 0;
    FAULT.set(Fault::None);
    (occurred, result.is_err())
}

#[test]
fn the_cache_stays_valid_if_a_method_of_a_key_panics() {
    for (name, act) in ACTS {
        for correct in (0..).map(|step| step + step * step / scaled(16, 1, 16)) {
            let what = format!("{name}, panic no. {correct}");
            let mut cache = full(Weak::Mixed);
            let (occurred, _) = with_fault(correct, Fault::Panic, || act(&mut cache));
            check_after_panic(cache, &what, 0);
            if !occurred {
                break;
            }
        }
    }
}

/// Checks a cache after faults of keys: it respects its capacity, drops each object once, and
/// reports as many departures as it had flows.
fn check_after_fault(mut cache: Cache, what: &str) {
    check(&cache, what);
    for number in 6000..6000 + 2 * FLOWS {
        _ = cache.observe(&Inconsistent::new(number), TCP, seconds(60));
    }
    check(&cache, what);
    let removed = handles(&cache)[..5].to_vec();
    removed.iter().for_each(|handle| assert!(cache.remove(*handle).is_some(), "{what}"));
    assert!(removed.iter().all(|handle| cache.get(*handle).is_none()), "{what}");
    let (flows, mut ended) = (cache.len(), 0);
    let progress = cache.advance(seconds(2000), 100_000, |event| match event {
        Event::Ended(_) => ended += 1,
        Event::Active(_) => {}
    });
    assert_eq!((progress.is_done, ended, cache.len()), (true, flows, 0), "{what}");
    drop(cache);
    assert_eq!(alive(), 0, "{what}");
}

fn check_fault(fault: Fault, hasher: Weak) {
    for (name, act) in ACTS {
        for correct in (0..).map(|step| step + step * step / scaled(8, 1, 8)) {
            let what = format!("{name}, {fault:?} {correct}, {hasher:?}");
            let mut cache = full(hasher);
            let (occurred, panicked) = with_fault(correct, fault, || {
                act(&mut cache);
                act(&mut cache);
            });
            assert!(!panicked, "{what}: the cache panicked");
            check_after_fault(cache, &what);
            if !occurred {
                break;
            }
        }
    }
}

#[test]
fn a_single_wrong_result_of_a_key_violates_no_invariant() {
    check_fault(Fault::Once, Weak::Mixed);
    check_fault(Fault::Once, Weak::Three);
}

#[test]
fn keys_may_become_inconsistent() {
    check_fault(Fault::FromThenOn, Weak::Mixed);
    check_fault(Fault::FromThenOn, Weak::Constant);
}

/// All operations with keys that are inconsistent from the beginning.
#[test]
fn keys_may_always_be_inconsistent() {
    for hasher in [Weak::Mixed, Weak::Three, Weak::Constant] {
        for seed in 0..scaled(100, 8, 100) {
            let mut cache = full(hasher);
            STATE.set(seed << 32);
            let (_, panicked) = with_fault(0, Fault::FromThenOn, || {
                ACTS.iter().chain(&ACTS[..12]).for_each(|(_, act)| act(&mut cache));
            });
            assert!(!panicked, "{hasher:?}, {seed}: the cache panicked");
            check_after_fault(cache, &format!("{hasher:?}, {seed}"));
        }
    }
}

#[test]
fn an_old_handle_names_no_flow_if_a_drop_panics_when_the_cache_is_cleared() {
    // The flow, and the removed one.
    for good in 0..2 {
        let mut cache = FlowCache::<u64, Counted>::new(Config::new(1).unwrap());
        let observe = |cache: &mut FlowCache<u64, Counted>, key| {
            cache.observe_with(&key, TCP, seconds(1), || Counted::new(key)).unwrap().handle()
        };
        let old = observe(&mut cache, 1);
        // Evicts the first flow, which stays readable.
        observe(&mut cache, 2);
        assert!(with_panic(Callback::Drop, good, || cache.clear()).is_none());
        observe(&mut cache, 3);
        assert!(cache.get(old).is_none());
        cache.validate().unwrap();
        drop(cache);
        forget_leaked();
    }
}

#[test]
fn the_cache_stays_valid_if_closures_panic() {
    type Closures = (&'static str, fn(&mut Cache, &dyn Fn()));
    let acts: [Closures; 3] = [
        ("a new value", |cache, call| {
            for number in 900..950 {
                drop(cache.observe_with(&Inconsistent::new(number), TCP, seconds(50), || {
                    call();
                    Value::default()
                }));
            }
        }),
        ("a batch", |cache, call| {
            let batch: Vec<_> = (0..100).map(|number| (Inconsistent::new(number), TCP)).collect();
            let batch = batch.iter().map(|(key, packet)| (key, *packet, seconds(50)));
            cache.observe_batch(batch, |_, observed| {
                call();
                drop(observed);
            });
        }),
        ("an event", |cache, call| {
            cache.advance(seconds(80), 100, |event| {
                call();
                drop(event);
            });
        }),
    ];
    for (name, act) in acts {
        for good in 0..FLOWS {
            let mut cache = full(Weak::Mixed);
            let left = Cell::new(good);
            let call = || match left.get() {
                0 => resume_unwind(Box::new("injected")),
                more => left.set(more - 1),
            };
            let done = catch_unwind(AssertUnwindSafe(|| act(&mut cache, &call)));
            check_after_panic(cache, &format!("{name}, call {good}"), 0);
            if done.is_ok() {
                break;
            }
        }
    }
}

#[test]
fn every_key_and_value_is_dropped_once() {
    let mut cache = full(Weak::Mixed);
    let image = || -> Image<Inconsistent, Value> {
        let mut cursor = Cursor::new();
        full(Weak::Mixed).page(&mut cursor, usize::MAX).collect()
    };
    assert!(cache.restore(image(), seconds(60)).is_err(), "the keys are in use");
    ACTS.iter().for_each(|(_, act)| act(&mut cache));
    let mut other = full(Weak::Constant);
    let half = other.drain().take(FLOWS as usize / 2).count();
    assert_eq!((half, other.len()), (FLOWS as usize / 2, FLOWS as usize / 2));
    other.drain().for_each(drop);
    assert_eq!(other.restore(image(), seconds(60)).ok(), Some(FLOWS as usize));
    assert_eq!(other.drain().take(7).filter(|left| left.value.0.is_alive()).count(), 7);
    drop(other);
    check(&cache, "at the end");
    drop(cache);
    assert_eq!(alive(), 0);
}
