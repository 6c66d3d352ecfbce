//! The keys that are looked up in a round.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand_distr::{Distribution, Zipf};

use super::subject::Operation;
use crate::keys::{Key, random_keys};

/// Draws the keys of rounds.
pub(crate) struct Probes<K> {
    /// Shuffled, as the order of insertion may be the order in memory.
    present: Vec<K>,
    absent: Vec<K>,
    zipf: Zipf<f64>,
    pub(crate) rng: StdRng,
}

impl<K: Key> Probes<K> {
    pub(crate) fn new(present: &[K]) -> Self {
        let mut rng = StdRng::seed_from_u64(2);
        let mut shuffled = present.to_vec();
        shuffled.shuffle(&mut rng);
        Self {
            present: shuffled,
            absent: random_keys(present.len().min(1 << 20), 3),
            zipf: Zipf::new(present.len() as f64, 1.0).expect("at least one key"),
            rng,
        }
    }

    /// Draws `count` keys for `operation`; fewer for slow operations.
    pub(crate) fn draw(&mut self, operation: Operation, count: usize) -> Vec<K> {
        let Self { present, absent, zipf, rng } = self;
        match operation {
            Operation::Fill | Operation::Hit | Operation::Burst => sample(present, rng, count),
            Operation::Chain | Operation::Churn => sample(present, rng, count / 4),
            Operation::Miss => sample(absent, rng, count),
            // Each draw of another operation shuffles `present`, so the popular keys change.
            Operation::Zipf => (0..count).map(|_| present[zipf.sample(rng) as usize - 1]).collect(),
        }
    }
}

/// Returns `count` of the keys in a random order, each equally often, within one.
fn sample<K: Copy>(keys: &mut [K], rng: &mut StdRng, count: usize) -> Vec<K> {
    let mut drawn = Vec::with_capacity(count);
    while drawn.len() < count {
        drawn.extend_from_slice(keys.partial_shuffle(rng, count - drawn.len()).0);
    }
    drawn
}
