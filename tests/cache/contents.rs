//! Entries, memory and hostile indices of the caches.

mod dropping;
mod duplicates;

use core::cell::Cell;
use core::hash::{BuildHasherDefault, Hash, Hasher};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use flowtable::cache::{
    CacheError, CallVerdict, DuplicateFilter, Inserted, Replacement, Statistics,
};
use flowtable::eviction::{
    ByClass, EntryStats, Eviction, Lru, Passive, PassiveGc, Random, SecondChance,
};
use flowtable::hash::IdHasher;
use flowtable::hash::source_index::SourceIndex;
#[cfg(feature = "papers")]
use flowtable::papers::hash::{Crc8Pair, Crc16, Crc32, Fletcher16, XorFold8, XorFold16};
use flowtable::{
    BoundedCache, DefaultHashBuilder, Prehashed, SourceHashCache, Timestamp, write_to,
};
use model::alloc;
use model::counted::{Callback, Counted, alive, forget_leaked, with_panic};
use model::hashers::{Weak, mix};

const REPLACEMENTS: [Replacement; 3] =
    [Replacement::SecondChance, Replacement::LeastRecentlyUsed, Replacement::Oldest];

/// The result of `act`, its number of allocations, and the bytes that stay allocated.
fn measured<R>(act: impl FnOnce() -> R) -> (R, usize, usize) {
    let (result, usage) = alloc::measure(act);
    (result, usage.allocations, usage.kept as usize)
}

fn index(key: u64) -> SourceIndex {
    // Each index belongs to two keys.
    SourceIndex::new(mix(key / 2) as u32)
}

// Sizes.

#[test]
fn the_number_of_sets_is_a_power_of_two() {
    fn capacities<const WAYS: usize>() -> [usize; 6] {
        [1, 2, 3, 8, 9, 1000].map(|capacity| {
            let cache = SourceHashCache::<u32, u32, WAYS>::new(capacity).unwrap();
            assert!(cache.capacity() >= capacity && cache.is_empty());
            cache.capacity()
        })
    }
    assert_eq!(capacities::<1>(), [1, 2, 4, 8, 16, 1024]);
    assert_eq!(capacities::<2>(), [2, 2, 4, 8, 16, 1024]);
    assert_eq!(capacities::<3>(), [3, 3, 3, 12, 12, 1536]);
    assert_eq!(capacities::<7>(), [7, 7, 7, 14, 14, 1792]);
    assert_eq!(capacities::<8>(), [8, 8, 8, 8, 16, 1024]);
}

/// The table in the documentation of the type, and the rows between.
#[test]
fn the_ways_per_cache_line_are_those_of_the_table() {
    fn ways<const SIZE: usize>() -> usize {
        SourceHashCache::<[u8; SIZE], ()>::WAYS_PER_CACHE_LINE
    }
    assert_eq!([ways::<4>(), ways::<5>(), ways::<6>(), ways::<12>()], [8, 7, 6, 4]);
    assert_eq!([ways::<13>(), ways::<17>(), ways::<18>(), ways::<28>()], [3, 3, 2, 2]);
    assert_eq!([ways::<29>(), ways::<60>(), ways::<61>(), ways::<5000>()], [1, 1, 1, 1]);

    fn bytes<const SIZE: usize, const WAYS: usize>() -> usize {
        let cache = SourceHashCache::<[u8; SIZE], (), WAYS>::new(64).unwrap();
        cache.allocation_size() / cache.capacity()
    }
    assert_eq!([bytes::<60, 1>(), bytes::<28, 1>(), bytes::<16, 1>()], [64, 32, 21]);
    assert_eq!(
        [bytes::<61, 1>(), bytes::<29, 1>(), bytes::<17, 1>()],
        [128, 64, 32],
        "one byte too large for the cache line"
    );
    assert_eq!([bytes::<28, 2>(), bytes::<17, 3>(), bytes::<12, 4>()], [32, 21, 16]);
    assert_eq!([bytes::<4, 8>(), bytes::<5, 8>()], [8, 16]);
}

#[test]
fn impossible_sizes_are_errors() {
    let sets = |capacity| SourceHashCache::<u32, u32, 2>::new(capacity).err();
    assert_eq!(sets(0), Some(CacheError::NoCapacity));
    for capacity in [usize::MAX, usize::MAX - 1, 1 << (usize::BITS - 1), 1 << (usize::BITS - 4)] {
        assert_eq!(sets(capacity), Some(CacheError::TooLarge), "{capacity}");
    }
    assert_eq!(sets(1 << 30), Some(CacheError::TooLarge));
    let sets = SourceHashCache::<u32, [u64; 400]>::new((1 << 30) - 1);
    assert_eq!(sets.err(), Some(CacheError::NoMemory));

    let bounded = |capacity| BoundedCache::<u64, [u64; 400]>::new(capacity).err();
    assert_eq!((bounded(0), bounded(1)), (Some(CacheError::NoCapacity), None));
    assert_eq!([1 << 30, usize::MAX].map(bounded), [Some(CacheError::TooLarge); 2]);
    assert_eq!(bounded((1 << 30) - 1), Some(CacheError::NoMemory));
    let filter = |capacity| DuplicateFilter::<u32>::new(capacity, Duration::ZERO).err();
    assert_eq!(filter(0), Some(CacheError::NoCapacity));
    assert_eq!(filter(1 << 30), Some(CacheError::TooLarge));
}

// Threads.

/// Has one `is_it` for types that are not `Send`, and two, which makes a call ambiguous, for those
/// that are.
trait AmbiguousIfSend<Which> {
    fn is_it() {}
}
impl<T: ?Sized> AmbiguousIfSend<()> for T {}
impl<T: ?Sized + Send> AmbiguousIfSend<u8> for T {}

/// [`AmbiguousIfSend`] for `Sync`.
trait AmbiguousIfSync<Which> {
    fn is_it() {}
}
impl<T: ?Sized> AmbiguousIfSync<()> for T {}
impl<T: ?Sized + Sync> AmbiguousIfSync<u8> for T {}

/// The test is that this compiles.
#[test]
fn caches_are_send_and_sync_where_their_entries_are() {
    fn is_shared<T: Send + Sync>() {}
    fn is_sent<T: Send>() {}
    is_shared::<SourceHashCache<u32, String, 2>>();
    is_shared::<BoundedCache<u32, String>>();
    is_sent::<SourceHashCache<u32, Cell<u32>, 2>>();
    <SourceHashCache<Rc<u32>, u32, 2> as AmbiguousIfSend<_>>::is_it();
    <SourceHashCache<u32, Rc<u32>, 2> as AmbiguousIfSend<_>>::is_it();
    <SourceHashCache<u32, Cell<u32>, 2> as AmbiguousIfSync<_>>::is_it();
}

#[cfg_attr(miri, ignore = "it takes minutes")]
#[test]
fn threads_peek_concurrently() {
    let mut cache = SourceHashCache::<u32, u32, 4>::new(64).unwrap();
    let index = |key: u32| SourceIndex::new(key * 7);
    (0..100).for_each(|key| _ = cache.insert(index(key), key, !key));
    let found = |cache: &SourceHashCache<u32, u32, 4>| {
        (0..100)
            .filter(|key| {
                cache.peek(index(*key), key).inspect(|it| assert_eq!(**it, !key)).is_some()
            })
            .count()
    };
    std::thread::scope(|scope| {
        let peeks = [(); 3].map(|()| scope.spawn(|| found(&cache)));
        peeks.into_iter().for_each(|peek| assert_eq!(peek.join().unwrap(), cache.len()));
    });
}

// Hostile indices.

const PACKETS: u64 = 10_000;

/// Sends packets of 300 flows with the index that `index` computes from flow and packet, and checks
/// that every lookup returns the value of its own flow.
fn traffic<const WAYS: usize>(replacement: Replacement, index: fn(u64, u64) -> u32) -> Statistics {
    let cache = SourceHashCache::<u64, u64, WAYS>::new(256).unwrap();
    let mut cache = cache.with_replacement(replacement);
    for packet in 0..PACKETS {
        let flow = mix(packet) % 300;
        let index = SourceIndex::new(index(flow, packet));
        assert_eq!(*cache.get_or_insert_with(index, flow, |flow| !flow), !flow);
        assert_eq!(cache.get(index, &flow), Some(&!flow));
        assert_eq!(cache.peek(index, &(flow + 1000)), None);
        assert!(cache.len() <= cache.capacity());
    }
    cache.validate().unwrap();
    cache.statistics()
}

#[cfg_attr(miri, ignore = "it takes minutes")]
#[test]
fn a_forged_index_never_finds_another_flows_value() {
    fn all<const WAYS: usize>(replacement: Replacement) {
        let honest = traffic::<WAYS>(replacement, |flow, _| mix(flow) as u32);
        let others = [
            traffic::<WAYS>(replacement, |_, _| 0),
            traffic::<WAYS>(replacement, |_, _| u32::MAX),
            traffic::<WAYS>(replacement, |flow, _| (flow as u32) << 20),
            traffic::<WAYS>(replacement, |_, packet| mix(packet) as u32),
            traffic::<WAYS>(replacement, |_, packet| packet as u32),
        ];
        for hostile in others {
            assert!(hostile.hits <= honest.hits, "{hostile:?} has more hits than {honest:?}");
        }
    }
    for replacement in REPLACEMENTS {
        all::<1>(replacement);
        all::<2>(replacement);
        all::<4>(replacement);
        all::<8>(replacement);
    }
}

#[cfg_attr(miri, ignore = "it takes minutes")]
#[test]
fn a_forged_index_evicts_from_one_set_only() {
    for replacement in REPLACEMENTS {
        let cache = SourceHashCache::<u32, u32, 2>::new(64).unwrap();
        let mut cache = cache.with_replacement(replacement);
        let honest = |key: u32| SourceIndex::new(key);
        (0..64).for_each(|key| _ = cache.insert(honest(key), key, key));
        assert_eq!(cache.len(), 64);
        // 5 modulo 32, with all other bits varying.
        for attack in 0..1000 {
            _ = cache.insert(SourceIndex::new(attack << 5 | 5), 1000 + attack, 0);
        }
        let lost: Vec<u32> =
            (0..64).filter(|key| cache.peek(honest(*key), key).is_none()).collect();
        assert_eq!((lost, cache.len()), (vec![5, 37], 64));
    }
}

#[cfg_attr(miri, ignore = "it takes minutes")]
#[test]
fn entries_with_equal_indices_fill_the_ways_of_a_set() {
    let mut cache = SourceHashCache::<u32, u32, 8>::new(8 * 16).unwrap();
    for _ in 0..10 {
        (0..8).for_each(|key| _ = cache.get_or_insert_with(SourceIndex::ABSENT, key, |key| *key));
    }
    let Statistics { hits, misses, insertions, evictions, .. } = cache.statistics();
    assert_eq!((hits, misses, insertions, evictions), (72, 8, 8, 0));
    assert_eq!(cache.capacity(), 128);
}

/// With values of this number of bytes.
fn check_batches<const BYTES: usize>() {
    let new = || BoundedCache::with_parts(128, Lru::new(), DefaultHashBuilder::with_seed(1));
    let mut cache: BoundedCache<u64, [u8; BYTES], _> = new().unwrap();
    (0..100).for_each(|key| _ = cache.insert(key, [0; BYTES]));
    let mut single = cache.clone();
    for count in [100, 64, 1, 0] {
        let keys: Vec<u64> = (0..count).map(|number| mix(number) % 150).collect();
        let mut found = vec![];
        cache.get_batch_mut(&keys, |at, value| found.push((at, value.is_some())));
        let expected = keys.iter().map(|key| single.get(key).is_some()).enumerate();
        assert!(expected.eq(found));
    }
    assert_eq!(cache.statistics(), single.statistics());
    assert!(cache.iter_by_recency().eq(single.iter_by_recency()));
}

#[test]
fn a_batch_has_the_effect_of_single_lookups() {
    check_batches::<8>();
    // More than two MiB, where a batch is looked up in bursts.
    check_batches::<20_000>();
}

/// A key of which a part is the hash.
#[derive(Debug, PartialEq, Eq)]
struct Alike {
    hash: u64,
    number: u64,
}

impl Hash for Alike {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

#[cfg_attr(miri, ignore = "it takes minutes")]
#[test]
fn a_flood_with_one_hash_evicts_its_own_entries_only() {
    let mut cache = BoundedCache::with_parts(100, SecondChance::new(), IdHasher).unwrap();
    let key = |number| Alike { hash: mix(number), number };
    (0..60).for_each(|number| _ = cache.insert(key(number), number));
    let attack = |number| Alike { hash: 127, number };
    for number in 1000..2000_u64 {
        let evicted = cache.insert(attack(number), 0).evicted;
        let eighth_before = number.checked_sub(8).filter(|it| *it >= 1000);
        assert_eq!(evicted, eighth_before.map(|number| (attack(number), 0)));
    }
    assert!((0..60).all(|number| cache.peek(&key(number)) == Some(&number)));
    assert_eq!(cache.len(), 68);
}

#[cfg(feature = "papers")]
#[cfg_attr(miri, ignore = "it takes minutes")]
#[test]
fn entries_are_found_with_every_hash() {
    fn check<H: core::hash::Hasher + Default + Clone>() {
        let hasher = BuildHasherDefault::<H>::new();
        let mut cache = BoundedCache::with_parts(1000, Lru::new(), hasher).unwrap();
        for key in 0..3000_u64 {
            _ = cache.insert(key, !key);
            assert_eq!(cache.get(&key), Some(&!key));
        }
        cache.validate().unwrap();
        assert!(cache.len() <= 1000);
        cache.iter().for_each(|(key, value)| assert_eq!(*value, !key));
    }
    check::<Crc32>();
    check::<Crc16>();
    check::<Crc8Pair>();
    check::<Fletcher16>();
    check::<XorFold8>();
    check::<XorFold16>();
}

/// A policy that has no victim.
struct NoVictim;

impl Eviction for NoVictim {
    fn insert(&mut self, _slot: u32, _rank: u8) {}
    fn remove(&mut self, _slot: u32) {}
    fn victim(&mut self, _look: impl FnMut(u32) -> EntryStats) -> Option<u32> {
        None
    }
    fn allocation_size(&self) -> usize {
        0
    }
}

#[test]
fn a_full_cache_without_a_victim_refuses_new_entries() {
    let mut cache = BoundedCache::with_parts(2, NoVictim, Weak::Mixed).unwrap();
    _ = cache.insert('a', 1);
    _ = cache.get_or_insert_with(&'b', |_| 2);
    let before = cache.statistics();
    assert_eq!(cache.insert('c', 3), Inserted { previous: None, evicted: Some(('c', 3)) });
    assert_eq!((cache.len(), cache.statistics()), (2, before));
    assert_eq!(cache.insert('a', 4), Inserted { previous: Some(1), evicted: None });
    let panicked = catch_unwind(AssertUnwindSafe(|| *cache.get_or_insert_with(&'d', |_| 5)));
    assert!(panicked.is_err());
    cache.validate().unwrap();
    assert_eq!((cache.peek(&'a'), cache.peek(&'b'), cache.peek(&'d')), (Some(&4), Some(&2), None));
    assert_eq!(cache.remove(&'a'), Some(4));
    assert_eq!(*cache.get_or_insert_with(&'d', |_| 5), 5);
}

#[test]
fn a_value_that_cannot_be_made_evicts_nothing() {
    let mut cache: BoundedCache<char, u32> = BoundedCache::new(2).unwrap();
    cache.extend([('a', 1), ('b', 2)]);
    assert_eq!(cache.try_get_or_insert_with(&'c', |_| Err("unknown")), Err("unknown"));
    let statistics = cache.statistics();
    assert_eq!((cache.len(), statistics.misses, statistics.evictions), (2, 1, 0));
    let mut unused = |_: &char| -> Result<u32, &str> { unreachable!("a and b are present") };
    assert_eq!(cache.try_get_or_insert_with(&'a', &mut unused), Ok(&mut 1));
    assert_eq!(cache.try_get_or_insert_with(&'b', &mut unused), Ok(&mut 2));
    assert_eq!(cache.try_get_or_insert_with(&'c', |_| Ok::<_, &str>(3)), Ok(&mut 3));
    assert_eq!((cache.len(), cache.statistics().evictions), (2, 1));
    cache.validate().unwrap();
}

// Memory.

/// Runs a mixed load on a cache of sets and checks that it does not allocate.
fn check_sets_allocate_once<const WAYS: usize>(replacement: Replacement) {
    let (cache, allocations, bytes) = measured(|| SourceHashCache::<u64, [u64; 3], WAYS>::new(100));
    let mut cache = cache.unwrap().with_replacement(replacement);
    assert_eq!((allocations, bytes), (1, cache.allocation_size()));
    let keys: [u64; 40] = core::array::from_fn(|key| key as u64);
    let indices = keys.map(index);
    let ((), allocations, bytes) = measured(|| {
        for key in 0..PACKETS / 10 {
            _ = cache.insert(index(key), key, [key; 3]);
            _ = cache.get_or_insert_with(index(key + 9), key + 9, |key| [*key; 3]);
            _ = cache.remove(index(key / 2), &(key / 2));
            cache.get_batch(indices.into_iter().zip(&keys), |_, _| ());
            cache.get_batch_mut(indices.into_iter().zip(&keys), |_, _| ());
            match key % 1000 {
                500 => cache.retain(|key, _| key % 2 == 0),
                999 => cache.clear(),
                _ => {}
            }
        }
    });
    assert_eq!((allocations, bytes), (0, 0));
    let size = cache.allocation_size();
    assert_eq!(measured(|| drop(cache)).2, size.wrapping_neg());
}

#[cfg_attr(miri, ignore = "it takes minutes")]
#[test]
fn sets_allocate_once() {
    for replacement in REPLACEMENTS {
        check_sets_allocate_once::<1>(replacement);
        check_sets_allocate_once::<3>(replacement);
        check_sets_allocate_once::<8>(replacement);
    }
}

/// Runs a mixed load on a `BoundedCache`: allocations after construction are those of the policy,
/// and they end when the cache has been full once.
fn check_bounded_allocates_for_policy<P: Eviction>(policy: P) {
    let entries = 3000;
    let of_policy = policy.allocation_size();
    let (cache, allocations, bytes) =
        measured(|| BoundedCache::<u64, [u64; 3], P, _>::with_parts(3000, policy, Weak::Mixed));
    let mut cache = cache.unwrap();
    assert!(allocations > 2);
    assert_eq!(bytes + of_policy, cache.allocation_size());
    let ((), _, growth) = measured(|| {
        for key in 0..4 * entries {
            _ = cache.insert(key, [key; 3]);
        }
    });
    assert_eq!(bytes + of_policy + growth, cache.allocation_size());
    assert_eq!(cache.len() as u64, entries);
    // 8 bytes per slot in chunks of 1024 slots, and the pointers to the chunks.
    assert!(growth <= 8 * cache.capacity().next_multiple_of(1024) + 256, "{growth}");
    let ((), allocations, growth) = measured(|| {
        for key in 0..entries {
            _ = cache.insert(mix(key) % 9999, [key; 3]);
            _ = cache.remove(&(mix(!key) % 9999));
            cache.get_batch_mut(&[key, key + 1, key + 2], |_, _| ());
        }
        cache.retain(|key, _| key % 2 == 0);
        cache.clear();
        (0..entries).for_each(|key| _ = cache.insert(key, [key; 3]));
    });
    assert_eq!((allocations, growth), (0, 0));
}

#[cfg_attr(miri, ignore = "it takes minutes")]
#[test]
fn bounded_caches_allocate_for_their_policy_only() {
    check_bounded_allocates_for_policy(NoVictim);
    check_bounded_allocates_for_policy(Lru::new());
    check_bounded_allocates_for_policy(SecondChance::new());
    check_bounded_allocates_for_policy(ByClass::new());
    check_bounded_allocates_for_policy(Random::with_seed(1));
    check_bounded_allocates_for_policy(Passive::new(PassiveGc::new(3000, 10).unwrap()));
}

/// Recorded uses under one replacement rule are ignored by the next rule.
#[test]
fn a_change_of_the_replacement_rule_clears_recorded_uses() {
    let at = SourceIndex::ABSENT;
    for (replacement, evicted) in [
        (Replacement::SecondChance, 3),
        (Replacement::LeastRecentlyUsed, 1),
        (Replacement::Oldest, 1),
    ] {
        let mut cache: SourceHashCache<u32, (), 3> = SourceHashCache::new(3).unwrap();
        (1..=3).for_each(|key| _ = cache.insert(at, key, ()));
        assert!([1, 2].iter().all(|key| cache.get(at, key).is_some()));
        let mut cache = cache.with_replacement(replacement);
        assert_eq!(cache.insert(at, 4, ()).evicted, Some((evicted, ())), "{replacement:?}");
    }
}

#[cfg_attr(miri, ignore = "it takes minutes")]
#[test]
fn cleared_entries_are_not_cloned() {
    let counted = Rc::new(());
    let mut cache: SourceHashCache<u32, Rc<()>> = SourceHashCache::new(64).unwrap();
    for key in 0..64 {
        drop(cache.insert(SourceIndex::new(key), key, counted.clone()));
    }
    cache.clear();
    let before = Rc::strong_count(&counted);
    let clone = cache.clone();
    assert_eq!((clone.len(), Rc::strong_count(&counted)), (0, before));
}

#[test]
fn an_extraction_that_is_dropped_leaves_what_it_has_not_visited() {
    let mut sets: SourceHashCache<u32, u32, 4> = SourceHashCache::new(64).unwrap();
    let mut bounded: BoundedCache<u32, u32> = BoundedCache::new(64).unwrap();
    for key in 0..40 {
        _ = sets.insert(SourceIndex::new(key / 4), key, key);
        _ = bounded.insert(key, key);
    }
    let is_even = |_: &u32, value: &mut u32| *value % 2 == 0;
    assert_eq!(sets.extract_if(is_even).take(7).count(), 7);
    assert_eq!(bounded.extract_if(is_even).take(7).count(), 7);
    assert_eq!((sets.len(), bounded.len()), (33, 33));
    assert_eq!((sets.validate(), bounded.validate()), (Ok(()), Ok(())));
    assert_eq!((sets.extract_if(is_even).count(), bounded.extract_if(is_even).count()), (13, 13));
    assert!(sets.iter().chain(&bounded).all(|(key, value)| key == value && key % 2 == 1));
    sets.clear();
    assert_eq!(sets.extract_if(|_, _| true).next(), None);
    assert_eq!(sets.iter().next(), None);
}

/// Also with several sets of several ways, with vacant ways, and entries that have been removed by
/// `clear`; no use is recorded.
#[test]
fn iteration_by_mutable_reference_is_over_each_entry_once() {
    fn check<const WAYS: usize>() {
        let mut sets = SourceHashCache::<u32, Rc<u32>, WAYS>::new(64).unwrap();
        let fill = |sets: &mut SourceHashCache<u32, Rc<u32>, WAYS>, keys: core::ops::Range<u32>| {
            keys.for_each(|key| _ = sets.insert(SourceIndex::new(key), key, Rc::new(key)));
        };
        fill(&mut sets, 0..32);
        sets.clear();
        assert!(sets.iter_mut().next().is_none());
        fill(&mut sets, 8..24);
        _ = sets.remove(SourceIndex::new(9), &9);
        let (len, before) = (sets.len(), sets.statistics());
        let mut entries = sets.iter_mut();
        assert_eq!(
            (entries.len(), format!("{entries:?}")),
            (len, { format!("SourceHashIterMut {{ len: {len}, .. }}") })
        );
        // All references at once.
        let all: Vec<(&u32, &mut Rc<u32>)> = entries.by_ref().collect();
        assert_eq!(all.len(), len);
        all.into_iter().for_each(|(key, value)| *value = Rc::new(**value + 100 * key));
        assert!(entries.next().is_none() && entries.next().is_none() && entries.len() == 0);
        assert!(sets.iter().all(|(key, value)| **value == 101 * key));
        let keys: BTreeSet<u32> = sets.iter().map(|(key, _)| *key).collect();
        assert_eq!((keys.len(), sets.statistics(), sets.validate()), (len, before, Ok(())));
        assert!(keys.is_subset(&(8..24).filter(|key| *key != 9).collect()));
    }
    check::<1>();
    check::<3>();
    check::<8>();
}

/// Neither the capacity nor the order of insertion nor uses matter; keys, values and indices do.
#[test]
fn sets_with_equal_entries_are_equal() {
    type Sets = SourceHashCache<u32, u32, 2>;
    let filled = |capacity, entries: &mut dyn Iterator<Item = u32>| {
        let mut sets = Sets::new(capacity).unwrap();
        entries.for_each(|key| _ = sets.insert(index(key.into()), key, 7 * key));
        sets
    };
    let (small, large, count) = if cfg!(miri) { (64, 128, 6) } else { (1 << 10, 1 << 14, 20) };
    let few = filled(small, &mut (0..count));
    let mut other = filled(large, &mut (0..count).rev());
    assert_eq!([few.len(), other.len()], [count as usize; 2], "no entry is evicted");
    assert!(other.get(index(3), &3).is_some());
    let compared = |other: &Sets| [few.eq(other), other.eq(&few)];
    assert_eq!((compared(&other), compared(&few.clone())), ([true; 2], [true; 2]));
    *other.get_mut(index(3), &3).unwrap() += 1;
    assert_eq!(compared(&other), [false; 2], "another value");
    *other.get_mut(index(3), &3).unwrap() -= 1;
    assert_eq!(compared(&other), [true; 2]);
    let moved = other.remove(index(3), &3).unwrap();
    assert_eq!(compared(&other), [false; 2], "one entry less");
    _ = other.insert(index(300), 3, moved);
    assert_eq!(compared(&other), [false; 2], "another index");
    other.clear();
    assert_eq!(compared(&other), [false; 2], "no entries");
    assert!(other == Sets::new(1).unwrap());
}

#[test]
fn one_wrong_time_does_not_fill_the_filter() {
    let lifetime = Duration::from_secs(10);
    let mut filter: DuplicateFilter<u64> = DuplicateFilter::new(100, lifetime).unwrap();
    let mut accept = |sender, seconds| filter.accept(&sender, 1, Timestamp::from_secs(seconds));
    assert_eq!(accept(999_999, 4_294_967_295), CallVerdict::Accept);
    for sender in 0..1200 {
        let now = 1_700_000_000 + 3600 * (sender / 50);
        assert_eq!(accept(sender, now), CallVerdict::Accept, "{sender}");
        assert_eq!(accept(sender, now), CallVerdict::Duplicate);
    }
}
