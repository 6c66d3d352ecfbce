//! Looks addresses up in a routing table: longest-prefix match.
//!
//! ```text
//! cargo run --release --example route_lookup                    # a small table that is built in
//! cargo run --release --example route_lookup -- 10.1.2.3 2001:db8::1
//! cargo run --release --example route_lookup -- routes.txt.gz 192.0.2.1
//! cut -d' ' -f1 access.log | route_lookup routes.txt --quiet | sort | uniq -c
//! ```
//!
//! Routes are lines with a prefix, IPv4 or IPv6, and optionally a name, or a file in the format
//! MRT, whose names are the autonomous systems that announce the prefixes. Results are lines
//! with the address, the prefix and its name, on standard output; the shape of the tables, their
//! memory and their speed are on standard error.
//!
//! Exits with 0 if every address was looked up, whether or not there was a route; with 1 if the
//! results could not be written; with 2 if there is no table, or parts of it or of the addresses
//! are invalid, or the arguments are wrong.

use core::net::IpAddr;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use std::time::Instant;

use programs::program::Program;
use programs::program::failure::{Failure, Kind};
use programs::route_lookup::{DOCUMENTATION, Fault, Lines, Options, Query, Report, Routes};

/// Addresses that are looked up by default.
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
    Program::run("route_lookup", try_main)
}

fn try_main(program: Program, options: Options) -> Result<(), Failure> {
    let start = Instant::now();
    let (name, routes) = read(program, &options)?;
    let elapsed = start.elapsed();
    let mut out = BufWriter::new(io::stdout().lock());
    let mut faults = 0;
    for query in queries(&options) {
        match query {
            Query::Address(address) => writeln!(out, "{}", routes.lookup(address))?,
            Query::Pipe => faults += answer_pipe(program, &routes, &mut out)?,
        }
    }
    out.flush()?;
    if !program.quiet {
        // A closed standard error is ignored.
        let _ = write!(io::stderr(), "{}", Report { name: &name, routes: &routes, elapsed });
    }
    let skipped = routes.faults.count();
    match faults {
        0 if skipped == 0 => Ok(()),
        0 => {
            let why = format_args!("parts of {name} that could not be read: {skipped}");
            Err(Failure::new(Kind::Input, why))
        }
        1 => Err(Failure::new(Kind::Input, "one line was no address")),
        _ => Err(Failure::new(Kind::Input, format_args!("{faults} lines were no addresses"))),
    }
}

/// Reads the routes. Returns them with the name of their source.
fn read(program: Program, options: &Options) -> Result<(String, Routes), Failure> {
    let Some(input) = &options.routes else {
        let name = "built-in routes".to_owned();
        let mut lines = Lines::new(name.clone(), DOCUMENTATION.as_bytes())?;
        return Ok((name, Routes::read(&mut lines)));
    };
    let name = input.to_string();
    let (bytes, bar) = input.open(program).map_err(|error| Fault::of_file(name.clone(), error))?;
    let routes = Routes::read(&mut Lines::new(name.clone(), bytes)?);
    bar.finish_and_clear();
    routes.faults.first().iter().for_each(|fault| program.log(fault));
    if routes.v4.is_empty() && routes.v6.is_empty() {
        return Err(Failure::new(Kind::Input, format_args!("{name} has no route")));
    }
    Ok((name, routes))
}

/// Returns the queries of the arguments, or else the samples.
fn queries(options: &Options) -> Vec<Query> {
    if !options.queries.is_empty() {
        return options.queries.clone();
    }
    let samples = SAMPLES.iter().filter_map(|text| text.parse().ok());
    samples.map(Query::Address).collect()
}

/// Looks up each line of standard input, and flushes when no other line is available. Returns the
/// number of invalid lines.
fn answer_pipe(program: Program, routes: &Routes, out: &mut impl Write) -> Result<usize, Failure> {
    let mut lines = Lines::new("standard input".to_owned(), io::stdin().lock())?;
    let mut faults = 0;
    loop {
        if lines.is_drained() {
            out.flush()?;
        }
        match address(&mut lines) {
            Ok(Some(address)) => writeln!(out, "{}", routes.lookup(address))?,
            Ok(None) => return Ok(faults),
            Err(fault) if fault.is_of_line() => {
                program.log(&fault);
                faults += 1;
            }
            Err(fault) => return Err(fault.into()),
        }
    }
}

/// Returns the address in the next line; `None` at the end.
fn address(lines: &mut Lines) -> Result<Option<IpAddr>, Fault> {
    let Some(line) = lines.next_line()? else { return Ok(None) };
    if let Ok(address) = line.parse() {
        return Ok(Some(address));
    }
    let why = format!("{line:?} is no address");
    Err(lines.fault(why))
}
