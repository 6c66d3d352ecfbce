//! The names of sockets, and the results of lookups.

use core::fmt;

use crate::key::flow::FlowKey;

use super::local::{Local, Specificity};

/// The name of a socket in its table: a handle for `get` and `remove`.
///
/// It is valid in the table that returned it, not in any other, nor in a clone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Name {
    /// A connection, named by its packets as they arrive: from the remote socket to the local one.
    /// A later connection between the same sockets has an equal name.
    Connected(FlowKey),
    /// A bound socket.
    Bound {
        /// The address, port and protocol that it is bound to.
        local: Local,
        /// Distinguishes the sockets bound there. Unique in a table, and never reused.
        id: u64,
    },
    /// A socket that waits behind others with the same connection: see
    /// [`SocketTable::queue`](super::SocketTable::queue).
    Queued {
        /// The connection, as in [`Name::Connected`].
        key: FlowKey,
        /// Distinguishes the sockets queued there. Unique in a table, and never reused.
        id: u64,
    },
}

/// Writes the connection, or the local address and the id.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connected(key) => key.fmt(f),
            Self::Bound { local, id } => write!(f, "{local} id {id}"),
            Self::Queued { key, id } => write!(f, "{key} id {id}"),
        }
    }
}

/// The result of a lookup: a socket, and how specifically it matches the packet.
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
/// let [from, to] = ["198.51.100.1".parse()?, "192.0.2.1".parse()?];
/// let segment = FlowKey::new(from, to, 40_000, 80, tcp).unwrap();
/// let best = sockets.lookup(&segment).unwrap();
/// assert_eq!((*best.socket, best.by), ("here", Specificity::AddressAndPort));
/// assert!(best.by > Specificity::Port); // that of the other socket
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match<R> {
    /// The socket.
    pub socket: R,
    /// The parts of the packet that the socket is bound or connected to.
    pub by: Specificity,
}
