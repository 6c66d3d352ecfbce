//! `LcTrieMap` operation by operation, with Criterion: `cargo bench --bench lc_trie`.
//!
//! For comparisons with other maps see `benches/peers`, where the subjects take turns.

use std::hint::black_box;
use std::net::Ipv4Addr;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use flowtable::key::bits::Headed;
use flowtable::{DefaultHashBuilder, FiveTuple, LcTrieMap};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

type Key = Headed<FiveTuple<Ipv4Addr>>;

fn keys(count: usize) -> Vec<Key> {
    let mut rng = StdRng::seed_from_u64(1);
    let hasher = DefaultHashBuilder::with_seed(1);
    let tuple = |rng: &mut StdRng| FiveTuple {
        src: rng.random::<u32>().into(),
        dst: rng.random::<u32>().into(),
        sport: rng.random(),
        dport: rng.random(),
        protocol: 6,
    };
    (0..count).map(|_| Headed::new(tuple(&mut rng), &hasher)).collect()
}

/// Measures lookups, iteration, insertion and removal, of maps that fit the L2 cache or do not.
fn operations(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("lc_trie");
    for count in [1_000, 100_000] {
        let mut keys = keys(count);
        let map: LcTrieMap<Key, u64> = keys.iter().map(|&key| (key, 1)).collect();
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
            bencher.iter_with_large_drop(|| -> LcTrieMap<Key, u64> {
                keys.iter().map(|&key| (key, 1)).collect()
            });
        });
        group.bench_function(BenchmarkId::new("remove", count), |bencher| {
            let remove_all = |mut map: LcTrieMap<Key, u64>| {
                assert!(keys.iter().all(|key| map.remove(key).is_some()));
                map
            };
            bencher.iter_batched(|| map.clone(), remove_all, BatchSize::LargeInput);
        });
    }
    group.finish();
}

criterion_group!(benches, operations);
criterion_main!(benches);
