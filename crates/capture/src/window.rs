//! A window on the bytes of a capture.
//!
//! ```text
//!     source ──read──► │ consumed │ data() │ free │
//!                      0        start     end     bytes.len(), at most twice MAX
//! ```
//!
//! A source without bytes for now returns an error of kind `WouldBlock`. All methods pass it on
//! without losing their position, so the same call can be repeated later. They return the same
//! error after [`SLICE`](Window::SLICE) units of work, so that no call is long: a caller that reads
//! on may first look at its signals.
//!
//! The work is linear in the bytes of the source: bytes are moved only after a quarter of the
//! buffer was consumed.

use std::io::{self, ErrorKind, Read};

/// Buffered bytes of a source, from the first unconsumed one on.
pub(crate) struct Window {
    source: Box<dyn Read>,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes of the source that were consumed.
    offset: u64,
    /// Bytes to consume before the next read.
    owed: u64,
    /// Number of consumed bytes that stay before `start`.
    retained: usize,
    /// The offset up to which bytes were consumed before the last rewind.
    rewound: u64,
    /// Units of work: bytes read, moved, cleared or examined, and steps.
    work: u64,
    /// The work after which the present call ends.
    pause: u64,
}

impl Window {
    /// Maximum number of bytes in the window: Wireshark's limit for a block of pcapng.
    pub(crate) const MAX: usize = 1 << 24;

    /// The smallest size.
    const LEAST: usize = 1 << 12;

    /// Units of work of one call: milliseconds.
    const SLICE: u64 = 1 << 20;

    pub(crate) fn new(source: Box<dyn Read>, size: usize) -> Self {
        Self {
            source,
            bytes: vec![0; size.max(Self::LEAST).next_power_of_two()],
            start: 0,
            end: 0,
            offset: 0,
            owed: 0,
            retained: 0,
            rewound: 0,
            work: 0,
            pause: Self::SLICE,
        }
    }

    /// Allows the next [`SLICE`](Self::SLICE) units of work.
    pub(crate) const fn resume(&mut self) {
        self.pause = self.work + Self::SLICE;
    }

    /// Returns the units of work so far.
    pub(crate) const fn work(&self) -> u64 {
        self.work
    }

    /// Counts work that made progress.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if it is enough for one call.
    pub(crate) fn spend(&mut self, work: usize) -> io::Result<()> {
        self.work += work as u64;
        if self.work >= self.pause { Err(ErrorKind::WouldBlock.into()) } else { Ok(()) }
    }

    /// Returns the bytes that have been read and not consumed.
    pub(crate) fn data(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Returns the offset of the window in the source.
    pub(crate) const fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads until `wanted` bytes (at most [`MAX`](Self::MAX)) are available or the source ends,
    /// and returns all available bytes. Never blocks for more than `wanted`: the source may be
    /// live.
    pub(crate) fn fill_to(&mut self, wanted: usize) -> io::Result<&[u8]> {
        let wanted = wanted.min(Self::MAX);
        while self.end - self.start < wanted {
            self.make_space();
            match self.source.read(&mut self.bytes[self.end..]) {
                Ok(0) => break,
                Ok(count) => {
                    self.end += count;
                    self.work += count as u64;
                }
                // After a signal, or much work without a result: the caller may have other work.
                Err(error) if error.kind() == ErrorKind::Interrupted => {
                    return Err(ErrorKind::WouldBlock.into());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(self.data())
    }

    /// Marks `count` bytes as consumed; [`settle`](Self::settle) drops them.
    pub(crate) const fn consume(&mut self, count: u64) {
        self.owed += count;
    }

    /// Drops the consumed bytes. Returns whether the source had them.
    pub(crate) fn settle(&mut self) -> io::Result<bool> {
        while self.owed > 0 {
            if self.start == self.end && self.fill_to(1)?.is_empty() {
                return Ok(false);
            }
            let held = self.end - self.start;
            let dropped = usize::try_from(self.owed).map_or(held, |owed| owed.min(held));
            self.start += dropped;
            self.offset += dropped as u64;
            self.owed -= dropped as u64;
            self.spend(1)?;
        }
        Ok(true)
    }

    /// Drops the consumed bytes, if they have been read. Returns whether that is so.
    #[inline]
    pub(crate) fn drop_consumed(&mut self) -> bool {
        let is_there = self.owed <= (self.end - self.start) as u64;
        if is_there {
            self.drop_first(self.owed as usize);
            self.owed = 0;
        }
        is_there
    }

    /// Drops this many bytes, which have been read, and none of which are owed.
    pub(crate) fn drop_first(&mut self, count: usize) {
        self.start += count;
        self.offset += count as u64;
        self.work += 1;
    }

    /// Keeps this number of bytes after they are consumed, until the next call.
    pub(crate) const fn retain(&mut self, count: usize) {
        self.retained = count;
    }

    /// Returns the number of bytes that are retained after they were consumed; 0 if some of them
    /// were consumed before a rewind, too, so that no byte is consumed more than twice.
    pub(crate) fn behind(&self) -> usize {
        let count = self.start.min(self.retained);
        if self.offset - count as u64 >= self.rewound { count } else { 0 }
    }

    /// Returns the bytes from this number of retained ones on.
    pub(crate) fn from(&self, back: usize) -> &[u8] {
        &self.bytes[self.start - back.min(self.start)..self.end]
    }

    /// Moves back by this number of retained bytes, which were consumed.
    pub(crate) fn rewind(&mut self, count: usize) {
        let count = count.min(self.start).min(self.retained);
        self.rewound = self.offset;
        self.start -= count;
        self.offset -= count as u64;
        (self.owed, self.retained) = (0, 0);
    }

    /// Makes space after the end. Grows only when full of bytes that did arrive: a claimed length
    /// alone allocates nothing.
    fn make_space(&mut self) {
        if self.end < self.bytes.len() {
            return;
        }
        let unused = self.start - self.start.min(self.retained);
        if unused >= self.bytes.len() / 4 {
            self.bytes.copy_within(unused..self.end, 0);
            self.start -= unused;
            self.end -= unused;
            self.work += self.end as u64;
        } else {
            self.work += self.bytes.len() as u64;
            self.bytes.resize(2 * self.bytes.len(), 0);
        }
    }
}
