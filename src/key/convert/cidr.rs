//! Conversions from and to the types of the crate `cidr`.

use core::net::{Ipv4Addr, Ipv6Addr};

use cidr::{IpCidr, Ipv4Cidr, Ipv6Cidr};

use crate::key::any_prefix::AnyPrefix;
use crate::key::prefix::Prefix;

/// Clears the host bits.
impl From<Ipv4Cidr> for Prefix<Ipv4Addr> {
    fn from(net: Ipv4Cidr) -> Self {
        Self::of(&net.first_address(), u32::from(net.network_length()))
    }
}

/// Clears the host bits.
impl From<Ipv6Cidr> for Prefix<Ipv6Addr> {
    fn from(net: Ipv6Cidr) -> Self {
        Self::of(&net.first_address(), u32::from(net.network_length()))
    }
}

impl From<Prefix<Ipv4Addr>> for Ipv4Cidr {
    fn from(prefix: Prefix<Ipv4Addr>) -> Self {
        let net = Self::new(prefix.address(), prefix.len() as u8);
        net.expect("the length is in range, and host bits are zero")
    }
}

impl From<Prefix<Ipv6Addr>> for Ipv6Cidr {
    fn from(prefix: Prefix<Ipv6Addr>) -> Self {
        let net = Self::new(prefix.address(), prefix.len() as u8);
        net.expect("the length is in range, and host bits are zero")
    }
}

/// Clears the host bits.
impl From<IpCidr> for AnyPrefix {
    fn from(net: IpCidr) -> Self {
        match net {
            IpCidr::V4(net) => Self::V4(net.into()),
            IpCidr::V6(net) => Self::V6(net.into()),
        }
    }
}

impl From<AnyPrefix> for IpCidr {
    fn from(prefix: AnyPrefix) -> Self {
        match prefix {
            AnyPrefix::V4(prefix) => Self::V4(prefix.into()),
            AnyPrefix::V6(prefix) => Self::V6(prefix.into()),
        }
    }
}
