//! *TRASH: a dynamic LC-trie and hash data structure*: the trie with hashed keys, its flow cache,
//! and the tables that the crate builds for speed instead: `cargo bench -- trash`.

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use flowtable::eviction::PassiveGc;
use flowtable::key::bits::Headed;
use flowtable::trie::unicache::Unicache;
use flowtable::{DefaultHashBuilder, LcTrieMap, TrashMap};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use settings::{Key, SIZES, keys};

/// Lookups, iteration, insertion and removal in the trie of hashed keys.
fn lc_trie(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("trash/lc_trie");
    for count in SIZES {
        let hasher = DefaultHashBuilder::with_seed(1);
        let mut keys: Vec<_> =
            keys(count, 1).into_iter().map(|key| Headed::new(key, &hasher)).collect();
        let map: LcTrieMap<Headed<Key>, u64> = keys.iter().map(|&key| (key, 1)).collect();
        // Shuffled, as the order of insertion is the order of the leaves in memory.
        keys.shuffle(&mut StdRng::seed_from_u64(2));
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(BenchmarkId::new("get", count), |bencher| {
            bencher.iter(|| keys.iter().filter_map(|key| map.get(black_box(key))).sum::<u64>());
        });
        group.bench_function(BenchmarkId::new("iter", count), |bencher| {
            bencher.iter(|| map.values().sum::<u64>());
        });
        group.bench_function(BenchmarkId::new("insert", count), |bencher| {
            bencher.iter_with_large_drop(|| -> LcTrieMap<Headed<Key>, u64> {
                keys.iter().map(|&key| (key, 1)).collect()
            });
        });
        group.bench_function(BenchmarkId::new("remove", count), |bencher| {
            let remove_all = |mut map: LcTrieMap<Headed<Key>, u64>| {
                assert!(keys.iter().all(|key| map.remove(key).is_some()));
                map
            };
            bencher.iter_batched(|| map.clone(), remove_all, BatchSize::LargeInput);
        });
    }
    group.finish();
}

/// Packets of new flows in the flow cache of the paper, which evicts as it inserts.
fn unicache(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("trash/unicache");
    for count in SIZES {
        let hasher = DefaultHashBuilder::with_seed(1);
        let keys: Vec<_> =
            keys(2 * count, 1).into_iter().map(|key| Headed::new(key, &hasher)).collect();
        let gc = PassiveGc::new(count, 10).expect("not zero");
        let mut cache = Unicache::new(gc);
        let (mut next, mut now) = (keys.iter().cycle(), 0_u64);
        group.bench_function(BenchmarkId::new("insert", count), |bencher| {
            bencher.iter(|| {
                now += 1;
                let key = *next.next().expect("an endless iterator");
                cache.insert(black_box(key), now, |_, time| Some(*time), |_, _| ());
            });
        });
    }
    group.finish();
}

/// Lookups, bursts and insertions in the table of groups.
fn trash_map(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("trash/map");
    for count in SIZES {
        let keys = keys(count, 1);
        let map: TrashMap<Key, u64> = keys.iter().map(|&key| (key, 1)).collect();
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(BenchmarkId::new("get", count), |bencher| {
            bencher.iter(|| keys.iter().filter_map(|key| map.get(black_box(key))).sum::<u64>());
        });
        group.bench_function(BenchmarkId::new("get_batch", count), |bencher| {
            bencher.iter(|| {
                let mut sum = 0;
                for keys in keys.chunks(32) {
                    map.get_batch(keys, |_, found| sum += found.copied().unwrap_or(0));
                }
                sum
            });
        });
        group.bench_function(BenchmarkId::new("insert", count), |bencher| {
            bencher.iter_with_large_drop(|| -> TrashMap<Key, u64> {
                keys.iter().map(|&key| (key, 1)).collect()
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = settings::criterion();
    targets = lc_trie, unicache, trash_map
}
criterion_main!(benches);
