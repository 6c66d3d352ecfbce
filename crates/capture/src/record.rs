//! Frames, and other results of reading a record of a capture.

use core::fmt;
use core::ops::Range;
use std::io;

/// One packet as it was captured.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Nanoseconds since the epoch. A packet without a time has the time of the packet before it;
    /// at the beginning of the capture, the first time of a packet, or 0 if that time is far.
    pub time_ns: u64,
    /// Link type, by its number in the registry of tcpdump.org.
    pub link: u16,
    /// Length of the packet on the wire.
    pub wire_len: u32,
    /// The captured bytes: all, or a prefix.
    pub data: &'a [u8],
}

/// A frame whose bytes are still in the window.
pub(crate) struct Located {
    /// `None` if the capture has no time for it.
    pub(crate) time_ns: Option<u64>,
    pub(crate) link: u16,
    pub(crate) wire_len: u32,
    /// The range of the frame in the window's data.
    pub(crate) data: Range<usize>,
    /// Length of the record of the frame, as the record has it.
    pub(crate) record_len: u64,
}

/// The next part of a file.
pub(crate) enum Next {
    Frame(Located),
    /// The beginning of another file.
    File,
}

/// The end of a capture.
#[derive(Debug)]
pub enum End {
    /// After the last record.
    Whole,
    /// Inside a record.
    Cut,
    /// At a read error.
    Unreadable(io::Error),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        Self::Unreadable(error)
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => write!(f, "the capture is whole"),
            Self::Cut => write!(f, "the file ends inside a record"),
            Self::Unreadable(error) => write!(f, "{error}"),
        }
    }
}
