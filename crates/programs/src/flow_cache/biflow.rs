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
    /// Sets the fields of the first packet, which is [added](Self::add) next.
    fn begin(&mut self, first: &Arrival) {
        self.first_ns = first.time_ns;
        self.icmp = first.icmp;
    }

    fn add(&mut self, packet: &Arrival) {
        self.first_ns = self.first_ns.min(packet.time_ns);
        self.last_ns = self.last_ns.max(packet.time_ns);
        self.packets += 1;
        self.bytes += packet.bytes;
        self.flags |= packet.flags;
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
    /// Returns whether no packet of this direction has been added. Then the first one
    /// [begins](Self::begin) it.
    #[inline]
    pub(crate) fn is_new(&mut self, direction: Direction) -> bool {
        self.counters(direction).packets == 0
    }

    /// Begins a direction with its first packet, which is added next.
    #[inline]
    pub(crate) fn begin(&mut self, direction: Direction, first: &Arrival) {
        self.counters(direction).begin(first);
    }

    /// Adds a packet.
    #[inline]
    pub(crate) fn add(&mut self, direction: Direction, packet: &Arrival) {
        self.counters(direction).add(packet);
    }

    #[inline]
    fn counters(&mut self, direction: Direction) -> &mut Counters {
        match direction {
            Direction::Forward => &mut self.forward,
            Direction::Reverse => &mut self.reverse,
        }
    }

    /// Adds an ICMP error that is sent in this direction, and quotes a packet of the opposite one.
    pub(crate) fn add_error(&mut self, direction: Direction, error: &Arrival) {
        let counters = self.counters(direction);
        counters.add(error);
        // Not in `add`, which would compute it for each packet.
        counters.icmp = counters.icmp.or(error.icmp);
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
