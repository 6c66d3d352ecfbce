//! The packet generators of the paper: 16 of them, each with its own flows, in turns.
//!
//! ```text
//!     0          14                   26       30        34       38      42     46    66      80
//!     │ Ethernet │ version … checksum │ source │ destin. │ option │ index │ rest │ UDP │ zeros │
//!                                     └ 2/3 of the FID ─┘                 │ FID  │ TCP │       │
//! ```
//!
//! Sources are in four subnets per generator, with low host numbers. Destinations are in 64
//! subnets. Each generator numbers its flows.

use flowtable::hash::source_index::SourceIndex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::fids::{Fid, Flow, GENERATORS};
use super::router::{OPTION, VERSION_AND_LENGTH, checksum, subnet};

pub const ETHERNET: usize = 14;
const FRAME: usize = 80;
pub type Frame = [u8; FRAME];

pub const TCP: u8 = 6;
pub const UDP: u8 = 17;
/// Ports of servers.
pub const PORTS: [u16; 8] = [53, 67, 69, 111, 123, 161, 514, 2049];

/// The first packet of each flow, and the sequence of flows that send.
pub struct Traffic {
    pub frames: Vec<Frame>,
    pub order: Vec<usize>,
}

impl Traffic {
    /// A working set that fits the CPU caches, with few packets, so that most rounds are not
    /// interrupted.
    pub fn few(quick: bool) -> Self {
        Self::new(64, if quick { 2_000 } else { 4_000 }, super::SEED)
    }

    /// Sixteen times as many flows.
    pub fn many(quick: bool) -> Self {
        Self::new(1024, if quick { 2_000 } else { 20_000 }, super::SEED)
    }

    /// Generates `packets` packets of `flows_each` flows per generator.
    pub fn new(flows_each: usize, packets: usize, seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let flows = flows_each * GENERATORS as usize;
        let frames = (0..flows as u32).map(|flow| new_frame(flow, &mut rng)).collect();
        let mut flow_of = |turn: usize| {
            rng.random_range(0..flows_each) * GENERATORS as usize + turn % GENERATORS as usize
        };
        let order = (0..packets).map(&mut flow_of).collect();
        Self { frames, order }
    }
}

/// Flow `number` belongs to generator `number` mod 16.
fn new_frame(number: u32, rng: &mut StdRng) -> Frame {
    let (generator, unique) = ((number % GENERATORS) as u8, number / GENERATORS);
    let mut host = || (1.0 - 30.0 * (1.0 - rng.random::<f64>()).ln()).min(254.0) as u8;
    let (from, to) = (host(), host());
    let [a, b, c] = subnet((rng.random_range(24..88_u32) * 3) as u8);
    let source = [10, 255, 4 * generator + rng.random_range(0..4_u8), from];
    let fid = Fid::new(source, [a, b, c, to], unique);
    let protocol = if rng.random_bool(0.5) { UDP } else { TCP };
    let is_served = rng.random_bool(0.5);
    let port =
        if is_served { PORTS[rng.random_range(0..8)] } else { rng.random_range(1024..=u16::MAX) };
    frame(&Flow { fid, index: SourceIndex::new(rng.random()) }, protocol, port)
}

/// A packet of a flow to a port.
pub fn frame(flow: &Flow, protocol: u8, port: u16) -> Frame {
    let mut frame = [0; FRAME];
    frame[12..ETHERNET].copy_from_slice(&[0x08, 0x00]);
    let (ip, payload) = frame[ETHERNET..].split_at_mut(32);
    ip[0] = VERSION_AND_LENGTH;
    ip[2..4].copy_from_slice(&((FRAME - ETHERNET) as u16).to_be_bytes());
    (ip[8], ip[9]) = (64, protocol);
    ip[12..20].copy_from_slice(&flow.fid.0[..8]);
    ip[20..24].copy_from_slice(&OPTION);
    ip[24..28].copy_from_slice(&flow.index.get().to_ne_bytes());
    ip[28..].copy_from_slice(&flow.fid.0[8..]);
    let checksum = checksum(ip);
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    payload[..2].copy_from_slice(&40_000_u16.to_be_bytes());
    payload[2..4].copy_from_slice(&port.to_be_bytes());
    frame
}
