//! The keys of maps.

use std::hash::{Hash, Hasher};
use std::net::Ipv4Addr;

use flowtable::FiveTuple;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

pub(crate) trait Key: Copy + Eq + 'static {
    /// The bytes of a key, for the results.
    const NAME: &str;
    fn random(rng: &mut StdRng) -> Self;
}

/// A key of `N` words that is hashed and compared by words. The last word holds 5 random bytes, as
/// ports and protocol follow the addresses in a flow key: 13 bytes of 16 for IPv4, 37 of 40 for
/// IPv6.
#[derive(Clone, Copy, Eq)]
#[repr(transparent)]
pub(crate) struct Words<const N: usize>([u64; N]);

#[cfg(feature = "concurrent")]
#[allow(unsafe_code)]
// SAFETY: it is an array of words.
unsafe impl<const N: usize> flowtable::concurrent::NoUninit for Words<N> {}

/// `PartialEq` of an array calls `memcmp` from five words on.
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
        _ => panic!("keys have two or five words"),
    };

    fn random(rng: &mut StdRng) -> Self {
        let mut words: [u64; N] = rng.random();
        words[N - 1] >>= 24;
        Self(words)
    }
}

/// A five-tuple: 13 bytes of information in 14.
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
