//! From an IP header to the name of the flow.
//!
//! ```text
//!     │ IPv4 │ options │ ports …                  first fragment, or not fragmented
//!     │ IPv4 │ …                                  later fragment: ports 0
//!     │ IPv6 │ extension │ extension │ ports …    the last "next header" is the protocol
//! ```
//!
//! Extension headers are walked here: `etherparse` stops at the first one that is cut, and knows
//! fewer of them.

use core::net::{Ipv4Addr, Ipv6Addr};

use etherparse::err::ipv4::{HeaderError, HeaderSliceError};
use etherparse::{IpNumber, Ipv4Header, Ipv4HeaderSlice, Ipv6Header, Ipv6HeaderSlice};
use flowtable::{FiveTuple, FlowKey, TcpFlags};

use super::link::{IpAt, Version, locate};
use super::order::Order;
use super::reader::Frame;
use super::reject::Reject;

/// What a meter wants to know of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The name of its flow, in its direction.
    pub key: FlowKey,
    /// Length of the IP packet, as its header has it.
    pub bytes: u64,
    /// Nanoseconds since the epoch.
    pub time_ns: u64,
    /// Flags, if it is a TCP segment and they were captured.
    pub flags: Option<TcpFlags>,
    /// Numbers of the segment, if there are flags.
    pub numbers: Option<Numbers>,
    /// What the ports of the key are.
    pub ports: Ports,
}

/// What the header of a TCP segment says of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// The number of the first one.
    pub sequence: u32,
    /// The one that its sender waits for, if the flag ACK is set.
    pub acknowledgment: u32,
    /// So many there are behind the headers, by the lengths that those have.
    pub payload: u64,
}

/// What the ports in the key of a packet are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ports {
    /// Its ports.
    Read,
    /// 0: the protocol has none.
    None,
    /// 0: only the first fragment of a packet has them.
    LaterFragment,
    /// 0: the capture ends in front of them.
    Cut,
}

impl Packet {
    /// Reads the outermost IP header of a frame.
    pub fn of(frame: &Frame<'_>) -> Result<Self, Reject> {
        let IpAt { version, offset } = locate(frame.link, frame.data)?;
        let ip = frame.data.get(offset..).unwrap_or_default();
        match version {
            // A packet longer than the field can say, on its way to or from a network card that
            // segments, has a length of 0.
            Version::V4 => Self::v4(ip, frame.time_ns, |length| match length {
                0 => u64::from(frame.wire_len).saturating_sub(offset as u64),
                _ => length.into(),
            }),
            Version::V6 => Self::v6(ip, frame.time_ns),
        }
    }

    fn v4(ip: &[u8], time_ns: u64, bytes: impl Fn(u16) -> u64) -> Result<Self, Reject> {
        // Options that the capture cuts off are taken as zeros: nothing here looks at them.
        let mut padded = [0; Ipv4Header::MAX_LEN];
        let header = match Ipv4HeaderSlice::from_slice(ip) {
            Err(HeaderSliceError::Len(_)) if ip.len() >= Ipv4Header::MIN_LEN => {
                padded[..ip.len()].copy_from_slice(ip);
                Ipv4HeaderSlice::from_slice(&padded)
            }
            whole_or_wrong => whole_or_wrong,
        };
        let header = header.map_err(|error| match error {
            HeaderSliceError::Len(_) => Reject::IpCut,
            HeaderSliceError::Content(HeaderError::UnexpectedVersion { .. }) => {
                Reject::WrongVersion
            }
            HeaderSliceError::Content(HeaderError::HeaderLengthSmallerThanHeader { .. }) => {
                Reject::ShortHeader
            }
        })?;
        let payload = ip.get(header.slice().len()..).unwrap_or_default();
        let is_later = header.fragments_offset().value() > 0;
        let transport = Transport::new(header.protocol(), is_later, payload);
        let key =
            FlowKey::V4(transport.key::<Ipv4Addr>(header.source_addr(), header.destination_addr()));
        let behind = header.slice().len() as u64;
        Ok(transport.packet(key, bytes(header.total_len()), behind, time_ns))
    }

    fn v6(ip: &[u8], time_ns: u64) -> Result<Self, Reject> {
        if ip.len() < Ipv6Header::LEN {
            return Err(Reject::IpCut);
        }
        let header = Ipv6HeaderSlice::from_slice(ip).map_err(|_| Reject::WrongVersion)?;
        let transport = after_extensions(header.next_header(), &ip[Ipv6Header::LEN..]);
        let key =
            FlowKey::V6(transport.key::<Ipv6Addr>(header.source_addr(), header.destination_addr()));
        let behind = Ipv6Header::LEN as u64;
        Ok(transport.packet(key, behind + u64::from(header.payload_length()), behind, time_ns))
    }
}

/// What the beginning of an IP packet's payload says.
struct Transport {
    protocol: IpNumber,
    sport: u16,
    dport: u16,
    tcp: Option<Tcp>,
    ports: Ports,
    /// Bytes of the extension headers in front of it.
    extensions: u64,
}

/// What a TCP header says, but for the ports.
struct Tcp {
    sequence: u32,
    acknowledgment: u32,
    /// Bytes that it has.
    length: u64,
    flags: TcpFlags,
}

impl Tcp {
    /// `None` if the capture ends in front of the flags.
    fn new(segment: &[u8]) -> Option<Self> {
        let sequence = Order::Big.u32(segment, 4)?;
        let acknowledgment = Order::Big.u32(segment, 8)?;
        // In words of four bytes, in the upper half of its byte.
        let length = 4 * u64::from(segment.get(12)? >> 4);
        let flags = TcpFlags(*segment.get(13)?);
        Some(Self { sequence, acknowledgment, length, flags })
    }
}

impl Transport {
    fn new(protocol: IpNumber, is_later: bool, payload: &[u8]) -> Self {
        let extensions = 0;
        let without = |ports| Self { protocol, sport: 0, dport: 0, tcp: None, ports, extensions };
        if is_later {
            return without(Ports::LaterFragment);
        }
        if !matches!(protocol, IpNumber::TCP | IpNumber::UDP | IpNumber::SCTP | IpNumber::DCCP) {
            return without(Ports::None);
        }
        let (Some(sport), Some(dport)) = (Order::Big.u16(payload, 0), Order::Big.u16(payload, 2))
        else {
            return without(Ports::Cut);
        };
        let tcp = if protocol == IpNumber::TCP { Tcp::new(payload) } else { None };
        Self { protocol, sport, dport, tcp, ports: Ports::Read, extensions }
    }

    fn key<A>(&self, src: A, dst: A) -> FiveTuple<A> {
        FiveTuple { src, dst, sport: self.sport, dport: self.dport, protocol: self.protocol.0 }
    }

    /// The packet of so many bytes, `behind` so many of the IP header.
    fn packet(&self, key: FlowKey, bytes: u64, behind: u64, time_ns: u64) -> Packet {
        let numbers = |tcp: &Tcp| {
            let payload = bytes.saturating_sub(behind + self.extensions + tcp.length);
            Numbers { sequence: tcp.sequence, acknowledgment: tcp.acknowledgment, payload }
        };
        let flags = self.tcp.as_ref().map(|tcp| tcp.flags);
        let numbers = self.tcp.as_ref().map(numbers);
        Packet { key, bytes, time_ns, flags, numbers, ports: self.ports }
    }
}

/// Walks the extension headers of IPv6. Where the capture cuts them, the last number that it has is
/// the protocol.
fn after_extensions(mut next: IpNumber, all: &[u8]) -> Transport {
    let mut rest = all;
    // All of them begin with the next number and a length, and none is below 8 bytes.
    while let Some([following, length, offset_high, offset_low, ..]) = rest.first_chunk::<8>() {
        let length = match next {
            IpNumber::IPV6_FRAGMENTATION_HEADER => 8,
            IpNumber::AUTHENTICATION_HEADER => 4 * (usize::from(*length) + 2),
            IpNumber::IPV6_HEADER_HOP_BY_HOP
            | IpNumber::IPV6_ROUTE_HEADER
            | IpNumber::IPV6_DESTINATION_OPTIONS
            | IpNumber::MOBILITY_HEADER
            | IpNumber::HIP
            | IpNumber::SHIM6 => 8 * (usize::from(*length) + 1),
            _ => break,
        };
        // The lowest three bits are no offset: they say whether more fragments follow.
        let fragment_offset = u16::from_be_bytes([*offset_high, *offset_low]) >> 3;
        if next == IpNumber::IPV6_FRAGMENTATION_HEADER && fragment_offset > 0 {
            return Transport::new(IpNumber(*following), true, rest);
        }
        next = IpNumber(*following);
        rest = rest.get(length..).unwrap_or_default();
    }
    let extensions = (all.len() - rest.len()) as u64;
    Transport { extensions, ..Transport::new(next, false, rest) }
}
