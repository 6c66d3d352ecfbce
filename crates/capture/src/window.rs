//! A window on the bytes of a capture.
//!
//! ```text
//!     source ──read──► │ consumed │ data() │ free │
//!                      0        start     end     bytes.len(), at most twice MAX
//! ```
//!
//! A source without bytes for now returns an error of kind `WouldBlock`. All methods pass it on
//! without losing their position, so the same call can be repeated later.

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
}

impl Window {
    /// Maximum number of bytes in the window: Wireshark's limit for a block of pcapng.
    pub(crate) const MAX: usize = 1 << 24;

    /// Initial size: some hundred packets, so that reads are few.
    const START: usize = 1 << 18;

    pub(crate) fn new(source: Box<dyn Read>) -> Self {
        Self { source, bytes: vec![0; Self::START], start: 0, end: 0, offset: 0, owed: 0 }
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
                Ok(count) => self.end += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
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
        }
        Ok(true)
    }

    /// Makes space after the end. Grows only when full of bytes that did arrive: a claimed length
    /// alone allocates nothing.
    fn make_space(&mut self) {
        if self.end < self.bytes.len() {
            return;
        }
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        } else {
            self.bytes.resize(2 * self.bytes.len(), 0);
        }
    }
}
