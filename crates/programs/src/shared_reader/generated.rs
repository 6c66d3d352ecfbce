//! Generated traffic: deterministic, and so cheap that the map dominates the time.

use core::array::from_fn;
use core::net::{Ipv4Addr, Ipv6Addr};

use flowtable::{FiveTuple, FlowKey};

use super::{BURST, Packet};

/// Zipf's distribution with exponent 1 over a set of flows that changes slowly.
///
/// The only state is the distribution: a packet is a function of its index.
pub struct Generated {
    flows: u32,
    seed: u64,
    /// Time between two packets.
    interval_ns: u64,
    /// The rank below which a share of all packets lies, for shares in equal steps.
    ranks: Vec<f64>,
}

impl Generated {
    /// Lifetime of a flow, after which another takes its rank: 2^37 ns, 137 s.
    const LIFE_BITS: u32 = 37;
    /// Mean time between two packets of a flow.
    const PACE_NS: u64 = 2_000_000_000;
    /// Maximum time between packets, so that few flows send more each: workers run at full speed,
    /// and flows would otherwise change at once.
    const MAX_INTERVAL_NS: u64 = 20_000;
    /// Number of points of the piecewise linear distribution, as a power of two: a table that fits
    /// L1.
    const STEP_BITS: u32 = 10;

    pub fn new(flows: u32, seed: u64) -> Self {
        let steps = 1_u32 << Self::STEP_BITS;
        // Ranks up to r have the share log r / log n of packets.
        let rank = |step| (f64::from(flows) + 1.0).powf(f64::from(step) / f64::from(steps));
        let interval_ns = (Self::PACE_NS / u64::from(flows)).clamp(1, Self::MAX_INTERVAL_NS);
        Self { flows, seed, interval_ns, ranks: (0..=steps).map(rank).collect() }
    }

    pub const fn flows(&self) -> u32 {
        self.flows
    }

    pub const fn time_of(&self, index: u64) -> u64 {
        index.saturating_mul(self.interval_ns)
    }

    pub fn burst(&self, first: u64) -> [Packet; BURST] {
        from_fn(|nth| self.packet(first + nth as u64))
    }

    fn packet(&self, index: u64) -> Packet {
        let (draw, time_ns) = (mixed(self.seed ^ index), self.time_of(index));
        let rank = self.rank(draw);
        // The flows of ranks change at different times.
        let phase = mixed(rank) >> (u64::BITS - Self::LIFE_BITS);
        let life = time_ns.wrapping_add(phase) >> Self::LIFE_BITS;
        let key = Self::key(mixed(self.seed ^ (life << u32::BITS | rank)));
        Packet { key, bytes: 40 + draw % 1461, time_ns }
    }

    /// Returns the rank for a random draw.
    fn rank(&self, draw: u64) -> u64 {
        let step = (draw >> (u64::BITS - Self::STEP_BITS)) as usize;
        let between = (draw as u32) as f64 / (1_u64 << u32::BITS) as f64;
        let (low, high) = (self.ranks[step], self.ranks[step + 1]);
        (low + (high - low) * between) as u64
    }

    /// Returns a key made of these bits. One in four is of IPv6.
    fn key(bits: u64) -> FlowKey {
        let [a, b, c, server, version, port, high, low] = bits.to_be_bytes();
        let sport = u16::from_be_bytes([high, low]);
        let (dport, protocol) = if port % 4 == 0 { (53, 17) } else { (443, 6) };
        if version % 4 > 0 {
            let [src, dst] = [Ipv4Addr::new(10, a, b, c), Ipv4Addr::new(198, 51, 100, server)];
            return FiveTuple { src, dst, sport, dport, protocol }.into();
        }
        let site = |net, host| Ipv6Addr::new(0x2001, 0xdb8, net, 0, 0, 0, a.into(), host);
        let src = site(1, u16::from_be_bytes([b, c]));
        FiveTuple { src, dst: site(2, server.into()), sport, dport, protocol }.into()
    }
}

/// Mixes all bits: the last step of SplitMix64.
const fn mixed(bits: u64) -> u64 {
    let bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
