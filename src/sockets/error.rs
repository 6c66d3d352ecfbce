//! Errors of the socket table.

use core::error::Error;
use core::fmt;

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

/// The reason why a [`SocketTable`](super::SocketTable) rejects a socket.
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
