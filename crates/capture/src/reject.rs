//! Reasons why a packet has no flow.

use core::fmt;

use super::not_ip::NotIp;

/// The reason why a packet has no flow key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reject {
    /// A protocol other than IP.
    NotIp(NotIp),
    /// This link type is not supported.
    UnknownLink(u16),
    /// The frame ends inside the headers before IP.
    LinkCut,
    /// The frame ends inside the fixed part of the IP header.
    IpCut,
    /// The IP header has another version than the link layer announced, or none that exists.
    WrongVersion,
    /// The header length in the IPv4 header is below 20 bytes.
    ShortHeader,
    /// The total length in the IPv4 header is below that of the header.
    ShortLength,
    /// More headers precede IP than packets have.
    TooManyHeaders,
}

impl Reject {
    /// Returns whether the packet is damaged or truncated, not merely of another protocol.
    pub const fn is_malformed(self) -> bool {
        !matches!(self, Self::NotIp(_) | Self::UnknownLink(_))
    }

    /// Returns whether the packet is of a protocol or link type that this crate does not know: IP
    /// may be in it.
    pub fn is_unknown(self) -> bool {
        match self {
            Self::NotIp(protocol) => !protocol.is_known(),
            Self::UnknownLink(_) => true,
            _ => false,
        }
    }
}

impl fmt::Display for Reject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotIp(protocol) => protocol.fmt(f),
            Self::UnknownLink(link) => write!(f, "of link type {link}"),
            Self::LinkCut => f.write_str("cut before the IP header"),
            Self::IpCut => f.write_str("cut in the IP header"),
            Self::WrongVersion => f.write_str("of a wrong IP version"),
            Self::ShortHeader => f.write_str("with an IPv4 header below 20 bytes"),
            Self::ShortLength => f.write_str("with a total length below the IPv4 header"),
            Self::TooManyHeaders => f.write_str("with too many headers before IP"),
        }
    }
}
