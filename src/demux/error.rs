//! Errors of the demultiplexers.

use core::error::Error;
use core::fmt;

/// The error of [`Demux::insert`](super::Demux::insert): the PCB that was not inserted, and why.
#[derive(Clone, PartialEq, Eq)]
pub struct RejectedPcb<T> {
    /// The PCB, returned.
    pub refused: T,
    /// The reason.
    pub reason: DemuxError,
}

/// Without the PCB, so that `unwrap` and `?` need no `Debug` of it.
impl<T> fmt::Debug for RejectedPcb<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RejectedPcb").field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for RejectedPcb<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl<T> Error for RejectedPcb<T> {}

/// The reason why a [`Demux`](super::Demux) rejects a PCB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DemuxError {
    /// The key has a PCB already.
    InUse,
    /// The structure has 2^31 - 1 PCBs, the most it can have.
    Full,
    /// The connection ID is not below the capacity.
    NoSuchId,
    /// Memory allocation failed.
    NoMemory,
}

impl fmt::Display for DemuxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InUse => "the key has a PCB already",
            Self::Full => "the structure has 2^31 - 1 PCBs, the most it can have",
            Self::NoSuchId => "the connection ID is not below the capacity",
            Self::NoMemory => "memory allocation failed",
        })
    }
}

impl Error for DemuxError {}

/// The error of a constructor with an invalid number of chains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChainsError {
    /// The number of chains is zero.
    NoChains,
    /// Memory allocation failed.
    NoMemory,
}

impl fmt::Display for ChainsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoChains => "the number of chains is zero",
            Self::NoMemory => "memory allocation for the chains failed",
        })
    }
}

impl Error for ChainsError {}

/// The error of a removal: there is no entry with this key.
///
/// # Example
///
/// ```
/// use flowtable::SocketTable;
/// use flowtable::demux::NotFound;
/// use flowtable::sockets::{Local, Reuse};
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
        f.write_str("there is no entry with this key")
    }
}

impl Error for NotFound {}
