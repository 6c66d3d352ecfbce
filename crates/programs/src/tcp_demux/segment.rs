//! TCP segments, as far as demultiplexing needs them.

use capture::{Numbers, Packet};
use flowtable::demux::Arrival;
use flowtable::{FlowKey, TcpFlags};

/// A TCP segment of either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub key: FlowKey,
    pub flags: TcpFlags,
    pub numbers: Numbers,
}

impl Segment {
    /// Returns the segment of a packet; `None` for another protocol, or if its flags were not
    /// captured.
    pub fn of(packet: &Packet) -> Option<Self> {
        Some(Self { key: packet.key, flags: packet.flags?, numbers: packet.numbers? })
    }

    pub fn has(&self, flag: TcpFlags) -> bool {
        self.flags.contains(flag)
    }

    /// Returns whether it requests a connection.
    pub fn is_request(&self) -> bool {
        self.has(TcpFlags::SYN) && !self.has(TcpFlags::ACK) && !self.has(TcpFlags::RST)
    }

    /// Returns the sequence number after its last byte, where a FIN counts as one.
    pub fn end(&self) -> u32 {
        let Numbers { sequence, payload, .. } = self.numbers;
        sequence.wrapping_add(payload as u32).wrapping_add(self.has(TcpFlags::FIN).into())
    }

    /// Returns whether it acknowledges everything before this sequence number.
    pub fn acknowledges(&self, end: u32) -> bool {
        self.has(TcpFlags::ACK) && self.numbers.acknowledgment.wrapping_sub(end) < 1 << 31
    }

    pub fn arrival(&self) -> Arrival {
        if self.numbers.payload > 0 { Arrival::Data } else { Arrival::Ack }
    }
}
