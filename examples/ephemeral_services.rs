//! Services for the source of a multicast, with a few bytes of ephemeral state in routers.
//!
//! ```text
//! cargo run --release --example ephemeral_services
//! cargo run --release --example ephemeral_services -- --receivers 1000 --loss 0 --duplication 50
//! ```
//!
//! Simulates a tree of routers with ephemeral state, and three services on it: the depth of the
//! tree, complaints about a packet that many receivers miss, and the number of receivers and the
//! largest of their values, once with instructions that duplicates disturb and once with robust
//! ones. Prints true values, results, the fate of packets, and the state that routers needed.
//!
//! Exits with 0; with 1 if packets are unaccounted for, state outlives its lifetime, or the results
//! could not be written; with 2 if the arguments are wrong.

use std::process::ExitCode;

use programs::ephemeral_services::network::Traffic;
use programs::ephemeral_services::options::Options;
use programs::ephemeral_services::report::Report;
use programs::program::failure::{Failure, Kind};
use programs::program::{Program, print};

fn main() -> ExitCode {
    Program::run("ephemeral_services", try_main)
}

fn try_main(program: Program, options: Options) -> Result<(), Failure> {
    let bar = program.bar(Some(Report::rounds(&options)), "{pos}/{len} rounds, {eta} left");
    let report = Report::of(options, &|| bar.inc(1));
    bar.finish_and_clear();
    let report = report.map_err(|error| Failure::new(Kind::Results, error))?;
    print(&report)?;
    if !report.traffic.iter().all(Traffic::adds_up) {
        return Err(Failure::new(Kind::Results, "packets are unaccounted for"));
    }
    match report.bindings {
        [_, 0] => Ok(()),
        [_, left] => {
            let why = format_args!("{left} bindings are left a lifetime later");
            Err(Failure::new(Kind::Results, why))
        }
    }
}
