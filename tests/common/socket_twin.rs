//! A table of sockets beside its naive twin: every step is taken on both, and compared.
//!
//! Which member of a group gets a packet is the table's own business, but it must be a choice: of two members
//! that were in a group at once, a packet that has been given to the one is never given to the other while
//! both are there. So members that join or leave move nobody else's packets.
#![allow(dead_code, reason = "not every test needs all")]

use core::hash::BuildHasher;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::ops::RangeInclusive;
use std::collections::HashSet;

use flowtable::FlowKey;
use flowtable::demux::{Match, Name, NotFound, Refused, Reuse, SocketError, SocketTable};

use super::naive_sockets::{
    At, Kind, NaiveSockets, Rank, Reasons, Socket, connection, specificity,
};

pub(crate) const V4: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];
pub(crate) const V6: [Ipv6Addr; 2] = [
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2),
];

/// Ports that have sockets, and one of those that are handed out.
pub(crate) const PORTS: [u16; 6] = [0, 1, 2, 80, 5001, 65_535];

/// All addresses that there are.
pub(crate) fn addresses() -> Vec<IpAddr> {
    let mapped = [V4[0], Ipv4Addr::UNSPECIFIED].map(|address| address.to_ipv6_mapped());
    let v4 = [V4[0], V4[1], Ipv4Addr::UNSPECIFIED].map(IpAddr::V4);
    let v6 = [V6[0], V6[1], Ipv6Addr::UNSPECIFIED, mapped[0], mapped[1]].map(IpAddr::V6);
    [&v4[..], &v6].concat()
}

/// Packets between all addresses, from a few ports to all.
pub(crate) fn packets() -> Vec<FlowKey> {
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

pub(crate) struct Twin<S> {
    pub(crate) ours: SocketTable<u32, S>,
    pub(crate) naive: NaiveSockets<u32>,
    /// Names of the sockets that have left, the last one last.
    gone: Vec<Name>,
    /// Numbers that bound sockets have had.
    numbers: HashSet<u64>,
    /// A packet, the number of the socket that it went to, and that of one that it did not go to.
    preferred: HashSet<(FlowKey, u64, u64)>,
    now: u32,
}

impl<S: BuildHasher + Clone> Twin<S> {
    pub(crate) fn new(limit: usize, hasher: S) -> Self {
        let ours = SocketTable::with_hasher(limit, hasher);
        assert_eq!((ours.len(), ours.is_empty(), ours.capacity()), (0, true, limit));
        Self {
            ours,
            naive: NaiveSockets::new(limit),
            gone: vec![],
            numbers: HashSet::new(),
            preferred: HashSet::new(),
            now: 0,
        }
    }

    /// A socket that has not been there.
    fn fresh(&mut self) -> u32 {
        self.now += 1;
        self.now
    }

    /// The name of what was put in; or nothing, if it was refused for one of the reasons.
    fn judge(
        result: Result<Name, Refused<u32, SocketError>>,
        reasons: &Reasons,
        socket: u32,
    ) -> Option<Name> {
        match result {
            Ok(name) => {
                assert!(reasons.is_empty(), "{name:?} is to be refused: {reasons:?}");
                Some(name)
            }
            Err(Refused { given, why }) => {
                assert!(reasons.contains(&why), "refused: {why:?}, not one of {reasons:?}");
                assert_eq!(given, socket, "another socket is given back");
                None
            }
        }
    }

    fn put_bound(&mut self, name: Name, at: At, reuse: Reuse, socket: u32) {
        let Name::Bound { local, number } = name else { panic!("{name:?} is bound") };
        assert_eq!(local, at.local());
        assert_eq!((local.port(), local.protocol()), (at.port, at.protocol));
        assert!(self.numbers.insert(number), "the number {number} has been there");
        self.naive.put(name, Kind::Bound(at, reuse), socket);
    }

    pub(crate) fn bind(&mut self, at: At, reuse: Reuse) {
        let socket = self.fresh();
        let reasons = self.naive.refuse_bind(at, reuse);
        let result = self.ours.bind(at.local(), reuse, socket);
        if let Some(name) = Self::judge(result, &reasons, socket) {
            self.put_bound(name, at, reuse, socket);
        }
    }

    pub(crate) fn bind_ephemeral(&mut self, at: At, ports: RangeInclusive<u16>, reuse: Reuse) {
        let socket = self.fresh();
        let reasons = self.naive.refuse_bind_ephemeral(at, &ports);
        let result = self.ours.bind_ephemeral(at.local(), ports.clone(), reuse, socket);
        if let Some(name) = Self::judge(result, &reasons, socket) {
            let Name::Bound { local, .. } = name else { panic!("{name:?} is bound") };
            let at = at.at_port(local.port().expect("it has one"));
            assert!(ports.contains(&at.port.expect("as above")), "{name:?} is not in {ports:?}");
            assert!(self.naive.is_free_to_bind(at), "{name:?} is taken");
            self.put_bound(name, at, reuse, socket);
        }
    }

    pub(crate) fn connect(&mut self, local: SocketAddr, remote: SocketAddr, protocol: u8) {
        let socket = self.fresh();
        let reasons = self.naive.refuse_connect(local, remote, protocol);
        let result = self.ours.connect(local, remote, protocol, socket);
        if let Some(name) = Self::judge(result, &reasons, socket) {
            let key = connection(local, remote, protocol).expect("nothing is wrong with it");
            assert_eq!(name, Name::Connected(key));
            self.naive.put(name, Kind::Connected(key), socket);
        }
    }

    pub(crate) fn connect_ephemeral(
        &mut self,
        local: IpAddr,
        remote: SocketAddr,
        protocol: u8,
        ports: RangeInclusive<u16>,
    ) {
        let socket = self.fresh();
        let reasons = self.naive.refuse_connect_ephemeral(local, remote, protocol, &ports);
        let result = self.ours.connect_ephemeral(local, remote, protocol, ports.clone(), socket);
        if let Some(name) = Self::judge(result, &reasons, socket) {
            let Name::Connected(key) = name else { panic!("{name:?} is a connection") };
            let from = SocketAddr::new(local, key.dport());
            assert_eq!(Some(key), connection(from, remote, protocol));
            assert!(ports.contains(&key.dport()), "{name:?} is not in {ports:?}");
            assert!(self.naive.is_free_to_connect(key), "{name:?} is taken");
            self.naive.put(name, Kind::Connected(key), socket);
        }
    }

    /// Takes out a socket by a name of any kind.
    pub(crate) fn remove(&mut self, name: &Name) {
        let theirs = self.naive.position(name).map(|at| self.naive.sockets.remove(at).socket);
        assert_eq!(self.ours.get(name), theirs.as_ref());
        assert_eq!(self.ours.remove(name), theirs.ok_or(NotFound), "{name:?}");
        if theirs.is_some() {
            self.gone.push(*name);
        }
    }

    /// The name of a socket that is there, by any number, if there are any.
    pub(crate) fn nth(&self, number: usize) -> Option<Name> {
        let count = self.naive.sockets.len();
        (count > 0).then(|| self.naive.sockets[number % count].name)
    }

    /// The name of one that has been there.
    pub(crate) fn nth_gone(&self, number: usize) -> Option<Name> {
        (!self.gone.is_empty()).then(|| self.gone[self.gone.len() - 1 - number % self.gone.len()])
    }

    /// A name that no socket has, or another one than meant: of one's place and another's number, or reversed.
    pub(crate) fn forged(&self, one: usize, other: usize) -> Option<Name> {
        match (self.nth(one)?, self.nth(other)?) {
            (Name::Bound { local, .. }, Name::Bound { number, .. }) => {
                Some(Name::Bound { local, number })
            }
            (Name::Connected(key), _) => Some(Name::Connected(key.reversed())),
            _ => None,
        }
    }

    /// Changes a socket, or nothing if there is none of that name.
    pub(crate) fn set(&mut self, name: &Name) {
        let new = self.fresh();
        let ours = self.ours.get_mut(name);
        let theirs = self.naive.position(name).map(|at| &mut self.naive.sockets[at].socket);
        assert_eq!(ours, theirs, "{name:?}");
        ours.into_iter().chain(theirs).for_each(|socket| *socket = new);
    }

    /// Changes the socket that a packet is for.
    pub(crate) fn set_found(&mut self, packet: &FlowKey) {
        let new = self.fresh();
        let found = self.check(packet);
        let ours = self.ours.lookup_mut(packet);
        let shown = ours.as_ref().map(|ours| Match { socket: *ours.socket, by: ours.by });
        assert_eq!(shown, found, "{packet}");
        if let (Some(ours), Some(found)) = (ours, found) {
            let theirs = self.naive.sockets.iter_mut().find(|each| each.socket == found.socket);
            theirs.expect("it is there").socket = new;
            *ours.socket = new;
        }
    }

    /// Looks for packets all at once.
    pub(crate) fn lookup_batch(&self, packets: &[FlowKey]) {
        let expected: Vec<Option<Match<&u32>>> =
            packets.iter().map(|packet| self.ours.lookup(packet)).collect();
        // What was there before is overwritten, with nothing, too.
        let (stale, none) = (packets.iter().find_map(|packet| self.ours.lookup(packet)), None);
        for before in [stale, none] {
            let mut found = vec![before; packets.len()];
            self.ours.lookup_batch(packets, &mut found);
            assert_eq!(found, expected);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.ours.clear();
        self.gone.extend(self.naive.sockets.drain(..).map(|socket| socket.name));
    }

    /// Goes on with a clone.
    pub(crate) fn clone_ours(&mut self) {
        self.ours = self.ours.clone();
    }

    /// Looks for a packet.
    fn check(&mut self, packet: &FlowKey) -> Option<Match<u32>> {
        let copied = |found: Match<&u32>| Match { socket: *found.socket, by: found.by };
        let found = self.ours.lookup(packet).map(copied);
        let takers = self.naive.takers(packet);
        let shown = |(rank, taker): &(Rank, &Socket<u32>)| Match {
            socket: taker.socket,
            by: specificity(*rank),
        };
        // Those at one place come in no order.
        let mut all: Vec<Match<u32>> = self.ours.matches(packet).map(copied).collect();
        assert_eq!(all.len(), takers.len(), "{packet}");
        for place in takers.chunk_by(|one, other| one.0 == other.0) {
            let here: Vec<Match<u32>> = all.drain(..place.len()).collect();
            assert!(place.iter().all(|taker| here.contains(&shown(taker))), "{packet}: {here:?}");
        }
        let Some((best, _)) = takers.first() else {
            assert_eq!(found, None, "{packet} is for nobody");
            return None;
        };
        let group = takers.iter().filter(|(rank, _)| rank == best);
        let chosen = group.clone().find(|taker| Some(shown(taker)) == found);
        let (_, chosen) = chosen.unwrap_or_else(|| panic!("{packet}: {found:?} of {takers:?}"));
        let Name::Bound { number: winner, .. } = chosen.name else { return found };
        for (_, member) in group {
            let Name::Bound { number, .. } = member.name else { continue };
            if number != winner {
                self.preferred.insert((*packet, winner, number));
                let was = self.preferred.contains(&(*packet, number, winner));
                assert!(!was, "{packet} has moved from {number} to {winner}, both there");
            }
        }
        found
    }

    /// All that is there, and these packets.
    pub(crate) fn compare<'a>(&mut self, packets: impl IntoIterator<Item = &'a FlowKey>) {
        self.ours.validate().expect("invariant");
        let Self { ours, naive, .. } = &*self;
        assert_eq!((ours.len(), ours.capacity()), (naive.sockets.len(), naive.limit));
        assert_eq!(ours.is_empty(), naive.sockets.is_empty());
        assert!(ours.len() <= ours.capacity());
        assert_eq!(ours.iter().count(), naive.sockets.len());
        for socket in &naive.sockets {
            assert_eq!(ours.get(&socket.name), Some(&socket.socket), "{:?}", socket.name);
        }
        // Sockets are all different, so none comes twice.
        let mut shown: Vec<(u32, Name)> =
            ours.iter().map(|(name, socket)| (*socket, name)).collect();
        shown.sort_unstable_by_key(|(socket, _)| *socket);
        let mut known: Vec<(u32, Name)> =
            naive.sockets.iter().map(|socket| (socket.socket, socket.name)).collect();
        known.sort_unstable_by_key(|(socket, _)| *socket);
        assert_eq!(shown, known);
        for name in self.gone.iter().rev().take(8) {
            let theirs = naive.position(name).map(|at| &naive.sockets[at].socket);
            assert_eq!(ours.get(name), theirs, "{name:?}");
        }
        for packet in packets {
            self.check(packet);
        }
    }
}
