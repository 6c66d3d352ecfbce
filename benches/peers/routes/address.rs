//! Which addresses are looked up in a round.

use flowtable::Prefix;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Zipf};

use super::contestant::Route;
use super::family::Family;

/// So many look-ups do not count at first: the others have thrown a table out of the caches, and then
/// what it needs often is there again.
pub(crate) const WARM_UP: usize = 1 << 18;

/// Whom packets are for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Traffic {
    /// Any prefix that is announced, and any address in it.
    Inside,
    /// Any address of those that are routed.
    Random,
    /// Prefixes by Zipf's law with exponent 1, and any address in them.
    Zipf,
}

/// Draws the addresses of a round.
pub(crate) struct Draw<A> {
    /// In a random order, which is not the order of insertion.
    prefixes: Vec<Prefix<A>>,
    zipf: Zipf<f64>,
    rng: StdRng,
}

impl<A: Family> Draw<A> {
    pub(crate) fn new(routes: &[Route<A>]) -> Self {
        let mut rng = StdRng::seed_from_u64(2);
        let mut prefixes: Vec<_> = routes.iter().map(|route| route.prefix).collect();
        prefixes.shuffle(&mut rng);
        let zipf = Zipf::new(prefixes.len() as f64, 1.0).expect("there is a route");
        Self { prefixes, zipf, rng }
    }

    pub(crate) fn addresses(&mut self, traffic: Traffic, count: usize) -> Vec<A> {
        (0..count).map(|_| self.address(traffic)).collect()
    }

    fn address(&mut self, traffic: Traffic) -> A {
        let Self { prefixes, zipf, rng } = self;
        let at = match traffic {
            Traffic::Inside => rng.random_range(0..prefixes.len()),
            Traffic::Random => return below(A::ROUTED, rng),
            Traffic::Zipf => zipf.sample(rng) as usize - 1,
        };
        below((prefixes[at].address().left(), prefixes[at].len()), rng)
    }
}

/// Any address that begins with `len` bits of `first`, the rest of which is zero.
pub(crate) fn below<A: Family>((first, len): (u128, u32), rng: &mut StdRng) -> A {
    A::from_left(first | rng.random::<u128>().checked_shr(len).unwrap_or(0))
}
