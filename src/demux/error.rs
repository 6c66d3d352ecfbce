//! Why a PCB or a socket is not taken.

use core::error::Error;
use core::fmt;

/// A PCB or socket that was not put in, and why. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused<T, W = Refusal> {
    /// What was to be put in.
    pub given: T,
    /// Why it is not.
    pub why: W,
}

impl<T, W: fmt::Display> fmt::Display for Refused<T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)
    }
}

impl<T: fmt::Debug, W: Error> Error for Refused<T, W> {}

/// Why a [`Demux`](super::Demux) does not take a PCB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// There is a PCB of that name.
    InUse,
    /// There are 2^31 - 1 PCBs.
    Full,
    /// There is no such connection ID: it is past the capacity.
    NoSuchId,
    /// The memory cannot be had.
    NoMemory,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InUse => "there is a PCB of that name",
            Self::Full => "there are 2^31 - 1 PCBs",
            Self::NoSuchId => "the connection ID is past the capacity",
            Self::NoMemory => "the memory cannot be had",
        })
    }
}

impl Error for Refusal {}

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

/// What was to be taken out is not there.
///
/// # Example
///
/// ```
/// use flowtable::demux::{Local, NotFound, Reuse, SocketTable};
///
/// let mut sockets = SocketTable::new(10);
/// let name = sockets.bind(Local::new("0.0.0.0:53".parse()?, 17), Reuse::No, "resolver")?;
/// assert_eq!(sockets.remove(&name), Ok("resolver"));
/// assert_eq!(sockets.remove(&name), Err(NotFound));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotFound;

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is nothing of that name")
    }
}

impl Error for NotFound {}

/// A number of chains that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChainsError {
    /// A PCB must be in some chain.
    None,
    /// There is no memory for so many.
    NoMemory,
}

impl fmt::Display for ChainsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "there must be a chain",
            Self::NoMemory => "there is no memory for so many chains",
        })
    }
}

impl Error for ChainsError {}
