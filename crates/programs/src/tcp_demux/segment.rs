//! A packet, as far as TCP's demultiplexing looks at it.

use capture::{Numbers, Packet};
use flowtable::demux::Arrival;
use flowtable::{FlowKey, TcpFlags};

/// A segment of TCP, in whichever direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub key: FlowKey,
    pub flags: TcpFlags,
    pub numbers: Numbers,
}

impl Segment {
    /// `None` if it is of another protocol, or its flags were not captured.
    pub fn of(packet: &Packet) -> Option<Self> {
        Some(Self { key: packet.key, flags: packet.flags?, numbers: packet.numbers? })
    }

    pub fn has(&self, flag: TcpFlags) -> bool {
        self.flags.contains(flag)
    }

    /// Whether it asks for a connection.
    pub fn is_request(&self) -> bool {
        self.has(TcpFlags::SYN) && !self.has(TcpFlags::ACK) && !self.has(TcpFlags::RST)
    }

    /// The number behind its last byte, where a FIN is one.
    pub fn end(&self) -> u32 {
        let Numbers { sequence, payload, .. } = self.numbers;
        sequence.wrapping_add(payload as u32).wrapping_add(self.has(TcpFlags::FIN).into())
    }

    /// Whether its sender has got everything up to this number.
    pub fn acknowledges(&self, end: u32) -> bool {
        self.has(TcpFlags::ACK) && self.numbers.acknowledgment.wrapping_sub(end) < 1 << 31
    }

    pub fn arrival(&self) -> Arrival {
        if self.numbers.payload > 0 { Arrival::Data } else { Arrival::Ack }
    }
}
