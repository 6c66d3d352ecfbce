//! Ephemeral bindings and a cache.

use std::hint::black_box;
use std::time::Duration;

use flowtable::cache::{CallVerdict, DuplicateFilter};
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

/// Each insertion evicts an entry.
#[inline(never)]
fn count_cache_stream(cache: &mut BoundedCache<u128, u64>, keys: &[u128]) -> u64 {
    keys.iter().filter(|key| cache.insert(**key, 2).evicted.is_some()).count() as u64
}

#[inline(always)]
fn accept(
    filter: &mut DuplicateFilter<u64>,
    senders: &[u64],
    now: Timestamp,
    expected: CallVerdict,
) -> u64 {
    let verdicts = senders.iter().map(|sender| filter.accept(sender, now.as_nanos(), now));
    verdicts.filter(|verdict| *verdict == expected).count() as u64
}

/// Calls of senders that are known, with new sequence numbers.
#[inline(never)]
fn count_duplicate_accept(filter: &mut DuplicateFilter<u64>, senders: &[u64]) -> u64 {
    accept(filter, senders, Timestamp::from_nanos(2), CallVerdict::Accept)
}

/// Calls whose sequence numbers were accepted before.
#[inline(never)]
fn count_duplicate_hit(filter: &mut DuplicateFilter<u64>, senders: &[u64]) -> u64 {
    accept(filter, senders, Timestamp::from_nanos(2), CallVerdict::Duplicate)
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
    let cache = BoundedCache::with_parts(COUNT as usize, policy, hasher.clone());
    let mut cache = cache.expect("there is memory");
    let keys = super::keys(0);
    cache.extend(keys.iter().map(|key| (*key, 1)));
    assert_eq!(black_box(count_cache_hit(&mut cache, &keys)), COUNT);
    assert_eq!(black_box(count_cache_stream(&mut cache, &super::keys(COUNT))), COUNT);
    let filter = DuplicateFilter::with_hasher(COUNT as usize, lifetime, hasher);
    let mut filter = filter.expect("there is memory");
    // Senders call in another order than before.
    let mut senders = tags(0);
    assert_eq!(accept(&mut filter, &senders, Timestamp::from_nanos(1), CallVerdict::Accept), COUNT);
    senders.sort_unstable_by_key(|sender| sender.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    assert_eq!(black_box(count_duplicate_accept(&mut filter, &senders)), COUNT);
    assert_eq!(black_box(count_duplicate_hit(&mut filter, &senders)), COUNT);
}
