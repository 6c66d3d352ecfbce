//! Why a packet has no flow.

use core::fmt;

/// Why a packet could not be given the name of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reject {
    /// Another protocol than IP: ARP, spanning tree, encrypted or managing frames of a wireless
    /// network.
    NotIp,
    /// A link type that nothing here reads.
    UnknownLink,
    /// The frame ends inside the headers in front of IP.
    LinkCut,
    /// The frame ends inside the fixed part of the IP header.
    IpCut,
    /// The IP header has another version than the link layer announced, or none that exists.
    WrongVersion,
    /// An IPv4 header that says it is shorter than 20 bytes.
    ShortHeader,
}

impl Reject {
    /// All of them, in the order of their discriminants.
    pub const ALL: [Self; 6] = [
        Self::NotIp,
        Self::UnknownLink,
        Self::LinkCut,
        Self::IpCut,
        Self::WrongVersion,
        Self::ShortHeader,
    ];

    /// Whether the packet is damaged or cut, not merely of another protocol.
    pub const fn is_malformed(self) -> bool {
        !matches!(self, Self::NotIp | Self::UnknownLink)
    }
}

impl fmt::Display for Reject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::NotIp => "not IP",
            Self::UnknownLink => "of an unknown link type",
            Self::LinkCut => "cut in front of the IP header",
            Self::IpCut => "cut in the IP header",
            Self::WrongVersion => "of a wrong IP version",
            Self::ShortHeader => "with an IPv4 header below 20 bytes",
        })
    }
}
