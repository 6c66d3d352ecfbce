//! Lines of a file or a pipe, compressed or not, without comments.

use core::fmt;
use std::io::{self, BufRead, BufReader, Read};

use capture::decompressed;

use crate::program::failure::{Failure, Kind};

/// Reads one line after the other, in bounded memory.
pub struct Lines {
    name: String,
    reader: BufReader<Box<dyn Read>>,
    number: u64,
    bytes: Vec<u8>,
}

impl Lines {
    /// No line is longer.
    const LONGEST: u64 = 1 << 12;

    /// Those of these bytes, which are compressed or not.
    pub fn new(name: String, bytes: impl Read + 'static) -> Result<Self, Fault> {
        match decompressed(bytes) {
            Ok(bytes) => {
                let reader = BufReader::with_capacity(1 << 16, bytes);
                Ok(Self { name, reader, number: 0, bytes: vec![] })
            }
            Err(error) => Err(Fault::of_file(name, error)),
        }
    }

    /// The next line that says something, without white space around it; `None` at the end. A line
    /// that is at fault does not keep the next one from being read.
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
        match core::str::from_utf8(content(&self.bytes)) {
            Ok(line) => Ok(Some(line.trim())),
            Err(_) => Err(self.fault("not text".to_owned())),
        }
    }

    /// Reads a line, or the beginning of one that is too long, the rest of which is skipped the
    /// next time. Its length, which is 0 at the end.
    fn read(&mut self) -> io::Result<usize> {
        if self.is_too_long() {
            self.reader.skip_until(b'\n')?;
        }
        self.number += 1;
        self.bytes.clear();
        self.reader.by_ref().take(Self::LONGEST).read_until(b'\n', &mut self.bytes)
    }

    /// Whether only its beginning was read.
    fn is_too_long(&self) -> bool {
        self.bytes.len() as u64 == Self::LONGEST && !self.bytes.ends_with(b"\n")
    }

    /// Whether there is nothing but white space in front of the comment.
    fn is_blank(&self) -> bool {
        content(&self.bytes).trim_ascii().is_empty()
    }

    /// Whether the next line is still to be waited for.
    pub fn is_drained(&self) -> bool {
        self.reader.buffer().is_empty()
    }

    /// What is wrong with the line that was read last.
    pub fn fault(&self, why: String) -> Fault {
        Fault { name: self.name.clone(), line: Some(self.number), why }
    }
}

/// What is in front of the comment.
fn content(line: &[u8]) -> &[u8] {
    line.split(|byte| *byte == b'#').next().unwrap_or_default()
}

/// What cannot be read, and why.
#[derive(Clone, Debug)]
pub struct Fault {
    name: String,
    /// From 1; none if nothing more can be read.
    line: Option<u64>,
    why: String,
}

impl Fault {
    /// Nothing, or nothing more, can be read of what has this name.
    pub fn of_file(name: String, error: io::Error) -> Self {
        Self { name, line: None, why: error.to_string() }
    }

    /// Whether it is a line that is wrong, and there may be others.
    pub const fn is_of_line(&self) -> bool {
        self.line.is_some()
    }
}

/// Routes or addresses cannot be read.
impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::new(Kind::Input, fault)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}, line {line}: {}", self.name, self.why),
            None => write!(f, "{} cannot be read: {}", self.name, self.why),
        }
    }
}
