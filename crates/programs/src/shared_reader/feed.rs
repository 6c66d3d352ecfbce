//! Where the packets come from, and how workers share them.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};

use super::{BURST, Generated, Packet, Recorded};

/// Packets without an end, each a function of its number.
pub enum Traffic {
    Generated(Generated),
    Recorded(Recorded),
}

impl Traffic {
    /// The packets from this one on.
    pub fn burst(&self, first: u64) -> [Packet; BURST] {
        match self {
            Self::Generated(generated) => generated.burst(first),
            Self::Recorded(recorded) => recorded.burst(first),
        }
    }

    /// The time of this packet.
    fn time_of(&self, index: u64) -> u64 {
        match self {
            Self::Generated(generated) => generated.time_of(index),
            Self::Recorded(recorded) => recorded.time_of(index),
        }
    }
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Generated(generated) => write!(f, "generated traffic of {} flows at a time", generated.flows()),
            Self::Recorded(recorded) => {
                write!(f, "{} packets over and over", recorded.packet_count())
            }
        }
    }
}

/// Deals the traffic out to the workers.
///
/// All take from one sequence, so none of them is ahead of the others in the packets' time, and a
/// flow does not look silent only because its worker had to wait for a processor.
pub struct Feed<'a> {
    traffic: &'a Traffic,
    taken: AtomicU64,
    now: AtomicU64,
}

impl<'a> Feed<'a> {
    /// Packets that are dealt out at a time: so many that the counter is no bottleneck.
    pub const LOT: u64 = 64 * BURST as u64;

    pub fn new(traffic: &'a Traffic) -> Self {
        Self { traffic, taken: AtomicU64::new(0), now: AtomicU64::new(0) }
    }

    /// The next packets, in bursts. Whoever has asked for them must take them all.
    pub fn take(&self) -> impl Iterator<Item = [Packet; BURST]> {
        let first = self.taken.fetch_add(Self::LOT, Ordering::Relaxed);
        self.now.fetch_max(self.traffic.time_of(first), Ordering::Relaxed);
        (first..first + Self::LOT).step_by(BURST).map(|first| self.traffic.burst(first))
    }

    /// How many packets were dealt out.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// The time of the packets that were dealt out last.
    pub fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }
}
