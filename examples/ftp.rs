//! A firewall that admits the data connections which FTP control connections announce.
//!
//! ```text
//! cargo run --release --example ftp
//! ```
//!
//! Builds the packets of an FTP session, passes them through the firewall of
//! `crates/programs/src/ftp/firewall.rs`, and prints for each what became of it: data connections
//! are joined with the control connection that announced them, once and in time, and end with it.
//!
//! Exits with 0; with 1 if the results could not be written; with 2 if the arguments are wrong.

use std::process::ExitCode;

use programs::ftp::options::Options;
use programs::ftp::report::Report;
use programs::ftp::session;
use programs::program::failure::{Failure, Kind};
use programs::program::{Program, print};

fn main() -> ExitCode {
    Program::run("ftp", try_main)
}

fn try_main(_: Program, _: Options) -> Result<(), Failure> {
    let report = Report::of(&session::PACKETS, session::END);
    print(&report.map_err(|error| Failure::new(Kind::Results, error))?)
}
