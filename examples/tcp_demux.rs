//! Which PCB does this segment belong to? Seven ways to find out, on the same traffic.
//!
//! ```text
//! cargo run --release --example tcp_demux                              # generated traffic: TPC/A
//! cargo run --release --example tcp_demux -- --connections 10000
//! cargo run --release --example tcp_demux -- capture.pcapng.gz
//! ```
//!
//! Looks the TCP segments of a capture up in each of the crate's demultiplexers, or those of bank tellers as
//! the paper has them. PCBs come with connections and go with them. Prints how many PCBs were examined for
//! a segment, how often the first one was right, and nanoseconds, and checks that all found the same PCBs.
//!
//! Exits with 0 if they did; with 1 if they did not, or the results could not be written; with 2 if
//! there is no capture to read, it has no TCP, or the arguments are wrong.

mod capture;
mod program;
mod tcp_demux_parts;
#[path = "../benches/paper/demux_1993/tpca.rs"]
mod tpca;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use program::{Failure, Program, open};
use tcp_demux_parts::{Contest, Contestant, Options, Recorded, Report, Script, Tellers, USAGE};

const PROGRAM: Program = Program("tcp_demux");

/// The generated traffic is the same in each run.
const SEED: u64 = 1993;

fn main() -> ExitCode {
    PROGRAM.end(try_main())
}

fn try_main() -> Result<(), Failure> {
    let options = Options::from_env()?;
    if options.help {
        return Ok(io::stdout().write_all(USAGE.as_bytes())?);
    }
    let (traffic, script) = match &options.capture {
        Some(path) => {
            let recorded = read(path)?;
            (format!("{}: {recorded}", path.display()), recorded.script)
        }
        None => {
            let connections = options.connections;
            let tellers = Tellers { connections, lookups: lookups(connections), seed: SEED };
            (tellers.to_string(), tellers.script())
        }
    };
    contest(&traffic, &script)
}

fn contest(traffic: &str, script: &Script) -> Result<(), Failure> {
    let mut contest = Contest::new(script, Contestant::all(script));
    contest.time();
    let report = Report { traffic: &traffic, scores: &contest.scores };
    io::stdout().write_all(report.to_string().as_bytes())?;
    if contest.agrees() { Ok(()) } else { Err(Failure::Disagreement("the PCBs disagree")) }
}

/// The TCP of a capture.
fn read(path: &Path) -> Result<Recorded, Failure> {
    let mut capture = open(path)?;
    let nothing = || Failure::Nothing(path.display().to_string(), "segment of TCP");
    let recorded = Recorded::read(&mut capture).ok_or_else(nothing)?;
    PROGRAM.say_end(&capture, recorded.seen.segments());
    Ok(recorded)
}

/// Look-ups of generated traffic, so many that means are right to half a hundredth; fewer where a list takes long
/// for each.
fn lookups(connections: u32) -> usize {
    (400_000_000 / connections as usize).clamp(20_000, 100_000)
}
