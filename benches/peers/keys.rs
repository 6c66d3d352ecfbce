//! Keys, and which of them are looked up in a round.

use std::hash::{Hash, Hasher};
use std::net::Ipv4Addr;

use flowtable::FiveTuple;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Zipf};

use crate::contestant::Bench;

pub(crate) trait Key: Copy + Eq + 'static {
    /// Bytes, and what else there is to say.
    const NAME: &str;
    fn random(rng: &mut StdRng) -> Self;
}

/// A key of whole words that is hashed and compared in words. The last one holds 5 bytes of
/// information, as ports and protocol do behind the addresses: 13 bytes of 16 for IPv4, 37 of 40 for
/// IPv6.
#[derive(Clone, Copy, Eq)]
pub(crate) struct Words<const N: usize>([u64; N]);

/// An array's own comparison calls a function of the C library from five words on.
impl<const N: usize> PartialEq for Words<N> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).fold(0, |differ, (own, other)| differ | own ^ other) == 0
    }
}

impl<const N: usize> Hash for Words<N> {
    #[inline]
    fn hash<S: Hasher>(&self, state: &mut S) {
        self.0.iter().for_each(|&word| state.write_u64(word));
    }
}

impl<const N: usize> Key for Words<N> {
    const NAME: &str = match N {
        2 => "16",
        5 => "40",
        _ => panic!("no key of the benches has so many words"),
    };

    fn random(rng: &mut StdRng) -> Self {
        let mut words: [u64; N] = rng.random();
        words[N - 1] >>= 24;
        Self(words)
    }
}

/// 13 bytes of information in 14.
impl Key for FiveTuple<Ipv4Addr> {
    const NAME: &str = "14";

    fn random(rng: &mut StdRng) -> Self {
        Self {
            src: rng.random::<u32>().into(),
            dst: rng.random::<u32>().into(),
            sport: rng.random(),
            dport: rng.random(),
            protocol: 6,
        }
    }
}

pub(crate) fn random_keys<K: Key>(count: usize, seed: u64) -> Vec<K> {
    let mut rng = StdRng::seed_from_u64(seed);
    (0..count).map(|_| K::random(&mut rng)).collect()
}

/// Draws the keys of a round.
pub(crate) struct Draw<K> {
    /// In a random order, which is not the order of insertion.
    present: Vec<K>,
    absent: Vec<K>,
    zipf: Zipf<f64>,
    pub(crate) rng: StdRng,
}

impl<K: Key> Draw<K> {
    pub(crate) fn new(present: &[K]) -> Self {
        let mut rng = StdRng::seed_from_u64(2);
        let mut shuffled = present.to_vec();
        shuffled.shuffle(&mut rng);
        Self {
            present: shuffled,
            absent: random_keys(present.len().min(1 << 20), 3),
            zipf: Zipf::new(present.len() as f64, 1.0).expect("there is a key"),
            rng,
        }
    }

    /// `count` keys for `bench`; fewer for those that take long.
    pub(crate) fn probes(&mut self, bench: Bench, count: usize) -> Vec<K> {
        let Self { present, absent, zipf, rng } = self;
        match bench {
            Bench::Fill | Bench::Hit | Bench::Burst => some(present, rng, count),
            Bench::Chain | Bench::Churn => some(present, rng, count / 4),
            Bench::Miss => some(absent, rng, count),
            // The key of a rank is another one every time, as `present` is shuffled on and on.
            Bench::Zipf => (0..count).map(|_| present[zipf.sample(rng) as usize - 1]).collect(),
        }
    }
}

/// `count` of the keys in a random order; each as often as the others, give or take once.
fn some<K: Copy>(keys: &mut [K], rng: &mut StdRng, count: usize) -> Vec<K> {
    let mut some = Vec::with_capacity(count);
    while some.len() < count {
        some.extend_from_slice(keys.partial_shuffle(rng, count - some.len()).0);
    }
    some
}
