//! Counters of a flow: both directions in one entry.

use core::mem;

use flowtable::{Direction, TcpFlags};

use super::arrival::Arrival;

/// Packets of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) packets: u64,
    /// Sum of the lengths of IP packets.
    pub(crate) bytes: u64,
    /// Time of the earliest packet, in nanoseconds since the epoch; 0 without packets. It need not
    /// be the first in the capture.
    pub(crate) first_ns: u64,
    /// Time of the latest packet, in nanoseconds since the epoch.
    pub(crate) last_ns: u64,
    /// Union of all TCP flags.
    pub(crate) flags: TcpFlags,
    /// Type and code of the first ICMP message. A flow of another protocol has the type and code of
    /// the first error that quotes one of its packets.
    pub(crate) icmp: Option<u16>,
}

impl Counters {
    /// Adds a packet. Returns whether it is the first one.
    #[inline]
    fn add(&mut self, packet: &Arrival) -> bool {
        let is_first = self.packets == 0;
        if is_first {
            self.first_ns = packet.time_ns;
            self.icmp = packet.icmp;
        }
        self.first_ns = self.first_ns.min(packet.time_ns);
        self.last_ns = self.last_ns.max(packet.time_ns);
        self.packets += 1;
        self.bytes += packet.bytes;
        self.flags |= packet.flags;
        is_first
    }
}

/// The value of a cache entry: separate counters of both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Biflow {
    /// From the initiator.
    pub(crate) forward: Counters,
    /// To the initiator.
    pub(crate) reverse: Counters,
}

impl Biflow {
    /// Adds a packet. Returns whether it is the first one of its direction.
    #[inline]
    pub(crate) fn add(&mut self, direction: Direction, packet: &Arrival) -> bool {
        match direction {
            Direction::Forward => self.forward.add(packet),
            Direction::Reverse => self.reverse.add(packet),
        }
    }

    /// Adds an ICMP error that is sent in this direction, and quotes a packet of the opposite one.
    /// Returns whether it is the first packet of its direction.
    pub(crate) fn add_error(&mut self, direction: Direction, error: &Arrival) -> bool {
        let is_first = self.add(direction, error);
        let counters = match direction {
            Direction::Forward => &mut self.forward,
            Direction::Reverse => &mut self.reverse,
        };
        // Not in `add`, which would compute it for each packet.
        counters.icmp = counters.icmp.or(error.icmp);
        is_first
    }

    /// Returns the counts since the last call.
    pub(crate) fn take(&mut self) -> Self {
        mem::take(self)
    }

    pub(crate) const fn packets(&self) -> u64 {
        self.forward.packets + self.reverse.packets
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.forward.bytes + self.reverse.bytes
    }

    /// Returns the time of the earliest packet; 0 without packets.
    pub(crate) fn first_ns(&self) -> u64 {
        match (self.forward.packets, self.reverse.packets) {
            (_, 0) => self.forward.first_ns,
            (0, _) => self.reverse.first_ns,
            _ => self.forward.first_ns.min(self.reverse.first_ns),
        }
    }
}
