//! `TrashMap` and the allocator: allocated memory, reported memory, and failed allocations. The
//! allocator of this program can be made to fail.

use core::fmt::Debug;
use std::collections::HashMap;

use flowtable::{DefaultHashBuilder, TrashMap};
use model::alloc;
use model::hashers::{Weak, mix};

/// Runs `act`, in which `allowed` allocations succeed and further ones fail.
fn with_allocations<R>(allowed: usize, act: impl FnOnce() -> R) -> R {
    // The first seed of a process allocates memory.
    drop(DefaultHashBuilder::new());
    alloc::with_allocations(allowed, act)
}

/// Zero-sized values, values in slots, and values in boxes.
trait Value: Clone + Debug + PartialEq {
    fn make(number: u64) -> Self;
}

impl Value for () {
    fn make(_: u64) -> Self {}
}

impl Value for u64 {
    fn make(number: u64) -> Self {
        number
    }
}

impl Value for [u64; 25] {
    fn make(number: u64) -> Self {
        [number; 25]
    }
}

type Map<V> = TrashMap<u64, V, Weak>;

fn map<V: Value>(hasher: Weak, count: u64) -> Map<V> {
    let mut map = TrashMap::with_hasher(hasher);
    map.extend((0..count).map(|key| (key, V::make(key))));
    map
}

fn check<V: Value>(map: &Map<V>, model: &HashMap<u64, V>) {
    map.validate().unwrap();
    assert_eq!((map.len(), map.iter().count()), (model.len(), model.len()));
    assert!(model.iter().all(|(key, value)| map.get(key) == Some(value)));
}

const MANY: u64 = if cfg!(miri) { 20 } else { 4000 };
/// The last one causes a reseeding.
const HASHERS: [Weak; 3] = [Weak::Mixed, Weak::TopHalf, Weak::Constant];

#[test]
#[cfg_attr(miri, ignore = "slow; covered by other tests")]
fn an_insertion_without_memory_returns_the_entry() {
    fn test<V: Value>(hasher: Weak) {
        let (mut map, mut model) = (Map::<V>::with_hasher(hasher), HashMap::new());
        let mut refused = 0;
        for key in 0..MANY {
            for allowed in 0.. {
                let value = V::make(key);
                let result = with_allocations(allowed, || map.try_insert(key, value));
                let Err(error) = result else {
                    assert_eq!(result, Ok(None));
                    break;
                };
                assert_eq!(error.refused, (key, V::make(key)));
                assert!(error.reason.bytes().is_some_and(|bytes| bytes > 0));
                assert!(allowed < 20, "{allowed} allocations for one insertion");
                assert_eq!((map.len(), map.get(&key)), (model.len(), None));
                refused += 1;
                if refused % 64 == 0 {
                    check(&map, &model);
                }
            }
            model.insert(key, V::make(key));
        }
        assert!(refused > 2, "{hasher:?}: {refused}");
        check(&map, &model);
        for key in 0..MANY {
            let value = V::make(key + 1);
            let result = with_allocations(0, || map.try_insert(key, value));
            assert_eq!(result, Ok(Some(V::make(key))), "overwriting allocates nothing");
        }
    }
    for hasher in HASHERS {
        test::<()>(hasher);
        test::<u64>(hasher);
        test::<[u64; 25]>(hasher);
    }
}

/// A map that cannot grow fills its last slots, and grows when memory is available again.
#[test]
#[cfg_attr(miri, ignore = "slow; covered by other tests")]
fn a_map_that_cannot_grow_is_used_until_it_is_full() {
    let (mut map, mut model): (Map<u64>, _) = (map(Weak::Mixed, MANY), HashMap::new());
    model.extend((0..MANY).map(|key| (key, key)));
    let slots = map.shape().slots;
    for key in MANY.. {
        match with_allocations(0, || map.try_insert(key, key)) {
            Ok(_) => assert_eq!(model.insert(key, key), None),
            Err(_) => break,
        }
    }
    check(&map, &model);
    let shape = map.shape();
    assert_eq!(shape.slots, slots);
    assert!(shape.load() > 0.7, "{shape:?}");
    for key in 1_000_000..1_000_000 + MANY {
        assert_eq!((map.insert(key, key), model.insert(key, key)), (None, None));
    }
    check(&map, &model);
    assert!(map.shape().load() < 0.85, "{:?}", map.shape());
    assert_eq!(map.reseeds(), 0, "a failed allocation is no flood");
}

#[test]
#[cfg_attr(miri, ignore = "slow; covered by other tests")]
fn removal_needs_no_memory() {
    fn test<V: Value>(hasher: Weak, count: u64) {
        let (mut map, mut model): (Map<V>, _) = (map(hasher, count), HashMap::new());
        model.extend((0..count).map(|key| (key, V::make(key))));
        for key in 0..count {
            let removed = with_allocations(0, || map.remove(&key));
            assert_eq!(removed, model.remove(&key));
            if key % 100 == 0 {
                check(&map, &model);
            }
        }
        check(&map, &model);
        map.insert(1, V::make(1));
        map.shrink_to_fit();
        assert!(map.allocation_size() < 5000, "the delayed shrinking has happened");
        map.remove(&1);
        map.validate().unwrap();
    }
    for hasher in HASHERS {
        // Some of these maps are migrating.
        for count in (60..200).chain([MANY]) {
            test::<()>(hasher, count);
            test::<u64>(hasher, count);
            test::<[u64; 25]>(hasher, count);
        }
    }
}

#[test]
fn retain_clear_and_drain_need_no_memory() {
    for count in if cfg!(miri) { vec![20] } else { vec![0, 1, 75, 140, MANY] } {
        for hasher in HASHERS {
            let mut map: Map<[u64; 25]> = map(hasher, count);
            with_allocations(0, || map.retain(|key, _| key % 2 == 0));
            map.validate().unwrap();
            assert_eq!(map.len() as u64, count.div_ceil(2));
            let mut clone = map.clone();
            with_allocations(0, || clone.clear());
            assert_eq!((clone.len(), clone.validate()), (0, Ok(())));
            assert_eq!(with_allocations(0, || map.drain().count()) as u64, count.div_ceil(2));
            map.validate().unwrap();
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow; covered by other tests")]
fn reserving_without_memory_changes_nothing() {
    for hasher in HASHERS {
        for count in [0, 1, 80, 140, MANY] {
            let mut refused = 0;
            let (mut map, mut model): (Map<u64>, _) = (map(hasher, count), HashMap::new());
            model.extend((0..count).map(|key| (key, key)));
            for allowed in 0..10_000 {
                let result = with_allocations(allowed, || map.try_reserve(5000));
                if result.is_ok() {
                    break;
                }
                refused += 1;
                map.validate().unwrap();
                assert_eq!(map.len(), model.len());
            }
            assert!(refused > 0);
            check(&map, &model);
            assert!(map.capacity() >= map.len() + 5000);
            let reserved = map.allocation_size();
            if hasher == Weak::Mixed {
                assert!((0..5000).all(|key| map.insert(key << 32 | 1 << 31, key).is_none()));
                assert_eq!(
                    map.allocation_size(),
                    reserved,
                    "reserved capacity needs no allocation"
                );
            }
        }
    }
}

#[test]
fn huge_reservations_are_refused() {
    for count in [0, 1, MANY] {
        let mut map: Map<u64> = map(Weak::Mixed, count);
        let before = map.allocation_size();
        let most = usize::MAX;
        let beyond =
            [most, most - 1, most - map.len(), most / 2, most / 3, most / 16, most / 25, 1 << 60];
        for absurd in beyond.into_iter().chain((50..64).map(|bits| 1 << bits)) {
            let error = map.try_reserve(absurd).unwrap_err();
            assert!(error.bytes().is_none_or(|bytes| bytes >= absurd), "{absurd}: {error}");
            assert_eq!((map.allocation_size(), map.len() as u64), (before, count), "{absurd}");
            map.validate().unwrap();
        }
        let mut none: TrashMap<(), ()> = TrashMap::new();
        assert!(none.try_reserve(usize::MAX).is_err());
        let mut large: Map<[u64; 25]> = TrashMap::with_hasher(Weak::Mixed);
        assert!(large.try_reserve(usize::MAX / 200).is_err());
    }
}

#[test]
#[should_panic(expected = "capacity overflow")]
fn reserving_more_than_there_are_addresses_panics() {
    Map::<u64>::default().reserve(usize::MAX);
}

#[test]
#[cfg_attr(miri, ignore = "slow; covered by other tests")]
fn the_allocation_size_is_what_is_allocated() {
    // The first seed of a process allocates memory.
    drop(DefaultHashBuilder::new());
    fn test<V: Value>(hasher: Weak) {
        let before = alloc::bytes();
        let allocated = || (alloc::bytes() - before) as usize;
        let mut map: Map<V> = TrashMap::with_hasher(hasher);
        assert_eq!((map.allocation_size(), allocated()), (0, 0));
        assert_eq!(map.remove(&1), None);
        assert_eq!((map.get(&1), map.iter().next()), (None, None));
        assert_eq!(allocated(), 0);
        for key in 0..MANY {
            map.insert(key, V::make(key));
            assert_eq!(map.allocation_size(), allocated(), "with {} entries", map.len());
        }
        let clone = map.clone();
        assert_eq!(map.allocation_size() + clone.allocation_size(), allocated());
        drop(clone);
        for key in 0..MANY {
            map.remove(&key);
            assert_eq!(map.allocation_size(), allocated(), "with {} entries left", map.len());
        }
        map.shrink_to_fit();
        assert_eq!((map.len(), map.allocation_size(), allocated()), (0, 0, 0));
        map.reserve(1000);
        assert_eq!(map.allocation_size(), allocated());
        drop(map);
        assert_eq!(allocated(), 0, "all memory is freed");
    }
    for hasher in HASHERS {
        test::<()>(hasher);
        test::<u64>(hasher);
        test::<[u64; 25]>(hasher);
    }
}

/// No operation needs a second table: a step allocates one or two segments, and sometimes the
/// directory, which has 16 bytes for some hundreds of entries.
#[test]
#[cfg_attr(miri, ignore = "slow")]
fn growth_and_shrinking_allocate_little_at_a_time() {
    let mut map: Map<u64> = TrashMap::with_hasher(Weak::Mixed);
    let mut most = 0;
    let mut measured = |map: &mut Map<u64>, act: &dyn Fn(&mut Map<u64>)| {
        most = most.max(alloc::measure(|| act(map)).1.peak);
    };
    for key in 0..200_000 {
        measured(&mut map, &|map| assert_eq!(map.insert(mix(key), key), None));
    }
    for key in 0..200_000 {
        measured(&mut map, &|map| assert_eq!(map.remove(&mix(key)), Some(key)));
    }
    assert!(map.is_empty());
    assert!(most < 160 << 10, "{most} bytes for one step");
}
