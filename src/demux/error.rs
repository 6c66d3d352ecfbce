//! Errors of the demultiplexers.

use core::error::Error;
use core::fmt;

/// A PCB that was not inserted, and why. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedPcb<T> {
    /// The PCB.
    pub given: T,
    /// Why it was not inserted.
    pub why: DemuxError,
}

impl<T> fmt::Display for RejectedPcb<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)
    }
}

impl<T: fmt::Debug> Error for RejectedPcb<T> {}

/// Why a [`Demux`](super::Demux) does not take a PCB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DemuxError {
    /// There is a PCB of that name.
    InUse,
    /// There are 2^31 - 1 PCBs.
    Full,
    /// There is no such connection ID: it is past the capacity.
    NoSuchId,
    /// The memory cannot be had.
    NoMemory,
}

impl fmt::Display for DemuxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InUse => "there is a PCB of that name",
            Self::Full => "there are 2^31 - 1 PCBs",
            Self::NoSuchId => "the connection ID is past the capacity",
            Self::NoMemory => "the memory cannot be had",
        })
    }
}

impl Error for DemuxError {}

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

/// What was to be taken out is not there.
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
        f.write_str("there is nothing of that name")
    }
}

impl Error for NotFound {}
