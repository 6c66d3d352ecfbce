//! Address prefixes: the set of addresses that begin with given bits.
//!
//! ```text
//!     10.0.0.0/8      00001010 ········ ········ ········
//!                     └─ 8 ──┘ └─── host bits: zero ────┘
//! ```
//!
//! A [`Prefix`] is canonical: its host bits are zero, so that equal prefixes are equal values. They
//! are ordered by address, and with equal addresses by length: each prefix directly precedes all
//! prefixes that it covers.

use alloc::format;
use core::error::Error;
use core::fmt;
use core::str::FromStr;

use crate::key::bits::Address;

/// An address prefix: an address with cleared host bits, and a length.
///
/// # Example
///
/// ```
/// use flowtable::Prefix;
/// use std::net::Ipv4Addr;
///
/// let ten: Prefix<Ipv4Addr> = "10.0.0.0/8".parse()?;
/// let inside = Prefix::new(Ipv4Addr::new(10, 1, 2, 3), 16)?;
/// assert_eq!(inside.to_string(), "10.1.0.0/16"); // host bits are cleared
/// assert!(ten.covers(&inside) && ten.contains(&inside.address()));
/// // The shortest and the longest prefix.
/// let (all, host) = (Prefix::default_route(), Prefix::host(Ipv4Addr::LOCALHOST));
/// assert!(all.is_default_route() && all.covers(&host));
/// assert_eq!((all.len(), inside.len(), host.len()), (0, 16, 32));
/// # Ok::<(), flowtable::PrefixError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix<A> {
    /// The bits from `len` on are zero.
    address: A,
    /// At most `A::BITS`.
    len: u16,
}

impl<A: Address> Prefix<A> {
    /// The maximum length of a prefix, which may be less than the width of an address.
    const MAX_LEN: u32 = if A::BITS < u16::MAX as u32 { A::BITS } else { u16::MAX as u32 };

    /// Creates the prefix of the first `len` bits of `address`; the other bits are cleared.
    ///
    /// # Errors
    ///
    /// If `len` exceeds the width of the address, or 65,535.
    #[inline]
    pub fn new(address: A, len: u32) -> Result<Self, PrefixError> {
        if len > Self::MAX_LEN {
            return Err(PrefixError::Length { len, max: Self::MAX_LEN });
        }
        Ok(Self::of(&address, len))
    }

    /// Creates the prefix of the first `len` bits of `address`; `len` is at most its width.
    #[inline]
    pub(crate) fn of(address: &A, len: u32) -> Self {
        debug_assert!(len <= Self::MAX_LEN);
        Self { address: address.truncated(len), len: len as u16 }
    }

    /// Creates the prefix of length 0, which contains all addresses.
    #[must_use]
    pub fn default_route() -> Self {
        Self { address: A::from_windows(|_| 0), len: 0 }
    }

    /// Creates the prefix of full length, which contains one address.
    ///
    /// # Panics
    ///
    /// If addresses are wider than 65,535 bits.
    #[must_use]
    pub fn host(address: A) -> Self {
        assert!(A::BITS <= Self::MAX_LEN, "a prefix has at most 65,535 bits");
        Self { address, len: A::BITS as u16 }
    }

    /// Returns the first address of the prefix.
    #[inline]
    #[must_use]
    pub fn address(&self) -> A {
        self.address
    }

    /// Returns the length in bits.
    #[inline]
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a prefix of length 0 is not an empty set")]
    pub fn len(&self) -> u32 {
        u32::from(self.len)
    }

    /// Whether this is the prefix of length 0, which contains all addresses.
    #[must_use]
    pub fn is_default_route(&self) -> bool {
        self.len == 0
    }

    /// Whether the prefix contains `address`.
    #[must_use]
    pub fn contains(&self, address: &A) -> bool {
        self.address.first_difference(address, 0).is_none_or(|bit| bit >= self.len())
    }

    /// Whether the prefix contains all addresses of `other`. A prefix covers itself.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.len <= other.len && self.contains(&other.address)
    }
}

/// Like [`Prefix::new`], but an error if a host bit is set.
impl<A: Address> TryFrom<(A, u32)> for Prefix<A> {
    type Error = PrefixError;

    fn try_from((address, len): (A, u32)) -> Result<Self, PrefixError> {
        let prefix = Self::new(address, len)?;
        if prefix.address != address {
            return Err(PrefixError::HostBits { len });
        }
        Ok(prefix)
    }
}

/// Parses `10.0.0.0/8`. Host bits that are set are an error.
impl<A: Address + FromStr> FromStr for Prefix<A> {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let (address, len) = text.split_once('/').ok_or(PrefixError::Syntax)?;
        let digits = !len.is_empty() && len.bytes().all(|byte| byte.is_ascii_digit());
        let address = address.parse().map_err(|_| PrefixError::Syntax)?;
        let len = len.parse().ok().filter(|_| digits).ok_or(PrefixError::Syntax)?;
        Self::try_from((address, len))
    }
}

impl<A: fmt::Display> fmt::Display for Prefix<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match f.width() {
            None => write!(f, "{}/{}", self.address, self.len),
            Some(_) => f.pad(&format!("{}/{}", self.address, self.len)),
        }
    }
}

/// The error for an invalid prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PrefixError {
    /// The length exceeds the maximum.
    Length {
        /// The requested length.
        len: u32,
        /// The maximum length.
        max: u32,
    },
    /// A host bit of the address is set.
    HostBits {
        /// The requested length.
        len: u32,
    },
    /// The text is not an address, a slash and a length.
    Syntax,
}

impl fmt::Display for PrefixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { len, max } => write!(f, "prefix of {len} bits: at most {max}"),
            Self::HostBits { len } => write!(f, "an address bit after the first {len} is set"),
            Self::Syntax => f.write_str("not an address, a slash and a length"),
        }
    }
}

impl Error for PrefixError {}

#[cfg(feature = "ipnet")]
mod ipnet {
    //! Conversions from and to the types of the crate `ipnet`, whose host bits may be set.

    use core::net::{Ipv4Addr, Ipv6Addr};

    use ipnet::{Ipv4Net, Ipv6Net};

    use super::Prefix;

    /// Clears the host bits.
    impl From<Ipv4Net> for Prefix<Ipv4Addr> {
        fn from(net: Ipv4Net) -> Self {
            Self::of(&net.addr(), u32::from(net.prefix_len()))
        }
    }

    impl From<Prefix<Ipv4Addr>> for Ipv4Net {
        fn from(prefix: Prefix<Ipv4Addr>) -> Self {
            Self::new_assert(prefix.address, prefix.len as u8)
        }
    }

    /// Clears the host bits.
    impl From<Ipv6Net> for Prefix<Ipv6Addr> {
        fn from(net: Ipv6Net) -> Self {
            Self::of(&net.addr(), u32::from(net.prefix_len()))
        }
    }

    impl From<Prefix<Ipv6Addr>> for Ipv6Net {
        fn from(prefix: Prefix<Ipv6Addr>) -> Self {
            Self::new_assert(prefix.address, prefix.len as u8)
        }
    }
}
