//! Looks addresses up in a table of routes: the longest prefix that matches.
//!
//! ```text
//! cargo run --release --example route_lookup                    # a small table that is built in
//! cargo run --release --example route_lookup -- 10.1.2.3 2001:db8::1
//! cargo run --release --example route_lookup -- routes.txt.gz 192.0.2.1
//! cut -d' ' -f1 access.log | route_lookup routes.txt --quiet | sort | uniq -c
//! ```
//!
//! Routes are lines with a prefix, IPv4 or IPv6, and a name if they have one. Answers are lines with the
//! address, the prefix and its name, on standard output; the shape of the tables, their memory and
//! their speed are on standard error.
//!
//! Exits with 0 if every address was looked up, whether or not there was a route; with 1 if the answers
//! could not be written; with 2 if there is no table, an address is none, or the arguments are wrong.

mod routes;
#[path = "capture/source.rs"]
#[allow(dead_code, reason = "the reader of captures asks more of it")]
mod source;

use core::fmt;
use core::net::IpAddr;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::process::ExitCode;
use std::time::Instant;

use routes::{Asked, Fault, Lines, Options, Report, Routes, USAGE};
use source::Source;

/// The table that is used if none is named.
const DOCUMENTATION: &str = include_str!("routes/documentation.txt");

/// What is looked up in it if nothing else is.
const SAMPLES: [&str; 12] = [
    "8.8.8.8",
    "10.1.2.3",
    "10.1.2.4",
    "10.1.9.9",
    "10.200.0.1",
    "192.0.2.1",
    "192.0.2.200",
    "2001:db8::1",
    "2001:db8:1:2::1",
    "2600::1",
    "::ffff:10.1.2.3",
    "5f00::1",
];

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
    let start = Instant::now();
    let (name, source) = match &options.routes {
        Some(path) => (path.display().to_string(), Source::file(path)),
        None => ("built-in routes".to_owned(), Source::memory(DOCUMENTATION.into())),
    };
    let routes = Routes::read(&mut Lines::new(name.clone(), source)?)?;
    let elapsed = start.elapsed();

    let mut out = BufWriter::new(io::stdout().lock());
    let mut faults = 0;
    for asked in asked(&options) {
        match asked {
            Asked::Address(address) => writeln!(out, "{}", routes.lookup(address))?,
            Asked::Pipe => faults += answer_pipe(&routes, &mut out)?,
        }
    }
    out.flush()?;
    if !options.quiet {
        // If standard error is closed, there is nobody to tell.
        let _ = write!(io::stderr(), "{}", Report { name: &name, routes: &routes, elapsed });
    }
    if faults > 0 { Err(Failure::Addresses(faults)) } else { Ok(()) }
}

/// What the arguments ask for, or else the samples.
fn asked(options: &Options) -> Vec<Asked> {
    if !options.asked.is_empty() {
        return options.asked.clone();
    }
    let samples = SAMPLES.iter().filter_map(|text| text.parse().ok());
    samples.map(Asked::Address).collect()
}

/// Answers each line of standard input, as soon as there is no other to be read. How many lines were no
/// addresses.
fn answer_pipe(routes: &Routes, out: &mut impl Write) -> Result<usize, Failure> {
    let mut lines = Lines::new("standard input".to_owned(), Source::standard_input())?;
    let mut faults = 0;
    loop {
        if lines.is_drained() {
            out.flush()?;
        }
        let Some(line) = lines.next()? else { return Ok(faults) };
        match line.parse::<IpAddr>() {
            Ok(address) => writeln!(out, "{}", routes.lookup(address))?,
            Err(_) => {
                let why = format!("{line:?} is no address");
                say(&lines.fault(why));
                faults += 1;
            }
        }
    }
}

/// One line on standard error. If that is closed, there is nobody left to tell.
fn say(what: &dyn fmt::Display) {
    let _ = writeln!(io::stderr(), "route_lookup: {what}");
}

/// Why there is no answer.
#[derive(Debug)]
enum Failure {
    /// The arguments are wrong.
    Usage(String),
    /// Routes or addresses cannot be read.
    Input(Fault),
    /// So many lines of standard input are no addresses.
    Addresses(usize),
    /// The answers cannot be written.
    Output(io::Error),
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Input(fault)
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
            Self::Input(fault) => write!(f, "{fault}"),
            Self::Addresses(1) => write!(f, "one line was no address"),
            Self::Addresses(count) => write!(f, "{count} lines were no addresses"),
            Self::Output(error) => write!(f, "the answers cannot be written: {error}"),
        }
    }
}
