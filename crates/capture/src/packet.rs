//! Parsing of IP and transport headers into the key of a flow.
//!
//! ```text
//!     │ IPv4 │ options │ ports …                  first fragment, or not fragmented
//!     │ IPv4 │ …                                  later fragment: ports 0
//!     │ IPv6 │ extension │ extension │ ports …    the last "next header" is the protocol
//! ```
//!
//! Extension headers are parsed here: `etherparse` stops at the first truncated one, and supports
//! fewer of them.

use core::net::{Ipv4Addr, Ipv6Addr};

use etherparse::err::ipv4::{HeaderError, HeaderSliceError};
use etherparse::{IpNumber, Ipv4Header, Ipv4HeaderSlice, Ipv6Header, Ipv6HeaderSlice};
use flowtable::{FiveTuple, FlowKey, TcpFlags};

use super::link::{IpAt, Version, locate};
use super::order::Order;
use super::reader::Frame;
use super::reject::Reject;

/// Protocols whose headers begin with two ports.
const HAVE_PORTS: [IpNumber; 5] =
    [IpNumber::TCP, IpNumber::UDP, IpNumber::SCTP, IpNumber::DCCP, IpNumber::UDP_LITE];

/// The properties of a packet that a meter needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The key of its flow, in its direction.
    pub key: FlowKey,
    /// Length of the IP packet, as its header has it.
    pub bytes: u64,
    /// Nanoseconds since the epoch.
    pub time_ns: u64,
    /// TCP flags, if they were captured.
    pub flags: Option<TcpFlags>,
    /// Type and code of ICMP of either version, in the upper and lower byte, if they were captured.
    pub icmp: Option<u16>,
    /// Sequence numbers, if there are flags.
    pub numbers: Option<Numbers>,
    /// The origin of the ports in the key.
    pub ports: Ports,
}

/// Sequence numbers and length of a TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// The sequence number of the first byte.
    pub sequence: u32,
    /// The acknowledgment number, valid if the flag ACK is set.
    pub acknowledgment: u32,
    /// Length of the payload, according to the lengths in the headers.
    pub payload: u64,
}

/// The origin of the ports in the key of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ports {
    /// The ports of the packet.
    Read,
    /// 0: the protocol has none.
    None,
    /// 0: only the first fragment of a packet has them.
    LaterFragment,
    /// 0: the capture ends before them.
    Cut,
}

impl Packet {
    /// Reads the outermost IP header of a frame.
    pub fn of(frame: &Frame<'_>) -> Result<Self, Reject> {
        let IpAt { version, offset } = locate(frame.link, frame.data)?;
        let ip = frame.data.get(offset..).unwrap_or_default();
        match version {
            // A packet longer than the field allows, on its way to or from a network card with
            // segmentation offload, has a length of 0.
            Version::V4 => Self::v4(ip, frame.time_ns, |length| match length {
                0 => u64::from(frame.wire_len).saturating_sub(offset as u64),
                _ => length.into(),
            }),
            Version::V6 => Self::v6(ip, frame.time_ns),
        }
    }

    fn v4(ip: &[u8], time_ns: u64, bytes: impl Fn(u16) -> u64) -> Result<Self, Reject> {
        // Truncated options are replaced by zeros: they are not read.
        let mut padded = [0; Ipv4Header::MAX_LEN];
        let header = match Ipv4HeaderSlice::from_slice(ip) {
            Err(HeaderSliceError::Len(_)) if ip.len() >= Ipv4Header::MIN_LEN => {
                padded[..ip.len()].copy_from_slice(ip);
                Ipv4HeaderSlice::from_slice(&padded)
            }
            result => result,
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
        let ip_header = header.slice().len() as u64;
        Ok(transport.packet(key, bytes(header.total_len()), ip_header, time_ns))
    }

    fn v6(ip: &[u8], time_ns: u64) -> Result<Self, Reject> {
        if ip.len() < Ipv6Header::LEN {
            return Err(Reject::IpCut);
        }
        let header = Ipv6HeaderSlice::from_slice(ip).map_err(|_| Reject::WrongVersion)?;
        let transport = after_extensions(header.next_header(), &ip[Ipv6Header::LEN..]);
        let key =
            FlowKey::V6(transport.key::<Ipv6Addr>(header.source_addr(), header.destination_addr()));
        let ip_header = Ipv6Header::LEN as u64;
        Ok(transport.packet(
            key,
            ip_header + u64::from(header.payload_length()),
            ip_header,
            time_ns,
        ))
    }
}

/// The transport header of an IP packet.
struct Transport {
    protocol: IpNumber,
    sport: u16,
    dport: u16,
    tcp: Option<Tcp>,
    icmp: Option<u16>,
    ports: Ports,
    /// Length of the extension headers before it.
    extensions: u64,
}

/// The fields of a TCP header except the ports.
struct Tcp {
    sequence: u32,
    acknowledgment: u32,
    /// Length of the header.
    length: u64,
    flags: TcpFlags,
}

impl Tcp {
    /// Parses a header; `None` if the capture ends before the flags.
    fn new(segment: &[u8]) -> Option<Self> {
        let sequence = Order::Big.u32(segment, 4)?;
        let acknowledgment = Order::Big.u32(segment, 8)?;
        // In words of four bytes, in the upper half of the byte.
        let length = 4 * u64::from(segment.get(12)? >> 4);
        let flags = TcpFlags(*segment.get(13)?);
        Some(Self { sequence, acknowledgment, length, flags })
    }
}

impl Transport {
    fn new(protocol: IpNumber, is_later: bool, payload: &[u8]) -> Self {
        let extensions = 0;
        let (sport, dport, tcp, icmp) = (0, 0, None, None);
        let without = |ports| Self { protocol, sport, dport, tcp, icmp, ports, extensions };
        if is_later {
            return without(Ports::LaterFragment);
        }
        if matches!(protocol, IpNumber::ICMP | IpNumber::IPV6_ICMP) {
            return Self { icmp: Order::Big.u16(payload, 0), ..without(Ports::None) };
        }
        if !HAVE_PORTS.contains(&protocol) {
            return without(Ports::None);
        }
        let (Some(sport), Some(dport)) = (Order::Big.u16(payload, 0), Order::Big.u16(payload, 2))
        else {
            return without(Ports::Cut);
        };
        let tcp = if protocol == IpNumber::TCP { Tcp::new(payload) } else { None };
        Self { protocol, sport, dport, tcp, icmp: None, ports: Ports::Read, extensions }
    }

    fn key<A>(&self, src: A, dst: A) -> FiveTuple<A> {
        FiveTuple { src, dst, sport: self.sport, dport: self.dport, protocol: self.protocol.0 }
    }

    /// Returns the packet, given the length of IP packet and IP header.
    fn packet(&self, key: FlowKey, bytes: u64, ip_header: u64, time_ns: u64) -> Packet {
        let numbers = |tcp: &Tcp| {
            let payload = bytes.saturating_sub(ip_header + self.extensions + tcp.length);
            Numbers { sequence: tcp.sequence, acknowledgment: tcp.acknowledgment, payload }
        };
        let flags = self.tcp.as_ref().map(|tcp| tcp.flags);
        let numbers = self.tcp.as_ref().map(numbers);
        Packet { key, bytes, time_ns, flags, icmp: self.icmp, numbers, ports: self.ports }
    }
}

/// Skips the extension headers of IPv6. If they are truncated, the last known number is the
/// protocol.
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
        // The lowest three bits are not part of the offset: they have the flag for more fragments.
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
