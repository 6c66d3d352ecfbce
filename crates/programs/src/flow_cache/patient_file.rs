//! A file or a pipe that is written, and whose reader may be slow.

use std::fs::File;
use std::io::{self, ErrorKind, Write};

use crate::input::is_writable;
use crate::program::signals::Signals;

/// A file or a pipe. A write to a pipe waits for its reader, but not for long after a signal has
/// ended the run.
pub(crate) struct PatientFile {
    file: File,
    is_regular: bool,
    signals: Signals,
}

impl PatientFile {
    /// Bytes that a pipe takes without waiting if it takes any: `PIPE_BUF` of Linux.
    const PIECE: usize = 4096;

    pub(crate) fn new(file: File, signals: Signals) -> Self {
        Self { is_regular: regular_length(&file).is_some(), file, signals }
    }

    /// Writes some of these bytes, and returns their number.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_regular {
            return self.file.write(bytes);
        }
        while !is_writable(&self.file)? {
            self.signals.check_outputs()?;
        }
        self.file.write(&bytes[..bytes.len().min(Self::PIECE)])
    }

    /// Removes this many bytes from the end.
    pub(crate) fn shorten(&self, count: usize) -> io::Result<()> {
        let length = regular_length(&self.file).ok_or(ErrorKind::Unsupported)?;
        self.file.set_len(length.saturating_sub(count as u64))
    }
}

/// Returns the length of a regular file; `None` for a pipe, a terminal or a device.
pub(crate) fn regular_length(file: &File) -> Option<u64> {
    let about = file.metadata().ok()?;
    about.is_file().then_some(about.len())
}
