//! `SocketTable` compared with its reference model after every operation.
//!
//! The table chooses which member of a group gets a packet, but consistently: of two members that
//! were in a group at once, a packet that was for one of them is never for the other while both
//! remain. So a member that joins or leaves does not move packets between other members.

pub mod list;

use core::hash::BuildHasher;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::ops::RangeInclusive;
use std::collections::HashSet;

use flowtable::demux::NotFound;
use flowtable::memory::{Allocator, Global};
use flowtable::sockets::{Match, Name, RejectedSocket, Reuse, SocketError, SocketTable};
use flowtable::{FlowKey, Prehashed, write_to};

use self::list::{Endpoint, Kind, Rank, Reasons, Socket, SocketList, connection, specificity};

pub const V4: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];
pub const V6: [Ipv6Addr; 2] = [
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2),
];

/// Ports that have sockets, and an ephemeral one.
pub const PORTS: [u16; 6] = [0, 1, 2, 80, 5001, 65_535];

/// All addresses of the tests.
pub fn addresses() -> Vec<IpAddr> {
    let mapped = [V4[0], Ipv4Addr::UNSPECIFIED].map(|address| address.to_ipv6_mapped());
    let v4 = [V4[0], V4[1], Ipv4Addr::UNSPECIFIED].map(IpAddr::V4);
    let v6 = [V6[0], V6[1], Ipv6Addr::UNSPECIFIED, mapped[0], mapped[1]].map(IpAddr::V6);
    [&v4[..], &v6].concat()
}

/// Packets between all addresses, from a few ports to all.
pub fn packets() -> Vec<FlowKey> {
    let mut packets = vec![];
    for src in addresses() {
        for dst in addresses() {
            for (sport, dport) in [0, 1, 80].into_iter().flat_map(|from| PORTS.map(|to| (from, to)))
            {
                packets
                    .extend([6, 17].map(|protocol| FlowKey::new(src, dst, sport, dport, protocol)));
            }
        }
    }
    packets.into_iter().flatten().collect()
}

/// The local and the remote end of a packet that has arrived.
fn ends(packet: &FlowKey) -> [SocketAddr; 2] {
    [(packet.dst(), packet.dport()), (packet.src(), packet.sport())].map(SocketAddr::from)
}

pub struct CheckedSockets<S, A: Allocator + Clone = Global> {
    pub ours: SocketTable<u32, S, A>,
    pub model: SocketList<u32>,
    /// Names of removed sockets, the last one last.
    removed: Vec<Name>,
    /// The ids assigned to bound sockets.
    numbers: HashSet<u64>,
    /// A packet, the number of the socket that it went to, and that of one that it did not go to.
    preferred: HashSet<(FlowKey, u64, u64)>,
    now: u32,
    /// Whether requests for memory may fail.
    may_lack_memory: bool,
}

impl<S: BuildHasher + Clone> CheckedSockets<S> {
    pub fn new(limit: usize, hasher: S) -> Self {
        Self { may_lack_memory: false, ..Self::new_in(limit, hasher, Global) }
    }
}

impl<S: BuildHasher + Clone, A: Allocator + Clone> CheckedSockets<S, A> {
    /// A table whose requests for memory may fail, except for clones.
    pub fn new_in(limit: usize, hasher: S, memory: A) -> Self {
        let ours = SocketTable::with_hasher_in(limit, hasher, memory);
        assert_eq!((ours.len(), ours.is_empty(), ours.capacity()), (0, true, limit));
        Self {
            ours,
            model: SocketList::new(limit),
            removed: vec![],
            numbers: HashSet::new(),
            preferred: HashSet::new(),
            now: 0,
            may_lack_memory: true,
        }
    }

    /// Returns a new socket.
    fn fresh(&mut self) -> u32 {
        self.now += 1;
        self.now
    }

    /// The name of an inserted socket; or `None` if it was refused for one of the reasons.
    fn accepted(
        &self,
        result: Result<Name, RejectedSocket<u32>>,
        reasons: &Reasons,
        socket: u32,
    ) -> Option<Name> {
        match result {
            Ok(name) => {
                assert!(reasons.is_empty(), "{name:?} is to be refused: {reasons:?}");
                Some(name)
            }
            Err(RejectedSocket { refused, reason }) => {
                self.check_reason(reason, reasons);
                assert_eq!(refused, socket, "another socket is returned");
                None
            }
        }
    }

    /// Checks that a socket may be refused for this reason.
    fn check_reason(&self, reason: SocketError, reasons: &Reasons) {
        let lacks_memory = self.may_lack_memory && reason == SocketError::NoMemory;
        assert!(lacks_memory || reasons.contains(&reason), "refused: {reason:?}, not {reasons:?}");
    }

    fn put_bound(&mut self, name: Name, at: Endpoint, reuse: Reuse, socket: u32) {
        let Name::Bound { local, id } = name else { panic!("{name:?} is bound") };
        assert_eq!(local, at.local());
        assert_eq!((local.port(), local.protocol()), (at.port, at.protocol));
        assert!(self.numbers.insert(id), "the id {id} was used before");
        self.model.put(name, Kind::Bound(at, reuse), socket);
    }

    pub fn bind(&mut self, at: Endpoint, reuse: Reuse) {
        let socket = self.fresh();
        let reasons = self.model.refuse_bind(at, reuse);
        let result = self.ours.bind(at.local(), reuse, socket);
        if let Some(name) = self.accepted(result, &reasons, socket) {
            self.put_bound(name, at, reuse, socket);
        }
    }

    pub fn bind_ephemeral(&mut self, at: Endpoint, ports: RangeInclusive<u16>, reuse: Reuse) {
        let socket = self.fresh();
        let reasons = self.model.refuse_bind_ephemeral(at, &ports);
        let result = self.ours.bind_ephemeral(at.local(), ports.clone(), reuse, socket);
        if let Some(name) = self.accepted(result, &reasons, socket) {
            let Name::Bound { local, .. } = name else { panic!("{name:?} is bound") };
            let at = at.at_port(local.port().expect("it has a port"));
            assert!(ports.contains(&at.port.expect("as above")), "{name:?} is not in {ports:?}");
            assert!(self.model.is_free_to_bind(at), "{name:?} is taken");
            self.put_bound(name, at, reuse, socket);
        }
    }

    pub fn connect(&mut self, local: SocketAddr, remote: SocketAddr, protocol: u8) {
        let socket = self.fresh();
        let reasons = self.model.refuse_connect(local, remote, protocol);
        let result = self.ours.connect(local, remote, protocol, socket);
        if let Some(name) = self.accepted(result, &reasons, socket) {
            let key = connection(local, remote, protocol).expect("the arguments are valid");
            assert_eq!(name, Name::Connected(key));
            self.put_connected(key, socket);
        }
    }

    /// Accepts the connection of a packet.
    pub fn accept(&mut self, packet: &FlowKey) {
        let socket = self.fresh();
        let [local, remote] = ends(packet);
        let reasons = self.model.refuse_connect(local, remote, packet.protocol());
        let hashed = self.hashed(packet);
        let result = match socket % 2 {
            0 => self.ours.accept(packet, socket),
            _ => self.ours.accept(hashed, socket),
        };
        if let Some(name) = self.accepted(result, &reasons, socket) {
            let key = connection(local, remote, packet.protocol()).expect("both are valid");
            assert_eq!(name, Name::Connected(key));
            self.put_connected(key, socket);
        }
    }

    /// A packet with its hash.
    fn hashed<'k>(&self, key: &'k FlowKey) -> Prehashed<&'k FlowKey> {
        Prehashed { hash: self.ours.hash_of(key), key }
    }

    fn put_connected(&mut self, key: FlowKey, socket: u32) {
        let reuse = self.model.reuse_of(&key);
        self.model.put(Name::Connected(key), Kind::Connected(key, reuse), socket);
    }

    /// Queues a socket for the connection of a packet.
    pub fn queue(&mut self, packet: &FlowKey) {
        let socket = self.fresh();
        let reasons = self.model.refuse_queue(packet);
        let result = self.ours.queue(self.hashed(packet), socket);
        if let Some(name) = self.accepted(result, &reasons, socket) {
            let Name::Queued { key, id } = name else { panic!("{name:?} is queued") };
            let [local, remote] = ends(packet);
            assert_eq!(connection(local, remote, packet.protocol()), Some(key));
            assert!(self.numbers.insert(id), "the id {id} was used before");
            let reuse = self.model.reuse_of(&key);
            self.model.put(name, Kind::Queued(key, reuse), socket);
        }
    }

    /// Moves a socket to another local end.
    pub fn rebind(&mut self, name: &Name, to: Endpoint, reuse: Reuse) {
        let at = self.model.position(name);
        let reasons = self.model.refuse_rebind(at, to, reuse);
        match self.ours.rebind(name, to.local(), reuse) {
            Ok(moved) => {
                assert!(reasons.is_empty(), "{name:?} is to be refused: {reasons:?}");
                let (Name::Bound { id, .. }, local) = (*name, to.local()) else {
                    panic!("{name:?} was bound")
                };
                assert_eq!(moved, Name::Bound { local, id });
                let socket = self.model.sockets.remove(at.expect("it was bound")).socket;
                self.model.put(moved, Kind::Bound(to, reuse), socket);
                if moved != *name {
                    self.removed.push(*name);
                }
            }
            Err(reason) => self.check_reason(reason, &reasons),
        }
    }

    /// Turns a socket into the connection of a packet.
    pub fn connect_bound(&mut self, name: &Name, packet: &FlowKey) {
        let at = self.model.position(name);
        let reasons = self.model.refuse_connect_bound(at, packet);
        match self.ours.connect_bound(name, self.hashed(packet)) {
            Ok(connected) => {
                assert!(reasons.is_empty(), "{name:?} is to be refused: {reasons:?}");
                let [local, remote] = ends(packet);
                let key = connection(local, remote, packet.protocol()).expect("both are valid");
                assert_eq!(connected, Name::Connected(key));
                let bound = self.model.sockets.remove(at.expect("it was bound"));
                let Kind::Bound(_, reuse) = bound.kind else { panic!("{name:?} was bound") };
                self.model.put(connected, Kind::Connected(key, reuse), bound.socket);
                self.removed.push(*name);
            }
            Err(reason) => self.check_reason(reason, &reasons),
        }
    }

    /// Keeps the sockets for which the sum of socket and `number` is no multiple of three, and
    /// changes them.
    pub fn retain(&mut self, number: u32) {
        let is_kept = |socket: u32| (socket + number) % 3 != 0;
        let mut visited = vec![];
        let mut keep = |name: Name, socket: &u32| {
            visited.push(name);
            is_kept(*socket)
        };
        if number % 2 == 0 {
            self.ours.retain(|name, socket| keep(name, socket));
        } else {
            let removed = self.ours.extract_if(|name, socket| !keep(*name, socket));
            let removed: Vec<(Name, u32)> = removed.collect();
            let expected = self.model.sockets.iter().filter(|own| !is_kept(own.socket));
            let expected = expected.map(|own| (own.socket, own.name)).collect();
            let removed = removed.iter().map(|&(name, socket)| (socket, name)).collect();
            assert_eq!(sorted(removed), sorted(expected));
        }
        assert_eq!(visited.len(), self.model.sockets.len(), "each is visited once");
        assert!(visited.iter().all(|name| self.model.position(name).is_some()));
        let sockets = self.model.sockets.drain(..);
        let (kept, removed): (Vec<_>, Vec<_>) = sockets.partition(|own| is_kept(own.socket));
        self.model.sockets = kept;
        self.removed.extend(removed.iter().map(|socket| socket.name));
        self.ours.iter_mut().for_each(|(_, socket)| *socket += 1_000_000);
        self.model.sockets.iter_mut().for_each(|socket| socket.socket += 1_000_000);
    }

    pub fn connect_ephemeral(
        &mut self,
        local: IpAddr,
        remote: SocketAddr,
        protocol: u8,
        ports: RangeInclusive<u16>,
    ) {
        let socket = self.fresh();
        let reasons = self.model.refuse_connect_ephemeral(local, remote, protocol, &ports);
        let result = self.ours.connect_ephemeral(local, remote, protocol, ports.clone(), socket);
        if let Some(name) = self.accepted(result, &reasons, socket) {
            let Name::Connected(key) = name else { panic!("{name:?} is a connection") };
            let from = SocketAddr::new(local, key.dport());
            assert_eq!(Some(key), connection(from, remote, protocol));
            assert!(ports.contains(&key.dport()), "{name:?} is not in {ports:?}");
            assert!(self.model.is_free_to_connect(key), "{name:?} is taken");
            self.model.put(name, Kind::Connected(key, Reuse::No), socket);
        }
    }

    /// Removes a socket by a name of any kind.
    pub fn remove(&mut self, name: &Name) {
        let theirs = self.model.position(name).map(|at| self.model.sockets.remove(at).socket);
        assert_eq!(self.ours.get(name), theirs.as_ref());
        assert_eq!(self.ours.remove(name), theirs.ok_or(NotFound), "{name:?}");
        if theirs.is_some() {
            self.removed.push(*name);
        }
    }

    /// The name of a present socket, by any number, if there are any.
    pub fn nth(&self, number: usize) -> Option<Name> {
        let count = self.model.sockets.len();
        (count > 0).then(|| self.model.sockets[number % count].name)
    }

    /// The name of a removed socket.
    pub fn nth_removed(&self, number: usize) -> Option<Name> {
        (!self.removed.is_empty())
            .then(|| self.removed[self.removed.len() - 1 - number % self.removed.len()])
    }

    /// A forged name: the local end of one socket with the number of another, or a reversed key.
    pub fn forged(&self, one: usize, other: usize) -> Option<Name> {
        match (self.nth(one)?, self.nth(other)?) {
            (Name::Bound { local, .. }, Name::Bound { id, .. }) => Some(Name::Bound { local, id }),
            (Name::Connected(key), _) => Some(Name::Connected(key.reversed())),
            (Name::Queued { key, .. }, Name::Bound { id, .. }) => Some(Name::Queued { key, id }),
            _ => None,
        }
    }

    /// Replaces a socket, if there is one of that name.
    pub fn set(&mut self, name: &Name) {
        let new = self.fresh();
        let ours = self.ours.get_mut(name);
        let theirs = self.model.position(name).map(|at| &mut self.model.sockets[at].socket);
        assert_eq!(ours, theirs, "{name:?}");
        ours.into_iter().chain(theirs).for_each(|socket| *socket = new);
    }

    /// Replaces the socket that a packet is for.
    pub fn set_found(&mut self, packet: &FlowKey) {
        let new = self.fresh();
        let found = self.check(packet);
        let ours = self.ours.lookup_mut(packet);
        let shown = ours.as_ref().map(|ours| Match { socket: *ours.socket, by: ours.by });
        assert_eq!(shown, found, "{packet}");
        if let (Some(ours), Some(found)) = (ours, found) {
            let theirs = self.model.sockets.iter_mut().find(|each| each.socket == found.socket);
            theirs.expect("the socket exists").socket = new;
            *ours.socket = new;
        }
    }

    /// Looks up the sockets of a batch of packets.
    pub fn lookup_batch(&self, packets: &[FlowKey]) {
        let expected: Vec<Option<Match<&u32>>> =
            packets.iter().map(|packet| self.ours.lookup(packet)).collect();
        let mut found = vec![None; packets.len()];
        self.ours.lookup_batch(packets, write_to(&mut found));
        assert_eq!(found, expected);
        let hashed = packets.iter().map(|packet| self.hashed(packet));
        let mut at = 0;
        self.ours.lookup_batch(hashed, |index, found| {
            assert_eq!((index, found), (at, expected[at]));
            at += 1;
        });
        assert_eq!(at, packets.len());
    }

    pub fn clear(&mut self) {
        self.ours.clear();
        self.removed.extend(self.model.sockets.drain(..).map(|socket| socket.name));
    }

    /// Continues with a clone.
    pub fn clone_ours(&mut self) {
        self.ours = self.ours.clone();
    }

    /// Looks up the socket of a packet.
    fn check(&mut self, packet: &FlowKey) -> Option<Match<u32>> {
        let copied = |found: Match<&u32>| Match { socket: *found.socket, by: found.by };
        let found = self.ours.lookup(packet).map(copied);
        let hashed = self.hashed(packet);
        assert_eq!(self.ours.lookup(hashed).map(copied), found);
        let by_mut = self.ours.lookup_mut(hashed);
        assert_eq!(by_mut.map(|ours| Match { socket: *ours.socket, by: ours.by }), found);
        let matches = self.model.matches(packet);
        let shown = |(rank, socket): &(Rank, &Socket<u32>)| Match {
            socket: socket.socket,
            by: specificity(*rank),
        };
        let all: Vec<Match<u32>> = self.ours.matches(hashed).map(copied).collect();
        assert!(all.iter().copied().eq(matches.iter().map(shown)), "{packet}: {all:?}");
        let mut others: Vec<u32> =
            self.model.at_other_addresses(packet).map(|one| one.socket).collect();
        let broadcast = self.ours.broadcast_matches(packet).skip(all.len());
        let mut ours: Vec<u32> = broadcast.map(|found| *found.socket).collect();
        others.sort_unstable();
        ours.sort_unstable();
        assert_eq!(ours, others, "{packet} as a broadcast");
        let Some((best, first)) = matches.first() else {
            assert_eq!(found, None, "{packet} is for no socket");
            return None;
        };
        let has_a_share = |socket: &Socket<u32>| matches!(socket.kind, Kind::Bound(_, Reuse::Port));
        if !has_a_share(first) {
            assert_eq!(found, Some(shown(&matches[0])), "{packet} is for the first socket");
            return found;
        }
        let group = matches.iter().filter(|(rank, one)| rank == best && has_a_share(one));
        let chosen = group.clone().find(|socket| Some(shown(socket)) == found);
        let (_, chosen) = chosen.unwrap_or_else(|| panic!("{packet}: {found:?} of {matches:?}"));
        let Name::Bound { id: winner, .. } = chosen.name else { return found };
        for (_, member) in group {
            let Name::Bound { id, .. } = member.name else { continue };
            if id != winner {
                self.preferred.insert((*packet, winner, id));
                let was = self.preferred.contains(&(*packet, id, winner));
                assert!(!was, "{packet} has moved from {id} to {winner}, both bound");
            }
        }
        found
    }

    /// Compares everything that both can report, and looks these packets up.
    pub fn compare<'a>(&mut self, packets: impl IntoIterator<Item = &'a FlowKey>) {
        self.compare_contents();
        for packet in packets {
            self.check(packet);
        }
    }

    fn compare_contents(&self) {
        self.ours.validate().expect("invariant");
        let Self { ours, model, .. } = self;
        assert_eq!((ours.len(), ours.capacity()), (model.sockets.len(), model.limit));
        assert_eq!(ours.is_empty(), model.sockets.is_empty());
        assert!(ours.len() <= ours.capacity());
        assert_eq!((ours.iter().count(), ours.iter().len()), (ours.len(), ours.len()));
        for socket in &model.sockets {
            assert_eq!(ours.get(&socket.name), Some(&socket.socket), "{:?}", socket.name);
        }
        // Sockets are all different, so none is returned twice.
        let shown = ours.iter().map(|(name, socket)| (*socket, name)).collect();
        let known = model.sockets.iter().map(|socket| (socket.socket, socket.name)).collect();
        assert_eq!(sorted(shown), sorted(known));
        for name in self.removed.iter().rev().take(8) {
            let theirs = model.position(name).map(|at| &model.sockets[at].socket);
            assert_eq!(ours.get(name), theirs, "{name:?}");
        }
    }
}

fn sorted(mut sockets: Vec<(u32, Name)>) -> Vec<(u32, Name)> {
    sockets.sort_unstable_by_key(|(socket, _)| *socket);
    sockets
}
