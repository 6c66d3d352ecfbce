//! Many threads look flows up while one writes: what a `ConcurrentMap` is for.
//!
//! ```text
//! cargo run --release --features concurrent --example shared_reader       # generated traffic
//! cargo run --release --features concurrent --example shared_reader -- capture.pcapng.gz
//! cargo run --release --features concurrent --example shared_reader -- --threads 3 --flows 1000000
//! ```
//!
//! Worker threads take packets in bursts and count them in their flows. Those without a flow go to a
//! control thread, which puts flows in and takes silent ones out. Prints look-ups per second of each
//! worker, the latencies of the writer, the map's memory and garbage, and whether all counters agree.
//!
//! Exits with 0 if they do; with 1 if they do not, or the results could not be written; with 2 if
//! there is no capture to read, or the arguments are wrong.

mod capture;
mod shared_reader_parts;

use core::fmt;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

use capture::{Capture, End, OpenError};
use shared_reader_parts::{Made, Options, Recorded, Report, Traffic, USAGE, run};

/// The generated traffic is the same in each run.
const SEED: u64 = 2006;

fn main() -> ExitCode {
    match try_main() {
        Ok(()) => ExitCode::SUCCESS,
        // Who reads has seen enough.
        Err(Failure::Output(error)) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            say(&failure);
            failure.code()
        }
    }
}

fn try_main() -> Result<(), Failure> {
    let options = Options::from_env().map_err(|error| Failure::Usage(error.to_string()))?;
    if options.help {
        return Ok(io::stdout().write_all(USAGE.as_bytes())?);
    }
    let (name, traffic) = match &options.capture {
        Some(path) => (format!("{}: ", path.display()), Traffic::Recorded(read(path)?)),
        None => (String::new(), Traffic::Made(Made::new(options.flows, SEED))),
    };
    let outcome = run(&traffic, options.plan);
    let report = Report { input: &format_args!("{name}{traffic}"), outcome: &outcome };
    io::stdout().write_all(report.to_string().as_bytes())?;
    if outcome.disagreements().is_empty() { Ok(()) } else { Err(Failure::Disagreement) }
}

/// The packets of a capture.
fn read(path: &Path) -> Result<Recorded, Failure> {
    let name = || path.display().to_string();
    let capture =
        if path == Path::new("-") { Capture::standard_input() } else { Capture::open(path) };
    let mut capture = capture.map_err(|error| Failure::Input(name(), error))?;
    let recorded = Recorded::read(&mut capture).ok_or_else(|| Failure::NoFlows(name()))?;
    match capture.end() {
        None => say(&format_args!("the first {} packets are taken", recorded.len())),
        Some(End::Whole) => {}
        Some(end) => {
            say(&format_args!("capture is cut after packet {}: {end}", capture.whole_packets()));
        }
    }
    Ok(recorded)
}

/// One line on standard error. If that is closed, there is nobody left to tell.
fn say(what: &dyn fmt::Display) {
    let _ = writeln!(io::stderr(), "shared_reader: {what}");
}

/// Why there is no result, or a wrong one.
#[derive(Debug)]
enum Failure {
    /// The arguments are wrong.
    Usage(String),
    /// There is no capture to read in what is named.
    Input(String, OpenError),
    /// There is one, without packets that have a flow.
    NoFlows(String),
    /// The results cannot be written.
    Output(io::Error),
    /// Packets were lost or counted twice.
    Disagreement,
}

impl Failure {
    fn code(&self) -> ExitCode {
        match self {
            Self::Output(_) | Self::Disagreement => ExitCode::from(1),
            Self::Usage(_) | Self::Input(..) | Self::NoFlows(_) => ExitCode::from(2),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(what) => write!(f, "{what} (--help lists the options)"),
            Self::Input(name, error) => write!(f, "{name} {error}"),
            Self::NoFlows(name) => write!(f, "{name} has no packet of a flow"),
            Self::Output(error) => write!(f, "the results cannot be written: {error}"),
            Self::Disagreement => write!(f, "the counters disagree"),
        }
    }
}
