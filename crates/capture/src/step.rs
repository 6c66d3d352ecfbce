//! A step of the walk over the headers of a frame: the kind of the next header, and its bytes.

use core::fmt;
use core::hash::{Hash, Hasher};

use etherparse::EtherType;

use super::span::Span;

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

/// The headers of the link layer before an IP header, as far as a packet has their fields.
#[derive(Clone, Copy, Default)]
pub(crate) struct LinkLayer<'a> {
    /// Of the tags behind the last Ethernet header.
    pub(crate) vlans: Vlans,
    /// The bytes from the last Ethernet header on, if there is one.
    pub(crate) ethernet: Option<Span<'a>>,
}

impl<'a> LinkLayer<'a> {
    /// An Ethernet header without tags behind it.
    #[inline]
    pub(crate) fn of_ethernet(header: Span<'a>) -> Self {
        Self { ethernet: Some(header), ..Self::default() }
    }
}

/// Hashes both in one word, and nothing without tags: each call of the hasher costs.
impl Hash for Vlans {
    #[inline]
    fn hash<S: Hasher>(&self, state: &mut S) {
        if *self != Self::default() {
            state.write_u32(u32::from(self.outer) << 16 | u32::from(self.inner));
        }
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
