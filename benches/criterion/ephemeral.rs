//! *Lightweight network support for scalable end-to-end services*: bindings of one lifetime, and
//! the instructions of packets: `cargo bench -- ephemeral`.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use flowtable::papers::esp::{
    self, EspPacket, Instruction, Location, Locations, Operation, Relation, Site,
};
use flowtable::{EphemeralStore, Timestamp};
use settings::SIZES;

type Store = EphemeralStore<u64, u64>;

/// A nanosecond passes with each binding, and a lifetime is as many as there are bindings: each
/// creation reclaims the oldest binding of a full store.
fn bindings(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ephemeral/store");
    for count in SIZES {
        let lifetime = Duration::from_nanos(count as u64);
        let mut store = Store::new(count, lifetime).expect("there is memory");
        let mut now = 0_u64;
        group.bench_function(BenchmarkId::new("create", count), |bencher| {
            bencher.iter(|| {
                now += 1;
                store.get_or_insert_with(&now, Timestamp::from_nanos(now), || 0).is_ok()
            });
        });
        group.bench_function(BenchmarkId::new("get", count), |bencher| {
            let mut tag = now;
            bencher.iter(|| {
                tag = if tag + count as u64 / 2 < now { now } else { tag.saturating_sub(7) };
                store.get(black_box(&tag), Timestamp::from_nanos(now)).copied()
            });
        });
    }
    group.finish();
}

/// Each instruction, by packets that find its bindings.
fn instructions(criterion: &mut Criterion) {
    let count = Instruction::Count { tag: 1, threshold: u32::MAX };
    let compare = Instruction::Compare { tag: 2, relation: Relation::Less, value: 7 };
    let collect = Instruction::Collect { count: 1, result: 3, operation: Operation::Sum, value: 7 };
    let mut store = Store::new(1000, Duration::from_secs(10)).expect("there is memory");
    let site = Site { location: Location::Centre, identity: 77 };
    let mut group = criterion.benchmark_group("ephemeral/esp");
    for (name, instruction) in [("count", count), ("compare", compare), ("collect", collect)] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut packet = EspPacket::new(Locations::CENTRE, 1, black_box(instruction));
                esp::execute(&mut store, &mut packet, site, Timestamp::ZERO)
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = settings::criterion();
    targets = bindings, instructions
}
criterion_main!(benches);
