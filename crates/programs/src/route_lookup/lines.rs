//! Lines of a file or a pipe, compressed or not, without comments.

use core::{fmt, mem};
use std::io::{self, BufRead, BufReader, Cursor, Read};

use capture::decompressed;

use crate::program::failure::{Failure, Kind};

/// Reads one line after the other, in bounded memory.
pub struct Lines {
    name: String,
    reader: BufReader<Box<dyn Read>>,
    number: u64,
    bytes: Vec<u8>,
    /// The last line, as text.
    text: String,
}

impl Lines {
    /// Maximum length of a line.
    const LONGEST: u64 = 1 << 12;

    /// Reads lines of `bytes`, which may be compressed.
    pub fn new(name: String, bytes: impl Read + 'static) -> Result<Self, Fault> {
        let mut bytes = BufReader::new(bytes);
        if let Err(error) = bytes.fill_buf() {
            return Err(Fault::of_file(name, error));
        }
        let bytes: Box<dyn Read> = Box::new(decompressed(bytes));
        let reader = BufReader::with_capacity(1 << 16, bytes);
        Ok(Self { name, reader, number: 0, bytes: vec![], text: String::new() })
    }

    /// Returns the next bytes, fewer at the end, which remain to be read.
    pub(super) fn peek<const N: usize>(&mut self) -> Result<Vec<u8>, Fault> {
        let mut head = vec![];
        if let Err(error) = self.reader.by_ref().take(N as u64).read_to_end(&mut head) {
            return Err(Fault::of_file(self.name.clone(), error));
        }
        let rest = mem::replace(&mut self.reader, BufReader::new(Box::new(io::empty())));
        let whole = Box::new(Cursor::new(head.clone()).chain(rest));
        self.reader = BufReader::with_capacity(1 << 16, whole);
        Ok(head)
    }

    /// Returns the reader of the bytes, for a file that is not text.
    pub(super) fn bytes(&mut self) -> &mut impl Read {
        &mut self.reader
    }

    /// Creates a fault of a record, by its number.
    pub(super) fn record_fault(&self, number: u64, why: String) -> Fault {
        Fault { name: self.name.clone(), place: Place::Record(number), why }
    }

    /// Creates a fault of the file.
    pub(super) fn file_fault(&self, error: io::Error) -> Fault {
        Fault::of_file(self.name.clone(), error)
    }

    /// Returns the next line with content, trimmed; `None` at the end. An invalid line does not
    /// prevent reading the next one.
    pub fn next_line(&mut self) -> Result<Option<&str>, Fault> {
        loop {
            match self.read() {
                Ok(0) => return Ok(None),
                Ok(length) if self.is_too_long() => {
                    return Err(self.fault(format!("{length} bytes and no end of the line")));
                }
                Ok(_) if self.is_blank() => {}
                Ok(_) => break,
                Err(error) => return Err(Fault::of_file(self.name.clone(), error)),
            }
        }
        let line = self.content().trim_ascii();
        // A name may have another encoding.
        let is_text = line.split(u8::is_ascii_whitespace).next().is_some_and(<[u8]>::is_ascii);
        self.text = String::from_utf8_lossy(line).into_owned();
        match is_text {
            true => Ok(Some(self.text.trim())),
            false => Err(self.fault("not text".to_owned())),
        }
    }

    /// Reads a line, or the beginning of one that is too long, whose rest the next call skips.
    /// Returns its length, which is 0 at the end.
    fn read(&mut self) -> io::Result<usize> {
        if self.is_too_long() {
            self.reader.skip_until(b'\n')?;
        }
        self.number += 1;
        self.bytes.clear();
        self.reader.by_ref().take(Self::LONGEST).read_until(b'\n', &mut self.bytes)
    }

    /// Returns whether only the beginning of the line was read.
    fn is_too_long(&self) -> bool {
        self.bytes.len() as u64 == Self::LONGEST && !self.bytes.ends_with(b"\n")
    }

    /// Returns the line without the comment, and without the mark of an encoding.
    fn content(&self) -> &[u8] {
        let line = self.bytes.split(|byte| b"#;".contains(byte)).next().unwrap_or_default();
        let mark: &[u8] = if self.number == 1 { b"\xef\xbb\xbf" } else { b"" };
        line.strip_prefix(mark).unwrap_or(line)
    }

    /// Returns whether the line has only white space before the comment.
    fn is_blank(&self) -> bool {
        self.content().trim_ascii().is_empty()
    }

    /// Returns whether reading the next line may block.
    pub fn is_drained(&self) -> bool {
        self.reader.buffer().is_empty()
    }

    /// Creates a fault of the last line.
    pub fn fault(&self, why: String) -> Fault {
        Fault { name: self.name.clone(), place: Place::Line(self.number), why }
    }
}

/// A file or a line that cannot be read, and the reason.
#[derive(Clone, Debug)]
pub struct Fault {
    name: String,
    place: Place,
    why: String,
}

/// The place of a fault.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// Numbers from 1.
    Line(u64),
    Record(u64),
    /// The file cannot be read any further.
    File,
}

impl Fault {
    /// Creates a fault of a file that cannot be read further.
    pub fn of_file(name: String, error: io::Error) -> Self {
        Self { name, place: Place::File, why: error.to_string() }
    }

    /// Returns whether only a line is invalid, and others may follow.
    pub const fn is_of_line(&self) -> bool {
        matches!(self.place, Place::Line(_))
    }
}

/// Converts a fault of routes or addresses.
impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::new(Kind::Input, fault)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, place, why } = self;
        match place {
            Place::Line(line) => write!(f, "{name}, line {line}: {why}"),
            Place::Record(record) => write!(f, "{name}, record {record}: {why}"),
            Place::File => write!(f, "{name} cannot be read: {why}"),
        }
    }
}
