//! What has to be dropped is dropped once, whatever panics.

use super::*;

const KEYS: u64 = 200;

type Sets<const WAYS: usize> = SourceHashCache<Counted, Counted, WAYS>;

fn put<const WAYS: usize>(cache: &mut Sets<WAYS>, key: u64) -> Inserted<Counted, Counted> {
    cache.insert(index(key), Counted::new(key), Counted::new(key))
}

/// What is in the cache is alive and where it belongs.
fn check<const WAYS: usize>(cache: &Sets<WAYS>) {
    cache.validate().unwrap();
    for (key, value) in cache.iter() {
        assert!(key.is_alive() && value.is_alive() && key.number == value.number);
        assert_eq!(cache.peek(index(key.number), key).map(|it| it.number), Some(key.number));
    }
}

/// The same, and nothing else is alive.
fn check_all<const WAYS: usize>(cache: &Sets<WAYS>) {
    check(cache);
    assert_eq!(alive(), 2 * cache.len());
}

/// Goes each way that an entry can take.
fn drop_all_ways<const WAYS: usize>(replacement: Replacement) {
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
    // What is cleared is dropped when its set is used next.
    let before = alive();
    cache.clear();
    cache.clear();
    check(&cache);
    assert_eq!((alive(), cache.len()), (before, 0));
    for key in (0..KEYS).map(Counted::new) {
        assert!(cache.remove(index(key.number), &key).is_none());
    }
    cache.retain(|_, _| unreachable!("there is nothing"));
    assert_eq!(alive(), before);
    (0..KEYS).for_each(|key| drop(put(&mut cache, key)));
    check_all(&cache);
    // Some are of the past when all of it is dropped.
    cache.clear();
    (0..KEYS / 10).for_each(|key| drop(put(&mut cache, key)));
    drop(cache);
    assert_eq!(alive(), 0);
}

#[cfg_attr(miri, ignore = "it takes minutes")]
#[test]
fn each_entry_is_dropped_once() {
    for replacement in REPLACEMENTS {
        drop_all_ways::<1>(replacement);
        drop_all_ways::<2>(replacement);
        drop_all_ways::<3>(replacement);
        drop_all_ways::<8>(replacement);
    }
}

/// Things are done to a cache, which may panic anywhere.
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
    cache.get_batch(&indices, &keys, &mut [None, None, None]);
    cache.get_batch_mut(&indices, &keys, |_, found| {
        if let Some(found) = found {
            *found = Counted::new(found.number);
        }
    });
    drop(cache.remove(indices[1], &keys[1]));
    cache.retain(|key, _| key.number % 3 != 0);
    cache.clear();
    (0..8).for_each(|key| drop(put(cache, key)));
}

/// As many as may be lost: the language forgets what is about to be returned when the drop of something else panics.
fn lost(callback: Callback) -> usize {
    usize::from(callback == Callback::Drop)
}

/// Has each callback of this kind panic. What is in the cache stays good, and all else is dropped.
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
                assert!(good > 5, "some have panicked");
                break;
            }
        }
    }
}

#[cfg_attr(miri, ignore = "it takes minutes")]
#[test]
fn a_panic_of_eq_or_drop_leaves_a_good_cache() {
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
fn a_panic_of_a_closure_leaves_a_good_cache() {
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
        cache.get_batch_mut(&indices, &keys, |number, _| {
            if number == 4 {
                panic_quietly();
            }
        });
    });
    let Statistics { hits, misses, .. } = cache.statistics();
    assert_eq!(hits + misses, 6, "one missed before, and the fifth of six was looked up");
    drop(keys);
    check_all(&cache);
}

/// Memory may be leaked, and nothing is dropped twice.
#[cfg_attr(miri, ignore = "leaks")]
#[test]
fn a_panic_of_clone_or_of_the_last_drop_does_no_harm() {
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

type Chains = ChainedCache<Counted, Counted, Lru, Weak>;

fn check_chains(cache: &Chains) {
    cache.validate().unwrap();
    for (key, value) in cache.iter() {
        assert!(key.is_alive() && value.is_alive() && key.number == value.number);
    }
}

fn work_in_chains(cache: &mut Chains) {
    for key in 0..12 {
        drop(cache.insert(Counted::new(key), Counted::new(key)));
        let key = Counted::new(key / 2);
        _ = cache.get_or_insert_with(key, |key| Counted::new(key.number));
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
fn chains_stay_good_whatever_panics() {
    for callback in [Callback::Hash, Callback::Eq, Callback::Drop, Callback::Clone] {
        for good in 0.. {
            let config = ChainedConfig::new(6).and_then(|it| it.with_elasticity(3)).unwrap();
            let mut cache = Chains::with_parts(config, Lru::new(), Weak::Three).unwrap();
            let is_done = with_panic(callback, good, || work_in_chains(&mut cache)).is_some();
            check_chains(&cache);
            work_in_chains(&mut cache);
            check_chains(&cache);
            drop(cache);
            assert!(alive() <= lost(callback), "{callback:?} after {good}");
            forget_leaked();
            if is_done {
                assert!(good > 5, "some have panicked");
                break;
            }
        }
    }
}

/// More than a line apart.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(align(128))]
struct Wide(Box<u32>);

/// Each way that an entry can go, once: little enough for Miri, which sees what is leaked, dropped twice or not there.
fn go_each_way<K: Clone + Eq, const WAYS: usize>(replacement: Replacement, make: fn(u32) -> K) {
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
    cache.get_batch(&indices, &keys, &mut found);
    assert_eq!(found.map(|found| found.map(|value| **value)), [Some(most), Some(most - 1), None]);
    cache.get_batch_mut(&indices, &keys, |_, found| found.into_iter().for_each(|it| **it += 1));
    let mut found = [None; 3];
    cache.peek_batch(&indices, &keys, &mut found);
    assert_eq!(found[1].map(|value| **value), Some(most));
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
fn each_way_that_an_entry_can_go() {
    go_each_way::<Box<u32>, 1>(Replacement::SecondChance, Box::new);
    go_each_way::<Box<u32>, 2>(Replacement::Oldest, Box::new);
    go_each_way::<Box<u32>, 3>(Replacement::LeastRecentlyUsed, Box::new);
    go_each_way::<Wide, 2>(Replacement::SecondChance, |key| Wide(Box::new(key)));
}
