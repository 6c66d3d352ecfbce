//! Contestants that take turns, so that what else the machine does hits all of them alike.

use std::hint::black_box;
use std::time::Instant;

use crate::report::median;

/// Works through all packets once. The number says what became of them.
pub(crate) type Contestant<'a> = Box<dyn FnMut() -> u64 + 'a>;

/// Nanoseconds for a packet: of each contestant, in each round.
pub(crate) struct Times(Vec<Vec<f64>>);

impl Times {
    /// Everybody runs once to warm up, then once in each round, and another one begins each round.
    pub(crate) fn measure(all: &mut [Contestant<'_>], packets: usize, rounds: usize) -> Self {
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

    /// The median over the rounds.
    pub(crate) fn of(&self, number: usize) -> f64 {
        median(self.0[number].clone())
    }

    /// How many times as fast as another one: the median of what it was in each round.
    pub(crate) fn times_as_fast(&self, number: usize, other: usize) -> f64 {
        let both = self.0[number].iter().zip(&self.0[other]);
        median(both.map(|(time, other)| other / time).collect())
    }
}
