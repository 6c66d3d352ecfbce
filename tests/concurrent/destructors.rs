//! Destructors of garbage, and of thread-locals, that use concurrent structures.

use std::cell::RefCell;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{TryRecvError, channel};
use std::thread;

use flowtable::ConcurrentMap;
use flowtable::concurrent::pin;
use model::threads::eventually;

/// A value that inserts another one with its key when it is dropped, as often as the counter
/// allows.
struct Reinserted(u64, u32);

static REINSERTED: LazyLock<ConcurrentMap<u64, Reinserted>> =
    LazyLock::new(|| ConcurrentMap::new().with_garbage_limit(usize::MAX, 0));

impl Drop for Reinserted {
    fn drop(&mut self) {
        let Self(key, times) = *self;
        if times > 0 && REINSERTED.pin().insert(key, Self(key, times - 1)).is_err() {
            unreachable!("garbage is unlimited");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn destructors_that_write_do_not_nest() {
    let many = 100_000;
    let pin = REINSERTED.pin();
    (0..many).for_each(|key| assert!(pin.insert(key, Reinserted(key, 3)).is_ok()));
    // No value is dropped under this pin. Then all are, and each one inserts and retires another.
    (0..many).for_each(|key| assert!(pin.insert(key, Reinserted(key, 3)).is_ok()));
    drop(pin);
    (0..many / 10).for_each(|_| REINSERTED.pin().flush());
    assert_eq!(REINSERTED.len() as u64, many);
}

/// A map with more garbage than its limit as soon as it is cleared.
static LIMITED: LazyLock<ConcurrentMap<u64, u64>> =
    LazyLock::new(|| (0..100).zip(0..).collect::<ConcurrentMap<_, _>>().with_garbage_limit(100, 0));

static IS_CLEARED: AtomicBool = AtomicBool::new(false);

/// A value that clears the limited map when it is dropped.
struct Clears;

impl Drop for Clears {
    fn drop(&mut self) {
        LIMITED.pin().clear();
        IS_CLEARED.store(true, Ordering::Release);
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn what_a_destructor_retires_is_not_left_to_a_reader() {
    let map = ConcurrentMap::new();
    // It delays the destructor until another thread reads.
    let guard = pin();
    map.pin().insert(0, Clears).unwrap();
    map.pin().clear();
    let (done, is_done) = channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            let is_over = || is_done.try_recv() == Err(TryRecvError::Disconnected);
            while !IS_CLEARED.load(Ordering::Acquire) && !is_over() {
                _ = pin();
                thread::yield_now();
            }
            // This thread retires nothing more, but it lives on.
            assert!(is_done.recv().is_err());
        });
        drop(guard);
        eventually("an insertion is not refused", || {
            IS_CLEARED.load(Ordering::Acquire) && LIMITED.pin().insert(7, 7).is_ok()
        });
        drop(done);
    });
}

/// A thread-local that reads a map by a guard when its thread ends.
struct Reads(&'static ConcurrentMap<u64, u64>);

impl Drop for Reads {
    fn drop(&mut self) {
        let mut guard = pin();
        for _ in 0..300 {
            assert_eq!(self.0.pinned(&guard).get(&1), Some(&2));
            guard.repin();
            assert_eq!(self.0.pin().get(&1), Some(&2));
        }
    }
}

thread_local! {
    static FIRST: RefCell<Option<Reads>> = const { RefCell::new(None) };
    static LAST: RefCell<Option<Reads>> = const { RefCell::new(None) };
}

#[test]
fn guards_work_while_a_thread_ends() {
    static MAP: LazyLock<ConcurrentMap<u64, u64>> = LazyLock::new(|| ConcurrentMap::from([(1, 2)]));
    // By this thread, as that pins.
    LazyLock::force(&MAP);
    let ends = thread::spawn(|| {
        // One of them is dropped after what this crate has in thread-locals.
        FIRST.set(Some(Reads(&MAP)));
        drop((pin(), pin()));
        LAST.set(Some(Reads(&MAP)));
    });
    ends.join().unwrap();
}

/// A map whose values write to it when they are dropped.
static ENDING: LazyLock<ConcurrentMap<u64, WritesAgain>> =
    LazyLock::new(|| ConcurrentMap::new().with_garbage_limit(usize::MAX, 0));

static DROPPED: AtomicU64 = AtomicU64::new(0);

struct WritesAgain(u64);

impl Drop for WritesAgain {
    fn drop(&mut self) {
        ENDING.pin().remove(&self.0);
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

/// A thread-local that helps the collector when its thread ends.
struct Flushes;

impl Drop for Flushes {
    fn drop(&mut self) {
        (0..MANY).for_each(|_| ENDING.pin().flush());
    }
}

const MANY: u64 = 5000;

thread_local! {
    static FLUSHES: RefCell<Option<Flushes>> = const { RefCell::new(None) };
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn destructors_do_not_nest_while_a_thread_ends() {
    let guard = pin();
    for key in 0..MANY {
        ENDING.pin().insert(key, WritesAgain(key)).unwrap();
        ENDING.pin().clear();
    }
    let ends = thread::spawn(move || {
        // Dropped after what this crate has in thread-locals.
        FLUSHES.set(Some(Flushes));
        drop(pin());
    });
    drop(guard);
    ends.join().unwrap();
    eventually("all values are dropped", || {
        ENDING.pin().flush();
        DROPPED.load(Ordering::Relaxed) == MANY
    });
}
