//! A comparison of seven demultiplexers on the same TCP traffic.
//!
//! ```text
//! cargo run --release --example tcp_demux                              # generated traffic: TPC/A
//! cargo run --release --example tcp_demux -- --connections 10000
//! cargo run --release --example tcp_demux -- capture.pcapng.gz
//! ```
//!
//! Looks the TCP segments of a capture up in each of the crate's demultiplexers, or those of bank
//! tellers as in the paper. PCBs are inserted and removed with connections. Prints how many PCBs
//! were examined for a segment, how often the first one was right, and nanoseconds, and checks that
//! all found the same PCBs.
//!
//! Exits with 0 if they did; with 1 if they did not, or the results could not be written; with 2 if
//! there is no capture to read, it is damaged, many of its packets are of unknown protocols, it has
//! no TCP, or the arguments are wrong.

use std::process::ExitCode;

use programs::program::failure::{Failure, Kind};
use programs::program::{Program, print};
use programs::tcp_demux::{Comparison, Options, Recorded, Report, Subject, Tellers};
use programs::trace::{Taken, Trace};

/// The generated traffic is the same in each run.
const SEED: u64 = 1993;

fn main() -> ExitCode {
    Program::run("tcp_demux", try_main)
}

fn try_main(program: Program, options: Options) -> Result<(), Failure> {
    let mut verdict = Ok(());
    let (traffic, script) = match &options.capture {
        Some(input) => {
            let nothing =
                || Failure::new(Kind::Input, format_args!("{input} has no segment of TCP"));
            let Taken { content, verdict: of_capture } = Trace::open(program, input)?
                .read(program, |capture, counts| {
                    Recorded::read(capture, counts).ok_or_else(nothing)
                })?;
            verdict = of_capture;
            (format!("{input}: {content}"), content.script)
        }
        None => {
            let connections = options.connections();
            let tellers = Tellers { connections, lookups: lookups(connections), seed: SEED };
            (tellers.to_string(), tellers.script())
        }
    };
    let (subjects, left_out) = Subject::all(&script);
    let bar = program.bar(Some(Comparison::turns(&subjects)), "{pos}/{len} turns");
    let mut comparison = Comparison::new(&script, subjects, || bar.inc(1));
    comparison.time(|| bar.inc(1));
    bar.finish_and_clear();
    print(&Report { traffic: &traffic, scores: &comparison.scores, left_out: &left_out })?;
    match comparison.agrees() {
        true => verdict,
        false => Err(Failure::new(Kind::Results, "the PCBs disagree")),
    }
}

/// Returns the number of lookups of generated traffic: enough for means within half a hundredth,
/// fewer if lists make each slow.
fn lookups(connections: u32) -> usize {
    (400_000_000 / connections as usize).clamp(20_000, 100_000)
}
