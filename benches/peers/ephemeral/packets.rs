//! Tags, and when they come.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::Bench;

/// What a packet brings, and when it comes.
#[derive(Clone, Copy)]
pub(crate) struct Packet {
    pub(crate) tag: u64,
    pub(crate) now: u64,
}

pub(crate) struct Packets {
    /// Those that were made last, as a ring: as many as live.
    last: Vec<u64>,
    /// How many were made: the time.
    made: u64,
    rng: StdRng,
}

impl Packets {
    pub(crate) fn new(n: usize) -> Self {
        Self { last: vec![0; n], made: 0, rng: StdRng::seed_from_u64(2002) }
    }

    pub(crate) fn draw(&mut self, bench: Bench, count: usize) -> Vec<Packet> {
        let packet = |number: usize| match bench {
            Bench::Create => self.make(),
            Bench::Mixed if number % 2 == 0 => self.make(),
            Bench::Mixed | Bench::Find => self.pick(),
        };
        (0..count).map(packet).collect()
    }

    fn make(&mut self) -> Packet {
        let (tag, n) = (self.rng.random(), self.last.len() as u64);
        self.last[(self.made % n) as usize] = tag;
        self.made += 1;
        Packet { tag, now: self.made }
    }

    /// One that lives, and not one of those that the rest of a burst may have expired.
    fn pick(&mut self) -> Packet {
        let n = self.last.len() as u64;
        let age = self.rng.random_range(0..n - n / 10);
        Packet { tag: self.last[((self.made - 1 - age) % n) as usize], now: self.made }
    }
}
