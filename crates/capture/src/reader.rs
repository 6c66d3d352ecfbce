//! A capture as an iterator over frames.
//!
//! Frames borrow their bytes from the [`Window`], so a frame must be processed before the next one
//! is read.
//!
//! A capture that ends inside a packet keeps all packets before; the rest of that packet is
//! returned as a truncated frame, if the file is a pcap. After a damaged place, reading continues
//! with the next plausible record.
//!
//! A live source returns an error of kind `WouldBlock` if it has no bytes for now: then
//! [`poll_frame`](Capture::poll_frame) returns `Pending`, as it does after a few milliseconds of
//! work without a frame.

use core::error::Error;
use core::fmt;
use core::mem;
use core::task::Poll;
use std::fs::File;
use std::io::{self, Cursor, ErrorKind, Read};
use std::path::Path;

use super::damage::Damages;
use super::layout::Layout;
use super::pcap::{Covered, Pcap};
use super::pcapng::Pcapng;
use super::record::{End, Frame, Located, Next};
use super::source::{self, decompressed_within};
use super::window::Window;

enum Format {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

impl Format {
    /// Opens the file at the beginning of the window, if it is a capture.
    fn open(window: &mut Window) -> io::Result<Option<Self>> {
        let head = window.fill_to(Layout::FILE_HEADER)?;
        if let Some((pcap, header)) = Pcap::open(head) {
            window.retain(0);
            window.consume(header as u64);
            return Ok(Some(Self::Pcap(pcap)));
        }
        // Its first block is a section.
        Ok(Pcapng::open(head).map(Self::Pcapng))
    }
}

/// A source whose format is not known yet.
pub struct Opening {
    window: Window,
}

impl Opening {
    /// The usual length of a buffer: some hundred packets, so that reads are few.
    pub const BUFFER: usize = 1 << 18;

    /// Memory of the decoder of gzip and its buffer.
    pub const DECODER: usize = 1 << 17;

    /// Memory of a decoder of lz4 or bzip2, at most.
    pub const BLOCK_DECODER: usize = 1 << 23;

    /// Memory of a decoder of xz or zstd, without another limit.
    pub const WINDOW_DECODER: usize = source::DECODER;

    /// Creates it for any source, compressed or not.
    pub fn new(bytes: impl Read + 'static) -> Self {
        Self::within(bytes, Self::BUFFER, Self::WINDOW_DECODER)
    }

    /// Creates it with a buffer of at least this length, which grows if a record is longer, and
    /// with a limit for the memory of a decoder of xz or zstd.
    pub fn within(bytes: impl Read + 'static, len: usize, decoder: usize) -> Self {
        Self { window: Window::new(Box::new(decompressed_within(bytes, decoder)), len) }
    }

    /// Reads the beginning of the source. Returns `None` if it has not arrived yet; then it can be
    /// called again.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is not a capture.
    pub fn poll(&mut self) -> Result<Option<Capture>, OpenError> {
        self.window.resume();
        let format = match Format::open(&mut self.window) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Ok(None) if self.window.data().is_empty() => return Err(OpenError::Empty),
            format => format?.ok_or(OpenError::NotACapture)?,
        };
        let window = mem::replace(&mut self.window, Window::new(Box::new(io::empty()), 0));
        Ok(Some(Capture {
            window,
            format,
            next: None,
            last_ns: None,
            is_held: false,
            whole: 0,
            damages: Damages::default(),
            end: None,
        }))
    }
}

/// A capture, read from its beginning.
pub struct Capture {
    window: Window,
    format: Format,
    /// The next frame, if it was located and not returned.
    next: Option<Located>,
    /// Time of the last packet that has one; before the first of these, its time if that is known,
    /// or else 0. `None` before any packet.
    last_ns: Option<u64>,
    /// Whether the record returned last is not dropped yet.
    is_held: bool,
    /// Number of complete records.
    whole: u64,
    damages: Damages,
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
        let mut opening = Opening::new(bytes);
        loop {
            if let Some(capture) = opening.poll()? {
                return Ok(capture);
            }
        }
    }

    /// Returns the next frame, as soon as it has arrived; `None` at the end of the capture, whose
    /// kind [`end`](Self::end) returns.
    pub fn next_frame(&mut self) -> Option<Frame<'_>> {
        loop {
            match self.poll_time() {
                Poll::Ready(None) => return None,
                Poll::Ready(Some(_)) => break,
                Poll::Pending => {}
            }
        }
        let next = self.next.take()?;
        Some(self.frame(next))
    }

    /// Returns the next frame, if it has arrived; `None` at the end. A call is short: it returns
    /// `Pending`, too, after a long way without a frame, so that a caller can react to signals.
    pub fn poll_frame(&mut self) -> Poll<Option<Frame<'_>>> {
        match self.poll_time() {
            Poll::Pending => Poll::Pending,
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Ready(Some(_)) => {
                let next = self.next.take();
                Poll::Ready(next.map(|next| self.frame(next)))
            }
        }
    }

    /// Passes frames that have arrived to `each`, in place: the next one, and those after it whose
    /// times are before `limit_ns`; at most `most` of them. Returns their number: 0 if none has
    /// arrived, or at the end.
    pub fn read_before(
        &mut self,
        limit_ns: u64,
        most: usize,
        mut each: impl FnMut(&Frame<'_>),
    ) -> usize {
        let mut count = 0;
        while count < most {
            match self.poll_time() {
                Poll::Ready(Some(time_ns)) if count == 0 || time_ns < limit_ns => {}
                Poll::Ready(_) | Poll::Pending => break,
            }
            let Some(next) = self.next.take() else { break };
            each(&self.frame(next));
            count += 1;
            count += self.read_usual(limit_ns, most - count, &mut each);
        }
        count
    }

    /// Reads as [`read_before`](Self::read_before), but only frames of a pcap that are in the
    /// window and need no closer look: most are.
    fn read_usual(
        &mut self,
        limit_ns: u64,
        most: usize,
        each: &mut impl FnMut(&Frame<'_>),
    ) -> usize {
        let Format::Pcap(pcap) = &mut self.format else { return 0 };
        if !self.window.drop_consumed() {
            return 0;
        }
        self.whole += u64::from(mem::take(&mut self.is_held));
        let usual = pcap.read_usual(self.window.data(), limit_ns, most, each);
        if usual.count > 0 {
            self.window.drop_first(usual.length);
            self.window.retain(usual.last_length);
            self.whole += usual.count as u64;
            self.last_ns = Some(usual.last_ns);
        }
        usual.count
    }

    /// Returns the time of the next frame, if it has arrived; `None` at the end.
    pub fn poll_time(&mut self) -> Poll<Option<u64>> {
        if self.next.is_some() {
            return Poll::Ready(self.last_ns);
        }
        if self.end.is_some() {
            return Poll::Ready(None);
        }
        self.window.resume();
        match self.advance() {
            Ok(next) => {
                let before = next.time_ns.or(self.last_ns);
                self.last_ns = before.or_else(|| Some(self.time_ahead(&next).unwrap_or(0)));
                self.next = Some(next);
                Poll::Ready(self.last_ns)
            }
            Err(End::Unreadable(error)) if error.kind() == ErrorKind::WouldBlock => Poll::Pending,
            Err(end) => {
                self.end = Some(end);
                Poll::Ready(None)
            }
        }
    }

    /// Returns the frame, and marks its record as consumed.
    fn frame(&mut self, located: Located) -> Frame<'_> {
        let Located { time_ns: _, link, wire_len, data, record_len } = located;
        let time_ns = self.last_ns.unwrap_or(0);
        self.window.consume(record_len);
        self.is_held = true;
        let data = self.window.data().get(data).unwrap_or_default();
        Frame { time_ns, link, wire_len, data }
    }

    /// Returns the time of the first packet after this one that has a time, as far as bytes have
    /// arrived.
    fn time_ahead(&self, located: &Located) -> Option<u64> {
        let Format::Pcapng(pcapng) = &self.format else { return None };
        pcapng.first_time(self.window.data().get(located.record_len as usize..)?)
    }

    fn advance(&mut self) -> Result<Located, End> {
        let Self { window, damages, .. } = self;
        loop {
            let is_whole = window.settle()?;
            self.whole += u64::from(mem::take(&mut self.is_held) && is_whole);
            let next = match &mut self.format {
                Format::Pcap(pcap) if !is_whole => match pcap.return_from_end(window, damages)? {
                    Covered::File => Next::File,
                    Covered::Record => continue,
                },
                Format::Pcapng(_) if !is_whole => return Err(End::Cut),
                Format::Pcap(pcap) => pcap.next(window, damages)?,
                Format::Pcapng(pcapng) => pcapng.next(window, damages)?,
            };
            match next {
                Next::Frame(located) => return Ok(located),
                Next::File => self.format = Format::open(window)?.ok_or(End::Cut)?,
            }
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

    /// Returns the damaged places so far.
    pub const fn damages(&self) -> &Damages {
        &self.damages
    }

    /// Returns the work of reading so far: bytes read, moved and examined. It is linear in the
    /// decompressed bytes, whatever these are.
    pub const fn work(&self) -> u64 {
        self.window.work()
    }

    /// Returns the offset in the decompressed bytes up to which the capture was read.
    pub const fn offset(&self) -> u64 {
        self.window.offset()
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
