//! *Efficient demultiplexing of incoming TCP packets*: lookups of each algorithm:
//! `cargo bench -- sequent`.

use std::hint::black_box;
use std::net::Ipv4Addr;

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
const LONGEST: usize = 2_000;

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
    for count in [16, 2_000, 100_000] {
        let names = names(count);
        let quarter = Sequent::with_chains(count / 4).expect("memory for the chains");
        let ids: Vec<u32> = (0..count as u32).collect();
        lookups(&mut group, "trash", &names, TrashDemux::new());
        lookups(&mut group, "connection_id", &ids, ConnectionId::new(count as u32));
        lookups(&mut group, "sequent_n_4_chains", &names, quarter);
        lookups(
            &mut group,
            "sequent",
            &names,
            Sequent::with_chains(19).expect("memory for the chains"),
        );
        lookups(
            &mut group,
            "sequent_move_to_front",
            &names,
            SequentMoveToFront::with_chains(19).expect("memory for the chains"),
        );
        if count <= LONGEST {
            lookups(&mut group, "move_to_front", &names, MoveToFront::new());
            lookups(&mut group, "send_receive", &names, SendReceive::new());
            lookups(&mut group, "bsd", &names, BsdList::new());
        }
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = settings::criterion();
    targets = demultiplexers
}
criterion_main!(benches);
