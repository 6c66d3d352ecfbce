//! `RouteTable`: lookups, announcements and withdrawals: `cargo bench -- routes`.

use std::hint::black_box;
use std::net::{Ipv4Addr, Ipv6Addr};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use flowtable::key::bits::Address;
use flowtable::{Prefix, RouteTable};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use settings::{SIZES, draws};

type Draw<A> = fn(&mut StdRng) -> (A, u32);

/// Lengths as on the Internet: most of 24 bits.
fn v4(rng: &mut StdRng) -> (Ipv4Addr, u32) {
    let len = [24, 24, 24, 24, 24, 23, 22, 22, 21, 20, 19, 16][rng.random_range(0..12)];
    (Ipv4Addr::from_bits(64 << 24 | rng.random::<u32>() >> 3), len)
}

/// Most of 48 bits, in few allocations.
fn v6(rng: &mut StdRng) -> (Ipv6Addr, u32) {
    let len = [48, 48, 48, 48, 48, 47, 46, 44, 40, 36, 32, 29][rng.random_range(0..12)];
    let allocation = 0x2001_u128 << 112 | u128::from(rng.random::<u16>() & 0x1ff) << 96;
    (Ipv6Addr::from_bits(allocation | u128::from(rng.random::<u64>()) << 32), len)
}

fn family<A: Address + Copy>(criterion: &mut Criterion, name: &str, draw: Draw<A>) {
    let mut group = criterion.benchmark_group(format!("routes/{name}"));
    for count in SIZES {
        let mut rng = StdRng::seed_from_u64(1);
        let drawn: Vec<(A, u32)> = (0..count).map(|_| draw(&mut rng)).collect();
        let prefix = |(address, len): (A, u32)| Prefix::new(address, len).expect("a valid length");
        let mut table: RouteTable<A, u32> = drawn.iter().map(|&it| (prefix(it), 1)).collect();
        let addresses = draws(&drawn, 1 << 16);
        let mut next = addresses.iter().cycle();
        group.bench_function(BenchmarkId::new("lookup", count), |bencher| {
            bencher.iter(|| {
                let (address, _) = next.next().expect("an endless iterator");
                table.lookup(black_box(address)).map(|(_, value)| *value)
            });
        });
        group.bench_function(BenchmarkId::new("withdraw_and_announce", count), |bencher| {
            bencher.iter(|| {
                let at = prefix(*next.next().expect("an endless iterator"));
                table.remove(&at);
                table.insert(at, 1)
            });
        });
    }
    group.finish();
}

fn routes(criterion: &mut Criterion) {
    family(criterion, "v4", v4);
    family(criterion, "v6", v6);
}

criterion_group! {
    name = benches;
    config = settings::criterion();
    targets = routes
}
criterion_main!(benches);
