//! The walk over the headers of a frame, from the link layer to IP.
//!
//! ```text
//!     link type ─► Ethernet ─► EtherType: VLAN ─► EtherType: MPLS ─► Ethernet ─► … ─► IP
//! ```
//!
//! Each step reads one header, and returns the kind of the next one: there is no recursion. The
//! number of steps is bounded for each packet, so that a crafted frame costs no more than others.

use etherparse::EtherType;

use super::reject::Reject;
use super::span::Span;
use super::step::{LinkLayer, Next, Step, Version};
use super::{ethernet, link, wifi};

/// The state of a walk.
pub(crate) struct Walk<'a> {
    pub(crate) link: LinkLayer<'a>,
    /// The other subframes of an A-MSDU.
    pub(crate) subframes: Option<Span<'a>>,
    /// Number of steps left.
    steps: u32,
}

impl<'a> Walk<'a> {
    /// The maximum number of headers up to the metered IP header. Real packets have below twenty.
    const MAX_STEPS: u32 = 64;

    pub(crate) fn new() -> Self {
        Self { link: LinkLayer::default(), subframes: None, steps: Self::MAX_STEPS }
    }

    /// Walks to the next IP header, and returns its version and the bytes from it on.
    pub(crate) fn find_ip(&mut self, start: Step<'a>) -> Result<(Version, Span<'a>), Reject> {
        match ethernet::untagged(start) {
            Some(found) => {
                self.link.ethernet = Some(start.1);
                Ok(found)
            }
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
                    self.link = LinkLayer::of_ethernet(span);
                    ethernet::header(span, &mut self.link.vlans)?
                }
                Next::EtherType(EtherType::IPV4) => (Next::Ip(Version::V4), span),
                Next::EtherType(EtherType::IPV6) => (Next::Ip(Version::V6), span),
                Next::EtherType(kind) => ethernet::payload(kind, span, &mut self.link.vlans)?,
                Next::Llc => ethernet::llc(span)?,
                Next::Ppp => link::ppp(span)?,
                Next::Wifi { is_padded } => wifi::header(span, is_padded)?,
                Next::Subframes => {
                    let first = wifi::subframe(span)?;
                    self.subframes = first.rest;
                    (Next::Ethernet, first.frame)
                }
                Next::Link(link) => {
                    if link::has_addresses(link) {
                        self.link.ethernet = Some(span);
                    }
                    link::header(link, span, &mut self.link.vlans)?
                }
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
