//! Flow identifiers in the format of the paper, and sets of them to count collisions in.
//!
//! ```text
//!     FID   │ source, 4 bytes │ destination, 4 bytes │ number, 4 bytes │   and a random index
//! ```
//!
//! The host file of the paper is lost: addresses are generated from a seed.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};

use flowtable::hash::source_index::SourceIndex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// A flow identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fid(pub [u8; 12]);

impl Fid {
    pub fn new(source: [u8; 4], destination: [u8; 4], number: u32) -> Self {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&source);
        bytes[4..8].copy_from_slice(&destination);
        bytes[8..].copy_from_slice(&number.to_be_bytes());
        Self(bytes)
    }
}

/// Hashes the bytes only: an array would write its length first.
impl Hash for Fid {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(&self.0);
    }
}

/// A flow: its identifier, and the random index that its source assigned.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    pub fid: Fid,
    pub index: SourceIndex,
}

/// Packet generators, in the paper and here.
pub const GENERATORS: u32 = 16;

/// The distribution of the identifiers of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// The set of the paper: each generator is a subnet and numbers its flows; destinations are in
    /// 16 subnets.
    A,
    /// The number determines the hosts, too, and each generator sends to one subnet.
    B,
    /// One subnet sends to another one, with 64 numbers.
    C,
    /// Flows are numbered, and addresses are uniform.
    D,
}

impl Set {
    pub const ALL: [Self; 4] = [Self::A, Self::B, Self::C, Self::D];

    /// Generates `count` flows with distinct identifiers. A shorter set is a prefix of a longer
    /// one.
    pub fn flows(self, count: usize, seed: u64) -> Vec<Flow> {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut names = HashSet::new();
        let mut flows = Vec::with_capacity(count);
        for number in 0..count as u32 {
            let fid = loop {
                let fid = self.fid(number, &mut rng);
                if names.insert(fid) {
                    break fid;
                }
            };
            flows.push(Flow { fid, index: SourceIndex::new(rng.random()) });
        }
        flows
    }

    fn fid(self, number: u32, rng: &mut StdRng) -> Fid {
        let (generator, turn) = ((number % GENERATORS) as u8, number / GENERATORS);
        let mut host = || rng.random_range(1..=254);
        match self {
            Self::A => {
                let (from, to) = (host(), host());
                Fid::new([10, 1, generator, from], [10, 2, rng.random_range(0..16), to], turn)
            }
            Self::B => {
                let host = (turn % 254 + 1) as u8;
                Fid::new([10, 1, generator, host], [10, 2, generator, host], turn)
            }
            Self::C => Fid::new([10, 1, 1, host()], [10, 2, 1, host()], number % 64),
            Self::D => {
                let (from, to) = (host(), host());
                let [a, b, c, d] = rng.random();
                Fid::new([10, a, b, from], [10, c, d, to], number)
            }
        }
    }
}
