//! A `ConcurrentMap` with many reading threads and one writer.
//!
//! ```text
//! cargo run --release --features concurrent --example shared_reader       # generated traffic
//! cargo run --release --features concurrent --example shared_reader -- capture.pcapng.gz
//! cargo run --release --features concurrent --example shared_reader -- --threads 3 --flows 1000000
//! ```
//!
//! Worker threads process packets in bursts and count them in their flows. Packets without a flow
//! go to a control thread, which inserts flows and removes silent ones. Prints lookups per second
//! of each worker, the latencies of the writer, the map's memory and garbage, and whether all
//! counters agree.
//!
//! Exits with 0 if they do; with 1 if they do not, or the results could not be written; with 2 if
//! there is no capture to read, it is damaged, many of its packets are of unknown protocols, or the
//! arguments are wrong.

use core::time::Duration;
use std::process::ExitCode;

use programs::program::failure::{Failure, Kind};
use programs::program::{Program, print};
use programs::shared_reader::{Generated, Options, Recorded, Report, Traffic, run};
use programs::trace::{Taken, Trace};

/// The generated traffic is the same in each run.
const SEED: u64 = 2006;

fn main() -> ExitCode {
    Program::run("shared_reader", try_main)
}

fn try_main(program: Program, options: Options) -> Result<(), Failure> {
    let mut verdict = Ok(());
    let (name, traffic) = match &options.capture {
        Some(input) => {
            let nothing =
                || Failure::new(Kind::Input, format_args!("{input} has no packet of a flow"));
            let Taken { content, verdict: of_capture } = Trace::open(program, input)?
                .read(program, |capture, counts| {
                    Recorded::read(capture, counts).ok_or_else(nothing)
                })?;
            verdict = of_capture;
            (format!("{input}: "), Traffic::Recorded(content))
        }
        None => (String::new(), Traffic::Generated(Generated::new(options.flows(), SEED))),
    };
    let label = format!("{{elapsed}} of {}s", options.plan.duration.as_secs_f64());
    let bar = program.bar(None, &label);
    // The bar has its own thread, so that the measured threads do not draw.
    bar.enable_steady_tick(Duration::from_millis(250));
    let outcome = run(&traffic, options.plan);
    bar.finish_and_clear();
    let workers = options.plan.workers;
    let outcome = outcome
        .map_err(|error| Failure::new(Kind::Input, format_args!("--threads {workers}: {error}")))?;
    print(&Report { input: &format_args!("{name}{traffic}"), outcome: &outcome })?;
    match outcome.disagreements().is_empty() {
        true => verdict,
        false => Err(Failure::new(Kind::Results, "the counters disagree")),
    }
}
