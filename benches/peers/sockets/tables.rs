//! Tables of connections: `SocketTable` and its peers.

use std::hash::BuildHasher;
use std::net::{IpAddr, Ipv4Addr};

use flowtable::sockets::{Name, SocketTable};
use flowtable::{DefaultHashBuilder, FiveTuple, FlowKey, TrashMap, write_to};

use crate::maps::subject::Map;
use crate::subject::BURST;

/// The table of this crate.
pub(crate) struct Sockets(pub(crate) SocketTable<u64>);

impl Sockets {
    pub(crate) fn new(hasher: DefaultHashBuilder) -> Self {
        Self(SocketTable::with_hasher(usize::MAX, hasher))
    }
}

impl Map<FlowKey> for Sockets {
    #[inline]
    fn get(&self, key: &FlowKey) -> Option<&u64> {
        self.0.lookup(key).map(|found| found.socket)
    }
    fn insert(&mut self, key: FlowKey, value: u64) {
        self.0.accept(&key, value).expect("a new connection below the limit");
    }
    fn remove(&mut self, key: &FlowKey) -> Option<u64> {
        self.0.remove(&Name::Connected(*key)).ok()
    }
    #[inline]
    fn get_batch<'a>(&'a self, keys: &[FlowKey; BURST], found: &mut [Option<&'a u64>; BURST]) {
        self.0.lookup_batch(keys, |at, socket| found[at] = socket.map(|found| found.socket));
    }
}

/// An array, for a few connections.
#[derive(Default)]
pub(crate) struct Array(pub(crate) Vec<(FlowKey, u64)>);

impl Map<FlowKey> for Array {
    #[inline]
    fn get(&self, key: &FlowKey) -> Option<&u64> {
        self.0.iter().find(|(own, _)| own == key).map(|(_, socket)| socket)
    }
    fn insert(&mut self, key: FlowKey, value: u64) {
        assert!(self.get(&key).is_none(), "the connection is new");
        self.0.push((key, value));
    }
    fn remove(&mut self, key: &FlowKey) -> Option<u64> {
        let at = self.0.iter().position(|(own, _)| own == key)?;
        Some(self.0.swap_remove(at).1)
    }
}

/// A map for IPv4 only.
pub(crate) struct V4<S>(pub(crate) TrashMap<FiveTuple<Ipv4Addr>, u64, S>);

/// The five-tuple of a key, which must be of IPv4.
#[inline]
fn tuple(key: &FlowKey) -> FiveTuple<Ipv4Addr> {
    match key {
        FlowKey::V4(tuple) => *tuple,
        FlowKey::V6(_) => unreachable!("all keys are of IPv4"),
    }
}

impl<S: BuildHasher> Map<FlowKey> for V4<S> {
    #[inline]
    fn get(&self, key: &FlowKey) -> Option<&u64> {
        self.0.get(&tuple(key))
    }
    fn insert(&mut self, key: FlowKey, value: u64) {
        self.0.insert(tuple(&key), value);
    }
    fn remove(&mut self, key: &FlowKey) -> Option<u64> {
        self.0.remove(&tuple(key))
    }
    #[inline]
    fn get_batch<'a>(&'a self, keys: &[FlowKey; BURST], found: &mut [Option<&'a u64>; BURST]) {
        self.0.get_batch(&keys.each_ref().map(tuple), write_to(found));
    }
}

/// The address of a listener; `None` for any.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ListenerAddress {
    pub(crate) address: Option<IpAddr>,
    pub(crate) port: u16,
    pub(crate) protocol: u8,
}

impl ListenerAddress {
    #[inline]
    fn accepts(&self, packet: &FlowKey) -> bool {
        self.port == packet.dport()
            && self.protocol == packet.protocol()
            && self.address.is_none_or(|address| address == packet.dst())
    }
}

/// Words of a socket that a lookup does not read: its state machine, timers and buffers.
const STATE: usize = 60;

struct Scanned {
    end: End,
    socket: u64,
    _state: [u64; STATE],
}

enum End {
    Connected(FlowKey),
    Listening(ListenerAddress),
}

/// All sockets of a host in an array with their state, each of which is asked for each packet, as
/// in smoltcp.
#[derive(Default)]
pub(crate) struct Scan(Vec<Scanned>);

impl Scan {
    #[inline]
    pub(crate) fn lookup(&self, packet: &FlowKey) -> Option<&u64> {
        let accepts = |end: &End| match end {
            End::Connected(own) => own == packet,
            End::Listening(local) => local.accepts(packet),
        };
        self.0.iter().find(|scanned| accepts(&scanned.end)).map(|scanned| &scanned.socket)
    }

    pub(crate) fn listen(&mut self, local: ListenerAddress, socket: u64) {
        self.0.push(Scanned { end: End::Listening(local), socket, _state: [0; STATE] });
    }
}

impl Map<FlowKey> for Scan {
    #[inline]
    fn get(&self, key: &FlowKey) -> Option<&u64> {
        self.lookup(key)
    }
    fn insert(&mut self, key: FlowKey, socket: u64) {
        assert!(self.get(&key).is_none(), "the connection is new");
        self.0.push(Scanned { end: End::Connected(key), socket, _state: [0; STATE] });
    }
    fn remove(&mut self, key: &FlowKey) -> Option<u64> {
        let is_it = |scanned: &Scanned| matches!(&scanned.end, End::Connected(own) if own == key);
        let at = self.0.iter().position(is_it)?;
        Some(self.0.swap_remove(at).socket)
    }
}

/// A hand-written host: a map of connections, and an array of listeners.
pub(crate) struct ByHand<M> {
    pub(crate) connections: M,
    pub(crate) listeners: Vec<(ListenerAddress, u64)>,
}

impl<M: Map<FlowKey>> ByHand<M> {
    /// Returns the connection of a packet, or the most specific listener.
    #[inline]
    pub(crate) fn lookup(&self, packet: &FlowKey) -> Option<&u64> {
        self.connections.get(packet).or_else(|| {
            let accepting = self.listeners.iter().filter(|(local, _)| local.accepts(packet));
            accepting.max_by_key(|(local, _)| local.address.is_some()).map(|(_, socket)| socket)
        })
    }
}
