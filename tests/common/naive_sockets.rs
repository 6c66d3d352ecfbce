//! A table of sockets by the letter of its rules: one vector, and every rule asked of every socket.
#![allow(dead_code, reason = "not every test needs all")]

use core::cmp::Reverse;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::ops::RangeInclusive;

use flowtable::FlowKey;
use flowtable::demux::{Local, Name, Reuse, SocketError, Specificity};

/// Where a socket is to be bound, as its owner says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) address: IpAddr,
    pub(crate) v6_only: bool,
    /// All if there is none.
    pub(crate) port: Option<u16>,
    pub(crate) protocol: u8,
}

impl At {
    pub(crate) fn local(self) -> Local {
        let local = match self.port {
            Some(port) => Local::new(SocketAddr::new(self.address, port), self.protocol),
            None => Local::all_ports(self.address, self.protocol),
        };
        if self.v6_only { local.v6_only() } else { local }
    }

    pub(crate) fn scope(self) -> Scope {
        match plain(self.address) {
            IpAddr::V4(address) if address.is_unspecified() => Scope::AnyV4,
            IpAddr::V6(address) if address.is_unspecified() && self.v6_only => Scope::AnyV6,
            IpAddr::V6(address) if address.is_unspecified() => Scope::Any,
            address => Scope::One(address),
        }
    }

    pub(crate) fn at_port(self, port: u16) -> Self {
        Self { port: Some(port), ..self }
    }
}

/// An IPv4 address in the dress of IPv6 is that IPv4 address.
pub(crate) fn plain(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(dressed) => dressed.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// The addresses that a bound socket takes; a better match is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Any,
    AnyV4,
    AnyV6,
    One(IpAddr),
}

impl Scope {
    pub(crate) fn takes(self, address: IpAddr) -> bool {
        match self {
            Self::Any => true,
            Self::AnyV4 => address.is_ipv4(),
            Self::AnyV6 => address.is_ipv6(),
            Self::One(one) => one == address,
        }
    }

    /// Whether some address is in both: one of theirs is if any is, or just any of a family.
    fn overlaps(self, other: Self) -> bool {
        let one = |scope| if let Self::One(address) = scope { Some(address) } else { None };
        let any = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()].map(Some);
        let mut some = [one(self), one(other), any[0], any[1]].into_iter().flatten();
        some.any(|address| self.takes(address) && other.takes(address))
    }

    fn rank(self) -> u8 {
        match self {
            Self::Any => 0,
            Self::AnyV4 | Self::AnyV6 => 1,
            Self::One(_) => 2,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bound(At, Reuse),
    Connected(FlowKey),
}

#[derive(Clone, Debug)]
pub(crate) struct Socket<T> {
    pub(crate) name: Name,
    pub(crate) kind: Kind,
    pub(crate) socket: T,
}

#[derive(Clone, Debug)]
pub(crate) struct NaiveSockets<T> {
    pub(crate) limit: usize,
    pub(crate) sockets: Vec<Socket<T>>,
}

/// Why something is refused: one of these, or nothing if there are none.
pub(crate) type Reasons = Vec<SocketError>;

/// What is wrong comes first, then that there is no room, then the rest.
fn in_order(
    wrong: &[(bool, SocketError)],
    is_full: bool,
    rest: impl FnOnce() -> Option<SocketError>,
) -> Reasons {
    let reasons = wrong.iter().filter(|(is, _)| *is).map(|(_, why)| *why);
    let reasons: Reasons = reasons.collect();
    match (reasons.is_empty(), is_full) {
        (false, _) => reasons,
        (true, true) => vec![SocketError::Full],
        (true, false) => rest().into_iter().collect(),
    }
}

fn is_bad(ports: &RangeInclusive<u16>) -> bool {
    ports.is_empty() || ports.contains(&0)
}

/// The name of a connection, as its packets arrive.
pub(crate) fn connection(local: SocketAddr, remote: SocketAddr, protocol: u8) -> Option<FlowKey> {
    FlowKey::new(plain(remote.ip()), plain(local.ip()), remote.port(), local.port(), protocol)
}

impl<T> NaiveSockets<T> {
    pub(crate) const fn new(limit: usize) -> Self {
        Self { limit, sockets: vec![] }
    }

    fn is_full(&self) -> bool {
        self.sockets.len() >= self.limit
    }

    fn bound(&self) -> impl Iterator<Item = (At, Reuse)> {
        self.sockets.iter().filter_map(|socket| match socket.kind {
            Kind::Bound(at, reuse) => Some((at, reuse)),
            Kind::Connected(_) => None,
        })
    }

    fn connections(&self) -> impl Iterator<Item = FlowKey> {
        self.sockets.iter().filter_map(|socket| match socket.kind {
            Kind::Connected(key) => Some(key),
            Kind::Bound(..) => None,
        })
    }

    /// Whether a connection has that port and an address that is taken.
    fn is_connected(&self, at: At) -> bool {
        self.connections().any(|key| {
            (Some(key.dport()), key.protocol()) == (at.port, at.protocol)
                && at.scope().takes(key.dst())
        })
    }

    /// Whether somebody is in the way of a socket.
    fn is_in_use(&self, at: At, reuse: Reuse) -> bool {
        let among_bound = self.bound().any(|(other, others)| {
            let (scope, that) = (at.scope(), other.scope());
            (at.port, at.protocol) == (other.port, other.protocol)
                && scope.overlaps(that)
                && match scope == that {
                    true => (reuse, others) != (Reuse::Port, Reuse::Port),
                    false => reuse == Reuse::No || others == Reuse::No,
                }
        });
        among_bound || reuse == Reuse::No && self.is_connected(at)
    }

    pub(crate) fn refuse_bind(&self, at: At, reuse: Reuse) -> Reasons {
        in_order(&[(at.port == Some(0), SocketError::PortZero)], self.is_full(), || {
            self.is_in_use(at, reuse).then_some(SocketError::InUse)
        })
    }

    /// Whether no bound socket is anywhere near, and no connection is.
    pub(crate) fn is_free_to_bind(&self, at: At) -> bool {
        let is_near = |(other, _): (At, Reuse)| {
            (at.port, at.protocol) == (other.port, other.protocol)
                && at.scope().overlaps(other.scope())
        };
        !self.bound().any(is_near) && !self.is_connected(at)
    }

    pub(crate) fn refuse_bind_ephemeral(&self, at: At, ports: &RangeInclusive<u16>) -> Reasons {
        in_order(&[(is_bad(ports), SocketError::BadRange)], self.is_full(), || {
            let is_any = ports.clone().any(|port| self.is_free_to_bind(at.at_port(port)));
            (!is_any).then_some(SocketError::NoPort)
        })
    }

    /// What is wrong with the ends of a connection; the local port may not be known yet.
    fn wrong(local: IpAddr, remote: SocketAddr, port: Option<u16>) -> [(bool, SocketError); 3] {
        let [here, there] = [plain(local), plain(remote.ip())];
        [
            (here.is_unspecified() || there.is_unspecified(), SocketError::Unspecified),
            (remote.port() == 0 || port == Some(0), SocketError::PortZero),
            (here.is_ipv4() != there.is_ipv4(), SocketError::Families),
        ]
    }

    pub(crate) fn refuse_connect(
        &self,
        local: SocketAddr,
        remote: SocketAddr,
        protocol: u8,
    ) -> Reasons {
        let wrong = Self::wrong(local.ip(), remote, Some(local.port()));
        in_order(&wrong, self.is_full(), || {
            let key = connection(local, remote, protocol);
            self.connections().any(|other| Some(other) == key).then_some(SocketError::InUse)
        })
    }

    /// Whether there is no such connection, and no bound socket that takes its packets by their port.
    pub(crate) fn is_free_to_connect(&self, key: FlowKey) -> bool {
        let takes = |(at, _): (At, Reuse)| {
            (at.port, at.protocol) == (Some(key.dport()), key.protocol())
                && at.scope().takes(key.dst())
        };
        !self.connections().any(|other| other == key) && !self.bound().any(takes)
    }

    pub(crate) fn refuse_connect_ephemeral(
        &self,
        local: IpAddr,
        remote: SocketAddr,
        protocol: u8,
        ports: &RangeInclusive<u16>,
    ) -> Reasons {
        let [unspecified, zero, families] = Self::wrong(local, remote, None);
        let wrong = [unspecified, zero, families, (is_bad(ports), SocketError::BadRange)];
        in_order(&wrong, self.is_full(), || {
            let mut keys = ports
                .clone()
                .filter_map(|port| connection(SocketAddr::new(local, port), remote, protocol));
            (!keys.any(|key| self.is_free_to_connect(key))).then_some(SocketError::NoPort)
        })
    }

    pub(crate) fn put(&mut self, name: Name, kind: Kind, socket: T) {
        self.sockets.push(Socket { name, kind, socket });
    }

    pub(crate) fn position(&self, name: &Name) -> Option<usize> {
        self.sockets.iter().position(|socket| socket.name == *name)
    }

    /// The sockets that would take a packet if they were alone, the best ones first.
    pub(crate) fn takers(&self, packet: &FlowKey) -> Vec<(Rank, &Socket<T>)> {
        let ranks = self.sockets.iter().map(|socket| (rank(socket.kind, packet), socket));
        let mut takers: Vec<(Rank, &Socket<T>)> =
            ranks.filter_map(|(rank, socket)| Some((rank?, socket))).collect();
        takers.sort_by_key(|(rank, _)| Reverse(*rank));
        takers
    }
}

/// How much of a packet a socket has: the connection, its port, its address or how much of that.
pub(crate) type Rank = (bool, bool, u8);

fn rank(kind: Kind, packet: &FlowKey) -> Option<Rank> {
    let at = match kind {
        Kind::Connected(key) => return (key == *packet).then_some((true, true, 2)),
        Kind::Bound(at, _) => at,
    };
    let is_plain =
        [packet.src(), packet.dst()].into_iter().all(|address| plain(address) == address);
    let takes = at.protocol == packet.protocol()
        && at.scope().takes(packet.dst())
        && (at.port.is_none() || at.port == Some(packet.dport()));
    (is_plain && takes).then_some((false, at.port.is_some(), at.scope().rank()))
}

pub(crate) fn specificity(rank: Rank) -> Specificity {
    match rank {
        (true, ..) => Specificity::Connection,
        (false, true, 2) => Specificity::AddressAndPort,
        (false, true, _) => Specificity::Port,
        (false, false, 2) => Specificity::Address,
        (false, false, _) => Specificity::Everything,
    }
}
