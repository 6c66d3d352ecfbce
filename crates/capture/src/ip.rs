//! Parsing of IP headers.
//!
//! ```text
//!     │ IPv4 │ options │ transport …                  first fragment, or not fragmented
//!     │ IPv4 │ …                                      later fragment
//!     │ IPv6 │ extension │ extension │ transport …    the last "next header" is the protocol
//! ```
//!
//! The length in the header is a bound: bytes of the frame behind it are padding, and are not read.
//! The frame is a bound of that length: a header that claims more counts what the frame can hold.
//!
//! Extension headers are parsed here: `etherparse` stops at the first truncated one, and supports
//! fewer of them.

use core::net::{Ipv4Addr, Ipv6Addr};

use etherparse::err::ipv4::{HeaderError, HeaderSliceError};
use etherparse::{IpNumber, Ipv4Header, Ipv4HeaderSlice, Ipv6Header, Ipv6HeaderSlice};

use super::guess::MINIMUM;
use super::reject::Reject;
use super::span::Span;
use super::step::Version;

/// An IP packet after the parsing of its headers.
pub(crate) struct Ip<'a> {
    pub(crate) addresses: Addresses,
    /// Of the transport layer, as far as the headers before it were captured.
    pub(crate) protocol: IpNumber,
    pub(crate) fragment: Fragment,
    /// Length of the packet.
    pub(crate) length: usize,
    /// Whether its header claims more than the frame can hold.
    pub(crate) is_overlong: bool,
    /// The transport header and what follows, without padding.
    pub(crate) payload: Span<'a>,
}

/// The addresses of a packet.
#[derive(Clone, Copy)]
pub(crate) enum Addresses {
    V4(Ipv4Addr, Ipv4Addr),
    V6(Ipv6Addr, Ipv6Addr),
}

/// The part of a packet that is in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fragment {
    Whole,
    First,
    Later,
}

impl Fragment {
    #[inline]
    const fn new(offset: u16, has_more: bool) -> Self {
        match (offset, has_more) {
            (0, false) => Self::Whole,
            (0, true) => Self::First,
            _ => Self::Later,
        }
    }
}

impl<'a> Ip<'a> {
    /// Parses the headers of the packet that begins here.
    #[inline(always)]
    pub(crate) fn parse(version: Version, packet: Span<'a>) -> Result<Self, Reject> {
        match version {
            Version::V4 => Self::v4(packet),
            Version::V6 => Self::v6(packet),
        }
    }

    #[inline(always)]
    fn v4(packet: Span<'a>) -> Result<Self, Reject> {
        let mut padded = [0; Ipv4Header::MAX_LEN];
        let header = match Ipv4HeaderSlice::from_slice(packet.captured()) {
            Ok(header) => header,
            Err(error) => cut_header(packet.captured(), error, &mut padded)?,
        };
        let header_len = header.slice().len();
        let length = match usize::from(header.total_len()) {
            // A packet longer than the field allows, on its way to or from a network card with
            // segmentation offload.
            0 => packet.wire(),
            length if length < header_len => return Err(Reject::ShortLength),
            length => length,
        };
        let fragment = Fragment::new(header.fragments_offset().value(), header.more_fragments());
        let payload = packet.first(length).skip(header_len);
        let (protocol, payload) = match (header.protocol(), fragment) {
            (IpNumber::AUTHENTICATION_HEADER, Fragment::Whole | Fragment::First) => {
                authenticated(header.protocol(), payload)
            }
            (protocol, _) => (protocol, payload),
        };
        Ok(Self {
            addresses: Addresses::V4(header.source_addr(), header.destination_addr()),
            protocol,
            fragment,
            length: length.min(packet.wire()),
            is_overlong: length > packet.wire(),
            payload,
        })
    }

    #[inline(always)]
    fn v6(packet: Span<'a>) -> Result<Self, Reject> {
        if packet.captured().len() < Ipv6Header::LEN {
            return Err(Reject::IpCut);
        }
        let header =
            Ipv6HeaderSlice::from_slice(packet.captured()).map_err(|_| Reject::WrongVersion)?;
        let first = header.next_header();
        let length = match usize::from(header.payload_length()) {
            0 => length_without_field(first, packet),
            length => Ipv6Header::LEN + length,
        };
        let payload = packet.first(length).skip(Ipv6Header::LEN);
        let Chain { protocol, fragment, payload } = Chain::walk(first, payload);
        Ok(Self {
            addresses: Addresses::V6(header.source_addr(), header.destination_addr()),
            protocol,
            fragment,
            length: length.min(packet.wire()),
            is_overlong: length > packet.wire(),
            payload,
        })
    }
}

/// Returns a header whose options are truncated: zeros replace them, since they are not read.
#[cold]
fn cut_header<'a>(
    bytes: &[u8],
    error: HeaderSliceError,
    padded: &'a mut [u8; Ipv4Header::MAX_LEN],
) -> Result<Ipv4HeaderSlice<'a>, Reject> {
    match error {
        HeaderSliceError::Len(_) if bytes.len() >= Ipv4Header::MIN_LEN => {
            padded[..bytes.len()].copy_from_slice(bytes);
            Ipv4HeaderSlice::from_slice(padded).map_err(|_| Reject::IpCut)
        }
        HeaderSliceError::Len(_) => Err(Reject::IpCut),
        HeaderSliceError::Content(HeaderError::UnexpectedVersion { .. }) => {
            Err(Reject::WrongVersion)
        }
        HeaderSliceError::Content(HeaderError::HeaderLengthSmallerThanHeader { .. }) => {
            Err(Reject::ShortHeader)
        }
    }
}

/// Returns the length of an IPv6 packet whose payload length is 0: the length of a jumbogram (RFC
/// 2675), or of the frame, if the packet is on its way to or from a network card with segmentation
/// offload.
fn length_without_field(first: IpNumber, packet: Span<'_>) -> usize {
    if let Some(length) = jumbo_payload(first, packet.skip(Ipv6Header::LEN)) {
        return Ipv6Header::LEN.saturating_add(length);
    }
    // There is nothing behind the header, apart from the padding of a short frame.
    let is_empty = first == IpNumber::IPV6_NO_NEXT_HEADER || packet.wire() <= MINIMUM;
    if is_empty { Ipv6Header::LEN } else { packet.wire() }
}

/// Returns the length in a jumbo payload option, which is in the first extension header.
fn jumbo_payload(first: IpNumber, payload: Span<'_>) -> Option<usize> {
    const PAD_1: u8 = 0;
    const JUMBO: u8 = 0xc2;
    if first != IpNumber::IPV6_HEADER_HOP_BY_HOP {
        return None;
    }
    let header = payload.first(8 * (usize::from(payload.u8(1).ok()?) + 1));
    let mut options = header.skip(2);
    loop {
        match options.u8(0).ok()? {
            PAD_1 => options = options.skip(1),
            JUMBO => break,
            _ => options = options.skip(2 + usize::from(options.u8(1).ok()?)),
        }
    }
    let length = options.u32(2).ok()?;
    // A payload that the field of the header could state is not a jumbo payload.
    (length > u16::MAX.into()).then_some(length as usize)
}

/// Skips the authentication headers (RFC 4302) of an IPv4 packet, as the chain of IPv6 does. If one
/// is truncated, the last known number is the protocol.
fn authenticated(mut protocol: IpNumber, mut rest: Span<'_>) -> (IpNumber, Span<'_>) {
    while protocol == IpNumber::AUTHENTICATION_HEADER {
        let (Ok(next), Ok(length)) = (rest.u8(0), rest.u8(1)) else { break };
        (protocol, rest) = (IpNumber(next), rest.skip(authentication_len(length)));
    }
    (protocol, rest)
}

/// Returns the bytes of an authentication header, whose length is in words less two.
fn authentication_len(words: u8) -> usize {
    4 * (usize::from(words) + 2)
}

/// The chain of extension headers.
struct Chain<'a> {
    protocol: IpNumber,
    fragment: Fragment,
    payload: Span<'a>,
}

impl<'a> Chain<'a> {
    /// Skips the extension headers of IPv6. If they are truncated, the last known number is the
    /// protocol.
    fn walk(mut next: IpNumber, mut rest: Span<'a>) -> Self {
        let mut fragment = Fragment::Whole;
        // All of them begin with the next number and a length, and none is below 8 bytes.
        while let Some([following, length, offset_high, offset_low, ..]) =
            rest.captured().first_chunk::<8>()
        {
            let length = match next {
                IpNumber::IPV6_FRAGMENTATION_HEADER => 8,
                IpNumber::AUTHENTICATION_HEADER => authentication_len(*length),
                IpNumber::IPV6_HEADER_HOP_BY_HOP
                | IpNumber::IPV6_ROUTE_HEADER
                | IpNumber::IPV6_DESTINATION_OPTIONS
                | IpNumber::MOBILITY_HEADER
                | IpNumber::HIP
                | IpNumber::SHIM6 => 8 * (usize::from(*length) + 1),
                _ => break,
            };
            if next == IpNumber::IPV6_FRAGMENTATION_HEADER {
                // The lowest three bits are not part of the offset.
                let offset = u16::from_be_bytes([*offset_high, *offset_low]);
                fragment = Fragment::new(offset >> 3, offset & 1 == 1);
            }
            next = IpNumber(*following);
            rest = rest.skip(length);
            if fragment == Fragment::Later {
                break;
            }
        }
        Self { protocol: next, fragment, payload: rest }
    }
}
