//! Entries, memory and hostile indices of the caches.

mod dropping;
mod duplicates;

use core::cell::Cell;
use core::hash::{BuildHasherDefault, Hasher};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use flowtable::cache::{
    CacheError, CallVerdict, ChainedConfig, DuplicateFilter, Inserted, Replacement, Statistics,
};
use flowtable::eviction::{
    ByClass, EntryStats, Eviction, Lru, Passive, PassiveGc, Random, SecondChance,
};
use flowtable::hash::source_index::SourceIndex;
use flowtable::hash::{Crc8Pair, Crc16, Crc32, Fletcher16, XorFold8, XorFold16};
use flowtable::{ChainedCache, DefaultHashBuilder, SourceHashCache, Timestamp};
use model::alloc;
use model::counted::{Callback, Counted, alive, forget_leaked, with_panic};
use model::hashers::{Weak, mix};

const REPLACEMENTS: [Replacement; 3] =
    [Replacement::SecondChance, Replacement::LeastRecentlyUsed, Replacement::Oldest];

/// The result of `act`, its number of allocations, and the bytes that it allocates and keeps.
fn measured<R>(act: impl FnOnce() -> R) -> (R, usize, usize) {
    let (result, usage) = alloc::measure(act);
    (result, usage.allocations, usage.kept as usize)
}

fn index(key: u64) -> SourceIndex {
    // Some have equal indices.
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

/// The table of the type, and the rows between.
#[test]
fn as_many_ways_as_the_table_says_are_in_a_line() {
    fn ways<const SIZE: usize>() -> usize {
        SourceHashCache::<[u8; SIZE], ()>::ways_per_cache_line()
    }
    assert_eq!([ways::<3>(), ways::<4>(), ways::<5>(), ways::<11>()], [8, 7, 6, 4]);
    assert_eq!([ways::<12>(), ways::<16>(), ways::<17>(), ways::<26>()], [3, 3, 2, 2]);
    assert_eq!([ways::<27>(), ways::<56>(), ways::<57>(), ways::<5000>()], [1, 1, 1, 1]);

    fn bytes<const SIZE: usize, const WAYS: usize>() -> usize {
        let cache = SourceHashCache::<[u8; SIZE], (), WAYS>::new(1).unwrap();
        cache.allocation_size() / cache.capacity()
    }
    assert_eq!([bytes::<56, 1>(), bytes::<24, 1>()], [64, 32]);
    assert_eq!([bytes::<57, 1>(), bytes::<25, 1>()], [128, 64], "a byte more is too much");
    assert_eq!([bytes::<26, 2>(), bytes::<16, 3>(), bytes::<11, 4>()], [32, 21, 16]);
    assert_eq!([bytes::<3, 8>(), bytes::<4, 8>()], [8, 16]);
}

#[test]
fn what_cannot_be_is_an_error() {
    let sets = |capacity| SourceHashCache::<u32, u32, 2>::new(capacity).err();
    assert_eq!(sets(0), Some(CacheError::NoCapacity));
    for capacity in [usize::MAX, usize::MAX - 1, 1 << (usize::BITS - 1), 1 << (usize::BITS - 4)] {
        assert_eq!(sets(capacity), Some(CacheError::TooLarge), "{capacity}");
    }
    assert_eq!(sets(1 << 40), Some(CacheError::NoMemory));

    let config = |capacity| ChainedConfig::new(capacity).err();
    assert_eq!((config(0), config((1 << 30) - 1)), (Some(CacheError::NoCapacity), None));
    assert_eq!([1 << 30, usize::MAX].map(config), [Some(CacheError::TooLarge); 2]);
    let some = ChainedConfig::new(3).unwrap();
    assert_eq!((some.capacity(), some.buckets(), some.elasticity()), (3, 8, 8));
    let buckets = |buckets| some.with_buckets(buckets).map(|config| config.buckets());
    assert_eq!([1, 5, 1 << 30].map(buckets), [Ok(1), Ok(8), Ok(1 << 30)]);
    assert_eq!(buckets(0), Err(CacheError::NoBuckets));
    assert_eq!([(1 << 30) + 1, usize::MAX].map(buckets), [Err(CacheError::TooLarge); 2]);
    assert_eq!(some.with_elasticity(0), Err(CacheError::NoElasticity));

    let large = ChainedConfig::new((1 << 30) - 1).unwrap();
    let chains = |config| {
        let hasher = DefaultHashBuilder::with_seed(1);
        ChainedCache::<u64, [u64; 4], Lru, _>::with_parts(config, Lru::new(), hasher).err()
    };
    assert_eq!(chains(large), Some(CacheError::NoMemory));
    assert_eq!(chains(large.with_buckets(1).unwrap()), Some(CacheError::NoMemory));
    let filter = |capacity| DuplicateFilter::<u32>::new(capacity, Duration::ZERO).err();
    assert_eq!(filter(0), Some(CacheError::NoCapacity));
    assert_eq!(filter(1 << 30), Some(CacheError::TooLarge));
}

#[test]
fn bursts_of_unequal_lengths_panic() {
    fn panics(act: impl FnOnce()) -> bool {
        catch_unwind(AssertUnwindSafe(act)).is_err()
    }
    let mut sets = SourceHashCache::<u32, u32, 2>::new(4).unwrap();
    let one = [SourceIndex::ABSENT];
    assert!(panics(|| sets.get_batch(&one, &[1, 2], &mut [None, None])));
    assert!(panics(|| sets.get_batch(&one, &[1], &mut [])));
    assert!(panics(|| sets.peek_batch(&one, &[1, 2], &mut [None, None])));
    assert!(panics(|| sets.peek_batch(&one, &[1], &mut [])));
    assert!(panics(|| sets.get_batch_mut(&one, &[1, 2], |_, _| ())));
    let mut chains = ChainedCache::<u32, u32>::new(4).unwrap();
    assert!(panics(|| chains.get_batch_mut_hashed(&[1], &[1, 2], |_, _| ())));
    assert_eq!((sets.statistics(), chains.statistics()), Default::default());
}

// Threads.

/// Has one `is_it` for types that are not `Send`, and two, so that none is meant, for those that are.
trait AmbiguousIfSend<Which> {
    fn is_it() {}
}
impl<T: ?Sized> AmbiguousIfSend<()> for T {}
impl<T: ?Sized + Send> AmbiguousIfSend<u8> for T {}

/// The same for `Sync`.
trait AmbiguousIfSync<Which> {
    fn is_it() {}
}
impl<T: ?Sized> AmbiguousIfSync<()> for T {}
impl<T: ?Sized + Sync> AmbiguousIfSync<u8> for T {}

/// It compiles.
#[test]
fn threads_share_what_they_may() {
    fn is_shared<T: Send + Sync>() {}
    fn is_sent<T: Send>() {}
    is_shared::<SourceHashCache<u32, String, 2>>();
    is_shared::<ChainedCache<u32, String>>();
    is_sent::<SourceHashCache<u32, Cell<u32>, 2>>();
    <SourceHashCache<Rc<u32>, u32, 2> as AmbiguousIfSend<_>>::is_it();
    <SourceHashCache<u32, Rc<u32>, 2> as AmbiguousIfSend<_>>::is_it();
    <SourceHashCache<u32, Cell<u32>, 2> as AmbiguousIfSync<_>>::is_it();
}

#[cfg_attr(miri, ignore = "it takes minutes")]
#[test]
fn threads_peek_together() {
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

/// Packets of so many flows, each with the index that the `index` gives by flow and packet: who gets a value gets its
/// own.
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
fn no_index_finds_anothers_value() {
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
            assert!(hostile.hits <= honest.hits, "{hostile:?} is better than {honest:?}");
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
fn each_index_spoils_one_set_only() {
    for replacement in REPLACEMENTS {
        let cache = SourceHashCache::<u32, u32, 2>::new(64).unwrap();
        let mut cache = cache.with_replacement(replacement);
        let honest = |key: u32| SourceIndex::new(key);
        (0..64).for_each(|key| _ = cache.insert(honest(key), key, key));
        assert_eq!(cache.len(), 64);
        // 5 modulo 32, with all other bits as they like.
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
fn ways_get_along_with_equal_indices() {
    let mut cache = SourceHashCache::<u32, u32, 8>::new(8 * 16).unwrap();
    for _ in 0..10 {
        (0..8).for_each(|key| _ = cache.get_or_insert_with(SourceIndex::ABSENT, key, |key| *key));
    }
    let Statistics { hits, misses, insertions, evictions, .. } = cache.statistics();
    assert_eq!((hits, misses, insertions, evictions), (72, 8, 8, 0));
    assert_eq!(cache.capacity(), 128);
}

#[cfg_attr(miri, ignore = "it takes minutes")]
#[test]
fn a_flood_with_one_hash_displaces_its_own() {
    let config = ChainedConfig::new(100).and_then(|it| it.with_elasticity(4)).unwrap();
    let hasher = DefaultHashBuilder::with_seed(1);
    let mut cache = ChainedCache::with_parts(config, SecondChance::new(), hasher).unwrap();
    (0..60).for_each(|key| _ = cache.insert_hashed(key, key, key));
    for attack in 1000..2000_u64 {
        let evicted = cache.insert_hashed(127, attack, 0).evicted;
        assert_eq!(evicted, attack.checked_sub(4).filter(|it| *it >= 1000).map(|it| (it, 0)));
    }
    assert!((0..60).all(|key| cache.peek_hashed(key, &key) == Some(&key)));
    assert_eq!((cache.len(), cache.longest_chain()), (64, 4));
}

#[cfg_attr(miri, ignore = "it takes minutes")]
#[test]
fn chains_have_a_bound_whatever_the_hash() {
    fn check<H: Hasher + Default + Clone>(seldom: usize) {
        let config = ChainedConfig::new(1000).and_then(|it| it.with_elasticity(seldom)).unwrap();
        let hasher = BuildHasherDefault::<H>::new();
        let mut cache = ChainedCache::with_parts(config, Lru::new(), hasher).unwrap();
        for key in 0..3000_u64 {
            _ = cache.insert(key, !key);
            assert_eq!(cache.get(&key), Some(&!key));
        }
        cache.validate().unwrap();
        assert!(cache.longest_chain() <= seldom && cache.len() <= 1000);
        cache.iter().for_each(|(key, value)| assert_eq!(*value, !key));
    }
    for elasticity in [1, 3, 8] {
        check::<Crc32>(elasticity);
        check::<Crc16>(elasticity);
        check::<Crc8Pair>(elasticity);
        check::<Fletcher16>(elasticity);
        check::<XorFold8>(elasticity);
        check::<XorFold16>(elasticity);
    }
}

/// The bound of chains is not asked where there is none.
#[cfg_attr(miri, ignore = "it takes minutes")]
#[test]
fn all_hashes_equal_is_one_chain() {
    let config = ChainedConfig::new(50).and_then(|it| it.with_elasticity(usize::MAX)).unwrap();
    let mut cache = ChainedCache::with_parts(config, Lru::new(), Weak::Constant).unwrap();
    for key in 0..80 {
        let evicted = cache.insert(key, key).evicted;
        assert_eq!(evicted, (key >= 50).then(|| (key - 50, key - 50)));
    }
    assert_eq!((cache.longest_chain(), cache.len()), (50, 50));
}

/// Gives up nobody.
struct Nobody;

impl Eviction for Nobody {
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
fn a_full_cache_that_gives_up_nobody_takes_nobody() {
    let config = ChainedConfig::new(2).unwrap();
    let mut cache = ChainedCache::with_parts(config, Nobody, Weak::Mixed).unwrap();
    _ = cache.insert('a', 1);
    _ = cache.get_or_insert_with('b', |_| 2);
    let before = cache.statistics();
    assert_eq!(cache.insert('c', 3), Inserted { previous: None, evicted: Some(('c', 3)) });
    assert_eq!((cache.len(), cache.statistics()), (2, before));
    assert_eq!(cache.insert('a', 4), Inserted { previous: Some(1), evicted: None });
    let panicked = catch_unwind(AssertUnwindSafe(|| *cache.get_or_insert_with('d', |_| 5)));
    assert!(panicked.is_err());
    cache.validate().unwrap();
    assert_eq!((cache.peek(&'a'), cache.peek(&'b'), cache.peek(&'d')), (Some(&4), Some(&2), None));
    assert_eq!(cache.remove(&'a'), Some(4));
    assert_eq!(*cache.get_or_insert_with('d', |_| 5), 5);
}

// Memory.

/// Goes on with a cache of sets for long.
fn stay<const WAYS: usize>(replacement: Replacement) {
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
            cache.get_batch(&indices, &keys, &mut [None; 40]);
            cache.get_batch_mut(&indices, &keys, |_, _| ());
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
        stay::<1>(replacement);
        stay::<3>(replacement);
        stay::<8>(replacement);
    }
}

/// Goes on with a cache of chains for long: of what is allocated later all is the policy's, and
/// when that has had as many entries as it can have, nothing is.
fn stay_in_chains<P: Eviction>(policy: P) {
    let config = ChainedConfig::new(3000).unwrap();
    let entries = config.capacity() as u64;
    let of_policy = policy.allocation_size();
    let (cache, allocations, bytes) =
        measured(|| ChainedCache::<u64, [u64; 3], P, _>::with_parts(config, policy, Weak::Mixed));
    let mut cache = cache.unwrap();
    assert_eq!((allocations, bytes + of_policy), (2, cache.allocation_size()));
    let ((), _, growth) = measured(|| {
        // Chains are full before the cache is.
        for key in 0..4 * entries {
            _ = cache.insert(key, [key; 3]);
        }
    });
    assert_eq!(bytes + of_policy + growth, cache.allocation_size());
    assert_eq!(cache.len() as u64, entries);
    // 8 bytes for each slot, by 1024 slots, and the pointers to those.
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
fn chains_allocate_for_their_policy_only() {
    stay_in_chains(Nobody);
    stay_in_chains(Lru::new());
    stay_in_chains(SecondChance::new());
    stay_in_chains(ByClass::new());
    stay_in_chains(Random::with_seed(1));
    stay_in_chains(Passive::new(PassiveGc::new(3000, 10).unwrap()));
}

/// What was noted for one rule does not count for the next.
#[test]
fn a_rule_that_changes_begins_anew() {
    let at = SourceIndex::ABSENT;
    for (replacement, leaves) in [
        (Replacement::SecondChance, 3),
        (Replacement::LeastRecentlyUsed, 1),
        (Replacement::Oldest, 1),
    ] {
        let mut cache: SourceHashCache<u32, (), 3> = SourceHashCache::new(3).unwrap();
        (1..=3).for_each(|key| _ = cache.insert(at, key, ()));
        assert!([1, 2].iter().all(|key| cache.get(at, key).is_some()));
        let mut cache = cache.with_replacement(replacement);
        assert_eq!(cache.replacement(), replacement);
        assert_eq!(cache.insert(at, 4, ()).evicted, Some((leaves, ())), "{replacement:?}");
    }
}

#[cfg_attr(miri, ignore = "it takes minutes")]
#[test]
fn what_was_cleared_is_not_cloned() {
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
