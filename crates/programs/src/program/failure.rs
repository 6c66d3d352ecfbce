//! Why there is no result, or a wrong one.

use core::fmt;
use std::io::{self, ErrorKind};

/// What sort of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Who reads the results has seen enough of them: nothing is wrong.
    ReaderClosed,
    /// The results are wrong, or did not get where they should.
    Results,
    /// The arguments are wrong, or what they name cannot be read.
    Input,
}

/// What is said at the end, in a line.
#[derive(Debug)]
pub struct Failure {
    kind: Kind,
    why: String,
}

impl Failure {
    pub fn new(kind: Kind, why: impl fmt::Display) -> Self {
        Self { kind, why: why.to_string() }
    }

    /// What the process exits with.
    pub fn code(&self) -> u8 {
        match self.kind {
            Kind::ReaderClosed => 0,
            Kind::Results => 1,
            Kind::Input => 2,
        }
    }
}

/// Results could not be written.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let is_closed = error.kind() == ErrorKind::BrokenPipe;
        let kind = if is_closed { Kind::ReaderClosed } else { Kind::Results };
        Self::new(kind, format_args!("the results cannot be written: {error}"))
    }
}

/// The arguments are wrong.
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
