//! What examples have in common as programs: how they end, how they open a capture, numbers on the command
//! line.

use core::fmt;
use std::ffi::OsStr;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

use crate::capture::{Capture, End, OpenError};

/// An example, by the name that its messages begin with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program(pub(crate) &'static str);

impl Program {
    /// What the process exits with. Says why, if it is a failure.
    pub(crate) fn end(self, result: Result<(), Failure>) -> ExitCode {
        let Err(failure) = result else { return ExitCode::SUCCESS };
        if failure.code() != 0 {
            self.say(&failure);
        }
        ExitCode::from(failure.code())
    }

    /// One line on standard error. If that is closed, there is nobody left to tell.
    pub(crate) fn say(self, what: &dyn fmt::Display) {
        let _ = writeln!(io::stderr(), "{}: {what}", self.0);
    }

    /// Says so if a capture was not read to its end, where `taken` packets of it are used.
    pub(crate) fn say_end(self, capture: &Capture, taken: usize) {
        match capture.end() {
            None => self.say(&format_args!("the first {taken} packets are taken")),
            Some(End::Whole) => {}
            Some(end) => {
                let whole = capture.whole_packets();
                self.say(&format_args!("capture is cut after packet {whole}: {end}"));
            }
        }
    }
}

/// Opens a file, or standard input if that is named by `-`.
pub(crate) fn open(path: &Path) -> Result<Capture, Failure> {
    let capture =
        if path == Path::new("-") { Capture::standard_input() } else { Capture::open(path) };
    capture.map_err(|error| Failure::Input(path.display().to_string(), error))
}

/// Why there is no result, or a wrong one.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The arguments are wrong.
    Usage(String),
    /// There is no capture to read in what is named.
    Input(String, OpenError),
    /// There is one, but nothing in it that is looked for.
    Nothing(String, &'static str),
    /// The results cannot be written.
    Output(io::Error),
    /// They are wrong.
    Disagreement(&'static str),
}

impl Failure {
    pub(crate) fn code(&self) -> u8 {
        match self {
            // Who reads has seen enough.
            Self::Output(error) if error.kind() == ErrorKind::BrokenPipe => 0,
            Self::Output(_) | Self::Disagreement(_) => 1,
            Self::Usage(_) | Self::Input(..) | Self::Nothing(..) => 2,
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<lexopt::Error> for Failure {
    fn from(error: lexopt::Error) -> Self {
        Self::Usage(error.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(what) => write!(f, "{what} (--help lists the options)"),
            Self::Input(name, error) => write!(f, "{name} {error}"),
            Self::Nothing(name, what) => write!(f, "{name} has no {what}"),
            Self::Output(error) => write!(f, "the results cannot be written: {error}"),
            Self::Disagreement(what) => write!(f, "{what}"),
        }
    }
}

/// The value of an option that is a number from 1 to this one.
pub(crate) fn count(option: &str, value: &OsStr, most: u32) -> Result<u32, lexopt::Error> {
    let text = value.to_string_lossy();
    let number = text.parse().map_err(|error| wrong(option, &text, &error))?;
    if !(1..=most).contains(&number) {
        return Err(wrong(option, &text, &format_args!("not from 1 to {most}")));
    }
    Ok(number)
}

/// What is wrong with the value of an option.
pub(crate) fn wrong(option: &str, value: &str, why: &dyn fmt::Display) -> lexopt::Error {
    format!("{option} {value}: {why}").into()
}
