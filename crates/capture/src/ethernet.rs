//! Ethernet, and headers between it and IP.
//!
//! ```text
//!     │ Ethernet │ VLAN │ VLAN │ MPLS │ MPLS │ IP            any number, in any order:
//!     │ Ethernet │ PPPoE │ PPP │ IP                          each has the type of the next
//!     │ Ethernet │ length │ LLC, SNAP │ IP
//!     │ Ethernet │ MPLS │ control word │ Ethernet │ IP
//! ```
//!
//! Headers of fixed length are in a table: [`TAGS`].

use etherparse::{EtherType, Ethernet2HeaderSlice, MacsecHeaderSlice, MacsecPType};

use super::labels;
use super::not_ip::NotIp;
use super::reject::Reject;
use super::span::Span;
use super::step::{Next, Step, Version, Vlans};
use super::tags::{
    ETHERNET as HEADER, FIRST_TYPE, MACSEC, MPLS, MPLS_MULTICAST, REALTEK, SERVICE_HEADER, TAGS,
    TRILL, Then,
};

/// Returns the IP packet of an Ethernet frame without tags: most frames are, and need no walk.
#[inline]
pub(crate) fn untagged(start: Step<'_>) -> Option<(Version, Span<'_>)> {
    const LINK: u16 = 1;
    let (Next::Link(LINK), span) = start else { return None };
    let version = match EtherType(span.u16(HEADER - 2).ok()?) {
        EtherType::IPV4 => Version::V4,
        EtherType::IPV6 => Version::V6,
        _ => return None,
    };
    Some((version, span.skip(HEADER)))
}

/// Reads an Ethernet header.
pub(crate) fn header<'a>(span: Span<'a>, vlans: &mut Vlans) -> Result<Step<'a>, Reject> {
    if let Some(vlan) = inter_switch_link(span) {
        vlans.push(vlan);
        return Ok((Next::Ethernet, span.after(26)?));
    }
    let header = Ethernet2HeaderSlice::from_slice(span.captured()).map_err(|_| Reject::LinkCut)?;
    Ok((Next::EtherType(header.ether_type()), span.after(HEADER)?))
}

/// Returns the VLAN of Cisco's ISL, which is known by its destination and its SNAP header: an
/// Ethernet frame follows.
fn inter_switch_link(span: Span<'_>) -> Option<u16> {
    let is_destination = |prefix: u8| span.starts_with(&[prefix, 0x00, 0x0c, 0x00, 0x00]);
    let has_frame = span.u8(5).ok()? >> 4 == 0;
    let is_snap = span.captured().get(HEADER..)?.starts_with(&[0xaa, 0xaa, 0x03]);
    let is_isl = (is_destination(0x01) || is_destination(0x03)) && has_frame && is_snap;
    is_isl.then(|| span.u16(20).map(|vlan| vlan >> 1).ok())?
}

/// Reads the header that an ether type announces.
pub(crate) fn payload<'a>(
    ether_type: EtherType,
    span: Span<'a>,
    vlans: &mut Vlans,
) -> Result<Step<'a>, Reject> {
    if let Some(tag) = TAGS.iter().find(|tag| tag.ether_type == ether_type.0) {
        if tag.is_vlan {
            vlans.push(span.u16(0)? & 0x0fff);
        }
        let rest = span.after(tag.length)?;
        return match tag.then {
            Then::EtherType => Ok((typed(span, tag.length - 2)?, rest)),
            Then::Header(next) => Ok((next, rest)),
        };
    }
    match ether_type {
        MPLS | MPLS_MULTICAST => labels::payload(span),
        MACSEC => unencrypted(span),
        SERVICE_HEADER => service_chain(span),
        TRILL => {
            // Options, in words of four bytes.
            let options = usize::from(span.u16(0)? >> 6 & 0x1f);
            Ok((Next::Ethernet, span.after(6 + 4 * options)?))
        }
        REALTEK => realtek(span),
        EtherType(0..FIRST_TYPE) => llc(span),
        EtherType(other) => Err(Reject::NotIp(NotIp::EtherType(other))),
    }
}

/// Returns what the ether type at this offset announces.
pub(crate) fn typed(span: Span<'_>, at: usize) -> Result<Next, Reject> {
    span.u16(at).map(|number| Next::EtherType(EtherType(number)))
}

/// Reads a header of MACsec whose payload is not encrypted.
fn unencrypted(span: Span<'_>) -> Result<Step<'_>, Reject> {
    let header = MacsecHeaderSlice::from_slice(span.captured()).map_err(|_| Reject::LinkCut)?;
    match header.ptype() {
        MacsecPType::Unmodified(ether_type) => {
            Ok((Next::EtherType(ether_type), span.after(header.slice().len())?))
        }
        _ => Err(Reject::NotIp(NotIp::EtherType(MACSEC.0))),
    }
}

/// Reads a network service header, RFC 8300.
fn service_chain(span: Span<'_>) -> Result<Step<'_>, Reject> {
    const SHORTEST: usize = 8;
    let length = 4 * usize::from(span.u8(1)? & 0x3f);
    let next = match span.u8(3)? {
        1 => Next::Ip(Version::V4),
        2 => Next::Ip(Version::V6),
        3 => Next::Ethernet,
        4 => Next::EtherType(SERVICE_HEADER),
        5 => Next::EtherType(MPLS),
        other => return Err(Reject::NotIp(NotIp::ServicePayload(other))),
    };
    Ok((next, span.after(length.max(SHORTEST))?))
}

/// Reads Realtek's tag of a switch port: of two or six bytes, before an ether type.
fn realtek(span: Span<'_>) -> Result<Step<'_>, Reject> {
    let length = match span.u8(0)? {
        0xa0..=0xaf => 4,
        0x04 => 8,
        _ => return Err(Reject::NotIp(NotIp::EtherType(REALTEK.0))),
    };
    Ok((typed(span, length - 2)?, span.after(length)?))
}

/// Reads LLC: IP has a SAP of its own, or follows SNAP or a protocol ID of ISO.
pub(crate) fn llc(span: Span<'_>) -> Result<Step<'_>, Reject> {
    const UNNUMBERED: u8 = 0x03;
    match [span.u8(0)?, span.u8(1)?, span.u8(2)?] {
        [0xaa, 0xaa, UNNUMBERED] => snap(span.after(3)?),
        [0x06, 0x06, UNNUMBERED] => Ok((Next::Ip(Version::V4), span.after(3)?)),
        [0xfe, 0xfe, UNNUMBERED] => network_layer(span.after(3)?),
        [sap, ..] => Err(Reject::NotIp(NotIp::Sap(sap))),
    }
}

/// Reads SNAP: an organization, and an ether type, if the organization has those.
pub(crate) fn snap(span: Span<'_>) -> Result<Step<'_>, Reject> {
    /// RFC 1042, and the bridge tunnels of 802.1H.
    const ETHER_TYPES: [u32; 2] = [0x00_0000, 0x00_00f8];
    /// Of 802.1: bridged Ethernet frames, with and without check sequence.
    const BRIDGED: u32 = 0x00_80c2;
    let (organization, protocol) = (span.u32(0)? >> 8, span.u16(3)?);
    let rest = span.after(5)?;
    match (organization, protocol) {
        (organization, _) if ETHER_TYPES.contains(&organization) => Ok((typed(span, 3)?, rest)),
        (BRIDGED, 1 | 7) => Ok((Next::Ethernet, rest)),
        _ => Err(Reject::NotIp(NotIp::Snap(organization))),
    }
}

/// Reads a network layer protocol ID.
pub(crate) fn network_layer(span: Span<'_>) -> Result<Step<'_>, Reject> {
    let rest = span.after(1)?;
    match span.u8(0)? {
        0xcc => Ok((Next::Ip(Version::V4), rest)),
        0x8e => Ok((Next::Ip(Version::V6), rest)),
        0xcf => Ok((Next::Ppp, rest)),
        0x80 => snap(rest),
        other => Err(Reject::NotIp(NotIp::Nlpid(other))),
    }
}
