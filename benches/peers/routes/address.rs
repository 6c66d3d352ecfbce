//! The addresses that are looked up in a round.

use flowtable::Prefix;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Zipf};

use super::family::Family;
use super::subject::Route;

/// Lookups before a round, which do not count: the other subjects have evicted a table from the
/// CPU's caches.
pub(crate) const WARM_UP: usize = 1 << 18;

/// The distribution of destination addresses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Traffic {
    /// Uniform over the announced prefixes, and within the prefix.
    Inside,
    /// Uniform over the routed address space.
    Random,
    /// A Zipf distribution with exponent 1 over the prefixes; uniform within the prefix.
    Zipf,
}

/// Draws the addresses of a round.
pub(crate) struct Addresses<A> {
    /// Shuffled, as the order of insertion may be the order in memory.
    prefixes: Vec<Prefix<A>>,
    zipf: Zipf<f64>,
    rng: StdRng,
}

impl<A: Family> Addresses<A> {
    pub(crate) fn new(routes: &[Route<A>]) -> Self {
        let mut rng = StdRng::seed_from_u64(2);
        let mut prefixes: Vec<_> = routes.iter().map(|route| route.prefix).collect();
        prefixes.shuffle(&mut rng);
        let zipf = Zipf::new(prefixes.len() as f64, 1.0).expect("at least one route");
        Self { prefixes, zipf, rng }
    }

    pub(crate) fn draw(&mut self, traffic: Traffic, count: usize) -> Vec<A> {
        (0..count).map(|_| self.address(traffic)).collect()
    }

    fn address(&mut self, traffic: Traffic) -> A {
        let Self { prefixes, zipf, rng } = self;
        let at = match traffic {
            Traffic::Inside => rng.random_range(0..prefixes.len()),
            Traffic::Random => return address_within(A::ROUTED, rng),
            Traffic::Zipf => zipf.sample(rng) as usize - 1,
        };
        address_within((prefixes[at].address().left(), prefixes[at].len()), rng)
    }
}

/// Returns a random address that begins with the first `len` bits of `first`, whose other bits are
/// zero.
pub(crate) fn address_within<A: Family>((first, len): (u128, u32), rng: &mut StdRng) -> A {
    A::from_left(first | rng.random::<u128>().checked_shr(len).unwrap_or(0))
}
