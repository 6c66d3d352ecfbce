//! What threads do in a round.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::Key;
use super::work::Task;
use crate::contestant::BURST;

/// Draws tasks. A value is a key's place in its lower 32 bits, and above these the number of the task
/// that has written it: the sum of the lower halves is known, whoever writes beside the readers.
pub(crate) struct Traffic<'a> {
    keys: &'a [Key],
    /// Places of `keys`, in an order that changes.
    order: Vec<u32>,
    rng: StdRng,
    drawn: u64,
}

impl<'a> Traffic<'a> {
    pub(crate) fn new(keys: &'a [Key]) -> Self {
        let count = u32::try_from(keys.len()).expect("a place has 32 bits");
        Self { keys, order: (0..count).collect(), rng: StdRng::seed_from_u64(2), drawn: 0 }
    }

    /// At least `reads` of them, of uniform keys, with an update after each `every` of them.
    pub(crate) fn task(&mut self, reads: usize, every: usize) -> Task {
        self.drawn += 1;
        let reads = reads.next_multiple_of(BURST);
        let places = self.places(reads);
        let updated = self.places(reads / every);
        let value = |place: u32| self.drawn << 32 | u64::from(place);
        Task {
            reads: places.iter().map(|&place| self.keys[place as usize]).collect(),
            updates: updated.iter().map(|&at| (self.keys[at as usize], value(at))).collect(),
            every,
            sum: places.iter().map(|&place| u64::from(place)).sum(),
        }
    }

    /// In a random order; each as often as the others, give or take once.
    fn places(&mut self, count: usize) -> Vec<u32> {
        let mut places = Vec::with_capacity(count);
        while places.len() < count {
            let rest = count - places.len();
            places.extend_from_slice(self.order.partial_shuffle(&mut self.rng, rest).0);
        }
        places
    }
}
