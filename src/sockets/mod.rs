//! A table of sockets: connections, listeners, and the rules of `bind`.
//!
//! ```text
//!     packet  ─▸ its connection            (remote address and port, local address and port)
//!                │ none
//!                ▾
//!                the best bound socket     address and port
//!                                          any address of the version, and the port
//!                                          any address, and the port
//!                                          then these three with all ports
//!                │ a group of several
//!                ▾
//!                one of them, selected by the hash of the packet
//! ```
//!
//! The protocol is a part of each key, so one table serves TCP, UDP and others. Interfaces are not:
//! a host with several address realms (VRFs, link-local addresses) has a table for each.
//!
//! Connections and bound sockets are stored separately: up to 16 connections in an array, more of
//! them and all bound sockets in [`TrashMap`]s. So neither kind slows the other down, and a packet
//! for one of many listeners takes as long as for the only one. See `connections.rs`,
//! `listeners.rs`.
//!
//! # Rules of `bind`
//!
//! Two sockets conflict if a packet may match both, unless both allow it. Whether a new socket can
//! be bound:
//!
//! | existing socket, at the port | new: [`Reuse::No`] | [`Reuse::Address`] | [`Reuse::Port`] |
//! |---|---|---|---|
//! | bound to an equal address | no | no | if both have it: a group |
//! | bound to an overlapping one, such as any | no | if both have either | if both have either |
//! | bound to another address | yes | yes | yes |
//! | a connection at an address covered | no | yes | yes |
//!
//! The rules are not those of any one system: both sockets have to allow reuse as in Linux, and
//! listeners may overlap as in BSD. BSD checks only the new socket for overlapping addresses,
//! allows 0.0.0.0 and `[::]` together, and treats `SO_REUSEADDR` as `SO_REUSEPORT` at multicast
//! addresses. Linux allows UDP sockets with `SO_REUSEADDR` at an equal address, and rejects TCP
//! listeners at overlapping ones unless both have `SO_REUSEPORT`.
//!
//! # Cost
//!
//! An IPv4 connection takes a [`TrashMap`] entry of 16 bytes and the socket. What `bind` needs to
//! find a port in use is a set of ports for each address and 512 ports: an entry of 32 bytes; and a
//! count for those of several connections. Connections from ports of 32,768 or more, and from a
//! range of ephemeral ports or above it, are in one more set, an entry of 24 bytes for each remote
//! socket and 512 ports. A set has 72 bytes more if its ports are not in a window of 57, which
//! begins with its first port, rounded down to a multiple of eight.
//!
//! A search for a free port looks up each of the sets that are in the way once for 512 ports, if
//! need be all: 57 times for 28,232 ports, as it examines 56 lines, and one of them twice. That is
//! 57 lookups if there are only connections to one remote socket, 228 if bound sockets are in the
//! way as well, and 399 for a socket to be bound to all addresses of both versions; no more if no
//! port is free. The first search in a range with ports below 32,768 takes a lookup more for each
//! of those that earlier connections have, once for each remote socket.
//!
//! [`TrashMap`]: crate::TrashMap

// First, so that the documentation of the type begins with its methods.
mod methods;

mod insert;

mod connected_ports;
mod connections;
mod ephemeral;
mod error;
mod extract;
mod hashed;
mod iter;
mod lines;
mod listeners;
mod local;
mod name;
mod port_sets;
mod ports;
mod small_table;

use alloc::string::ToString;
use core::error::Error;
use core::fmt;
use core::hash::BuildHasher;

use crate::hash::DefaultHashBuilder;
use crate::invariant::InvariantError;
use crate::key::flow::FlowKey;
use crate::memory::{Allocator, Global};
use connections::Connections;
use ephemeral::Cursors;
use listeners::Listeners;

pub use error::{RejectedSocket, SocketError};
pub use extract::ExtractIf;
pub use iter::{Iter, IterMut};
pub use local::{Local, Reuse, Specificity};
pub use name::{Match, Name};

/// A table of the sockets of a host, which finds the socket of a packet.
///
/// `T` is the socket: its state, an index, a pointer. It is found by its packets, and by the
/// [`Name`] that an insertion returns.
///
/// | method | cost |
/// |---|---|
/// | `lookup` of a connection | as [`TrashMap::get`](crate::TrashMap::get) |
/// | `lookup` of a bound socket | one or two more of these, up to four with sockets of all ports; in a group of N, O(N) |
/// | `bind`, `connect`, `accept`, `connect_bound`, `remove` | O(1), in a group of N, O(N); and a growth step of a [`TrashMap`](crate::TrashMap) |
/// | `bind_ephemeral`, `connect_ephemeral` | as above, and up to 7 or 4 lookups per 512 ports of the range |
/// | `lookup_batch`, `matches` | as `lookup`, per packet or socket |
/// | `lookup_hashed`, `lookup_mut_hashed`, `lookup_batch_hashed` | as these, without hashing the key of a connection |
/// | `get`, `get_mut` | O(1); in a group of N, O(N) |
/// | `len`, `capacity`; `iter`, `iter_mut`, `retain`, `extract_if`, `clear` | O(1); O(sockets) |
///
/// # Example
///
/// ```
/// use flowtable::FlowKey;
/// use flowtable::sockets::{Local, Name, Reuse, SocketTable, Specificity};
///
/// let tcp = 6;
/// let mut sockets = SocketTable::new(100_000);
/// sockets.bind(Local::new("[::]:443".parse()?, tcp), Reuse::No, "listener")?;
///
/// let [from, to] = ["192.0.2.7".parse()?, "198.51.100.1".parse()?];
/// let segment = FlowKey::new(from, to, 40_000, 443, tcp).unwrap();
/// let found = sockets.lookup(&segment).unwrap();
/// assert_eq!((found.socket, found.by), (&"listener", Specificity::Port));
///
/// // The connection is accepted: from now on its segments find it.
/// sockets.connect("198.51.100.1:443".parse()?, "192.0.2.7:40000".parse()?, tcp, "connection")?;
/// assert_eq!(sockets.lookup(&segment).unwrap().socket, &"connection");
/// assert_eq!(sockets.remove(&Name::Connected(segment)), Ok("connection"));
/// assert_eq!(sockets.lookup(&segment).unwrap().socket, &"listener");
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[doc(alias("listener", "pcb", "socket demultiplexing"))]
#[derive(Clone)]
pub struct SocketTable<T, S = DefaultHashBuilder, A = Global>
where
    A: Allocator + Clone,
{
    connections: Connections<T, S, A>,
    listeners: Listeners<T, S, A>,
    cursors: Cursors<A>,
    /// The id of the next bound socket.
    next_id: u64,
    limit: usize,
    hasher: S,
}

impl<T: fmt::Debug, S, A: Allocator + Clone> fmt::Debug for SocketTable<T, S, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

/// The error of a broken invariant in a map of the table.
fn map_error(broken: impl Error) -> InvariantError {
    InvariantError::new(broken.to_string())
}

/// Returns a mutable reference to the bound socket that matches a packet best.
#[inline]
fn lookup_bound_mut<'a, T, S: BuildHasher, A: Allocator + Clone>(
    listeners: &'a mut Listeners<T, S, A>,
    hasher: &S,
    packet: &FlowKey,
) -> Option<Match<&'a mut T>> {
    if is_mapped(packet) {
        return None;
    }
    let listener = listeners.find_mut(packet, || hasher.hash_one(packet))?;
    Some(Match { by: listener.local.specificity(), socket: &mut listener.socket })
}

/// Returns whether an IPv6 packet has an IPv4-mapped address.
fn is_mapped(packet: &FlowKey) -> bool {
    let FlowKey::V6(packet) = packet else { return false };
    packet.src.to_ipv4_mapped().is_some() || packet.dst.to_ipv4_mapped().is_some()
}
