//! Local addresses of bound sockets: which packets they match, and which of them conflict.
//!
//! The name of a socket has its local address, and the result of a lookup has the part of the
//! address that matched.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::key::flow::FlowKey;

/// The local address of a bound socket: an address or any, a port or all, and a protocol.
///
/// # Example
///
/// ```
/// use flowtable::sockets::Local;
///
/// let tcp = 6;
/// let here = Local::new("192.0.2.1:80".parse()?, tcp);
/// let dual_stack = Local::new("[::]:80".parse()?, tcp);
/// assert!(here.takes("192.0.2.1".parse()?) && !here.takes("192.0.2.2".parse()?));
/// assert!(dual_stack.takes("192.0.2.2".parse()?) && dual_stack.takes("2001:db8::1".parse()?));
/// assert!(!dual_stack.v6_only().takes("192.0.2.2".parse()?) && dual_stack.v6_only().is_v6_only());
///
/// // A transparent proxy gets the packets that match no other socket.
/// let proxy = Local::all_ports("0.0.0.0".parse()?, tcp);
/// assert!(proxy.address().is_unspecified());
/// assert_eq!((proxy.port(), proxy.protocol()), (None, tcp));
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Local {
    pub(super) scope: Scope,
    /// The port, or `None` for all ports.
    pub(super) port: Option<u16>,
    pub(super) protocol: u8,
}

impl Local {
    /// Creates a local address with a port.
    ///
    /// 0.0.0.0 is any IPv4 address, `[::]` any address of either version. An IPv4-mapped IPv6
    /// address is that IPv4 address.
    #[must_use]
    pub fn new(address: SocketAddr, protocol: u8) -> Self {
        Self { scope: Scope::new(address.ip()), port: Some(address.port()), protocol }
    }

    /// Creates a local address with all ports.
    ///
    /// It serves a transparent proxy, whose socket gets the packets that match no other socket, and
    /// protocols without ports.
    #[must_use]
    pub fn all_ports(address: IpAddr, protocol: u8) -> Self {
        Self { scope: Scope::new(address), port: None, protocol }
    }

    /// Excludes IPv4, if the address is any of either version.
    #[must_use]
    pub fn v6_only(self) -> Self {
        let scope = if self.scope == Scope::Any { Scope::AnyV6 } else { self.scope };
        Self { scope, ..self }
    }

    /// Returns the port, or `None` for all ports.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// Returns the protocol number of the IP layer: 6 is TCP, 17 is UDP.
    #[must_use]
    pub fn protocol(&self) -> u8 {
        self.protocol
    }

    /// Returns whether the socket matches packets to `address`, if port and protocol match.
    #[must_use]
    pub fn takes(&self, address: IpAddr) -> bool {
        self.scope.contains(address.to_canonical())
    }

    /// Returns the address, which is unspecified if it is any.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        match self.scope {
            Scope::Address(address) => address,
            Scope::AnyV4 => Ipv4Addr::UNSPECIFIED.into(),
            Scope::AnyV6 | Scope::Any => Ipv6Addr::UNSPECIFIED.into(),
        }
    }

    /// Returns whether the address is any of IPv6, and none of IPv4.
    #[must_use]
    pub fn is_v6_only(&self) -> bool {
        self.scope == Scope::AnyV6
    }

    pub(super) fn at_port(self, port: u16) -> Self {
        Self { port: Some(port), ..self }
    }

    pub(super) const fn scope(&self) -> Scope {
        self.scope
    }

    pub(super) const fn is_single(&self) -> bool {
        matches!(self.scope, Scope::Address(_))
    }

    /// The scopes at which the index of ports has the connections at this address.
    pub(super) fn scopes_of_connections(&self) -> impl Iterator<Item = Scope> {
        let scopes = match self.scope {
            Scope::Any => [Some(Scope::AnyV4), Some(Scope::AnyV6)],
            scope => [Some(scope), None],
        };
        scopes.into_iter().flatten()
    }

    pub(super) fn in_scope(self, scope: Scope) -> Self {
        Self { scope, ..self }
    }

    pub(super) fn specificity(&self) -> Specificity {
        match (self.port, self.scope) {
            (Some(_), Scope::Address(_)) => Specificity::AddressAndPort,
            (Some(_), _) => Specificity::Port,
            (None, Scope::Address(_)) => Specificity::Address,
            (None, _) => Specificity::Everything,
        }
    }

    /// Returns whether two sockets must not be bound to these addresses at the same time.
    pub(super) fn is_in_conflict(&self, reuse: Reuse, other: &Self, others: Reuse) -> bool {
        if (self.port, self.protocol) != (other.port, other.protocol) {
            return false;
        }
        if self.scope == other.scope {
            return !reuse.shares_address(others, self.protocol);
        }
        self.scope.overlaps(other.scope) && (reuse == Reuse::No || others == Reuse::No)
    }
}

/// How much of a packet a socket specifies, in ascending order. The greatest wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Specificity {
    /// Any address and all ports.
    Everything,
    /// The address, and all ports.
    Address,
    /// Any address, and the port.
    Port,
    /// Address and port.
    AddressAndPort,
    /// Both ends: a connection.
    Connection,
}

/// Hashes three packed words, not field by field.
impl Hash for Local {
    fn hash<H: Hasher>(&self, state: &mut H) {
        LocalWords::new(self).hash(state);
    }
}

/// Writes `address:port proto number`, with `*` for all ports.
impl fmt::Display for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.scope {
            Scope::Address(IpAddr::V6(address)) => write!(f, "[{address}]")?,
            Scope::Address(IpAddr::V4(address)) => write!(f, "{address}")?,
            Scope::AnyV4 => write!(f, "{}", Ipv4Addr::UNSPECIFIED)?,
            Scope::AnyV6 => write!(f, "[{}] v6only", Ipv6Addr::UNSPECIFIED)?,
            Scope::Any => write!(f, "[{}]", Ipv6Addr::UNSPECIFIED)?,
        }
        match self.port {
            Some(port) => write!(f, ":{port} proto {}", self.protocol),
            None => write!(f, ":* proto {}", self.protocol),
        }
    }
}

/// A set of local addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// One address: never unspecified, and never IPv4-mapped.
    Address(IpAddr),
    /// All IPv4 addresses.
    AnyV4,
    /// All IPv6 addresses.
    AnyV6,
    /// All addresses.
    Any,
}

impl Scope {
    fn new(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) if address.is_unspecified() => Self::AnyV4,
            IpAddr::V6(address) if address.is_unspecified() => Self::Any,
            address => Self::Address(address),
        }
    }

    /// All addresses of the version of `address`.
    pub(super) fn family(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::AnyV4 } else { Self::AnyV6 }
    }

    fn contains(self, address: IpAddr) -> bool {
        self.overlaps(Self::Address(address))
    }

    /// Returns whether the sets share an address.
    fn overlaps(self, other: Self) -> bool {
        match (self, other) {
            (Self::Address(this), Self::Address(that)) => this == that,
            (Self::Any, _) | (_, Self::Any) => true,
            _ => self.is_v4() == other.is_v4(),
        }
    }

    /// Returns whether the addresses are of IPv4. `self` is not [`Any`](Self::Any).
    pub(super) fn is_v4(self) -> bool {
        matches!(self, Self::AnyV4 | Self::Address(IpAddr::V4(_)))
    }
}

/// The sockets with which a bound socket shares its port. Both sockets have to allow it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Reuse {
    /// None.
    #[default]
    No,
    /// Sockets at overlapping addresses, where the more specific one gets the packet, and
    /// connections of sockets with reuse: `SO_REUSEADDR`. Of protocols without connections also
    /// sockets with an equal address and port, as multicast receivers have them.
    Address,
    /// In addition, sockets with an equal address and port, the first of which gets the packets:
    /// `SO_REUSEPORT` of BSD; a scan of all sockets, as in lwIP and smoltcp.
    First,
    /// As [`First`](Self::First), but packets are distributed by their hash: `SO_REUSEPORT` of
    /// Linux, `SO_REUSEPORT_LB` of FreeBSD.
    Port,
}

impl Reuse {
    /// Returns whether sockets with these two can be bound to one address and port.
    fn shares_address(self, other: Self, protocol: u8) -> bool {
        let is_group = |reuse| matches!(reuse, Self::First | Self::Port);
        let is_datagram = !CONNECTED.contains(&protocol);
        is_group(self) && is_group(other) || is_datagram && self != Self::No && other != Self::No
    }
}

/// Protocols whose listeners cannot share an address by [`Reuse::Address`]: TCP, DCCP, SCTP.
const CONNECTED: [u8; 3] = [6, 33, 132];

/// A [`Local`] packed into three words: the key of the maps.
///
/// A [`Local`] is written field by field, and reading it back in words stalls until all of these
/// stores reach the cache, which took more than half of the time of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LocalWords {
    /// The kind of the scope, the protocol and the port: 36 bits.
    pub(super) header: u64,
    /// The upper and the lower half of the address.
    pub(super) address: [u64; 2],
}

/// Kinds of scopes: any address, any of a version, one of a version.
const ANY: u64 = 0;
const ANY_V4: u64 = 1;
const V4: u64 = 2;
const ANY_V6: u64 = 3;
const V6: u64 = 4;

impl LocalWords {
    pub(super) fn new(local: &Local) -> Self {
        let (kind, address) = match local.scope {
            Scope::Address(IpAddr::V4(address)) => (V4, address.to_bits().into()),
            Scope::Address(IpAddr::V6(address)) => (V6, address.to_bits()),
            Scope::AnyV4 => (ANY_V4, 0),
            Scope::AnyV6 => (ANY_V6, 0),
            Scope::Any => (ANY, 0),
        };
        Self::of(kind, address, local.port, local.protocol)
    }

    #[inline]
    fn of(kind: u64, address: u128, port: Option<u16>, protocol: u8) -> Self {
        let port = port.map_or(1 << 16, u64::from);
        let header = kind << 32 | u64::from(protocol) << 24 | port;
        Self { header, address: [(address >> 64) as u64, address as u64] }
    }

    /// Returns whether a header has the kind of a single IPv4 address.
    pub(super) const fn is_v4(header: u64) -> bool {
        header >> 32 & 7 == V4
    }

    /// The key of the address and port that a packet is sent to.
    #[inline]
    pub(super) fn of_local(packet: &FlowKey) -> Self {
        let (kind, address) = match packet {
            FlowKey::V4(key) => (V4, key.dst.to_bits().into()),
            FlowKey::V6(key) => (V6, key.dst.to_bits()),
        };
        Self::of(kind, address, Some(packet.dport()), packet.protocol())
    }

    /// The keys of the sockets that match a packet, at its port or at all ports, best match first:
    /// its address, any of its version, any.
    #[inline]
    pub(super) fn of_packet(packet: &FlowKey, all_ports: bool) -> [Self; 3] {
        let (exact, any, address) = match packet {
            FlowKey::V4(key) => (V4, ANY_V4, key.dst.to_bits().into()),
            FlowKey::V6(key) => (V6, ANY_V6, key.dst.to_bits()),
        };
        let port = (!all_ports).then(|| packet.dport());
        [(exact, address), (any, 0), (ANY, 0)]
            .map(|(kind, address)| Self::of(kind, address, port, packet.protocol()))
    }
}

impl Hash for LocalWords {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [high, low] = self.address;
        if high == 0 {
            // One multiplication for all keys of IPv4.
            return state.write_u128(u128::from(self.header) << 64 | u128::from(low));
        }
        state.write_u64(self.header);
        state.write_u128(u128::from(high) << 64 | u128::from(low));
    }
}

/// The name of a socket in its table: a handle for `get` and `remove`.
///
/// It is valid in the table that returned it, not in any other, nor in a clone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Name {
    /// A connection, named by its packets as they arrive: from the remote socket to the local one.
    /// A later connection between the same sockets has an equal name.
    Connected(FlowKey),
    /// A bound socket.
    Bound {
        /// The address, port and protocol that it is bound to.
        local: Local,
        /// Distinguishes the sockets bound there. Unique in a table, and never reused.
        id: u64,
    },
    /// A socket that waits behind others with the same connection: see
    /// [`SocketTable::queue`](super::SocketTable::queue).
    Queued {
        /// The connection, as in [`Name::Connected`].
        key: FlowKey,
        /// Distinguishes the sockets queued there. Unique in a table, and never reused.
        id: u64,
    },
}

/// Writes the connection, or the local address and the id.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connected(key) => key.fmt(f),
            Self::Bound { local, id } => write!(f, "{local} id {id}"),
            Self::Queued { key, id } => write!(f, "{key} id {id}"),
        }
    }
}

/// The result of a lookup: a socket, and how specifically it matches the packet.
///
/// # Example
///
/// ```
/// use flowtable::FlowKey;
/// use flowtable::sockets::{Local, Reuse, SocketTable, Specificity};
///
/// let tcp = 6;
/// let mut sockets = SocketTable::new(10);
/// for (address, socket) in [("0.0.0.0:80", "any"), ("192.0.2.1:80", "here")] {
///     sockets.bind(Local::new(address.parse()?, tcp), Reuse::Address, socket)?;
/// }
/// let [from, to] = ["198.51.100.1".parse()?, "192.0.2.1".parse()?];
/// let segment = FlowKey::new(from, to, 40_000, 80, tcp).unwrap();
/// let best = sockets.lookup(&segment).unwrap();
/// assert_eq!((*best.socket, best.by), ("here", Specificity::AddressAndPort));
/// assert!(best.by > Specificity::Port); // `Port` is the match of the socket "any"
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match<R> {
    /// The socket.
    pub socket: R,
    /// The parts of the packet that the socket is bound or connected to.
    pub by: Specificity,
}
