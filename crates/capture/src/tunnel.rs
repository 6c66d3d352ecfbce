//! Tunnels in IP and UDP: from the header of the outer packet to the content.
//!
//! ```text
//!     │ IP │ IP                                            IP in IP, 6in4, 4in6
//!     │ IP │ GRE │ IP, Ethernet, MPLS, PPP                 GRE, NVGRE, ERSPAN, PPTP
//!     │ IP │ EtherIP, L2TP version 3 │ Ethernet
//!     │ IP │ UDP │ VXLAN, Geneve, GTP-U, L2TP, CAPWAP, … │ Ethernet or IP
//! ```
//!
//! Tunnels in UDP are known by the destination port that IANA, or Linux, has assigned to them.

use etherparse::{EtherType, IpNumber, UdpHeader};

use super::ethernet::typed;
use super::guess::guessed;
use super::ip::Ip;
use super::span::Span;
use super::step::{Next, Step, Version};
use super::tags;

/// Returns the first header of the content of a packet, if that is a tunnel.
pub(crate) fn content<'a>(ip: &Ip<'a>) -> Option<Step<'a>> {
    let payload = ip.payload;
    match ip.protocol {
        IpNumber::IPV4 => Some((Next::Ip(Version::V4), payload)),
        IpNumber::IPV6 => Some((Next::Ip(Version::V6), payload)),
        IpNumber::GRE => routing_encapsulation(payload),
        // Version 3.
        IpNumber::ETHER_IP => Some((Next::Ethernet, payload.after(2).ok()?)),
        IpNumber::LAYER2_TUNNELING_PROTOCOL => session(payload),
        IpNumber::MPLS_IN_IP => Some((Next::EtherType(tags::MPLS), payload)),
        IpNumber::UDP => in_udp(payload),
        _ => None,
    }
}

/// GRE (RFC 2784, 2890), and its version 1 (RFC 2637), which PPTP has.
fn routing_encapsulation(span: Span<'_>) -> Option<Step<'_>> {
    const CHECKSUM: u16 = 0x8000;
    const ROUTING: u16 = 0x4000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    const ACKNOWLEDGMENT: u16 = 0x0080;
    const VERSION: u16 = 0x0007;
    let flags = span.u16(0).ok()?;
    let version = flags & VERSION;
    // Source routes were removed from the standard.
    if flags & ROUTING != 0 || version > 1 {
        return None;
    }
    let fields = match version {
        0 => CHECKSUM | KEY | SEQUENCE,
        _ => KEY | SEQUENCE | ACKNOWLEDGMENT,
    };
    let length = 4 + 4 * (flags & fields).count_ones() as usize;
    let rest = span.after(length).ok()?;
    let has_sequence = flags & SEQUENCE != 0;
    match span.u16(2).ok()? {
        0x88be => Some((Next::Ethernet, rest.after(if has_sequence { 8 } else { 0 }).ok()?)),
        0x22eb => mirrored(rest),
        0x883e => Some(redirected(rest)),
        // A keepalive.
        0 => None,
        other => Some((Next::EtherType(EtherType(other)), rest)),
    }
}

/// ERSPAN of type III: a header, and perhaps one of the platform.
fn mirrored(span: Span<'_>) -> Option<Step<'_>> {
    const HEADER: usize = 12;
    const PLATFORM_HEADER: usize = 8;
    let has_platform_header = span.u8(HEADER - 1).ok()? & 1 == 1;
    let length = HEADER + if has_platform_header { PLATFORM_HEADER } else { 0 };
    let next = match span.u8(10).ok()? >> 2 & 0x1f {
        0 => Next::Ethernet,
        2 => Next::Raw,
        _ => return None,
    };
    Some((next, span.after(length).ok()?))
}

/// Traffic redirected by WCCP: IP, in version 2 with a header of four bytes before it.
fn redirected(span: Span<'_>) -> Step<'_> {
    let is_ip = matches!(span.u8(0), Ok(0x45..=0x4f));
    (Next::Raw, if is_ip { span } else { span.skip(4) })
}

/// L2TP of version 3: the length of its cookie is not in the packet.
fn session(span: Span<'_>) -> Option<Step<'_>> {
    const CONTROL: u32 = 0;
    if span.u32(0).ok()? == CONTROL {
        return None;
    }
    // Without cookie, with one of 4 or 8 bytes, and the sublayer's four bytes.
    [4, 8, 12, 16].into_iter().find_map(|length| guessed(span.after(length).ok()?))
}

/// Returns the content of a datagram to the port of a tunnel.
fn in_udp(span: Span<'_>) -> Option<Step<'_>> {
    const TEREDO: u16 = 3544;
    let [source, destination] = [span.u16(0).ok()?, span.u16(2).ok()?];
    let data = span.after(UdpHeader::LEN).ok()?;
    match destination {
        1701 => tunnelled_ppp(data),
        2152 => user_plane(data),
        4341 => Some((Next::Raw, data.after(8).ok()?)),
        4754 => routing_encapsulation(data),
        4789 | 4790 | 8472 => virtual_lan(data),
        5247 => access_point(data),
        6081 => virtual_network(data),
        6635 => Some((Next::EtherType(tags::MPLS), data)),
        37008 => sniffed(data),
        _ if [source, destination].contains(&TEREDO) => traversing(data),
        _ => None,
    }
}

/// VXLAN, RFC 7348, and its generic protocol extension.
fn virtual_lan(span: Span<'_>) -> Option<Step<'_>> {
    const HAS_NETWORK: u8 = 0x08;
    const HAS_PROTOCOL: u8 = 0x04;
    let flags = span.u8(0).ok()?;
    if flags & HAS_NETWORK == 0 {
        return None;
    }
    let next = match (flags & HAS_PROTOCOL != 0, span.u8(3).ok()?) {
        (false, _) | (true, 3) => Next::Ethernet,
        (true, 1) => Next::Ip(Version::V4),
        (true, 2) => Next::Ip(Version::V6),
        (true, 4) => Next::EtherType(EtherType(0x894f)),
        (true, _) => return None,
    };
    Some((next, span.after(8).ok()?))
}

/// CAPWAP, RFC 5415: frames of an access point, unless they are encrypted by DTLS.
fn access_point(span: Span<'_>) -> Option<Step<'_>> {
    const PLAIN: u8 = 0;
    const IS_NATIVE: u32 = 0x100;
    const IS_FRAGMENT: u32 = 0x80;
    const WIRELESS: u32 = 1;
    if span.u8(0).ok()? != PLAIN {
        return None;
    }
    // Lengths in words, the kind of native frames, and flags.
    let fields = span.u32(0).ok()?;
    let length = 4 * (fields >> 19 & 0x1f) as usize;
    let is_later = fields & IS_FRAGMENT != 0 && span.u16(6).ok()? >> 3 != 0;
    let next = match (fields & IS_NATIVE != 0, fields >> 9 & 0x1f) {
        _ if is_later => return None,
        (false, _) => Next::Ethernet,
        (true, WIRELESS) => Next::Wifi { is_padded: false },
        (true, _) => return None,
    };
    Some((next, span.after(length).ok()?))
}

/// Geneve, RFC 8926.
fn virtual_network(span: Span<'_>) -> Option<Step<'_>> {
    let options = 4 * usize::from(span.u8(0).ok()? & 0x3f);
    Some((typed(span, 2).ok()?, span.after(8 + options).ok()?))
}

/// GTP-U, 3GPP TS 29.281: user data in a header with extensions.
fn user_plane(span: Span<'_>) -> Option<Step<'_>> {
    const USER_DATA: u8 = 255;
    const HEADER: usize = 8;
    const OPTIONAL: usize = 4;
    /// Headers of extensions that exist.
    const MAX_EXTENSIONS: usize = 8;
    let flags = span.u8(0).ok()?;
    let is_version_1 = flags >> 4 == 3;
    if !is_version_1 || span.u8(1).ok()? != USER_DATA {
        return None;
    }
    let has_optional = flags & 0x07 != 0;
    if !has_optional {
        return Some((Next::Raw, span.after(HEADER).ok()?));
    }
    let has_extension = flags & 0x04 != 0;
    let mut extension = if has_extension { span.u8(HEADER + 3).ok()? } else { 0 };
    let mut rest = span.after(HEADER + OPTIONAL).ok()?;
    for _ in 0..MAX_EXTENSIONS {
        if extension == 0 {
            return Some((Next::Raw, rest));
        }
        let length = 4 * usize::from(rest.u8(0).ok()?);
        extension = rest.u8(length.checked_sub(1)?).ok()?;
        rest = rest.after(length).ok()?;
    }
    None
}

/// L2TP of version 2, RFC 2661: a session of PPP.
fn tunnelled_ppp(span: Span<'_>) -> Option<Step<'_>> {
    const CONTROL: u16 = 0x8000;
    const LENGTH: u16 = 0x4000;
    const SEQUENCE: u16 = 0x0800;
    const OFFSET: u16 = 0x0200;
    let flags = span.u16(0).ok()?;
    if flags & CONTROL != 0 || flags & 0x000f != 2 {
        return None;
    }
    let has = |flag: u16| flags & flag != 0;
    let mut length = 6 + if has(LENGTH) { 2 } else { 0 } + if has(SEQUENCE) { 4 } else { 0 };
    if has(OFFSET) {
        length += 2 + usize::from(span.u16(length).ok()?);
    }
    Some((Next::Ppp, span.after(length).ok()?))
}

/// TZSP of wireless sensors and routers: tagged fields before an Ethernet frame.
fn sniffed(span: Span<'_>) -> Option<Step<'_>> {
    const HEADER: usize = 4;
    const ETHERNET: u16 = 1;
    const PADDING: u8 = 0;
    const END: u8 = 1;
    if span.u16(2).ok()? != ETHERNET {
        return None;
    }
    let mut fields = span.after(HEADER).ok()?;
    loop {
        let length = match fields.u8(0).ok()? {
            END => return Some((Next::Ethernet, fields.after(1).ok()?)),
            PADDING => 1,
            _ => 2 + usize::from(fields.u8(1).ok()?),
        };
        fields = fields.after(length).ok()?;
    }
}

/// Teredo, RFC 4380: IPv6, perhaps after an authentication and an origin.
fn traversing(span: Span<'_>) -> Option<Step<'_>> {
    let mut rest = span;
    if rest.starts_with(&[0, 1]) {
        let names = usize::from(rest.u8(2).ok()?) + usize::from(rest.u8(3).ok()?);
        rest = rest.after(13 + names).ok()?;
    }
    if rest.starts_with(&[0, 0]) {
        rest = rest.after(8).ok()?;
    }
    (rest.u8(0).ok()? >> 4 == 6).then_some((Next::Ip(Version::V6), rest))
}
