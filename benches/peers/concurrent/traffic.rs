//! The tasks of threads in a round.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::Key;
use super::threads::Task;
use crate::subject::BURST;

/// Draws tasks. The low half of a value is the index of its key, the high half the number of the
/// task that wrote it: the sum of the low halves does not depend on updates by other threads.
pub(crate) struct Traffic<'a> {
    keys: &'a [Key],
    /// Indices of `keys`, shuffled by each draw.
    order: Vec<u32>,
    rng: StdRng,
    drawn: u64,
}

impl<'a> Traffic<'a> {
    pub(crate) fn new(keys: &'a [Key]) -> Self {
        let count = u32::try_from(keys.len()).expect("an index has 32 bits");
        Self { keys, order: (0..count).collect(), rng: StdRng::seed_from_u64(2), drawn: 0 }
    }

    /// Draws a task of at least `reads` uniform reads, with an update after each `every` reads.
    pub(crate) fn task(&mut self, reads: usize, every: usize) -> Task {
        self.drawn += 1;
        let reads = reads.next_multiple_of(BURST);
        let indices = self.indices(reads);
        let updated = self.indices(reads / every);
        let value = |index: u32| self.drawn << 32 | u64::from(index);
        Task {
            reads: indices.iter().map(|&index| self.keys[index as usize]).collect(),
            updates: updated.iter().map(|&at| (self.keys[at as usize], value(at))).collect(),
            every,
            sum: indices.iter().map(|&index| u64::from(index)).sum(),
        }
    }

    /// Returns indices in a random order, each equally often, within one.
    fn indices(&mut self, count: usize) -> Vec<u32> {
        let mut indices = Vec::with_capacity(count);
        while indices.len() < count {
            let rest = count - indices.len();
            indices.extend_from_slice(self.order.partial_shuffle(&mut self.rng, rest).0);
        }
        indices
    }
}
