//! A flow meter for packet captures: the main use of the crate, from end to end.
//!
//! ```text
//! cargo run --release --example flow_cache                      # generated traffic
//! cargo run --release --example flow_cache -- capture.pcapng.gz --csv flows.csv
//! tcpdump --immediate-mode -U -w - |
//!     cargo run --release --example flow_cache -- - --timeouts meter --live --ipfix 127.0.0.1:2055
//! ```
//!
//! Prints totals, how flows ended, the largest of them, and the state of the cache. Writes
//! records as CSV, as JSON, and as IPFIX. By default, a flow ends only with the capture, or beyond
//! a million flows: captures in, exact flows out.
//!
//! Exits with 0 if the captures were read to their ends, even if they are cut there; with 1 if
//! results could not be written or did not arrive; with 2 if a capture is damaged or none, or the
//! arguments are wrong; with 128 and the number of a signal that has ended the run. The results up
//! to then are written in each case.

use std::process::ExitCode;

use programs::flow_cache::{Options, run};
use programs::program::Program;

fn main() -> ExitCode {
    Program::run("flow_cache", |program, options: Options| run(program, &options))
}
