//! The packet of a plain frame, as most frames are: Ethernet, IP without options or extensions, and
//! TCP or UDP.

use core::net::{Ipv4Addr, Ipv6Addr};

use etherparse::{EtherType, IpNumber};
use flowtable::{FiveTuple, FlowKey, TcpFlags};

use super::order::Order;
use super::packet::{Numbers, Packet, Packets, Ports, Tunnels};
use super::span::Span;
use super::step::{Next, Vlans};
use super::tags::ETHERNET;

/// Lengths of IP headers.
const V4: usize = 20;
const V6: usize = 40;

/// Length of a UDP header, which is longer than the ports of TCP.
const UDP: usize = 8;

/// The parts of a plain packet that depend on its headers.
struct Plain {
    key: FlowKey,
    /// Of the IP packet.
    length: usize,
    tcp: Option<(TcpFlags, Numbers)>,
}

impl Packets<'_> {
    /// Returns the packet of a plain frame of IPv4, if its outermost header counts: the packet that
    /// the iterator returns. It is not a fragment, its headers are captured, and its lengths agree:
    /// so few branches decide it.
    #[inline(always)]
    pub fn plain_v4(&self) -> Option<Packet> {
        self.plain(EtherType::IPV4, v4)
    }

    /// Returns the packet of a plain frame of IPv6, as [`plain_v4`](Self::plain_v4) does.
    #[inline(always)]
    pub fn plain_v6(&self) -> Option<Packet> {
        self.plain(EtherType::IPV6, v6)
    }

    #[inline(always)]
    fn plain(&self, kind: EtherType, parse: fn(Span<'_>) -> Option<Plain>) -> Option<Packet> {
        const LINK: u16 = 1;
        let (Next::Link(LINK), span) = self.next? else { return None };
        let is_of_kind = span.u16(ETHERNET - 2) == Ok(kind.0);
        if self.tunnels != Tunnels::Outer || !is_of_kind {
            return None;
        }
        let Plain { key, length, tcp } = parse(span)?;
        Some(Packet {
            key,
            vlans: Vlans::default(),
            depth: 0,
            offset: ETHERNET as u32,
            ethernet: Some(0),
            bytes: length as u64,
            is_overlong: false,
            time_ns: self.time_ns,
            flags: tcp.map(|(flags, _)| flags),
            icmp: None,
            numbers: tcp.map(|(_, numbers)| numbers),
            ports: Ports::Read,
        })
    }
}

#[inline(always)]
fn v4(span: Span<'_>) -> Option<Plain> {
    const TRANSPORT: usize = ETHERNET + V4;
    let head: &[u8; TRANSPORT + UDP] = span.captured().first_chunk()?;
    let u16 = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let address = |at: usize| Ipv4Addr::new(head[at], head[at + 1], head[at + 2], head[at + 3]);
    // The version, and the words of the header.
    let has_options = head[ETHERNET] != 0x45;
    let is_fragment = u16(ETHERNET + 6) & 0x3fff != 0;
    let length = usize::from(u16(ETHERNET + 2));
    let is_whole = length >= V4 + UDP && ETHERNET + length <= span.wire();
    if has_options || is_fragment || !is_whole {
        return None;
    }
    let protocol = head[ETHERNET + 9];
    let tcp = transport(protocol, span, TRANSPORT, length - V4)?;
    let key = FlowKey::V4(FiveTuple {
        src: address(ETHERNET + 12),
        dst: address(ETHERNET + 16),
        sport: u16(TRANSPORT),
        dport: u16(TRANSPORT + 2),
        protocol,
    });
    Some(Plain { key, length, tcp })
}

#[inline(always)]
fn v6(span: Span<'_>) -> Option<Plain> {
    const TRANSPORT: usize = ETHERNET + V6;
    let head: &[u8; TRANSPORT + UDP] = span.captured().first_chunk()?;
    let u16 = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let payload = usize::from(u16(ETHERNET + 4));
    let is_whole = payload >= UDP && TRANSPORT + payload <= span.wire();
    if head[ETHERNET] >> 4 != 6 || !is_whole {
        return None;
    }
    let protocol = head[ETHERNET + 6];
    let tcp = transport(protocol, span, TRANSPORT, payload)?;
    let (src, rest) = head[ETHERNET + 8..].split_first_chunk::<16>()?;
    let key = FlowKey::V6(FiveTuple {
        src: Ipv6Addr::from(*src),
        dst: Ipv6Addr::from(*rest.first_chunk()?),
        sport: u16(TRANSPORT),
        dport: u16(TRANSPORT + 2),
        protocol,
    });
    Some(Plain { key, length: V6 + payload, tcp })
}

/// Returns the flags and numbers of TCP, whose header begins at `at` and fits into this length, or
/// nothing for UDP; `None` for others.
#[inline(always)]
fn transport(
    protocol: u8,
    span: Span<'_>,
    at: usize,
    length: usize,
) -> Option<Option<(TcpFlags, Numbers)>> {
    /// The header up to its flags.
    const PART: usize = 14;
    const SHORTEST: usize = 20;
    match IpNumber(protocol) {
        IpNumber::TCP => {}
        IpNumber::UDP => return Some(None),
        _ => return None,
    }
    let head: &[u8; PART] = span.captured().get(at..)?.first_chunk()?;
    let header = 4 * usize::from(head[12] >> 4);
    if header < SHORTEST || header > length {
        return None;
    }
    let numbers = Numbers {
        sequence: Order::Big.u32(head, 4)?,
        acknowledgment: Order::Big.u32(head, 8)?,
        payload: (length - header) as u64,
    };
    Some(Some((TcpFlags(head[13]), numbers)))
}
