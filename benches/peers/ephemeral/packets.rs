//! The tags and arrival times of packets.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::Mix;

/// The tag of a packet, and the time of its arrival.
#[derive(Clone, Copy)]
pub(crate) struct Packet {
    pub(crate) tag: u64,
    pub(crate) now: u64,
}

pub(crate) struct Packets {
    /// A ring of the newest tags, whose bindings are live.
    newest: Vec<u64>,
    /// The number of tags created: the time.
    created: u64,
    /// The maximum age of a tag that is looked up, in creations.
    ages: u64,
    rng: StdRng,
}

impl Packets {
    /// Packets of `n` live tags, of which the newest `ages` are looked up.
    pub(crate) fn new(n: usize, ages: usize, seed: u64) -> Self {
        let (ages, rng) = (ages as u64, StdRng::seed_from_u64(seed));
        Self { newest: vec![0; n], created: 0, ages, rng }
    }

    pub(crate) fn draw(&mut self, mix: Mix, count: usize) -> Vec<Packet> {
        let packet = |number: usize| match mix {
            Mix::Create => self.create(),
            Mix::Mixed if number % 2 == 0 => self.create(),
            Mix::Mixed | Mix::Find => self.pick(),
        };
        (0..count).map(packet).collect()
    }

    fn create(&mut self) -> Packet {
        let (tag, n) = (self.rng.random(), self.newest.len() as u64);
        self.newest[(self.created % n) as usize] = tag;
        self.created += 1;
        Packet { tag, now: self.created }
    }

    /// Picks a live tag that does not expire within a batch.
    fn pick(&mut self) -> Packet {
        let n = self.newest.len() as u64;
        let age = self.rng.random_range(0..self.ages);
        Packet { tag: self.newest[((self.created - 1 - age) % n) as usize], now: self.created }
    }
}
