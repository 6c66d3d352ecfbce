//! Code of the user's may panic wherever a `FlowCache` calls it, and its keys may lie. Behind a panic
//! is a good cache; with keys that lie flows are not found, and nothing worse: no panic of ours, each
//! key and value is dropped once, and the bounds hold.

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

thread_local! {
    /// How many answers of keys are right before one is not; all are if that is negative.
    static RIGHT: Cell<i32> = const { Cell::new(-1) };
    static FAULT: Cell<Fault> = const { Cell::new(Fault::None) };
    static STATE: Cell<u64> = const { Cell::new(0) };
}

/// What is wrong with keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// Turning a key panics, once.
    Panic,
    /// An answer is wrong, once.
    Once,
    /// From some time on, answers are wrong at random.
    FromThenOn,
}

/// Whether this answer is a wrong one. It may panic instead.
fn is_wrong() -> bool {
    let right = RIGHT.get();
    if right > 0 {
        RIGHT.set(right - 1);
    }
    if right != 0 {
        return false;
    }
    match FAULT.get() {
        Fault::None => false,
        Fault::Panic => {
            RIGHT.set(-1);
            resume_unwind(Box::new("asked for"))
        }
        Fault::Once => {
            RIGHT.set(-1);
            true
        }
        Fault::FromThenOn => {
            STATE.set(STATE.get() + 1);
            mix(STATE.get()) % 3 == 0
        }
    }
}

/// A number and a direction; it is a good key until it is told otherwise.
#[derive(Clone, Debug)]
struct Lawless {
    number: Counted,
    reverse: bool,
}

impl Lawless {
    fn new(number: u64) -> Self {
        Self { number: Counted::new(number), reverse: false }
    }
}

impl PartialEq for Lawless {
    fn eq(&self, other: &Self) -> bool {
        (self.number == other.number && self.reverse == other.reverse) ^ is_wrong()
    }
}

impl Eq for Lawless {}

impl Hash for Lawless {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
        if is_wrong() {
            7.hash(state);
        }
    }
}

impl FlowName for Lawless {
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

/// Its default may panic as its clone does.
#[derive(Clone, Debug)]
struct Value(Counted);

impl Default for Value {
    fn default() -> Self {
        Self(Counted::new(0).clone())
    }
}

type Cache = FlowCache<Lawless, Value, ByClass, Weak>;

const FLOWS: u64 = 40;
const TCP: Packet = Packet::tcp(TcpFlags::ACK);

fn seconds(seconds: u64) -> Timestamp {
    Timestamp::from_secs(seconds)
}

fn empty(hasher: Weak) -> Cache {
    let config = Config::new(FLOWS as usize).expect("some").with_timeouts(Timeouts::METER);
    FlowCache::with_policy_and_hasher(config, ByClass::new(), hasher)
}

/// A full one, in which every other flow has more names.
fn full(hasher: Weak) -> Cache {
    let mut cache = empty(hasher);
    cache.set_share(Tenant(1), Some(FLOWS as usize / 2));
    for number in 0..FLOWS {
        let packet = TCP.from_tenant(Tenant((number % 3) as u16));
        let observed = cache.observe(&Lawless::new(number), packet, seconds(number));
        let handle = observed.expect("there is room").handle;
        for name in 0..number % 2 * 3 {
            let name = Lawless::new(1000 * (1 + name) + number);
            assert!(cache.add_name(handle, &name).is_ok());
        }
    }
    cache
}

fn handles(cache: &Cache) -> Vec<Handle> {
    let mut cursor = Cursor::new();
    cache.page(&mut cursor, usize::MAX).map(|flow| flow.handle()).collect()
}

/// What is there is alive, and no more than may be; all of it leaves when it is told to.
fn check(cache: &Cache, what: &str) {
    let handles = handles(cache);
    assert_eq!((handles.len(), cache.metrics().flows), (cache.len(), cache.len()), "{what}");
    assert!(cache.len() <= cache.capacity(), "{what}");
    for handle in handles {
        let flow = cache.resident(handle).expect("it was met");
        assert!(flow.value().0.is_alive() && flow.key().number.is_alive(), "{what}");
        assert!(flow.names().all(|name| name.number.is_alive()), "{what}");
        assert!(cache.get(handle).is_some_and(|value| value.0.is_alive()), "{what}");
    }
}

/// A flow that was about to leave when something panicked may have lost names. If that was its first one,
/// it ends in its time, and what has the name by then stays and is found.
fn heal(cache: &mut Cache, what: &str) {
    let start = cache.now();
    for number in 0..FLOWS {
        _ = cache.observe(&Lawless::new(number), TCP, start + Duration::from_secs(30));
    }
    let progress = cache.advance(start + Duration::from_secs(61), usize::MAX, |_| ());
    assert!(progress.is_done, "{what}: {progress:?}");
    for handle in handles(cache) {
        let flow = cache.resident(handle).expect("it was met");
        let found = |key| cache.find(key).map(|found| found.handle);
        assert_eq!(found(flow.key()), Some(handle), "{what}: {flow:?}");
        let mut others = flow.names().map(found);
        assert!(others.all(|other| other.is_none_or(|other| other == handle)), "{what}: {flow:?}");
    }
}

/// It takes new flows, finds them, and ends all in their time.
fn use_on(mut cache: Cache, what: &str) {
    let start = cache.now();
    for number in 5000..5000 + 2 * FLOWS {
        let key = Lawless::new(number);
        let observed =
            cache.observe(&key, TCP, start).unwrap_or_else(|why| panic!("{what}: {why}"));
        let handle = observed.handle;
        assert_eq!(cache.find(&key).map(|found| found.handle), Some(handle), "{what}");
    }
    check(&cache, what);
    let there = cache.len();
    let progress = cache.advance(start + Duration::from_secs(1000), usize::MAX, |_| ());
    assert!(
        progress.is_done && progress.ended + progress.reported >= there,
        "{what}: {progress:?}"
    );
    assert!(cache.is_empty(), "{what}");
    cache.validate().unwrap_or_else(|broken| panic!("{what}, in the end: {broken}"));
}

type Act = (&'static str, fn(&mut Cache));

/// Everything that calls what the user wrote.
const ACTS: [Act; 14] = [
    ("a hit", |cache| drop(cache.observe(&Lawless::new(3), TCP, seconds(50)))),
    ("a hit of a further name", |cache| drop(cache.observe(&Lawless::new(2003), TCP, seconds(50)))),
    ("a miss", |cache| drop(cache.observe(&Lawless::new(999), TCP, seconds(50)))),
    ("a miss of a tenant", |cache| {
        let packet = TCP.from_tenant(Tenant(1));
        (0..FLOWS).for_each(|number| {
            drop(cache.observe(&Lawless::new(900 + number), packet, seconds(50)));
        });
    }),
    ("a tuple that is used again", |cache| {
        let answer = Packet::tcp(TcpFlags::RST);
        drop(cache.observe(&Lawless::new(3), answer, seconds(50)));
        drop(cache.observe(&Lawless::new(3), Packet::tcp(TcpFlags::SYN), seconds(50)));
    }),
    ("an answer", |cache| {
        let answer = Packet::tcp(TcpFlags::SYN | TcpFlags::ACK);
        drop(cache.observe(&Lawless::new(999), answer, seconds(50)));
    }),
    ("a burst", |cache| {
        let numbers = (0..50).chain(900..950).chain(940..960);
        let burst: Vec<_> = numbers.map(|number| (Lawless::new(number), TCP)).collect();
        cache.observe_batch(&burst, seconds(50), |_, observed| drop(observed));
    }),
    ("advancing", |cache| while !cache.advance(seconds(80), 7, |event| drop(event)).is_done {}),
    ("removal", |cache| {
        let handles = handles(cache);
        handles.into_iter().step_by(3).for_each(|handle| drop(cache.remove(handle)));
    }),
    ("names", |cache| {
        for handle in handles(cache).into_iter().step_by(3) {
            let name = Lawless::new(3000 + handle.id());
            _ = cache.add_name(handle, &name);
            _ = cache.add_name(handle, &Lawless::new(2001));
            _ = cache.remove_name(handle, &name);
            _ = cache.remove_name(handle, &Lawless::new(1000 + handle.id()));
        }
    }),
    ("draining", |cache| cache.drain().take(10).for_each(drop)),
    ("classes", |cache| {
        for (at, handle) in handles(cache).into_iter().enumerate() {
            cache.set_class(handle, Class::ALL[at % 4]);
            cache.set_pinned(handle, at % 3 == 0);
        }
        drop(cache.observe(&Lawless::new(999), TCP, seconds(50)));
    }),
    ("an image", |cache| {
        let mut cursor = Cursor::new();
        let image: Image<Lawless, Value> = cache.page(&mut cursor, usize::MAX).collect();
        handles(cache).into_iter().for_each(|handle| drop(cache.remove(handle)));
        _ = cache.restore(image, seconds(60));
    }),
    ("the end", |cache| {
        drop(core::mem::replace(cache, empty(Weak::Mixed)));
    }),
];

/// What a function is about to return leaks when one of its arguments panics while it is dropped: a
/// fault of the compiler, <https://github.com/rust-lang/rust/issues/47949>. That much is forgiven.
fn check_behind(mut cache: Cache, what: &str, leaks: usize) {
    check(&cache, what);
    heal(&mut cache, what);
    use_on(cache, what);
    assert!(alive() <= leaks, "{what}: {} have leaked", alive());
    forget_leaked();
}

fn panic_everywhere(hasher: Weak) {
    for (name, act) in ACTS {
        for callback in [Callback::Hash, Callback::Eq, Callback::Clone, Callback::Drop] {
            for good in (0..).map(|step| step + step * step / 16) {
                let what = format!("{name}, {hasher:?}, {callback:?} no. {good}");
                let mut cache = full(hasher);
                let done = with_panic(callback, good, || act(&mut cache));
                check_behind(cache, &what, if callback == Callback::Drop { 4 } else { 0 });
                if done.is_some() {
                    break;
                }
            }
        }
    }
}

#[test]
fn keys_and_values_may_panic() {
    panic_everywhere(Weak::Mixed);
    panic_everywhere(Weak::Three);
}

/// Runs something that gets a wrong answer after so many right ones. Whether it came to that, and
/// whether it panicked.
fn wrong_after(right: i32, fault: Fault, work: impl FnOnce()) -> (bool, bool) {
    FAULT.set(fault);
    RIGHT.set(right);
    let result = catch_unwind(AssertUnwindSafe(work));
    let came = RIGHT.replace(-1) <= 0;
    FAULT.set(Fault::None);
    (came, result.is_err())
}

#[test]
fn turning_a_key_may_panic() {
    for (name, act) in ACTS {
        for right in (0..).map(|step| step + step * step / 16) {
            let what = format!("{name}, panic no. {right}");
            let mut cache = full(Weak::Mixed);
            let (came, _) = wrong_after(right, Fault::Panic, || act(&mut cache));
            check_behind(cache, &what, 0);
            if !came {
                break;
            }
        }
    }
}

/// Whatever its keys have said before, the cache is no larger than it may be, drops each once, and says
/// of as many as there are that they left.
fn check_lied_to(mut cache: Cache, what: &str) {
    check(&cache, what);
    for number in 6000..6000 + 2 * FLOWS {
        _ = cache.observe(&Lawless::new(number), TCP, seconds(60));
    }
    check(&cache, what);
    let gone = handles(&cache)[..5].to_vec();
    gone.iter().for_each(|handle| assert!(cache.remove(*handle).is_some(), "{what}"));
    assert!(gone.iter().all(|handle| cache.get(*handle).is_none()), "{what}");
    let (there, mut ended) = (cache.len(), 0);
    let progress = cache.advance(seconds(2000), 100_000, |event| match event {
        Event::Ended(_) => ended += 1,
        Event::Active(_) => {}
    });
    assert_eq!((progress.is_done, ended, cache.len()), (true, there, 0), "{what}");
    drop(cache);
    assert_eq!(alive(), 0, "{what}");
}

fn lie(fault: Fault, hasher: Weak) {
    for (name, act) in ACTS {
        for right in (0..).map(|step| step + step * step / 8) {
            let what = format!("{name}, {fault:?} {right}, {hasher:?}");
            let mut cache = full(hasher);
            let (came, panicked) = wrong_after(right, fault, || {
                act(&mut cache);
                act(&mut cache);
            });
            assert!(!panicked, "{what}: a panic of ours");
            check_lied_to(cache, &what);
            if !came {
                break;
            }
        }
    }
}

#[test]
fn keys_may_lie_once() {
    lie(Fault::Once, Weak::Mixed);
    lie(Fault::Once, Weak::Three);
}

#[test]
fn keys_may_lie_from_some_time_on() {
    lie(Fault::FromThenOn, Weak::Mixed);
    lie(Fault::FromThenOn, Weak::Constant);
}

/// A cache that is built and taken apart by keys that never tell the truth twice.
#[test]
fn keys_may_lie_all_the_time() {
    for hasher in [Weak::Mixed, Weak::Three, Weak::Constant] {
        for seed in 0..100 {
            let mut cache = full(hasher);
            STATE.set(seed << 32);
            let (_, panicked) = wrong_after(0, Fault::FromThenOn, || {
                ACTS.iter().chain(&ACTS[..12]).for_each(|(_, act)| act(&mut cache));
            });
            assert!(!panicked, "{hasher:?}, {seed}: a panic of ours");
            check_lied_to(cache, &format!("{hasher:?}, {seed}"));
        }
    }
}

/// Closures panic when they have been called this often.
#[test]
fn closures_may_panic() {
    type Closures = (&'static str, fn(&mut Cache, &dyn Fn()));
    let acts: [Closures; 3] = [
        ("a new value", |cache, burn| {
            for number in 900..950 {
                drop(cache.observe_with(&Lawless::new(number), TCP, seconds(50), || {
                    burn();
                    Value::default()
                }));
            }
        }),
        ("a burst", |cache, burn| {
            let burst: Vec<_> = (0..100).map(|number| (Lawless::new(number), TCP)).collect();
            cache.observe_batch(&burst, seconds(50), |_, observed| {
                burn();
                drop(observed);
            });
        }),
        ("an event", |cache, burn| {
            cache.advance(seconds(80), 100, |event| {
                burn();
                drop(event);
            });
        }),
    ];
    for (name, act) in acts {
        for good in 0..FLOWS {
            let mut cache = full(Weak::Mixed);
            let left = Cell::new(good);
            let burn = || match left.get() {
                0 => resume_unwind(Box::new("asked for")),
                more => left.set(more - 1),
            };
            let done = catch_unwind(AssertUnwindSafe(|| act(&mut cache, &burn)));
            check_behind(cache, &format!("{name}, call {good}"), 0);
            if done.is_ok() {
                break;
            }
        }
    }
}

#[test]
fn all_are_dropped_once() {
    let mut cache = full(Weak::Mixed);
    let image = || -> Image<Lawless, Value> {
        let mut cursor = Cursor::new();
        full(Weak::Mixed).page(&mut cursor, usize::MAX).collect()
    };
    assert!(cache.restore(image(), seconds(60)).is_err(), "the names are taken");
    ACTS.iter().for_each(|(_, act)| act(&mut cache));
    let mut other = full(Weak::Constant);
    let half = other.drain().take(FLOWS as usize / 2).count();
    assert_eq!((half, other.len()), (FLOWS as usize / 2, FLOWS as usize / 2));
    other.drain().for_each(drop);
    assert_eq!(other.restore(image(), seconds(60)), Ok(FLOWS as usize));
    assert_eq!(other.drain().take(7).filter(|left| left.value.0.is_alive()).count(), 7);
    drop(other);
    check(&cache, "in the end");
    drop(cache);
    assert_eq!(alive(), 0);
}
