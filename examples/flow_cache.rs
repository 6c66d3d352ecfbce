//! Meters the flows of a packet capture: the main job of the crate, from end to end.
//!
//! ```text
//! cargo run --release --example flow_cache                      # generated traffic
//! cargo run --release --example flow_cache -- capture.pcapng.gz --csv flows.csv
//! tcpdump -w - | cargo run --release --example flow_cache -- - --threshold 100000 --fin
//! ```
//!
//! Prints totals, the hit rate, the largest flows and the shape of the trie; writes one row per
//! flow with `--csv`. With `--threshold`, garbage is collected as in the TRASH paper, and with
//! `--fin` TCP connections leave at their end: rows of one flow then add up to it.
//!
//! Exits with 0 if the capture was read, even if it is cut; with 1 if the results could not be
//! written; with 2 if there is no capture to read, or the arguments are wrong.

mod capture;
mod meter;

use core::fmt;
use core::time::Duration;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use capture::{Capture, End, OpenError, synth};
use meter::{Destination, Export, Input, Meter, Options, Progress, Report, USAGE};

/// The generated traffic is the same in each run.
const SEED: u64 = 2006;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        // Who reads has seen enough.
        Err(Failure::Output(error)) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            say(&failure);
            ExitCode::from(if matches!(failure, Failure::Output(_)) { 1 } else { 2 })
        }
    }
}

fn run() -> Result<(), Failure> {
    let options = Options::from_env().map_err(|error| Failure::Usage(error.to_string()))?;
    if options.help {
        return Ok(io::stdout().write_all(USAGE.as_bytes())?);
    }
    let mut capture = open(&options.input)?;
    // Created only now: a mistyped name of a capture must not cost an older file of rows.
    let mut export = Export::new(rows(&options, &capture)?, options.top)?;
    let mut meter = Meter::new(options.gc, options.fin);
    let elapsed = read(&mut capture, &mut meter, &mut export)?;
    if let Some(end @ (End::Cut | End::BadLength(_) | End::Unreadable(_))) = capture.end() {
        say(&format_args!("capture is cut after packet {}: {end}", capture.whole_packets()));
    }

    let (totals, shape) = (meter.totals().clone(), meter.shape());
    for (key, record) in meter.into_records() {
        export.take(key, record)?;
    }
    export.flush()?;
    let report = Report {
        input: &options.input,
        totals: &totals,
        skipped_blocks: capture.skipped_blocks(),
        records: export.records(),
        largest: export.largest(),
        shape: &shape,
        elapsed,
    };
    print(&report, &options.csv)
}

fn open(input: &Input) -> Result<Capture, Failure> {
    let capture = match input {
        Input::File(path) => Capture::open(path),
        Input::Pipe => Capture::standard_input(),
        Input::Generated => Capture::memory(synth::capture(SEED)),
    };
    capture.map_err(|error| Failure::Input(input.to_string(), error))
}

/// Where the rows go, if anywhere.
fn rows(options: &Options, capture: &Capture) -> Result<Option<Box<dyn Write>>, Failure> {
    match &options.csv {
        Destination::Nowhere => Ok(None),
        Destination::StandardOutput => Ok(Some(Box::new(io::stdout()))),
        Destination::File(path) => {
            let refuse = |why| Failure::Usage(format!("--csv {}: {why}", path.display()));
            if is_capture(capture, &options.input, path) {
                return Err(refuse("is the capture".to_owned()));
            }
            let file = File::create(path).map_err(|error| refuse(error.to_string()))?;
            Ok(Some(Box::new(file)))
        }
    }
}

/// Whether the capture is read from the file at `path`, whatever other names that has.
#[cfg(unix)]
fn is_capture(capture: &Capture, _: &Input, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |file: &fs::Metadata| (file.dev(), file.ino());
    match (capture.metadata(), fs::metadata(path)) {
        // Nothing but a file is emptied by writing to it.
        (Some(input), Ok(output)) => input.is_file() && identity(input) == identity(&output),
        _ => false,
    }
}

/// Whether the capture is the file at `path`. Hard links and what standard input was redirected from
/// are not told apart.
#[cfg(not(unix))]
fn is_capture(_: &Capture, input: &Input, path: &Path) -> bool {
    let Input::File(input) = input else { return false };
    matches!((fs::canonicalize(input), fs::canonicalize(path)), (Ok(one), Ok(other)) if one == other)
}

/// Meters all frames, and returns how long it took.
fn read(capture: &mut Capture, meter: &mut Meter, export: &mut Export) -> io::Result<Duration> {
    let mut progress = Progress::new(capture.size());
    let start = Instant::now();
    while let Some(frame) = capture.next_frame() {
        meter.observe(&frame);
        for (key, record) in meter.take_left() {
            export.take(key, record)?;
        }
        progress.packet(capture.bytes_read());
    }
    progress.finish();
    Ok(start.elapsed())
}

/// Prints the report where it does not mix with the rows.
fn print(report: &Report<'_>, rows: &Destination) -> Result<(), Failure> {
    let out: Box<dyn Write> = match rows {
        Destination::StandardOutput => Box::new(io::stderr()),
        Destination::Nowhere | Destination::File(_) => Box::new(io::stdout()),
    };
    let mut out = BufWriter::new(out);
    write!(out, "{report}")?;
    Ok(out.flush()?)
}

/// One line on standard error. If that is closed, there is nobody left to tell.
fn say(what: &dyn fmt::Display) {
    let _ = writeln!(io::stderr(), "flow_cache: {what}");
}

/// Why there is no result.
#[derive(Debug)]
enum Failure {
    /// The arguments are wrong.
    Usage(String),
    /// There is no capture to read in what is named.
    Input(String, OpenError),
    /// The results cannot be written.
    Output(io::Error),
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
            Self::Output(error) => write!(f, "the results cannot be written: {error}"),
        }
    }
}
