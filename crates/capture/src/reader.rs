//! A capture as an iterator over frames.
//!
//! Frames borrow their bytes from the [`Window`], so a frame must be processed before the next one
//! is read.
//!
//! A capture that ends inside a packet keeps all packets before; the rest of that packet is
//! returned as a truncated frame, if the file is a pcap.

use core::error::Error;
use core::fmt;
use core::ops::Range;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;

use super::pcap::Pcap;
use super::pcapng::Pcapng;
use super::source::decompressed;
use super::window::Window;

/// One packet as it was captured.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Nanoseconds since the epoch; 0 if the capture has no time for the packet.
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
    pub(crate) time_ns: u64,
    pub(crate) link: u16,
    pub(crate) wire_len: u32,
    /// The range of the frame in the window's data.
    pub(crate) data: Range<usize>,
    /// Length of the record of the frame, as the record has it.
    pub(crate) record_len: u64,
}

enum Format {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

/// A capture, read from its beginning.
pub struct Capture {
    window: Window,
    format: Format,
    /// Length of the record returned last, which is dropped before the next one.
    held: u64,
    /// Number of complete records.
    whole: u64,
    end: Option<End>,
}

impl Capture {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is not a capture.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Self::new(File::open(path)?)
    }

    /// Reads from memory.
    ///
    /// # Errors
    ///
    /// If the bytes are not a capture.
    pub fn memory(bytes: Vec<u8>) -> Result<Self, OpenError> {
        Self::new(Cursor::new(bytes))
    }

    /// Reads from any source, compressed or not.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is not a capture.
    pub fn new(bytes: impl Read + 'static) -> Result<Self, OpenError> {
        let mut window = Window::new(decompressed(bytes)?);
        let head = window.fill_to(Pcap::HEADER)?;
        if head.is_empty() {
            return Err(OpenError::Empty);
        }
        let (format, header) = if let Some(pcap) = Pcap::open(head) {
            (Format::Pcap(pcap), Pcap::HEADER as u64)
        } else if let Some(pcapng) = Pcapng::open(head) {
            // The section header is a block like all others.
            (Format::Pcapng(pcapng), 0)
        } else {
            return Err(OpenError::NotACapture);
        };
        window.skip(header)?;
        Ok(Self { window, format, held: 0, whole: 0, end: None })
    }

    /// Returns the next frame; `None` at the end of the capture, whose kind [`end`](Self::end)
    /// returns.
    pub fn next_frame(&mut self) -> Option<Frame<'_>> {
        if self.end.is_some() {
            return None;
        }
        match self.advance() {
            Ok(Located { time_ns, link, wire_len, data, record_len }) => {
                self.held = record_len;
                let data = self.window.data().get(data).unwrap_or_default();
                Some(Frame { time_ns, link, wire_len, data })
            }
            Err(end) => {
                self.end = Some(end);
                None
            }
        }
    }

    fn advance(&mut self) -> Result<Located, End> {
        if self.held > 0 {
            if !self.window.skip(self.held)? {
                return Err(End::Cut);
            }
            self.whole += 1;
        }
        match &mut self.format {
            Format::Pcap(pcap) => pcap.next(&mut self.window),
            Format::Pcapng(pcapng) => pcapng.next(&mut self.window),
        }
    }

    /// Returns how the capture ended; `None` before the end.
    pub const fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// Returns the number of complete packets so far.
    pub const fn whole_packets(&self) -> u64 {
        self.whole
    }

    /// Returns the number of blocks of a pcapng that were malformed, or had a packet of an
    /// undescribed interface.
    pub const fn skipped_blocks(&self) -> u64 {
        match &self.format {
            Format::Pcap(_) => 0,
            Format::Pcapng(pcapng) => pcapng.skipped(),
        }
    }
}

/// The end of a capture.
#[derive(Debug)]
pub enum End {
    /// After the last record.
    Whole,
    /// Inside a record.
    Cut,
    /// At a block with an invalid length, after which no block can be found.
    BadLength(u32),
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
            Self::BadLength(length) => write!(f, "a block cannot be {length} bytes long"),
            Self::Unreadable(error) => write!(f, "{error}"),
        }
    }
}

/// The reason why a capture could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// The file is empty.
    Empty,
    /// The file begins with neither a pcap header nor a pcapng section.
    NotACapture,
    /// The file cannot be read.
    Unreadable(io::Error),
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::Unreadable(error)
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "is empty, and no capture"),
            Self::NotACapture => write!(f, "is no capture: neither pcap nor pcapng"),
            Self::Unreadable(error) => write!(f, "cannot be read: {error}"),
        }
    }
}

impl Error for OpenError {}
