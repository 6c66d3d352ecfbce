//! Flows, and the packets of a round.

use flowtable::FourTuple;
use flowtable::hash::source_index::SourceIndex;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Zipf};

use super::Bench;

/// 12 bytes.
pub(crate) type Name = FourTuple<u32>;

/// What a packet brings.
#[derive(Clone, Copy)]
pub(crate) struct Packet {
    pub(crate) name: Name,
    pub(crate) index: SourceIndex,
}

/// Caches with three ways have room for three flows where there are two.
pub(crate) const THREES_FOR_TWO: usize = 3;

pub(crate) struct Packets {
    /// Those that are cached, in the order in which they come.
    pub(crate) flows: Vec<Packet>,
    /// The same in an order that changes.
    shuffled: Vec<Packet>,
    /// By popularity, four times as many.
    popular: Vec<Packet>,
    zipf: Zipf<f64>,
    rng: StdRng,
}

impl Packets {
    pub(crate) fn new(n: usize) -> Self {
        let mut rng = StdRng::seed_from_u64(1995);
        let flows = apart(n, &mut rng);
        let popular = (0..4 * n).map(|_| random(&mut rng)).collect();
        let zipf = Zipf::new(4.0 * n as f64, 1.0).expect("there is a flow");
        Self { shuffled: flows.clone(), flows, popular, zipf, rng }
    }

    pub(crate) fn draw(&mut self, bench: Bench, count: usize) -> Vec<Packet> {
        let Self { shuffled, popular, zipf, rng, .. } = self;
        match bench {
            Bench::Miss => (0..count).map(|_| random(rng)).collect(),
            Bench::Stream => (0..count).map(|_| popular[zipf.sample(rng) as usize - 1]).collect(),
            Bench::Hit | Bench::Dependent | Bench::Bursts(_) => {
                let mut some = Vec::with_capacity(count);
                while some.len() < count {
                    some.extend_from_slice(shuffled.partial_shuffle(rng, count - some.len()).0);
                }
                some
            }
        }
    }
}

fn random(rng: &mut StdRng) -> Packet {
    let name =
        Name { src: rng.random(), dst: rng.random(), sport: rng.random(), dport: rng.random() };
    Packet { name, index: SourceIndex::new(rng.random()) }
}

/// So many flows, none of which displaces another one in the caches of this contest.
fn apart(n: usize, rng: &mut StdRng) -> Vec<Packet> {
    let direct = (2 * n).next_power_of_two();
    let threes = (THREES_FOR_TWO * n / 2).div_ceil(3).next_power_of_two();
    let (mut places, mut sets) = (vec![false; direct], vec![0; threes]);
    let mut flows = Vec::with_capacity(n);
    while flows.len() < n {
        let packet = random(rng);
        let index = packet.index.get() as usize;
        if !places[index % direct] && sets[index % threes] < 3 {
            places[index % direct] = true;
            sets[index % threes] += 1;
            flows.push(packet);
        }
    }
    flows
}
