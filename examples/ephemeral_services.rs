//! What can routers find out for the source of a multicast, with a few bytes of state that they forget by themselves?
//!
//! ```text
//! cargo run --release --example ephemeral_services
//! cargo run --release --example ephemeral_services -- --receivers 1000 --loss 0 --duplication 50
//! ```
//!
//! Simulates a tree of routers with ephemeral state, and three services on it: the depth of the tree, complaints
//! about a packet that many miss, and the number of receivers and the largest of their values, once in a way that
//! duplicates disturb and once in one that they do not. Prints what is true, what was found, what became of packets,
//! and what routers had to keep.
//!
//! Exits with 0; with 1 if it cannot be printed, or if packets are nowhere or something is kept for more than a lifetime; with 2 if the
//! arguments are wrong.

mod ephemeral_services_parts;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use ephemeral_services_parts::network::Traffic;
use ephemeral_services_parts::options::{Options, USAGE};
use ephemeral_services_parts::report::Report;

fn main() -> ExitCode {
    let options = match Options::from_env() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("ephemeral_services: {error} (--help lists the options)");
            return ExitCode::from(2);
        }
    };
    match try_main(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ephemeral_services: {error}");
            ExitCode::FAILURE
        }
    }
}

fn try_main(options: Options) -> Result<(), Box<dyn Error>> {
    if options.help {
        return Ok(io::stdout().write_all(USAGE.as_bytes())?);
    }
    let report = Report::of(options)?;
    io::stdout().write_all(report.to_string().as_bytes())?;
    if !report.traffic.iter().all(Traffic::adds_up) {
        return Err("packets are nowhere".into());
    }
    match report.bindings {
        [_, 0] => Ok(()),
        [_, left] => Err(format!("{left} bindings are left a lifetime later").into()),
    }
}
