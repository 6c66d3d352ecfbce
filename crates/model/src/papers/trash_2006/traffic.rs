//! The packets of the paper, and the keys of their flows.
//!
//! Packets come from the packet generator of the paper: rings of concurrent flows, in which a new
//! flow replaces each flow that ends. Everything is generated from a seed.

use std::net::Ipv4Addr;

use flowtable::key::bits::{BitString, Headed};
use flowtable::{DefaultHashBuilder, FiveTuple};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

pub type Flow = FiveTuple<Ipv4Addr>;

/// The 128-bit key of the paper: addresses, ports in one word, protocol. An array of bytes, as a
/// `u128` would be aligned to 16 bytes, and a leaf of 160 bits take half as much again.
pub type PaperKey = [u8; 16];

/// The key with the source first.
pub fn src_dst(flow: &Flow) -> PaperKey {
    let ports = u32::from(flow.sport) << 16 | u32::from(flow.dport);
    let mut key = [0; 16];
    for (bytes, word) in key.chunks_exact_mut(4).zip([
        flow.src.to_bits(),
        flow.dst.to_bits(),
        ports,
        flow.protocol.into(),
    ]) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    key
}

/// The key with the destination first.
pub fn dst_src(flow: &Flow) -> PaperKey {
    src_dst(&Flow { src: flow.dst, dst: flow.src, ..*flow })
}

/// The 160 bits of TRASH: a hash of 32 bits, then the key.
pub fn trash(flow: &Flow, hasher: &DefaultHashBuilder) -> Headed<PaperKey, u32> {
    Headed::short(src_dst(flow), hasher)
}

/// The long keys of the paper: the 128-bit key, padded with zeros.
pub fn wide<const N: usize>(flow: &Flow, hasher: &DefaultHashBuilder) -> Headed<[u8; N], u32> {
    let mut key = [0; N];
    key[..16].copy_from_slice(&src_dst(flow));
    Headed::short(key, hasher)
}

/// A packet, and whether it is the last one of its flow: the generator of the paper marks it.
#[derive(Clone, Copy)]
pub struct Packet {
    pub flow: Flow,
    pub last: bool,
}

/// The order in which flows send.
#[derive(Clone, Copy)]
pub enum Order {
    /// A random flow each time, as in the generator of the paper.
    Random,
    /// Round robin: the worst case for a cache.
    RoundRobin,
}

/// Two rings of flows, one per interface, that send alternately.
///
/// The flows of a ring have one source and random destinations in one /8.
pub struct Rings {
    nets: [u8; 2],
    /// The flows of each ring, with the number of packets sent. 0 stands for a flow not created
    /// yet.
    rings: [Vec<(Flow, u32)>; 2],
    order: Order,
    length: u32,
    turn: usize,
    rng: StdRng,
}

impl Rings {
    /// Adjacent networks, which differ in their last bit only.
    pub const ADJACENT: [u8; 2] = [10, 11];

    /// Creates rings of `flows` concurrent flows of `length` packets.
    pub fn new(flows: usize, length: u32, order: Order, nets: [u8; 2]) -> Self {
        let mut rng = StdRng::seed_from_u64(2006);
        let rings = nets.map(|net| {
            let flow = |_| match order {
                Order::Random => (new_flow(net, &mut rng), 0),
                // Flows in turns would all end together: start each at a random position.
                Order::RoundRobin => (new_flow(net, &mut rng), rng.random_range(0..length)),
            };
            (0..flows).map(flow).collect()
        });
        Self { nets, rings, order, length, turn: 0, rng }
    }

    /// The denial of service of the paper: 2 x 4096 flows of two packets.
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

/// Creates a flow from the constant source of a network to a random host in it.
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

/// Returns the first `count` distinct keys of the denial of service.
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
