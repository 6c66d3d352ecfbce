//! Conversions from and to the types of the crate `ipnetwork`.

use core::net::{Ipv4Addr, Ipv6Addr};

use ipnetwork::{IpNetwork, Ipv4Network, Ipv6Network};

use crate::key::any_prefix::AnyPrefix;
use crate::key::prefix::Prefix;

/// Clears the host bits.
impl From<Ipv4Network> for Prefix<Ipv4Addr> {
    fn from(net: Ipv4Network) -> Self {
        Self::of(&net.ip(), u32::from(net.prefix()))
    }
}

/// Clears the host bits.
impl From<Ipv6Network> for Prefix<Ipv6Addr> {
    fn from(net: Ipv6Network) -> Self {
        Self::of(&net.ip(), u32::from(net.prefix()))
    }
}

impl From<Prefix<Ipv4Addr>> for Ipv4Network {
    fn from(prefix: Prefix<Ipv4Addr>) -> Self {
        let net = Self::new(prefix.address(), prefix.len() as u8);
        net.expect("the length is in range")
    }
}

impl From<Prefix<Ipv6Addr>> for Ipv6Network {
    fn from(prefix: Prefix<Ipv6Addr>) -> Self {
        let net = Self::new(prefix.address(), prefix.len() as u8);
        net.expect("the length is in range")
    }
}

/// Clears the host bits.
impl From<IpNetwork> for AnyPrefix {
    fn from(net: IpNetwork) -> Self {
        match net {
            IpNetwork::V4(net) => Self::V4(net.into()),
            IpNetwork::V6(net) => Self::V6(net.into()),
        }
    }
}

impl From<AnyPrefix> for IpNetwork {
    fn from(prefix: AnyPrefix) -> Self {
        match prefix {
            AnyPrefix::V4(prefix) => Self::V4(prefix.into()),
            AnyPrefix::V6(prefix) => Self::V6(prefix.into()),
        }
    }
}
