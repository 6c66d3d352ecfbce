//! The reference model of `SocketTable`: a vector, with every rule applied to every socket.

use core::cmp::Reverse;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::ops::RangeInclusive;

use flowtable::FlowKey;
use flowtable::sockets::{Local, Name, Reuse, SocketError, Specificity};

/// The local end that a socket is to be bound to, as given by its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub address: IpAddr,
    pub v6_only: bool,
    /// All ports if `None`.
    pub port: Option<u16>,
    pub protocol: u8,
}

impl Endpoint {
    pub fn local(self) -> Local {
        let local = match self.port {
            Some(port) => Local::new(SocketAddr::new(self.address, port), self.protocol),
            None => Local::all_ports(self.address, self.protocol),
        };
        if self.v6_only { local.v6_only() } else { local }
    }

    pub fn scope(self) -> Scope {
        match unmapped(self.address) {
            IpAddr::V4(address) if address.is_unspecified() => Scope::AnyV4,
            IpAddr::V6(address) if address.is_unspecified() && self.v6_only => Scope::AnyV6,
            IpAddr::V6(address) if address.is_unspecified() => Scope::Any,
            address => Scope::One(address),
        }
    }

    pub fn at_port(self, port: u16) -> Self {
        Self { port: Some(port), ..self }
    }
}

/// The IPv4 address of an IPv4-mapped address; other addresses are unchanged.
pub fn unmapped(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(dressed) => dressed.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// The addresses that a bound socket accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Any,
    AnyV4,
    AnyV6,
    One(IpAddr),
}

impl Scope {
    pub fn takes(self, address: IpAddr) -> bool {
        match self {
            Self::Any => true,
            Self::AnyV4 => address.is_ipv4(),
            Self::AnyV6 => address.is_ipv6(),
            Self::One(one) => one == address,
        }
    }

    /// Whether an address is in both. It suffices to try their own and one of each family.
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
pub enum Kind {
    Bound(Endpoint, Reuse),
    Connected(FlowKey, Reuse),
    /// Behind a connection.
    Queued(FlowKey, Reuse),
}

/// Whether two sockets can be bound to one address and port.
fn share_an_address(one: Reuse, other: Reuse, protocol: u8) -> bool {
    match (one, other) {
        (Reuse::No, _) | (_, Reuse::No) => false,
        // Datagrams only, as here the only other protocol is TCP.
        (Reuse::Address, _) | (_, Reuse::Address) => protocol != 6,
        _ => true,
    }
}

#[derive(Clone, Debug)]
pub struct Socket<T> {
    pub name: Name,
    pub kind: Kind,
    pub socket: T,
}

#[derive(Clone, Debug)]
pub struct SocketList<T> {
    pub limit: usize,
    pub sockets: Vec<Socket<T>>,
}

/// The reasons of which a refusal must have one; no refusal if there are none.
pub type Reasons = Vec<SocketError>;

/// Invalid arguments have priority, then a full table, then the rest.
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

/// The name of a connection: the key of its incoming packets.
pub fn connection(local: SocketAddr, remote: SocketAddr, protocol: u8) -> Option<FlowKey> {
    FlowKey::new(unmapped(remote.ip()), unmapped(local.ip()), remote.port(), local.port(), protocol)
}

impl<T> SocketList<T> {
    pub const fn new(limit: usize) -> Self {
        Self { limit, sockets: vec![] }
    }

    fn is_full(&self) -> bool {
        self.sockets.len() >= self.limit
    }

    fn bound(&self) -> impl Iterator<Item = (Endpoint, Reuse)> {
        self.sockets.iter().filter_map(|socket| match socket.kind {
            Kind::Bound(at, reuse) => Some((at, reuse)),
            Kind::Connected(..) | Kind::Queued(..) => None,
        })
    }

    /// All connections, and those that sockets are queued for.
    fn connections(&self) -> impl Iterator<Item = (FlowKey, Reuse)> {
        self.sockets.iter().filter_map(|socket| match socket.kind {
            Kind::Connected(key, reuse) | Kind::Queued(key, reuse) => Some((key, reuse)),
            Kind::Bound(..) => None,
        })
    }

    fn has_connection(&self, key: FlowKey) -> bool {
        self.connections().any(|(other, _)| other == key)
    }

    /// The reuse of the connections that have the port and an address of the local end.
    fn connected(&self, at: Endpoint) -> impl Iterator<Item = Reuse> {
        let has_it = move |key: &FlowKey| {
            (Some(key.dport()), key.protocol()) == (at.port, at.protocol)
                && at.scope().takes(key.dst())
        };
        self.connections().filter(move |(key, _)| has_it(key)).map(|(_, reuse)| reuse)
    }

    /// The reuse of the bound socket that accepts a connection.
    pub fn reuse_of(&self, key: &FlowKey) -> Reuse {
        let matches = self.matches(key);
        let mut bound = matches.iter().filter_map(|(_, socket)| match socket.kind {
            Kind::Bound(at, reuse) if at.port.is_some() => Some(reuse),
            _ => None,
        });
        bound.next().unwrap_or(Reuse::No)
    }

    /// Whether a socket conflicts with another one, but for the one at a position.
    fn is_in_use(&self, at: Endpoint, reuse: Reuse, moved: Option<usize>) -> bool {
        let others = self.sockets.iter().enumerate().filter(|(place, _)| Some(*place) != moved);
        let mut bound = others.filter_map(|(_, socket)| match socket.kind {
            Kind::Bound(other, others) => Some((other, others)),
            _ => None,
        });
        let among_bound = bound.any(|(other, others)| {
            let (scope, that) = (at.scope(), other.scope());
            (at.port, at.protocol) == (other.port, other.protocol)
                && scope.overlaps(that)
                && match scope == that {
                    true => !share_an_address(reuse, others, at.protocol),
                    false => reuse == Reuse::No || others == Reuse::No,
                }
        });
        let mut connected = self.connected(at);
        among_bound || connected.any(|others| reuse == Reuse::No || others == Reuse::No)
    }

    pub fn refuse_bind(&self, at: Endpoint, reuse: Reuse) -> Reasons {
        in_order(&[(at.port == Some(0), SocketError::PortZero)], self.is_full(), || {
            self.is_in_use(at, reuse, None).then_some(SocketError::InUse)
        })
    }

    /// The reasons not to move the socket at this position to another local end.
    pub fn refuse_rebind(&self, moved: Option<usize>, to: Endpoint, reuse: Reuse) -> Reasons {
        let bound = moved.filter(|at| matches!(self.sockets[*at].kind, Kind::Bound(..)));
        let wrong =
            [(to.port == Some(0), SocketError::PortZero), (bound.is_none(), SocketError::NotFound)];
        in_order(&wrong, false, || self.is_in_use(to, reuse, bound).then_some(SocketError::InUse))
    }

    /// Whether no bound socket and no connection overlaps.
    pub fn is_free_to_bind(&self, at: Endpoint) -> bool {
        let is_near = |(other, _): (Endpoint, Reuse)| {
            (at.port, at.protocol) == (other.port, other.protocol)
                && at.scope().overlaps(other.scope())
        };
        !self.bound().any(is_near) && self.connected(at).next().is_none()
    }

    pub fn refuse_bind_ephemeral(&self, at: Endpoint, ports: &RangeInclusive<u16>) -> Reasons {
        in_order(&[(is_bad(ports), SocketError::BadRange)], self.is_full(), || {
            let is_any = ports.clone().any(|port| self.is_free_to_bind(at.at_port(port)));
            (!is_any).then_some(SocketError::NoPort)
        })
    }

    /// The errors of the ends of a connection, whose local port may not be chosen yet.
    fn wrong(local: IpAddr, remote: SocketAddr, port: Option<u16>) -> [(bool, SocketError); 3] {
        let [here, there] = [unmapped(local), unmapped(remote.ip())];
        [
            (here.is_unspecified() || there.is_unspecified(), SocketError::Unspecified),
            (remote.port() == 0 || port == Some(0), SocketError::PortZero),
            (here.is_ipv4() != there.is_ipv4(), SocketError::MixedFamilies),
        ]
    }

    pub fn refuse_connect(&self, local: SocketAddr, remote: SocketAddr, protocol: u8) -> Reasons {
        let wrong = Self::wrong(local.ip(), remote, Some(local.port()));
        in_order(&wrong, self.is_full(), || {
            let key = connection(local, remote, protocol);
            key.is_some_and(|key| self.has_connection(key)).then_some(SocketError::InUse)
        })
    }

    pub fn refuse_queue(&self, packet: &FlowKey) -> Reasons {
        let [here, there] = [(packet.dst(), packet.dport()), (packet.src(), packet.sport())];
        let wrong = Self::wrong(here.0, there.into(), Some(here.1));
        in_order(&wrong, self.is_full(), || None)
    }

    /// The reasons not to turn the socket at this position into the connection of a packet.
    pub fn refuse_connect_bound(&self, at: Option<usize>, packet: &FlowKey) -> Reasons {
        let here = SocketAddr::new(packet.dst(), packet.dport());
        let there = SocketAddr::new(packet.src(), packet.sport());
        let bound = at.and_then(|at| match self.sockets[at].kind {
            Kind::Bound(at, _) => Some(at),
            Kind::Connected(..) | Kind::Queued(..) => None,
        });
        let Some(bound) = bound else {
            let wrong = Self::wrong(here.ip(), there, Some(here.port()));
            let wrong = wrong.into_iter().filter_map(|(is, why)| is.then_some(why));
            return wrong.chain([SocketError::NotFound]).collect();
        };
        in_order(&Self::wrong(here.ip(), there, Some(here.port())), false, || {
            let is_at = bound.port.is_none_or(|port| port == here.port())
                && bound.protocol == packet.protocol()
                && bound.scope().takes(unmapped(here.ip()));
            let key = connection(here, there, packet.protocol());
            let is_in_use = || key.is_some_and(|key| self.has_connection(key));
            if is_at {
                is_in_use().then_some(SocketError::InUse)
            } else {
                Some(SocketError::OtherAddress)
            }
        })
    }

    /// Whether there is no such connection, and no bound socket accepts its packets by port.
    pub fn is_free_to_connect(&self, key: FlowKey) -> bool {
        let takes = |(at, _): (Endpoint, Reuse)| {
            (at.port, at.protocol) == (Some(key.dport()), key.protocol())
                && at.scope().takes(key.dst())
        };
        !self.has_connection(key) && !self.bound().any(takes)
    }

    pub fn refuse_connect_ephemeral(
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

    pub fn put(&mut self, name: Name, kind: Kind, socket: T) {
        self.sockets.push(Socket { name, kind, socket });
    }

    pub fn position(&self, name: &Name) -> Option<usize> {
        self.sockets.iter().position(|socket| socket.name == *name)
    }

    /// The sockets that are bound to the port of a packet and an address of its version that is not
    /// its destination.
    pub fn at_other_addresses(&self, packet: &FlowKey) -> impl Iterator<Item = &Socket<T>> {
        let (to, port) = (packet.dst(), Some(packet.dport()));
        let is_unmapped =
            [packet.src(), to].into_iter().all(|address| unmapped(address) == address);
        self.sockets.iter().filter(move |socket| match socket.kind {
            Kind::Bound(at, _) => match at.scope() {
                Scope::One(own) => {
                    is_unmapped
                        && own != to
                        && own.is_ipv4() == to.is_ipv4()
                        && (at.port, at.protocol) == (port, packet.protocol())
                }
                _ => false,
            },
            _ => false,
        })
    }

    /// The sockets that accept a packet, the best matches first.
    pub fn matches(&self, packet: &FlowKey) -> Vec<(Rank, &Socket<T>)> {
        let ranks = self.sockets.iter().map(|socket| (rank(socket.kind, packet), socket));
        let mut matches: Vec<(Rank, &Socket<T>)> =
            ranks.filter_map(|(rank, socket)| Some((rank?, socket))).collect();
        matches.sort_by_key(|(rank, _)| Reverse(*rank));
        matches
    }
}

/// How specific a match is: connection, port; the first of a connection, or the scope.
pub type Rank = (bool, bool, u8);

fn rank(kind: Kind, packet: &FlowKey) -> Option<Rank> {
    let at = match kind {
        Kind::Connected(key, _) => return (key == *packet).then_some((true, true, 1)),
        Kind::Queued(key, _) => return (key == *packet).then_some((true, true, 0)),
        Kind::Bound(at, _) => at,
    };
    let is_unmapped =
        [packet.src(), packet.dst()].into_iter().all(|address| unmapped(address) == address);
    let takes = at.protocol == packet.protocol()
        && at.scope().takes(packet.dst())
        && (at.port.is_none() || at.port == Some(packet.dport()));
    (is_unmapped && takes).then_some((false, at.port.is_some(), at.scope().rank()))
}

pub fn specificity(rank: Rank) -> Specificity {
    match rank {
        (true, ..) => Specificity::Connection,
        (false, true, 2) => Specificity::AddressAndPort,
        (false, true, _) => Specificity::Port,
        (false, false, 2) => Specificity::Address,
        (false, false, _) => Specificity::Everything,
    }
}
