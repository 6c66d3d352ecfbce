//! Headers of the link types that captures of IP have.
//!
//! One function per family of link types. Each reads the few bytes that determine the next header,
//! and checks nothing else: a meter counts packets that a strict parser would refuse.
//!
//! Link types: <https://www.tcpdump.org/linktypes.html>.

use super::ethernet::{network_layer, typed};
use super::not_ip::{MULTILINK, NotIp};
use super::order::Order;
use super::reject::Reject;
use super::span::Span;
use super::step::{Next, Step, Version, Vlans};
use super::{tags, wifi};

/// Returns whether frames of this link type begin with the addresses of an Ethernet header, which a
/// tag of a switch port follows.
pub(crate) const fn has_addresses(link: u16) -> bool {
    matches!(link, 281 | 284)
}

/// Reads the first header of a frame of this link type.
pub(crate) fn header<'a>(link: u16, span: Span<'a>, vlans: &mut Vlans) -> Result<Step<'a>, Reject> {
    match link {
        0 => loopback(span, Order::Little, 0, 4),
        1 => Ok((Next::Ethernet, span)),
        6 => token_ring(span),
        9 => Ok((Next::Ppp, span)),
        10 => fddi(span),
        11 | 100 => atm(span),
        12 | 14 | 101 | 228 | 229 => Ok((Next::Raw, span)),
        50 => ppp_serial(span),
        51 => Ok((Next::EtherType(tags::PPPOE), span)),
        104 => hdlc(span),
        105 => Ok((Next::Wifi { is_padded: false }, span)),
        106 => classical_ip(span),
        107 => frame_relay(span),
        108 => loopback(span, Order::Big, 0, 4),
        109 => loopback(span, Order::Little, 0, 12),
        113 => cooked(span, 14, 16),
        117 => packet_filter(span),
        119 | 163 => wifi::prism(span),
        122 => Ok((Next::Llc, span.after(16)?)),
        123 => sun_atm(span),
        127 => wifi::radiotap(span),
        138 => cooked(span, 16, 18),
        166 => ppp_daemon(span),
        192 => per_packet_information(span),
        197 => extensible_record(span),
        204 => Ok((Next::Ppp, span.after(1)?)),
        205 => hdlc(span.after(1)?),
        206 => frame_relay(span.after(1)?),
        226 => ipnet(span),
        239 => netfilter_log(span),
        // Network analyzers and Ethernet with its preamble.
        240 => Ok((Next::Ethernet, span.after(4)?)),
        241 => Ok((Next::Ethernet, span.after(12)?)),
        259 | 274 => Ok((Next::Ethernet, span.after(8)?)),
        242 => cooked(span, 40, 44),
        258 => packet_tap(span),
        276 => cooked(span, 0, 20),
        // Tags of a switch port. Marvell's with an ether type has link type 285.
        281 => Ok((typed(span, 16)?, span.after(18)?)),
        282 => Ok((Next::Ethernet, span.after(4)?)),
        284 => marvell(span, vlans),
        285 => Ok((Next::Ethernet, span)),
        _ => Err(Reject::UnknownLink(link)),
    }
}

/// BSD's loopback and similar link types: an address family, in the byte order of the capturing
/// host.
fn loopback(span: Span<'_>, order: Order, at: usize, length: usize) -> Result<Step<'_>, Reject> {
    let family = span.u32_in(order, at)?;
    // No family needs the upper half: if it is set, the byte order is the other one.
    address_family(if family > 0xffff { family.swap_bytes() } else { family }, span, length)
}

/// Maps an address family. The numbers of IPv6 are those of Linux, Windows, the BSDs and macOS.
fn address_family(family: u32, span: Span<'_>, length: usize) -> Result<Step<'_>, Reject> {
    let version = match family {
        2 => Version::V4,
        10 | 23 | 24 | 26 | 28 | 30 => Version::V6,
        _ => return Err(Reject::NotIp(NotIp::Family(family))),
    };
    Ok((Next::Ip(version), span.after(length)?))
}

/// Linux's cooked captures, IP over FireWire and over InfiniBand: a header of `length` bytes with
/// an ether type in it.
fn cooked(span: Span<'_>, ether_type_at: usize, length: usize) -> Result<Step<'_>, Reject> {
    Ok((typed(span, ether_type_at)?, span.after(length)?))
}

/// Cisco's HDLC: address, control, ether type.
fn hdlc(span: Span<'_>) -> Result<Step<'_>, Reject> {
    cooked(span, 2, 4)
}

/// FDDI: frame control, two addresses, LLC and SNAP.
fn fddi(span: Span<'_>) -> Result<Step<'_>, Reject> {
    let is_llc = span.u8(0)? & 0x30 == 0x10;
    llc(span, 13, is_llc)
}

/// Token ring: access and frame control, two addresses, perhaps a source route, LLC and SNAP.
fn token_ring(span: Span<'_>) -> Result<Step<'_>, Reject> {
    const HEADER: usize = 14;
    let is_llc = span.u8(1)? & 0xc0 == 0x40;
    // The first bit of the source address, which is no group, shows that a route follows.
    let is_routed = span.u8(8)? & 0x80 != 0;
    let route = match is_routed {
        true => usize::from(span.u8(HEADER)? & 0x1f),
        false => 0,
    };
    llc(span, HEADER + route, is_llc)
}

/// Returns LLC and SNAP, if the frame has them: other frames manage the ring.
fn llc(span: Span<'_>, length: usize, is_llc: bool) -> Result<Step<'_>, Reject> {
    const NULL_SAP: u8 = 0;
    if !is_llc {
        return Err(Reject::NotIp(NotIp::Sap(NULL_SAP)));
    }
    Ok((Next::Llc, span.after(length)?))
}

/// ATM by RFC 2684: LLC and SNAP. Bridged frames are padded there.
fn atm(span: Span<'_>) -> Result<Step<'_>, Reject> {
    const BRIDGED: [u8; 7] = [0xaa, 0xaa, 0x03, 0x00, 0x80, 0xc2, 0x00];
    let is_ethernet = span.starts_with(&BRIDGED) && matches!(span.u8(7)?, 1 | 7);
    match is_ethernet {
        true => Ok((Next::Ethernet, span.after(10)?)),
        false => Ok((Next::Llc, span)),
    }
}

/// ATM of Linux: LLC and SNAP, or IP.
fn classical_ip(span: Span<'_>) -> Result<Step<'_>, Reject> {
    if span.starts_with(&[0xaa, 0xaa, 0x03]) { atm(span) } else { Ok((Next::Raw, span)) }
}

/// ATM of Sun: flags with the type of traffic, and a circuit.
fn sun_atm(span: Span<'_>) -> Result<Step<'_>, Reject> {
    const LAN_EMULATION: u8 = 1;
    match span.u8(0)? & 0x0f {
        LAN_EMULATION => Ok((Next::Ethernet, span.after(6)?)),
        _ => atm(span.after(4)?),
    }
}

/// Frame relay, RFC 2427: an address of two bytes or more, and an identifier of the protocol; or
/// Cisco's encapsulation, which has an ether type.
fn frame_relay(span: Span<'_>) -> Result<Step<'_>, Reject> {
    const UNNUMBERED: u8 = 0x03;
    // The last byte of the address is odd.
    let last = span.captured().iter().take(4).position(|byte| byte & 1 == 1);
    let rest = span.after(last.ok_or(Reject::LinkCut)? + 1)?;
    if !rest.starts_with(&[UNNUMBERED]) {
        return Ok((typed(rest, 0)?, rest.after(2)?));
    }
    let rest = rest.after(1)?;
    let is_padded = rest.starts_with(&[0]);
    network_layer(if is_padded { rest.after(1)? } else { rest })
}

/// Solaris' IP observability: a header with an address family.
fn ipnet(span: Span<'_>) -> Result<Step<'_>, Reject> {
    address_family(span.u8(1)?.into(), span, 24)
}

/// Reads PPP, with or without the address and control bytes of HDLC.
pub(crate) fn ppp(span: Span<'_>) -> Result<Step<'_>, Reject> {
    let span = if span.starts_with(&[0xff, 0x03]) { span.after(2)? } else { span };
    let (protocol, rest) = ppp_protocol(span)?;
    match protocol {
        PPP_V4 => Ok((Next::Ip(Version::V4), rest)),
        PPP_V6 => Ok((Next::Ip(Version::V6), rest)),
        BRIDGED => bridged(rest),
        MULTILINK => multilink(rest),
        0x0281 | 0x0283 => Ok((Next::EtherType(tags::MPLS), rest)),
        other => Err(Reject::NotIp(NotIp::Ppp(other))),
    }
}

const PPP_V4: u16 = 0x0021;
const PPP_V6: u16 = 0x0057;
const BRIDGED: u16 = 0x0031;

/// Reads the protocol of PPP: two bytes, or one if that is odd.
fn ppp_protocol(span: Span<'_>) -> Result<(u16, Span<'_>), Reject> {
    let first = span.u8(0)?;
    match first & 1 {
        1 => Ok((first.into(), span.after(1)?)),
        _ => Ok((span.u16(0)?, span.after(2)?)),
    }
}

/// Bridged Ethernet, RFC 3518: flags, the kind of the frame, and perhaps the ID of a network.
fn bridged(span: Span<'_>) -> Result<Step<'_>, Reject> {
    const ETHERNET: u8 = 1;
    const HAS_NETWORK: u8 = 0x40;
    let (flags, kind) = (span.u8(0)?, span.u8(1)?);
    let length = if flags & HAS_NETWORK != 0 { 6 } else { 2 };
    match kind {
        ETHERNET => Ok((Next::Ethernet, span.after(length)?)),
        _ => Err(Reject::NotIp(NotIp::Ppp(BRIDGED))),
    }
}

/// A fragment of multilink PPP, RFC 1990. The first fragment of a packet has its protocol, behind a
/// sequence number of four or two bytes: the peers agree on the length, so that it is in no header.
fn multilink(span: Span<'_>) -> Result<Step<'_>, Reject> {
    const BEGINS: u8 = 0x80;
    let not_ip = Reject::NotIp(NotIp::Ppp(MULTILINK));
    if span.u8(0)? & BEGINS == 0 {
        return Err(not_ip);
    }
    let packet = |length| {
        let (protocol, rest) = ppp_protocol(span.after(length).ok()?).ok()?;
        match (protocol, rest.u8(0).ok()? >> 4) {
            (PPP_V4, 4) => Some((Next::Ip(Version::V4), rest)),
            (PPP_V6, 6) => Some((Next::Ip(Version::V6), rest)),
            _ => None,
        }
    };
    [4, 2].into_iter().find_map(packet).ok_or(not_ip)
}

/// PPP or Cisco's HDLC, distinguished by the address byte.
fn ppp_serial(span: Span<'_>) -> Result<Step<'_>, Reject> {
    match span.u8(0)? {
        0x0f | 0x8f => hdlc(span),
        _ => Ok((Next::Ppp, span)),
    }
}

/// PPP as captured by the PPP daemon of Linux: the direction replaces the address.
fn ppp_daemon(span: Span<'_>) -> Result<Step<'_>, Reject> {
    let has_control = matches!(span.u8(1), Ok(0x03));
    Ok((Next::Ppp, span.after(if has_control { 2 } else { 0 })?))
}

/// The log of BSD's packet filter: the header's length and an address family.
fn packet_filter(span: Span<'_>) -> Result<Step<'_>, Reject> {
    let (length, family) = (span.u8(0)?, span.u8(1)?);
    address_family(family.into(), span, usize::from(length).next_multiple_of(4))
}

/// The log of Linux's netfilter: attributes, one of which is the packet.
fn netfilter_log(span: Span<'_>) -> Result<Step<'_>, Reject> {
    const HEADER: usize = 4;
    const PACKET: u16 = 9;
    let mut rest = span.after(HEADER)?;
    loop {
        // Numbers are in the byte order of the capturing host. No kind needs the upper byte.
        let order = if rest.u8(2)? == 0 { Order::Big } else { Order::Little };
        let (length, kind) = (rest.u16_in(order, 0)?, rest.u16_in(order, 2)?);
        match (length, kind) {
            (0..4, _) => return Err(Reject::LinkCut),
            (_, PACKET) => return Ok((Next::Raw, copied(rest.first(length.into()).after(4)?))),
            _ => rest = rest.after(usize::from(length).next_multiple_of(4))?,
        }
    }
}

/// Returns a packet of which netfilter has copied a part: its length is in its header only.
fn copied(packet: Span<'_>) -> Span<'_> {
    let length = match packet.u8(0).unwrap_or_default() >> 4 {
        4 => packet.u16(2).unwrap_or_default().into(),
        6 => 40 + usize::from(packet.u16(4).unwrap_or_default()),
        _ => 0,
    };
    packet.of_length(length)
}

/// Per-packet information: a header before a frame of another link type, mostly of wireless
/// networks.
fn per_packet_information(span: Span<'_>) -> Result<Step<'_>, Reject> {
    let length = span.u16_in(Order::Little, 2)?;
    let inner = span.u32_in(Order::Little, 4)?;
    tapped(span, length.into(), inner)
}

/// The packet tap of macOS: a header with its length, before a frame of another link type.
fn packet_tap(span: Span<'_>) -> Result<Step<'_>, Reject> {
    let length = span.u32_in(Order::Little, 0)? as usize;
    let inner = span.u32_in(Order::Little, 8)?;
    tapped(span, length, inner)
}

/// Returns the frame of the link type `inner` after a header of this length.
fn tapped(span: Span<'_>, length: usize, inner: u32) -> Result<Step<'_>, Reject> {
    const SHORTEST: usize = 8;
    let inner = u16::try_from(inner).unwrap_or(u16::MAX);
    let rest = span.after(length)?;
    match length {
        0..SHORTEST => Err(Reject::LinkCut),
        _ => Ok((Next::Link(inner), rest)),
    }
}

/// Endace's extensible record format: a header, extensions of it, and a frame by its type.
fn extensible_record(span: Span<'_>) -> Result<Step<'_>, Reject> {
    const HEADER: usize = 16;
    const EXTENSION: usize = 8;
    const HAS_EXTENSION: u8 = 0x80;
    let kind = span.u8(8)?;
    let mut rest = span.after(HEADER)?;
    let mut has_extension = kind & HAS_EXTENSION != 0;
    while has_extension {
        has_extension = rest.u8(0)? & HAS_EXTENSION != 0;
        rest = rest.after(EXTENSION)?;
    }
    match kind & !HAS_EXTENSION {
        1 | 10 | 15 | 19 => ppp_serial(rest),
        2 | 11 | 16 | 20 => Ok((Next::Ethernet, rest.after(2)?)),
        // A header of the channel.
        5 | 17 => ppp_serial(rest.after(4)?),
        4 => atm(rest.after(4)?),
        9 => atm(rest.after(8)?),
        22 | 23 => Ok((Next::Raw, rest)),
        other => Err(Reject::NotIp(NotIp::Record(other))),
    }
}

/// Marvell's tag of a switch port between the addresses and the ether type: if the frame had a
/// VLAN tag, it replaces that.
fn marvell<'a>(span: Span<'a>, vlans: &mut Vlans) -> Result<Step<'a>, Reject> {
    const ADDRESSES: usize = 12;
    let is_tagged = span.u8(ADDRESSES)? & 0x20 != 0;
    if is_tagged {
        vlans.push(span.u16(ADDRESSES + 2)? & 0x0fff);
    }
    Ok((typed(span, ADDRESSES + 4)?, span.after(ADDRESSES + 6)?))
}
