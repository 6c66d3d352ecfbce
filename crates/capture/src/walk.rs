//! The walk over the headers of a frame, from the link layer to IP.
//!
//! ```text
//!     link type ─► Ethernet ─► EtherType: VLAN ─► EtherType: MPLS ─► Ethernet ─► … ─► IP
//! ```
//!
//! Each step reads one header, and returns the kind of the next one: there is no recursion. The
//! number of steps is bounded for each packet, so that a crafted frame costs no more than others.

use core::fmt;
use core::hash::{Hash, Hasher};

use etherparse::EtherType;

use super::reject::Reject;
use super::span::Span;
use super::{ethernet, labels, link, wifi};

/// A version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    V4,
    V6,
}

/// The kind of the next header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A frame of this link type.
    Link(u16),
    Ethernet,
    /// The header or packet that this ether type announces.
    EtherType(EtherType),
    /// 802.2, in a frame of any kind.
    Llc,
    /// PPP, from its protocol on, or from the address and control bytes of HDLC.
    Ppp,
    /// A frame of 802.11.
    Wifi {
        /// The header is padded to a multiple of four bytes.
        is_padded: bool,
    },
    /// The subframes of an A-MSDU.
    Subframes,
    /// IP of the version in its first four bits.
    Raw,
    Ip(Version),
}

/// The next header, and the bytes from it on.
pub(crate) type Step<'a> = (Next, Span<'a>);

/// VLAN IDs of a packet: the outer and the inner one.
///
/// They are from the tags behind the last Ethernet header before the metered IP header. A tag
/// without an ID, of a priority only, does not count, and neither do tags after the second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Vlans {
    /// 0 without tags.
    pub outer: u16,
    /// 0 without a second tag.
    pub inner: u16,
}

impl Vlans {
    pub(crate) const fn push(&mut self, id: u16) {
        match self {
            Self { outer: outer @ 0, .. } => *outer = id,
            Self { inner: inner @ 0, .. } => *inner = id,
            Self { .. } => {}
        }
    }
}

/// Hashes both in one word: a call for each would cost more.
impl Hash for Vlans {
    fn hash<S: Hasher>(&self, state: &mut S) {
        state.write_u32(u32::from(self.outer) << 16 | u32::from(self.inner));
    }
}

/// `outer.inner`, `outer`, or nothing.
impl fmt::Display for Vlans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { outer: 0, .. } => Ok(()),
            Self { outer, inner: 0 } => write!(f, "{outer}"),
            Self { outer, inner } => write!(f, "{outer}.{inner}"),
        }
    }
}

/// The state of a walk.
pub(crate) struct Walk<'a> {
    pub(crate) vlans: Vlans,
    /// The other subframes of an A-MSDU.
    pub(crate) subframes: Option<Span<'a>>,
    /// Number of steps left.
    steps: u32,
}

impl<'a> Walk<'a> {
    /// The maximum number of headers up to the metered IP header. Real packets have below twenty.
    const MAX_STEPS: u32 = 64;

    pub(crate) fn new() -> Self {
        Self { vlans: Vlans::default(), subframes: None, steps: Self::MAX_STEPS }
    }

    /// Walks to the next IP header, and returns its version and the bytes from it on.
    #[inline]
    pub(crate) fn find_ip(&mut self, start: Step<'a>) -> Result<(Version, Span<'a>), Reject> {
        match ethernet::untagged(start) {
            Some(found) => Ok(found),
            None => self.walk(start),
        }
    }

    fn walk(&mut self, start: Step<'a>) -> Result<(Version, Span<'a>), Reject> {
        let (mut next, mut span) = start;
        loop {
            self.steps = self.steps.checked_sub(1).ok_or(Reject::TooManyHeaders)?;
            (next, span) = match next {
                Next::Ip(version) => return Ok((version, span)),
                Next::Raw => raw(span)?,
                Next::Ethernet => {
                    self.vlans = Vlans::default();
                    ethernet::header(span, &mut self.vlans)?
                }
                Next::EtherType(EtherType::IPV4) => (Next::Ip(Version::V4), span),
                Next::EtherType(EtherType::IPV6) => (Next::Ip(Version::V6), span),
                Next::EtherType(kind) => ethernet::payload(kind, span, &mut self.vlans)?,
                Next::Llc => ethernet::llc(span)?,
                Next::Ppp => link::ppp(span)?,
                Next::Wifi { is_padded } => wifi::header(span, is_padded)?,
                Next::Subframes => {
                    let first = wifi::subframe(span)?;
                    self.subframes = first.rest;
                    (Next::Ethernet, first.frame)
                }
                Next::Link(link) => link::header(link, span, &mut self.vlans)?,
            };
        }
    }
}

/// Reads the version in an IP header.
fn raw(span: Span<'_>) -> Result<Step<'_>, Reject> {
    match span.u8(0)? >> 4 {
        4 => Ok((Next::Ip(Version::V4), span)),
        6 => Ok((Next::Ip(Version::V6), span)),
        _ => Err(Reject::WrongVersion),
    }
}

/// Returns the step of a payload that is IP by a valid header, or Ethernet by a plausible one: for
/// encapsulations that do not announce it.
pub(crate) fn guessed(span: Span<'_>) -> Option<Step<'_>> {
    match labels::ip_version(span) {
        Some(version) => Some((Next::Ip(version), span)),
        None => ethernet::is_plausible(span).then_some((Next::Ethernet, span)),
    }
}
