//! Lookups of each demultiplexer, with Criterion: `cargo bench --bench demux`.
//!
//! For comparisons with hash tables see `benches/peers`, where the subjects take turns.

use std::hint::black_box;
use std::net::Ipv4Addr;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, criterion_group, criterion_main};
use flowtable::FourTuple;
use flowtable::demux::{
    Arrival, BsdList, ConnectionId, Demux, MoveToFront, SendReceive, Sequent, SequentMoveToFront,
    TrashDemux,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

type Name = FourTuple<Ipv4Addr>;

/// The greatest length of a list: inserting N connections takes N²/2 steps.
const LONGEST: usize = 20_000;

/// Segments that are drawn in advance and repeated: more than connections, so that most occur.
const SEGMENTS: usize = 1 << 18;

/// Draws clients of one port of one server.
fn names(count: usize) -> Vec<Name> {
    let mut rng = StdRng::seed_from_u64(1);
    let (dst, dport) = (Ipv4Addr::new(198, 51, 100, 1), 443);
    let name = |rng: &mut StdRng| FourTuple {
        src: rng.random::<u32>().into(),
        dst,
        sport: rng.random_range(32_768..61_000),
        dport,
    };
    (0..count).map(|_| name(&mut rng)).collect()
}

/// Measures lookups of segments of random connections; each increments a counter in its PCB.
fn lookups<K: Copy, D: Demux<u64, K>>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    names: &[K],
    mut demux: D,
) {
    for &name in names {
        demux.insert(name, 0).expect("a new name below the limit");
    }
    let mut rng = StdRng::seed_from_u64(2);
    let segments: Vec<K> = (0..SEGMENTS).map(|_| names[rng.random_range(0..names.len())]).collect();
    let mut next = segments.iter().cycle();
    group.bench_function(BenchmarkId::new(name, names.len()), |bencher| {
        bencher.iter(|| {
            let segment = next.next().expect("an endless iterator");
            let found = demux.lookup(black_box(segment), Arrival::Data);
            *found.pcb.expect("the connection is present") += 1;
        });
    });
}

/// Measures all demultiplexers, with 4 to 100,000 connections.
fn demultiplexers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("demux");
    group.sample_size(20);
    group.warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(400));
    for count in [4, 16, 64, 2_000, 16_000, 100_000] {
        let names = names(count);
        let quarter = Sequent::with_chains(count / 4).expect("memory for the chains");
        let ids: Vec<u32> = (0..count as u32).collect();
        lookups(&mut group, "TrashDemux", &names, TrashDemux::new());
        lookups(&mut group, "ConnectionId", &ids, ConnectionId::new(count as u32));
        lookups(&mut group, "Sequent, N / 4 chains", &names, quarter);
        lookups(&mut group, "Sequent", &names, Sequent::new());
        lookups(&mut group, "SequentMoveToFront", &names, SequentMoveToFront::new());
        if count <= LONGEST {
            lookups(&mut group, "MoveToFront", &names, MoveToFront::new());
            lookups(&mut group, "SendReceive", &names, SendReceive::new());
            lookups(&mut group, "BsdList", &names, BsdList::new());
        }
    }
    group.finish();
}

criterion_group!(benches, demultiplexers);
criterion_main!(benches);
