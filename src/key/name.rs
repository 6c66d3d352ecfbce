//! The trait of flow keys, and the directions of a flow.

use core::fmt;
use core::hash::Hash;

/// The direction of a packet, relative to the [`normalized`](super::flow::FiveTuple::normalized)
/// key of its flow or, in a structure that records it, to the initiator of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Direction {
    /// From the `src` of the key to its `dst`.
    Forward,
    /// From the `dst` of the key to its `src`.
    Reverse,
}

/// `forward` or `reverse`.
impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Forward => "forward",
            Self::Reverse => "reverse",
        })
    }
}

impl Direction {
    #[inline]
    pub(crate) const fn of(is_reverse: bool) -> Self {
        if is_reverse { Self::Reverse } else { Self::Forward }
    }

    /// Returns this direction of a key in directions relative to an initiator, given the direction
    /// of the key that is the initiator's.
    #[inline]
    pub(crate) const fn relative_to(self, initiator: Self) -> Self {
        Self::of((self as u8 ^ initiator as u8) & 1 != 0)
    }

    /// Returns the other direction.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Direction, FlowKey};
    ///
    /// let query = FlowKey::new("192.0.2.7".parse()?, "192.0.2.1".parse()?, 5353, 53, 17).unwrap();
    /// let (_, direction) = query.normalized();
    /// assert_eq!(query.reversed().normalized().1, direction.opposite());
    /// # Ok::<(), std::net::AddrParseError>(())
    /// ```
    #[inline]
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::Forward => Self::Reverse,
            Self::Reverse => Self::Forward,
        }
    }
}

/// A key that identifies the flow of a packet, in one or both directions.
///
/// The provided methods are for keys of one direction only, such as a connection ID: all packets
/// with the key are [`Forward`](Direction::Forward). Keys of both directions override them.
///
/// # Contract
///
/// `key.reversed().normalized()` equals `key.normalized()` but for the direction, which is
/// opposite, and `key.reversed().reversed()` equals `key`. If the direction is forward, the
/// normalised key equals `key`, otherwise `key.reversed()`: so a key can be told from both. If an
/// implementation violates this, or the contract of `Eq` and `Hash`, a packet may find no flow, or
/// the flow of a different key; nothing worse.
///
/// # Example
///
/// ```
/// use flowtable::{Direction, FourTuple};
/// use flowtable::key::flow::FlowName;
///
/// let tuple = FourTuple { src: 0x0a00_0002_u32, dst: 0x0a00_0001, sport: 40_000, dport: 443 };
/// assert_eq!(FlowName::normalized(&tuple), (tuple.reversed(), Direction::Reverse));
/// // Equal addresses in another zone belong to another flow.
/// let zoned = (7_u16, tuple);
/// assert_eq!(zoned.normalized(), ((7, tuple.reversed()), Direction::Reverse));
/// let connection_id = *b"\x01\x02\x03\x04";
/// assert_eq!(connection_id.normalized(), (connection_id, Direction::Forward));
/// // One key for all ports of a host, and one for all hosts.
/// let other = FourTuple { sport: 50_000, ..tuple };
/// assert_eq!(tuple.with_any_port(), other.with_any_port());
/// let other = FourTuple { src: 0x0a00_0003_u32, ..other };
/// assert_eq!(tuple.with_any_source(), other.with_any_source());
/// ```
pub trait FlowName: Clone + Eq + Hash {
    /// Returns the key that both directions share, and the direction of this one.
    #[inline]
    #[must_use]
    fn normalized(&self) -> (Self, Direction) {
        (self.clone(), Direction::Forward)
    }

    /// Returns the key of the other direction.
    #[inline]
    #[must_use]
    fn reversed(&self) -> Self {
        self.clone()
    }

    /// Whether this key, of a record, is equal to the key of a packet: in as few loads as possible.
    #[doc(hidden)]
    #[inline]
    fn is_same(&self, key: &Self) -> bool {
        self == key
    }

    /// Returns the key that packets from all source ports share, for
    /// [expected flows](crate::flow_cache::Source): any key that differs only for others. By
    /// default each key is its own: a name without ports.
    #[must_use]
    fn with_any_port(&self) -> Self {
        self.clone()
    }

    /// Returns the key that packets from all source addresses and ports share, for
    /// [expected flows](crate::flow_cache::Source). By default each key is its own.
    #[must_use]
    fn with_any_source(&self) -> Self {
        self.clone()
    }
}

impl FlowName for u8 {}
impl FlowName for u16 {}
impl FlowName for u32 {}
impl FlowName for u64 {}
impl FlowName for u128 {}
impl<const N: usize> FlowName for [u8; N] {}

/// A zone, such as a VLAN, a VRF or a network interface, and a key within the zone.
impl<Z: Clone + Eq + Hash, N: FlowName> FlowName for (Z, N) {
    #[inline]
    fn normalized(&self) -> (Self, Direction) {
        let (key, direction) = self.1.normalized();
        ((self.0.clone(), key), direction)
    }

    #[inline]
    fn reversed(&self) -> Self {
        (self.0.clone(), self.1.reversed())
    }

    #[inline]
    fn is_same(&self, key: &Self) -> bool {
        self.0 == key.0 && self.1.is_same(&key.1)
    }

    fn with_any_port(&self) -> Self {
        (self.0.clone(), self.1.with_any_port())
    }

    fn with_any_source(&self) -> Self {
        (self.0.clone(), self.1.with_any_source())
    }
}
