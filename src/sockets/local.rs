//! Where a socket is bound, what it takes there, and with which others it is in conflict.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::Specificity;
use crate::key::flow::FlowKey;

/// Where a socket is bound: an address or any, a port or all, and a protocol.
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
/// // A transparent proxy takes what no other socket does.
/// let proxy = Local::all_ports("0.0.0.0".parse()?, tcp);
/// assert!(proxy.address().is_unspecified());
/// assert_eq!((proxy.port(), proxy.protocol()), (None, tcp));
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Local {
    pub(super) scope: Scope,
    /// All if there is none.
    pub(super) port: Option<u16>,
    pub(super) protocol: u8,
}

impl Local {
    /// A port of an address. 0.0.0.0 is any IPv4 address, `[::]` any address of either version. An IPv4 address
    /// mapped into IPv6 is that IPv4 address.
    #[must_use]
    pub fn new(address: SocketAddr, protocol: u8) -> Self {
        Self { scope: Scope::new(address.ip()), port: Some(address.port()), protocol }
    }

    /// All ports of an address: for who takes what no other socket does, such as a transparent proxy, and for
    /// protocols that have no ports.
    #[must_use]
    pub fn all_ports(address: IpAddr, protocol: u8) -> Self {
        Self { scope: Scope::new(address), port: None, protocol }
    }

    /// Without IPv4, if it is any address of either version.
    #[must_use]
    pub fn v6_only(self) -> Self {
        let scope = if self.scope == Scope::Any { Scope::AnyV6 } else { self.scope };
        Self { scope, ..self }
    }

    /// The port, unless it is all of them.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// Protocol number of the IP layer: 6 is TCP, 17 is UDP.
    #[must_use]
    pub fn protocol(&self) -> u8 {
        self.protocol
    }

    /// Whether packets to this address are for the socket, if port and protocol are right.
    #[must_use]
    pub fn takes(&self, address: IpAddr) -> bool {
        self.scope.contains(address.to_canonical())
    }

    /// The address, which is unspecified if it is any.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        match self.scope {
            Scope::Address(address) => address,
            Scope::AnyV4 => Ipv4Addr::UNSPECIFIED.into(),
            Scope::AnyV6 | Scope::Any => Ipv6Addr::UNSPECIFIED.into(),
        }
    }

    /// Whether it is any address of IPv6, and none of IPv4.
    #[must_use]
    pub fn is_v6_only(&self) -> bool {
        self.scope == Scope::AnyV6
    }

    pub(super) fn at_port(self, port: u16) -> Self {
        Self { port: Some(port), ..self }
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

    /// The best match has the greatest.
    pub(super) fn rank(&self) -> (bool, u8) {
        (self.port.is_some(), self.scope.rank())
    }

    /// Whether sockets that are bound here and there may not be so at once.
    pub(super) fn is_in_conflict(&self, reuse: Reuse, other: &Self, others: Reuse) -> bool {
        if (self.port, self.protocol) != (other.port, other.protocol) {
            return false;
        }
        if self.scope == other.scope {
            return !(reuse == Reuse::Port && others == Reuse::Port);
        }
        self.scope.overlaps(other.scope) && (reuse == Reuse::No || others == Reuse::No)
    }
}

/// In whole words: those of its place.
impl Hash for Local {
    fn hash<H: Hasher>(&self, state: &mut H) {
        LocalWords::new(self).hash(state);
    }
}

/// `address:port proto number`; `*` for all ports.
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

/// Addresses of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// This one: never unspecified, and never IPv4 mapped into IPv6.
    Address(IpAddr),
    /// All of IPv4.
    AnyV4,
    /// All of IPv6.
    AnyV6,
    /// All.
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

    /// All addresses of this one's version.
    pub(super) fn family(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::AnyV4 } else { Self::AnyV6 }
    }

    fn contains(self, address: IpAddr) -> bool {
        self.overlaps(Self::Address(address))
    }

    /// Whether some address is in both.
    fn overlaps(self, other: Self) -> bool {
        match (self, other) {
            (Self::Address(this), Self::Address(that)) => this == that,
            (Self::Any, _) | (_, Self::Any) => true,
            _ => self.is_v4() == other.is_v4(),
        }
    }

    /// Of a scope of one version.
    fn is_v4(self) -> bool {
        matches!(self, Self::AnyV4 | Self::Address(IpAddr::V4(_)))
    }

    fn rank(self) -> u8 {
        match self {
            Self::Any => 0,
            Self::AnyV4 | Self::AnyV6 => 1,
            Self::Address(_) => 2,
        }
    }
}

/// With whom a bound socket shares its port. It takes the consent of both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Reuse {
    /// With nobody.
    #[default]
    No,
    /// With sockets at other addresses of which one is among its own, where the more specific one gets the
    /// packet; and with connections that a former socket has left: `SO_REUSEADDR`.
    Address,
    /// The same, and with sockets at the very same address and port, among which connections are spread:
    /// `SO_REUSEPORT` of Linux, `SO_REUSEPORT_LB` of FreeBSD.
    Port,
}

/// A [`Local`] in three words: what the maps hash and compare.
///
/// A [`Local`] is written byte by byte, and reading it back in words waits for all of these stores to reach the
/// cache, which took more than half of the time of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LocalWords {
    /// Kind of scope, protocol and port.
    what: u64,
    /// Upper half of the address, and the lower one.
    address: [u64; 2],
}

/// Kinds of scopes: any address, that of a version, one of it.
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
        let what = kind << 32 | u64::from(protocol) << 24 | port;
        Self { what, address: [(address >> 64) as u64, address as u64] }
    }

    /// Where a packet finds sockets, at its port or at all: its address, any of its version, any at all.
    #[inline]
    pub(super) fn of_packet(packet: &FlowKey, all_ports: bool) -> [Self; 3] {
        let (one, any, address) = match packet {
            FlowKey::V4(key) => (V4, ANY_V4, key.dst.to_bits().into()),
            FlowKey::V6(key) => (V6, ANY_V6, key.dst.to_bits()),
        };
        let port = (!all_ports).then(|| packet.dport());
        [(one, address), (any, 0), (ANY, 0)]
            .map(|(kind, address)| Self::of(kind, address, port, packet.protocol()))
    }
}

impl Hash for LocalWords {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.what);
        self.address.iter().for_each(|&half| state.write_u64(half));
    }
}
