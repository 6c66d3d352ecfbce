//! The command line.

use core::fmt;
use core::str::FromStr;
use std::ffi::OsString;
use std::path::PathBuf;

use flowtable::{GcError, PassiveGc};
use lexopt::Parser;

/// What `--help` prints.
pub(crate) const USAGE: &str = "\
Meters the flows of a packet capture with a flow cache.

Usage: flow_cache [CAPTURE | -] [options]

CAPTURE is a pcap or pcapng file, compressed with gzip or not; - is standard input:
    tcpdump -w - | flow_cache -
Without CAPTURE, traffic is generated.

Options:
    --csv FILE       write one row per flow; - is standard output
    --top N          list the N largest flows (10)
    --threshold N    collect garbage when the cache holds N flows (never)
    --goal N         remove up to N flows in one collection (100)
    --fin            remove TCP connections at their end
    --help           print this
";

/// Where the packets come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    File(PathBuf),
    Pipe,
    Generated,
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Pipe => write!(f, "standard input"),
            Self::Generated => write!(f, "generated traffic (no capture was named)"),
        }
    }
}

/// Where the rows go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    Nowhere,
    File(PathBuf),
    StandardOutput,
}

/// What the command line asks for.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) input: Input,
    pub(crate) csv: Destination,
    pub(crate) top: usize,
    pub(crate) gc: PassiveGc,
    pub(crate) fin: bool,
    pub(crate) help: bool,
}

impl Options {
    /// Reads the arguments of this process.
    pub(crate) fn from_env() -> Result<Self, OptionsError> {
        Self::parse(Parser::from_env())
    }

    fn parse(mut parser: Parser) -> Result<Self, OptionsError> {
        use lexopt::Arg::{Long, Value};
        let mut input = None;
        let (mut csv, mut fin, mut help) = (Destination::Nowhere, false, false);
        let (mut top, mut threshold, mut goal) = (10, usize::MAX, PassiveGc::TRASH_2006.goal());
        while let Some(argument) = parser.next()? {
            match argument {
                Long("csv") => {
                    let file = parser.value()?;
                    csv = if file == "-" {
                        Destination::StandardOutput
                    } else {
                        Destination::File(file.into())
                    };
                }
                Long("top") => top = number("--top", &parser.value()?)?,
                Long("threshold") => threshold = number("--threshold", &parser.value()?)?,
                Long("goal") => goal = number("--goal", &parser.value()?)?,
                Long("fin") => fin = true,
                Long("help") => help = true,
                Value(file) if input.is_none() => {
                    let is_pipe = file == "-";
                    input = Some(if is_pipe { Input::Pipe } else { Input::File(file.into()) });
                }
                _ => return Err(argument.unexpected().into()),
            }
        }
        let gc = PassiveGc::new(threshold, goal)?;
        Ok(Self { input: input.unwrap_or(Input::Generated), csv, top, gc, fin, help })
    }
}

fn number(option: &'static str, value: &OsString) -> Result<usize, OptionsError> {
    let text = value.to_string_lossy();
    usize::from_str(&text).map_err(|error| OptionsError::Number {
        option,
        value: text.into_owned(),
        error,
    })
}

/// What is wrong with the command line.
#[derive(Debug)]
pub(crate) enum OptionsError {
    Unexpected(lexopt::Error),
    Number { option: &'static str, value: String, error: core::num::ParseIntError },
    Gc(GcError),
}

impl From<lexopt::Error> for OptionsError {
    fn from(error: lexopt::Error) -> Self {
        Self::Unexpected(error)
    }
}

impl From<GcError> for OptionsError {
    fn from(error: GcError) -> Self {
        Self::Gc(error)
    }
}

impl fmt::Display for OptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unexpected(error) => write!(f, "{error}"),
            Self::Number { option, value, error } => write!(f, "{option} {value}: {error}"),
            Self::Gc(error) => write!(f, "{error}"),
        }
    }
}

impl core::error::Error for OptionsError {}
