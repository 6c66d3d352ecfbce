//! Timed rounds of map operations, in which the subjects take turns.

use super::limit::Limit;
use super::probes::Probes;
use super::subject::{MapSubject, Operation};
use crate::keys::{Key, random_keys};
use crate::memory;
use crate::results::{Column, Results};
use crate::subject::{Agreement, rotation};

/// Maps with at most this number of entries fit the L2 cache, from which the turns of the other
/// subjects have evicted them. So each operation is run twice, and the second time counts.
const FITS_L2: usize = 200_000;

pub(crate) struct Rounds<K> {
    pub(crate) operations: &'static [Operation],
    /// The first one is ours.
    pub(crate) subjects: Vec<MapSubject<K>>,
    /// Whether [`Limit`] is measured beside the batched lookups.
    pub(crate) has_limit: bool,
}

/// The amount of work for a number of entries.
struct Effort {
    rounds: usize,
    /// The number of rounds in which the maps are filled.
    fills: usize,
    /// Lookups per round.
    probes: usize,
}

impl Effort {
    fn new(n: usize, quick: bool) -> Self {
        let (rounds, fills) = if n <= FITS_L2 {
            (25, 15)
        } else if n <= 2_000_000 {
            (11, 7)
        } else {
            (9, 3)
        };
        let probes = n.clamp(1 << 16, 1 << 19);
        match quick {
            true => Self { rounds: 5, fills: 3, probes: probes.min(1 << 17) },
            false => Self { rounds, fills, probes },
        }
    }
}

impl<K: Key> Rounds<K> {
    /// Runs all rounds with maps of `n` entries.
    pub(crate) fn run(&mut self, n: usize, quick: bool) -> Results {
        let effort = Effort::new(n, quick);
        let keys = random_keys::<K>(n, 1);
        let mut source = Probes::new(&keys);
        let mut results = self.results(n, &effort);
        let mut limit = None;
        for round in 0..effort.rounds {
            for (column, &operation) in self.operations.iter().enumerate() {
                if operation == Operation::Fill {
                    if round < effort.fills {
                        let bytes = self.fill(&mut results, column, round, &keys);
                        limit = limit.or_else(|| self.has_limit.then(|| Limit::new(bytes)));
                    }
                    continue;
                }
                let probes = source.draw(operation, effort.probes);
                self.turns(&mut results, (column, operation), round, (n, &probes));
                if let Some(limit) = limit.as_mut().filter(|_| operation == Operation::Burst) {
                    limit.draw(&mut source.rng, effort.probes);
                    if n <= FITS_L2 {
                        limit.run();
                    }
                    results.record(self.subjects.len(), column, limit.run().ns);
                }
            }
        }
        self.subjects.iter_mut().for_each(|subject| subject.benchmark.clear());
        results
    }

    fn results(&self, n: usize, effort: &Effort) -> Results {
        let title = format!(
            "{n} entries, keys of {} bytes, values of 8: ns each; medians of {} rounds ({} fills)",
            K::NAME,
            effort.rounds,
            effort.fills
        );
        let column = |operation: &Operation| Column { bench: operation.name(), unit: "ns", n };
        let columns = self.operations.iter().map(column).collect();
        let mut results = Results::new(title, K::NAME, columns);
        results.add_rows(&self.subjects);
        if self.has_limit {
            results.add_row(Limit::NAME, None);
        }
        results
    }

    /// Fills the maps of all subjects. Returns the bytes of the first one.
    fn fill(&mut self, results: &mut Results, column: usize, round: usize, keys: &[K]) -> usize {
        let mut bytes = 0;
        for at in rotation(round, self.subjects.len()) {
            let benchmark = &mut self.subjects[at].benchmark;
            benchmark.clear();
            let before = memory::live();
            results.record(at, column, benchmark.run(Operation::Fill, keys).ns);
            if at == 0 {
                bytes = memory::live() - before;
            }
        }
        bytes
    }

    /// Runs an operation of all subjects with the same keys.
    fn turns(
        &mut self,
        results: &mut Results,
        (column, operation): (usize, Operation),
        round: usize,
        (n, probes): (usize, &[K]),
    ) {
        let mut agreement = Agreement::default();
        for at in rotation(round, self.subjects.len()) {
            let subject = &mut self.subjects[at];
            if !subject.benchmark.supports(operation) {
                continue;
            }
            if n <= FITS_L2 {
                subject.benchmark.run(operation, probes);
            }
            let timed = subject.benchmark.run(operation, probes);
            agreement.check(timed.sum, subject.name);
            results.record(at, column, timed.ns);
        }
    }
}
