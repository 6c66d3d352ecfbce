//! The tables, as contestants.

use std::hash::BuildHasher;
use std::net::Ipv4Addr;

use flowtable::FourTuple;
use flowtable::demux::{Arrival, ConnectionId, Demux};

use super::contestant::{Pcb, Table};
use super::segments::Client;

/// Demultiplexers that go by the name of a connection.
pub(crate) struct ByName<D>(pub(crate) D);

impl<D: Demux<Pcb>> Table for ByName<D> {
    fn insert(&mut self, client: &Client, pcb: Pcb) {
        self.0.insert(client.name, pcb).expect("there is room, and the client is new");
    }
    fn remove(&mut self, client: &Client) -> Option<Pcb> {
        self.0.remove(&client.name).ok()
    }
    #[inline]
    fn find(&mut self, client: &Client) -> Option<&mut Pcb> {
        self.0.lookup(&client.name, Arrival::Data).pcb
    }
    fn examined(&mut self, client: &Client) -> Option<u32> {
        Some(self.0.lookup(&client.name, Arrival::Data).examined)
    }
}

/// The packet carries the place of its PCB.
pub(crate) struct ById(pub(crate) ConnectionId<Pcb>);

impl Table for ById {
    fn insert(&mut self, client: &Client, pcb: Pcb) {
        self.0.insert(client.id, pcb).expect("there is room, and the client is new");
    }
    fn remove(&mut self, client: &Client) -> Option<Pcb> {
        self.0.remove(&client.id).ok()
    }
    #[inline]
    fn find(&mut self, client: &Client) -> Option<&mut Pcb> {
        self.0.lookup(&client.id, Arrival::Data).pcb
    }
    fn examined(&mut self, client: &Client) -> Option<u32> {
        Some(self.0.lookup(&client.id, Arrival::Data).examined)
    }
}

/// A hash table, as people use it for PCBs.
pub(crate) struct Hashed<S>(pub(crate) hashbrown::HashMap<FourTuple<Ipv4Addr>, Pcb, S>);

impl<S: BuildHasher> Table for Hashed<S> {
    fn insert(&mut self, client: &Client, pcb: Pcb) {
        self.0.insert(client.name, pcb);
    }
    fn remove(&mut self, client: &Client) -> Option<Pcb> {
        self.0.remove(&client.name)
    }
    #[inline]
    fn find(&mut self, client: &Client) -> Option<&mut Pcb> {
        self.0.get_mut(&client.name)
    }
    fn examined(&mut self, _: &Client) -> Option<u32> {
        None
    }
}
