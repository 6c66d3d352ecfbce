//! Flow keys: four-tuples, five-tuples, their directions, and TCP flags.
//!
//! ```text
//!                      src       dst     sport dport protocol
//!     FourTuple<A>    │ A::BITS │ A::BITS │ 16  │ 16  │           a pair of sockets
//!     FiveTuple<A>    │ A::BITS │ A::BITS │ 16  │ 16  │ 8 │       13 bytes for IPv4, 37 for IPv6
//!     FlowKey       │v│ an IPv4 FiveTuple and zeros, or IPv6  │   v: the version, one bit
//! ```
//!
//! A tuple identifies one direction of a conversation. [`reversed`](FiveTuple::reversed) returns
//! the tuple of the other direction; [`normalized`](FiveTuple::normalized) returns one tuple for
//! both directions together with the direction, so that both share an entry.
//!
//! The trait of such keys is [`FlowName`]: the tuples implement it, and so does a pair of a zone
//! and a tuple. Integers and arrays of bytes, such as connection IDs, implement it as keys of one
//! direction.
//!
//! Messages of ICMP have no ports. [`FlowKey::icmp`] puts their identifier, type and code there, so
//! that a query and its answer are the two directions of one flow, and errors are apart.
//!
//! The tuples are [`BitString`]s in the order of their fields, which is also their `Ord`.
//!
//! # Hashing
//!
//! Keyed hashers have a cost for each call, so keys are hashed in whole words, not field by field:
//! a `write_u128` for every 128 bits, and for the rest a `write_u64` if that is enough. Bits are
//! left-aligned in the words, and zero beyond the end:
//!
//! ```text
//!     IPv4    write_u128 │ src   dst   sport dport │ p · · v │
//!     IPv6    write_u128 │ src                               │
//!             write_u128 │ dst                               │
//!             write_u64  │ sport dport p · · v │
//! ```
//!
//! *p* is the protocol of a [`FiveTuple`] and a [`FlowKey`], *v* the version, 4 or 6, of a
//! `FlowKey`; they are 0 in other keys. Written with the most significant byte first these are 16
//! and 40 bytes, which begin with the input of the hash of a network card: see
//! [`Rss`](crate::hash::Rss). A [`Prefix`](crate::Prefix) writes its address in the same way, and
//! its length in the last two bytes of the last word; if the address fills that, as of IPv6, in a
//! `write_u16`.

mod icmp;
mod octets;

use core::fmt;
use core::hash::{Hash, Hasher};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::key::bits::{BitString, hash_words, ordered};

pub use crate::key::name::{Direction, FlowName};

impl<A: BitString> FlowName for FourTuple<A> {
    #[inline]
    fn normalized(&self) -> (Self, Direction) {
        let (sockets, order) = ordered((&self.src, self.sport), (&self.dst, self.dport));
        let [(src, sport), (dst, dport)] = sockets;
        (Self { src, dst, sport, dport }, Direction::of(order))
    }

    #[inline]
    fn reversed(&self) -> Self {
        FourTuple::reversed(*self)
    }

    fn with_any_port(&self) -> Self {
        Self { sport: 0, ..*self }
    }

    /// The destination stands for the source.
    fn with_any_source(&self) -> Self {
        Self { src: self.dst, sport: 0, ..*self }
    }
}

impl<A: BitString> FlowName for FiveTuple<A> {
    #[inline]
    fn normalized(&self) -> (Self, Direction) {
        if let Some(octets) = A::OCTETS {
            let (tuple, order) = octets.ordered(self);
            return (tuple, Direction::of(order));
        }
        let (sockets, order) = ordered((&self.src, self.sport), (&self.dst, self.dport));
        let [(src, sport), (dst, dport)] = sockets;
        (Self { src, dst, sport, dport, ..*self }, Direction::of(order))
    }

    #[inline]
    fn reversed(&self) -> Self {
        FiveTuple::reversed(*self)
    }

    #[inline]
    fn is_same(&self, key: &Self) -> bool {
        match A::OCTETS {
            Some(octets) => octets.are_equal(self, key),
            None => self == key,
        }
    }

    fn with_any_port(&self) -> Self {
        Self { sport: 0, ..*self }
    }

    /// The destination stands for the source.
    fn with_any_source(&self) -> Self {
        Self { src: self.dst, sport: 0, ..*self }
    }
}

impl FlowName for FlowKey {
    #[inline]
    fn normalized(&self) -> (Self, Direction) {
        match self {
            Self::V4(tuple) => {
                let (key, direction) = FlowName::normalized(tuple);
                (Self::V4(key), direction)
            }
            Self::V6(tuple) => {
                let (key, direction) = FlowName::normalized(tuple);
                (Self::V6(key), direction)
            }
        }
    }

    #[inline]
    fn reversed(&self) -> Self {
        FlowKey::reversed(*self)
    }

    fn with_any_port(&self) -> Self {
        match self {
            Self::V4(tuple) => Self::V4(tuple.with_any_port()),
            Self::V6(tuple) => Self::V6(tuple.with_any_port()),
        }
    }

    fn with_any_source(&self) -> Self {
        match self {
            Self::V4(tuple) => Self::V4(tuple.with_any_source()),
            Self::V6(tuple) => Self::V6(tuple.with_any_source()),
        }
    }
}

/// A pair of sockets, which identifies a TCP connection.
///
/// # Example
///
/// ```
/// use flowtable::FourTuple;
/// use std::net::Ipv4Addr;
///
/// let there = FourTuple {
///     src: Ipv4Addr::new(10, 0, 0, 1),
///     dst: Ipv4Addr::new(10, 0, 0, 2),
///     sport: 40_000,
///     dport: 443,
/// };
/// assert_eq!(there.reversed().reversed(), there);
/// assert_eq!(there.reversed().sport, 443);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FourTuple<A> {
    /// Source address.
    pub src: A,
    /// Destination address.
    pub dst: A,
    /// Source port.
    pub sport: u16,
    /// Destination port.
    pub dport: u16,
}

impl<A: Copy + Ord> FourTuple<A> {
    /// Returns the tuple of the other direction.
    #[inline]
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { src: self.dst, dst: self.src, sport: self.dport, dport: self.sport }
    }

    /// Returns the tuple that both directions share, with the smaller socket as source, and the
    /// direction of this one.
    #[inline]
    #[must_use]
    pub fn normalized(self) -> (Self, Direction) {
        if (self.src, self.sport) <= (self.dst, self.dport) {
            (self, Direction::Forward)
        } else {
            (self.reversed(), Direction::Reverse)
        }
    }
}

impl<A: BitString> FourTuple<A> {
    fn ports(&self) -> u32 {
        u32::from(self.sport) << 16 | u32::from(self.dport)
    }
}

impl<A: BitString> BitString for FourTuple<A> {
    const BITS: u32 = 2 * A::BITS + 32;

    #[inline]
    fn window(&self, pos: u32) -> u64 {
        (self.src, (self.dst, self.ports())).window(pos)
    }
}

/// Hashes all bits, in as few words as possible: see [the module](self#hashing).
impl<A: BitString> Hash for FourTuple<A> {
    #[inline]
    fn hash<S: Hasher>(&self, state: &mut S) {
        hash_words(self, None, state);
    }
}

/// A pair of sockets and their protocol, which identify one direction of a flow.
///
/// Ports are 0 if the protocol has no ports; ICMP messages have the ports of [`FlowKey::icmp`].
///
/// # Example
///
/// ```
/// use flowtable::key::bits::BitString;
/// use flowtable::{Direction, FiveTuple, FourTuple};
/// use std::net::Ipv4Addr;
///
/// let (src, dst) = (Ipv4Addr::new(192, 0, 2, 7), Ipv4Addr::new(192, 0, 2, 1));
/// let query = FiveTuple { src, dst, sport: 5353, dport: 53, protocol: 17 };
/// assert_eq!(query.sockets(), FourTuple { src, dst, sport: 5353, dport: 53 });
/// let (key, direction) = query.normalized();
/// assert_eq!(direction, Direction::Reverse);
/// assert_eq!(query.reversed().normalized(), (key, Direction::Forward));
/// assert_eq!(FiveTuple::<Ipv4Addr>::BITS, 13 * 8);
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
// A tuple of IPv4 is accessed in words.
#[repr(C)]
pub struct FiveTuple<A> {
    /// Source address.
    pub src: A,
    /// Destination address.
    pub dst: A,
    /// Source port.
    pub sport: u16,
    /// Destination port.
    pub dport: u16,
    /// Protocol number of the IP layer: 6 is TCP, 17 is UDP.
    pub protocol: u8,
}

impl<A: Copy + Ord> FiveTuple<A> {
    /// Returns the pair of sockets, without the protocol.
    #[inline]
    #[must_use]
    pub fn sockets(self) -> FourTuple<A> {
        FourTuple { src: self.src, dst: self.dst, sport: self.sport, dport: self.dport }
    }

    /// Returns the tuple of the other direction.
    #[inline]
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { src: self.dst, dst: self.src, sport: self.dport, dport: self.sport, ..self }
    }

    /// Returns the tuple that both directions share, with the smaller socket as source, and the
    /// direction of this one.
    #[inline]
    #[must_use]
    pub fn normalized(self) -> (Self, Direction) {
        match self.sockets().normalized().1 {
            Direction::Forward => (self, Direction::Forward),
            Direction::Reverse => (self.reversed(), Direction::Reverse),
        }
    }
}

/// Both ports: on little-endian CPUs, by one load.
#[inline]
pub(crate) fn ports<A>(tuple: &FiveTuple<A>) -> u32 {
    u32::from(tuple.sport) | u32::from(tuple.dport) << 16
}

impl<A: PartialEq> PartialEq for FiveTuple<A> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        (self.src == other.src)
            & (self.dst == other.dst)
            & (ports(self) == ports(other))
            & (self.protocol == other.protocol)
    }
}

impl<A: BitString> BitString for FiveTuple<A> {
    const BITS: u32 = 2 * A::BITS + 32 + 8;

    #[inline]
    fn window(&self, pos: u32) -> u64 {
        (self.sockets(), self.protocol).window(pos)
    }
}

/// Hashes all bits, in as few words as possible: see [the module](self#hashing).
impl<A: BitString> Hash for FiveTuple<A> {
    #[inline]
    fn hash<S: Hasher>(&self, state: &mut S) {
        if A::BITS != 32 {
            return hash_words(self, None, state);
        }
        // As `hash_words`, with the ports as they are compared.
        let rest = u64::from(ports(self).rotate_left(16)) << 32 | u64::from(self.protocol) << 24;
        let addresses = match A::OCTETS {
            Some(octets) => octets.addresses(self),
            None => self.window(0),
        };
        state.write_u128(u128::from(addresses) << 64 | u128::from(rest));
    }
}

/// The five-tuple of a flow of either IP version, in one direction.
///
/// An IPv4 flow differs from a flow between the IPv4-mapped IPv6 addresses: their packets differ.
///
/// # Example
///
/// ```
/// use flowtable::FlowKey;
/// use std::net::IpAddr;
///
/// let [src, dst]: [IpAddr; 2] = ["10.0.0.1".parse()?, "10.0.0.2".parse()?];
/// let key = FlowKey::new(src, dst, 40_000, 443, 6).unwrap();
/// assert_eq!(key.to_string(), "10.0.0.1:40000 > 10.0.0.2:443 proto 6");
/// assert_eq!((key.src(), key.dst()), (src, dst));
/// assert_eq!((key.sport(), key.dport(), key.protocol()), (40_000, 443, 6));
/// // Both addresses of a packet are of one IP version.
/// assert_eq!(FlowKey::new(src, "::1".parse()?, 0, 0, 1), None);
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum FlowKey {
    /// A flow of IPv4.
    V4(FiveTuple<Ipv4Addr>),
    /// A flow of IPv6.
    V6(FiveTuple<Ipv6Addr>),
}

impl FlowKey {
    /// Creates a key, or returns `None` if the addresses are of different IP versions.
    #[inline]
    #[must_use]
    pub fn new(src: IpAddr, dst: IpAddr, sport: u16, dport: u16, protocol: u8) -> Option<Self> {
        match (src, dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                Some(Self::V4(FiveTuple { src, dst, sport, dport, protocol }))
            }
            (IpAddr::V6(src), IpAddr::V6(dst)) => {
                Some(Self::V6(FiveTuple { src, dst, sport, dport, protocol }))
            }
            _ => None,
        }
    }

    /// Returns the source address.
    #[must_use]
    pub fn src(&self) -> IpAddr {
        match self {
            Self::V4(tuple) => tuple.src.into(),
            Self::V6(tuple) => tuple.src.into(),
        }
    }

    /// Returns the destination address.
    #[must_use]
    pub fn dst(&self) -> IpAddr {
        match self {
            Self::V4(tuple) => tuple.dst.into(),
            Self::V6(tuple) => tuple.dst.into(),
        }
    }

    /// Returns the source port.
    #[must_use]
    pub fn sport(&self) -> u16 {
        match self {
            Self::V4(tuple) => tuple.sport,
            Self::V6(tuple) => tuple.sport,
        }
    }

    /// Returns the destination port.
    #[must_use]
    pub fn dport(&self) -> u16 {
        match self {
            Self::V4(tuple) => tuple.dport,
            Self::V6(tuple) => tuple.dport,
        }
    }

    /// Returns the protocol number of the IP layer.
    #[must_use]
    pub fn protocol(&self) -> u8 {
        match self {
            Self::V4(tuple) => tuple.protocol,
            Self::V6(tuple) => tuple.protocol,
        }
    }

    /// Returns the key of the other direction.
    #[inline]
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Self::V4(tuple) => Self::V4(tuple.reversed()),
            Self::V6(tuple) => Self::V6(tuple.reversed()),
        }
    }

    /// Returns the key that both directions share, and the direction of this one. Compares words.
    #[inline]
    #[must_use]
    pub fn normalized(self) -> (Self, Direction) {
        FlowName::normalized(&self)
    }
}

/// Compares words, without branches but for the version.
impl PartialEq for FlowKey {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::V4(a), Self::V4(b)) => a == b,
            (Self::V6(a), Self::V6(b)) => a == b,
            _ => false,
        }
    }
}

/// One bit for the version, then the five-tuple; a tuple of IPv4 is padded with zeros.
impl BitString for FlowKey {
    const BITS: u32 = Version::BITS + FiveTuple::<Ipv6Addr>::BITS;

    #[inline]
    fn window(&self, pos: u32) -> u64 {
        match self {
            Self::V4(tuple) => (Version(4), *tuple).window(pos),
            Self::V6(tuple) => (Version(6), *tuple).window(pos),
        }
    }
}

/// The first bit of a [`FlowKey`]: 0 for IPv4, 1 for IPv6.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Version(u8);

impl BitString for Version {
    const BITS: u32 = 1;

    #[inline]
    fn window(&self, pos: u32) -> u64 {
        u64::from(self.0 == 6 && pos == 0) << 63
    }
}

/// Hashes the words of the five-tuple, with the version in the last byte: so the words of different
/// sequences of keys are different.
impl Hash for FlowKey {
    #[inline(always)]
    fn hash<S: Hasher>(&self, state: &mut S) {
        match self {
            Self::V4(tuple) => hash_words(tuple, Some(4), state),
            Self::V6(tuple) => hash_words(tuple, Some(6), state),
        }
    }
}

impl From<FiveTuple<Ipv4Addr>> for FlowKey {
    fn from(tuple: FiveTuple<Ipv4Addr>) -> Self {
        Self::V4(tuple)
    }
}

impl From<FiveTuple<Ipv6Addr>> for FlowKey {
    fn from(tuple: FiveTuple<Ipv6Addr>) -> Self {
        Self::V6(tuple)
    }
}

/// `source:port > destination:port`, with IPv6 addresses in brackets.
impl<A: Copy + Into<IpAddr>> fmt::Display for FourTuple<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let socket = |address: A, port| SocketAddr::new(address.into(), port);
        write!(f, "{} > {}", socket(self.src, self.sport), socket(self.dst, self.dport))
    }
}

/// `source:port > destination:port proto number`, with IPv6 addresses in brackets.
impl<A: Copy + Into<IpAddr>> fmt::Display for FiveTuple<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { src, dst, sport, dport, protocol } = *self;
        write!(f, "{} proto {protocol}", FourTuple { src, dst, sport, dport })
    }
}

/// Formats the five-tuple.
impl fmt::Display for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(tuple) => tuple.fmt(f),
            Self::V6(tuple) => tuple.fmt(f),
        }
    }
}

/// The flags of a TCP segment, in the bits of the TCP header.
///
/// # Example
///
/// ```
/// use flowtable::TcpFlags;
///
/// let last = TcpFlags::FIN | TcpFlags::ACK;
/// assert!(last.contains(TcpFlags::FIN));
/// assert_eq!(last.to_string(), "...A...F");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// FIN: the sender has no more data.
    pub const FIN: Self = Self(0x01);
    /// SYN: the connection is being opened.
    pub const SYN: Self = Self(0x02);
    /// RST: the connection is refused or aborted.
    pub const RST: Self = Self(0x04);
    /// PSH: the receiver should deliver the data at once.
    pub const PSH: Self = Self(0x08);
    /// ACK: the acknowledgement number is valid.
    pub const ACK: Self = Self(0x10);
    /// URG: the urgent pointer is valid.
    pub const URG: Self = Self(0x20);
    /// ECE: congestion was encountered.
    pub const ECE: Self = Self(0x40);
    /// CWR: the congestion window was reduced.
    pub const CWR: Self = Self(0x80);

    /// Whether all flags of `other` are set.
    #[inline]
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl core::ops::BitOr for TcpFlags {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl core::ops::BitOrAssign for TcpFlags {
    #[inline]
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// Eight characters, `CEUAPRSF` from the most significant bit: the letter of a flag that is set, or
/// a dot.
impl fmt::Display for TcpFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters: [char; 8] = core::array::from_fn(|i| {
            if self.0 & (0x80 >> i) == 0 { '.' } else { char::from(b"CEUAPRSF"[i]) }
        });
        letters.iter().try_for_each(|letter| fmt::Write::write_char(f, *letter))
    }
}
