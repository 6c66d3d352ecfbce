//! The maps for many threads, in one thread: `cargo bench -- concurrent`.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use flowtable::{ConcurrentMap, ConcurrentTable};
use settings::{SIZES, draws};

fn numbers(count: usize) -> Vec<u64> {
    (0..count as u64).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()
}

/// Lookups, and writes of present keys.
fn maps(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("concurrent");
    for count in SIZES {
        let keys = numbers(count);
        let (map, table) = (ConcurrentMap::new(), ConcurrentTable::new());
        for &key in &keys {
            assert!(map.pin().insert(key, 1_u64).is_ok());
            assert!(table.pin().insert(key, 1_u64).is_ok());
        }
        let drawn = draws(&keys, 1 << 16);
        let mut next = drawn.iter().cycle();
        let mut key = || next.next().expect("an endless iterator");
        let (pinned, pinned_table) = (map.pin(), table.pin());
        group.bench_function(BenchmarkId::new("map_get", count), |bencher| {
            bencher.iter(|| pinned.get(black_box(key())).copied());
        });
        group.bench_function(BenchmarkId::new("table_get", count), |bencher| {
            bencher.iter(|| pinned_table.get(black_box(key())));
        });
        group.bench_function(BenchmarkId::new("map_insert", count), |bencher| {
            bencher.iter(|| _ = map.pin().insert(*black_box(key()), 2));
        });
        group.bench_function(BenchmarkId::new("table_insert", count), |bencher| {
            bencher.iter(|| _ = table.pin().insert(*black_box(key()), 2));
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = settings::criterion();
    targets = maps
}
criterion_main!(benches);
