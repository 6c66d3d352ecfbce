//! Construction, lookups and removals of `SocketTable`.

use core::hash::BuildHasher;

use super::SocketError;
use super::connections::Connections;
use super::ends::{HashedOnce, PacketQuery};
use super::ephemeral::Cursors;
use super::listeners::{Listener, Listeners, Place};
use super::local::{Match, Name};
use super::local::{Reuse, Specificity};
use super::ports::Ports;
use super::{SocketTable, is_mapped, lookup_bound_mut};
use crate::demux::NotFound;
use crate::hash::{DefaultHashBuilder, Query};
use crate::invariant::InvariantError;
use crate::key::flow::FlowKey;
use crate::memory::{Allocator, Global};
use crate::raw::prefetch::BURST;

impl<T> SocketTable<T> {
    /// Creates an empty table of at most `limit` sockets. Allocates nothing.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self::with_hasher(limit, DefaultHashBuilder::new())
    }
}

impl<T> SocketTable<T> {
    /// Creates an empty table whose hashes and ephemeral ports depend on a seed: for programs
    /// without `std`, in which [`new`](Self::new) has no random one.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::sockets::SocketTable;
    ///
    /// let random = 0x243f_6a88_85a3_08d3; // of the hardware
    /// let sockets: SocketTable<u32> = SocketTable::with_seed(100, random);
    /// assert_eq!(sockets.capacity(), 100);
    /// ```
    #[must_use]
    pub fn with_seed(limit: usize, seed: u64) -> Self {
        Self::with_hasher(limit, DefaultHashBuilder::with_seed(seed))
    }
}

impl<T, S: Clone> SocketTable<T, S> {
    /// Creates an empty table of at most `limit` sockets with this hasher.
    ///
    /// The hasher should be seeded with a secret, as it also selects ephemeral ports and the
    /// sockets of groups. A hasher that panics or is inconsistent may make sockets unreachable,
    /// confuse bound sockets and leave ports in use without a socket, but causes no other harm.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::DefaultHashBuilder;
    /// use flowtable::sockets::{Local, Reuse, SocketTable};
    ///
    /// // A program on bare metal, with seeds of its own.
    /// let hasher = DefaultHashBuilder::with_seeds([3, 1, 4, 1]);
    /// let mut sockets = SocketTable::with_hasher(100, hasher);
    /// sockets.bind(Local::new("0.0.0.0:53".parse()?, 17), Reuse::No, "resolver")?;
    /// assert_eq!((sockets.len(), sockets.capacity()), (1, 100));
    /// sockets.clear();
    /// assert!(sockets.is_empty());
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_hasher(limit: usize, hasher: S) -> Self {
        Self::with_hasher_in(limit, hasher, Global)
    }
}

impl<T, A: Allocator + Clone> SocketTable<T, DefaultHashBuilder, A> {
    /// Creates an empty table of at most `limit` sockets whose memory is from `memory`. Allocates
    /// nothing.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::sockets::{Local, Reuse, SocketTable};
    ///
    /// let arena = bumpalo::Bump::new();
    /// let mut sockets = SocketTable::new_in(100, &arena);
    /// sockets.bind(Local::new("0.0.0.0:53".parse()?, 17), Reuse::No, "resolver")?;
    /// assert!(sockets.allocator().allocated_bytes() >= sockets.allocation_size());
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn new_in(limit: usize, memory: A) -> Self {
        Self::with_hasher_in(limit, DefaultHashBuilder::new(), memory)
    }
}

impl<T, S: Clone, A: Allocator + Clone> SocketTable<T, S, A> {
    /// Creates a table as [`with_hasher`](SocketTable::with_hasher), whose memory is from `memory`.
    /// Allocates nothing.
    ///
    /// Insertions into a table without memory return [`SocketError::NoMemory`].
    ///
    /// # Example
    ///
    /// ```
    /// use bumpalo::Bump;
    /// use flowtable::DefaultHashBuilder;
    /// use flowtable::sockets::{Local, Reuse, SocketError, SocketTable};
    ///
    /// let arena = Bump::new();
    /// arena.set_allocation_limit(Some(16_384));
    /// let hasher = DefaultHashBuilder::with_seeds([3, 1, 4, 1]);
    /// let mut sockets = SocketTable::with_hasher_in(1000, hasher, &arena);
    /// let mut bind = |port| {
    ///     sockets.bind(Local::new(([0, 0, 0, 0], port).into(), 17), Reuse::No, port)
    /// };
    /// let error = (1..1000).find_map(|port| bind(port).err()).unwrap();
    /// assert_eq!(error.reason, SocketError::NoMemory);
    /// assert_eq!(sockets.len(), usize::from(error.refused) - 1);
    /// ```
    #[must_use]
    pub fn with_hasher_in(limit: usize, hasher: S, memory: A) -> Self {
        Self {
            connections: Connections::new_in(&hasher, &memory),
            listeners: Listeners::new_in(&hasher, &memory),
            ports: Ports::new_in(&hasher, &memory),
            cursors: Cursors::new_in(memory),
            next_id: 0,
            limit,
        }
    }

    /// Removes all sockets, and frees their memory. If the drop of a socket panics, the table is
    /// empty, and the others are dropped.
    pub fn clear(&mut self) {
        // The table is empty before any socket is dropped, as a drop may panic.
        let (hasher, memory) = (self.connections.hasher().clone(), self.allocator().clone());
        let connections = Connections::new_in(&hasher, &memory);
        let connections = core::mem::replace(&mut self.connections, connections);
        let listeners = Listeners::new_in(&hasher, &memory);
        self.ports = Ports::new_in(&hasher, &memory);
        drop((connections, core::mem::replace(&mut self.listeners, listeners)));
    }
}

impl<T, S, A: Allocator + Clone> SocketTable<T, S, A> {
    /// Returns the allocator that the table was created with.
    #[must_use]
    pub fn allocator(&self) -> &A {
        self.connections.allocator()
    }

    /// Returns the number of bytes allocated. O(1).
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        let sockets = self.connections.allocation_size() + self.listeners.allocation_size();
        sockets + self.ports.allocation_size() + self.cursors.allocation_size()
    }

    /// Returns the number of sockets.
    #[must_use]
    pub fn len(&self) -> usize {
        self.connections.len() + self.listeners.len()
    }

    /// Returns whether there are no sockets.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the limit of the number of sockets.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.limit
    }

    pub(super) fn check_limit(&self) -> Result<(), SocketError> {
        if self.len() < self.limit { Ok(()) } else { Err(SocketError::Full) }
    }
}

impl<T, S: BuildHasher, A: Allocator + Clone> SocketTable<T, S, A> {
    /// Returns the socket that matches a packet best, if any does.
    ///
    /// The `src` of the packet is the remote socket, its `dst` the local one. An IPv6 packet with
    /// an IPv4-mapped address must not be on any wire (RFC 4942, section 2.2), and matches nothing,
    /// as a dual-stack socket would mistake it for an IPv4 packet.
    ///
    /// With a hash at hand, pass a [`Prehashed`](crate::Prehashed), here and to the other methods
    /// that take a packet: the packet with its hash by the hasher of the table
    /// ([`hash_of`](Self::hash_of)). With a different hash, a lookup may miss a connection; and a
    /// connection that is inserted may be unreachable, or in the table twice: then it is not
    /// specified which of both is found or removed, nor whether its port is in use. The hash is
    /// computed from the connection: the table hashes local addresses, ports and queues itself. To
    /// use the hash that a network card delivers, give the table the hasher
    /// [`Rss`](crate::hash::Rss), which computes the same. Then ephemeral ports can be predicted by
    /// those who have the key of the card.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::hash::{Rss, source_index::Toeplitz};
    /// use flowtable::sockets::SocketTable;
    /// use flowtable::{FlowKey, Prehashed};
    ///
    /// let [from, to] = ["66.9.149.187".parse()?, "161.142.100.80".parse()?];
    /// let packet = FlowKey::new(from, to, 2794, 1766, 6).unwrap();
    /// let from_card = Rss::table_hash(0x51cc_c178); // in the descriptor of the packet
    ///
    /// let mut sockets = SocketTable::with_hasher(100, Rss::new(Toeplitz::MICROSOFT));
    /// assert_eq!(sockets.hash_of(&packet), from_card);
    /// let packet = Prehashed { hash: from_card, key: &packet };
    /// sockets.accept(packet, 1)?;
    /// *sockets.lookup_mut(packet).unwrap().socket += 1;
    /// assert_eq!(sockets.lookup(packet).unwrap().socket, &2);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn lookup(&self, packet: impl Query<FlowKey, Key = FlowKey>) -> Option<Match<&T>> {
        match self.connections.get(&packet) {
            (Some(socket), _) => Some(Match { socket, by: Specificity::Connection }),
            (None, hash) => self.lookup_bound(packet, hash),
        }
    }

    /// Returns a mutable reference to the socket that matches a packet best, if any does.
    #[inline]
    #[must_use]
    pub fn lookup_mut(
        &mut self,
        packet: impl Query<FlowKey, Key = FlowKey>,
    ) -> Option<Match<&mut T>> {
        let Self { connections, listeners, .. } = self;
        match connections.get_mut(&packet) {
            (Some(socket), _) => Some(Match { socket, by: Specificity::Connection }),
            (None, hash) => lookup_bound_mut(listeners, packet, hash),
        }
    }

    /// Returns the hash of a packet, for a [`Prehashed`](crate::Prehashed).
    #[inline]
    #[must_use]
    pub fn hash_of(&self, packet: &FlowKey) -> u64 {
        self.connections.hasher().hash_one(packet)
    }

    /// Looks up the sockets of a burst of packets, whose cache misses overlap. Calls `each` with
    /// the index of each packet and the socket that matches it best.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::sockets::{Local, Reuse, SocketTable};
    /// use flowtable::{FlowKey, write_to};
    ///
    /// let udp = 17;
    /// let mut sockets = SocketTable::new(10);
    /// sockets.bind(Local::new("0.0.0.0:53".parse()?, udp), Reuse::No, "resolver")?;
    /// let [from, to] = ["192.0.2.7".parse()?, "198.51.100.1".parse()?];
    /// let packets = [53, 54].map(|port| FlowKey::new(from, to, 5353, port, udp).unwrap());
    /// let mut found = [None; 2];
    /// sockets.lookup_batch(&packets, write_to(&mut found));
    /// assert_eq!(found.map(|found| found.map(|found| *found.socket)), [Some("resolver"), None]);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn lookup_batch<'a, I>(
        &'a self,
        packets: I,
        mut each: impl FnMut(usize, Option<Match<&'a T>>),
    ) where
        I: IntoIterator<Item: Query<FlowKey, Key = FlowKey>, IntoIter: Clone>,
    {
        let mut packets = packets.into_iter();
        if !self.connections.few().is_empty() {
            let each = |(index, packet)| each(index, self.lookup(packet));
            return packets.enumerate().for_each(each);
        }
        let mut index = 0;
        loop {
            let mut connected = [(None, None); BURST];
            let burst = packets.clone().take(BURST);
            self.connections.get_burst(burst, &mut connected);
            let first = index;
            for (connected, packet) in connected.into_iter().zip(&mut packets) {
                let found = match connected {
                    (Some(socket), _) => Some(Match { socket, by: Specificity::Connection }),
                    (None, hash) => self.lookup_bound(packet, hash),
                };
                each(index, found);
                index += 1;
            }
            if index - first < BURST {
                return;
            }
        }
    }

    /// Iterates over all sockets that match a packet, the best match first.
    ///
    /// A packet sent by multicast or broadcast is delivered to each of them.
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
    pub fn matches(
        &self,
        packet: impl Query<FlowKey, Key = FlowKey>,
    ) -> impl Iterator<Item = Match<&T>> {
        let packet = HashedOnce::new(packet);
        let connection = self.connections.get(&packet).0;
        let connection = connection.map(|socket| Match { socket, by: Specificity::Connection });
        let bound = (!is_mapped(packet.key())).then(|| self.listeners.matches(packet));
        connection.into_iter().chain(bound.into_iter().flatten().map(Listener::found))
    }

    /// Iterates over all sockets for a packet that was sent by broadcast or multicast, in a stack
    /// whose sockets get these whatever address they are bound to, as in smoltcp: those that
    /// [match](Self::matches), and then those that are bound to another address of its version, and
    /// to its port.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::FlowKey;
    /// use flowtable::sockets::{Local, Reuse, SocketTable};
    ///
    /// let udp = 17;
    /// let mut sockets = SocketTable::new(10);
    /// sockets.bind(Local::new("192.0.2.1:68".parse()?, udp), Reuse::No, "client")?;
    /// let offer = FlowKey::new([192, 0, 2, 254].into(), [255; 4].into(), 67, 68, udp).unwrap();
    /// assert_eq!(sockets.matches(&offer).count(), 0);
    /// assert!(sockets.broadcast_matches(&offer).map(|found| *found.socket).eq(["client"]));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn broadcast_matches(
        &self,
        packet: impl Query<FlowKey, Key = FlowKey>,
    ) -> impl Iterator<Item = Match<&T>> {
        let key = *packet.key();
        let others = (!is_mapped(&key)).then(|| self.listeners.at_other_addresses(key));
        self.matches(packet).chain(others.into_iter().flatten().map(Listener::found))
    }

    /// Returns the bound socket that matches a packet best, given the hash of the packet if it was
    /// computed.
    #[inline]
    fn lookup_bound(&self, packet: impl PacketQuery, hash: Option<u64>) -> Option<Match<&T>> {
        if self.listeners.len() == 0 || is_mapped(packet.key()) {
            return None;
        }
        self.listeners.find(&HashedOnce::with(packet, hash)).map(Listener::found)
    }

    /// Returns the socket with this name.
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
    /// let [from, to] = ["192.0.2.7".parse()?, "198.51.100.1".parse()?];
    /// let query = FlowKey::new(from, to, 5353, 53, udp).unwrap();
    /// // It is found by a packet, and by its name.
    /// *sockets.lookup_mut(&query).unwrap().socket += 1;
    /// *sockets.get_mut(&name).unwrap() += 1;
    /// assert_eq!(sockets.get(&name), Some(&2));
    /// assert!(sockets.iter().eq([(name, &2)]));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn get(&self, name: &Name) -> Option<&T> {
        match name {
            Name::Connected(key) => self.connections.get(&key).0,
            Name::Bound { local, id } => self.listener(Place::Bound(*local), *id),
            Name::Queued { key, id } => self.listener(Place::Queued(*key), *id),
        }
    }

    fn listener(&self, place: Place, id: u64) -> Option<&T> {
        let listener = self.listeners.get(&self.listeners.hashed(place), id);
        listener.map(|listener| &listener.socket)
    }

    /// Returns a mutable reference to the socket with this name.
    #[must_use]
    pub fn get_mut(&mut self, name: &Name) -> Option<&mut T> {
        let (place, id) = match *name {
            Name::Connected(key) => return self.connections.get_mut(&&key).0,
            Name::Bound { local, id } => (Place::Bound(local), id),
            Name::Queued { key, id } => (Place::Queued(key), id),
        };
        let place = self.listeners.hashed(place);
        self.listeners.get_mut(&place, id).map(|listener| &mut listener.socket)
    }

    /// Removes the socket with this name and returns it.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn remove(&mut self, name: &Name) -> Result<T, NotFound> {
        let Self { connections, listeners, ports, .. } = self;
        let (place, id) = match name {
            Name::Connected(key) => return connections.remove(ports, key).ok_or(NotFound),
            Name::Bound { local, id } => (Place::Bound(*local), id),
            Name::Queued { key, id } => (Place::Queued(*key), id),
        };
        let removed = listeners.remove(place, *id).ok_or(NotFound)?;
        ports.remove_listener(&removed);
        Ok(removed.socket)
    }

    /// Removes the sockets for which `keep` returns false.
    pub fn retain(&mut self, mut keep: impl FnMut(Name, &mut T) -> bool) {
        let Self { connections, listeners, ports, .. } = self;
        let mut slot = 0;
        while let Some(removed) =
            listeners.extract_next(&mut slot, |name, socket| !keep(name, socket))
        {
            ports.remove_listener(&removed);
        }
        connections.retain(ports, |key, socket| keep(Name::Connected(key), socket));
    }

    /// Checks all invariants, for tests. O(sockets).
    ///
    /// # Errors
    ///
    /// The broken invariant: a bug in this crate, or an inconsistent hasher.
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
    pub fn validate(&self) -> Result<(), InvariantError> {
        let connections = self.connections.validate();
        connections.map_err(|broken| broken.within(format_args!("connections")))?;
        let listeners = self.listeners.validate();
        listeners.map_err(|broken| broken.within(format_args!("bound sockets")))?;
        let bound = self.listeners.iter().filter_map(|listener| listener.local().copied());
        let queued = self.listeners.iter().filter_map(|listener| match listener.place {
            Place::Queued(key) => Some((key, listener.reuse != Reuse::No)),
            Place::Bound(_) => None,
        });
        let is_connected = |key: &FlowKey| self.connections.get_mapped(&key).0.is_some();
        let connections = self.connections.mapped().chain(queued);
        let ports = self.ports.validate(bound, connections, is_connected);
        ports.map_err(|broken| broken.within(format_args!("ports")))
    }
}
