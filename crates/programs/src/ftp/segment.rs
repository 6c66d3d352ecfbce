//! TCP segments in IPv4 packets.

use std::net::{Ipv4Addr, SocketAddrV4};

use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TcpHeader, TransportSlice};
use flowtable::{FourTuple, TcpFlags};

/// The sockets of a connection.
pub type Key = FourTuple<Ipv4Addr>;

/// A TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    pub key: Key,
    pub flags: TcpFlags,
    pub payload: &'a [u8],
}

impl<'a> Segment<'a> {
    /// Creates a segment between two sockets.
    pub const fn new(
        from: SocketAddrV4,
        to: SocketAddrV4,
        flags: TcpFlags,
        payload: &'a [u8],
    ) -> Self {
        let (src, sport, dst, dport) = (*from.ip(), from.port(), *to.ip(), to.port());
        Self { key: FourTuple { src, dst, sport, dport }, flags, payload }
    }

    /// Parses an IPv4 packet. Returns `None` if it is no whole TCP segment.
    pub fn read(packet: &'a [u8]) -> Option<Self> {
        let sliced = SlicedPacket::from_ip(packet).ok()?;
        let (NetSlice::Ipv4(ip), TransportSlice::Tcp(tcp)) = (sliced.net?, sliced.transport?)
        else {
            return None;
        };
        let (src, dst) = (ip.header().source_addr(), ip.header().destination_addr());
        let key = FourTuple { src, dst, sport: tcp.source_port(), dport: tcp.destination_port() };
        Some(Self { key, flags: TcpFlags(tcp.header_slice()[13]), payload: tcp.payload() })
    }

    /// Returns the segment as an IPv4 packet.
    pub fn packet(&self) -> Vec<u8> {
        let Key { src, dst, sport, dport } = self.key;
        let has = |flag| self.flags.contains(flag);
        let mut header = TcpHeader::new(sport, dport, 1, 1000);
        (header.syn, header.ack) = (has(TcpFlags::SYN), has(TcpFlags::ACK));
        (header.fin, header.rst) = (has(TcpFlags::FIN), has(TcpFlags::RST));
        header.psh = has(TcpFlags::PSH);
        let mut bytes = Vec::new();
        let headers = PacketBuilder::ipv4(src.octets(), dst.octets(), 64).tcp_header(header);
        headers.write(&mut bytes, self.payload).expect("a segment of a line fits into a packet");
        bytes
    }
}
