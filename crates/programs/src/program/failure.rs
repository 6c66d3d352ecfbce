//! Failures of a program.

use core::fmt;
use std::io::{self, ErrorKind};

use super::signals::Signal;

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The reader of the results has closed the pipe: not an error.
    ReaderClosed,
    /// The results are wrong, or could not be written.
    Results,
    /// The arguments are wrong, or an input cannot be read or is damaged.
    Input,
    /// A signal has ended the run.
    Signal(Signal),
}

/// A failure with its message, which is one line.
#[derive(Debug)]
pub struct Failure {
    kind: Kind,
    why: String,
}

impl Failure {
    pub fn new(kind: Kind, why: impl fmt::Display) -> Self {
        Self { kind, why: why.to_string() }
    }

    /// Returns the exit code of the process.
    pub fn code(&self) -> u8 {
        match self.kind {
            Kind::ReaderClosed => 0,
            Kind::Results => 1,
            Kind::Input => 2,
            Kind::Signal(signal) => signal.code(),
        }
    }
}

/// Converts an error of writing results.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let is_closed = error.kind() == ErrorKind::BrokenPipe;
        let kind = if is_closed { Kind::ReaderClosed } else { Kind::Results };
        Self::new(kind, format_args!("the results cannot be written: {error}"))
    }
}

/// Converts an error of the arguments.
impl From<lexopt::Error> for Failure {
    fn from(error: lexopt::Error) -> Self {
        Self::new(Kind::Input, format_args!("{error} (--help lists the options)"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}
