//! What the machine allows: a look-up cannot cost less than one line of memory.
//!
//! The lines are as many as our table has bytes for. Which one to read is a hash that is given, and a
//! burst of them is asked for before the first is read.

use std::time::Instant;

use rand::Rng;
use rand::rngs::StdRng;

use crate::contestant::BURST;
use crate::entrant::Timed;
use crate::prefetched::prefetch;

#[derive(Clone)]
#[repr(align(64))]
struct Line([u64; 8]);

pub(crate) struct Limit {
    lines: Vec<Line>,
    hashes: Vec<u64>,
}

impl Limit {
    pub(crate) const NAME: &str = "limit: a line each";

    /// As many lines as `bytes` make.
    pub(crate) fn new(bytes: usize) -> Self {
        let lines = vec![Line([1; 8]); bytes.div_ceil(size_of::<Line>()).max(1)];
        Self { lines, hashes: Vec::new() }
    }

    /// Other lines, of that number of bursts' look-ups.
    pub(crate) fn aim(&mut self, rng: &mut StdRng, count: usize) {
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
    fn line(&self, hash: u64) -> &Line {
        let scaled = u128::from(hash) * self.lines.len() as u128;
        &self.lines[(scaled >> 64) as usize]
    }
}
