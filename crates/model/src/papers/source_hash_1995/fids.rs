//! Names of flows, in the paper's form, and the sets of them whose collisions are counted.
//!
//! ```text
//!     FID     │ source, 4 bytes │ destination, 4 bytes │ unique number, 4 bytes │      and an index, at random
//! ```
//!
//! The paper drew addresses from a file of hosts that is lost. These are from a seed.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};

use flowtable::SourceIndex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// The name of a flow.
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

/// Just the bytes: an array would say its length first.
impl Hash for Fid {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(&self.0);
    }
}

/// A flow: its name, and the index that its source has given it.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    pub fid: Fid,
    pub index: SourceIndex,
}

/// Sources of packets, in the paper and here.
pub const GENERATORS: u32 = 16;

/// What the names of flows are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// The paper's: each generator is a subnet and numbers its flows; destinations are in few subnets.
    A,
    /// The number says which hosts, too, and each generator sends to one subnet.
    B,
    /// One subnet sends to another one; few numbers.
    C,
    /// All flows are numbered, and addresses are everywhere.
    D,
}

impl Set {
    pub const ALL: [Self; 4] = [Self::A, Self::B, Self::C, Self::D];

    /// So many flows, no two of which have one name. Fewer are the first ones of more.
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
