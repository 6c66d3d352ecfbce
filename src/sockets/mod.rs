//! A table of sockets: connections, listeners, and the rules of `bind`.
//!
//! ```text
//!     packet  ─▸ its connection            (remote address and port, local address and port)
//!                │ none                      or the first socket that waits behind it
//!                ▾
//!                the best bound socket     address and port
//!                                          any address of the version, and the port
//!                                          any address, and the port
//!                                          then these three with all ports
//!                │ a group of several
//!                ▾
//!                one of them: the first one, or by the hash of the packet
//! ```
//!
//! The protocol is a part of each key, so one table serves TCP, UDP and others. Interfaces are not:
//! a host with several address realms (VRFs, link-local addresses) has a table for each.
//!
//! Connections and bound sockets are stored separately: up to 32 connections in an array,
//! more of them and all bound sockets in [`TrashMap`]s. So neither kind slows the other
//! down, and a packet for one of many listeners takes as long as for the only one. See
//! `connections.rs`, `listeners/`.
//!
//! # Rules of `bind`
//!
//! Two sockets conflict if a packet may match both, unless both allow it. Whether a new socket can
//! be bound:
//!
//! | existing socket, at the port | new: [`Reuse::No`] | [`Reuse::Address`] | [`Reuse::First`], [`Reuse::Port`] |
//! |---|---|---|---|
//! | bound to an equal address, of TCP | no | no | if both have one of these: a group |
//! | bound to an equal address, of UDP | no | if both have any | if both have any |
//! | bound to an overlapping one, such as any | no | if both have any | if both have any |
//! | bound to another address | yes | yes | yes |
//! | a connection at an address covered | no | if both have any | if both have any |
//!
//! The rules of TCP hold for DCCP and SCTP, the rules of UDP for all other protocols. A connection
//! that was bound keeps the reuse of the bound socket. Any other connection takes the reuse of its
//! listener: the bound socket at its port at the time of the insertion. Without a listener, a
//! connection allows no reuse, and its port is in use.
//!
//! The rules are close to the rules of Linux and BSD, and equal to neither:
//!
//! | | here | Linux | BSD |
//! |---|---|---|---|
//! | listeners of TCP at overlapping addresses | both need any reuse | both need `SO_REUSEPORT` | the new one needs reuse |
//! | 0.0.0.0 and `[::]` for both versions | conflict, unless both allow it | conflict | no conflict |
//! | UDP at an equal address with `SO_REUSEADDR` | yes | yes | at multicast addresses |
//! | unicast to several of these | the first one | the last one | not specified |
//!
//! # Broadcast and multicast
//!
//! A packet to several hosts is delivered to all sockets that match:
//! [`matches`](SocketTable::matches) iterates over them, as Linux and BSD deliver. In some stacks
//! sockets that are bound to one address of the host get them, too, as a DHCP client needs it:
//! [`broadcast_matches`](SocketTable::broadcast_matches).
//!
//! # Memory of the caller
//!
//! `SocketTable<T, DefaultHashBuilder, &dyn Allocator>` is a table in memory of any
//! [allocator](crate::memory): so a stack need not have a type parameter for it.
//!
//! ```
//! use flowtable::DefaultHashBuilder;
//! use flowtable::memory::Allocator;
//! use flowtable::sockets::{Local, Reuse, SocketTable};
//!
//! struct Stack<'memory> {
//!     sockets: SocketTable<u32, DefaultHashBuilder, &'memory dyn Allocator>,
//! }
//!
//! let arena = bumpalo::Bump::new();
//! let memory: &dyn Allocator = &&arena;
//! let hasher = DefaultHashBuilder::with_seed(7);
//! let mut stack = Stack { sockets: SocketTable::with_hasher_in(100, hasher, memory) };
//! stack.sockets.bind(Local::new("0.0.0.0:53".parse()?, 17), Reuse::No, 1)?;
//! assert!(arena.allocated_bytes() > 0);
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! # Cost
//!
//! An IPv4 connection takes a [`TrashMap`] entry of 14 bytes and the socket. For `bind`, an index
//! finds the ports in use. It has sets of 512 ports at an address, with an entry of 112 bytes for
//! each set, and a count for each port of several sockets. Connections from ports of 32,768 or
//! more, and from a range of ephemeral ports or above it, are in one more set for each remote
//! socket. So to open and close one of more than 32 connections takes 1.1 to 1.8 times as long as
//! in a `TrashMap` of flow keys. `docs/PEERS.md` compares more:
//!
//! | connections | lookups take, in comparison |
//! |---|---|
//! | up to 2 | hits up to 3 times as long as in a plain array, which needs no tags, misses up to 2 |
//! | 4 to 32 | hits 0.4 to 0.7 of an array's time, misses 0.3 to 1.5 |
//! | 100,000 | hits half as long as in that map, misses 1.1 times as long |
//!
//! A search for a free port looks up each of the sets that are in the way once for 512 ports, if
//! need be all. Lookups of the longest search among the 28,232 ports from 32,768 on, which examines
//! 56 blocks, and one of them twice:
//!
//! | sockets in the way | lookups |
//! |---|--:|
//! | connections to one remote socket | 57 |
//! | these, and sockets bound to the address, to any of its version, and to any | 228 |
//! | all kinds of bound sockets, for one to be bound to all addresses; connections with or without reuse | 399 |
//!
//! It takes no more if no port is free. The first search in a range with ports below 32,768 takes a
//! lookup more for each of those that earlier connections have, once for each remote socket.
//!
//! [`TrashMap`]: crate::TrashMap

// First, so that the documentation of the type begins with its methods.
mod table;

mod insert;

mod blocks;
mod connections;
mod ends;
mod ephemeral;
mod iter;
mod listeners;
mod local;
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
use ends::{HashedOnce, PacketQuery};
use ephemeral::Cursors;
use listeners::Listeners;
use ports::Ports;

pub use iter::{ExtractIf, Iter, IterMut};
pub use local::{Local, Match, Name, Reuse, Specificity};

/// A table of the sockets of a host, which finds the socket of a packet.
///
/// `T` is the socket: its state, an index, a pointer. It is found by its packets, and by the
/// [`Name`] that an insertion returns.
///
/// | method | cost |
/// |---|---|
/// | `lookup` of a connection | as [`TrashMap::get`](crate::TrashMap::get); up to 32, one or two comparisons of 16 tags |
/// | `lookup` of a bound socket | one or two more of these, up to four with sockets of all ports; in a group of N, O(N) |
/// | `bind`, `connect`, `accept`, `connect_bound`, `rebind`, `queue`, `remove` | O(1), in a group of N, O(N); and a growth step of a [`TrashMap`](crate::TrashMap) |
/// | `bind_ephemeral`, `connect_ephemeral` | as above, and up to 7 or 4 lookups per 512 ports of the range |
/// | `lookup_batch`, `matches`, `broadcast_matches` | as `lookup`, per packet or socket |
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
    /// Each of their maps has an equal hasher, since it hashes keys when it grows, and reseeds by
    /// itself. So one hash of a packet is for all maps.
    connections: Connections<T, S, A>,
    listeners: Listeners<T, S, A>,
    /// The ports of the bound sockets, of the queued ones, and of the connections in maps.
    ports: Ports<S, A>,
    cursors: Cursors<A>,
    /// The id of the next bound socket.
    next_id: u64,
    limit: usize,
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

/// Returns a mutable reference to the bound socket that matches a packet best, given the hash of
/// the packet if it was computed.
#[inline]
fn lookup_bound_mut<T, S: BuildHasher, A: Allocator + Clone>(
    listeners: &mut Listeners<T, S, A>,
    packet: impl PacketQuery,
    hash: Option<u64>,
) -> Option<Match<&mut T>> {
    if is_mapped(packet.key()) {
        return None;
    }
    let listener = listeners.find_mut(&HashedOnce::with(packet, hash))?;
    Some(Match { by: listener.by(), socket: &mut listener.socket })
}

/// Returns whether an IPv6 packet has an IPv4-mapped address.
fn is_mapped(packet: &FlowKey) -> bool {
    let FlowKey::V6(packet) = packet else { return false };
    packet.src.to_ipv4_mapped().is_some() || packet.dst.to_ipv4_mapped().is_some()
}

/// The error of `bind` and `connect`: the socket that was not inserted, and why.
#[derive(Clone, PartialEq, Eq)]
pub struct RejectedSocket<T> {
    /// The socket, returned.
    pub refused: T,
    /// The reason.
    pub reason: SocketError,
}

/// Without the socket, so that `unwrap` and `?` need no `Debug` of it.
impl<T> fmt::Debug for RejectedSocket<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RejectedSocket").field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for RejectedSocket<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl<T> Error for RejectedSocket<T> {}

/// The reason why a [`SocketTable`] rejects a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SocketError {
    /// Another socket has the address, or the connection.
    InUse,
    /// The table has reached its limit.
    Full,
    /// Memory allocation failed.
    NoMemory,
    /// Port 0 cannot be bound or connected.
    PortZero,
    /// An address of the connection is unspecified.
    Unspecified,
    /// The addresses of the connection are of different IP versions.
    MixedFamilies,
    /// All ports of the range are in use.
    NoPort,
    /// The range of ports is empty, or contains port 0.
    BadRange,
    /// No bound socket has the name.
    NotFound,
    /// The socket is bound to another address, port or protocol.
    OtherAddress,
}

impl fmt::Display for SocketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InUse => "another socket has the address, or the connection",
            Self::Full => "the table has reached its limit",
            Self::NoMemory => "memory allocation failed",
            Self::PortZero => "port 0 cannot be bound or connected",
            Self::Unspecified => "an address of the connection is unspecified",
            Self::MixedFamilies => "the addresses are of different IP versions",
            Self::NoPort => "all ports of the range are in use",
            Self::BadRange => "the range of ports is empty, or contains port 0",
            Self::NotFound => "no bound socket has the name",
            Self::OtherAddress => "the socket is bound to another address, port or protocol",
        })
    }
}

impl Error for SocketError {}
