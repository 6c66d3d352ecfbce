//! A table of sockets: connections, listeners, and who may bind what.
//!
//! ```text
//!     a packet  ─▸ its connection                (remote address and port, local address and port)
//!                  │ none
//!                  ▾
//!                  the best bound socket         address and port
//!                                                any address of the version, the port
//!                                                any address at all, the port
//!                                                the same three with all ports
//!                  │ several share the place
//!                  ▾
//!                  one of them, by the hash of the packet
//! ```
//!
//! The protocol is a part of each name, so one table serves TCP, UDP and others. Interfaces are not: a host with
//! several realms of addresses (VRFs, link-local ones) has a table for each.
//!
//! Connections and bound sockets are kept apart, each kind in an array of up to 16, then in
//! [`TrashMap`]s. So a host with a handful of sockets pays for comparing a handful of names, and neither kind
//! slows the other down. See `connections.rs`, `listeners.rs`.
//!
//! # Who may bind
//!
//! Sockets are in conflict if some packet would have to choose between them by chance.
//!
//! | bound already, at the same port | a new socket without reuse | with [`Reuse::Address`] | with [`Reuse::Port`] |
//! |---|---|---|---|
//! | at the same place | no | no | if both have it: they are a group |
//! | at an overlapping one, such as any address | no | if both have either | if both have either |
//! | at another address | yes | yes | yes |
//! | a connection with that local port, and a local address that is taken | no | yes | yes |
//!
//! The rules are of no one system: both have to consent as in Linux, and listeners may be at overlapping addresses
//! as in BSD. BSD asks only the new socket about overlapping addresses, lets 0.0.0.0 and `[::]` be together, and
//! takes `SO_REUSEADDR` for `SO_REUSEPORT` at multicast addresses. Linux lets sockets of UDP with `SO_REUSEADDR` share
//! a place, and refuses listeners of TCP at overlapping ones unless both have `SO_REUSEPORT`.
//!
//! # Price
//!
//! A connection of IPv4 takes the bytes of a [`TrashMap`] entry of 16 bytes and the socket. One with a local port
//! of its own, as clients have, takes two entries of 32 bytes more, by which `bind` knows who has that port: some
//! 140 bytes instead of 40. To find that a range has no free port takes a look-up for each: 2 ms for 28,232.
//!
//! [`TrashMap`]: crate::TrashMap

mod connections;
mod ephemeral;
mod error;
mod few;
mod listeners;
mod local;
mod name;

use core::hash::BuildHasher;
use core::net::{IpAddr, SocketAddr};
use core::ops::RangeInclusive;

use crate::demux::{Broken, NotFound};
use crate::hash::DefaultHashBuilder;
use crate::key::flow::FlowKey;
use connections::Connections;
use ephemeral::Cursors;
use listeners::{Listener, Listeners};

pub use error::{RejectedSocket, SocketError};
pub use local::{Local, Reuse};
pub use name::{Match, Name, Specificity};

/// Packets that are looked up at a time in a batch.
const BURST: usize = 32;

/// The sockets of a host, by the packets that are for them.
///
/// `T` is what the host has of a socket: the socket itself, its number, a pointer. It is found by the packet,
/// and by the [`Name`] that the table gave it.
///
/// | method | cost |
/// |---|---|
/// | `lookup` | a connection: as [`TrashMap::get`](crate::TrashMap::get); a bound socket: up to six of these more |
/// | `bind`, `connect`, `remove` | O(1), and a step of growth as [`TrashMap`](crate::TrashMap) has |
/// | `bind_ephemeral`, `connect_ephemeral` | the same, and a look-up for each port that is taken: at most the range |
/// | `lookup` in a group of N | O(N) |
/// | `lookup_batch`, `matches` | the same as `lookup`, for each packet or socket |
/// | `get`, `get_mut` | O(1); in a group of N, O(N) |
/// | `len`, `capacity`; `iter`, `clear` | O(1); O(sockets) |
///
/// # Example
///
/// ```
/// use flowtable::FlowKey;
/// use flowtable::sockets::{Local, Name, Reuse, SocketTable, Specificity};
///
/// let tcp = 6;
/// let mut sockets = SocketTable::new(100_000);
/// sockets.bind(Local::new("[::]:443".parse()?, tcp), Reuse::No, "listener")?;
///
/// let segment = FlowKey::new("192.0.2.7".parse()?, "198.51.100.1".parse()?, 40_000, 443, tcp).unwrap();
/// let found = sockets.lookup(&segment).unwrap();
/// assert_eq!((found.socket, found.by), (&"listener", Specificity::Port));
///
/// // It is accepted: from now on the segments of this connection find it.
/// sockets.connect("198.51.100.1:443".parse()?, "192.0.2.7:40000".parse()?, tcp, "connection")?;
/// assert_eq!(sockets.lookup(&segment).unwrap().socket, &"connection");
/// assert_eq!(sockets.remove(&Name::Connected(segment)), Ok("connection"));
/// assert_eq!(sockets.lookup(&segment).unwrap().socket, &"listener");
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SocketTable<T, S = DefaultHashBuilder> {
    connections: Connections<T, S>,
    listeners: Listeners<T, S>,
    cursors: Cursors,
    /// The number of the next socket that is bound.
    number: u64,
    limit: usize,
    hasher: S,
}

impl<T> SocketTable<T> {
    /// No sockets, and never more than `limit`. Allocates nothing.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self::with_hasher(limit, DefaultHashBuilder::new())
    }
}

impl<T, S: Clone> SocketTable<T, S> {
    /// The same, with a hash that is keyed with a secret: ports and the choice in groups come of it, too.
    ///
    /// A hasher that panics, or hashes the same name in two ways, may leave sockets that are not found and ports
    /// that nobody has; nothing worse.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::DefaultHashBuilder;
    /// use flowtable::sockets::{Local, Reuse, SocketTable};
    ///
    /// // A program on bare metal that has a secret of its own.
    /// let mut sockets = SocketTable::with_hasher(100, DefaultHashBuilder::with_seeds([3, 1, 4, 1]));
    /// sockets.bind(Local::new("0.0.0.0:53".parse()?, 17), Reuse::No, "resolver")?;
    /// assert_eq!((sockets.len(), sockets.capacity()), (1, 100));
    /// sockets.clear();
    /// assert!(sockets.is_empty());
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_hasher(limit: usize, hasher: S) -> Self {
        Self {
            connections: Connections::new(&hasher),
            listeners: Listeners::new(&hasher),
            cursors: Cursors::new(),
            number: 0,
            limit,
            hasher,
        }
    }

    /// Takes all sockets out, and gives their memory back.
    pub fn clear(&mut self) {
        // Nothing is half gone when a socket panics on its way.
        let connections = Connections::new(&self.hasher);
        let connections = core::mem::replace(&mut self.connections, connections);
        let listeners = Listeners::new(&self.hasher);
        drop((connections, core::mem::replace(&mut self.listeners, listeners)));
    }
}

impl<T, S> SocketTable<T, S> {
    /// Number of sockets.
    #[must_use]
    pub fn len(&self) -> usize {
        self.connections.len() + self.listeners.len()
    }

    /// Whether there are no sockets.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// As many sockets as there may be.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.limit
    }

    fn has_room(&self) -> Result<(), SocketError> {
        if self.len() < self.limit { Ok(()) } else { Err(SocketError::Full) }
    }

    /// All sockets by name, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (Name, &T)> {
        let bound = self.listeners.iter().map(|listener| (listener.name(), &listener.socket));
        let connections = self.connections.iter();
        bound.chain(connections.map(|(key, socket)| (Name::Connected(key), socket)))
    }
}

impl<T, S: BuildHasher> SocketTable<T, S> {
    /// The socket that a packet is for: its `src` is the remote socket, its `dst` the local one.
    ///
    /// A packet of IPv6 between addresses of IPv4 mapped into it must not be on any wire (RFC 4942, section
    /// 2.2), and finds nothing: it would pass for one of IPv4 in the hands of a dual-stack socket.
    #[inline]
    #[must_use]
    pub fn lookup(&self, packet: &FlowKey) -> Option<Match<&T>> {
        match self.connections.get(packet) {
            Some(socket) => Some(Match { socket, by: Specificity::Connection }),
            None => self.lookup_bound(packet),
        }
    }

    /// The same, to change.
    #[inline]
    #[must_use]
    pub fn lookup_mut(&mut self, packet: &FlowKey) -> Option<Match<&mut T>> {
        let Self { connections, listeners, hasher, .. } = self;
        if let Some(socket) = connections.get_mut(packet) {
            return Some(Match { socket, by: Specificity::Connection });
        }
        if is_mapped(packet) {
            return None;
        }
        let listener = listeners.find_mut(packet, || hasher.hash_one(packet))?;
        Some(Match { by: listener.local.specificity(), socket: &mut listener.socket })
    }

    /// The sockets of a burst of packets, each put where its packet is in the slice. The cache misses of
    /// connections overlap.
    ///
    /// # Panics
    ///
    /// If there are not as many places as packets.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::FlowKey;
    /// use flowtable::sockets::{Local, Reuse, SocketTable};
    ///
    /// let udp = 17;
    /// let mut sockets = SocketTable::new(10);
    /// sockets.bind(Local::new("0.0.0.0:53".parse()?, udp), Reuse::No, "resolver")?;
    /// let [from, to] = ["192.0.2.7".parse()?, "198.51.100.1".parse()?];
    /// let packets = [53, 54].map(|port| FlowKey::new(from, to, 5353, port, udp).unwrap());
    /// let mut found = [None; 2];
    /// sockets.lookup_batch(&packets, &mut found);
    /// assert_eq!(found.map(|found| found.map(|found| *found.socket)), [Some("resolver"), None]);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn lookup_batch<'a>(&'a self, packets: &[FlowKey], found: &mut [Option<Match<&'a T>>]) {
        assert_eq!(packets.len(), found.len(), "a place for each packet");
        for (packets, found) in packets.chunks(BURST).zip(found.chunks_mut(BURST)) {
            let mut connected = [None; BURST];
            self.connections.get_burst(packets, &mut connected[..packets.len()]);
            for ((packet, found), connected) in packets.iter().zip(found).zip(connected) {
                let connection = |socket| Match { socket, by: Specificity::Connection };
                *found = connected.map(connection).or_else(|| self.lookup_bound(packet));
            }
        }
    }

    /// All sockets that would take a packet if they were alone, the best match first: who has to have a copy of
    /// one that is sent to many, by multicast or broadcast.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::FlowKey;
    /// use flowtable::sockets::{Local, Reuse, SocketTable};
    ///
    /// let udp = 17;
    /// let mut sockets = SocketTable::new(10);
    /// for (address, socket) in [("0.0.0.0:5353", "any"), ("224.0.0.251:5353", "the group")] {
    ///     sockets.bind(Local::new(address.parse()?, udp), Reuse::Address, socket)?;
    /// }
    /// let [from, to] = ["192.0.2.7".parse()?, "224.0.0.251".parse()?];
    /// let query = FlowKey::new(from, to, 5353, 5353, udp).unwrap();
    /// assert!(sockets.matches(&query).map(|found| *found.socket).eq(["the group", "any"]));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn matches(&self, packet: &FlowKey) -> impl Iterator<Item = Match<&T>> {
        let connection = self.connections.get(packet);
        let connection = connection.map(|socket| Match { socket, by: Specificity::Connection });
        let bound = (!is_mapped(packet)).then(|| self.listeners.matches(packet));
        connection.into_iter().chain(bound.into_iter().flatten().map(Listener::found))
    }

    /// The bound socket that a packet is for, if it is for no connection.
    #[inline]
    fn lookup_bound(&self, packet: &FlowKey) -> Option<Match<&T>> {
        if self.listeners.len() == 0 || is_mapped(packet) {
            return None;
        }
        let listener = self.listeners.find(packet, || self.hasher.hash_one(packet))?;
        Some(listener.found())
    }

    /// The socket of that name.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::FlowKey;
    /// use flowtable::sockets::{Local, Reuse, SocketTable};
    ///
    /// let udp = 17;
    /// let mut sockets = SocketTable::new(10);
    /// let name = sockets.bind(Local::new("0.0.0.0:53".parse()?, udp), Reuse::No, 0)?;
    /// let query = FlowKey::new("192.0.2.7".parse()?, "198.51.100.1".parse()?, 5353, 53, udp).unwrap();
    /// // A packet finds it, and so does its name.
    /// *sockets.lookup_mut(&query).unwrap().socket += 1;
    /// *sockets.get_mut(&name).unwrap() += 1;
    /// assert_eq!(sockets.get(&name), Some(&2));
    /// assert!(sockets.iter().eq([(name, &2)]));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn get(&self, name: &Name) -> Option<&T> {
        match name {
            Name::Connected(key) => self.connections.get(key),
            Name::Bound { local, number } => {
                self.listeners.get(local, *number).map(|listener| &listener.socket)
            }
        }
    }

    /// The socket of that name, to change.
    #[must_use]
    pub fn get_mut(&mut self, name: &Name) -> Option<&mut T> {
        match name {
            Name::Connected(key) => self.connections.get_mut(key),
            Name::Bound { local, number } => {
                self.listeners.get_mut(local, *number).map(|listener| &mut listener.socket)
            }
        }
    }

    /// Takes a socket out.
    ///
    /// # Errors
    ///
    /// If there is none of that name.
    pub fn remove(&mut self, name: &Name) -> Result<T, NotFound> {
        let removed = match name {
            Name::Connected(key) => self.connections.remove(key),
            Name::Bound { local, number } => self.listeners.remove(local, *number),
        };
        removed.ok_or(NotFound)
    }

    /// Puts a socket in for what comes to an address and port and is for no connection.
    ///
    /// # Errors
    ///
    /// If the port is 0, there are as many sockets as there may be, another one does not let it be there (see
    /// the [module](super::sockets)), or the memory cannot be had. The socket is given back.
    pub fn bind(
        &mut self,
        local: Local,
        reuse: Reuse,
        socket: T,
    ) -> Result<Name, RejectedSocket<T>> {
        let why = if local.port == Some(0) {
            SocketError::PortZero
        } else if let Err(why) = self.has_room() {
            why
        } else if self.listeners.refuse(&local, reuse)
            || reuse == Reuse::No && local.port.is_some() && self.connections.occupy(&local)
        {
            SocketError::InUse
        } else {
            return self.insert_bound(local, reuse, socket);
        };
        Err(RejectedSocket { given: socket, why })
    }

    /// The same at a port of this range that nobody has; the one in `local` does not count.
    ///
    /// It is drawn by the hash, which should be keyed: who sees one port does not know the next. That is algorithm
    /// 1 of RFC 6056. A port that is taken costs a look-up.
    ///
    /// # Errors
    ///
    /// If the range is empty or has port 0, there are as many sockets as there may be, all ports are taken, or the
    /// memory cannot be had. The socket is given back.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::sockets::{Local, Name, Reuse, SocketTable};
    ///
    /// let mut sockets = SocketTable::new(10);
    /// let any = Local::new("0.0.0.0:0".parse()?, 17);
    /// let Name::Bound { local, .. } = sockets.bind_ephemeral(any, 49_152..=65_535, Reuse::No, "client")? else {
    ///     unreachable!("it is bound");
    /// };
    /// assert!(local.port() >= Some(49_152));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn bind_ephemeral(
        &mut self,
        local: Local,
        ports: RangeInclusive<u16>,
        reuse: Reuse,
        socket: T,
    ) -> Result<Name, RejectedSocket<T>> {
        if let Err(why) = ephemeral::check(&ports).and_then(|()| self.has_room()) {
            return Err(RejectedSocket { given: socket, why });
        }
        let Self { connections, listeners, .. } = self;
        let is_free = |port| {
            let there = local.at_port(port);
            !listeners.refuse(&there, Reuse::No) && !connections.occupy(&there)
        };
        // There is no destination to tell it from others, and one must not tell the next.
        let hash = self.hasher.hash_one((local.at_port(0), self.number));
        let random = |number| self.hasher.hash_one(number);
        match self.cursors.next(hash, &ports, random, is_free) {
            Ok(port) => self.insert_bound(local.at_port(port), reuse, socket),
            Err(why) => Err(RejectedSocket { given: socket, why }),
        }
    }

    fn insert_bound(
        &mut self,
        local: Local,
        reuse: Reuse,
        socket: T,
    ) -> Result<Name, RejectedSocket<T>> {
        let listener = Listener { local, reuse, number: self.number, socket };
        let name = listener.name();
        match self.listeners.insert(listener) {
            Ok(()) => {
                self.number += 1;
                Ok(name)
            }
            Err(given) => Err(RejectedSocket { given, why: SocketError::NoMemory }),
        }
    }

    /// Puts a connection in. A listener at the same port is no matter: that is how connections are accepted.
    ///
    /// # Errors
    ///
    /// If an address is unspecified or a port 0, the addresses are of different versions, there are as many
    /// sockets as there may be, the connection is there already, or the memory cannot be had. The socket is given
    /// back.
    pub fn connect(
        &mut self,
        local: SocketAddr,
        remote: SocketAddr,
        protocol: u8,
        socket: T,
    ) -> Result<Name, RejectedSocket<T>> {
        let key = match connection(local, remote, protocol) {
            Ok(key) => key,
            Err(why) => return Err(RejectedSocket { given: socket, why }),
        };
        let why = if let Err(why) = self.has_room() {
            why
        } else if self.connections.get(&key).is_some() {
            SocketError::InUse
        } else {
            return self.insert_connected(key, socket);
        };
        Err(RejectedSocket { given: socket, why })
    }

    /// The same from a port of this range that no bound socket has, and none to the same remote socket.
    ///
    /// Ports come in the order of RFC 6056, from a place that is secret if the hash is keyed. It takes a look-up for
    /// each that is taken: if nearly all are, to the same remote socket, that is long.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect), and if the range is empty or has port 0, or all its ports are taken. The
    /// socket is given back.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::sockets::{SocketError, SocketTable};
    ///
    /// let mut sockets = SocketTable::new(10);
    /// let (here, there) = ("192.0.2.1".parse()?, "198.51.100.1:443".parse()?);
    /// for number in 0..2 {
    ///     sockets.connect_ephemeral(here, there, 6, 50_000..=50_001, number)?;
    /// }
    /// let refused = sockets.connect_ephemeral(here, there, 6, 50_000..=50_001, 2).unwrap_err();
    /// assert_eq!((refused.given, refused.why), (2, SocketError::NoPort));
    /// // Another destination has all ports for itself.
    /// sockets.connect_ephemeral(here, "198.51.100.2:443".parse()?, 6, 50_000..=50_001, 2)?;
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn connect_ephemeral(
        &mut self,
        local: IpAddr,
        remote: SocketAddr,
        protocol: u8,
        ports: RangeInclusive<u16>,
        socket: T,
    ) -> Result<Name, RejectedSocket<T>> {
        let at_port = |port| connection(SocketAddr::new(local, port), remote, protocol);
        let checked = ephemeral::check(&ports).and_then(|()| at_port(*ports.start()));
        let key = match checked.and_then(|key| self.has_room().map(|()| key)) {
            Ok(key) => key,
            Err(why) => return Err(RejectedSocket { given: socket, why }),
        };
        let Self { connections, listeners, .. } = self;
        let is_free = |port| {
            at_port(port).is_ok_and(|key| connections.get(&key).is_none())
                && !listeners.has_port(key.dst(), port, protocol)
        };
        let hash = self.hasher.hash_one((key.src(), key.sport(), key.dst(), protocol));
        let random = |number| self.hasher.hash_one(number);
        match self.cursors.next(hash, &ports, random, is_free).and_then(at_port) {
            Ok(key) => self.insert_connected(key, socket),
            Err(why) => Err(RejectedSocket { given: socket, why }),
        }
    }

    fn insert_connected(&mut self, key: FlowKey, socket: T) -> Result<Name, RejectedSocket<T>> {
        match self.connections.insert(key, socket) {
            Ok(()) => Ok(Name::Connected(key)),
            Err(given) => Err(RejectedSocket { given, why: SocketError::NoMemory }),
        }
    }

    /// Checks every invariant, for tests. O(sockets²).
    ///
    /// # Errors
    ///
    /// The invariant that is broken, which would be a mistake in this crate.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::sockets::{Local, Reuse, SocketTable};
    ///
    /// let mut sockets = SocketTable::new(10);
    /// sockets.bind(Local::new("0.0.0.0:53".parse()?, 17), Reuse::No, ())?;
    /// assert_eq!(sockets.validate(), Ok(()));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), Broken> {
        self.connections.validate()?;
        self.listeners.validate()
    }
}

/// The name of a connection, as its packets arrive.
fn connection(local: SocketAddr, remote: SocketAddr, protocol: u8) -> Result<FlowKey, SocketError> {
    let [here, there] = [local, remote].map(|end| end.ip().to_canonical());
    if here.is_unspecified() || there.is_unspecified() {
        return Err(SocketError::Unspecified);
    }
    if local.port() == 0 || remote.port() == 0 {
        return Err(SocketError::PortZero);
    }
    FlowKey::new(there, here, remote.port(), local.port(), protocol).ok_or(SocketError::Families)
}

/// Whether this is a packet of IPv6 that claims to be one of IPv4.
fn is_mapped(packet: &FlowKey) -> bool {
    let FlowKey::V6(packet) = packet else { return false };
    packet.src.to_ipv4_mapped().is_some() || packet.dst.to_ipv4_mapped().is_some()
}
