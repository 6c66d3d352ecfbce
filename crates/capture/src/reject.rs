//! Reasons why a packet has no flow.

use core::fmt;

/// The reason why a packet has no flow key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reject {
    /// A protocol other than IP: ARP, spanning tree, encrypted or management frames of a wireless
    /// network.
    NotIp,
    /// An unsupported link type.
    UnknownLink,
    /// The frame ends inside the headers before IP.
    LinkCut,
    /// The frame ends inside the fixed part of the IP header.
    IpCut,
    /// The IP header has another version than the link layer announced, or none that exists.
    WrongVersion,
    /// The length in the IPv4 header is below 20 bytes.
    ShortHeader,
}

impl Reject {
    /// All reasons, in the order of their discriminants.
    pub const ALL: [Self; 6] = [
        Self::NotIp,
        Self::UnknownLink,
        Self::LinkCut,
        Self::IpCut,
        Self::WrongVersion,
        Self::ShortHeader,
    ];

    /// Returns whether the packet is damaged or truncated, not merely of another protocol.
    pub const fn is_malformed(self) -> bool {
        !matches!(self, Self::NotIp | Self::UnknownLink)
    }
}

impl fmt::Display for Reject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::NotIp => "not IP",
            Self::UnknownLink => "of an unknown link type",
            Self::LinkCut => "cut before the IP header",
            Self::IpCut => "cut in the IP header",
            Self::WrongVersion => "of a wrong IP version",
            Self::ShortHeader => "with an IPv4 header below 20 bytes",
        })
    }
}
