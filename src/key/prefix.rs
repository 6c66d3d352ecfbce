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
use core::hash::{Hash, Hasher};
use core::iter;
use core::str::FromStr;

use crate::key::bits::{Address, hash_words, with_bits};

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
/// assert!(all.len() == 0 && all.covers(&host));
/// assert_eq!((all.len(), inside.len(), host.len()), (0, 16, 32));
/// # Ok::<(), flowtable::PrefixError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

    /// Returns the length in bits: a `u32`, as addresses of up to 65,535 bits have prefixes.
    /// [`AnyPrefix::len`](crate::AnyPrefix::len), of IP addresses, is a `u8`.
    #[inline]
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a prefix of length 0 is not an empty set")]
    pub fn len(&self) -> u32 {
        u32::from(self.len)
    }

    /// Returns the netmask: an address whose first [`len`](Self::len) bits are set.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::Prefix;
    /// use std::net::Ipv4Addr;
    ///
    /// let prefix: Prefix<Ipv4Addr> = "10.1.0.0/16".parse()?;
    /// assert_eq!(prefix.netmask(), Ipv4Addr::new(255, 255, 0, 0));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[must_use]
    pub fn netmask(&self) -> A {
        A::from_windows(|_| u64::MAX).truncated(self.len())
    }

    /// Returns the last address: in IPv4 the broadcast address.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::Prefix;
    ///
    /// let prefix = Prefix::new(0x40_u8, 2)?;
    /// assert_eq!((prefix.address(), prefix.last_address()), (0x40, 0x7F));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[doc(alias("broadcast"))]
    #[must_use]
    pub fn last_address(&self) -> A {
        let mask = self.netmask();
        A::from_windows(|pos| self.address.window(pos) | !mask.window(pos))
    }

    /// Returns the prefix that is one bit shorter; `None` of the one of length 0.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::Prefix;
    ///
    /// let supernet = Prefix::new(0x40_u8, 2)?.supernet();
    /// assert_eq!(supernet, Some(Prefix::new(0, 1)?));
    /// assert_eq!(Prefix::<u8>::default_route().supernet(), None);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[must_use]
    pub fn supernet(&self) -> Option<Self> {
        Some(Self::of(&self.address, self.len().checked_sub(1)?))
    }

    /// Returns the two prefixes that are one bit longer; `None` of a prefix of full length.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::Prefix;
    ///
    /// let [low, high] = Prefix::new(0x40_u8, 2)?.halves().unwrap();
    /// assert_eq!((low, high), (Prefix::new(0x40, 3)?, Prefix::new(0x60, 3)?));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[must_use]
    pub fn halves(&self) -> Option<[Self; 2]> {
        let len = self.len() + 1;
        if len > Self::MAX_LEN {
            return None;
        }
        let high = with_bits(&self.address, self.len(), 1 << 63);
        Some([Self::of(&self.address, len), Self::of(&high, len)])
    }

    /// Returns an iterator over all prefixes of `len` bits that this one covers, in order; none if
    /// `len` is less than its length.
    ///
    /// # Errors
    ///
    /// If `len` exceeds the width of the address, or 65,535.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::Prefix;
    ///
    /// let subnets = Prefix::new(0x40_u8, 2)?.subnets(4)?;
    /// assert!(subnets.map(|prefix| prefix.address()).eq([0x40, 0x50, 0x60, 0x70]));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn subnets(&self, len: u32) -> Result<impl Iterator<Item = Self> + use<A>, PrefixError> {
        if len > Self::MAX_LEN {
            return Err(PrefixError::Length { len, max: Self::MAX_LEN });
        }
        let (top, first) = (*self, Self::of(&self.address, len));
        let first = Some(first).filter(|_| len >= top.len());
        Ok(iter::successors(first, move |prefix| prefix.next_below(&top)))
    }

    /// Returns the next prefix of the same length, if `top` covers it.
    fn next_below(&self, top: &Self) -> Option<Self> {
        // Adds one to the bits after the bits of `top`: the last zero becomes a one.
        let mut len = self.len();
        while len > top.len() && self.address.window(len - 1) >> 63 != 0 {
            len -= 1;
        }
        let bit = len.checked_sub(1).filter(|&bit| bit >= top.len())?;
        Some(Self::of(&with_bits(&self.address.truncated(bit), bit, 1 << 63), self.len()))
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

/// Hashes the address and the length in as few words as possible: see
/// [the module of flow keys](crate::key::flow#hashing).
impl<A: Address> Hash for Prefix<A> {
    #[inline]
    fn hash<S: Hasher>(&self, state: &mut S) {
        hash_words(&self.address, Some(self.len), state);
    }
}

impl<A: Address + FromStr> Prefix<A> {
    /// Parses a prefix leniently: host bits are cleared, and an address without a length is a
    /// prefix of full length. [`FromStr`] is the strict form.
    ///
    /// # Errors
    ///
    /// If the text is not an address, or the length is too large, or not a decimal number without
    /// sign and leading zeros.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::Prefix;
    /// use std::net::Ipv4Addr;
    ///
    /// let lenient = |text| Prefix::<Ipv4Addr>::parse_lenient(text);
    /// assert_eq!(lenient("10.1.2.3/8")?, "10.0.0.0/8".parse()?);
    /// assert_eq!(lenient("10.1.2.3")?, "10.1.2.3/32".parse()?);
    /// assert!("10.1.2.3/8".parse::<Prefix<Ipv4Addr>>().is_err());
    /// assert!(lenient("10.1.2.3/08").is_err());
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn parse_lenient(text: &str) -> Result<Self, PrefixError> {
        match text.split_once('/') {
            Some((address, len)) => {
                let (address, len) = parse_parts(address, len)?;
                Self::new(address, len)
            }
            None => Self::new(text.parse().map_err(|_| PrefixError::Syntax)?, A::BITS),
        }
    }
}

/// Parses an address and a length: decimal digits without leading zeros, as in the parsers of
/// addresses of `core`.
fn parse_parts<A: FromStr>(address: &str, len: &str) -> Result<(A, u32), PrefixError> {
    let is_decimal = len == "0" || !len.starts_with(['0', '+']);
    let address = address.parse().map_err(|_| PrefixError::Syntax)?;
    let len = len.parse().ok().filter(|_| is_decimal).ok_or(PrefixError::Syntax)?;
    Ok((address, len))
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

/// Parses `10.0.0.0/8`. Host bits that are set are an error, and so is a length with a sign or
/// leading zeros: `/08`.
impl<A: Address + FromStr> FromStr for Prefix<A> {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let (address, len) = text.split_once('/').ok_or(PrefixError::Syntax)?;
        Self::try_from(parse_parts(address, len)?)
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
    /// The prefix is of the other address family.
    Family,
}

impl fmt::Display for PrefixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { len, max } => write!(f, "prefix of {len} bits: at most {max}"),
            Self::HostBits { len } => write!(f, "an address bit after the first {len} is set"),
            Self::Syntax => f.write_str("not an address, a slash and a length"),
            Self::Family => f.write_str("a prefix of the other address family"),
        }
    }
}

impl Error for PrefixError {}
