//! Conversions from and to the types of the crate `ipnet`.

use core::net::{Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::key::any_prefix::AnyPrefix;
use crate::key::prefix::Prefix;

/// Clears the host bits.
impl From<Ipv4Net> for Prefix<Ipv4Addr> {
    fn from(net: Ipv4Net) -> Self {
        Self::of(&net.addr(), u32::from(net.prefix_len()))
    }
}

/// Clears the host bits.
impl From<Ipv6Net> for Prefix<Ipv6Addr> {
    fn from(net: Ipv6Net) -> Self {
        Self::of(&net.addr(), u32::from(net.prefix_len()))
    }
}

impl From<Prefix<Ipv4Addr>> for Ipv4Net {
    fn from(prefix: Prefix<Ipv4Addr>) -> Self {
        Self::new_assert(prefix.address(), prefix.len() as u8)
    }
}

impl From<Prefix<Ipv6Addr>> for Ipv6Net {
    fn from(prefix: Prefix<Ipv6Addr>) -> Self {
        Self::new_assert(prefix.address(), prefix.len() as u8)
    }
}

/// Clears the host bits.
impl From<IpNet> for AnyPrefix {
    fn from(net: IpNet) -> Self {
        match net {
            IpNet::V4(net) => Self::V4(net.into()),
            IpNet::V6(net) => Self::V6(net.into()),
        }
    }
}

impl From<AnyPrefix> for IpNet {
    fn from(prefix: AnyPrefix) -> Self {
        match prefix {
            AnyPrefix::V4(prefix) => Self::V4(prefix.into()),
            AnyPrefix::V6(prefix) => Self::V6(prefix.into()),
        }
    }
}
