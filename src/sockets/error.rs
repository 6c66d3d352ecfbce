//! Errors of the socket table.

use core::error::Error;
use core::fmt;

/// A socket that was not bound, and why. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedSocket<T> {
    /// The socket.
    pub given: T,
    /// Why it was not bound.
    pub why: SocketError,
}

impl<T> fmt::Display for RejectedSocket<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)
    }
}

impl<T: fmt::Debug> Error for RejectedSocket<T> {}

/// Why a [`SocketTable`](super::SocketTable) does not take a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SocketError {
    /// Another socket has the address, or the connection.
    InUse,
    /// There are as many sockets as the table may have.
    Full,
    /// The memory cannot be had.
    NoMemory,
    /// Port 0 is no port to be bound or connected.
    PortZero,
    /// A connection has an address at both ends.
    Unspecified,
    /// A connection is of one IP version.
    Families,
    /// All ports of the range are taken.
    NoPort,
    /// The range of ports is empty, or has port 0.
    BadRange,
}

impl fmt::Display for SocketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InUse => "another socket has the address, or the connection",
            Self::Full => "there are as many sockets as there may be",
            Self::NoMemory => "the memory cannot be had",
            Self::PortZero => "port 0 cannot be bound or connected",
            Self::Unspecified => "a connection needs an address at both ends",
            Self::Families => "a connection is of one IP version",
            Self::NoPort => "all ports of the range are taken",
            Self::BadRange => "the range of ports is empty, or has port 0",
        })
    }
}

impl Error for SocketError {}
