//! T6 and T7 of `ConcurrentLcTrie`: keys that panic, that use the trie, or whose bits are
//! inconsistent, and values that panic when they are dropped.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use ::model::bit_strings::{Inconsistent, Panicking, with_call, with_panic_after};
use ::model::drop_record::{DropRecord, Token};
use ::model::hashers::mix;
use ::model::scaled;
use ::model::threads::eventually;
use flowtable::concurrent::{ConcurrentLcTrie, ConcurrentMap};
use flowtable::trie::Tuning;

/// Runs `act`, in which `window` panics after `calls` calls. Returns whether it has panicked.
fn panics<R>(calls: u64, act: impl FnOnce() -> R) -> bool {
    with_panic_after(Some(calls), act).is_err()
}

/// Drops that were under a lock.
static UNDER_LOCK: AtomicUsize = AtomicUsize::new(0);

/// A value that writes to a map when it is dropped, which a thread with a lock must not.
#[derive(Debug)]
struct Writing {
    number: u64,
    _token: Token,
}

impl Drop for Writing {
    fn drop(&mut self) {
        let map = ConcurrentMap::<u64, ()>::new();
        let write = || map.pin().insert(1, ()).is_ok();
        if catch_unwind(AssertUnwindSafe(write)).is_err() {
            UNDER_LOCK.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Operations in which keys panic, at each call in turn.
fn t7_with(tuning: Tuning, drops: &'static DropRecord) {
    let trie = ConcurrentLcTrie::<Panicking, Writing>::with_tuning(tuning);
    let trie = trie.with_garbage_limit(usize::MAX, 0);
    let mut model = BTreeMap::new();
    let mut count = 0;
    for number in 0..scaled(6000, 1200, 60) {
        let pinned = trie.pin();
        // Filled, and emptied.
        let at = Panicking(mix(number % 300) as u32);
        let is_removal = number / 600 % 2 == 1;
        let calls = mix(number) % 12;
        let has_panicked = if is_removal {
            panics(calls, || _ = pinned.remove(&at))
        } else {
            panics(calls, || {
                let value = Writing { number, _token: drops.token() };
                _ = pinned.insert(at, value);
            })
        };
        count += usize::from(has_panicked);
        let was = model.get(&at.0).copied();
        let is = pinned.get(&at).map(|value| value.number);
        let done = (!is_removal).then_some(number);
        assert!(is == done || has_panicked && is == was, "T7: was {was:?}, is {is:?}");
        match is {
            Some(number) => _ = model.insert(at.0, number),
            None => _ = model.remove(&at.0),
        }
        assert_eq!(trie.len(), model.len(), "T7");
        trie.validate().unwrap();
        if number % 16 == 0 {
            let found = pinned.iter().map(|(key, value)| (key.0, value.number));
            assert!(found.eq(model.iter().map(|(&key, &number)| (key, number))), "T7");
        }
    }
    assert!(count > scaled(500, 100, 0), "{count} panics");
    flush_until(|| trie.garbage() == 0 && drops.alive() == trie.len());
    drop(trie);
    assert_eq!((drops.alive(), UNDER_LOCK.load(Ordering::Relaxed)), (0, 0), "T7");
}

/// Helps the collector, on which other tests depend, too, until a condition holds.
pub(super) fn flush_until(mut is_done: impl FnMut() -> bool) {
    let trie = ConcurrentLcTrie::<u8, ()>::new();
    eventually("garbage is freed", || {
        trie.pin().flush();
        is_done()
    });
}

#[test]
fn t7_when_a_key_panics_lookups_go_on() {
    static DROPS: [DropRecord; 2] = [const { DropRecord::new() }; 2];
    t7_with(Tuning::default(), &DROPS[0]);
    t7_with(Tuning::TRASH_2006, &DROPS[1]);
}

#[test]
fn t6_lookups_take_no_lock() {
    let trie = Arc::new(ConcurrentLcTrie::<Panicking, u32>::new());
    (0..20).for_each(|at| assert!(trie.pin().insert(Panicking(at), at).is_ok()));
    let reader = Arc::clone(&trie);
    let read = move || {
        let pinned = reader.pin();
        assert!((0..20).all(|at| pinned.get(&Panicking(at)) == Some(&at)));
        assert_eq!((pinned.iter().count(), reader.len()), (20, 20));
    };
    // Another thread reads while this one has the lock.
    let read = move || thread::spawn(read).join().unwrap();
    let insert = || trie.pin().insert(Panicking(7), 70).unwrap().copied();
    assert_eq!(with_call(read, insert).unwrap(), (Some(7), true));
}

#[test]
fn t7_a_write_in_a_write_panics_and_does_not_hang() {
    let trie = Arc::new(ConcurrentLcTrie::<Panicking, u32>::new());
    trie.pin().insert(Panicking(1), 1).unwrap();
    let inner = Arc::clone(&trie);
    let write = move || {
        assert_eq!(inner.pin().get(&Panicking(1)), Some(&1));
        // Without the panic hook, which would print it.
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| ()));
        let result = catch_unwind(AssertUnwindSafe(|| _ = inner.pin().insert(Panicking(2), 2)));
        std::panic::set_hook(hook);
        std::panic::resume_unwind(result.unwrap_err());
    };
    let outer = with_call(write, || _ = trie.pin().insert(Panicking(3), 3));
    assert!(outer.is_err() && trie.len() == 1);
    assert_eq!(trie.pin().insert(Panicking(3), 3), Ok(None));
    trie.validate().unwrap();
}

#[test]
fn an_entry_that_is_replaced_meanwhile_is_retained() {
    let trie: ConcurrentLcTrie<u32, u32> = (0..200).map(|key| (key, key)).collect();
    trie.pin().retain(|key, value| {
        assert_eq!(key, value);
        match key % 4 {
            // By an equal value, by none, and by one for a removed entry.
            0 => assert_eq!(trie.pin().insert(*key, *key).unwrap(), Some(key)),
            1 => assert_eq!(trie.pin().remove(key), Some(key)),
            2 => {
                assert_eq!(trie.pin().remove(key), Some(key));
                assert_eq!(trie.pin().insert(*key, *key).unwrap(), None);
            }
            _ => {}
        }
        false
    });
    trie.validate().unwrap();
    assert!(trie.pin().iter().map(|(key, _)| key).eq((0..200).filter(|key| key % 2 == 0)));
}

#[test]
fn t7_a_removal_whose_closure_panics_has_removed_what_it_had_rejected() {
    for at in [0, 1, 63, 64, 65, 150] {
        let trie: ConcurrentLcTrie<u32, u32> = (0..200).map(|key| (key, key)).collect();
        let retain =
            || trie.pin().retain(|key, _| if *key == at { panic!("in a test") } else { false });
        assert!(catch_unwind(AssertUnwindSafe(retain)).is_err());
        trie.validate().unwrap();
        assert!(trie.pin().iter().map(|(key, _)| key).eq(at..200));
    }
}

/// Whatever has been removed then, the others stay.
#[test]
fn t7_a_key_may_panic_while_entries_are_retained() {
    static DROPS: DropRecord = DropRecord::new();
    let mut count = 0;
    for calls in (0..4000).step_by(if cfg!(miri) { 900 } else { 37 }) {
        let trie = ConcurrentLcTrie::<Panicking, Token>::new();
        (0..100).for_each(|at| assert!(trie.pin().insert(Panicking(at), DROPS.token()).is_ok()));
        count += usize::from(panics(calls, || trie.pin().retain(|key, _| key.0 % 3 == 0)));
        trie.validate().unwrap();
        let pinned = trie.pin();
        assert!((0..100).step_by(3).all(|at| pinned.contains_key(&Panicking(at))));
        assert!(pinned.iter().count() == trie.len() && pinned.iter().all(|(_, it)| it.is_alive()));
    }
    assert!(count > 0);
    flush_until(|| DROPS.alive() == 0);
}

/// Operations may lose keys and panic, but they terminate, and drop each value once.
#[test]
fn operations_on_keys_with_inconsistent_bits_terminate() {
    static DROPS: DropRecord = DropRecord::new();
    let trie = ConcurrentLcTrie::<Inconsistent, Token>::new();
    for number in 0..if cfg!(miri) { 20 } else { 2000 } {
        let key = Inconsistent(mix(number % 400));
        let pinned = trie.pin();
        let _ = catch_unwind(AssertUnwindSafe(|| {
            assert!(pinned.insert(key, DROPS.token()).is_ok());
            assert!(pinned.get(&key).is_none_or(Token::is_alive));
            if number % 3 == 0 {
                _ = pinned.remove(&Inconsistent(mix(number % 100)));
            }
        }));
    }
    assert!(trie.pin().iter().all(|(_, token)| token.is_alive()));
    drop(trie);
    flush_until(|| DROPS.alive() == 0);
}
