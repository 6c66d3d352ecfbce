//! What sockets are known by, and what a packet finds.

use crate::key::flow::FlowKey;

use super::Local;

/// The name of a socket in its table. It says nothing to other tables, not even to a clone of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Name {
    /// A connection: its packets as they arrive, from the remote socket to the local one. A later connection
    /// between the same sockets has the same name.
    Connected(FlowKey),
    /// A bound socket.
    Bound {
        /// Where it is bound.
        local: Local,
        /// Which one of those that are or were bound there. Never used again in a table.
        number: u64,
    },
}

/// A socket that a packet is for.
///
/// # Example
///
/// ```
/// use flowtable::FlowKey;
/// use flowtable::sockets::{Local, Reuse, SocketTable, Specificity};
///
/// let tcp = 6;
/// let mut sockets = SocketTable::new(10);
/// for (address, socket) in [("0.0.0.0:80", "any"), ("192.0.2.1:80", "here")] {
///     sockets.bind(Local::new(address.parse()?, tcp), Reuse::Address, socket)?;
/// }
/// let segment = FlowKey::new("198.51.100.1".parse()?, "192.0.2.1".parse()?, 40_000, 80, tcp).unwrap();
/// let best = sockets.lookup(&segment).unwrap();
/// assert_eq!((*best.socket, best.by), ("here", Specificity::AddressAndPort));
/// assert!(best.by > Specificity::Port); // that of the other one
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match<R> {
    /// The socket.
    pub socket: R,
    /// What of the packet led to it.
    pub by: Specificity,
}

/// How much of a packet a socket's name has. The greatest one wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Specificity {
    /// Any address and all ports.
    Everything,
    /// The address, and all ports.
    Address,
    /// Any address, and the port.
    Port,
    /// Address and port.
    AddressAndPort,
    /// Both sockets: it is a connection.
    Connection,
}
