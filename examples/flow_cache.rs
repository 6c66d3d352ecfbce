//! Meters the flows of a packet capture: the main job of the crate, from end to end.
//!
//! ```text
//! cargo run --release --example flow_cache                      # generated traffic
//! cargo run --release --example flow_cache -- capture.pcapng.gz --csv flows.csv
//! tcpdump -w - | cargo run --release --example flow_cache -- - --timeouts meter --live \
//!     --ipfix 127.0.0.1:2055
//! ```
//!
//! Prints totals, how flows ended, the largest of them, and the metrics of the cache. Writes records
//! as CSV, as JSON, and as IPFIX. Unless it is told otherwise, nothing ends a flow but the end of the
//! capture, or a million flows: captures in, exact flows out.
//!
//! Exits with 0 if the capture was read, even if it is cut; with 1 if the results could not be
//! written or did not arrive; with 2 if there is no capture to read, or the arguments are wrong.

mod capture;
mod meter;

use core::fmt;
use core::time::Duration;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::process::ExitCode;
use std::time::Instant;

use capture::{Capture, End, OpenError, synth};
use meter::{Export, Input, Meter, Options, Progress, Report, USAGE, open_sinks};

/// The generated traffic is the same in each run.
const SEED: u64 = 2006;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        // Who reads has seen enough.
        Err(Failure::Output(error)) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            say(&failure);
            failure.code()
        }
    }
}

fn run() -> Result<(), Failure> {
    let options = Options::from_env().map_err(|error| Failure::Usage(error.to_string()))?;
    if options.help {
        return Ok(io::stdout().write_all(USAGE.as_bytes())?);
    }
    let config = options.config().map_err(|error| Failure::Usage(error.to_string()))?;
    let mut capture = open(&options.input)?;
    // Created only now: a mistyped name of a capture must not cost an older file of rows.
    let sinks = open_sinks(&options, &capture).map_err(Failure::Usage)?;
    let mut export = Export::new(sinks, options.top);
    let mut meter = Meter::new(config, options.ending.watches_close());
    let elapsed = read(&mut capture, &mut meter, &mut export, &options)?;
    if let Some(end @ (End::Cut | End::BadLength(_) | End::Unreadable(_))) = capture.end() {
        say(&format_args!("capture is cut after packet {}: {end}", capture.whole_packets()));
    }

    let metrics = meter.metrics();
    for record in meter.drain() {
        export.take(record)?;
    }
    export.flush()?;
    let (counts, losses) = (export.counts(), export.losses());
    let report = Report {
        input: &options.input,
        totals: meter.totals(),
        skipped_blocks: capture.skipped_blocks(),
        counts,
        largest: export.largest(),
        metrics: &metrics,
        elapsed,
    };
    print(&report, &options)?;
    losses.map_or(Ok(()), |losses| Err(Failure::Lost(losses)))
}

fn open(input: &Input) -> Result<Capture, Failure> {
    let capture = match input {
        Input::File(path) => Capture::open(path),
        Input::Pipe => Capture::standard_input(),
        Input::Generated => Capture::memory(synth::capture(SEED)),
    };
    capture.map_err(|error| Failure::Input(input.to_string(), error))
}

/// Meters all frames, and returns how long it took.
fn read(
    capture: &mut Capture,
    meter: &mut Meter,
    export: &mut Export,
    options: &Options,
) -> io::Result<Duration> {
    let mut progress = Progress::new(capture.size(), options.live.then_some(options.top));
    let start = Instant::now();
    while let Some(frame) = capture.next_frame() {
        while !meter.advance(&frame) {
            export.take_all(meter.take_made())?;
        }
        meter.observe(&frame);
        export.take_all(meter.take_made())?;
        export.tick(meter.cache().now())?;
        progress.packet(capture.bytes_read(), meter);
    }
    progress.finish();
    Ok(start.elapsed())
}

/// Prints the report where it does not mix with results.
fn print(report: &Report<'_>, options: &Options) -> Result<(), Failure> {
    let out: Box<dyn Write> = match options.standard_outputs() {
        0 => Box::new(io::stdout()),
        _ => Box::new(io::stderr()),
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
    /// Some of the results did not arrive.
    Lost(String),
}

impl Failure {
    fn code(&self) -> ExitCode {
        match self {
            Self::Output(_) | Self::Lost(_) => ExitCode::from(1),
            Self::Usage(_) | Self::Input(..) => ExitCode::from(2),
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
            Self::Output(error) => write!(f, "the results cannot be written: {error}"),
            Self::Lost(what) => write!(f, "{what}"),
        }
    }
}
