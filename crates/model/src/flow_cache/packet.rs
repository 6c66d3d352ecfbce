//! Packets, as the model sees them.

use flowtable::TcpFlags;
use flowtable::flow_cache::{Class, Initiator, Packet, Protocol, Tenant};

/// The data of a packet that the cache receives.
#[derive(Clone, Copy, Debug)]
pub struct PacketInfo {
    pub protocol: Protocol,
    pub flags: TcpFlags,
    pub tenant: Tenant,
    pub initiator: Initiator,
    pub sequence: Option<u32>,
}

impl PacketInfo {
    pub fn packet(self) -> Packet {
        let packet = Packet::new(self.protocol, self.flags).from_tenant(self.tenant);
        let packet = packet.with_initiator(self.initiator);
        self.sequence.map_or(packet, |sequence| packet.with_sequence(sequence))
    }

    /// Whether the receiver is the initiator.
    pub(super) fn is_to_initiator(self) -> bool {
        match self.initiator {
            // The sender of a SYN with ACK is the responder.
            Initiator::ByFlags => self.has(TcpFlags::SYN | TcpFlags::ACK),
            other => other == Initiator::Receiver,
        }
    }

    pub(super) fn has(self, flag: TcpFlags) -> bool {
        self.protocol == Protocol::Tcp && self.flags.contains(flag)
    }

    pub(super) fn opens(self) -> bool {
        self.has(TcpFlags::SYN) && !self.has(TcpFlags::ACK) && !self.has(TcpFlags::RST)
    }

    /// The class of a flow whose first packet this is.
    pub(super) fn first_class(self) -> Class {
        match (self.has(TcpFlags::RST), self.has(TcpFlags::SYN)) {
            (true, _) => Class::Closing,
            (false, true) => Class::New,
            (false, false) => Class::Unreplied,
        }
    }
}
