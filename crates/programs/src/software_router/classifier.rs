//! The classifier: finds the path of a packet by its flow, which is cached.

use flowtable::{BoundedCache, FlowKey};

use super::checksum;
use super::{Datagram, Function, Port, Refusal, Routes};

/// The identity of a path: there is one for each function and port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathId {
    pub function: Function,
    pub port: Port,
}

impl PathId {
    pub const COUNT: usize = Function::ALL.len() * Port::ALL.len();

    /// Returns the index of the path, from 0.
    pub fn index(self) -> usize {
        self.function as usize * Port::ALL.len() + self.port as usize
    }

    pub fn all() -> impl Iterator<Item = Self> {
        let ports = |function| Port::ALL.map(|port| Self { function, port });
        Function::ALL.into_iter().flat_map(ports)
    }
}

/// A cache of the paths of flows. It is bounded, since senders can generate flows without end.
#[derive(Debug)]
pub struct Classifier {
    flows: BoundedCache<FlowKey, PathId>,
    routes: Routes,
}

impl Default for Classifier {
    fn default() -> Self {
        let flows = BoundedCache::new(Self::FLOWS).expect("some megabytes are there");
        Self { flows, routes: Routes::default() }
    }
}

impl Classifier {
    /// Maximum number of cached flows.
    pub const FLOWS: usize = 1 << 17;

    /// Returns the path of a packet with a valid header.
    pub fn classify(&mut self, packet: &Datagram) -> Result<PathId, Refusal> {
        let header = packet.header_length();
        if packet.is_v4() && checksum::of(&packet.bytes[..header]) != 0 {
            return Err(Refusal::Malformed);
        }
        let function = Function::of(&packet.key);
        // Packets with options, fragments and truncated segments are not cached.
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

    /// Returns the number of cached flows.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }
}
