//! What is counted of a flow: both directions under one entry.

use core::mem;

use capture::Packet;
use flowtable::{Direction, TcpFlags};

/// Packets of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub packets: u64,
    /// Lengths of the IP packets together.
    pub bytes: u64,
    /// Nanoseconds since the epoch of the earliest packet, which need not have come first. 0 if
    /// there is none.
    pub first_ns: u64,
    /// The same of the latest packet.
    pub last_ns: u64,
    /// All flags of TCP seen.
    pub flags: TcpFlags,
}

impl Counters {
    fn add(&mut self, packet: &Packet) {
        let is_first = self.packets == 0;
        self.first_ns = if is_first { packet.time_ns } else { self.first_ns.min(packet.time_ns) };
        self.last_ns = self.last_ns.max(packet.time_ns);
        self.packets += 1;
        self.bytes += packet.bytes;
        self.flags |= packet.flags.unwrap_or_default();
    }
}

/// The value of the cache: two directions, counted apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Biflow {
    /// From the initiator.
    pub forward: Counters,
    /// To the initiator.
    pub reverse: Counters,
}

impl Biflow {
    pub fn add(&mut self, direction: Direction, packet: &Packet) {
        match direction {
            Direction::Forward => self.forward.add(packet),
            Direction::Reverse => self.reverse.add(packet),
        }
    }

    /// What was counted since the last call.
    pub fn take(&mut self) -> Self {
        mem::take(self)
    }

    pub const fn packets(&self) -> u64 {
        self.forward.packets + self.reverse.packets
    }

    pub const fn bytes(&self) -> u64 {
        self.forward.bytes + self.reverse.bytes
    }

    /// Time of the earliest packet; 0 if there is none.
    pub fn first_ns(&self) -> u64 {
        match (self.forward.packets, self.reverse.packets) {
            (_, 0) => self.forward.first_ns,
            (0, _) => self.reverse.first_ns,
            _ => self.forward.first_ns.min(self.reverse.first_ns),
        }
    }
}
