//! The lower bound of a batched lookup: one cache line read per key, with precomputed hashes.
//!
//! The array has as many bytes as our table. A batch of cache lines is prefetched before the first
//! is read.

use std::time::Instant;

use rand::Rng;
use rand::rngs::StdRng;

use super::prefetched::prefetch;
use crate::subject::{BURST, Timed};

#[derive(Clone)]
#[repr(align(64))]
struct CacheLine([u64; 8]);

pub(crate) struct Limit {
    lines: Vec<CacheLine>,
    hashes: Vec<u64>,
}

impl Limit {
    pub(crate) const NAME: &str = "limit: a line each";

    /// Allocates `bytes`, rounded up to cache lines.
    pub(crate) fn new(bytes: usize) -> Self {
        let lines = vec![CacheLine([1; 8]); bytes.div_ceil(size_of::<CacheLine>()).max(1)];
        Self { lines, hashes: Vec::new() }
    }

    /// Draws the hashes of `count` lookups.
    pub(crate) fn draw(&mut self, rng: &mut StdRng, count: usize) {
        self.hashes.clear();
        self.hashes.extend((0..count).map(|_| rng.random::<u64>()));
    }

    #[inline(never)]
    pub(crate) fn run(&self) -> Timed {
        let start = Instant::now();
        let mut sum = 0_u64;
        for burst in self.hashes.chunks_exact(BURST) {
            burst.iter().for_each(|&hash| prefetch(self.line(hash)));
            sum += burst.iter().map(|&hash| self.line(hash).0[0]).sum::<u64>();
        }
        Timed::new(start.elapsed(), self.hashes.len() / BURST * BURST, sum)
    }

    #[inline]
    fn line(&self, hash: u64) -> &CacheLine {
        let scaled = u128::from(hash) * self.lines.len() as u128;
        &self.lines[(scaled >> 64) as usize]
    }
}
