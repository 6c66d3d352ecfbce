//! MPLS, whose payload has no type: IP, or a pseudo-wire of Ethernet with or without control word.
//!
//! The first four bits do not tell them apart: the address of a pseudo-wire's first host may begin
//! with 4 or 6, as RFC 8469 warns. A payload is IP if it has a valid IP header.

use etherparse::{Ipv4HeaderSlice, Ipv6HeaderSlice};

use super::ethernet;
use super::reject::Reject;
use super::span::Span;
use super::tags::NotIp;
use super::walk::{Next, Step, Version, guessed};

/// The maximum number of labels in a stack.
const MAX_LABELS: usize = 64;

/// Bytes of a minimal Ethernet frame behind its header: up to here a payload may be padding.
pub(crate) const MINIMUM: usize = 46;

/// Reads a stack of labels.
pub(crate) fn payload(span: Span<'_>) -> Result<Step<'_>, Reject> {
    const LABEL: usize = 4;
    for index in 0..MAX_LABELS {
        let is_bottom = span.u32(index * LABEL)? & 0x100 != 0;
        if is_bottom {
            return labelled(span.after((index + 1) * LABEL)?);
        }
    }
    Err(Reject::TooManyHeaders)
}

/// Returns the payload below the labels.
fn labelled(span: Span<'_>) -> Result<Step<'_>, Reject> {
    const CONTROL_WORD: usize = 4;
    match span.u8(0)? >> 4 {
        // That of Ethernet begins with two zeros, as few addresses do.
        0 => {
            let mut offsets = [0, CONTROL_WORD];
            if span.starts_with(&[0, 0]) {
                offsets.reverse();
            }
            let found = offsets.into_iter().find_map(|offset| guessed(span.after(offset).ok()?));
            found.ok_or(Reject::NotIp(NotIp::Labelled))
        }
        // Too short for a decision: the header is cut.
        4 | 6 if span.captured().len() < 20 => Ok((Next::Raw, span)),
        6 if !is_exact_v6(span) && ethernet::is_plausible(span) => Ok((Next::Ethernet, span)),
        _ => guessed(span).ok_or(Reject::NotIp(NotIp::Labelled)),
    }
}

/// Returns the version of the IP header that these bytes begin with, if it is valid.
pub(crate) fn ip_version(span: Span<'_>) -> Option<Version> {
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
fn is_exact_v6(span: Span<'_>) -> bool {
    v6_length(span).is_some_and(|length| {
        length <= span.wire() && (span.wire() <= MINIMUM + 4 || span.wire() - length <= 4)
    })
}
