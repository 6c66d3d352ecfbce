//! Ephemeral bindings and a cache.

use std::hint::black_box;
use std::time::Duration;

use flowtable::{BoundedCache, DefaultHashBuilder, EphemeralStore, Timestamp};

use super::COUNT;

type Store = EphemeralStore<u64, u64>;

/// Adds one to the value of each tag.
#[inline(always)]
fn count_tags(store: &mut Store, tags: &[u64], first: u64) -> u64 {
    let times = (first..).map(Timestamp::from_nanos);
    let counts = tags.iter().zip(times).map(|(tag, now)| {
        let count = store.get_or_insert_with(tag, now, || 0).expect("the oldest one expires");
        *count += 1;
        *count
    });
    counts.sum()
}

#[inline(never)]
fn count_ephemeral_new(store: &mut Store, tags: &[u64]) -> u64 {
    count_tags(store, tags, 2 * COUNT)
}

/// No time passes.
#[inline(never)]
fn count_ephemeral_hit(store: &mut Store, tags: &[u64]) -> u64 {
    let now = Timestamp::from_nanos(3 * COUNT - 1);
    tags.iter().map(|tag| store.get(tag, now).copied().unwrap_or(9)).sum()
}

#[inline(never)]
fn count_cache_hit(cache: &mut BoundedCache<u128, u64>, keys: &[u128]) -> u64 {
    keys.iter().map(|key| cache.get(key).copied().unwrap_or(1)).sum()
}

pub(crate) fn count() {
    let lifetime = Duration::from_nanos(COUNT);
    let hasher = DefaultHashBuilder::with_seed(1);
    let mut store =
        Store::with_parts(COUNT as usize, lifetime, hasher.clone()).expect("there is memory");
    let tags = |round: u64| -> Vec<u64> { (round * COUNT..(round + 1) * COUNT).collect() };
    // Twice as many: the oldest have expired.
    let first = [tags(0), tags(1)].concat();
    assert_eq!(count_tags(&mut store, &first, 0), 2 * COUNT);
    assert_eq!(black_box(count_ephemeral_new(&mut store, &tags(2))), COUNT);
    assert_eq!(black_box(count_ephemeral_hit(&mut store, &tags(2))), COUNT);
    let policy = flowtable::eviction::SecondChance::new();
    let cache = BoundedCache::with_parts(COUNT as usize, policy, hasher);
    let mut cache = cache.expect("there is memory");
    let keys = super::keys(0);
    cache.extend(keys.iter().map(|key| (*key, 1)));
    assert_eq!(black_box(count_cache_hit(&mut cache, &keys)), COUNT);
}
