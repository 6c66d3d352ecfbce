//! Interleaved rounds, so that disturbances of the machine affect all subjects alike.

use std::hint::black_box;
use std::time::Instant;

use crate::report::median;

/// A subject, which processes all packets once. The result depends on all of them.
pub(crate) type Subject<'a> = Box<dyn FnMut() -> u64 + 'a>;

/// Nanoseconds per packet of each subject in each round.
pub(crate) struct Times(Vec<Vec<f64>>);

impl Times {
    /// Measures all subjects in each round after one to warm up. The first subject rotates.
    pub(crate) fn measure(all: &mut [Subject<'_>], packets: usize, rounds: usize) -> Self {
        let mut times = vec![vec![]; all.len()];
        for round in 0..=rounds {
            for turn in 0..all.len() {
                let number = (round + turn) % all.len();
                let begun = Instant::now();
                black_box(all[number]());
                if round > 0 {
                    times[number].push(begun.elapsed().as_nanos() as f64 / packets as f64);
                }
            }
        }
        Self(times)
    }

    /// Returns the median over the rounds.
    pub(crate) fn of(&self, number: usize) -> f64 {
        median(self.0[number].clone())
    }

    /// Returns the speed relative to another subject: the median of the ratios within rounds.
    pub(crate) fn times_as_fast(&self, number: usize, other: usize) -> f64 {
        let both = self.0[number].iter().zip(&self.0[other]);
        median(both.map(|(time, other)| other / time).collect())
    }
}
