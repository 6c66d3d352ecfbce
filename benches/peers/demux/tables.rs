//! The demultiplexers and their peers: implementations of [`PcbTable`].

use std::hash::BuildHasher;
use std::net::Ipv4Addr;

use flowtable::FourTuple;
use flowtable::demux::{Arrival, ConnectionId, Demux};

use super::segments::Client;
use super::subject::{Pcb, PcbTable};

/// A demultiplexer whose keys are four-tuples.
pub(crate) struct ByName<D>(pub(crate) D);

impl<D: Demux<Pcb>> PcbTable for ByName<D> {
    fn insert(&mut self, client: &Client, pcb: Pcb) {
        self.0.insert(client.name, pcb).expect("a new client below the limit");
    }
    fn remove(&mut self, client: &Client) -> Option<Pcb> {
        self.0.remove(&client.name).ok()
    }
    #[inline]
    fn lookup(&mut self, client: &Client) -> Option<&mut Pcb> {
        self.0.lookup(&client.name, Arrival::Data).pcb
    }
    fn examined(&mut self, client: &Client) -> Option<u32> {
        Some(self.0.lookup(&client.name, Arrival::Data).examined)
    }
}

/// A demultiplexer of packets that carry a connection ID.
pub(crate) struct ById(pub(crate) ConnectionId<Pcb>);

impl PcbTable for ById {
    fn insert(&mut self, client: &Client, pcb: Pcb) {
        self.0.insert(client.id, pcb).expect("a new client below the limit");
    }
    fn remove(&mut self, client: &Client) -> Option<Pcb> {
        self.0.remove(&client.id).ok()
    }
    #[inline]
    fn lookup(&mut self, client: &Client) -> Option<&mut Pcb> {
        self.0.lookup(&client.id, Arrival::Data).pcb
    }
    fn examined(&mut self, client: &Client) -> Option<u32> {
        Some(self.0.lookup(&client.id, Arrival::Data).examined)
    }
}

/// A hash table of PCBs.
pub(crate) struct Hashed<S>(pub(crate) hashbrown::HashMap<FourTuple<Ipv4Addr>, Pcb, S>);

impl<S: BuildHasher> PcbTable for Hashed<S> {
    fn insert(&mut self, client: &Client, pcb: Pcb) {
        self.0.insert(client.name, pcb);
    }
    fn remove(&mut self, client: &Client) -> Option<Pcb> {
        self.0.remove(&client.name)
    }
    #[inline]
    fn lookup(&mut self, client: &Client) -> Option<&mut Pcb> {
        self.0.get_mut(&client.name)
    }
    fn examined(&mut self, _: &Client) -> Option<u32> {
        None
    }
}
