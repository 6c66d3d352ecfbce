//! The time of each benchmark, and random keys.

use std::net::Ipv4Addr;
use std::time::Duration;

use criterion::Criterion;
use flowtable::FiveTuple;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

pub type Key = FiveTuple<Ipv4Addr>;

/// Numbers of entries: in the L2 cache of most CPUs, and beyond it.
pub const SIZES: [usize; 2] = [1_000, 100_000];

/// Half a second for each benchmark, so that all of them take less than five minutes.
pub fn criterion() -> Criterion {
    Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(400))
        .configure_from_args()
}

/// Draws the keys of flows; those of one seed are a part of no other seed's.
pub fn keys(count: usize, seed: u64) -> Vec<Key> {
    let mut rng = StdRng::seed_from_u64(seed);
    let key = |rng: &mut StdRng| FiveTuple {
        src: rng.random::<u32>().into(),
        dst: rng.random::<u32>().into(),
        sport: rng.random(),
        dport: rng.random(),
        protocol: 17,
    };
    (0..count).map(|_| key(&mut rng)).collect()
}

/// Draws `count` of the items, with repetitions.
pub fn draws<T: Copy>(items: &[T], count: usize) -> Vec<T> {
    let mut rng = StdRng::seed_from_u64(99);
    (0..count).map(|_| items[rng.random_range(0..items.len())]).collect()
}
