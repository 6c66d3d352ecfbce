//! A router in user space under four schedules, and under interrupts without a schedule.
//!
//! ```text
//! cargo run --release --example software_router                        # generated traffic
//! cargo run --release --example software_router -- --load 300
//! cargo run --release --example software_router -- capture.pcapng.gz --measure
//! ```
//!
//! Packets arrive at three ports, are classified by their flows, forwarded by functions of very
//! different costs, and sent. Each stage is a thread of the crate's scheduler, between bounded
//! queues. Prints the throughput of each path, and the share of time spent on packets and not on
//! switches: for turns of one packet, of sixteen, of a timeslice, and of the batching
//! throttle. Then it shows receive livelock: a router that reads each arrival before anything else
//! sends less, the more packets arrive.
//!
//! Exits with 0; with 1 if packets are unaccounted for, or leave as different frames under
//! different schedules, or the results could not be written; with 2 if there is no capture to read,
//! it is damaged, many of its packets are of unknown protocols, it has no IP packets, or the
//! arguments are wrong.

use std::process::ExitCode;

use programs::program::failure::{Failure, Kind};
use programs::program::{Program, print};
use programs::software_router::{Comparison, Costs, Options, Report, Traffic};
use programs::trace::{Taken, Trace};

/// The generated traffic is the same in each run.
const SEED: u64 = 2001;

fn main() -> ExitCode {
    Program::run("software_router", try_main)
}

fn try_main(program: Program, options: Options) -> Result<(), Failure> {
    let (name, trace) = match &options.capture {
        Some(input) => (input.to_string(), Trace::open(program, input)?),
        None => ("generated traffic".to_owned(), Trace::generated(program, SEED)),
    };
    let nothing = || Failure::new(Kind::Input, format_args!("{name} has no IP packet to forward"));
    let Taken { content: traffic, verdict } = trace
        .read(program, |capture, counts| Traffic::read(capture, counts).ok_or_else(nothing))?;
    let costs = if options.measure { Costs::measured(&traffic) } else { Costs::PAPER };
    let bar = program.bar(Some(Comparison::RUNS), "{pos}/{len} runs");
    let comparison = Comparison::new(&traffic, &costs, options.load, || bar.inc(1));
    bar.finish_and_clear();
    print(&Report { name: &name, comparison: &comparison, has_paths: options.paths })?;
    comparison.verdict().and(verdict)
}
