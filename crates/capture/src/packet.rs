//! Packets of a frame: the key of the flow, and the fields that a meter needs.
//!
//! ```text
//!     frame ─► Walk ─► Ip ─► transport header ─► Packet
//!               ▲       │
//!               └───────┘ the content of a tunnel, if it is wanted
//! ```

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use etherparse::IpNumber;
use flowtable::{FiveTuple, FlowKey, TcpFlags};

use super::ip::{Addresses, Fragment, Ip};
use super::record::Frame;
use super::reject::Reject;
use super::span::Span;
use super::step::{LinkLayer, Next, Step, Vlans};
use super::tunnel;
use super::walk::Walk;

/// Protocols whose headers begin with two ports.
const HAVE_PORTS: [IpNumber; 5] =
    [IpNumber::TCP, IpNumber::UDP, IpNumber::SCTP, IpNumber::DCCP, IpNumber::UDP_LITE];

/// The properties of a packet that a meter needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The key of its flow, in its direction. A message of ICMP has the key of [`FlowKey::icmp`].
    pub key: FlowKey,
    pub vlans: Vlans,
    /// The number of tunnels around it that were entered.
    pub depth: u8,
    /// Offset of its IP header in the frame.
    pub offset: u32,
    /// Offset of the last Ethernet header before it, if there is one: see [`macs`](Packet::macs).
    pub ethernet: Option<u32>,
    /// Length of the IP packet, as its header has it, up to what the frame can hold.
    pub bytes: u64,
    /// Whether the header claims more than the frame can hold.
    pub is_overlong: bool,
    /// Nanoseconds since the epoch.
    pub time_ns: u64,
    /// TCP flags, if they were captured.
    pub flags: Option<TcpFlags>,
    /// Type and code of ICMP of either version, if they were captured.
    pub icmp: Option<Icmp>,
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

/// The first fields of a message of ICMP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Icmp {
    pub kind: u8,
    pub code: u8,
    /// Of a query or its answer; of other types, the field in its place. 0 if it was not captured.
    pub identifier: u16,
}

/// The origin of the ports in the key of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ports {
    /// The ports of the packet.
    Read,
    /// 0: the protocol has none. Or type, code and identifier of ICMP.
    None,
    /// 0: only the first fragment of a packet has them.
    LaterFragment,
    /// 0: the packet or the capture ends before them.
    Cut,
}

/// The IP header that gives a packet its key, if there are several: that of a tunnel, or one inside
/// it.
///
/// A tunnel whose content is not IP, or cannot be read, counts by its own header; so do later
/// fragments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tunnels {
    /// The outermost header.
    #[default]
    Outer,
    /// The header inside the outermost tunnel.
    One,
    /// The innermost header.
    All,
}

impl Tunnels {
    /// The maximum number of tunnels around a packet.
    const MAX_DEPTH: u8 = 16;

    /// Returns whether a tunnel inside `depth` others is entered.
    const fn are_entered(self, depth: u8) -> bool {
        match self {
            Self::Outer => false,
            Self::One => depth == 0,
            Self::All => depth < Self::MAX_DEPTH,
        }
    }
}

/// Returns the packets of a frame: one, or the packets of a wireless network's aggregate (A-MSDU).
#[inline]
pub fn packets<'a>(frame: &Frame<'a>, tunnels: Tunnels) -> Packets<'a> {
    let start = (Next::Link(frame.link), Span::new(frame.data, frame.wire_len));
    Packets { next: Some(start), tunnels, frame: frame.data, time_ns: frame.time_ns }
}

/// The iterator that [`packets`] returns.
pub struct Packets<'a> {
    pub(crate) next: Option<Step<'a>>,
    pub(crate) tunnels: Tunnels,
    frame: &'a [u8],
    pub(crate) time_ns: u64,
}

impl Packets<'_> {
    /// Returns the offset of a header in the frame.
    #[inline]
    fn offset(&self, header: Span<'_>) -> u32 {
        (header.captured().as_ptr().addr() - self.frame.as_ptr().addr()) as u32
    }

    /// Returns the packet with this IP header, which begins at `span`.
    #[inline(always)]
    fn packet(&self, ip: &Ip<'_>, span: Span<'_>, link: LinkLayer<'_>, depth: u8) -> Packet {
        let Transport { sockets, ports, tcp, icmp } = Transport::parse(ip);
        Packet {
            key: key(ip, sockets, icmp),
            vlans: link.vlans,
            depth,
            offset: self.offset(span),
            ethernet: link.ethernet.map(|header| self.offset(header)),
            bytes: ip.length as u64,
            is_overlong: ip.is_overlong,
            time_ns: self.time_ns,
            flags: tcp.map(|tcp| tcp.flags),
            icmp,
            numbers: tcp.map(|tcp| tcp.numbers),
            ports,
        }
    }
}

impl Iterator for Packets<'_> {
    type Item = Result<Packet, Reject>;

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.next.take()?;
        let mut walk = Walk::new();
        let packet = Packet::parse(&mut walk, start, self);
        self.next = walk.subframes.map(|rest| (Next::Subframes, rest));
        Some(packet)
    }
}

impl Packet {
    /// Returns the first packet of a frame, by its outermost IP header.
    pub fn of(frame: &Frame<'_>) -> Result<Self, Reject> {
        packets(frame, Tunnels::Outer).next().unwrap_or(Err(Reject::LinkCut))
    }

    fn parse<'a>(
        walk: &mut Walk<'a>,
        start: Step<'a>,
        source: &Packets<'a>,
    ) -> Result<Self, Reject> {
        let (version, mut span) = walk.find_ip(start)?;
        let mut ip = Ip::parse(version, span)?;
        let mut link = walk.link;
        let mut depth = 0;
        while source.tunnels.are_entered(depth) {
            let Some(inner) = content(walk, &ip) else { break };
            (ip, span) = inner;
            (link, depth) = (walk.link, depth + 1);
        }
        Ok(source.packet(&ip, span, link, depth))
    }
}

/// Returns the packet inside a tunnel, if it can be read, and its bytes.
fn content<'a>(walk: &mut Walk<'a>, outer: &Ip<'a>) -> Option<(Ip<'a>, Span<'a>)> {
    if outer.fragment == Fragment::Later {
        return None;
    }
    let (version, span) = walk.find_ip(tunnel::content(outer)?).ok()?;
    let inner = Ip::parse(version, span).ok()?;
    // Later fragments of the outer packet have the rest of the inner one.
    let is_overlong = inner.is_overlong && outer.fragment == Fragment::Whole;
    Some((Ip { is_overlong: is_overlong || outer.is_overlong, ..inner }, span))
}

/// Returns the key of a packet.
#[inline(always)]
pub(crate) fn key(ip: &Ip<'_>, sockets: Sockets, icmp: Option<Icmp>) -> FlowKey {
    let Sockets { sport, dport } = sockets;
    let protocol = ip.protocol.0;
    let plain = match ip.addresses {
        Addresses::V4(src, dst) => FlowKey::V4(FiveTuple { src, dst, sport, dport, protocol }),
        Addresses::V6(src, dst) => FlowKey::V6(FiveTuple { src, dst, sport, dport, protocol }),
    };
    let Some(Icmp { kind, code, identifier }) = icmp else { return plain };
    FlowKey::icmp(plain.src(), plain.dst(), kind, code, identifier).unwrap_or(plain)
}

/// The ports of a packet.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sockets {
    sport: u16,
    dport: u16,
}

/// The transport header of a packet.
pub(crate) struct Transport {
    pub(crate) sockets: Sockets,
    pub(crate) ports: Ports,
    tcp: Option<Tcp>,
    pub(crate) icmp: Option<Icmp>,
}

impl Transport {
    #[inline(always)]
    pub(crate) fn parse(ip: &Ip<'_>) -> Self {
        let without = |ports| Self { sockets: Sockets::default(), ports, tcp: None, icmp: None };
        if ip.fragment == Fragment::Later {
            return without(Ports::LaterFragment);
        }
        let is_icmp = match ip.addresses {
            Addresses::V4(..) => ip.protocol == IpNumber::ICMP,
            Addresses::V6(..) => ip.protocol == IpNumber::IPV6_ICMP,
        };
        if is_icmp {
            let icmp = Icmp::parse(ip.payload);
            let is_whole = ip.payload.u16(Icmp::IDENTIFIER).is_ok();
            let ports = if is_whole { Ports::None } else { Icmp::ports_of_cut(icmp, ip.addresses) };
            return Self { icmp, ..without(ports) };
        }
        if !HAVE_PORTS.contains(&ip.protocol) {
            return without(Ports::None);
        }
        let (Ok(sport), Ok(dport)) = (ip.payload.u16(0), ip.payload.u16(2)) else {
            return without(Ports::Cut);
        };
        let tcp = if ip.protocol == IpNumber::TCP { Tcp::parse(ip) } else { None };
        Self { sockets: Sockets { sport, dport }, ports: Ports::Read, tcp, icmp: None }
    }
}

impl Icmp {
    /// The offset of the identifier.
    const IDENTIFIER: usize = 4;

    /// Returns whether a message that ends before the identifier would have it in its key.
    #[cold]
    fn ports_of_cut(icmp: Option<Self>, addresses: Addresses) -> Ports {
        let Some(Self { kind, code, .. }) = icmp else { return Ports::Cut };
        let any: IpAddr = match addresses {
            Addresses::V4(..) => Ipv4Addr::UNSPECIFIED.into(),
            Addresses::V6(..) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let [without, with] = [0, 1].map(|id| FlowKey::icmp(any, any, kind, code, id));
        if without == with { Ports::None } else { Ports::Cut }
    }

    /// Parses a header; `None` if its type was not captured.
    fn parse(message: Span<'_>) -> Option<Self> {
        let [kind, code] = message.u16(0).ok()?.to_be_bytes();
        Some(Self { kind, code, identifier: message.u16(Self::IDENTIFIER).unwrap_or_default() })
    }

    /// Returns type and code, in the upper and lower byte.
    pub const fn type_code(self) -> u16 {
        u16::from_be_bytes([self.kind, self.code])
    }
}

/// The fields of a TCP header except the ports.
#[derive(Clone, Copy)]
struct Tcp {
    flags: TcpFlags,
    numbers: Numbers,
}

impl Tcp {
    /// Parses a header. `None` if the capture ends before the flags, or the packet is shorter than
    /// its TCP header: no host accepts its flags.
    #[inline(always)]
    fn parse(ip: &Ip<'_>) -> Option<Self> {
        const SHORTEST: usize = 20;
        let segment = ip.payload;
        let sequence = segment.u32(4).ok()?;
        let acknowledgment = segment.u32(8).ok()?;
        // In words of four bytes, in the upper half of the byte.
        let header = 4 * usize::from(segment.u8(12).ok()? >> 4);
        let flags = TcpFlags(segment.u8(13).ok()?);
        // The header of a first fragment may continue in the next one.
        let is_whole = ip.fragment == Fragment::First || header <= segment.wire();
        if header < SHORTEST || !is_whole {
            return None;
        }
        let payload = segment.wire().saturating_sub(header) as u64;
        Some(Self { flags, numbers: Numbers { sequence, acknowledgment, payload } })
    }
}
