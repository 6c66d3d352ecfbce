//! Every key and value is dropped exactly once, even if callbacks panic.

use super::*;

const KEYS: u64 = 200;

type Sets<const WAYS: usize> = SourceHashCache<Counted, Counted, WAYS>;

fn put<const WAYS: usize>(cache: &mut Sets<WAYS>, key: u64) -> Inserted<Counted, Counted> {
    cache.insert(index(key), Counted::new(key), Counted::new(key))
}

/// Checks that every entry is alive and found by its key.
fn check<const WAYS: usize>(cache: &Sets<WAYS>) {
    cache.validate().unwrap();
    for (key, value) in cache {
        assert!(key.is_alive() && value.is_alive() && key.number == value.number);
        assert_eq!(cache.peek(index(key.number), key).map(|it| it.number), Some(key.number));
    }
}

/// [`check`], and that no other counted object is alive.
fn check_all<const WAYS: usize>(cache: &Sets<WAYS>) {
    check(cache);
    assert_eq!(alive(), 2 * cache.len());
}

/// Lets entries leave the cache by every operation that drops entries.
fn drop_by_every_operation<const WAYS: usize>(replacement: Replacement) {
    let mut cache = Sets::<WAYS>::new(40).unwrap().with_replacement(replacement);
    for key in 0..KEYS {
        let Inserted { previous, evicted } = put(&mut cache, key);
        assert!(
            previous.is_none() && evicted.is_none_or(|(key, it)| key.is_alive() && it.is_alive())
        );
        check_all(&cache);
    }
    for key in (0..KEYS).rev() {
        assert!(put(&mut cache, key).previous.is_none_or(|it| it.is_alive() && it.number == key));
        let made = cache.get_or_insert_with(index(key / 2), Counted::new(key / 2), |key| {
            Counted::new(key.number)
        });
        assert_eq!(made.number, key / 2);
        check_all(&cache);
    }
    for key in (0..KEYS).step_by(3).map(Counted::new) {
        assert!(cache.remove(index(key.number), &key).is_none_or(|it| it.is_alive()));
        drop(key);
        check_all(&cache);
    }
    cache.retain(|key, _| key.number % 4 != 0);
    check_all(&cache);
    let mut clone = cache.clone();
    assert_eq!((alive(), clone.len()), (4 * cache.len(), cache.len()));
    (0..KEYS).for_each(|key| drop(put(&mut clone, key)));
    check(&clone);
    drop(clone);
    check_all(&cache);
    // Cleared entries are dropped when their set is used next.
    let before = alive();
    cache.clear();
    cache.clear();
    check(&cache);
    assert_eq!((alive(), cache.len()), (before, 0));
    for key in (0..KEYS).map(Counted::new) {
        assert!(cache.remove(index(key.number), &key).is_none());
    }
    cache.retain(|_, _| unreachable!("the cache is empty"));
    assert_eq!(alive(), before);
    (0..KEYS).for_each(|key| drop(put(&mut cache, key)));
    check_all(&cache);
    // Some entries are cleared but not yet dropped when the cache is dropped.
    cache.clear();
    (0..KEYS / 10).for_each(|key| drop(put(&mut cache, key)));
    drop(cache);
    assert_eq!(alive(), 0);
}

#[cfg_attr(miri, ignore = "it takes minutes")]
#[test]
fn each_entry_is_dropped_once() {
    for replacement in REPLACEMENTS {
        drop_by_every_operation::<1>(replacement);
        drop_by_every_operation::<2>(replacement);
        drop_by_every_operation::<3>(replacement);
        drop_by_every_operation::<8>(replacement);
    }
}

/// Runs every operation on a cache; any callback may panic.
fn work<const WAYS: usize>(cache: &mut Sets<WAYS>) {
    (0..8).for_each(|key| drop(put(cache, key)));
    (4..12).for_each(|key| drop(put(cache, key)));
    for key in [11, 3, 20].map(Counted::new) {
        let found = cache.get_mut(index(key.number), &key);
        assert!(found.is_none_or(|found| found.number == key.number));
        _ = cache.get_or_insert_with(index(key.number), key, |key| Counted::new(key.number));
    }
    let keys = [10, 11, 12].map(Counted::new);
    let indices = keys.each_ref().map(|key| index(key.number));
    cache.get_batch(indices.into_iter().zip(&keys), |_, _| ());
    cache.get_batch_mut(indices.into_iter().zip(&keys), |_, found| {
        if let Some(found) = found {
            *found = Counted::new(found.number);
        }
    });
    drop(cache.remove(indices[1], &keys[1]));
    cache.retain(|key, _| key.number % 3 != 0);
    cache.clear();
    (0..8).for_each(|key| drop(put(cache, key)));
}

/// The largest number of objects that may leak: a return value is leaked when the drop of another
/// object panics.
fn lost(callback: Callback) -> usize {
    usize::from(callback == Callback::Drop)
}

/// Lets each callback of this kind panic. The cache stays valid, and all other objects are dropped.
fn panic_everywhere<const WAYS: usize>(callback: Callback) {
    for replacement in REPLACEMENTS {
        for good in 0.. {
            let mut cache = Sets::<WAYS>::new(6).unwrap().with_replacement(replacement);
            let is_done = with_panic(callback, good, || work(&mut cache)).is_some();
            check(&cache);
            work(&mut cache);
            check(&cache);
            drop(cache);
            assert!(alive() <= lost(callback), "{callback:?} after {good}, {replacement:?}");
            forget_leaked();
            if is_done {
                assert!(good > 5, "some callbacks have panicked");
                break;
            }
        }
    }
}

#[cfg_attr(miri, ignore = "it takes minutes")]
#[test]
fn a_panic_of_eq_or_drop_leaves_a_valid_cache() {
    for callback in [Callback::Eq, Callback::Drop] {
        panic_everywhere::<1>(callback);
        panic_everywhere::<2>(callback);
        panic_everywhere::<4>(callback);
    }
}

/// A panic without a message.
fn panic_quietly() -> ! {
    resume_unwind(Box::new(()))
}

#[test]
fn a_panic_of_a_closure_leaves_a_valid_cache() {
    fn caught(act: impl FnOnce()) {
        assert!(catch_unwind(AssertUnwindSafe(act)).is_err());
    }
    let mut cache = Sets::<2>::new(8).unwrap();
    (0..6).for_each(|key| drop(put(&mut cache, key)));
    let mut expected = cache.statistics();
    expected.misses += 1;
    caught(|| _ = cache.get_or_insert_with(index(90), Counted::new(90), |_| panic_quietly()));
    assert_eq!(cache.statistics(), expected);
    check_all(&cache);
    let len = cache.len();
    let mut calls = 0;
    caught(|| {
        cache.retain(|_, _| {
            calls += 1;
            if calls == 3 { panic_quietly() } else { false }
        });
    });
    assert_eq!(cache.len(), len - 2);
    check_all(&cache);
    let keys = [0, 1, 2, 3, 4, 5].map(Counted::new);
    let indices = keys.each_ref().map(|key| index(key.number));
    caught(|| {
        cache.get_batch_mut(indices.into_iter().zip(&keys), |number, _| {
            if number == 4 {
                panic_quietly();
            }
        });
    });
    let Statistics { hits, misses, .. } = cache.statistics();
    assert_eq!(hits + misses, 6, "one miss before, and the fifth of six keys was looked up");
    drop(keys);
    check_all(&cache);
}

/// Memory may leak, and no object is dropped twice.
#[cfg_attr(miri, ignore = "leaks")]
#[test]
fn a_panic_of_clone_or_of_the_last_drop_only_leaks() {
    for good in 0..20 {
        let mut cache = Sets::<3>::new(12).unwrap();
        (0..12).for_each(|key| drop(put(&mut cache, key)));
        let clone = with_panic(Callback::Clone, good, || cache.clone());
        assert_eq!(clone.is_some(), good as usize >= 2 * cache.len());
        check(&cache);
        clone.iter().for_each(check);
        drop(clone);
        assert!(alive() <= 2 * cache.len() + good as usize);
        let is_done = with_panic(Callback::Drop, good, || drop(cache)).is_some();
        alive();
        forget_leaked();
        assert!(good > 0 || !is_done);
    }
}

type Chains = BoundedCache<Counted, Counted, Lru, Weak>;

fn check_chains(cache: &Chains) {
    cache.validate().unwrap();
    for (key, value) in cache {
        assert!(key.is_alive() && value.is_alive() && key.number == value.number);
    }
}

fn work_in_chains(cache: &mut Chains) {
    for key in 0..12 {
        drop(cache.insert(Counted::new(key), Counted::new(key)));
        let key = Counted::new(key / 2);
        _ = cache.get_or_insert_with(&key, |key| Counted::new(key.number));
    }
    let keys = [9, 10, 11].map(Counted::new);
    cache.get_batch_mut(&keys, |_, found| {
        if let Some(found) = found {
            *found = Counted::new(found.number);
        }
    });
    drop(cache.remove(&keys[1]));
    cache.retain(|key, _| key.number % 3 != 0);
    drop(cache.clone());
    cache.clear();
    drop(cache.insert(Counted::new(1), Counted::new(1)));
}

#[cfg_attr(miri, ignore = "it takes minutes")]
#[test]
fn chains_stay_valid_if_any_callback_panics() {
    for callback in [Callback::Hash, Callback::Eq, Callback::Drop, Callback::Clone] {
        for good in 0.. {
            let mut cache = Chains::with_parts(6, Lru::new(), Weak::Three).unwrap();
            let is_done = with_panic(callback, good, || work_in_chains(&mut cache)).is_some();
            check_chains(&cache);
            work_in_chains(&mut cache);
            check_chains(&cache);
            drop(cache);
            assert!(alive() <= lost(callback), "{callback:?} after {good}");
            forget_leaked();
            if is_done {
                assert!(good > 5, "some callbacks have panicked");
                break;
            }
        }
    }
}

/// Larger than a cache line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(align(128))]
struct Wide(Box<u32>);

/// Lets an entry leave by each operation once: short enough for Miri, which detects leaks, double
/// drops and uninitialised reads.
fn leave_by_each_operation<K: Clone + Eq, const WAYS: usize>(
    replacement: Replacement,
    make: fn(u32) -> K,
) {
    let at = |key: u32| SourceIndex::new(key % 2);
    let cache: SourceHashCache<K, Box<u32>, WAYS> = SourceHashCache::new(2 * WAYS).unwrap();
    let mut cache = cache.with_replacement(replacement);
    let most = 2 * WAYS as u32 + 2;
    for key in (0..most).chain([most - 1]) {
        drop(cache.insert(at(key), make(key), Box::new(key)));
        assert_eq!(**cache.get_or_insert_with(at(key), make(key), |_| Box::new(0)), key);
    }
    assert_eq!(cache.len(), 2 * WAYS);
    assert_eq!(**cache.get_or_insert_with(at(most), make(most), |_| Box::new(most)), most);
    let names = [most, most - 1, 0];
    let (indices, keys, mut found) = (names.map(at), names.map(make), [None; 3]);
    let queries = indices.iter().copied().zip(&keys);
    cache.get_batch(queries.clone(), write_to(&mut found));
    assert_eq!(found.map(|found| found.map(|value| **value)), [Some(most), Some(most - 1), None]);
    cache.get_batch_mut(queries, |_, found| found.into_iter().for_each(|it| **it += 1));
    assert_eq!(cache.peek(indices[1], &keys[1]).map(|value| **value), Some(most));
    assert_eq!(cache.remove(indices[1], &keys[1]), Some(Box::new(most)));
    let panics =
        AssertUnwindSafe(|| _ = cache.get_or_insert_with(at(0), make(0), |_| panic_quietly()));
    assert!(catch_unwind(panics).is_err());
    cache.retain(|_, value| **value % 4 != 0);
    cache.validate().unwrap();
    let (clone, len) = (cache.clone(), cache.len());
    cache.clear();
    drop(cache.insert(at(0), make(0), Box::new(0)));
    assert_eq!((cache.iter().count(), clone.iter().count()), (1, len));
}

#[test]
fn an_entry_leaves_by_each_operation_without_a_leak() {
    leave_by_each_operation::<Box<u32>, 1>(Replacement::SecondChance, Box::new);
    leave_by_each_operation::<Box<u32>, 2>(Replacement::Oldest, Box::new);
    leave_by_each_operation::<Box<u32>, 3>(Replacement::LeastRecentlyUsed, Box::new);
    leave_by_each_operation::<Wide, 2>(Replacement::SecondChance, |key| Wide(Box::new(key)));
}
