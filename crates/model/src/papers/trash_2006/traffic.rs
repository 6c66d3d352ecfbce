//! The paper's packets and the keys that it finds their flows by.
//!
//! Packets come from the paper's packet generator: rings of concurrent flows, a new flow in the
//! place of each one that has ended. Everything is made from a seed.

use std::net::Ipv4Addr;

use flowtable::{BitString, DefaultHashBuilder, FiveTuple, Headed};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

pub type Flow = FiveTuple<Ipv4Addr>;

/// The paper's 128-bit key: five words but for the ports, which share one.
pub fn src_dst(flow: &Flow) -> u128 {
    let ports = u32::from(flow.sport) << 16 | u32::from(flow.dport);
    [flow.src.to_bits(), flow.dst.to_bits(), ports, flow.protocol.into()]
        .into_iter()
        .fold(0, |key, word| key << 32 | u128::from(word))
}

/// The same with the destination first.
pub fn dst_src(flow: &Flow) -> u128 {
    src_dst(&Flow { src: flow.dst, dst: flow.src, ..*flow })
}

/// The 160 bits of TRASH: a hash of 32 bits, then the key.
pub fn trash(flow: &Flow, hasher: &DefaultHashBuilder) -> Headed<u128, u32> {
    Headed::short(src_dst(flow), hasher)
}

/// The paper's long keys: as many words as IPv6 and more would need, zeros behind the first four.
pub fn wide<const N: usize>(flow: &Flow, hasher: &DefaultHashBuilder) -> Headed<[u8; N], u32> {
    let mut key = [0; N];
    key[..16].copy_from_slice(&src_dst(flow).to_be_bytes());
    Headed::short(key, hasher)
}

/// A packet, and whether it is its flow's last: the paper's generator marks it.
#[derive(Clone, Copy)]
pub struct Packet {
    pub flow: Flow,
    pub last: bool,
}

/// In what order flows get their turns.
#[derive(Clone, Copy)]
pub enum Order {
    /// A random flow each time, as the generator picks them.
    Random,
    /// One after the other: the worst that can happen to a cache.
    RoundRobin,
}

/// Two rings of flows, one per interface, that send in turns.
///
/// The flows of a ring have one source and random destinations in one /8.
pub struct Rings {
    nets: [u8; 2],
    /// Each ring's flows, with the number of packets that they have sent. 0 is a flow to be made.
    rings: [Vec<(Flow, u32)>; 2],
    order: Order,
    length: u32,
    turn: usize,
    rng: StdRng,
}

impl Rings {
    /// Adjacent nets: the two differ in their last bit only.
    pub const ADJACENT: [u8; 2] = [10, 11];

    /// `flows` concurrent flows in each ring, of `length` packets.
    pub fn new(flows: usize, length: u32, order: Order, nets: [u8; 2]) -> Self {
        let mut rng = StdRng::seed_from_u64(2006);
        let rings = nets.map(|net| {
            let flow = |_| match order {
                Order::Random => (new_flow(net, &mut rng), 0),
                // Flows that take turns would all end together: let each be somewhere in its life.
                Order::RoundRobin => (new_flow(net, &mut rng), rng.random_range(0..length)),
            };
            (0..flows).map(flow).collect()
        });
        Self { nets, rings, order, length, turn: 0, rng }
    }

    /// The paper's denial of service: 2 x 4096 flows of two packets.
    pub fn rdos(nets: [u8; 2]) -> Self {
        Self::new(4096, 2, Order::Random, nets)
    }
}

impl Iterator for Rings {
    type Item = Packet;

    fn next(&mut self) -> Option<Packet> {
        let side = self.turn % 2;
        let ring = &mut self.rings[side];
        let slot = match self.order {
            Order::Random => self.rng.random_range(0..ring.len()),
            Order::RoundRobin => self.turn / 2 % ring.len(),
        };
        let (flow, sent) = &mut ring[slot];
        if *sent == 0 {
            *flow = new_flow(self.nets[side], &mut self.rng);
        }
        *sent = (*sent + 1) % self.length;
        self.turn += 1;
        Some(Packet { flow: *flow, last: *sent == 0 })
    }
}

/// A flow from the constant source of a net to a random host in it.
pub fn new_flow(net: u8, rng: &mut StdRng) -> Flow {
    let host = rng.random::<u32>() >> u8::BITS;
    Flow {
        src: Ipv4Addr::new(192, 168, net, 1),
        dst: Ipv4Addr::from_bits(u32::from(net) << 24 | host),
        sport: 9,
        dport: 9,
        protocol: 17,
    }
}

/// The first `count` keys of the denial of service that differ.
pub fn distinct<K: BitString>(count: usize, nets: [u8; 2], key: impl Fn(&Flow) -> K) -> Vec<K> {
    let mut seen = std::collections::BTreeSet::new();
    let mut keys = Vec::with_capacity(count);
    for packet in Rings::rdos(nets) {
        let key = key(&packet.flow);
        if seen.insert(key) {
            keys.push(key);
        }
        if keys.len() == count {
            break;
        }
    }
    keys
}
