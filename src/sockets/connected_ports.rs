//! The ports of connections, as `bind` and the search for ephemeral ports need them.
//!
//! ```text
//!     occupied    the local ports of connections, by local address
//!                 the ports that these addresses have, by version
//!     v4_ports    (remote address and port, local address, local port / 512)
//!     v6_ports      → the local ports, see port_sets.rs
//!     busy        the last counts of `occupied` that were incremented: most connections of a
//!                 server cost no search
//! ```
//!
//! - **C2** `occupied` has the local port of each connection of the maps at its address, and each
//!   port at an address once more at the address that is any of that version; but for the
//!   connections that a count of `busy` has. That is 0, unless `occupied` has the port there more
//!   than once.
//! - **C3** Each port of `v4_ports` and `v6_ports` is that of a connection of the maps. The other
//!   way round, a connection has its port there if that is 32,768 or more, or was in the range of
//!   [`ConnectedPorts::track`], and there was memory; or since a search came across it.

use core::hash::{BuildHasher, Hash};
use core::net::{Ipv4Addr, Ipv6Addr};
use core::ops::RangeInclusive;

use super::Local;
use super::lines::{LINE, Line};
use super::local::{LocalWords, Scope};
use super::port_sets::PortSets;
use super::ports::Ports;
use crate::hash::DefaultHashBuilder;
use crate::invariant::{InvariantError, ensure};
use crate::key::flow::{FiveTuple, FlowKey};
use crate::memory::{Allocator, Global};

/// The first of the local ports that are known by remote socket in any case: systems select
/// ephemeral ports from here on.
const EPHEMERAL: u16 = 32_768;

/// Ports at local addresses that have counts of their own.
const BUSY: usize = 4;

/// A port at a local address, and how many of its connections `occupied` does not have.
#[derive(Clone, Copy)]
struct Busy {
    at: LocalWords,
    count: usize,
}

impl Busy {
    const NONE: Self = Self { at: LocalWords::NONE, count: 0 };
}

/// The ports of connections.
#[derive(Clone)]
pub(super) struct ConnectedPorts<S, A: Allocator + Clone> {
    occupied: Ports<S, A>,
    /// By the lowest bits of the port.
    busy: [Busy; BUSY],
    v4_ports: PortSets<FiveTuple<Ipv4Addr>, S, A>,
    v6_ports: PortSets<FiveTuple<Ipv6Addr>, S, A>,
    /// The first and the last port of which new connections are in these.
    tracked: (u16, u16),
}

impl<S: Clone, A: Allocator + Clone> ConnectedPorts<S, A> {
    pub(super) fn new_in(hasher: &S, memory: &A) -> Self {
        Self {
            occupied: Ports::new_in(hasher, memory),
            busy: [Busy::NONE; BUSY],
            v4_ports: PortSets::new_in(hasher, memory),
            v6_ports: PortSets::new_in(hasher, memory),
            tracked: (EPHEMERAL, u16::MAX),
        }
    }
}

impl<S, A: Allocator + Clone> ConnectedPorts<S, A> {
    pub(super) fn allocation_size(&self) -> usize {
        let ports = self.v4_ports.allocation_size() + self.v6_ports.allocation_size();
        self.occupied.allocation_size() + ports
    }

    /// From now on, the ports of connections from this range are known by remote socket.
    pub(super) fn track(&mut self, ports: &RangeInclusive<u16>) {
        let (first, last) = self.tracked;
        self.tracked = (first.min(*ports.start()), last.max(*ports.end()));
    }

    fn is_tracked(&self, key: &FlowKey) -> bool {
        (self.tracked.0..=self.tracked.1).contains(&key.dport())
    }
}

impl<S: BuildHasher, A: Allocator + Clone> ConnectedPorts<S, A> {
    /// The ports of a line, that of the port of `local`, that connections have at its address.
    #[inline]
    pub(super) fn taken(&self, local: &Local) -> Line {
        let line = |scope| self.occupied.line(LocalWords::new(&local.in_scope(scope)));
        match local.scope {
            Scope::Any => line(Scope::AnyV4) | line(Scope::AnyV6),
            scope => line(scope),
        }
    }

    /// Returns whether a connection has the port of `local` at its address.
    #[inline]
    pub(super) fn contains(&self, local: &Local) -> bool {
        let contains = |scope| self.occupied.contains(LocalWords::new(&local.in_scope(scope)));
        match local.scope {
            Scope::Any => contains(Scope::AnyV4) || contains(Scope::AnyV6),
            scope => contains(scope),
        }
    }

    /// The local ports of a line, that of the port of `key`, that connections to its remote socket
    /// are known to have.
    #[inline]
    pub(super) fn taken_to(&self, key: &FlowKey) -> Line {
        match line_of(key) {
            FlowKey::V4(key) => self.v4_ports.get(&key),
            FlowKey::V6(key) => self.v6_ports.get(&key),
        }
    }

    /// Inserts the port of a connection. Returns false if memory allocation fails.
    #[inline]
    pub(super) fn insert(&mut self, key: &FlowKey) -> bool {
        let address = LocalWords::of_local(key);
        let busy = busy(&mut self.busy, address);
        if busy.at == address {
            busy.count += 1;
        } else if !self.insert_occupied(key, address) {
            return false;
        }
        if self.is_tracked(key) {
            self.insert_tracked(key);
        }
        true
    }

    #[inline(never)]
    fn insert_occupied(&mut self, key: &FlowKey, address: LocalWords) -> bool {
        match self.occupied.insert(address) {
            None => return false,
            Some(true) if self.occupied.insert(family(key)).is_none() => {
                self.occupied.remove(address);
                return false;
            }
            Some(true) => {}
            Some(false) => {
                let busy = busy(&mut self.busy, address);
                if busy.count == 0 {
                    busy.at = address;
                }
            }
        }
        true
    }

    /// Inserts the port of a connection to its remote socket. Without memory it is not known, and
    /// costs a search a lookup.
    #[inline(never)]
    pub(super) fn insert_tracked(&mut self, key: &FlowKey) {
        let port = key.dport();
        _ = match line_of(key) {
            FlowKey::V4(line) => self.v4_ports.insert(line, port),
            FlowKey::V6(line) => self.v6_ports.insert(line, port),
        };
    }

    /// Removes the port of a connection.
    #[inline]
    pub(super) fn remove(&mut self, key: &FlowKey) {
        let address = LocalWords::of_local(key);
        let busy = busy(&mut self.busy, address);
        if busy.at == address && busy.count > 0 {
            busy.count -= 1;
        } else {
            self.remove_occupied(key, address);
        }
        if self.is_tracked(key) {
            self.remove_tracked(key);
        }
    }

    #[inline(never)]
    fn remove_occupied(&mut self, key: &FlowKey, address: LocalWords) {
        let busy = busy(&mut self.busy, address);
        if busy.at == address {
            // Perhaps `occupied` has the port only once after this.
            *busy = Busy::NONE;
        }
        if self.occupied.remove(address) {
            self.occupied.remove(family(key));
        }
    }

    /// Removes the port of a connection to its remote socket, if it is known.
    #[inline(never)]
    fn remove_tracked(&mut self, key: &FlowKey) {
        match line_of(key) {
            FlowKey::V4(line) => self.v4_ports.remove(&line, key.dport()),
            FlowKey::V6(line) => self.v6_ports.remove(&line, key.dport()),
        }
    }

    /// Removes all ports.
    pub(super) fn clear(&mut self) {
        self.occupied.clear();
        self.busy = [Busy::NONE; BUSY];
        self.v4_ports.clear();
        self.v6_ports.clear();
    }

    /// Checks C2 and C3 for these connections; `is_connected` returns whether there is one.
    pub(super) fn validate(
        &self,
        keys: impl Iterator<Item = FlowKey>,
        is_connected: impl Fn(&FlowKey) -> bool,
    ) -> Result<(), InvariantError> {
        let hasher = DefaultHashBuilder::with_seed(0);
        let mut occupied = Ports::new_in(&hasher, &Global);
        for key in keys {
            if occupied.insert(LocalWords::of_local(&key)) == Some(true) {
                occupied.insert(family(&key));
            }
        }
        let busy = |at: &LocalWords| self.busy.iter().find(|busy| busy.at == *at);
        let more = |at: &LocalWords| busy(at).map_or(0, |busy| busy.count);
        let is_equal = self.occupied.is_equal(&occupied, more);
        ensure(is_equal, || "C2: a count of connections at a local address is wrong")?;
        validate_tracked(&self.v4_ports, |key| is_connected(&FlowKey::V4(key)))?;
        validate_tracked(&self.v6_ports, |key| is_connected(&FlowKey::V6(key)))
    }
}

/// The count that a port at a local address may have.
#[inline]
fn busy(all: &mut [Busy; BUSY], at: LocalWords) -> &mut Busy {
    &mut all[usize::from(at.port()) % BUSY]
}

/// The key under which the port of a connection is counted: any address of its version.
fn family(key: &FlowKey) -> LocalWords {
    LocalWords::of_packet(key, false)[1]
}

/// The key of the line with the local port of a connection.
fn line_of(key: &FlowKey) -> FlowKey {
    at_port(key, key.dport() / LINE)
}

/// The key of a connection between the same addresses, from another local port.
#[inline]
pub(super) fn at_port(key: &FlowKey, dport: u16) -> FlowKey {
    match *key {
        FlowKey::V4(key) => FlowKey::V4(FiveTuple { dport, ..key }),
        FlowKey::V6(key) => FlowKey::V6(FiveTuple { dport, ..key }),
    }
}

/// Checks C3.
fn validate_tracked<I: Copy, S, A>(
    sets: &PortSets<FiveTuple<I>, S, A>,
    is_connected: impl Fn(FiveTuple<I>) -> bool,
) -> Result<(), InvariantError>
where
    S: BuildHasher,
    A: Allocator + Clone,
    FiveTuple<I>: Eq + Hash,
{
    sets.validate()?;
    for (key, line) in sets.iter() {
        let port = |port| key.dport.wrapping_mul(LINE) + port;
        let mut keys = line.ports().map(|at| FiveTuple { dport: port(at), ..*key });
        ensure(keys.all(&is_connected), || "C3: a port is known and has no connection")?;
    }
    Ok(())
}
