//! `FlowCache` packet by packet: hits, and new flows in a full cache: `cargo bench -- flow_cache`.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use flowtable::flow_cache::{Config, Packet, Timeouts};
use flowtable::{FlowCache, Timestamp};
use settings::{Key, SIZES, draws, keys};

/// Packets of the flows that a cache has, and of flows that it does not have.
fn packets(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("flow_cache");
    for count in SIZES {
        let config = Config::new(count).expect("not zero").with_timeouts(Timeouts::METER);
        let mut cache: FlowCache<Key, u64> = FlowCache::new(config);
        let flows = keys(count, 1);
        let mut now = Timestamp::ZERO;
        for key in &flows {
            assert!(cache.observe(key, Packet::UDP, now).is_ok());
        }
        let known = draws(&flows, 1 << 16);
        let mut next = known.iter().cycle();
        group.bench_function(BenchmarkId::new("hit", count), |bencher| {
            bencher.iter(|| {
                let key = next.next().expect("an endless iterator");
                let seen = cache.observe(black_box(key), Packet::UDP, now);
                *seen.expect("no flow is pinned").flow += 1;
            });
        });
        let unknown = keys(1 << 20, 2);
        let mut next = unknown.iter().cycle();
        group.bench_function(BenchmarkId::new("new", count), |bencher| {
            bencher.iter(|| {
                let key = next.next().expect("an endless iterator");
                now = now + Duration::from_nanos(1);
                cache.observe(black_box(key), Packet::UDP, now).is_ok()
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = settings::criterion();
    targets = packets
}
criterion_main!(benches);
