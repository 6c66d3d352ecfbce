//! Prefixes of either address family.
//!
//! ```
//! use flowtable::{AnyPrefix, Prefix};
//! use std::net::{IpAddr, Ipv4Addr};
//!
//! let ten: AnyPrefix = "10.0.0.0/8".parse()?;
//! let lab: AnyPrefix = "2001:db8::/32".parse()?;
//! assert_eq!(ten.len(), 8);
//! assert!(ten.contains(IpAddr::V4(Ipv4Addr::new(10, 1, 2, 3))));
//! assert!(ten < lab && !ten.covers(&lab), "IPv4 before IPv6");
//! # Ok::<(), flowtable::PrefixError>(())
//! ```
//!
//! There is no `Prefix<IpAddr>`: the addresses of a [`Prefix`] have one width, which its length is
//! checked against, and one prefix of length 0 contains all of them. An [`AnyPrefix`] is a prefix
//! of one of two widths, and each family has its own prefix of length 0.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

use crate::key::prefix::{Prefix, PrefixError};

/// An address prefix of IPv4 or IPv6. Prefixes of IPv4 sort before prefixes of IPv6.
///
/// # Example
///
/// ```
/// use flowtable::{AnyPrefix, Prefix};
/// use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
///
/// let prefix = AnyPrefix::new(IpAddr::V4(Ipv4Addr::new(10, 1, 2, 3)), 16)?;
/// assert_eq!(prefix.to_string(), "10.1.0.0/16"); // host bits are cleared
/// assert_eq!(prefix.address(), IpAddr::V4(Ipv4Addr::new(10, 1, 0, 0)));
/// assert!(prefix.is_ipv4());
/// assert!(prefix.covers(&AnyPrefix::host(IpAddr::V4(Ipv4Addr::new(10, 1, 2, 3)))));
/// assert_eq!(AnyPrefix::parse_lenient("10.1.2.3/16")?, prefix);
/// assert_eq!(prefix.last_address(), IpAddr::V4(Ipv4Addr::new(10, 1, 255, 255)));
/// assert_eq!(prefix.netmask(), IpAddr::V4(Ipv4Addr::new(255, 255, 0, 0)));
///
/// // From and to prefixes of one family.
/// let v4: Prefix<Ipv4Addr> = prefix.try_into()?;
/// assert_eq!(AnyPrefix::from(v4), prefix);
/// assert!(Prefix::<Ipv6Addr>::try_from(prefix).is_err());
/// # Ok::<(), flowtable::PrefixError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AnyPrefix {
    /// A prefix of IPv4.
    V4(Prefix<Ipv4Addr>),
    /// A prefix of IPv6.
    V6(Prefix<Ipv6Addr>),
}

impl AnyPrefix {
    /// Creates the prefix of the first `len` bits of `address`; the other bits are cleared.
    ///
    /// # Errors
    ///
    /// If `len` exceeds the width of the address.
    pub fn new(address: IpAddr, len: u8) -> Result<Self, PrefixError> {
        match address {
            IpAddr::V4(address) => Prefix::new(address, len.into()).map(Self::V4),
            IpAddr::V6(address) => Prefix::new(address, len.into()).map(Self::V6),
        }
    }

    /// Creates the prefix of full length, which contains one address.
    #[must_use]
    pub fn host(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::V4(Prefix::host(address)),
            IpAddr::V6(address) => Self::V6(Prefix::host(address)),
        }
    }

    /// Parses a prefix leniently, like [`Prefix::parse_lenient`].
    ///
    /// # Errors
    ///
    /// As [`Prefix::parse_lenient`].
    pub fn parse_lenient(text: &str) -> Result<Self, PrefixError> {
        if text.contains(':') {
            Prefix::parse_lenient(text).map(Self::V6)
        } else {
            Prefix::parse_lenient(text).map(Self::V4)
        }
    }

    /// Returns the first address of the prefix.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        match self {
            Self::V4(prefix) => prefix.address().into(),
            Self::V6(prefix) => prefix.address().into(),
        }
    }

    /// Returns the last address: in IPv4 the broadcast address.
    #[doc(alias("broadcast"))]
    #[must_use]
    pub fn last_address(&self) -> IpAddr {
        match self {
            Self::V4(prefix) => prefix.last_address().into(),
            Self::V6(prefix) => prefix.last_address().into(),
        }
    }

    /// Returns the netmask: an address whose first [`len`](Self::len) bits are set.
    #[must_use]
    pub fn netmask(&self) -> IpAddr {
        match self {
            Self::V4(prefix) => prefix.netmask().into(),
            Self::V6(prefix) => prefix.netmask().into(),
        }
    }

    /// Returns the length in bits.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a prefix of length 0 is not an empty set")]
    pub fn len(&self) -> u8 {
        let len = match self {
            Self::V4(prefix) => prefix.len(),
            Self::V6(prefix) => prefix.len(),
        };
        // At most 128.
        len as u8
    }

    /// Whether this is a prefix of IPv4.
    #[must_use]
    pub const fn is_ipv4(&self) -> bool {
        matches!(self, Self::V4(_))
    }

    /// Whether the prefix contains `address`. One of another family does not.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self, address) {
            (Self::V4(prefix), IpAddr::V4(address)) => prefix.contains(&address),
            (Self::V6(prefix), IpAddr::V6(address)) => prefix.contains(&address),
            _ => false,
        }
    }

    /// Whether the prefix contains all addresses of `other`. A prefix covers itself.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::V4(prefix), Self::V4(other)) => prefix.covers(other),
            (Self::V6(prefix), Self::V6(other)) => prefix.covers(other),
            _ => false,
        }
    }
}

/// Like [`AnyPrefix::new`], but an error if a host bit is set.
impl TryFrom<(IpAddr, u8)> for AnyPrefix {
    type Error = PrefixError;

    fn try_from((address, len): (IpAddr, u8)) -> Result<Self, PrefixError> {
        match address {
            IpAddr::V4(address) => Prefix::try_from((address, len.into())).map(Self::V4),
            IpAddr::V6(address) => Prefix::try_from((address, len.into())).map(Self::V6),
        }
    }
}

impl From<Prefix<Ipv4Addr>> for AnyPrefix {
    fn from(prefix: Prefix<Ipv4Addr>) -> Self {
        Self::V4(prefix)
    }
}

impl From<Prefix<Ipv6Addr>> for AnyPrefix {
    fn from(prefix: Prefix<Ipv6Addr>) -> Self {
        Self::V6(prefix)
    }
}

/// An error for a prefix of IPv6.
impl TryFrom<AnyPrefix> for Prefix<Ipv4Addr> {
    type Error = PrefixError;

    fn try_from(prefix: AnyPrefix) -> Result<Self, PrefixError> {
        match prefix {
            AnyPrefix::V4(prefix) => Ok(prefix),
            AnyPrefix::V6(_) => Err(PrefixError::Family),
        }
    }
}

/// An error for a prefix of IPv4.
impl TryFrom<AnyPrefix> for Prefix<Ipv6Addr> {
    type Error = PrefixError;

    fn try_from(prefix: AnyPrefix) -> Result<Self, PrefixError> {
        match prefix {
            AnyPrefix::V4(_) => Err(PrefixError::Family),
            AnyPrefix::V6(prefix) => Ok(prefix),
        }
    }
}

/// Parses `10.0.0.0/8` or `2001:db8::/32`, strictly, as [`Prefix`] does.
impl FromStr for AnyPrefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        if text.contains(':') { text.parse().map(Self::V6) } else { text.parse().map(Self::V4) }
    }
}

impl fmt::Display for AnyPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(prefix) => prefix.fmt(f),
            Self::V6(prefix) => prefix.fmt(f),
        }
    }
}
