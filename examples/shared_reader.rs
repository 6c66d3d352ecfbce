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
mod program;
mod shared_reader_parts;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use program::{Failure, Program, open};
use shared_reader_parts::{Made, Options, Recorded, Report, Traffic, USAGE, run};

const PROGRAM: Program = Program("shared_reader");

/// The generated traffic is the same in each run.
const SEED: u64 = 2006;

fn main() -> ExitCode {
    PROGRAM.end(try_main())
}

fn try_main() -> Result<(), Failure> {
    let options = Options::from_env()?;
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
    let agree = outcome.disagreements().is_empty();
    if agree { Ok(()) } else { Err(Failure::Disagreement("the counters disagree")) }
}

/// The packets of a capture.
fn read(path: &Path) -> Result<Recorded, Failure> {
    let mut capture = open(path)?;
    let nothing = || Failure::Nothing(path.display().to_string(), "packet of a flow");
    let recorded = Recorded::read(&mut capture).ok_or_else(nothing)?;
    PROGRAM.say_end(&capture, recorded.len());
    Ok(recorded)
}
