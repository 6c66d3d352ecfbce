//! Traffic, and its distribution to workers.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};

use super::{BURST, Generated, Packet, Recorded};

/// An endless sequence of packets, each a function of its index.
pub enum Traffic {
    Generated(Generated),
    Recorded(Recorded),
}

impl Traffic {
    /// Returns the packets from index `first` on.
    pub fn burst(&self, first: u64) -> [Packet; BURST] {
        match self {
            Self::Generated(generated) => generated.burst(first),
            Self::Recorded(recorded) => recorded.burst(first),
        }
    }

    /// Returns the time of a packet.
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
            Self::Generated(generated) => {
                write!(f, "generated traffic of {} flows at a time", generated.flows())
            }
            Self::Recorded(recorded) => {
                write!(f, "{} packets over and over", recorded.packet_count())
            }
        }
    }
}

/// Distributes the traffic to the workers.
///
/// All workers take packets from one sequence, so no worker is ahead in the packets' time, and a
/// flow does not seem silent only because its worker waited for a CPU.
pub struct Feed<'a> {
    traffic: &'a Traffic,
    taken: AtomicU64,
    now: AtomicU64,
}

impl<'a> Feed<'a> {
    /// Packets per lot: enough that the shared counter is no bottleneck.
    pub const LOT: u64 = 64 * BURST as u64;

    pub fn new(traffic: &'a Traffic) -> Self {
        Self { traffic, taken: AtomicU64::new(0), now: AtomicU64::new(0) }
    }

    /// Takes the next lot of packets, in bursts. The caller must process all of them.
    pub fn take(&self) -> impl Iterator<Item = [Packet; BURST]> {
        let first = self.taken.fetch_add(Self::LOT, Ordering::Relaxed);
        self.now.fetch_max(self.traffic.time_of(first), Ordering::Relaxed);
        (first..first + Self::LOT).step_by(BURST).map(|first| self.traffic.burst(first))
    }

    /// Returns the number of packets taken.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Returns the time of the packets taken last.
    pub fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }
}
