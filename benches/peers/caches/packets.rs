//! Flows, and the packets of a round.

use flowtable::FourTuple;
use flowtable::hash::source_index::SourceIndex;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Zipf};

use super::Access;

/// The name of a flow: 12 bytes.
pub(crate) type Name = FourTuple<u32>;

/// The fields of a packet that a lookup uses.
#[derive(Clone, Copy)]
pub(crate) struct Packet {
    pub(crate) name: Name,
    pub(crate) index: SourceIndex,
}

/// Slots of a cache with three ways, per two flows.
pub(crate) const THREES_FOR_TWO: usize = 3;

pub(crate) struct Packets {
    /// The cached flows, in the order of insertion.
    pub(crate) flows: Vec<Packet>,
    /// The cached flows, shuffled by each draw.
    shuffled: Vec<Packet>,
    /// The flows of streams by popularity, four times as many.
    popular: Vec<Packet>,
    zipf: Zipf<f64>,
    rng: StdRng,
}

impl Packets {
    pub(crate) fn new(n: usize) -> Self {
        let mut rng = StdRng::seed_from_u64(1995);
        let flows = without_conflicts(n, &mut rng);
        let popular = (0..4 * n).map(|_| random(&mut rng)).collect();
        let zipf = Zipf::new(4.0 * n as f64, 1.0).expect("at least one flow");
        Self { shuffled: flows.clone(), flows, popular, zipf, rng }
    }

    pub(crate) fn draw(&mut self, access: Access, count: usize) -> Vec<Packet> {
        let Self { shuffled, popular, zipf, rng, .. } = self;
        match access {
            Access::Miss => (0..count).map(|_| random(rng)).collect(),
            Access::Stream => (0..count).map(|_| popular[zipf.sample(rng) as usize - 1]).collect(),
            Access::Hit | Access::Dependent | Access::Bursts(_) => {
                let mut drawn = Vec::with_capacity(count);
                while drawn.len() < count {
                    drawn.extend_from_slice(shuffled.partial_shuffle(rng, count - drawn.len()).0);
                }
                drawn
            }
        }
    }
}

fn random(rng: &mut StdRng) -> Packet {
    let name =
        Name { src: rng.random(), dst: rng.random(), sport: rng.random(), dport: rng.random() };
    Packet { name, index: SourceIndex::new(rng.random()) }
}

/// Draws `n` flows, none of which displaces another one in the caches measured here.
fn without_conflicts(n: usize, rng: &mut StdRng) -> Vec<Packet> {
    let direct = (2 * n).next_power_of_two();
    let threes = (THREES_FOR_TWO * n / 2).div_ceil(3).next_power_of_two();
    let (mut slots, mut sets) = (vec![false; direct], vec![0; threes]);
    let mut flows = Vec::with_capacity(n);
    while flows.len() < n {
        let packet = random(rng);
        let index = packet.index.get() as usize;
        if !slots[index % direct] && sets[index % threes] < 3 {
            slots[index % direct] = true;
            sets[index % threes] += 1;
            flows.push(packet);
        }
    }
    flows
}
