//! Insertion into a socket table: `bind` and `connect`.

use core::hash::BuildHasher;
use core::net::{IpAddr, SocketAddr};
use core::ops::RangeInclusive;

use super::ends::{HashedOnce, PacketQuery};
use super::listeners::{HashedPlace, Links, Listener, Place};
use super::ports::Ports;
use super::{Local, Name, RejectedSocket, Reuse, SocketError, SocketTable, ephemeral};
use crate::hash::{Prehashed, Query};
use crate::key::flow::{FiveTuple, FlowKey};
use crate::memory::Allocator;
use crate::raw::slab::OptIndex;

impl<T, S: BuildHasher, A: Allocator + Clone> SocketTable<T, S, A> {
    /// Binds a socket to a local address: it gets the packets that belong to no connection.
    ///
    /// # Errors
    ///
    /// If the port is 0, the table has reached its limit, a bound socket conflicts (see the
    /// [module](crate::sockets)), or memory allocation fails. The error returns the socket.
    pub fn bind(
        &mut self,
        local: Local,
        reuse: Reuse,
        socket: T,
    ) -> Result<Name, RejectedSocket<T>> {
        let reason = if local.port == Some(0) {
            SocketError::PortZero
        } else if let Err(reason) = self.check_limit() {
            reason
        } else {
            let place = self.listeners.hashed(Place::Bound(local));
            if !self.is_in_use(&place, &local, reuse, OptIndex::NONE) {
                return self.insert_bound(&place, &local, reuse, socket);
            }
            SocketError::InUse
        };
        Err(RejectedSocket { refused: socket, reason })
    }

    /// Returns whether a socket cannot be bound to a local address, or moved there.
    fn is_in_use(&self, place: &HashedPlace, local: &Local, reuse: Reuse, moved: OptIndex) -> bool {
        let allows_reuse = reuse != Reuse::No;
        self.listeners.conflicts(place, local, reuse, moved)
            || self.connections.few_have(local, allows_reuse)
            || self.ports.is_connected(local, allows_reuse)
    }

    /// Binds a socket to a free port of a range. The port of `local` is ignored.
    ///
    /// The port is selected by the hash, which should be seeded with a secret, so that one port
    /// does not reveal the next: algorithm 1 of RFC 6056. Ports are tested 512 at a time.
    ///
    /// # Errors
    ///
    /// If the range is empty or contains port 0, the table has reached its limit, all ports are in
    /// use, or memory allocation fails. The error returns the socket.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::sockets::{Local, Name, Reuse, SocketTable};
    ///
    /// let mut sockets = SocketTable::new(10);
    /// let any = Local::new("0.0.0.0:0".parse()?, 17);
    /// let name = sockets.bind_ephemeral(any, 49_152..=65_535, Reuse::No, "client")?;
    /// let Name::Bound { local, .. } = name else { unreachable!("it is bound") };
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
        if let Err(reason) = ephemeral::check(&ports).and_then(|()| self.check_limit()) {
            return Err(RejectedSocket { refused: socket, reason });
        }
        let Self { connections, ports: used, .. } = self;
        let taken = |used: &Ports<S, A>, port| used.taken(&local.at_port(port));
        let is_free =
            |_: &mut Ports<S, A>, port| !connections.few_have(&local.at_port(port), false);
        // The id takes the place of a destination, so that one port does not reveal the next.
        let hash = connections.hasher().hash_one((local.at_port(0), self.next_id));
        let random = |index| connections.hasher().hash_one(index);
        match self.cursors.next(hash, &ports, random, used, taken, is_free) {
            Ok(port) => {
                let local = local.at_port(port);
                let place = self.listeners.hashed(Place::Bound(local));
                self.insert_bound(&place, &local, reuse, socket)
            }
            Err(reason) => Err(RejectedSocket { refused: socket, reason }),
        }
    }

    fn insert_bound(
        &mut self,
        place: &HashedPlace,
        local: &Local,
        reuse: Reuse,
        socket: T,
    ) -> Result<Name, RejectedSocket<T>> {
        let refused = if self.ports.insert_bound(local) {
            match self.insert_listener(place, reuse, socket) {
                Ok(name) => return Ok(name),
                Err(refused) => {
                    self.ports.remove_bound(local);
                    refused
                }
            }
        } else {
            socket
        };
        Err(RejectedSocket { refused, reason: SocketError::NoMemory })
    }

    /// Inserts a socket that is no connection. Returns it if memory allocation fails.
    fn insert_listener(&mut self, at: &HashedPlace, reuse: Reuse, socket: T) -> Result<Name, T> {
        let (place, id, links) = (at.place, self.next_id, Links::NONE);
        let listener = Listener { place, reuse, id, socket, links };
        let name = listener.name();
        self.listeners.insert(listener, at)?;
        self.next_id += 1;
        Ok(name)
    }

    /// Moves a bound socket to another local address, without removing it: for an interface whose
    /// address changes, or a port that is chosen late. Its id stays; its name has the new address.
    ///
    /// # Errors
    ///
    /// [`NotFound`](SocketError::NotFound) if no bound socket has this name; and as
    /// [`bind`](Self::bind), but for the limit. Then the socket remains where it is.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::sockets::{Local, Reuse, SocketTable};
    ///
    /// let udp = 17;
    /// let mut sockets = SocketTable::new(1);
    /// let old = sockets.bind(Local::new("192.0.2.1:53".parse()?, udp), Reuse::No, "resolver")?;
    /// let new = sockets.rebind(&old, Local::new("192.0.2.2:53".parse()?, udp), Reuse::No)?;
    /// assert_eq!((sockets.get(&old), sockets.get(&new)), (None, Some(&"resolver")));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn rebind(&mut self, name: &Name, to: Local, reuse: Reuse) -> Result<Name, SocketError> {
        let Name::Bound { local, id } = *name else { return Err(SocketError::NotFound) };
        if to.port == Some(0) {
            return Err(SocketError::PortZero);
        }
        let old = self.listeners.hashed(Place::Bound(local));
        let at = self.listeners.index_of_bound(&old, id);
        if at.is_none() {
            return Err(SocketError::NotFound);
        }
        let new = self.listeners.hashed(Place::Bound(to));
        if self.is_in_use(&new, &to, reuse, at) {
            return Err(SocketError::InUse);
        }
        if !self.ports.insert_bound(&to) {
            return Err(SocketError::NoMemory);
        }
        if !self.listeners.rebind(at, [&old, &new], reuse) {
            self.ports.remove_bound(&to);
            return Err(SocketError::NoMemory);
        }
        self.ports.remove_bound(&local);
        Ok(Name::Bound { local: to, id })
    }

    /// Inserts a connection.
    ///
    /// A bound socket at its port does not conflict: accepted connections share the port of their
    /// listener. They have its reuse, as of the time when they are inserted; without a bound socket
    /// at its port, a connection has [`Reuse::No`].
    ///
    /// # Errors
    ///
    /// If an address is unspecified or a port 0, the addresses are of different versions, the table
    /// has reached its limit, the connection exists, or memory allocation fails. The error returns
    /// the socket.
    pub fn connect(
        &mut self,
        local: SocketAddr,
        remote: SocketAddr,
        protocol: u8,
        socket: T,
    ) -> Result<Name, RejectedSocket<T>> {
        match connection(local, remote, protocol) {
            Ok(key) => self.insert_connected(&key, socket),
            Err(reason) => Err(RejectedSocket { refused: socket, reason }),
        }
    }

    /// Inserts the connection of a packet that has arrived: its `src` is the remote socket, its
    /// `dst` the local one.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::FlowKey;
    /// use flowtable::sockets::{Local, Name, Reuse, SocketTable};
    ///
    /// let tcp = 6;
    /// let mut sockets = SocketTable::new(10);
    /// sockets.bind(Local::new("0.0.0.0:80".parse()?, tcp), Reuse::No, "listener")?;
    /// let [from, to] = ["192.0.2.7".parse()?, "198.51.100.1".parse()?];
    /// let syn = FlowKey::new(from, to, 40_000, 80, tcp).unwrap();
    /// assert_eq!(*sockets.lookup(&syn).unwrap().socket, "listener");
    /// assert_eq!(sockets.accept(&syn, "connection")?, Name::Connected(syn));
    /// assert_eq!(*sockets.lookup(&syn).unwrap().socket, "connection");
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn accept(
        &mut self,
        packet: impl Query<FlowKey, Key = FlowKey>,
        socket: T,
    ) -> Result<Name, RejectedSocket<T>> {
        match converted(packet.key()) {
            Ok(None) => self.insert_connected(packet, socket),
            Ok(Some(key)) => self.insert_connected(&key, socket),
            Err(reason) => Err(RejectedSocket { refused: socket, reason }),
        }
    }

    /// Turns a bound socket into the connection of this packet, whose `dst` it is bound to.
    ///
    /// It is for `connect` of a socket that is bound, and for a listener of one connection. The
    /// table has as many sockets as before, so it may be full.
    ///
    /// # Errors
    ///
    /// [`NotFound`](SocketError::NotFound) if no bound socket has this name,
    /// [`OtherAddress`](SocketError::OtherAddress) if it is bound to an address, port or protocol
    /// that the packet does not have; and as [`connect`](Self::connect), but for the limit. The
    /// socket remains bound.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::FlowKey;
    /// use flowtable::sockets::{Local, Name, Reuse, SocketTable};
    ///
    /// let udp = 17;
    /// let mut sockets = SocketTable::new(1);
    /// let bound = sockets.bind(Local::new("0.0.0.0:4500".parse()?, udp), Reuse::No, "peer")?;
    /// let [from, to] = ["192.0.2.7".parse()?, "198.51.100.1".parse()?];
    /// let answer = FlowKey::new(from, to, 4500, 4500, udp).unwrap();
    /// assert_eq!(sockets.connect_bound(&bound, &answer)?, Name::Connected(answer));
    /// assert_eq!((sockets.get(&bound), sockets.len()), (None, 1));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn connect_bound(
        &mut self,
        name: &Name,
        packet: impl Query<FlowKey, Key = FlowKey>,
    ) -> Result<Name, SocketError> {
        let Name::Bound { local, id } = *name else { return Err(SocketError::NotFound) };
        match converted(packet.key())? {
            None => self.connect_listener(local, id, &HashedOnce::new(packet)),
            Some(key) => self.connect_listener(local, id, &HashedOnce::new(&key)),
        }
    }

    /// Turns a bound socket into a connection, whose key has no IPv4-mapped address.
    fn connect_listener(
        &mut self,
        local: Local,
        id: u64,
        packet: &impl PacketQuery,
    ) -> Result<Name, SocketError> {
        let (place, key) = (self.listeners.hashed(Place::Bound(local)), *packet.key());
        if self.listeners.get(&place, id).is_none() {
            return Err(SocketError::NotFound);
        }
        let is_at = local.takes(key.dst())
            && local.port.is_none_or(|port| port == key.dport())
            && local.protocol == key.protocol();
        if !is_at {
            return Err(SocketError::OtherAddress);
        }
        if self.listeners.has_queue(packet) {
            return Err(SocketError::InUse);
        }
        let Some((index, listener)) = self.listeners.take(&place, id) else {
            return Err(SocketError::NotFound);
        };
        let Listener { place: bound, reuse, id, socket, links } = listener;
        let Self { connections, ports, .. } = self;
        match connections.insert(ports, packet, reuse != Reuse::No, socket) {
            Ok(()) => {
                self.listeners.unlink(&place, reuse, links, index);
                self.ports.remove_bound(&local);
                Ok(Name::Connected(key))
            }
            Err(RejectedSocket { refused: socket, reason }) => {
                self.listeners.put_back(Listener { place: bound, reuse, id, socket, links });
                Err(reason)
            }
        }
    }

    /// Inserts a socket behind the connection of a packet: it gets the packets when the sockets
    /// before it have been removed. So a stack whose sockets may share a connection, the first of
    /// which gets its packets, needs no list of those that wait.
    ///
    /// A connection that has such sockets cannot be inserted again until they are removed.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect), but a connection may exist, or not.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::FlowKey;
    /// use flowtable::sockets::SocketTable;
    ///
    /// let mut sockets = SocketTable::new(10);
    /// let [from, to] = ["192.0.2.7".parse()?, "198.51.100.1".parse()?];
    /// let segment = FlowKey::new(from, to, 40_000, 80, 6).unwrap();
    /// let first = sockets.accept(&segment, "first")?;
    /// let second = sockets.queue(&segment, "second")?;
    /// assert_eq!(*sockets.lookup(&segment).unwrap().socket, "first");
    /// sockets.remove(&first)?;
    /// assert_eq!(*sockets.lookup(&segment).unwrap().socket, "second");
    /// assert_eq!(sockets.remove(&second)?, "second");
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn queue(
        &mut self,
        packet: impl Query<FlowKey, Key = FlowKey>,
        socket: T,
    ) -> Result<Name, RejectedSocket<T>> {
        let converted = converted(packet.key());
        let key = match converted.and_then(|key| self.check_limit().map(|()| key)) {
            Ok(converted) => converted.unwrap_or(*packet.key()),
            Err(reason) => return Err(RejectedSocket { refused: socket, reason }),
        };
        // Not by the hash of the packet: by a wrong one, the places of others could not be found.
        let place = self.listeners.hashed(Place::Queued(key));
        let reuse = self.listeners.reuse_of(&key);
        let refused = if self.ports.insert_local(&key, reuse != Reuse::No) {
            match self.insert_listener(&place, reuse, socket) {
                Ok(name) => return Ok(name),
                Err(refused) => {
                    self.ports.remove_local(&key, reuse != Reuse::No);
                    refused
                }
            }
        } else {
            socket
        };
        Err(RejectedSocket { refused, reason: SocketError::NoMemory })
    }

    /// Inserts a connection from a port of a range that no bound socket has, and no connection to
    /// `remote`.
    ///
    /// Ports are selected in the order of RFC 6056, which is secret if the hasher is seeded with a
    /// secret. Ports are tested 512 at a time. Only those below 32,768 that
    /// [`connect`](Self::connect) or [`accept`](Self::accept) used before the first call with this
    /// range cost a lookup each, once.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect), and if the range is empty or contains port 0, or all its
    /// ports are in use. The error returns the socket.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::sockets::{SocketError, SocketTable};
    ///
    /// let mut sockets = SocketTable::new(10);
    /// let (local, remote) = ("192.0.2.1".parse()?, "198.51.100.1:443".parse()?);
    /// for socket in 0..2 {
    ///     sockets.connect_ephemeral(local, remote, 6, 50_000..=50_001, socket)?;
    /// }
    /// let error = sockets.connect_ephemeral(local, remote, 6, 50_000..=50_001, 2).unwrap_err();
    /// assert_eq!((error.refused, error.reason), (2, SocketError::NoPort));
    /// // Connections to another destination may use these ports, too.
    /// sockets.connect_ephemeral(local, "198.51.100.2:443".parse()?, 6, 50_000..=50_001, 2)?;
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
        let first = SocketAddr::new(local, *ports.start());
        let checked = ephemeral::check(&ports).and_then(|()| connection(first, remote, protocol));
        let key = match checked.and_then(|key| self.check_limit().map(|()| key)) {
            Ok(key) => key,
            Err(reason) => return Err(RejectedSocket { refused: socket, reason }),
        };
        let Self { connections, listeners, ports: used, cursors, .. } = self;
        let hasher = connections.hasher();
        used.track(&ports);
        let here = Local::new(SocketAddr::new(key.dst(), 0), protocol);
        let from = |port| at_port(&key, port);
        let taken = |used: &Ports<S, A>, port| {
            used.taken_by_bound(&here.at_port(port)) | used.taken_to(&from(port))
        };
        let mut examined = Prehashed { hash: 0, key };
        let is_free = |used: &mut Ports<S, A>, port| {
            let key = from(port);
            examined = Prehashed { hash: hasher.hash_one(key), key };
            if connections.get(&examined.as_ref()).0.is_none() {
                return !listeners.has_queue(&examined.as_ref());
            }
            if connections.few().is_empty() {
                used.insert_remote(&key);
            }
            false
        };
        let hash = hasher.hash_one((key.src(), key.sport(), key.dst(), protocol));
        let random = |index| hasher.hash_one(index);
        match cursors.next(hash, &ports, random, used, taken, is_free) {
            Ok(_) => self.insert_connected(examined.as_ref(), socket),
            Err(reason) => Err(RejectedSocket { refused: socket, reason }),
        }
    }

    #[inline]
    fn insert_connected(
        &mut self,
        connection: impl PacketQuery,
        socket: T,
    ) -> Result<Name, RejectedSocket<T>> {
        let connection = HashedOnce::new(connection);
        let key = connection.key();
        let reason = match self.check_limit() {
            Ok(()) if self.listeners.has_queue(&connection) => SocketError::InUse,
            Ok(()) => {
                let allows_reuse = self.listeners.reuse_of(key) != Reuse::No;
                let Self { connections, ports, .. } = self;
                let inserted = connections.insert(ports, &connection, allows_reuse, socket);
                return inserted.map(|()| Name::Connected(*key));
            }
            Err(reason) => reason,
        };
        Err(RejectedSocket { refused: socket, reason })
    }
}

/// The key of a connection between the same addresses, from another local port.
#[inline]
fn at_port(key: &FlowKey, dport: u16) -> FlowKey {
    match *key {
        FlowKey::V4(key) => FlowKey::V4(FiveTuple { dport, ..key }),
        FlowKey::V6(key) => FlowKey::V6(FiveTuple { dport, ..key }),
    }
}

/// Returns the key of a packet's connection if it differs from the key of the packet: if the packet
/// has IPv4-mapped addresses.
#[inline]
fn converted(packet: &FlowKey) -> Result<Option<FlowKey>, SocketError> {
    match packet {
        FlowKey::V4(key) if key.src.is_unspecified() || key.dst.is_unspecified() => {
            Err(SocketError::Unspecified)
        }
        FlowKey::V4(key) if key.sport == 0 || key.dport == 0 => Err(SocketError::PortZero),
        FlowKey::V4(_) => Ok(None),
        FlowKey::V6(_) => converted_v6(packet),
    }
}

/// [`converted`] for a packet of IPv6.
#[inline(never)]
fn converted_v6(packet: &FlowKey) -> Result<Option<FlowKey>, SocketError> {
    let local = SocketAddr::new(packet.dst(), packet.dport());
    let remote = SocketAddr::new(packet.src(), packet.sport());
    let key = connection(local, remote, packet.protocol())?;
    Ok(matches!(key, FlowKey::V4(_)).then_some(key))
}

/// The key of a connection, as its packets arrive.
fn connection(local: SocketAddr, remote: SocketAddr, protocol: u8) -> Result<FlowKey, SocketError> {
    let (dst, src) = (local.ip().to_canonical(), remote.ip().to_canonical());
    if dst.is_unspecified() || src.is_unspecified() {
        return Err(SocketError::Unspecified);
    }
    if local.port() == 0 || remote.port() == 0 {
        return Err(SocketError::PortZero);
    }
    let key = FlowKey::new(src, dst, remote.port(), local.port(), protocol);
    key.ok_or(SocketError::MixedFamilies)
}
