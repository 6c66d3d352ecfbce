//! The forwarding functions of the router, at increasing cost.
//!
//! ```text
//!     Fast       TTL - 1, incremental checksum
//!     General    header check, route lookup, TTL - 1, checksum of the whole header
//!     Proxy      Fast; address translation to the proxy, with incremental checksums
//!     Active     Fast; a CRC of the captured bytes; repeated packets are dropped
//! ```

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use flowtable::FlowKey;

/// A forwarding function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    Fast,
    General,
    Proxy,
    Active,
}

const WEB: [u16; 3] = [80, 443, 8080];
const DNS: u16 = 53;
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;

/// The proxy's end of connections.
const PROXY_V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const PROXY_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 1);
pub(crate) const PROXY_PORT: u16 = 3128;

impl Function {
    pub const ALL: [Self; 4] = [Self::Fast, Self::General, Self::Proxy, Self::Active];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Fast => "IP, fast",
            Self::General => "IP, general",
            Self::Proxy => "proxy",
            Self::Active => "active",
        }
    }

    /// Returns the function for plain packets of this flow; all others use
    /// [`General`](Self::General).
    pub fn of(key: &FlowKey) -> Self {
        match key.protocol() {
            TCP if WEB.contains(&key.dport()) || WEB.contains(&key.sport()) => Self::Proxy,
            UDP if key.dport() == DNS || key.sport() == DNS => Self::Active,
            ICMP | ICMPV6 => Self::Active,
            _ => Self::Fast,
        }
    }

    /// Returns the destination of packets of this flow.
    pub fn destination(self, key: &FlowKey) -> IpAddr {
        if self == Self::Proxy && is_to_server(key) { proxy(key) } else { key.dst() }
    }
}

pub(crate) fn is_to_server(key: &FlowKey) -> bool {
    WEB.contains(&key.dport())
}

/// Returns the address of the proxy for this version of IP.
pub(crate) fn proxy(key: &FlowKey) -> IpAddr {
    match key {
        FlowKey::V4(_) => PROXY_V4.into(),
        FlowKey::V6(_) => PROXY_V6.into(),
    }
}

/// The reason for dropping a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The header is malformed.
    Malformed,
    /// There is no route to the destination.
    NoRoute,
    /// The TTL has expired.
    Expired,
    /// The packet is a repetition.
    Repeated,
}
