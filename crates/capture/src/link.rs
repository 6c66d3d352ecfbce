//! Location of the IP header in a frame, for the link types that captures of IP have.
//!
//! One function per family of link types. Each reads the few bytes that determine the next header,
//! and checks nothing else: a meter counts packets that a strict parser would refuse.
//!
//! Link types: <https://www.tcpdump.org/linktypes.html>.

use etherparse::EtherType;

use super::ethernet;
use super::order::Order;
use super::reject::Reject;
use super::wifi;

/// The link type of per-packet information.
const PPI: u16 = 192;

/// The link type of the packet tap of macOS.
const PACKET_TAP: u16 = 258;

/// A version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    V4,
    V6,
}

/// The location of the outermost IP header in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IpAt {
    /// The version that the link layer announces.
    pub version: Version,
    /// Bytes before it.
    pub offset: usize,
}

/// Finds the outermost IP header of a frame of this link type.
pub(crate) fn locate(link: u16, frame: &[u8]) -> Result<IpAt, Reject> {
    match link {
        0 => loopback(frame, Order::Little, 0, 4),
        1 => ethernet::frame(frame),
        6 => token_ring(frame),
        9 => ppp(frame, 0),
        10 => fddi(frame),
        12 | 14 | 101 | 228 | 229 => raw(frame, 0),
        50 => ppp_serial(frame),
        51 => ethernet::payload(frame, ethernet::PPPOE, 0),
        104 => hdlc(frame, 0),
        105 => wifi::frame(frame, 0),
        107 => frame_relay(frame),
        108 => loopback(frame, Order::Big, 0, 4),
        109 => loopback(frame, Order::Little, 0, 12),
        113 => cooked(frame, 14, 16),
        117 => packet_filter(frame),
        119 => wifi::frame(frame, wifi::PRISM),
        127 => wifi::radiotap(frame),
        138 => cooked(frame, 16, 18),
        166 => ppp_daemon(frame),
        PPI => per_packet_information(frame),
        204 => ppp(frame, 1),
        205 => hdlc(frame, 1),
        226 => ipnet(frame),
        239 => netfilter_log(frame),
        242 => cooked(frame, 40, 44),
        PACKET_TAP => packet_tap(frame),
        276 => cooked(frame, 0, 20),
        _ => Err(Reject::UnknownLink),
    }
}

/// Raw IP: the version is in the IP header.
pub(crate) fn raw(frame: &[u8], offset: usize) -> Result<IpAt, Reject> {
    match frame.get(offset).ok_or(Reject::LinkCut)? >> 4 {
        4 => Ok(IpAt { version: Version::V4, offset }),
        6 => Ok(IpAt { version: Version::V6, offset }),
        _ => Err(Reject::WrongVersion),
    }
}

/// BSD's loopback and similar link types: an address family, in the byte order of the capturing
/// host.
fn loopback(frame: &[u8], order: Order, at: usize, offset: usize) -> Result<IpAt, Reject> {
    let family = order.u32(frame, at).ok_or(Reject::LinkCut)?;
    // No family needs the upper half: if it is set, the byte order is the other one.
    address_family(if family > 0xffff { family.swap_bytes() } else { family }, offset)
}

/// Maps an address family. The numbers of IPv6 are those of Linux, Windows, the BSDs and macOS.
fn address_family(family: u32, offset: usize) -> Result<IpAt, Reject> {
    match family {
        2 => Ok(IpAt { version: Version::V4, offset }),
        10 | 23 | 24 | 26 | 28 | 30 => Ok(IpAt { version: Version::V6, offset }),
        _ => Err(Reject::NotIp),
    }
}

/// Linux's cooked captures, IP over FireWire and over InfiniBand: a header of `offset` bytes with
/// an ether type in it.
fn cooked(frame: &[u8], ether_type_at: usize, offset: usize) -> Result<IpAt, Reject> {
    if frame.len() < offset {
        return Err(Reject::LinkCut);
    }
    let ether_type = ethernet::type_at(frame, ether_type_at)?;
    ethernet::payload(frame, ether_type, offset)
}

/// Cisco's HDLC: address, control, ether type.
fn hdlc(frame: &[u8], at: usize) -> Result<IpAt, Reject> {
    ethernet::payload(frame, ethernet::type_at(frame, at + 2)?, at + 4)
}

/// FDDI: frame control, two addresses, LLC and SNAP.
fn fddi(frame: &[u8]) -> Result<IpAt, Reject> {
    let control = *frame.first().ok_or(Reject::LinkCut)?;
    let is_llc = control & 0x30 == 0x10;
    llc(frame, 13, is_llc)
}

/// Token ring: access and frame control, two addresses, perhaps a source route, LLC and SNAP.
fn token_ring(frame: &[u8]) -> Result<IpAt, Reject> {
    const HEADER: usize = 14;
    let control = *frame.get(1).ok_or(Reject::LinkCut)?;
    // The first bit of the source address, which is no group, shows that a route follows.
    let is_routed = frame.get(8).ok_or(Reject::LinkCut)? & 0x80 != 0;
    let route = match is_routed {
        true => usize::from(frame.get(HEADER).ok_or(Reject::LinkCut)? & 0x1f),
        false => 0,
    };
    llc(frame, HEADER + route, control & 0xc0 == 0x40)
}

/// Reads LLC and SNAP, if the frame has them.
fn llc(frame: &[u8], offset: usize, is_llc: bool) -> Result<IpAt, Reject> {
    if !is_llc {
        return Err(Reject::NotIp);
    }
    let (ether_type, offset) = ethernet::snap(frame, offset)?;
    ethernet::payload(frame, ether_type, offset)
}

/// Frame relay, RFC 2427: an address of two bytes or more, and an identifier of the protocol; or
/// Cisco's encapsulation, which has an ether type.
fn frame_relay(frame: &[u8]) -> Result<IpAt, Reject> {
    const UNNUMBERED: u8 = 0x03;
    // The last byte of the address is odd.
    let address = frame.iter().take(4).position(|byte| byte & 1 == 1).ok_or(Reject::LinkCut)?;
    let mut at = address + 1;
    if frame.get(at) != Some(&UNNUMBERED) {
        return ethernet::payload(frame, ethernet::type_at(frame, at)?, at + 2);
    }
    at += 1;
    if frame.get(at) == Some(&0) {
        at += 1;
    }
    match *frame.get(at).ok_or(Reject::LinkCut)? {
        0xcc => Ok(IpAt { version: Version::V4, offset: at + 1 }),
        0x8e => Ok(IpAt { version: Version::V6, offset: at + 1 }),
        // SNAP without LLC.
        0x80 => ethernet::payload(frame, ethernet::type_at(frame, at + 4)?, at + 6),
        _ => Err(Reject::NotIp),
    }
}

/// Solaris' IP observability: a header with an address family.
fn ipnet(frame: &[u8]) -> Result<IpAt, Reject> {
    address_family(u32::from(*frame.get(1).ok_or(Reject::LinkCut)?), 24)
}

/// The packet tap of macOS: a header with its length, before a frame of another link type.
fn packet_tap(frame: &[u8]) -> Result<IpAt, Reject> {
    let length = Order::Little.u32(frame, 0).ok_or(Reject::LinkCut)? as usize;
    let inner = Order::Little.u32(frame, 8).ok_or(Reject::LinkCut)?;
    tapped(frame, length, inner)
}

/// PPP, with or without the address and control bytes of HDLC.
fn ppp(frame: &[u8], at: usize) -> Result<IpAt, Reject> {
    let at =
        if frame.get(at..).unwrap_or_default().starts_with(&[0xff, 0x03]) { at + 2 } else { at };
    ppp_protocol(frame, at)
}

/// PPP or Cisco's HDLC, distinguished by the address byte.
fn ppp_serial(frame: &[u8]) -> Result<IpAt, Reject> {
    match frame.first() {
        Some(0x0f | 0x8f) => hdlc(frame, 0),
        _ => ppp(frame, 0),
    }
}

/// PPP as captured by the PPP daemon of Linux: the direction replaces the address.
fn ppp_daemon(frame: &[u8]) -> Result<IpAt, Reject> {
    ppp_protocol(frame, if frame.get(1) == Some(&0x03) { 2 } else { 0 })
}

/// Finds the IP header after a PPP protocol.
fn ppp_protocol(frame: &[u8], at: usize) -> Result<IpAt, Reject> {
    let (ether_type, offset) = ppp_payload(frame, at)?;
    ethernet::payload(frame, ether_type, offset)
}

/// Reads a PPP protocol, which has two bytes, or one if that is odd. Returns the ether type that is
/// equal to it, and the offset of the payload.
pub(crate) fn ppp_payload(frame: &[u8], at: usize) -> Result<(EtherType, usize), Reject> {
    let first = *frame.get(at).ok_or(Reject::LinkCut)?;
    let (protocol, offset) = match first & 1 {
        1 => (u16::from(first), at + 1),
        _ => (Order::Big.u16(frame, at).ok_or(Reject::LinkCut)?, at + 2),
    };
    match protocol {
        0x0021 => Ok((EtherType::IPV4, offset)),
        0x0057 => Ok((EtherType::IPV6, offset)),
        0x0281 | 0x0283 => Ok((ethernet::MPLS, offset)),
        _ => Err(Reject::NotIp),
    }
}

/// The log of BSD's packet filter: the header's length and an address family.
fn packet_filter(frame: &[u8]) -> Result<IpAt, Reject> {
    let [length, family, _, _] = *frame.first_chunk().ok_or(Reject::LinkCut)?;
    address_family(family.into(), usize::from(length).next_multiple_of(4))
}

/// The log of Linux's netfilter: attributes, one of which is the packet.
fn netfilter_log(frame: &[u8]) -> Result<IpAt, Reject> {
    const PACKET: u16 = 9;
    let mut at = 4;
    loop {
        // Attributes are in the byte order of the capturing host; captures of big-endian hosts
        // are not recognised.
        let length = Order::Little.u16(frame, at).ok_or(Reject::LinkCut)?;
        let kind = Order::Little.u16(frame, at + 2).ok_or(Reject::LinkCut)?;
        match (length, kind) {
            (0..4, _) => return Err(Reject::LinkCut),
            (_, PACKET) => return raw(frame, at + 4),
            _ => at += usize::from(length).next_multiple_of(4),
        }
    }
}

/// Per-packet information: a header before a frame of another link type, mostly of wireless
/// networks.
fn per_packet_information(frame: &[u8]) -> Result<IpAt, Reject> {
    let length = Order::Little.u16(frame, 2).ok_or(Reject::LinkCut)?;
    let inner = Order::Little.u32(frame, 4).ok_or(Reject::LinkCut)?;
    tapped(frame, length.into(), inner)
}

/// Finds the IP header in a frame of the link type `inner`, after a header of this length. Another
/// header of this kind in it is refused: many in a crafted frame would exhaust the stack.
fn tapped(frame: &[u8], length: usize, inner: u32) -> Result<IpAt, Reject> {
    const SHORTEST: usize = 8;
    let rest = frame.get(length..).ok_or(Reject::LinkCut)?;
    let is_inner = |inner: &u16| length >= SHORTEST && ![PPI, PACKET_TAP].contains(inner);
    let inner = u16::try_from(inner).ok().filter(is_inner);
    let found = locate(inner.ok_or(Reject::UnknownLink)?, rest)?;
    Ok(IpAt { offset: found.offset + length, ..found })
}
