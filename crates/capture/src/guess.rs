//! Recognition of a payload whose type no header announces: IP or Ethernet.
//!
//! The first four bits do not tell IP and Ethernet apart, since an Ethernet address may begin with
//! 4 or 6. A payload is IP if it has a valid IP header, and Ethernet if it has a plausible one.

use etherparse::{EtherType, Ipv4HeaderSlice, Ipv6HeaderSlice};

use super::not_ip::NotIp;
use super::span::Span;
use super::step::{Next, Step, Version};
use super::tags::{ETHERNET, FIRST_TYPE, MPLS, MPLS_MULTICAST, SERVICE_HEADER, TAGS, TRILL};

/// Bytes of a minimal Ethernet frame behind its header: up to here a payload may be padding.
pub(crate) const MINIMUM: usize = 46;

/// Returns the step of a payload that is IP by a valid header, or Ethernet by a plausible one: for
/// encapsulations that do not announce it.
pub(crate) fn guessed(span: Span<'_>) -> Option<Step<'_>> {
    match ip_version(span) {
        Some(version) => Some((Next::Ip(version), span)),
        None => is_plausible(span).then_some((Next::Ethernet, span)),
    }
}

/// Returns the version of the IP header that these bytes begin with, if it is valid.
fn ip_version(span: Span<'_>) -> Option<Version> {
    if is_v4(span) {
        return Some(Version::V4);
    }
    let is_v6 = v6_length(span).is_some_and(|length| length <= span.wire());
    is_v6.then_some(Version::V6)
}

/// Returns whether these bytes begin with an IPv4 header of a plausible length whose checksum is
/// right, as far as it was captured.
fn is_v4(span: Span<'_>) -> bool {
    let Ok(header) = Ipv4HeaderSlice::from_slice(span.captured()) else { return false };
    let (length, total) = (header.slice().len(), usize::from(header.total_len()));
    if total != 0 && total < length {
        return false;
    }
    match header.header_checksum() {
        // Not computed: the network card would do it.
        0 => total <= span.wire() && span.wire() - total <= MINIMUM,
        checksum => checksum == header.to_header().calc_header_checksum(),
    }
}

/// Returns the length of an IPv6 packet, by its header.
fn v6_length(span: Span<'_>) -> Option<usize> {
    let header = Ipv6HeaderSlice::from_slice(span.captured()).ok()?;
    Some(header.slice().len() + usize::from(header.payload_length()))
}

/// Returns whether an IPv6 packet ends where the frame does, apart from padding.
pub(crate) fn is_exact_v6(span: Span<'_>) -> bool {
    v6_length(span).is_some_and(|length| {
        length <= span.wire() && (span.wire() <= MINIMUM + 4 || span.wire() - length <= 4)
    })
}

/// Returns whether these bytes look like an Ethernet frame: its type is a known one and, if it is
/// that of IP, the IP header is valid.
pub(crate) fn is_plausible(span: Span<'_>) -> bool {
    let (Ok(ether_type), Ok(rest)) = (span.u16(ETHERNET - 2), span.after(ETHERNET)) else {
        return false;
    };
    match EtherType(ether_type) {
        EtherType::IPV4 => rest.is_cut() || ip_version(rest) == Some(Version::V4),
        EtherType::IPV6 => rest.is_cut() || ip_version(rest) == Some(Version::V6),
        EtherType(length @ 0..FIRST_TYPE) => {
            let starts_with = |sap: u8| rest.starts_with(&[sap, sap, 0x03]);
            let is_known = [0x06, 0x42, 0xaa, 0xfe].into_iter().any(starts_with);
            is_known && usize::from(length) <= rest.wire()
        }
        MPLS | MPLS_MULTICAST | SERVICE_HEADER | TRILL => true,
        EtherType(other) => {
            TAGS.iter().any(|tag| tag.ether_type == other) || NotIp::EtherType(other).is_known()
        }
    }
}
