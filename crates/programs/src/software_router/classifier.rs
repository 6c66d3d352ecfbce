//! From a packet to its path: its flow is looked up, and remembered when it is new.

use flowtable::{ChainedCache, FlowKey};

use super::checksum;
use super::{Datagram, Function, Port, Refusal, Routes, Traffic};

/// Which path a packet takes: one for each function and port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathId {
    pub function: Function,
    pub port: Port,
}

impl PathId {
    pub const COUNT: usize = Function::ALL.len() * Port::ALL.len();

    /// From 0.
    pub fn index(self) -> usize {
        self.function as usize * Port::ALL.len() + self.port as usize
    }

    pub fn all() -> impl Iterator<Item = Self> {
        let ports = |function| Port::ALL.map(|port| Self { function, port });
        Function::ALL.into_iter().flat_map(ports)
    }
}

/// The flows that were seen, and their ways. Whoever sends can make up flows without end, so there
/// is a most of them.
#[derive(Debug)]
pub struct Classifier {
    flows: ChainedCache<FlowKey, PathId>,
    routes: Routes,
}

impl Default for Classifier {
    fn default() -> Self {
        let flows = ChainedCache::new(Self::MAX_FLOWS).expect("some megabytes are there");
        Self { flows, routes: Routes::default() }
    }
}

impl Classifier {
    /// All packets that are taken of a capture may be of different flows.
    const MAX_FLOWS: usize = Traffic::MOST;

    /// The way of a packet whose header is right.
    pub fn classify(&mut self, packet: &Datagram) -> Result<PathId, Refusal> {
        let header = packet.header_length();
        if packet.is_v4() && checksum::of(&packet.bytes[..header]) != 0 {
            return Err(Refusal::Malformed);
        }
        let function = Function::of(&packet.key);
        // Packets with options, fragments and segments that were cut are not worth a flow.
        if !packet.is_plain() || (function == Function::Proxy && !packet.is_segment()) {
            return self.routed(&packet.key, Function::General);
        }
        if let Some(&path) = self.flows.get(&packet.key) {
            return Ok(path);
        }
        let path = self.routed(&packet.key, function)?;
        _ = self.flows.insert(packet.key, path);
        Ok(path)
    }

    fn routed(&self, key: &FlowKey, function: Function) -> Result<PathId, Refusal> {
        let port = self.routes.lookup(function.destination(key)).ok_or(Refusal::NoRoute)?;
        Ok(PathId { function, port })
    }

    /// Flows that are remembered.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }
}
